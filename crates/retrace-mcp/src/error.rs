//! Why a server cannot be used.

use retrace_env::ToolboxError;
use retrace_process::{ProcessError, WorkspaceError};

/// Why a server cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum McpError {
    /// The configuration contradicts itself.
    #[error("{message}")]
    Config {
        /// How, and what to do.
        message: String,
    },
    /// A variable of the environment that the configuration names is not set.
    #[error("the environment has no variable `{name}`, which `{place}` names: set it")]
    NoVariable {
        /// The variable.
        name: String,
        /// The key of the configuration.
        place: String,
    },
    /// The program of the server gives no answer.
    #[error("the MCP server cannot be used: {0}")]
    Process(#[from] ProcessError),
    /// The server at an address gives no answer.
    #[error("the MCP server at `{url}` cannot be used: {problem}")]
    Http {
        /// The address, as the configuration has it.
        url: String,
        /// What is wrong.
        problem: String,
    },
    /// There is no copy of the workspace.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// The server lists no tools, or none that are allowed.
    #[error("the MCP server lists no tools{}", if *.listed { " but those that the configuration leaves out: look at `allow` and `deny`" } else { "" })]
    NoTools {
        /// Whether it lists some that are left out.
        listed: bool,
    },
    /// The configuration names a tool that the server does not list.
    #[error("`{key}` names the tool `{tool}`, which the MCP server does not list; it lists {listed}")]
    UnknownTool {
        /// The key of the configuration.
        key: &'static str,
        /// The tool.
        tool: String,
        /// What it lists, cut short.
        listed: String,
    },
    /// No tool takes an argument that the configuration fixes.
    #[error("`arguments` fixes `{argument}`, which no tool of the MCP server takes")]
    UnknownArgument {
        /// The argument.
        argument: String,
    },
    /// Two tools share a name, or the parameters of one are no JSON Schema.
    #[error("the tools of the MCP server cannot be used: {0}")]
    Toolbox(#[from] ToolboxError),
    /// All rollouts would share what the server keeps.
    #[error(
        "the MCP server at `{url}` is one for all rollouts, and {tools} may change what it keeps, so that one rollout sees what another did: \
         name a `reset_tool`, put `{{rollout}}` into `url`, `headers` or `arguments` so that each has its own, \
         list under `read_only` what changes nothing, or accept it with `allow_writes = true`"
    )]
    Shared {
        /// The address, as the configuration has it.
        url: String,
        /// The tools that may change it, cut short.
        tools: String,
    },
    /// The tool that resets the server failed.
    #[error("the tool `{tool}`, which resets the MCP server, failed: {problem}")]
    Reset {
        /// The tool.
        tool: String,
        /// What it answered, cut short.
        problem: String,
    },
}

impl McpError {
    /// What to do next, where the message does not say so.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Process(ProcessError::TimedOut { .. }) => {
                Some("`start_timeout` and `call_timeout` give it more time")
            }
            Self::Process(_) => Some("run the command by hand, in the same folder, and see what it says"),
            Self::Http { .. } => Some("is the server running, and is `url` right, path and all?"),
            Self::NoTools { listed: false } => Some("does it need arguments, variables or a folder to offer any?"),
            Self::Toolbox(_) => Some("leave the tool out with `deny`, if the server cannot be mended"),
            _ => None,
        }
    }
}

/// Names as messages show them: the first of them.
pub(crate) fn names<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    const MAX: usize = 8;
    let names: Vec<_> = names.into_iter().collect();
    let shown: Vec<_> = names.iter().take(MAX).map(|name| format!("`{}`", retrace_process::escaped(name))).collect();
    let more = names.len().saturating_sub(MAX);
    if more > 0 { format!("{} and {more} more", shown.join(", ")) } else { shown.join(", ") }
}
