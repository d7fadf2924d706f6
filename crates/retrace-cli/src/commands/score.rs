//! `retrace score`: rollouts that were collected elsewhere, or by a run.

use std::fs;

use anyhow::{Context, Result};
use retrace_score::ScoreInput;

use crate::args::ScoreArgs;
use crate::exit::Exit;
use crate::output;

pub(crate) fn run(args: &ScoreArgs) -> Result<Exit> {
    if args.file.is_dir() {
        let run = output::read_run(&args.file)?;
        return output::report_run(&run, &args.judging, &args.output);
    }
    let file = args.file.display();
    let text = fs::read_to_string(&args.file).with_context(|| format!("failed to read `{file}`"))?;
    let input = ScoreInput::from_json(text.trim_start_matches('\u{feff}'))
        .with_context(|| format!("failed to read the rollouts in `{file}`"))?;
    let mut verification = input.into_verification();
    output::judge(&mut verification, &args.judging, &args.output)?;
    output::report(verification, &args.output)
}
