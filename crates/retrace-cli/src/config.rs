//! `retrace.toml`: the agent, its environments, the recordings, the strategies, and how much is run.

mod agent;
mod description;
mod environment;
mod judging;
mod strategy;
mod table;
mod task;
mod token_counter;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use indexmap::IndexMap;
use retrace_events::OutcomeRule;
use retrace_events::cuts::{BadSpacing, Spacing};
use retrace_verifier::{RateLimit, Settings, TimeLimits};

pub(crate) use self::agent::{AgentConfig, CompactionConfig, ModelConfig, SimulatedConfig, StrategyChoice};
pub(crate) use self::description::Description;
pub(crate) use self::environment::EnvironmentConfig;
pub(crate) use self::judging::MarginConfig;
use self::judging::VerdictConfig;
pub(crate) use self::strategy::{MenuTable, StrategyTable};
pub(crate) use self::task::{RecordConfig, TaskConfig};
pub(crate) use self::token_counter::TokenCounterConfig;
use crate::failure::hinted;

/// A configuration as it is written. What is left out is as in [`Settings::default`].
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    pub(crate) horizon: Option<usize>,
    pub(crate) samples: Option<u32>,
    every: Option<usize>,
    min_prefix: Option<usize>,
    max_boundaries_per_recording: Option<Limit>,
    pub(crate) concurrency: Option<usize>,
    pub(crate) seed: Option<u64>,
    #[serde(default = "with_control")]
    pub(crate) control: bool,
    #[serde(default)]
    pub(crate) chain: bool,
    #[serde(default)]
    pub(crate) margin: MarginConfig,
    #[serde(default)]
    verdict: VerdictConfig,
    #[serde(default)]
    token_counter: TokenCounterConfig,
    pub(crate) agent: AgentConfig,
    #[serde(default)]
    pub(crate) models: IndexMap<String, ModelConfig>,
    #[serde(default)]
    pub(crate) environments: IndexMap<String, EnvironmentConfig>,
    #[serde(default)]
    pub(crate) recordings: Vec<RecordingsConfig>,
    pub(crate) outcome: Option<OutcomeRule>,
    #[serde(default)]
    pub(crate) strategies: IndexMap<String, StrategyTable>,
    #[serde(default)]
    pub(crate) record: RecordConfig,
    #[serde(default)]
    pub(crate) tasks: Vec<TaskConfig>,
    #[serde(default)]
    limits: LimitsConfig,
    give_up_after: Option<usize>,
    warm_caches: Option<bool>,
    /// The folder that holds a run.
    pub(crate) run: Option<PathBuf>,
    /// What of it decides the results of a run.
    #[serde(skip)]
    pub(crate) description: Description,
}

/// Recordings that started from one state.
#[derive(Clone, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecordingsConfig {
    pub(crate) files: Vec<PathBuf>,
    pub(crate) environment: String,
    pub(crate) world_seed: Option<u64>,
    pub(crate) cuts: Option<Vec<usize>>,
    pub(crate) task: Option<String>,
}

/// A number, or `"all"`.
#[derive(Clone, Copy, serde::Deserialize)]
#[serde(untagged, expecting = "expected a number of boundaries, or \"all\"")]
enum Limit {
    AtMost(usize),
    All(All),
}

#[derive(Clone, Copy, serde::Deserialize)]
enum All {
    #[serde(rename = "all")]
    All,
}

/// Seconds.
#[derive(Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct LimitsConfig {
    model: Option<u64>,
    tool: Option<u64>,
    restore: Option<u64>,
    strategy: Option<u64>,
    rollout: Option<u64>,
    grace: Option<u64>,
}

fn with_control() -> bool {
    true
}

