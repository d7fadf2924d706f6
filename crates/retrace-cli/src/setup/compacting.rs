//! Strategies, ready to run: for a verification, and in an agent that is recorded.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use indexmap::IndexMap;
use retrace_agent::{Agent, ToolLoop};
use retrace_command::CommandStrategy;
use retrace_events::tokens::TokenCounter;
use retrace_events::{Event, History, Part, Request};
use retrace_model::Model;
use retrace_strategies::{BoxFuture, CompactContext, Compactor, Counted, Strategy};

use retrace_verifier::Timed;

use super::{Base, Models, World};
use crate::config::{CompactionConfig, MenuTable, StrategyChoice, StrategyTable};
use crate::failure::hinted;
use crate::output;

/// A strategy of the menu, or a program that is one.
#[derive(Clone)]
pub(crate) struct Compacting {
    pub(crate) strategy: Arc<dyn Strategy>,
    /// Whether a program in it may ask models: it says only when it asks which.
    pub(crate) asks_any_model: bool,
}

impl Compacting {
    /// Starts what is to be started for a strategy.
    pub(crate) async fn start(name: &str, table: StrategyTable, base: &Base) -> Result<Self> {
        let started = Self::start_any(table, base).await;
        let started = started.with_context(|| format!("the strategy `{name}` cannot be used"))?;
        for warning in started.strategy.warnings() {
            output::warn(&format!("the strategy `{name}`: {warning}"));
        }
        Ok(started)
    }

    fn start_any(table: StrategyTable, base: &Base) -> BoxFuture<'_, Result<Self>> {
        Box::pin(async move {
            match table {
                StrategyTable::Menu(MenuTable { config, parts, counter }) => {
                    let (mut built, mut asks_any_model) = (Vec::new(), false);
                    for part in parts {
                        let part = Self::start_any(part, base).await?;
                        built.push(part.strategy);
                        asks_any_model |= part.asks_any_model;
                    }
                    let strategy = config.build_with(built);
                    let strategy = match counter.map(|counter| counter.build(base.agent_model.as_deref())) {
                        None => strategy,
                        Some(counter) => Arc::new(Counted::new(strategy, counter?)),
                    };
                    Ok(Self { strategy, asks_any_model })
                }
                StrategyTable::Program(program) => {
                    let strategy = Arc::new(CommandStrategy::start(&base.program(&program)).await?);
                    Ok(Self { asks_any_model: strategy.business().may_ask(), strategy })
                }
            }
        })
    }

    /// A strategy that takes nothing to be started; none where a program is part of it.
    pub(crate) fn unstarted(name: &str, table: StrategyTable, base: &Base) -> Result<Option<Arc<dyn Strategy>>> {
        if table.has_program() {
            return Ok(None);
        }
        // Without programs nothing is waited for.
        let started = pollster::block_on(Self::start_any(table, base));
        Ok(Some(started.with_context(|| format!("the strategy `{name}` cannot be used"))?.strategy))
    }

    /// The models that it asks for by name, beside the agent's own, whose name is `own`.
    pub(crate) fn models(&self, models: &mut Models, own: &str) -> Result<Vec<(String, Arc<dyn Model>)>> {
        let by_program = if self.asks_any_model { models.names() } else { Vec::new() };
        let names = self.strategy.models().into_iter().map(str::to_owned).chain(by_program);
        names.filter(|name| name != own).map(|name| Ok((name.clone(), models.named(&name)?))).collect()
    }
}

/// What compacts the agent's own history, before its models are seen to work.
pub(crate) struct OwnCompaction {
    compactor: Compactor,
    models: Vec<(String, Arc<dyn Model>)>,
}

impl OwnCompaction {
    /// Starts its strategy, which may be one of these and is given up on after a limit.
    pub(crate) async fn start(
        config: CompactionConfig,
        strategies: &IndexMap<String, StrategyTable>,
        models: &mut Models,
        base: &Base,
        own_model: &str,
        limit: Duration,
    ) -> Result<Self> {
        let (name, table) = match config.strategy {
            StrategyChoice::Table(table) => ("agent.compaction".to_owned(), *table),
            StrategyChoice::Named(name) => match strategies.get(&name) {
                Some(table) => (name, table.clone()),
                None => {
                    let known: Vec<_> = strategies.keys().map(|name| format!("`{name}`")).collect();
                    return Err(hinted(
                        format!("`agent.compaction` names a strategy `{name}`, and there is none"),
                        format!("the configuration has {}; or give a table with its `kind`", known.join(", ")),
                    ));
                }
            },
        };
        let compacting = Compacting::start(&name, table, base).await?;
        let models = compacting.models(models, own_model)?;
        let mut compactor = Compactor::new(Arc::new(Timed::new(compacting.strategy, limit)));
        if let Some(max_events) = config.max_events {
            compactor = compactor.max_events(max_events);
        }
        if let Some(limits) = config.on_request {
            compactor = compactor.on_request(limits);
        }
        Ok(Self { compactor, models })
    }

    /// The agent that compacts; `around` is put around each model that the strategy asks by name.
    pub(crate) fn into_agent(
        self,
        counter: Arc<dyn TokenCounter>,
        around: impl Fn(Arc<dyn Model>) -> Arc<dyn Model>,
    ) -> Arc<dyn Agent> {
        let tool_loop = ToolLoop::compacting(self.compactor).counter(counter);
        let models = self.models.into_iter();
        Arc::new(models.fold(tool_loop, |tool_loop, (name, model)| tool_loop.model(name, around(model))))
    }

    /// Warns where the instructions, the tools and the task of a run alone call for a compaction.
    pub(crate) fn check_trigger(
        &self,
        id: &str,
        instructions: Option<&str>,
        request: &str,
        world: &World,
        cx: &CompactContext<'_>,
    ) {
        let tools = world.tools.iter().filter_map(|tool| serde_json::to_string(tool).ok());
        let system = instructions.map(str::to_owned).into_iter().chain(tools).map(Part::system);
        let content = system.chain([Part::text(request)]).collect();
        let least = History::from(vec![Event::Request(Request { content, ..Request::default() })]);
        if self.compactor.is_set_off_by(&least, cx) {
            output::warn(&format!(
                "`[agent.compaction]`: the instructions, the tools and the request of `{id}` alone are above the trigger, so \
                 that no compaction gets below it"
            ));
        }
    }

    /// Refuses an environment that has a tool of the name of the one by which the model asks for it.
    pub(crate) fn check_tools(&self, world: &World) -> Result<()> {
        let Some(own) = self.compactor.tool() else { return Ok(()) };
        match world.tools.iter().find(|tool| tool.name == own.name) {
            None => Ok(()),
            Some(_) => Err(hinted(
                format!("the environment has a tool `{}`, by which the agent's model asks for a compaction", own.name),
                "leave `on_request` out of `[agent.compaction]`, or `rename` the tool of the environment",
            )),
        }
    }
}
