//! What broke in a run, counted by where: `cargo run -p retrace-journal --example failures -- runs/retrace`.

use std::collections::BTreeMap;
use std::env;
use std::error::Error;
use std::io::{self, Write};
use std::path::Path;

use retrace_events::EndReason;
use retrace_journal::Run;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = env::args().nth(1).ok_or("name the folder of a run")?;
    let run = Run::read(Path::new(&folder))?;
    let mut ends: BTreeMap<String, usize> = BTreeMap::new();
    for record in run.rollouts() {
        let end = match record?.rollout.end {
            EndReason::Failed(failure) => format!("failed: {:?}", failure.stage).to_lowercase(),
            end => end.to_string(),
        };
        *ends.entry(end).or_default() += 1;
    }
    let mut stdout = io::stdout().lock();
    for (end, n) in ends {
        writeln!(stdout, "{n:>6}  {end}")?;
    }
    writeln!(stdout, "{:>6}  rollouts in all, for {} tokens", run.n_rollouts(), run.spent().total_tokens())?;
    Ok(())
}
