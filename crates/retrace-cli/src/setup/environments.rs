//! Environments by the names that a configuration gives them, each opened once to see that it works.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use indexmap::IndexMap;
use retrace_command::CommandEnvironment;
use retrace_env::Environment;
use retrace_events::{Outcome, OutcomeRule, Recording, ToolSpec};
use retrace_mcp::{McpConfig, McpEnvironment};

use super::Base;
use crate::config::EnvironmentConfig;
use crate::failure::hinted;
use crate::{output, simulated};

/// The environments of a configuration; those that were asked for are ready.
pub(crate) struct Environments {
    tables: IndexMap<String, EnvironmentConfig>,
    base: Base,
    /// What says of an answer whether it is a failure, where an environment has no rule of its own.
    outcome: Option<OutcomeRule>,
    limit: Duration,
    ready: IndexMap<(String, Option<u64>), World>,
}

/// An environment that opens, and its tools.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) environment: Arc<dyn Environment>,
    pub(crate) tools: Arc<[ToolSpec]>,
    /// How many rollouts it takes at once, if that is limited.
    pub(crate) max_rollouts: Option<usize>,
}

impl Environments {
    /// None of them is started yet; one that does not open within `limit` is an error.
    pub(crate) fn new(
        tables: IndexMap<String, EnvironmentConfig>,
        base: Base,
        outcome: Option<OutcomeRule>,
        limit: Duration,
    ) -> Self {
        Self { tables, base, outcome, limit, ready: IndexMap::new() }
    }

    /// The environment of this name, started and opened if it was not yet.
    pub(crate) async fn get(&mut self, name: &str, world_seed: Option<u64>) -> Result<World> {
        let key = (name.to_owned(), world_seed);
        if let Some(world) = self.ready.get(&key) {
            return Ok(world.clone());
        }
        let opened = tokio::time::timeout(self.limit, self.open(name, world_seed)).await;
        let world = opened.unwrap_or_else(|_| Err(anyhow::anyhow!("it did not open within {:?}", self.limit)));
        let world = world.with_context(|| format!("the environment `{name}` cannot be used"))?;
        Ok(self.ready.entry(key).or_insert(world).clone())
    }

    async fn open(&self, name: &str, world_seed: Option<u64>) -> Result<World> {
        let table = self.tables.get(name);
        if table.is_some() && world_seed.is_some() {
            return Err(hinted("`world_seed` is for simulated environments", "leave it out"));
        }
        let (environment, max_rollouts): (Arc<dyn Environment>, _) = match table {
            Some(EnvironmentConfig::Mcp(config)) => {
                let config =
                    McpConfig { outcome: config.outcome.clone().or(self.outcome.clone()), ..McpConfig::clone(config) };
                let server = McpEnvironment::connect(self.base.server(config)).await?;
                let shared = server.shared_writes();
                if !shared.is_empty() {
                    output::warn(&format!(
                        "`{name}` is one server for all rollouts, and what one does there, others see: `allow_writes` accepts it of `{}`",
                        shared.join("`, `")
                    ));
                }
                let max_rollouts = server.max_rollouts();
                (Arc::new(server), max_rollouts)
            }
            Some(EnvironmentConfig::Program(program)) => {
                (Arc::new(CommandEnvironment::start(&self.base.program(program)).await?), None)
            }
            None => {
                (simulated::environment(name, world_seed.unwrap_or_default()).ok_or_else(|| self.unknown(name))?, None)
            }
        };
        let tools = Arc::clone(environment.open().await?.specs());
        if tools.is_empty() {
            return Err(hinted("it has no tools", "an agent without tools makes no calls that could be compared"));
        }
        Ok(World { environment, tools, max_rollouts })
    }

    fn unknown(&self, name: &str) -> anyhow::Error {
        let known = self.tables.keys().map(String::as_str).chain(["recorded"]).chain(simulated::ENVIRONMENTS);
        let known: Vec<_> = known.collect();
        hinted(
            format!("there is no environment `{name}`"),
            format!("add a table `[environments.{name}]`, or name one of {}", known.join(", ")),
        )
    }
}

impl World {
    /// Refuses a recording that called tools, and got answers, that are not here.
    pub(crate) fn check_recording(&self, recording: &Recording) -> Result<()> {
        let offered: BTreeSet<&str> = self.tools.iter().map(|tool| &*tool.name).collect();
        let results = recording.events.iter().flat_map(|event| match &**event {
            retrace_events::Event::ToolResults(round) => &round.results[..],
            _ => &[],
        });
        let answered = results.filter(|result| result.outcome != Outcome::NotFound && !result.own);
        let answered = answered.map(|result| &*result.name);
        let missing: BTreeSet<&str> = answered.filter(|name| !offered.contains(name)).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let list = |names: BTreeSet<&str>| names.into_iter().take(20).collect::<Vec<_>>().join(", ");
        Err(hinted(
            format!(
                "recording `{}` calls tools that its environment does not have: {}",
                recording.header.id,
                list(missing)
            ),
            format!(
                "the environment has {}; if a tool has another name there, say so with `rename`; if only the recorded \
                 agent had it and it changed nothing, answer it with `stubs`; if it is another environment's, move the recording \
                 to that group",
                list(offered)
            ),
        ))
    }
}
