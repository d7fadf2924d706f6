//! What a configuration says of a program.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use retrace_process::Program;
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// A program that is a strategy, an agent or an environment, as a configuration file has it:
///
/// ```
/// use retrace_command::ProgramConfig;
///
/// let config = r#"{"command": ["python", "window.py"], "answer_timeout": 10, "config": {"keep": 8}}"#;
/// let config: ProgramConfig = serde_json::from_str(config)?;
/// assert_eq!(config.answer_timeout.as_secs(), 10);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProgramConfig {
    /// The program and its arguments. No shell looks at them.
    pub command: Vec<String>,
    /// Variables that it has beside those it inherits.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Variables that it inherits though their names look like secrets.
    #[serde(default)]
    pub pass_env: Vec<String>,
    /// Variables that are secrets whatever their names look like, such as those that hold the keys of models. It does not
    /// inherit them unless `pass_env` names them. No configuration sets them: whoever reads one does.
    #[serde(skip)]
    pub secret_env: Vec<String>,
    /// The folder it works in.
    #[serde(default)]
    pub folder: Option<PathBuf>,
    /// How long it may take from its start to its greeting; in seconds.
    #[serde(default = "half_a_minute", deserialize_with = "seconds")]
    pub start_timeout: Duration,
    /// How long each of its answers may take; in seconds. The time that it waits for retrace is not counted.
    #[serde(default = "two_minutes", deserialize_with = "seconds")]
    pub answer_timeout: Duration,
    /// What is handed to it, as it is.
    #[serde(default)]
    pub config: Map<String, Value>,
}

impl ProgramConfig {
    /// A program, with all else left out.
    pub fn new(command: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            command: command.into_iter().map(Into::into).collect(),
            env: BTreeMap::new(),
            pass_env: Vec::new(),
            secret_env: Vec::new(),
            folder: None,
            start_timeout: half_a_minute(),
            answer_timeout: two_minutes(),
            config: Map::new(),
        }
    }

    /// The program to start.
    pub(crate) fn program(&self) -> Program {
        let (command, args) = self
            .command
            .split_first()
            .map_or_else(Default::default, |(command, args)| (command.clone(), args.to_vec()));
        let (env, pass_env, folder) = (self.env.clone(), self.pass_env.clone(), self.folder.clone());
        let secret_env = self.secret_env.clone();
        Program { command, args, env, pass_env, secret_env, folder, ..Program::default() }
    }
}

fn half_a_minute() -> Duration {
    Duration::from_secs(30)
}

fn two_minutes() -> Duration {
    Duration::from_secs(120)
}

fn seconds<'de, D: Deserializer<'de>>(number: D) -> Result<Duration, D::Error> {
    let seconds = f64::deserialize(number)?;
    let time = Duration::try_from_secs_f64(seconds).ok().filter(|time| !time.is_zero());
    time.ok_or_else(|| D::Error::custom(format_args!("expected a number of seconds above 0, not {seconds}")))
}

/// Without the values of the variables, and of what is handed to the program.
impl fmt::Debug for ProgramConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProgramConfig")
            .field("program", &self.program())
            .field("start_timeout", &self.start_timeout)
            .field("answer_timeout", &self.answer_timeout)
            .field("config", &self.config.keys().collect::<Vec<_>>())
            .finish()
    }
}
