//! Strategies as a configuration has them.

use retrace_command::ProgramConfig;
use retrace_strategies::StrategyConfig;
use serde::de::{Deserialize, Deserializer, Error};

use super::{TokenCounterConfig, table};

/// A strategy, its `kind` beside its parameters.
#[derive(Debug)]
pub(crate) enum StrategyTable {
    /// One of the menu, and what counts its tokens, if not what counts those of the run.
    Menu(StrategyConfig, Option<TokenCounterConfig>),
    /// A program.
    Program(ProgramConfig),
}

impl<'de> Deserialize<'de> for StrategyTable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut table = toml::Table::deserialize(deserializer)?;
        match &*table::take_text(&mut table, "kind")? {
            "program" => table::read(table).map(Self::Program),
            kind => {
                let counter = table.remove("token_counter").map(TokenCounterConfig::deserialize).transpose();
                let counter =
                    counter.map_err(|error| D::Error::custom(format!("`token_counter`: {}", error.message())))?;
                let config = table::read_with(table, |table| StrategyConfig::of_kind(kind, table))?;
                Ok(Self::Menu(config, counter))
            }
        }
    }
}
