//! A program and its processes: one for each use, or one for all.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::Receiver;
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};

use crate::config::ProgramConfig;
use crate::connection::Connection;
use crate::error::CommandError;
use crate::protocol::{FromProgram, Greeting, Over, Role, Serves, ToProgram};

/// A program that has greeted.
pub(crate) struct Host {
    config: ProgramConfig,
    greeting: Greeting,
    /// The process that all uses share; or the first one, until a use takes it.
    process: Mutex<Option<Arc<Connection>>>,
    turn: Arc<Semaphore>,
}

impl Host {
    /// Starts the program, and keeps its process for the first use. `check` says what is wrong with its greeting.
    pub(crate) async fn start(
        config: &ProgramConfig,
        role: Role,
        check: impl FnOnce(&Greeting) -> Result<(), String>,
    ) -> Result<Self, CommandError> {
        let (connection, greeting) = Connection::start(config, role).await?;
        check(&greeting).map_err(|problem| connection.broken(problem))?;
        Ok(Self {
            config: config.clone(),
            greeting,
            process: Mutex::new(Some(Arc::new(connection))),
            turn: Arc::new(Semaphore::new(1)),
        })
    }

    /// What it said first.
    pub(crate) fn greeting(&self) -> &Greeting {
        &self.greeting
    }

    /// Begins a use with a message.
    pub(crate) async fn begin(&self, message: impl FnOnce(u64) -> ToProgram) -> Result<Use, CommandError> {
        let turn = match self.greeting.serves {
            // Nobody closes the semaphore.
            Serves::OneByOne => Arc::clone(&self.turn).acquire_owned().await.ok(),
            Serves::One | Serves::Many => None,
        };
        let connection = self.connection().await?;
        let (number, inbox) = connection.open();
        let limit = self.config.answer_timeout;
        let hold = Hold { number, connection, limit, why_over: "nothing more is wanted of it", _turn: turn };
        hold.tell(message(number))?;
        Ok(Use { hold, inbox })
    }

    async fn connection(&self) -> Result<Arc<Connection>, CommandError> {
        let mut process = self.process.lock().await;
        if self.greeting.serves == Serves::One {
            let first = process.take().filter(|connection| connection.is_usable());
            drop(process);
            return match first {
                Some(first) => Ok(first),
                None => Ok(Arc::new(self.restart().await?)),
            };
        }
        match &*process {
            Some(connection) if connection.is_usable() => Ok(Arc::clone(connection)),
            _ => Ok(Arc::clone(process.insert(Arc::new(self.restart().await?)))),
        }
    }

    async fn restart(&self) -> Result<Connection, CommandError> {
        let (connection, greeting) = Connection::start(&self.config, self.greeting.role).await?;
        if greeting == self.greeting {
            return Ok(connection);
        }
        Err(connection.broken("greets in another way than before".to_owned()))
    }
}

/// One use of a program, and what the program has to say of it.
pub(crate) struct Use {
    pub(crate) hold: Hold,
    inbox: Receiver<FromProgram>,
}

/// Holds a use open. When it is dropped before the program has ended the use, the program is told that it is over.
pub(crate) struct Hold {
    number: u64,
    connection: Arc<Connection>,
    limit: Duration,
    /// What the program is told when retrace ends the use.
    pub(crate) why_over: &'static str,
    _turn: Option<OwnedSemaphorePermit>,
}

impl Use {
    /// The next message; `doing` says what is waited for, as a verb.
    pub(crate) async fn hear(&mut self, doing: &str) -> Result<FromProgram, CommandError> {
        self.hear_unless(false, doing).await
    }

    /// The next message, for which there is no time limit as long as the program waits for retrace.
    pub(crate) async fn hear_unless(&mut self, waits: bool, doing: &str) -> Result<FromProgram, CommandError> {
        let message = self.inbox.recv();
        let message = if waits { message.await } else { self.hold.timed(doing, message).await? };
        self.heard(message)
    }

    fn heard(&self, message: Option<FromProgram>) -> Result<FromProgram, CommandError> {
        match message {
            Some(FromProgram::Failed(failed)) => Err(self.hold.failed(&failed.message)),
            Some(message) => Ok(message),
            None => Err(self.hold.why_broken()),
        }
    }

    /// The use, and where its messages arrive.
    pub(crate) fn split(self) -> (Hold, Receiver<FromProgram>) {
        (self.hold, self.inbox)
    }
}

impl Hold {
    /// Its number.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Sends a message.
    pub(crate) fn tell(&self, message: impl Into<ToProgram>) -> Result<(), CommandError> {
        self.connection.tell(&message.into())
    }

    /// What `work` gives, in which an answer of the program is waited for; `doing` says for what, as a verb. A process
    /// that does not answer in time begins no further uses.
    pub(crate) async fn timed<T>(&self, doing: &str, work: impl Future<Output = T>) -> Result<T, CommandError> {
        let timed = self.connection.process().timed(doing, self.limit, work).await;
        timed.inspect_err(|_| self.connection.retire()).map_err(CommandError::from)
    }

    /// The program says that it failed.
    pub(crate) fn failed(&self, message: &str) -> CommandError {
        let process = self.connection.process();
        CommandError::Failed { program: process.program().to_owned(), message: process.quoted(message) }
    }

    /// Why nothing more comes of the use.
    pub(crate) fn why_broken(&self) -> CommandError {
        self.connection.why_broken()
    }

    /// A message came that has no place here.
    pub(crate) fn unexpected(&self, message: &FromProgram, wanted: &str) -> CommandError {
        self.broken(format!("sent `{}` where {wanted} is wanted", message.kind()))
    }

    /// The program does not keep to the protocol.
    pub(crate) fn broken(&self, problem: String) -> CommandError {
        self.connection.broken(problem)
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if self.connection.close(self.number) {
            let over = Over { r#use: self.number, reason: self.why_over.to_owned() };
            // It tells at most that the program is gone.
            _ = self.connection.tell(&over.into());
        }
    }
}
