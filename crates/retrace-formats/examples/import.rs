//! Imports a transcript and prints its recordings, or what is wrong with it.
//!
//! ```sh
//! cargo run -p retrace-formats --example import -- tests/samples/tau-bench/gpt-4o-airline-10-longest.json
//! ```
#![expect(clippy::print_stdout, reason = "an example shows what it found")]

use std::error::Error;
use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

use retrace_events::{OutcomeRule, Trajectory};
use retrace_formats::{ImportOptions, openai_chat};

fn main() -> Result<(), Box<dyn Error>> {
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/samples/tau-bench/gpt-4o-airline-10-longest.json");
    let path = std::env::args_os().nth(1).map_or_else(|| PathBuf::from(sample), PathBuf::from);
    let stem = path.file_stem().map_or_else(|| "run".into(), |stem| stem.to_string_lossy());
    let mut source = BufReader::new(File::open(&path)?);
    let imported = openai_chat::import(&mut source, &ImportOptions::new(stem))?;

    // The format has no word on failures, so the user says what one looks like.
    let rule: OutcomeRule = "prefix:Error".parse()?;
    for mut recording in imported.recordings {
        recording.apply_outcome_rule(&rule);
        let trajectory = Trajectory::new(recording);
        let n_blocked = trajectory.actions().iter().filter(|recorded| recorded.action.is_blocked()).count();
        println!("{}: {} actions, {n_blocked} blocked", trajectory.id(), trajectory.actions().len());
    }
    for finding in imported.findings {
        println!("note: {finding}");
    }
    Ok(())
}
