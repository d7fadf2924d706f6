//! Environments as a configuration has them.

use retrace_command::ProgramConfig;
use retrace_mcp::McpConfig;
use serde::de::{Deserialize, Deserializer, Error};

use super::table;

/// An environment, its `kind` beside its parameters.
#[derive(Clone, Debug)]
pub(crate) enum EnvironmentConfig {
    /// An MCP server.
    Mcp(Box<McpConfig>),
    /// A program.
    Program(Box<ProgramConfig>),
}

impl<'de> Deserialize<'de> for EnvironmentConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut table = toml::Table::deserialize(deserializer)?;
        match &*table::take_text(&mut table, "kind")? {
            "mcp" => table::read(table).map(Self::Mcp),
            "program" => table::read(table).map(Self::Program),
            kind => Err(D::Error::custom(format_args!("unknown kind `{kind}`, expected one of mcp, program"))),
        }
    }
}
