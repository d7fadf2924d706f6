//! `retrace compact`: one strategy applied to the history of a recording.

mod diff;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use indexmap::IndexMap;
use retrace_events::codec::write_recording;
use retrace_events::{History, Recording, Response, with_causes};
use retrace_model::{Model, Prompt};
use retrace_report::{counted, printable};
use retrace_strategies::{Ask, BoxFuture, CompactContext, CompactError, Outcome, Pass, Sizes, StrategyConfig, compact};
use retrace_verifier::Settings;
use serde::Deserialize;
use tokio::time::timeout;

use crate::args::CompactArgs;
use crate::config::{Config, StrategyTable};
use crate::exit::Exit;
use crate::failure::hinted;
use crate::files::There;
use crate::setup::{Base, Cassettes, Compacting, Models};
use crate::{files, output, runtime};

const UNREADABLE: &str = "the strategy cannot be read";

/// Whom a strategy may ask.
struct Asked {
    /// The agent's model, or what stands in for every one.
    own: Arc<dyn Model>,
    named: HashMap<String, Arc<dyn Model>>,
}

impl Ask for Asked {
    fn ask<'a>(
        &'a self,
        prompt: &'a Prompt<'a>,
        model: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Response, CompactError>> {
        Box::pin(async move {
            let model = match model.filter(|name| *name != self.own.name()) {
                None => &self.own,
                Some(name) => {
                    self.named.get(name).ok_or_else(|| CompactError::UnknownModel { name: name.to_owned() })?
                }
            };
            Ok(model.respond(prompt).await?.response)
        })
    }
}

pub(crate) fn run(args: &CompactArgs) -> Result<Exit> {
    let config = args.config.as_deref().map(Config::read).transpose()?;
    let rule = config.as_ref().and_then(|config| config.outcome.as_ref());
    let recording = files::read(&args.recording, rule)?;
    let settings = config.as_ref().map_or_else(|| Ok(Settings::default()), Config::settings)?;
    let before = History::prefix(&recording.events, recording.events.len());
    let mut after = before.clone();
    let (pass, cassettes) = runtime::run(apply(args, config, &settings, &mut after))?;
    match pass.outcome {
        Outcome::Failed(error @ CompactError::NotAsked { .. }) => {
            return Err(hinted(with_causes(&error), "name a model with `--model`, or a configuration that has one"));
        }
        Outcome::Failed(error) => {
            return Err(anyhow::Error::new(error).context(format!("failed to compact `{}`", args.recording.display())));
        }
        Outcome::NotDue | Outcome::Unchanged => output::note("there was nothing to do"),
        Outcome::Compacted { .. } => {}
    }
    let sizes = Sizes::of(&before, &after, &*settings.counter);
    let total = format!(
        "{}, {} now; {} tokens, {} now (by {})",
        counted(sizes.messages_before, "event", "events"),
        sizes.messages_after,
        sizes.tokens_before.0,
        sizes.tokens_after.0,
        settings.counter.name(),
    );
    let mut header = recording.header;
    header.id.push_str("-compacted");
    let compacted = Recording { header, events: after.iter().map(Arc::clone).collect() };
    let mut bytes = Vec::new();
    write_recording(&mut bytes, &compacted)?;
    if let Some(file) = &args.output {
        write(file, &bytes)?;
    }
    if args.diff {
        output::print(&format!("{}{total}\n", diff::text(&before, &after, &*settings.counter)))?;
    } else if let Some(file) = &args.output {
        output::print(&format!("{total}; written to {}", printable(&file.to_string_lossy())))?;
    } else {
        output::note(&total);
        output::print(&String::from_utf8(bytes)?)?;
    }
    Ok(cassettes.finish())
}

