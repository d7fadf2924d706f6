//! Strategies as a configuration has them.

use retrace_command::ProgramConfig;
use retrace_strategies::StrategyConfig;
use serde::de::{Deserialize, Deserializer, Error};

use super::{TokenCounterConfig, table};

/// A strategy, its `kind` beside its parameters.
#[derive(Clone, Debug)]
pub(crate) enum StrategyTable {
    /// One of the menu.
    Menu(MenuTable),
    /// A program.
    Program(ProgramConfig),
}

/// A strategy of the menu.
#[derive(Clone, Debug)]
pub(crate) struct MenuTable {
    /// Its settings; where it has parts, nothing stands in their place.
    pub(crate) config: StrategyConfig,
    /// The tiers or links that it has, each any strategy.
    pub(crate) parts: Vec<StrategyTable>,
    /// What counts its tokens, if not what counts those of the run.
    pub(crate) counter: Option<TokenCounterConfig>,
}

impl StrategyTable {
    /// Whether it is a program, or one is part of it.
    pub(crate) fn has_program(&self) -> bool {
        match self {
            Self::Menu(menu) => menu.parts.iter().any(Self::has_program),
            Self::Program(_) => true,
        }
    }

    fn of_table<E: Error>(mut table: toml::Table) -> Result<Self, E> {
        let kind = table::take_text::<E>(&mut table, "kind")?;
        if kind == "program" {
            return table::read(table).map(Self::Program);
        }
        let counter = table.remove("token_counter").map(TokenCounterConfig::deserialize).transpose();
        let counter = counter.map_err(|error| E::custom(format!("`token_counter`: {}", error.message())))?;
        let parts = match StrategyConfig::parts_of(&kind) {
            Some(key) => take_parts(&mut table, key)?,
            None => Vec::new(),
        };
        let config = table::read_with(table, |table| StrategyConfig::of_kind(&kind, table))?;
        Ok(Self::Menu(MenuTable { config, parts, counter }))
    }
}

/// The strategies that a key lists, each replaced by one that does nothing: they are not all of the menu.
fn take_parts<E: Error>(table: &mut toml::Table, key: &str) -> Result<Vec<StrategyTable>, E> {
    let Some(toml::Value::Array(listed)) = table.get_mut(key) else { return Ok(Vec::new()) };
    let mut parts = Vec::with_capacity(listed.len());
    for (index, value) in listed.iter_mut().enumerate() {
        let nothing = toml::Table::from_iter([("kind".to_owned(), "identity".into())]);
        let part = match std::mem::replace(value, nothing.into()) {
            toml::Value::Table(part) => StrategyTable::of_table::<E>(part),
            _ => Err(E::custom("is not a table: a strategy has a `kind`")),
        };
        parts.push(part.map_err(|error| E::custom(format!("`{key}[{index}]`: {error}")))?);
    }
    Ok(parts)
}

impl<'de> Deserialize<'de> for StrategyTable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::of_table(toml::Table::deserialize(deserializer)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<StrategyTable, String> {
        toml::from_str(text).map_err(|error| error.message().to_owned())
    }

    #[test]
    fn a_tier_or_a_link_is_any_strategy() {
        let program = r#"{ kind = "program", command = ["x"] }"#;
        let text = format!(
            "kind = \"tiered\"\ntarget_tokens = 9\ntiers = [{{ kind = \"identity\", token_counter = \"o200k\" }}, {program}, \
             {{ kind = \"fallback\", chain = [{program}] }}]"
        );
        let Ok(StrategyTable::Menu(tiered)) = read(&text) else { panic!("{:?}", read(&text)) };
        let [StrategyTable::Menu(identity), StrategyTable::Program(_), StrategyTable::Menu(fallback)] =
            &tiered.parts[..]
        else {
            panic!("{tiered:?}")
        };
        assert_eq!(identity.counter, Some(TokenCounterConfig::O200k));
        assert!(matches!(fallback.parts[..], [StrategyTable::Program(_)]), "{fallback:?}");
    }

    #[test]
    fn what_is_wrong_in_a_tier_is_said_with_its_place() {
        for (tiers, wanted) in [
            ("[]", "`tiers` is missing or empty"),
            ("7", "`tiers`: invalid type"),
            ("[7]", "`tiers[0]`: is not a table"),
            (r#"[{ kind = "identity" }, { kind = "tail" }]"#, "`tiers[1]`: unknown kind `tail`"),
            (r#"[{ kind = "tail_window", target = -1 }]"#, "`tiers[0]`: `target`: invalid value"),
            (
                r#"[{ kind = "fallback", chain = [{ kind = "program" }] }]"#,
                "`tiers[0]`: `chain[0]`: missing field `command`",
            ),
        ] {
            let error = read(&format!("kind = \"tiered\"\ntarget_tokens = 9\ntiers = {tiers}")).unwrap_err();
            assert!(error.contains(wanted), "{error}");
        }
    }
}
