//! `retrace verify`: the main job.

use std::path::Path;

use anyhow::{Context, Result};
use retrace_score::Verification;
use retrace_verifier::Verifier;

use crate::args::VerifyArgs;
use crate::config::Config;
use crate::exit::Exit;
use crate::output;
use crate::progress::Bar;

pub(crate) fn run(args: &VerifyArgs) -> Result<Exit> {
    let mut config = Config::read(&args.config)?;
    config.horizon = args.horizon.or(config.horizon);
    config.samples = args.samples.or(config.samples);
    config.concurrency = args.concurrency.or(config.concurrency);
    config.seed = args.seed.or(config.seed);
    config.outcome = args.outcome.failed_if.clone().or(config.outcome);
    args.output.check_horizon(config.settings()?.horizon)?;
    let folder = args.config.parent().unwrap_or(Path::new(""));
    output::report(verify(config.verifier(folder)?)?, &args.output)
}

/// Runs a verification under a progress bar.
pub(crate) fn verify(verifier: Verifier) -> Result<Verification> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_time().build();
    let runtime = runtime.context("failed to start the threads of the program")?;
    let bar = Bar::new();
    let verification = runtime.block_on(verifier.run(&|progress| bar.draw(&progress)))?;
    bar.finish();
    Ok(verification)
}
