//! An environment that is a program.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_core::future::BoxFuture;
use retrace_env::{CallError, Dispatch, Environment, RestoreError, Tool, ToolOutput, Toolbox, ToolboxError};
use retrace_events::{ToolSpec, with_causes};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use crate::config::ProgramConfig;
use crate::error::CommandError;
use crate::events::{decode_content, decode_tools};
use crate::host::{Hold, Host, Use};
use crate::protocol::{Call, CallResult, FromProgram, Open, Role, Serves};

/// An [`Environment`] that is a program. It answers every call itself: arguments reach it as the model wrote them, and
/// so do calls of tools that it does not have.
pub struct CommandEnvironment {
    host: Host,
    /// The tools of the last world, found to be in order.
    menu: Mutex<Option<Toolbox>>,
}

impl CommandEnvironment {
    /// Starts the program, in a runtime of tokio with its I/O and time enabled.
    ///
    /// # Errors
    /// When it cannot be started, or is no environment that speaks the protocol.
    pub async fn start(config: &ProgramConfig) -> Result<Self, CommandError> {
        let host = Host::start(config, Role::Environment, |greeting| {
            // A world is held as long as its rollout runs, and a rollout may wait for another.
            let problem = "serves worlds `one_by_one`: an environment serves `one` with each process, or `many`";
            if greeting.serves == Serves::OneByOne { Err(problem.to_owned()) } else { Ok(()) }
        });
        let host = host.await?;
        Ok(Self { host, menu: Mutex::default() })
    }

    /// Its name, as it gives it.
    pub fn name(&self) -> &str {
        &self.host.greeting().name
    }

    async fn world(&self) -> Result<Toolbox, RestoreError> {
        let mut world = self.host.begin(|r#use| Open { r#use }.into()).await?;
        let opened = match world.hear("open a world").await? {
            FromProgram::Opened(opened) => opened,
            message => return Err(world.hold.unexpected(&message, "`opened`").into()),
        };
        let specs = decode_tools(&opened.tools).map_err(|problem| world.hold.broken(problem))?;
        let menu = self.menu(specs, opened.independent)?;
        Ok(menu.wrapped(|_| World::new(world)))
    }

    /// A toolbox with these tools, once it is known that each has a name of its own and a valid schema.
    fn menu(&self, specs: Vec<ToolSpec>, independent: bool) -> Result<Toolbox, ToolboxError> {
        let mut menu = lock(&self.menu);
        let is_same = |menu: &&Toolbox| **menu.specs() == *specs && menu.is_independent() == independent;
        if let Some(menu) = menu.as_ref().filter(is_same) {
            return Ok(menu.clone());
        }
        let tools = specs.into_iter().map(OnlySpec);
        Ok(menu.insert(Toolbox::builder().tools(tools).independent(independent).build()?).clone())
    }
}

impl Environment for CommandEnvironment {
    fn open(&self) -> BoxFuture<'_, Result<Toolbox, RestoreError>> {
        Box::pin(self.world())
    }
}

/// A world that a program keeps. It is over when this is dropped.
struct World {
    hold: Hold,
    calls: Arc<Mutex<Calls>>,
    listener: AbortHandle,
}

/// The calls that wait for their results.
#[derive(Default)]
struct Calls {
    n_calls: u64,
    waiting: HashMap<u64, oneshot::Sender<CallResult>>,
    end: Option<End>,
}

/// Why no result comes any more.
#[derive(Clone)]
enum End {
    /// The process has ended, or is of no use.
    Gone,
    /// The program says that the world failed.
    Failed(String),
    /// What the program does wrong.
    Broken(String),
}

impl World {
    fn new(opened: Use) -> Self {
        let (hold, mut inbox) = opened.split();
        let calls = Arc::new(Mutex::new(Calls::default()));
        let listener = tokio::spawn({
            let calls = Arc::clone(&calls);
            async move {
                while let Some(message) = inbox.recv().await {
                    lock(&calls).hear(message);
                }
                lock(&calls).end(End::Gone);
            }
        });
        Self { hold, calls, listener: listener.abort_handle() }
    }

    async fn call(&self, name: &str, arguments: &str) -> Result<ToolOutput, CommandError> {
        let (id, result) = lock(&self.calls).make().map_err(|end| self.why(end))?;
        let _waiting = Withdraw { calls: &self.calls, id };
        let (name, arguments) = (name.to_owned(), arguments.to_owned());
        self.hold.tell(Call { r#use: self.hold.number(), id, name, arguments })?;
        let Ok(CallResult { content, outcome, error, .. }) = self.hold.timed("answer a call", result).await? else {
            return Err(self.why(lock(&self.calls).end.clone().unwrap_or(End::Gone)));
        };
        let content = decode_content(&content).map_err(|problem| self.hold.broken(problem))?;
        Ok(ToolOutput { content, outcome, error })
    }

    fn why(&self, end: End) -> CommandError {
        match end {
            End::Gone => self.hold.why_broken(),
            End::Failed(message) => self.hold.failed(&message),
            End::Broken(problem) => self.hold.broken(problem),
        }
    }
}

impl Calls {
    fn make(&mut self) -> Result<(u64, oneshot::Receiver<CallResult>), End> {
        if let Some(end) = &self.end {
            return Err(end.clone());
        }
        let (sender, result) = oneshot::channel();
        self.n_calls += 1;
        self.waiting.insert(self.n_calls, sender);
        Ok((self.n_calls, result))
    }

    fn hear(&mut self, message: FromProgram) {
        match message {
            FromProgram::Result(result) if (1..=self.n_calls).contains(&result.id) => {
                if let Some(waiting) = self.waiting.remove(&result.id) {
                    // Whoever waited may have given up just now.
                    _ = waiting.send(result);
                }
            }
            FromProgram::Result(result) => {
                self.end(End::Broken(format!("sent the result of call {}, which was never made", result.id)));
            }
            FromProgram::Failed(failed) => self.end(End::Failed(failed.message)),
            message => self.end(End::Broken(format!("sent `{}` where `result` is wanted", message.kind()))),
        }
    }

    /// The first reason is the one to tell.
    fn end(&mut self, end: End) {
        self.end.get_or_insert(end);
        self.waiting.clear();
    }
}

/// A call that nobody waits for any longer when this is dropped.
struct Withdraw<'a> {
    calls: &'a Mutex<Calls>,
    id: u64,
}

impl Drop for Withdraw<'_> {
    fn drop(&mut self) {
        lock(self.calls).waiting.remove(&self.id);
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.listener.abort();
    }
}

impl Dispatch for World {
    fn dispatch<'a>(&'a self, name: &'a str, arguments: &'a str) -> BoxFuture<'a, Result<ToolOutput, CallError>> {
        Box::pin(async move {
            let output = self.call(name, arguments).await;
            output.map_err(|error| CallError::Environment { message: with_causes(&error) })
        })
    }
}

/// A tool of which only the spec is wanted.
struct OnlySpec(ToolSpec);

impl Tool for OnlySpec {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn call<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<ToolOutput, CallError>> {
        Box::pin(std::future::ready(Ok(ToolOutput::not_found(&self.0.name))))
    }
}

impl From<CommandError> for RestoreError {
    fn from(error: CommandError) -> Self {
        Self::Environment { source: error.into() }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
