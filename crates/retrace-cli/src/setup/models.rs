//! Models by the names that a configuration gives them, live or from a cassette.

use std::fs::{File, OpenOptions};
use std::io::{BufReader, ErrorKind};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use indexmap::IndexMap;
use retrace_events::tokens::Tokens;
use retrace_model::{Answer, BoxFuture, Cassette, CassetteRecorder, Model, ModelError, Prompt};
use retrace_report::counted;
use retrace_rig::{Prices, RigConfig, RigModel};

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
    cassettes: Cassettes,
    /// Models of providers, which are to be asked whether they are there.
    live: Vec<Arc<RigModel>>,
    /// The context window of the agent's model.
    pub(crate) window: Option<Tokens>,
}

/// Where answers are kept, or come from.
#[derive(Clone)]
pub(crate) enum Cassettes {
    None,
    Recording(CassetteRecorder),
    Playing(Cassette),
}

impl Models {
    pub(crate) fn new(tables: IndexMap<String, ModelConfig>, args: &ModelArgs) -> Result<Self> {
        let stand_in = args.model.as_deref().map(ModelConfig::new);
        Ok(Self { tables, stand_in, cassettes: Cassettes::of(args)?, live: Vec::new(), window: None })
    }

    /// The model that the agent asks.
    pub(crate) fn of_agent(&mut self, agent: &AgentConfig) -> Result<Arc<dyn Model>> {
        match self.stand_in.clone().or(agent.model.clone()) {
            Some(config) => {
                let n_live = self.live.len();
                let model = self.make(&config)?;
                self.window = self.live.get(n_live).and_then(|model| model.context_window()).map(Tokens);
                Ok(model)
            }
            None => Ok(Arc::new(NoModel)),
        }
    }

    /// The model that a strategy asks for by name.
    pub(crate) fn named(&mut self, name: &str) -> Result<Arc<dyn Model>> {
        let config = self.stand_in.clone().unwrap_or_else(|| ModelConfig::new(name));
        self.make(&config)
    }

    pub(crate) fn cassettes(&self) -> &Cassettes {
        &self.cassettes
    }

    fn make(&mut self, config: &ModelConfig) -> Result<Arc<dyn Model>> {
        match config {
            ModelConfig::Named(name) => match self.tables.get(name).cloned() {
                Some(ModelConfig::Named(other)) => Err(unknown(&other)),
                Some(config) => self.make(&config),
                None => Err(unknown(name)),
            },
            ModelConfig::Simulated(config) => simulated::model(config),
            ModelConfig::Provider(config) => match &self.cassettes {
                Cassettes::Playing(cassette) => Ok(cassette.model(&*config.model)),
                _ => {
                    let model = Arc::new(RigModel::from_env(RigConfig::clone(config))?);
                    self.live.push(Arc::clone(&model));
                    Ok(model)
                }
            },
        }
    }

    /// Says what is known of the models of providers, and asks each whether it is there.
    pub(crate) async fn check(&self, samples: u32) -> Result<()> {
        for model in &self.live {
            let name = model.name();
            output::note(&format!("{name}: {}, {}", window(model.context_window()), price(model.prices())));
            if model.config().temperature == Some(0.0) && samples > 1 {
                output::warn(&format!(
                    "`{name}` has temperature 0: equal samples are one, so {samples} of them cost {samples} times as much and show \
                     no more; leave `temperature` out, or set `samples = 1`"
                ));
            }
            model.preflight().await.map_err(|error| {
                hinted(
                    format!("`{name}` cannot be used: {error}"),
                    "check the key and the address; `--model sim:wander` tries everything else without a model",
                )
            })?;
        }
        Ok(())
    }
}

fn window(tokens: Option<u64>) -> String {
    tokens.map_or("context window unknown".to_owned(), |tokens| format!("context window {tokens} tokens"))
}

fn price(prices: Option<Prices>) -> String {
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

impl Cassettes {
    fn of(args: &ModelArgs) -> Result<Self> {
        if let Some(file) = &args.record_cassette {
            return Ok(Self::Recording(CassetteRecorder::new(create(file)?)?));
        }
        let Some(file) = &args.cassette else { return Ok(Self::None) };
        let source = File::open(file).with_context(|| format!("failed to open the cassette `{}`", file.display()))?;
        let cassette = Cassette::read(BufReader::new(source), file.display().to_string())?;
        if let Some(line) = cassette.torn_line() {
            output::warn(&format!("{}:{line}: the last line was cut off, and is left out", file.display()));
        }
        Ok(Self::Playing(cassette))
    }

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

/// A new file; nothing is ever overwritten.
fn create(file: &Path) -> Result<File> {
    let created = OpenOptions::new().write(true).create_new(true).open(file);
    created.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => hinted(format!("`{}` is there already", file.display()), "name another file"),
        _ => anyhow::Error::new(error).context(format!("failed to create `{}`", file.display())),
    })
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
