//! The environment: a fresh server for each rollout.

use std::sync::Arc;

use futures_core::future::BoxFuture;
use retrace_env::{CallError, Dispatch, Environment, RestoreError, ToolOutput, Toolbox};
use retrace_events::{ToolSpec, with_causes};
use retrace_process::escaped;
use serde_json::{Map, Value};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::answer::{Reading, refusal};
use crate::config::McpConfig;
use crate::error::{McpError, names};
use crate::menu::Menu;
use crate::pool::Pool;
use crate::server::{Reply, Server, Setup};

/// An environment whose tools are those of an MCP server.
///
/// Each rollout has a server of its own: a program that is started for it, or a session at an address that the rollout's
/// id is part of. A server that is put back by a reset tool serves one rollout at a time. One that nothing puts back is
/// refused, unless its tools only read.
///
/// A server that ends, hangs or answers what is no message costs the rollout; a call that it refuses is a failed result.
/// The server checks arguments by itself, so calls reach it as they came, but for the fixed arguments and the path of
/// the workspace. Arguments that are no JSON object cannot be sent and are a failed result.
///
/// It works in a runtime of tokio with I/O and time enabled. A program calls [`settle`](retrace_process::settle) at its
/// end, after that runtime is gone, so that the last servers have ended and their workspaces are removed.
pub struct McpEnvironment {
    setup: Arc<Setup>,
    menu: Arc<Menu>,
    reading: Arc<Reading>,
    /// One permit where rollouts share a server.
    turns: Option<Arc<Semaphore>>,
    pool: Pool,
}

impl McpEnvironment {
    /// Starts or reaches the server once, and looks at its tools. The first rollout has this server.
    ///
    /// # Errors
    ///
    /// When the server cannot be used as it is configured; nothing was called yet.
    pub async fn connect(config: McpConfig) -> Result<Self, McpError> {
        let setup = Arc::new(Setup::new(config)?);
        let config = &setup.config;
        let pool = Pool::new(Arc::clone(&setup));
        let server = setup.start().await?;
        let menu = Menu::new(config, &server.tools(config.start_timeout()).await?)?;
        pool.put(server);
        let environment = Self {
            reading: Arc::new(Reading { outcome: config.outcome.clone(), result: config.result.clone() }),
            turns: config.reset_tool.is_some().then(|| Arc::new(Semaphore::new(1))),
            menu: Arc::new(menu),
            pool,
            setup: Arc::clone(&setup),
        };
        let shared = environment.shared_writes();
        if !shared.is_empty() && !config.allow_writes {
            let url = config.url.clone().unwrap_or_default();
            return Err(McpError::Shared { url, tools: names(shared) });
        }
        Ok(environment)
    }

    /// The tools, as the agent sees them.
    pub fn tools(&self) -> &Arc<[ToolSpec]> {
        &self.menu.specs
    }

    /// The tools that may change what another rollout sees: where they are not empty, the configuration allows it
    /// explicitly, and nothing that is measured there can be trusted.
    ///
    /// There are none where a rollout has a process, an id or a reset of its own. A program may still write to files or
    /// services outside; a `workspace` keeps it from files.
    pub fn shared_writes(&self) -> Vec<&str> {
        let config = &self.setup.config;
        let is_apart = config.command.is_some() || config.reset_tool.is_some() || config.mentions("{rollout}");
        if is_apart { Vec::new() } else { self.menu.writing() }
    }

    /// How many rollouts run at a time, if that is limited.
    pub fn max_rollouts(&self) -> Option<usize> {
        self.turns.as_ref().map(|_| 1)
    }

    async fn open_world(&self) -> Result<World, McpError> {
        let turn = match &self.turns {
            // It is never closed.
            Some(turns) => Arc::clone(turns).acquire_owned().await.ok(),
            None => None,
        };
        let server = self.pool.take().await?;
        let config = &self.setup.config;
        let fixed = config.arguments.iter().map(|(key, value)| (key.clone(), server.placeholders.fill_value(value)));
        let fixed = fixed.collect();
        let world = World {
            server,
            fixed,
            menu: Arc::clone(&self.menu),
            reading: Arc::clone(&self.reading),
            setup: Arc::clone(&self.setup),
            _turn: turn,
        };
        if let Some(tool) = &config.reset_tool {
            world.reset(tool).await?;
        }
        Ok(world)
    }
}

impl Environment for McpEnvironment {
    fn open(&self) -> BoxFuture<'_, Result<Toolbox, RestoreError>> {
        Box::pin(async move {
            let world = self.open_world().await.map_err(|error| RestoreError::Environment { source: error.into() })?;
            Ok(Toolbox::over(Arc::clone(&self.menu.specs), world))
        })
    }
}

/// A server in the hands of one rollout.
struct World {
    server: Server,
    /// The fixed arguments, filled in.
    fixed: Map<String, Value>,
    menu: Arc<Menu>,
    reading: Arc<Reading>,
    setup: Arc<Setup>,
    // Given back after the server was let go.
    _turn: Option<OwnedSemaphorePermit>,
}

impl World {
    async fn reset(&self, tool: &str) -> Result<(), McpError> {
        // The reset takes what it can of the fixed arguments too; a server may refuse one that it does not know.
        let fixed =
            self.menu.reset_arguments().iter().filter_map(|key| Some((key.clone(), self.fixed.get(key)?.clone())));
        let reply = self.server.call(tool, fixed.collect(), self.setup.config.start_timeout()).await?;
        let output = match reply {
            Reply::Answer(answer) => self.reading.output(answer, None),
            Reply::Refusal(error) => refusal(tool, &error, None),
        };
        if output.outcome.is_blocked() {
            return Err(McpError::Reset { tool: tool.to_owned(), problem: escaped(&output.text()) });
        }
        Ok(())
    }
}

impl Dispatch for World {
    fn dispatch<'a>(&'a self, name: &'a str, arguments: &'a str) -> BoxFuture<'a, Result<ToolOutput, CallError>> {
        Box::pin(async move {
            if let Some(answer) = self.menu.stub(name) {
                return Ok(ToolOutput::ok(answer));
            }
            let Some(tool) = self.menu.find(name) else { return Ok(ToolOutput::not_found(name)) };
            let mut arguments = match object(arguments) {
                Ok(arguments) => arguments,
                Err(flaw) => return Ok(ToolOutput::failed("InvalidArguments", format!("invalid arguments: {flaw}"))),
            };
            let path = self.server.path.as_ref();
            if let Some(path) = path {
                arguments.values_mut().for_each(|value| path.resolve(value));
            }
            for key in &tool.fixed {
                arguments.insert(key.clone(), self.fixed.get(key).cloned().unwrap_or_default());
            }
            match self.server.call(&tool.name, arguments, self.setup.config.call_timeout()).await {
                Ok(Reply::Answer(answer)) => Ok(self.reading.output(answer, path)),
                Ok(Reply::Refusal(error)) => Ok(refusal(name, &error, path)),
                Err(error) => Err(CallError::Environment { message: with_causes(&error) }),
            }
        })
    }
}

/// The arguments of a call, which are the text of a JSON object, or blank.
fn object(arguments: &str) -> Result<Map<String, Value>, String> {
    if arguments.trim().is_empty() {
        return Ok(Map::new());
    }
    match serde_json::from_str(arguments).map_err(|error| format!("not valid JSON: {error}"))? {
        Value::Object(arguments) => Ok(arguments),
        Value::Array(_) => Err("expected a JSON object, found an array".to_owned()),
        other => Err(format!("expected a JSON object, found `{}`", escaped(&other.to_string()))),
    }
}
