//! What a configuration stands for: models, environments, an agent and strategies, ready to run.
//!
//! Whatever can be known to be wrong is said here, before anything is spent.

mod environments;
mod models;

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use retrace_agent::{Agent, ToolLoop};
use retrace_command::{CommandAgent, CommandStrategy, ProgramConfig};
use retrace_model::Model;
use retrace_strategies::Strategy;

pub(crate) use self::environments::{Environments, World};
pub(crate) use self::models::{Cassettes, Models};
use crate::config::{AgentConfig, StrategyTable};

/// Who acts.
pub(crate) struct Actor {
    pub(crate) agent: Arc<dyn Agent>,
    pub(crate) model: Arc<dyn Model>,
    /// The program that the agent is, if it is one.
    program: Option<Arc<CommandAgent>>,
}

impl Actor {
    /// Starts the agent.
    pub(crate) async fn new(config: &AgentConfig, models: &mut Models, folder: &Path) -> Result<Self> {
        let model = models.of_agent(config)?;
        let program = match &config.program {
            None => None,
            Some(program) => {
                let program = relative(program, folder);
                Some(Arc::new(CommandAgent::start(&program).await.context("the agent cannot be used")?))
            }
        };
        let agent: Arc<dyn Agent> = match &program {
            Some(program) => Arc::<CommandAgent>::clone(program),
            None => Arc::new(ToolLoop::default()),
        };
        Ok(Self { agent, model, program })
    }

    /// Refuses an environment that has a tool of a name that the agent brings, too.
    pub(crate) fn check_tools(&self, world: &World) -> Result<()> {
        let names = world.tools.iter().map(|tool| &*tool.name);
        Ok(self.program.as_ref().map_or(Ok(()), |program| program.check_tools(names))?)
    }
}

/// A strategy of the menu, or a program that is one.
pub(crate) async fn strategy(name: &str, table: StrategyTable, folder: &Path) -> Result<Arc<dyn Strategy>> {
    match table {
        StrategyTable::Menu(config) => Ok(config.build()),
        StrategyTable::Program(program) => {
            let started = CommandStrategy::start(&relative(&program, folder)).await;
            Ok(Arc::new(started.with_context(|| format!("the strategy `{name}` cannot be used"))?))
        }
    }
}

/// A program that works in the folder of the configuration, if it names no other.
fn relative(program: &ProgramConfig, folder: &Path) -> ProgramConfig {
    let own = program.folder.as_deref().unwrap_or(Path::new(""));
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    ProgramConfig { folder: Some(folder.join(own)), ..program.clone() }
}
