//! How much memory a run takes that is too large to be held, from its first rollout to its report.
//!
//! The allocator counts what all threads hold, so that this is the one test of its binary.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::print_stderr, reason = "the numbers are worth seeing")]

use std::io;
use std::path::Path;
use std::sync::Arc;

use peak_alloc::PeakAlloc;
use retrace_events::Recording;
use retrace_journal::Run;
use retrace_report::write_report;
use retrace_score::Reporter;
use retrace_sim::Shop;
use retrace_strategies::TailWindow;
use retrace_verifier::{Group, RunFolder, Settings, Verifier};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

const MIB: usize = 1 << 20;

/// Runs of simulated agents in so many simulated shops, each with its shop's seed.
fn recordings(n_recordings: usize) -> Vec<(u64, Recording)> {
    let of_shop = |seed: u64| {
        let recordings = pollster::block_on(Shop::demo_recordings(seed)).unwrap();
        recordings.into_iter().map(move |mut recording| {
            recording.header.id = format!("{seed}-{}", recording.header.id);
            (seed, recording)
        })
    };
    (0..).flat_map(of_shop).take(n_recordings).collect()
}

/// Runs PRE and one strategy at four boundaries of each recording, keeps it in a folder, and reports it: how many rollouts it had, and
/// the most that was held in bytes.
fn held(recordings: &[(u64, Recording)], samples: u32, folder: &Path) -> (usize, usize) {
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let settings = Settings { samples, concurrency: 8, ..Settings::default() };
    let verifier = Verifier::new(Arc::new(Shop::demo_agent()), settings)
        .strategy("tail", Arc::new(TailWindow::new(4)))
        .control(false);
    let verifier = recordings.iter().fold(verifier, |verifier, (seed, recording)| {
        verifier.group(Group::new([recording.clone()], Arc::new(Shop::demo_environment(*seed))))
    });
    let run_folder = RunFolder { path: folder.to_owned(), ..RunFolder::default() };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
    let start = std::time::Instant::now();
    assert_eq!(runtime.block_on(verifier.run_in(&run_folder, &|_| {})).unwrap(), None);
    let ran = start.elapsed();

    let run = Run::read(folder).unwrap();
    let mut reporter = Reporter::new(run.verification()).unwrap();
    run.boundaries().for_each(|boundary| drop(reporter.add(boundary.unwrap()).unwrap()));
    let report = reporter.finish();
    let scored = run.boundaries().map(|boundary| Ok::<_, io::Error>(report.score(boundary.unwrap())));
    write_report(io::sink(), &report, scored).unwrap();
    let n_rollouts = run.n_rollouts();
    assert_eq!(n_rollouts, report.boundaries.len() * 2 * samples as usize);
    eprintln!(
        "{n_rollouts} rollouts at {} boundaries, {:.0} a second, reported in {:?}",
        report.boundaries.len(),
        n_rollouts as f64 / ran.as_secs_f64(),
        start.elapsed() - ran
    );
    (n_rollouts, ALLOCATOR.peak_usage() - before)
}

#[test]
fn a_run_takes_a_few_bytes_for_each_rollout_from_its_start_to_its_report() {
    let (n_recordings, samples) = if retrace_testing::cases(0, 1) == 1 { (250, 50) } else { (3, 5) };
    let recordings = recordings(n_recordings);
    let folder = tempfile::tempdir().unwrap();
    let (n_few, few) = held(&recordings, samples, &folder.path().join("few"));
    let (n_many, many) = held(&recordings, 2 * samples, &folder.path().join("many"));
    let more = many.saturating_sub(few) / (n_many - n_few);
    eprintln!("{} MiB, {} MiB: {more} bytes for each rollout more", few / MIB, many / MIB);
    assert!(few < 1024 * MIB && many < 1024 * MIB, "{few} and {many} bytes");
    // The places of its line, its actions as counts, and while its boundary is written its texts.
    let of_a_boundary = 2 * samples as usize * 8192;
    assert!(many < few + MIB + (n_many - n_few) * 400 + of_a_boundary, "{more} bytes for each rollout");
}
