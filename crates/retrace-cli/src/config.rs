//! `retrace.toml`: the agent, the recordings, the strategies, and how much is run.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use indexmap::IndexMap;
use retrace_events::cuts::{BadSpacing, Spacing};
use retrace_events::{OutcomeRule, Recording};
use retrace_strategies::StrategyConfig;
use retrace_verifier::{Group, Settings, TimeLimits, Verifier};
use serde::de::{Deserialize, Deserializer, Error};

use crate::failure::{self, hinted};
use crate::{files, simulated};

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
    control: bool,
    agent: AgentConfig,
    #[serde(default)]
    recordings: Vec<RecordingsConfig>,
    pub(crate) outcome: Option<OutcomeRule>,
    #[serde(default)]
    pub(crate) strategies: IndexMap<String, StrategyTable>,
    #[serde(default)]
    limits: LimitsConfig,
}

/// Who is resumed.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct AgentConfig {
    model: String,
    temperature: Option<f64>,
    summary_loss: Option<f64>,
}

/// Recordings that started from one state.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct RecordingsConfig {
    files: Vec<PathBuf>,
    environment: String,
    world_seed: Option<u64>,
    cuts: Option<Vec<usize>>,
}

/// A strategy, its `kind` beside its parameters.
#[derive(Debug)]
pub(crate) struct StrategyTable(pub(crate) StrategyConfig);

impl<'de> Deserialize<'de> for StrategyTable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut table = toml::Table::deserialize(deserializer)?;
        let kind = table.remove("kind").ok_or_else(|| D::Error::missing_field("kind"))?;
        let kind = kind.as_str().ok_or_else(|| D::Error::custom("`kind` is not a string"))?.to_owned();
        let mut path = serde_path_to_error::Track::new();
        let parameters = serde_path_to_error::Deserializer::new(table, &mut path);
        let strategy = StrategyConfig::of_kind(&kind, parameters);
        strategy.map(Self).map_err(|error| {
            let (path, error) = (path.path().to_string(), error.to_string());
            let place = if path == "." { String::new() } else { format!("`{path}`: ") };
            D::Error::custom(format!("{place}{}", error.trim_end()))
        })
    }
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
        let hint = "`retrace init` writes a configuration in which every setting stands";
        let config = toml::from_str(&text).map_err(|error| hinted(in_plain_words(&error.to_string()), hint));
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
            concurrency: self.concurrency.unwrap_or(default.concurrency),
            seed: self.seed.unwrap_or(default.seed),
            limits: TimeLimits {
                model: seconds(self.limits.model, default.limits.model),
                tool: seconds(self.limits.tool, default.limits.tool),
                restore: seconds(self.limits.restore, default.limits.restore),
                strategy: seconds(self.limits.strategy, default.limits.strategy),
                rollout: seconds(self.limits.rollout, default.limits.rollout),
            },
            ..default
        })
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

    /// The verification that it describes. Its paths are relative to `folder`.
    pub(crate) fn verifier(self, folder: &Path) -> anyhow::Result<Verifier> {
        if self.recordings.is_empty() {
            return Err(hinted("the configuration names no recordings", "add a table `[[recordings]]` with `files`"));
        }
        let mut verifier = Verifier::new(self.agent.model()?, self.settings()?).control(self.control);
        for (name, strategy) in self.strategies {
            verifier = verifier.strategy(name, strategy.0.build());
        }
        let mut files_by_id: HashMap<String, PathBuf> = HashMap::new();
        for group in &self.recordings {
            let paths: Vec<_> = group.files.iter().map(|file| folder.join(file)).collect();
            let mut recordings = Vec::new();
            for file in files::recordings_in(&paths)? {
                match files::read_another(&file, self.outcome.as_ref(), &mut files_by_id) {
                    Ok(recording) => recordings.push(recording),
                    // It costs itself, and nobody has paid for anything yet: the user hears of it now.
                    Err(error) => {
                        failure::warn(&error);
                        verifier = verifier.unusable(file.display().to_string(), failure::text(&error));
                    }
                }
            }
            verifier = verifier.group(group.build(recordings)?);
        }
        Ok(verifier)
    }
}

/// An error of the parser, without the names of types that a user need not know.
fn in_plain_words(error: &str) -> String {
    ["usize", "u64", "u32"]
        .iter()
        .fold(error.to_owned(), |error, number| error.replace(&format!("expected {number}"), "expected a whole number"))
}

impl AgentConfig {
    fn model(&self) -> anyhow::Result<std::sync::Arc<dyn retrace_model::Model>> {
        for (field, value) in [("temperature", self.temperature), ("summary_loss", self.summary_loss)] {
            let Some(value) = value else { continue };
            if !(0.0..=1.0).contains(&value) {
                return Err(hinted(format!("`agent.{field}` is {value}"), "it is a probability, from 0 to 1"));
            }
            if self.model == simulated::WANDER {
                return Err(hinted(format!("`agent.{field}` has no effect on `{}`", self.model), "leave it out"));
            }
        }
        let [temperature, summary_loss] = [self.temperature, self.summary_loss].map(Option::unwrap_or_default);
        simulated::model(&self.model, temperature, summary_loss).ok_or_else(|| {
            hinted(
                format!("there is no model `{}`", self.model),
                format!("`agent.model` is one of {}", simulated::MODELS.join(", ")),
            )
        })
    }
}

impl RecordingsConfig {
    /// These recordings with their environment and cuts.
    fn build(&self, recordings: Vec<Recording>) -> anyhow::Result<Group> {
        let group = match &*self.environment {
            "recorded" if self.world_seed.is_some() => {
                return Err(hinted("`world_seed` has no effect on the environment `recorded`", "leave it out"));
            }
            "recorded" => Group::recorded(recordings),
            name => {
                let environment =
                    simulated::environment(name, self.world_seed.unwrap_or_default()).ok_or_else(|| {
                        hinted(
                            format!("there is no environment `{name}`"),
                            format!("`environment` is one of recorded, {}", simulated::ENVIRONMENTS.join(", ")),
                        )
                    })?;
                Group::new(recordings, environment)
            }
        };
        Ok(match &self.cuts {
            Some(cuts) => group.cuts(cuts.iter().copied()),
            None => group,
        })
    }
}
