//! The configuration of a server, as a table of a configuration file has it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use retrace_events::OutcomeRule;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::error::McpError;

/// Where files are unless the configuration says otherwise.
const WORKSPACE_AS: &str = "/workspace";

/// An MCP server and how it is used.
///
/// A text of `args`, `env`, `folder`, `url`, `headers` and `arguments` may hold `{workspace}`, the path of the rollout's
/// workspace, and `{rollout}`, which no other rollout has. One of `env`, `url` and `headers` may hold `${NAME}`, the
/// value of a variable of this program's environment, so that no secret needs to stand in the configuration.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct McpConfig {
    /// The program of a server that speaks over its standard input and output: its name or path.
    pub command: Option<String>,
    /// The program's arguments.
    pub args: Vec<String>,
    /// Variables of the program's environment beside those it inherits: all of this program's that do not look like
    /// secrets.
    pub env: BTreeMap<String, String>,
    /// Variables that look like secrets and that the program inherits all the same.
    pub pass_env: Vec<String>,
    /// Variables that are secrets whatever their names look like, such as those that hold the keys of models. The program does
    /// not inherit them unless `pass_env` names them. No configuration sets them: whoever reads one does.
    #[serde(skip)]
    pub secret_env: Vec<String>,
    /// The folder that the program works in.
    pub folder: Option<PathBuf>,

    /// The address of a server that speaks streamable HTTP.
    pub url: Option<String>,
    /// Headers that are sent to it.
    pub headers: BTreeMap<String, String>,

    /// A tool that puts the server into its starting state. It is called before each rollout and hidden from the model,
    /// and then one rollout runs at a time.
    pub reset_tool: Option<String>,
    /// A folder of which each rollout gets a copy of its own.
    pub workspace: Option<PathBuf>,
    /// The path by which the agent, and so the recordings, know the workspace, wherever the copy lies: `/workspace` if
    /// nothing else is said. It stands for the path of the copy in arguments and results.
    pub workspace_as: Option<String>,
    /// Arguments that each call has where the tool takes them, and that no model sees or chooses.
    pub arguments: Map<String, Value>,

    /// The tools of the server that are used; all of them where none are named.
    pub allow: Vec<String>,
    /// Tools of the server that are not used.
    pub deny: Vec<String>,
    /// Other names for tools: the server's name, and the one that the agent, and so the recordings, know it by.
    pub rename: BTreeMap<String, String>,
    /// Tools that the server lacks and the recorded agent had, such as `think`: each call of one answers this text and
    /// changes nothing.
    pub stubs: BTreeMap<String, String>,
    /// Tools of the server that change nothing, beside those of which it says so itself.
    pub read_only: Vec<String>,
    /// Whether tools may change a server that all rollouts share.
    pub allow_writes: bool,

    /// A JSON pointer to what of an answer is its result, for a server that wraps results in a JSON object. An answer in
    /// which it leads nowhere is its own result.
    pub result: Option<String>,
    /// Which answers are failures, for a server that does not say so. It looks at the whole answer.
    pub outcome: Option<OutcomeRule>,

    /// How many seconds the server may take to start; 60 if nothing else is said.
    pub start_timeout: Option<f64>,
    /// How many seconds a call may take; 60 if nothing else is said.
    pub call_timeout: Option<f64>,
    /// How many servers are kept starting ahead of need; 2 if nothing else is said.
    pub pool: Option<usize>,
}

impl McpConfig {
    /// The same with its paths taken from a folder, such as that of the configuration file, where they are relative.
    #[must_use]
    pub fn relative_to(mut self, base: &Path) -> Self {
        for path in [&mut self.folder, &mut self.workspace].into_iter().flatten() {
            // One that starts with a placeholder is whole.
            if !path.starts_with("{workspace}") {
                *path = base.join(&*path);
            }
        }
        if let Some(command) = &mut self.command
            && command.contains('/')
            && let Some(joined) = base.join(&*command).to_str()
        {
            *command = joined.to_owned();
        }
        self
    }

