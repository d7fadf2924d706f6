//! Whatever breaks outside the program, a verification ends and says so, on a clock that stands still but for what waits for it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "faults/bias.rs"]
mod bias;
#[path = "faults/size.rs"]
mod size;
#[path = "faults/strategies.rs"]
mod strategies;

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use retrace_events::{EndReason, Recording};
use retrace_model::Model;
use retrace_report::{View, text, write_report};
use retrace_score::{BoundaryReport, Compaction, Report, Reporter, Verification};
use retrace_sim::{EnvironmentFault, FaultyEnvironment, FaultyModel, ModelFault, Rates, Shop, World};
use retrace_stats::nearest_double;
use retrace_strategies::{Summarize, TailWindow};
use retrace_verifier::{Group, Settings, TimeLimits, Verifier, VerifyError};

/// One run of a shop, with three boundaries or more.
fn recordings() -> Vec<Recording> {
    let recordings = pollster::block_on(Shop::demo_recordings(1)).unwrap();
    recordings.into_iter().take(1).collect()
}

fn settings() -> Settings {
    let limits = TimeLimits { model: Duration::from_secs(30), tool: Duration::from_secs(20), ..TimeLimits::default() };
    Settings { samples: 2, seed: 7, limits, give_up_after: usize::MAX, ..Settings::default() }
}

/// A shop with these faults, its agent with those.
fn verifier(model: Rates<ModelFault>, environment: Rates<EnvironmentFault>, settings: Settings) -> Verifier {
    let model: Arc<dyn Model> = Arc::new(FaultyModel::new(Shop::demo_agent(), model, 11));
    let environment = FaultyEnvironment::new(Shop::new(1).environment(), environment, 12).n_bytes(1000);
    Verifier::new(model, settings)
        .strategy("tail", Arc::new(TailWindow::new(4)))
        .strategy("summary", Arc::new(Summarize::new(4)))
        .group(Group::new(recordings(), Arc::new(environment)))
}

/// Runs it, and fails if it has not ended after a day.
fn try_run(verifier: Verifier) -> Result<Verification, VerifyError> {
    // Time stands still but for what waits for it.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let day = Duration::from_secs(24 * 3600);
    runtime.block_on(async { tokio::time::timeout(day, verifier.run(&|_| {})).await }).expect("it ends")
}

/// A report, and its boundaries with their rollouts.
struct Ran {
    report: Report,
    boundaries: Vec<BoundaryReport>,
}

impl Deref for Ran {
    type Target = Report;

    fn deref(&self) -> &Report {
        &self.report
    }
}

impl Ran {
    fn of(mut verification: Verification) -> Self {
        let outcomes = std::mem::take(&mut verification.boundaries);
        let mut reporter = Reporter::new(verification).unwrap();
        let boundaries = outcomes.into_iter().map(|outcome| reporter.add(outcome).unwrap()).collect();
        Self { report: reporter.finish(), boundaries }
    }

    fn json(&self) -> Vec<u8> {
        let mut written = Vec::new();
        write_report(&mut written, &self.report, self.boundaries.iter().cloned().map(Ok::<_, std::io::Error>)).unwrap();
        written
    }
}

fn run(verifier: Verifier) -> Ran {
    let ran = Ran::of(try_run(verifier).unwrap());
    assert!(ran.json().len() < 1 << 20 && text(&View::new(&ran)).len() < 1 << 16);
    ran
}

/// How all rollouts of all arms ended.
fn ends(report: &Ran) -> Vec<&EndReason> {
    report
        .boundaries
        .iter()
        .flat_map(|boundary| {
            boundary.pre.iter().chain(boundary.strategies.values().flat_map(|strategy| &strategy.post))
        })
        .map(|rollout| &rollout.rollout.end)
        .collect()
}

/// How many rollouts the report shows as failed with an error, in all arms.
fn n_shown(report: &Report, error: &str) -> usize {
    let arms = std::iter::once(&report.pre).chain(report.strategies.values().map(|strategy| &strategy.post));
    arms.flat_map(|arm| &arm.errors).filter(|count| count.text.contains(error)).map(|count| count.count).sum()
}

