//! A verdict from a table of counts, with this crate alone: `cargo run -p retrace-stats --example verdict`.
//!
//! A strategy was tested at two boundaries of each of eight recordings, with three rollouts in each arm. The table has how many of
//! five actions each rollout wasted.

use std::error::Error;

use retrace_stats::{
    Arms, ChannelEvidence, Level, Recordings, ShownLow, Verdict, WorstRecording, blind_share, bounded_mean,
    cluster_sign_flip_test, flip_interval, nearest_double, rollout_permutation_test, shown_low, verdict,
};

/// The greatest mean difference that is acceptable, said before the run.
const MARGIN: f64 = 0.5;

/// For each recording its boundaries, and for each the counts of PRE and of POST.
const COUNTS: [[[[u32; 3]; 2]; 2]; 8] = [
    [[[0, 0, 0], [1, 1, 2]], [[0, 1, 0], [0, 1, 0]]],
    [[[0, 0, 1], [1, 2, 1]], [[0, 0, 0], [1, 1, 1]]],
    [[[0, 0, 0], [0, 0, 1]], [[1, 0, 0], [2, 1, 1]]],
    [[[0, 0, 0], [2, 2, 2]], [[0, 0, 0], [1, 0, 0]]],
    [[[0, 1, 0], [1, 1, 1]], [[0, 0, 0], [0, 1, 1]]],
    [[[0, 0, 0], [3, 1, 1]], [[0, 0, 1], [1, 1, 1]]],
    [[[0, 0, 0], [1, 0, 1]], [[0, 0, 0], [1, 2, 1]]],
    [[[0, 2, 0], [2, 1, 1]], [[0, 0, 0], [1, 1, 0]]],
];

#[expect(clippy::print_stdout, reason = "an example shows what it found")]
fn main() -> Result<(), Box<dyn Error>> {
    let arms =
        COUNTS.each_ref().map(|boundaries| boundaries.each_ref().map(|[pre, post]| Arms::Rollouts { pre, post }));
    let differences: Vec<Vec<_>> =
        arms.iter().map(|boundaries| boundaries.iter().filter_map(Arms::difference).collect()).collect();
    let recordings = Recordings::new(differences.iter().map(Vec::as_slice));
    let mean = recordings.mean().unwrap_or_default();

    // Did the strategy change anything at these boundaries? And would it on other recordings?
    let here = rollout_permutation_test(&arms.concat())?;
    let new = cluster_sign_flip_test(&differences);

    // Between what the mean on other recordings lies.
    let level = Level::PERCENT_95;
    let bounded = bounded_mean(&recordings, WorstRecording { boundaries: 2, bound: 5 }, level)?;
    let low = match shown_low(&recordings, &flip_interval(&recordings, level), &bounded) {
        ShownLow::Flips(low) => nearest_double(&low).to_string(),
        ShownLow::Bounded(low) => low.to_string(),
        _ => "none".to_owned(),
    };

    let evidence = ChannelEvidence {
        mean: mean.clone(),
        p_here: Some(here.p.upper()),
        p_new: new.p.upper(),
        strict_low: None,
        high: bounded.high,
        margin: Some(MARGIN),
    };
    let said = match verdict(false, &[evidence], level) {
        Verdict::WithinMargin { .. } => "it costs less than the margin",
        Verdict::Worse => "it does harm on recordings like these",
        Verdict::WorseHere => "it does harm at these boundaries",
        _ => "neither harm nor safety is shown",
    };
    println!(
        "mean         {mean} of 5 actions more wasted, from {low} to {:.3} on recordings like these",
        bounded.high
    );
    println!("p here       {:.2e} ({})", here.p.to_f64(), here.p.method());
    println!("p new        {} (at least {})", nearest_double(&new.p.upper()), new.p_floor());
    println!(
        "blind        to harm in fewer than {:.0}% of recordings",
        100.0 * blind_share(recordings.scored(), level)
    );
    println!("verdict      {said}");
    Ok(())
}
