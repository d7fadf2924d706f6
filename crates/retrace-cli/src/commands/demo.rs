//! `retrace demo`: a verification in a simulated shop.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use retrace_events::Recording;
use retrace_events::codec::write_recording;
use retrace_sim::Shop;
use retrace_strategies::{Summarize, TailWindow};
use retrace_verifier::{Group, Settings, Verifier};

use crate::args::DemoArgs;
use crate::commands::verify::verify;
use crate::exit::Exit;
use crate::failure::hinted;
use crate::files::{self, There};
use crate::{output, runtime};

/// How many events the strategies of the demonstration keep: too few to hold the login that everything depends on.
const TARGET: usize = 4;

pub(crate) fn run(args: &DemoArgs) -> Result<Exit> {
    let mut settings = Settings { seed: args.seed, ..Settings::default() };
    args.output.check(settings.horizon)?;
    settings.judging.margins = args.output.margins(settings.horizon)?;
    let recordings = pollster::block_on(Shop::demo_recordings(args.seed)).context("failed to record the shop")?;
    if let Some(folder) = &args.save {
        save(folder, &recordings, args.seed)?;
    }
    let verifier = Verifier::new(Arc::new(Shop::demo_agent()), settings)
        .strategy("tail", Arc::new(TailWindow::new(TARGET)))
        .strategy("summary", Arc::new(Summarize::new(TARGET)))
        .group(Group::new(recordings, Arc::new(Shop::demo_environment(args.seed))));
    let verification = runtime::run(verify(verifier))?;
    if !args.output.json {
        output::print(INTRODUCTION)?;
    }
    output::report(verification, &args.output)
}

/// Writes what the demonstration runs, so that `retrace verify` can run it again.
fn save(folder: &Path, recordings: &[Recording], seed: u64) -> Result<()> {
    let mut outputs =
        vec![(folder.join("retrace.toml"), CONFIGURATION.replace("{seed}", &seed.to_string()).into_bytes())];
    for recording in recordings {
        let mut bytes = Vec::new();
        write_recording(&mut bytes, recording)?;
        let name = files::name_for(&recording.header.id);
        outputs.push((folder.join("recordings").join(format!("{name}.jsonl")), bytes));
    }
    for (file, bytes) in &outputs {
        if files::there(file, bytes)? == There::SomethingElse {
            let message = format!("`{}` is there already and holds something else", file.display());
            return Err(hinted(message, "name another folder"));
        }
    }
    let inner = folder.join("recordings");
    fs::create_dir_all(&inner).with_context(|| format!("failed to create `{}`", inner.display()))?;
    outputs.iter().try_for_each(|(file, bytes)| files::write(file, bytes))
}

/// The demonstration as a configuration.
const CONFIGURATION: &str = include_str!("demo.toml");

const INTRODUCTION: &str = "\
A simulated agent keeps a shop in stock. It logs in once, and every later call needs the session id
that it was given. Three recorded runs are cut, and the agent is resumed from the raw history and
from what each strategy keeps: control keeps everything, tail the last 4 events, summary a summary
and the last 4 events. Look at the column `wasted`: an agent that lost the session id logs in again,
and one that lost the list lists it again. What the control wastes is noise.

";