/// Applies the strategy, with a model to ask where there is one and the strategy may want it.
async fn apply(
    args: &CompactArgs,
    config: Option<Config>,
    settings: &Settings,
    history: &mut History,
) -> Result<(Pass, Cassettes)> {
    let (base, agent, tables, mut strategies) = match config {
        Some(config) => {
            let base = Base::new(&config, args.config.as_deref().unwrap_or(Path::new("")));
            (base, Some(config.agent), config.models, config.strategies)
        }
        None => (Base::default(), None, IndexMap::new(), IndexMap::new()),
    };
    let table = match strategies.shift_remove(&args.strategy) {
        Some(table) => table,
        None => described(&args.strategy, strategies.keys())?,
    };
    let compacting = Compacting::start(&args.strategy, table, &base).await?;
    let strategy = &compacting.strategy;
    let mut models = Models::new(tables, &args.model)?;
    let mut asked = None;
    if strategy.business().may_ask() {
        let own = match (&agent, &args.model.model) {
            (_, Some(name)) => Some(models.named(name)?),
            (Some(agent), None) if agent.model.is_some() => Some(models.of_agent(agent)?),
            _ => None,
        };
        if let Some(own) = own {
            let named = compacting.models(&mut models, own.name())?.into_iter().collect();
            asked = Some(Asked { own, named });
        }
    }
    let cassettes = models.check(settings).await?;
    if let Some(Asked { own, named }) = &mut asked {
        for model in named.values_mut().chain([own]) {
            *model = cassettes.around(Arc::clone(model));
        }
    }
    let mut cx = match &asked {
        Some(asked) => CompactContext::new(asked, settings.seed),
        None => CompactContext::without_model(),
    };
    cx.counter = &*settings.counter;
    cx.window = asked.as_ref().and_then(|asked| asked.own.rules().window);
    cx.model = asked.as_ref().map(|asked| asked.own.name());
    cx.focus = args.focus.as_deref();
    let limit = settings.limits.strategy;
    let pass = timeout(limit, compact(&**strategy, history, &mut cx)).await;
    let pass = pass.map_err(|_| {
        hinted(format!("the strategy did not end within {limit:?}"), "give it longer with `strategy` in `[limits]`")
    })?;
    Ok((pass, cassettes))
}

/// A strategy that the command line describes: a table, or a kind that needs no settings.
fn described<'a>(text: &str, names: impl Iterator<Item = &'a String>) -> Result<StrategyTable> {
    let text = text.trim();
    let table = if text.starts_with('{') {
        let table = serde_json::from_str(text).or_else(|json| {
            let inline = toml::from_str(&format!("strategy = {text}")).ok();
            let table = inline.and_then(|mut document: toml::Table| match document.remove("strategy") {
                Some(toml::Value::Table(table)) if document.is_empty() => Some(table),
                _ => None,
            });
            table.ok_or(json)
        });
        table.context(UNREADABLE)?
    } else if text.contains('=') {
        toml::from_str(text).context(UNREADABLE)?
    } else if StrategyConfig::KINDS.contains(&text) {
        toml::Table::from_iter([("kind".to_owned(), toml::Value::String(text.to_owned()))])
    } else {
        let named: Vec<_> = names.map(|name| format!("`{name}`")).collect();
        let of_config = match &named[..] {
            [] => "name one of a configuration with `--config`".to_owned(),
            _ => format!("the configuration has {}", named.join(", ")),
        };
        return Err(hinted(
            format!("there is no strategy `{text}`"),
            format!(
                "{of_config}, or describe one: `{{\"kind\": \"tail_window\", \"target\": 8}}`; `retrace strategies` lists all kinds"
            ),
        ));
    };
    StrategyTable::deserialize(table).context(UNREADABLE)
}

/// Writes a file that is not there yet, or holds the same.
fn write(file: &Path, bytes: &[u8]) -> Result<()> {
    if files::there(file, bytes)? == There::SomethingElse {
        return Err(hinted(
            format!("`{}` is there already and holds something else", file.display()),
            "name another file",
        ));
    }
    files::write(file, bytes)
}