impl Config {
    /// Reads a configuration.
    pub(crate) fn read(file: &Path) -> anyhow::Result<Self> {
        let text = fs::read_to_string(file).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => hinted(
                format!("there is no configuration `{}`", file.display()),
                "write one with `retrace init`, or name another with `--config`",
            ),
            _ => error.into(),
        });
        let text = text.with_context(|| format!("failed to read `{}`", file.display()))?;
        let hint = "`retrace init` writes a commented configuration; docs/models.md, docs/tools.md and docs/protocol.md have all settings";
        let config = toml::from_str(&text).map(|config| Self { description: Description::of(&text), ..config });
        let config = config.map_err(|error| hinted(in_plain_words(&error.to_string()), hint));
        config.with_context(|| format!("failed to read the configuration `{}`", file.display()))
    }

    /// How much is run.
    pub(crate) fn settings(&self) -> anyhow::Result<Settings> {
        let default = Settings::default();
        let seconds = |seconds: Option<u64>, default| seconds.map_or(default, Duration::from_secs);
        Ok(Settings {
            horizon: self.horizon.unwrap_or(default.horizon),
            samples: self.samples.unwrap_or(default.samples),
            spacing: self.spacing(default.spacing)?,
            chain: self.chain,
            judging: self
                .verdict
                .judging(self.margin.margins(self.horizon.unwrap_or(default.horizon))?, self.control)?,
            concurrency: self.concurrency.unwrap_or(default.concurrency),
            seed: self.seed.unwrap_or(default.seed),
            limits: TimeLimits {
                model: seconds(self.limits.model, default.limits.model),
                tool: seconds(self.limits.tool, default.limits.tool),
                restore: seconds(self.limits.restore, default.limits.restore),
                strategy: seconds(self.limits.strategy, default.limits.strategy),
                rollout: seconds(self.limits.rollout, default.limits.rollout),
            },
            rate_limits: self.rate_limits()?,
            counter: self.token_counter.build(self.agent_model())?,
            give_up_after: self.give_up_after.unwrap_or(default.give_up_after),
            warms_caches: self.warm_caches.unwrap_or(default.warms_caches),
            grace: seconds(self.limits.grace, default.grace),
            ..default
        })
    }

    /// The name of the agent's model, its provider's name before it.
    pub(crate) fn agent_model(&self) -> Option<&str> {
        let model = match self.agent.model.as_ref()? {
            ModelConfig::Named(name) => self.models.get(name).or(self.agent.model.as_ref())?,
            model => model,
        };
        Some(match model {
            ModelConfig::Simulated(config) => &config.model,
            ModelConfig::Provider(config) => &config.rig.model,
            ModelConfig::Named(name) => name,
        })
    }

    /// How fast the models of providers may be asked, by their names: those of one name are one model.
    fn rate_limits(&self) -> anyhow::Result<BTreeMap<String, RateLimit>> {
        let mut limits = BTreeMap::new();
        for model in self.models.values().chain(&self.agent.model) {
            let ModelConfig::Provider(config) = model else { continue };
            if config.rate == RateLimit::default() {
                continue;
            }
            let name = &config.rig.model;
            let before = limits.insert(name.clone(), config.rate);
            if before.is_some_and(|before| before != config.rate) {
                return Err(hinted(
                    format!("`{name}` has two rate limits"),
                    "all that asks it shares one: set `requests_per_minute` and `tokens_per_minute` once, or alike",
                ));
            }
        }
        Ok(limits)
    }

    fn spacing(&self, mut spacing: Spacing) -> Result<Spacing, BadSpacing> {
        if let Some(every) = self.every {
            spacing = spacing.every(every)?;
        }
        if let Some(min_prefix) = self.min_prefix {
            spacing = spacing.min_prefix(min_prefix)?;
        }
        match self.max_boundaries_per_recording {
            None => Ok(spacing),
            Some(Limit::All(All::All)) => Ok(spacing.without_limit()),
            Some(Limit::AtMost(limit)) => spacing.at_most(limit),
        }
    }
}

/// An error of the parser, without the names of types that a user need not know.
fn in_plain_words(error: &str) -> String {
    let error = error.replace("expected f64", "expected a number");
    ["usize", "u64", "u32"]
        .iter()
        .fold(error, |error, number| error.replace(&format!("expected {number}"), "expected a whole number"))
}
