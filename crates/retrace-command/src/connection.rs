//! One process of a program: its lines sorted into the uses that they belong to.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use retrace_events::Raw;
use retrace_process::{Process, Stdin, Stdout};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, Sender, UnboundedReceiver, UnboundedSender, channel, unbounded_channel};
use tokio::task::AbortHandle;

use crate::config::ProgramConfig;
use crate::error::CommandError;
use crate::protocol::{FromProgram, Greeting, Hello, MessageError, PROTOCOL_VERSION, Role, ToProgram};

/// The longest line that a program may write, in bytes: images are in histories, too.
const MAX_LINE: usize = 64 << 20;

/// Messages of one use that nobody has looked at yet.
const MAX_WAITING: usize = 1024;

/// A process that was greeted.
pub(crate) struct Connection {
    process: Arc<Process>,
    outgoing: UnboundedSender<String>,
    routes: Arc<Mutex<Routes>>,
    reader: AbortHandle,
    is_retired: AtomicBool,
}

/// Where the messages of each use go.
#[derive(Default)]
struct Routes {
    n_uses: u64,
    open: HashMap<u64, Sender<FromProgram>>,
    /// Uses that retrace ended: what the program had to say of them may still come.
    over: HashSet<u64>,
    broken: Option<CommandError>,
}

impl Connection {
    /// Starts the program and exchanges the greetings.
    pub(crate) async fn start(config: &ProgramConfig, role: Role) -> Result<(Self, Greeting), CommandError> {
        if config.command.is_empty() {
            return Err(CommandError::NoCommand);
        }
        let mut process = Process::spawn(&config.program()).await?;
        let Some((stdin, stdout)) = process.take_pipes() else {
            return Err(process.failure("has no pipes").await.into());
        };
        let process = Arc::new(process);
        let mut lines = Lines { process: Arc::clone(&process), stdout: BufReader::new(stdout) };

        let (outgoing, to_write) = unbounded_channel();
        tokio::spawn(write(stdin, to_write));
        let config_table =
            Raw::of(&config.config).map_err(|error| lines.broken(format!("cannot be configured: {error}")))?;
        let hello = ToProgram::from(Hello { retrace: PROTOCOL_VERSION, role, config: config_table });
        let hello =
            serde_json::to_string(&hello).map_err(|error| lines.broken(format!("cannot be greeted: {error}")))?;
        // A program that is gone is noticed by its silence.
        _ = outgoing.send(hello);
        let greeting = process.timed("greet", config.start_timeout, lines.greeting(role)).await??;

        let routes = Arc::new(Mutex::new(Routes::default()));
        let reader = tokio::spawn(read(lines, Arc::clone(&routes))).abort_handle();
        let is_retired = AtomicBool::new(false);
        Ok((Self { process, outgoing, routes, reader, is_retired }, greeting))
    }

    /// The process.
    pub(crate) fn process(&self) -> &Process {
        &self.process
    }

    /// Whether another use may begin.
    pub(crate) fn is_usable(&self) -> bool {
        !self.is_retired.load(Ordering::Relaxed) && lock(&self.routes).broken.is_none()
    }

    /// Begins no further uses. Those that have begun go on.
    pub(crate) fn retire(&self) {
        self.is_retired.store(true, Ordering::Relaxed);
    }

    /// Begins a use: its number, and where its messages arrive.
    pub(crate) fn open(&self) -> (u64, Receiver<FromProgram>) {
        let (sender, inbox) = channel(MAX_WAITING);
        let mut routes = lock(&self.routes);
        routes.n_uses += 1;
        let number = routes.n_uses;
        if routes.broken.is_none() {
            routes.open.insert(number, sender);
        }
        (number, inbox)
    }

    /// Ends a use, and says whether the program did not.
    pub(crate) fn close(&self, number: u64) -> bool {
        let mut routes = lock(&self.routes);
        let is_cut_off = routes.open.remove(&number).is_some();
        if is_cut_off {
            routes.over.insert(number);
        }
        is_cut_off
    }

    /// Sends a message. Whether the program reads it, its answer shows.
    pub(crate) fn tell(&self, message: &ToProgram) -> Result<(), CommandError> {
        let line = serde_json::to_string(message);
        let line = line.map_err(|error| self.broken(format!("cannot be sent `{}`: {error}", message.kind())))?;
        _ = self.outgoing.send(line);
        Ok(())
    }

    /// Why nothing more comes of a use.
    pub(crate) fn why_broken(&self) -> CommandError {
        let broken = lock(&self.routes).broken.clone();
        broken.unwrap_or_else(|| self.broken("says no more of what it was asked".to_owned()))
    }

