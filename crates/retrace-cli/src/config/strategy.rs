//! Strategies as a configuration has them.

use retrace_command::ProgramConfig;
use retrace_strategies::StrategyConfig;
use serde::de::{Deserialize, Deserializer};

use super::table;

/// A strategy, its `kind` beside its parameters.
#[derive(Debug)]
pub(crate) enum StrategyTable {
    /// One of the menu.
    Menu(StrategyConfig),
    /// A program.
    Program(ProgramConfig),
}

impl<'de> Deserialize<'de> for StrategyTable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut table = toml::Table::deserialize(deserializer)?;
        match &*table::take_text(&mut table, "kind")? {
            "program" => table::read(table).map(Self::Program),
            kind => table::read_with(table, |table| StrategyConfig::of_kind(kind, table)).map(Self::Menu),
        }
    }
}
