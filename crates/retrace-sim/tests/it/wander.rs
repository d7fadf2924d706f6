//! Wander, in recorded runs.

use std::fs::File;
use std::io::BufReader;

use retrace_env::RecordedEnvironment;
use retrace_events::Boundary;
use retrace_formats::{ImportOptions, openai_chat};
use retrace_sim::Wander;
use retrace_strategies::{Identity, Strategy, Summarize, TailWindow};

use crate::arms::{boundaries, compact, rollout};

fn airline() -> Vec<Boundary> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/samples/tau-bench/gpt-4o-airline-10-longest.json");
    let mut source = BufReader::new(File::open(path).unwrap());
    let imported = openai_chat::import(&mut source, &ImportOptions::new("airline")).unwrap();
    imported.recordings.into_iter().flat_map(boundaries).collect()
}

#[test]
fn enough_rollouts_stay_on_the_record_of_real_runs() {
    let boundaries = airline();
    let environment = RecordedEnvironment::new();
    let strategies: [(&str, &dyn Strategy); 3] =
        [("control", &Identity {}), ("tail", &TailWindow::new(8)), ("summary", &Summarize::new(8))];
    for (name, strategy) in strategies {
        let share = |horizon: usize| {
            let mut reached = 0;
            let mut total = 0;
            for (index, boundary) in boundaries.iter().enumerate() {
                let kept = compact(strategy, &boundary.history(), &Wander, index as u64);
                for sample in 0..6 {
                    let rollout =
                        rollout(&environment, boundary, &kept, &Wander, horizon, (index * 1000 + sample) as u64);
                    reached += usize::from(rollout.reaches(horizon));
                    total += 1;
                }
            }
            reached as f64 / total as f64
        };
        let (two, five) = (share(2), share(5));
        println!(
            "{name}: {:.0} % at horizon 2, {:.0} % at 5, {} boundaries",
            two * 100.0,
            five * 100.0,
            boundaries.len()
        );
        assert!(two > 0.45, "{name}: {two}");
    }
}