    /// The program does not keep to the protocol.
    pub(crate) fn broken(&self, problem: String) -> CommandError {
        self.process.broken(problem).into()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

/// Writes line after line until there is nobody left who could send one.
async fn write(mut stdin: Stdin, mut lines: UnboundedReceiver<String>) {
    while let Some(mut line) = lines.recv().await {
        line.push('\n');
        if stdin.write_all(line.as_bytes()).await.is_err() {
            return;
        }
    }
}

/// Sorts line after line until the program ends or breaks the protocol, which ends all its uses.
async fn read(mut lines: Lines, routes: Arc<Mutex<Routes>>) {
    let error = loop {
        match lines.message().await {
            Ok(message) => {
                if let Err(problem) = lock(&routes).sort(message) {
                    break lines.broken(problem);
                }
            }
            Err(error) => break error,
        }
    };
    let mut routes = lock(&routes);
    routes.broken = Some(error);
    // Whoever waits for more sees the end.
    routes.open.clear();
}

impl Routes {
    fn sort(&mut self, message: FromProgram) -> Result<(), String> {
        let kind = message.kind();
        let Some(number) = message.number() else { return Err("greets a second time".to_owned()) };
        let ends = message.ends_use();
        if let Some(sender) = self.open.get(&number) {
            // A use that nobody listens to is about to be closed.
            if let Err(TrySendError::Full(_)) = sender.try_send(message) {
                return Err(format!("sent more than {MAX_WAITING} messages of use {number} ahead of their answers"));
            }
            if ends {
                self.open.remove(&number);
            }
        } else if self.over.contains(&number) {
            if ends {
                self.over.remove(&number);
            }
        } else {
            let state = if (1..=self.n_uses).contains(&number) { "has ended" } else { "never began" };
            return Err(format!("sent `{kind}` of use {number}, which {state}"));
        }
        Ok(())
    }
}

/// What a program writes, line by line.
struct Lines {
    process: Arc<Process>,
    stdout: BufReader<Stdout>,
}

impl Lines {
    async fn greeting(&mut self, role: Role) -> Result<Greeting, CommandError> {
        let line = self.line().await?;
        if let Some(version) = spoken_version(&line).filter(|version| *version != PROTOCOL_VERSION) {
            return Err(self.broken(format!(
                "speaks version {version} of the protocol, and this retrace version {PROTOCOL_VERSION}: use a program \
                 and a retrace that speak the same"
            )));
        }
        match FromProgram::parse(&line) {
            Ok(FromProgram::Greeting(greeting)) if greeting.role != role => {
                Err(self
                    .broken(format!("is of role `{}`, and a program of role `{role}` is wanted here", greeting.role)))
            }
            Ok(FromProgram::Greeting(greeting)) => Ok(greeting),
            Ok(other) => Err(self.broken(format!("sent `{}` before its `greeting`", other.kind()))),
            Err(error) => Err(self.flaw(&error, &line)),
        }
    }

    async fn message(&mut self) -> Result<FromProgram, CommandError> {
        let line = self.line().await?;
        FromProgram::parse(&line).map_err(|error| self.flaw(&error, &line))
    }

    /// The next line that is not blank.
    async fn line(&mut self) -> Result<String, CommandError> {
        let mut line = Vec::new();
        loop {
            line.clear();
            match self.read_line(&mut line).await {
                Err(error) => return Err(self.process.failure(format!("cannot be read from: {error}")).await.into()),
                // The last words of a program that died, if there are any, are half a message.
                Ok(()) if line.last() != Some(&b'\n') && line.len() <= MAX_LINE => {
                    return Err(self.process.failure("closed its standard output, and goes on").await.into());
                }
                Ok(()) if line.len() > MAX_LINE => {
                    let start = self.process.quoted_start(&String::from_utf8_lossy(&line[..400]));
                    return Err(self.broken(format!("wrote a line of more than {} MB: `{start}…`", MAX_LINE >> 20)));
                }
                Ok(()) if line.trim_ascii().is_empty() => {}
                Ok(()) => {
                    return String::from_utf8(line).map_err(|error| {
                        self.flaw(&MessageError::NoMessage, &String::from_utf8_lossy(error.as_bytes()))
                    });
                }
            }
        }
    }

    async fn read_line(&mut self, line: &mut Vec<u8>) -> io::Result<()> {
        (&mut self.stdout).take(MAX_LINE as u64 + 1).read_until(b'\n', line).await.map(drop)
    }

    fn flaw(&self, error: &MessageError, line: &str) -> CommandError {
        let line = self.process.quoted(line.trim());
        self.broken(match error {
            MessageError::NoMessage => format!(
                "wrote a line to its standard output that is no message: `{line}`; only messages may go there, so let it \
                 print to standard error"
            ),
            error => format!("sent {}: `{line}`", self.process.quoted(&error.to_string())),
        })
    }

    fn broken(&self, problem: String) -> CommandError {
        self.process.broken(problem).into()
    }
}

/// The version that a greeting names, whatever else it says.
fn spoken_version(line: &str) -> Option<u64> {
    #[derive(serde::Deserialize)]
    struct Version {
        retrace: u64,
    }
    serde_json::from_str::<Version>(line).ok().map(|version| version.retrace)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
