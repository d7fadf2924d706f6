//! Programs: what is run, where, and with which environment.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::environment::Inherited;
use crate::error::ProcessError;
use crate::shown::escaped;

/// A program to run.
///
/// It inherits the environment of this process, but for the variables whose names look like secrets: those with a word
/// between their underscores that is `KEY`, `AUTH` or `PASS`, or ends with `APIKEY`, `TOKEN`, `SECRET`, `PASSWORD`,
/// `PASSWD`, `PASSPHRASE` or `CREDENTIAL`, such as `OPENAI_API_KEY` and `PGPASSWORD`. A model may talk a tool into showing
/// its environment, and what it shows is recorded. A program that needs such a variable has it in
/// [`pass_env`](Self::pass_env).
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Program {
    /// Its name, which is looked up in `PATH`, or its path.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables that it has beside those it inherits, or instead of them.
    pub env: BTreeMap<String, String>,
    /// Variables that it inherits though their names look like secrets.
    pub pass_env: Vec<String>,
    /// Variables that are secrets whatever their names look like.
    pub secret_env: Vec<String>,
    /// Texts that are shown in no message, beside the values of variables that look like secrets.
    pub hidden: Vec<String>,
    /// The folder it works in; that of this process where there is none.
    pub folder: Option<PathBuf>,
}

impl Program {
    /// A program without arguments.
    pub fn new(command: impl Into<String>) -> Self {
        Self { command: command.into(), ..Self::default() }
    }

    /// The program with these arguments behind those it has.
    #[must_use]
    pub fn args(mut self, args: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// The program with a variable in its environment.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// The program in a folder.
    #[must_use]
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// Its name as messages show it: no folders, no arguments, which may hold a secret.
    pub(crate) fn name(&self) -> String {
        let path = Path::new(&self.command);
        escaped(&path.file_name().map_or_else(|| self.command.clone(), |name| name.to_string_lossy().into_owned()))
    }

    /// How it is started, and what of the environment it has.
    ///
    /// # Errors
    ///
    /// What can be known beforehand to stop it.
    pub(crate) fn command(&self) -> Result<(Command, Inherited), ProcessError> {
        let zero = |text: &str| text.contains('\0');
        if self.command.is_empty() || zero(&self.command) {
            return Err(ProcessError::BadText { program: self.name(), what: "the command is empty or" });
        }
        if self.args.iter().any(|arg| zero(arg)) {
            return Err(ProcessError::BadText { program: self.name(), what: "an argument" });
        }
        if self.env.iter().any(|(name, value)| name.is_empty() || name.contains('=') || zero(name) || zero(value)) {
            return Err(ProcessError::BadText { program: self.name(), what: "a variable is empty, has a `=` or" });
        }
        if let Some(folder) = self.folder.as_ref().filter(|folder| !folder.is_dir()) {
            return Err(ProcessError::NoFolder { program: self.name(), folder: folder.clone() });
        }
        let inherited = Inherited::of(self);
        let mut command = Command::new(&self.command);
        command.args(&self.args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        inherited.withheld.iter().for_each(|name| {
            command.env_remove(name);
        });
        command.envs(&self.env);
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        Ok((command, inherited))
    }
}

/// Without the values of the variables.
impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Program")
            .field("command", &self.command)
            .field("args", &self.args)
            .field("env", &self.env.keys())
            .field("pass_env", &self.pass_env)
            .field("folder", &self.folder)
            .finish()
    }
}
