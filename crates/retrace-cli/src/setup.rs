//! What a configuration stands for: models, environments, an agent and strategies, ready to run.
//!
//! Whatever can be known to be wrong is said here, before anything is spent.

mod compacting;
mod environments;
mod models;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use retrace_agent::{Agent, ToolLoop};
use retrace_command::{CommandAgent, ProgramConfig};
use retrace_mcp::McpConfig;
use retrace_model::Model;

pub(crate) use self::compacting::{Compacting, OwnCompaction};
pub(crate) use self::environments::{Environments, World};
pub(crate) use self::models::{Cassettes, Models, listed, price};
use crate::config::{AgentConfig, Config, ModelConfig};

/// What the programs of a configuration have in common.
#[derive(Clone, Default)]
pub(crate) struct Base {
    /// The folder of the configuration, which paths are relative to.
    folder: PathBuf,
    /// The variables that hold the keys of its models, which no program is to see.
    secret_env: Vec<String>,
    /// The name of the agent's model.
    agent_model: Option<String>,
}

impl Base {
    /// That of a configuration in a file.
    pub(crate) fn new(config: &Config, file: &Path) -> Self {
        let models = config.models.values().chain(&config.agent.model);
        let keys = models.filter_map(|model| match model {
            ModelConfig::Provider(config) => config.rig.api_key_env.clone(),
            _ => None,
        });
        Self {
            folder: file.parent().unwrap_or(Path::new("")).to_owned(),
            secret_env: keys.collect(),
            agent_model: config.agent_model().map(str::to_owned),
        }
    }

    /// The folder of the configuration.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// An MCP server whose paths are relative to the folder of the configuration.
    fn server(&self, config: McpConfig) -> McpConfig {
        McpConfig { secret_env: self.secret_env.clone(), ..config.relative_to(&self.folder) }
    }

    /// A program that works in the folder of the configuration, if it names no other.
    fn program(&self, program: &ProgramConfig) -> ProgramConfig {
        let own = program.folder.as_deref().unwrap_or(Path::new(""));
        ProgramConfig {
            // An empty path is no folder to work in.
            folder: Some(Path::new(".").join(&self.folder).join(own)),
            secret_env: self.secret_env.clone(),
            ..program.clone()
        }
    }
}

/// Who acts.
pub(crate) struct Actor {
    pub(crate) agent: Arc<dyn Agent>,
    pub(crate) model: Arc<dyn Model>,
    /// The program that the agent is, if it is one.
    program: Option<Arc<CommandAgent>>,
}

impl Actor {
    /// Starts the agent.
    pub(crate) async fn new(config: &AgentConfig, models: &mut Models, base: &Base) -> Result<Self> {
        let model = models.of_agent(config)?;
        let program = match &config.program {
            None => None,
            Some(program) => {
                Some(Arc::new(CommandAgent::start(&base.program(program)).await.context("the agent cannot be used")?))
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
