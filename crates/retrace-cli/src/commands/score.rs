//! `retrace score`: rollouts that were collected elsewhere.

use std::fs;

use anyhow::{Context, Result};
use retrace_score::ScoreInput;

use crate::args::ScoreArgs;
use crate::exit::Exit;
use crate::output;

pub(crate) fn run(args: &ScoreArgs) -> Result<Exit> {
    let file = args.file.display();
    let text = fs::read_to_string(&args.file).with_context(|| format!("failed to read `{file}`"))?;
    let input = ScoreInput::from_json(text.trim_start_matches('\u{feff}'))
        .with_context(|| format!("failed to read the rollouts in `{file}`"))?;
    let mut verification = input.into_verification();
    args.output.check(verification.horizon)?;
    verification.judging.margins = args.output.margins(verification.horizon)?;
    output::report(verification, &args.output)
}
