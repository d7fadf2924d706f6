//! Models by the names that a configuration gives them, live or from a cassette.

use std::fs::{File, OpenOptions};
use std::io::{BufReader, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use indexmap::IndexMap;
use retrace_model::{Answer, BoxFuture, Cassette, CassetteRecorder, Model, ModelError, Prices, Prompt};
use retrace_report::counted;
use retrace_rig::{Listed, RigConfig, RigModel};
use retrace_verifier::Settings;
use tokio::time::{sleep, timeout};

use crate::args::ModelArgs;
use crate::config::{AgentConfig, ModelConfig};
use crate::exit::Exit;
use crate::failure::hinted;
use crate::{output, simulated};

/// Makes models, and knows those that it made.
pub(crate) struct Models {
    tables: IndexMap<String, ModelConfig>,
    /// What stands in for every model, if anything does.
    stand_in: Option<ModelConfig>,
    tape: Tape,
    /// By what the configuration calls them.
    made: IndexMap<String, Made>,
}

/// What happens to answers.
enum Tape {
    /// Nothing.
    None,
    /// They are kept in this file, which is not there yet.
    Record(PathBuf),
    /// They come from here, and no model is asked.
    Play(Cassette),
}

#[derive(Clone)]
struct Made {
    model: Arc<dyn Model>,
    /// A model of a provider, which is to be asked whether it is there.
    live: Option<Arc<RigModel>>,
    is_agents: bool,
}

impl Models {
    pub(crate) fn new(tables: IndexMap<String, ModelConfig>, args: &ModelArgs) -> Result<Self> {
        let tape = match (&args.record_cassette, &args.cassette) {
            (Some(file), _) if file.exists() => return Err(is_there(file)),
            (Some(file), _) => Tape::Record(file.clone()),
            (None, Some(file)) => Tape::Play(read_cassette(file)?),
            (None, None) => Tape::None,
        };
        let stand_in = args.model.as_deref().map(ModelConfig::new);
        Ok(Self { tables, stand_in, tape, made: IndexMap::new() })
    }

    /// The model that the agent asks.
    pub(crate) fn of_agent(&mut self, agent: &AgentConfig) -> Result<Arc<dyn Model>> {
        let Some(config) = self.stand_in.clone().or(agent.model.clone()) else { return Ok(Arc::new(NoModel)) };
        let made = Made { is_agents: true, ..self.make(&config)? };
        let label = if let ModelConfig::Named(name) = &config { name.clone() } else { made.model.name().to_owned() };
        self.made.insert(label, made.clone());
        Ok(made.model)
    }

    /// The model that a strategy asks for by name.
    pub(crate) fn named(&mut self, name: &str) -> Result<Arc<dyn Model>> {
        if let Some(made) = self.made.get(name) {
            return Ok(Arc::clone(&made.model));
        }
        let config = self.stand_in.clone().unwrap_or_else(|| ModelConfig::new(name));
        let made = self.make(&config)?;
        self.made.insert(name.to_owned(), made.clone());
        Ok(made.model)
    }

    /// The names that a program may ask for: those of the tables.
    pub(crate) fn names(&self) -> Vec<String> {
        self.tables.keys().cloned().collect()
    }

    fn make(&self, config: &ModelConfig) -> Result<Made> {
        let only = |model| Made { model, live: None, is_agents: false };
        match config {
            ModelConfig::Named(name) => match self.tables.get(name) {
                Some(ModelConfig::Named(other)) => Err(unknown(other)),
                Some(config) => self.make(config),
                None => Err(unknown(name)),
            },
            ModelConfig::Simulated(config) => simulated::model(config).map(only),
            ModelConfig::Provider(config) => match &self.tape {
                Tape::Play(cassette) => Ok(only(cassette.model(&*config.rig.model))),
                _ => {
                    let model = Arc::new(RigModel::from_env(config.rig.clone())?);
                    Ok(Made { live: Some(Arc::clone(&model)), ..only(model) })
                }
            },
        }
    }

    /// Says what is known of the models of providers, and asks each whether it is there. Then, when nothing is wrong any
    /// more, the cassette is opened.
    pub(crate) async fn check(self, settings: &Settings) -> Result<Cassettes> {
        for (label, made) in &self.made {
            let Some(model) = &made.live else { continue };
            let name = if label == model.name() { label.clone() } else { format!("{label} ({})", model.name()) };
            output::note(&format!("{name}: {}, {}", window(model.context_window()), price(model.prices())));
            if made.is_agents && model.config().temperature == Some(0.0) && settings.samples > 1 {
                output::warn(&format!(
                    "`{name}` has temperature 0: equal samples are one, so {n} of them cost {n} times as much and show no \
                     more; leave `temperature` out, or set `samples = 1`",
                    n = settings.samples
                ));
            }
            let (wanted, limit) = (model.config().timeout_seconds, settings.limits.model.as_secs());
            if wanted > limit && wanted != RigConfig::new("").timeout_seconds {
                output::warn(&format!(
                    "`timeout_seconds` of `{name}` is {wanted}, but `[limits] model` ends each answer after {limit} s"
                ));
            }
            preflight(model, settings).await.map_err(|error| {
                hinted(
                    format!("`{name}` cannot be used: {error}"),
                    "check the key and the address; `--model sim:wander` tries everything else without a model",
                )
            })?;
        }
        Ok(match self.tape {
            Tape::None => Cassettes::None,
            Tape::Record(file) => Cassettes::Recording(CassetteRecorder::new(create(&file)?)?),
            Tape::Play(cassette) => Cassettes::Playing(cassette),
        })
    }
}

/// What is known of a model before it is made, which takes no key.
pub(crate) fn listed(config: &ModelConfig, tables: &IndexMap<String, ModelConfig>) -> Result<Listed> {
    match config {
        ModelConfig::Named(name) => match tables.get(name) {
            Some(ModelConfig::Named(other)) => Err(unknown(other)),
            Some(config) => listed(config, tables),
            None => Err(unknown(name)),
        },
        ModelConfig::Simulated(config) => {
            let model = simulated::model(config)?;
            Ok(Listed { context_window: model.rules().window.map(|window| window.0), prices: model.prices() })
        }
        ModelConfig::Provider(config) => Ok(retrace_rig::listed(&config.rig, &|name| std::env::var(name).ok())?),
    }
}

/// Asks a model whether it is there, with the patience that an answer gets, but for so long only.
async fn preflight(model: &RigModel, settings: &Settings) -> Result<(), ModelError> {
    let limit = settings.limits.model.min(PREFLIGHT);
    let mut n = 0;
    loop {
        let asked = timeout(limit, model.preflight()).await.unwrap_or(Err(ModelError::TimedOut { limit }));
        let Err(error) = asked else { return Ok(()) };
        // What did not answer at all will hardly do so in a moment; what says when to come back will.
        let wait = settings.backoff.wait(n, &error, settings.seed).filter(|_| error.retry_after().is_some());
        let Some(wait) = wait.filter(|wait| *wait <= PREFLIGHT) else { return Err(error) };
        sleep(wait).await;
        n += 1;
    }
}

/// The longest that a model may take to say that it is there.
const PREFLIGHT: Duration = Duration::from_secs(20);

fn window(tokens: Option<u64>) -> String {
    tokens.map_or("context window unknown".to_owned(), |tokens| format!("context window {tokens} tokens"))
}

pub(crate) fn price(prices: Option<Prices>) -> String {
    prices.map_or("prices unknown".to_owned(), |Prices { input, output, .. }| {
        format!("${input} in and ${output} out for a million tokens")
    })
}

fn unknown(name: &str) -> anyhow::Error {
    hinted(
        format!("there is no model `{name}`"),
        format!(
            "write `provider:model` such as `openai:gpt-4.1-mini`, the name of a table `[models.NAME]`, or one of {}",
            simulated::MODELS.join(", ")
        ),
    )
}

/// Where answers are kept, or come from.
#[derive(Clone)]
pub(crate) enum Cassettes {
    None,
    Recording(CassetteRecorder),
    Playing(Cassette),
}

impl Cassettes {
    /// Puts what is kept, or what was, in place of a model.
    pub(crate) fn around(&self, model: Arc<dyn Model>) -> Arc<dyn Model> {
        match self {
            Self::None => model,
            Self::Recording(recorder) => recorder.around(model),
            Self::Playing(cassette) => cassette.model(model.name()),
        }
    }

    /// Says what the cassette could not do, and whether it did what it was for.
    pub(crate) fn finish(&self) -> Exit {
        match self {
            Self::None => Exit::Ok,
            Self::Recording(recorder) => {
                let Some(failure) = recorder.failure() else { return Exit::Ok };
                output::warn(&format!("the cassette could not be written to its end: {failure}"));
                Exit::CouldNotRun
            }
            Self::Playing(cassette) => {
                if cassette.n_unused() > 0 {
                    let answers = counted(cassette.n_unused(), "answer", "answers");
                    output::note(&format!("not asked for: {answers} of the cassette"));
                }
                let Some(miss) = cassette.first_miss() else { return Exit::Ok };
                let requests = counted(cassette.n_missed(), "request is", "requests are");
                output::warn(&format!("{requests} not on the cassette, the first: {miss}"));
                Exit::CouldNotRun
            }
        }
    }
}

fn read_cassette(file: &Path) -> Result<Cassette> {
    let source = File::open(file).with_context(|| format!("failed to open the cassette `{}`", file.display()))?;
    let cassette = Cassette::read(BufReader::new(source), file.display().to_string())?;
    if let Some(line) = cassette.torn_line() {
        output::warn(&format!("{}:{line}: the last line was cut off, and is left out", file.display()));
    }
    Ok(cassette)
}

/// A new file; nothing is ever overwritten.
fn create(file: &Path) -> Result<File> {
    let created = OpenOptions::new().write(true).create_new(true).open(file);
    created.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => is_there(file),
        _ => anyhow::Error::new(error).context(format!("failed to create `{}`", file.display())),
    })
}

fn is_there(file: &Path) -> anyhow::Error {
    hinted(format!("`{}` is there already", file.display()), "name another file")
}

/// The model of an agent that brings its own.
struct NoModel;

impl Model for NoModel {
    fn name(&self) -> &str {
        "the agent's own"
    }

    fn respond<'a>(&'a self, _: &'a Prompt<'a>) -> BoxFuture<'a, Result<Answer, ModelError>> {
        let message = "the configuration gives the agent no model: set `agent.model`".to_owned();
        Box::pin(std::future::ready(Err(ModelError::Refused { message })))
    }
}
