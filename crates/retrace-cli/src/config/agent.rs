//! The agent and its models as a configuration has them.

use retrace_command::ProgramConfig;
use retrace_model::Prices;
use retrace_rig::RigConfig;
use retrace_strategies::OnRequest;
use retrace_verifier::RateLimit;
use serde::de::{Deserialize, Deserializer, Error};

use super::{StrategyTable, table};

/// Who acts: the tool loop or a program, with a model and its settings beside it.
#[derive(Clone, Debug)]
pub(crate) struct AgentConfig {
    /// None for a program that brings its own.
    pub(crate) model: Option<ModelConfig>,
    /// Its system prompt when it is recorded; when it is resumed it has the recording's.
    pub(crate) instructions: Option<String>,
    pub(crate) program: Option<ProgramConfig>,
    /// How it compacts its history when it is recorded.
    pub(crate) compaction: Option<CompactionConfig>,
}

/// How an agent compacts its own history.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CompactionConfig {
    pub(crate) strategy: StrategyChoice,
    pub(crate) max_events: Option<usize>,
    pub(crate) on_request: Option<OnRequest>,
}

/// A strategy by the name of its table, or the table.
#[derive(Clone, Debug)]
pub(crate) enum StrategyChoice {
    Named(String),
    Table(Box<StrategyTable>),
}

impl<'de> Deserialize<'de> for StrategyChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match toml::Value::deserialize(deserializer)? {
            toml::Value::String(name) => Ok(Self::Named(name)),
            toml::Value::Table(table) => {
                StrategyTable::deserialize(table).map(|table| Self::Table(table.into())).map_err(D::Error::custom)
            }
            _ => Err(D::Error::custom("expected the name of a strategy, or a table with its `kind`")),
        }
    }
}

/// A model and its settings.
#[derive(Clone, Debug)]
pub(crate) enum ModelConfig {
    /// One that is simulated.
    Simulated(SimulatedConfig),
    /// One of a provider.
    Provider(Box<ProviderConfig>),
    /// One that another table describes.
    Named(String),
}

/// A model of a provider, and how fast it may be asked.
#[derive(Clone, Debug)]
pub(crate) struct ProviderConfig {
    pub(crate) rig: RigConfig,
    pub(crate) rate: RateLimit,
}

/// A simulated model and its settings.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SimulatedConfig {
    pub(crate) model: String,
    pub(crate) temperature: Option<f64>,
    pub(crate) summary_loss: Option<f64>,
    /// What its tokens are said to cost, to see what a real model's would.
    pub(crate) prices: Option<Prices>,
}

impl ModelConfig {
    /// A model with nothing set.
    pub(crate) fn new(model: &str) -> Self {
        if model.starts_with("sim:") {
            Self::Simulated(SimulatedConfig {
                model: model.to_owned(),
                temperature: None,
                summary_loss: None,
                prices: None,
            })
        } else if model.contains(':') {
            Self::Provider(Box::new(ProviderConfig { rig: RigConfig::new(model), rate: RateLimit::default() }))
        } else {
            Self::Named(model.to_owned())
        }
    }

    fn of_table<E: Error>(mut table: toml::Table) -> Result<Self, E> {
        let model = table::take_text(&mut table.clone(), "model")?;
        match Self::new(&model) {
            Self::Simulated(_) => table::read(table).map(Self::Simulated),
            // A server of one's own may be named without a provider.
            Self::Provider(_) | Self::Named(_) if table.len() > 1 => {
                let rate = RateLimit {
                    requests_per_minute: table::take_count(&mut table, "requests_per_minute")?,
                    tokens_per_minute: table::take_count(&mut table, "tokens_per_minute")?,
                };
                Ok(Self::Provider(Box::new(ProviderConfig { rig: table::read(table)?, rate })))
            }
            model => Ok(model),
        }
    }
}

impl<'de> Deserialize<'de> for ModelConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::of_table(toml::Table::deserialize(deserializer)?)
    }
}

impl<'de> Deserialize<'de> for AgentConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut table = toml::Table::deserialize(deserializer)?;
        let program = match table.remove("program") {
            None => None,
            Some(toml::Value::Table(program)) => Some(table::read(program)?),
            Some(_) => return Err(D::Error::custom("`program` is not a table")),
        };
        let instructions = table::take_optional_text(&mut table, "instructions")?;
        let compaction = match table.remove("compaction") {
            None => None,
            Some(toml::Value::Table(compaction)) => Some(
                table::read::<CompactionConfig, D::Error>(compaction)
                    .map_err(|error| D::Error::custom(format!("`compaction`: {error}")))?,
            ),
            Some(_) => return Err(D::Error::custom("`compaction` is not a table")),
        };
        let has_model = program.is_none() || !table.is_empty();
        let model = has_model.then(|| ModelConfig::of_table(table)).transpose()?;
        Ok(Self { model, instructions, program, compaction })
    }
}