#[test]
fn each_way_in_which_a_model_gives_no_answer_is_counted_where_the_report_shows_failures() {
    let errors = [
        (ModelFault::RateLimited, "rate limited: 429 Too Many Requests: slow down"),
        (ModelFault::Broken, "unavailable: 500 Internal Server Error: something broke"),
        (ModelFault::Overloaded, "unavailable: 529: too much to do"),
        (ModelFault::Reset, "unavailable: connection reset by peer"),
        (ModelFault::Silent, "no answer within 30s"),
        (ModelFault::CutStream, "unavailable: the connection was closed before the answer was complete"),
        (ModelFault::CutJson, "unavailable: the answer is incomplete: EOF while parsing a string"),
        (ModelFault::Refused, "refused: 400 Bad Request: not this one"),
        (ModelFault::ManyCalls, "unusable answer: 10000 calls in one answer, of which at most 1000 are run"),
    ];
    for (fault, error) in errors {
        let report = run(verifier(Rates::none().with(fault, 1.0), Rates::none(), settings()));
        let n_rollouts = ends(&report).len();
        assert!(n_rollouts > 0, "{fault:?}");
        assert_eq!(n_shown(&report, error), n_rollouts, "{fault:?}: {:?}", report.pre.errors);
        assert_eq!(report.pre.n_failed, vec![report.pre.n_rollouts; 5], "{fault:?}");
        let summary = &report.strategies["summary"];
        // An answer of calls is no summary, and is said to be none.
        let failed = if fault == ModelFault::ManyCalls { "the summary is empty" } else { error };
        assert_eq!(summary.n_failed_compactions, summary.n_tested, "{fault:?}");
        assert!(summary.compaction_errors[0].text.contains(failed), "{fault:?}: {:?}", summary.compaction_errors);
        assert_eq!(report.strategies["tail"].n_failed_compactions, 0, "{fault:?}");
        let shown = text(&View::new(&report)).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(shown.contains(&format!("Most common error: `model: {error}`")), "{fault:?}: {shown}");
    }
}

#[test]
fn an_answer_that_is_of_no_use_is_what_the_agent_did() {
    for fault in [ModelFault::UnknownTool, ModelFault::BrokenArguments, ModelFault::Empty] {
        let report = run(verifier(Rates::none().with(fault, 1.0), Rates::none(), settings()));
        assert!(ends(&report).iter().all(|end| !end.is_failure()), "{fault:?}");
        let means = report.pre.means[4].as_ref().unwrap();
        let (blocked, stopped) = (nearest_double(&means.blocked), nearest_double(&means.stopped));
        let expected = if fault == ModelFault::Empty { (0.0, 1.0) } else { (5.0, 0.0) };
        assert_eq!((blocked, stopped), expected, "{fault:?}");
    }
}

#[test]
fn each_way_in_which_a_world_breaks_is_counted_where_the_report_shows_failures() {
    let errors = [
        (EnvironmentFault::NoStart, "the environment could not be built: the world does not start"),
        (EnvironmentFault::NeverStarts, "the environment could not be built: it was not restored within 300s"),
        (EnvironmentFault::HangingCall, "gave no answer within 20s"),
        (EnvironmentFault::Death, "the world has ended"),
    ];
    for (fault, error) in errors {
        let report = run(verifier(Rates::none(), Rates::none().with(fault, 1.0), settings()));
        let ends = ends(&report);
        // A rollout whose agent ends its turn at once makes no call.
        let n_failed = ends.iter().filter(|end| end.is_failure()).count();
        assert!(n_failed > 0 && n_failed * 10 >= ends.len() * 8, "{fault:?}: {ends:?}");
        assert_eq!(n_shown(&report, error), n_failed, "{fault:?}: {:?}", report.pre.errors);
        assert_eq!(report.strategies["summary"].n_failed_compactions, 0, "{fault:?}");
    }
    let report = run(verifier(Rates::none(), Rates::none().with(EnvironmentFault::Megabytes, 1.0), settings()));
    assert!(ends(&report).iter().all(|end| !end.is_failure()));
}

#[test]
fn of_many_faults_at_once_the_outcome_depends_on_the_seed_and_not_on_the_order() {
    let outcomes = |concurrency, rate| {
        let settings = Settings { concurrency, samples: 3, ..settings() };
        let (model, world) = (Rates::evenly(&ModelFault::ALL, rate), Rates::evenly(&EnvironmentFault::ALL, rate));
        let report = run(verifier(model, world, settings));
        let boundaries = report.boundaries.into_iter().map(|boundary| {
            let strategies = boundary.strategies.into_values();
            let posts = strategies.map(|it| (it.compaction, it.post.into_iter().map(|it| it.rollout)));
            let posts: Vec<_> = posts.map(|(compaction, post)| (compaction, post.collect::<Vec<_>>())).collect();
            (boundary.pre.into_iter().map(|pre| pre.rollout).collect::<Vec<_>>(), posts)
        });
        boundaries.collect::<Vec<_>>()
    };
    for rate in [0.1, 0.3, 0.9] {
        let one = outcomes(1, rate);
        assert_eq!(one, outcomes(9, rate));
        let compactions = one.iter().flat_map(|(_, posts)| posts).map(|(compaction, _)| compaction);
        let n_failed = compactions.filter(|it| matches!(it, Compaction::Failed { .. })).count();
        let n_broken = one.iter().flat_map(|(pre, _)| pre).filter(|rollout| rollout.end.is_failure()).count();
        assert!(rate < 0.9 || n_failed + n_broken > 0);
    }
}
