//! `retrace demo`: a verification in a simulated shop.

use std::sync::Arc;

use anyhow::{Context, Result};
use retrace_sim::Shop;
use retrace_strategies::{Summarize, TailWindow};
use retrace_verifier::{Group, Settings, Verifier};

use crate::args::DemoArgs;
use crate::commands::verify::verify;
use crate::exit::Exit;
use crate::output;

/// How many events the strategies of the demonstration keep: too few to hold the login that everything depends on.
const TARGET: usize = 4;

pub(crate) fn run(args: &DemoArgs) -> Result<Exit> {
    let settings = Settings { seed: args.seed, ..Settings::default() };
    args.output.check_horizon(settings.horizon)?;
    let recordings = pollster::block_on(Shop::demo_recordings(args.seed)).context("failed to record the shop")?;
    let verifier = Verifier::new(Arc::new(Shop::demo_agent()), settings)
        .strategy("tail", Arc::new(TailWindow::new(TARGET)))
        .strategy("summary", Arc::new(Summarize::new(TARGET)))
        .group(Group::new(recordings, Arc::new(Shop::demo_environment(args.seed))));
    let verification = verify(verifier)?;
    if !args.output.json {
        output::print(INTRODUCTION)?;
    }
    output::report(verification, &args.output)
}

const INTRODUCTION: &str = "\
A simulated agent keeps a shop in stock. It logs in once, and every later call needs the session id
that it was given. Three recorded runs are cut, and the agent is resumed from the raw history and
from what each strategy keeps: control keeps everything, tail the last 4 events, summary a summary
and the last 4 events. Look at the column `wasted`: an agent that lost the session id logs in again,
and one that lost the list lists it again. What the control wastes is noise.

";