    /// Says what in it contradicts itself, as far as the server need not be asked.
    pub(crate) fn check(&self) -> Result<(), McpError> {
        let fail = |message: String| Err(McpError::Config { message });
        match (&self.command, &self.url) {
            (None, None) => {
                return fail("a server needs a `command` that starts it, or the `url` where it is".to_owned());
            }
            (Some(_), Some(_)) => return fail("a server has a `command` or a `url`, not both".to_owned()),
            (Some(_), None) if !self.headers.is_empty() => {
                return fail("`headers` are for a server with a `url`; one with a `command` has `env`".to_owned());
            }
            (None, Some(_)) => {
                let given = [
                    ("args", !self.args.is_empty()),
                    ("env", !self.env.is_empty()),
                    ("pass_env", !self.pass_env.is_empty()),
                    ("folder", self.folder.is_some()),
                ];
                if let Some((key, _)) = given.iter().find(|(_, is_given)| *is_given) {
                    return fail(format!("`{key}` is for a server with a `command`; this one has a `url`"));
                }
            }
            (Some(_), None) => {}
        }
        let names_workspace = self.mentions("{workspace}");
        if self.workspace.is_some() && !names_workspace {
            let places = if self.command.is_some() { "`args`, `env`, `folder` or `arguments`" } else { "`arguments`" };
            return fail(format!("nothing tells the server where its workspace is: put `{{workspace}}` into {places}"));
        }
        if self.workspace.is_none() && (names_workspace || self.workspace_as.is_some()) {
            return fail("there is no `{workspace}`: `workspace` names the folder that is copied for it".to_owned());
        }
        if self
            .workspace_as
            .as_ref()
            .is_some_and(|path| path.len() < 2 || !path.starts_with('/') || path.ends_with('/'))
        {
            return fail("`workspace_as` is a whole path that does not end with `/`, such as `/workspace`".to_owned());
        }
        if self.result.as_ref().is_some_and(|pointer| !pointer.starts_with('/')) {
            return fail("`result` is a JSON pointer and starts with `/`".to_owned());
        }
        for (key, seconds) in [("start_timeout", self.start_timeout), ("call_timeout", self.call_timeout)] {
            if seconds.is_some_and(|it| !(it > 0.0 && it <= 1e9)) {
                return fail(format!("`{key}` is a number of seconds above 0"));
            }
        }
        Ok(())
    }

    /// Whether a text that is filled in holds a placeholder.
    pub(crate) fn mentions(&self, placeholder: &str) -> bool {
        let folder = self.folder.iter().filter_map(|folder| folder.to_str());
        let texts = self.args.iter().chain(self.env.values()).chain(self.headers.values()).chain(&self.url);
        texts.map(String::as_str).chain(folder).any(|text| text.contains(placeholder))
            || Value::Object(self.arguments.clone()).to_string().contains(placeholder)
    }

    pub(crate) fn start_timeout(&self) -> Duration {
        Duration::from_secs_f64(self.start_timeout.unwrap_or(60.0))
    }

    pub(crate) fn call_timeout(&self) -> Duration {
        Duration::from_secs_f64(self.call_timeout.unwrap_or(60.0))
    }

    pub(crate) fn pool(&self) -> usize {
        self.pool.unwrap_or(2)
    }

    pub(crate) fn workspace_as(&self) -> &str {
        self.workspace_as.as_deref().unwrap_or(WORKSPACE_AS)
    }
}

/// Without the values of variables and headers.
impl fmt::Debug for McpConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpConfig")
            .field("command", &self.command)
            .field("args", &self.args)
            .field("env", &self.env.keys())
            .field("url", &self.url)
            .field("headers", &self.headers.keys())
            .field("workspace", &self.workspace)
            .finish_non_exhaustive()
    }
}
