//! An environment over an MCP server.
//!
//! [`McpEnvironment`] gives each rollout a server of its own, so that nothing one rollout does is seen by another: a
//! fresh process for a server that speaks over its standard input and output, or a session of its own with one that
//! speaks streamable HTTP. [`McpConfig`] is a table of a configuration file:
//!
//! ```
//! let config: retrace_mcp::McpConfig = toml::from_str(
//!     r#"
//!     command = "npx"
//!     args = ["-y", "@modelcontextprotocol/server-filesystem", "{workspace}"]
//!     workspace = "fixtures/project"   # each rollout gets a copy, which the agent knows as /workspace
//!     deny = ["move_file"]
//!     call_timeout = 20
//!     "#,
//! )?;
//! assert_eq!(config.command.as_deref(), Some("npx"));
//! # Ok::<(), toml::de::Error>(())
//! ```

mod answer;
mod config;
mod environment;
mod error;
mod listing;
mod menu;
mod overheard;
mod placeholders;
mod pool;
mod server;
mod shown_path;

pub use config::McpConfig;
pub use environment::McpEnvironment;
pub use error::McpError;
