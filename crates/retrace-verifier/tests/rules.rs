//! The rules of a verification, each seen to hold.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "rules/caches.rs"]
mod caches;
#[path = "rules/chains.rs"]
mod chains;
#[path = "rules/early.rs"]
mod early;
#[path = "rules/journal.rs"]
mod journal;
#[path = "rules/memory.rs"]
mod memory;
#[path = "rules/refusals.rs"]
mod refusals;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use retrace_agent::{Agent, AgentError, RunContext, Turn};
use retrace_env::{
    CallError, Environment, FnTool, NoArguments, ReplayEnvironment, RestoreError, Toolbox, ToolboxBuilder,
};
use retrace_events::cuts::Spacing;
use retrace_events::{EndReason, Event, Header, History, Outcome, PartBody, Recording, Response, ToolCall, ToolResult};
use retrace_model::{Answer, Backoff, Cassette, CassetteRecorder, Model, ModelError, Prompt, ScriptedModel, Step};
use retrace_score::{Compaction, Verification};
use retrace_strategies::{
    BoxFuture, Business, CompactContext, CompactError, Compacted, Identity, Strategy, Summarize, TailWindow,
};
use retrace_verifier::{Group, Progress, Settings, TimeLimits, Verifier, VerifyError};

/// A recording of `n_rounds` calls of `count`, each answered with its number.
fn recording(id: &str, n_rounds: usize) -> Recording {
    let rounds = (1..=n_rounds).flat_map(|number| {
        let call = ToolCall::new("c", "count", "{}");
        let result = ToolResult::text_result(&call, Outcome::Ok, number.to_string());
        [Event::calls([call]), Event::results([result])]
    });
    Recording::new(Header::new(id), [Event::request("Count on.")].into_iter().chain(rounds))
}

/// A world that counts its calls.
fn counter(world: &Arc<Mutex<usize>>) -> ToolboxBuilder {
    Toolbox::builder().tool(FnTool::on(world, "count", "Counts.", |number, _: NoArguments| {
        *number += 1;
        number.to_string()
    }))
}

fn fresh_counters() -> ReplayEnvironment {
    ReplayEnvironment::new(|| counter(&Arc::default()))
}

/// Calls `count` or ends its turn, as its seed says, and writes down what it was shown.
#[derive(Default)]
struct Counting {
    shown: Mutex<Vec<History>>,
}

impl Model for Counting {
    fn name(&self) -> &str {
        "counting"
    }

    fn respond<'a>(&'a self, prompt: &'a Prompt<'a>) -> BoxFuture<'a, Result<Answer, ModelError>> {
        self.shown.lock().unwrap().push(prompt.history.clone());
        let content = if prompt.tools.is_empty() {
            vec![retrace_events::Part::text("counted so far")]
        } else if prompt.seed.is_multiple_of(4) {
            Vec::new()
        } else {
            vec![PartBody::ToolCall(ToolCall::new("c", "count", "{}")).into()]
        };
        Box::pin(std::future::ready(Ok(Response { content: content.into(), ..Response::default() }.into())))
    }
}

/// A strategy that is a function.
struct Custom(Box<Compactor>);

type Compactor = dyn Fn(&History) -> Result<Compacted, CompactError> + Send + Sync;

fn custom(function: impl Fn(&History) -> Result<Compacted, CompactError> + Send + Sync + 'static) -> Arc<dyn Strategy> {
    Arc::new(Custom(Box::new(function)))
}

impl Strategy for Custom {
    fn kind(&self) -> &'static str {
        "custom"
    }

    fn business(&self) -> Business {
        Business::Drops
    }

    fn compact<'a>(
        &'a self,
        history: &'a History,
        _cx: &'a mut CompactContext<'_>,
    ) -> BoxFuture<'a, Result<Compacted, CompactError>> {
        Box::pin(async { (self.0)(history) })
    }
}

fn fails() -> Arc<dyn Strategy> {
    custom(|_| Err(CompactError::EmptySummary))
}

fn settings() -> Settings {
    Settings { samples: 2, horizon: 3, seed: 5, spacing: Spacing::new(2, 2).unwrap(), ..Settings::default() }
}

/// Boundaries after 2 and 4 of 6 actions.
fn verifier(model: &Arc<Counting>) -> Verifier {
    Verifier::new(Arc::<Counting>::clone(model), settings())
        .group(Group::new([recording("a", 6)], Arc::new(fresh_counters())))
}

fn run(verifier: Verifier) -> Verification {
    run_with(verifier, &|_| {})
}

fn run_with(verifier: Verifier, progress: &(dyn Fn(Progress) + Sync)) -> Verification {
    runtime().block_on(verifier.run(progress)).unwrap()
}

fn refused(verifier: Verifier) -> VerifyError {
    runtime().block_on(verifier.run(&|_| {})).unwrap_err()
}

fn runtime() -> tokio::runtime::Runtime {
    // Time stands still but for what waits for it.
    tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap()
}

fn n_rollouts(verification: &Verification) -> Vec<(usize, BTreeMap<&str, usize>)> {
    verification
        .boundaries
        .iter()
        .map(|boundary| {
            let posts = boundary.strategies.iter().map(|(name, outcome)| (&**name, outcome.post.len())).collect();
            (boundary.pre.len(), posts)
        })
        .collect()
}

#[test]
fn one_set_of_pre_rollouts_serves_every_strategy() {
    let model = Arc::default();
    let verification = run(verifier(&model)
        .strategy("tail", Arc::new(TailWindow::new(2)))
        .strategy("summary", Arc::new(Summarize::new(2))));
    let posts = BTreeMap::from([("control", 2), ("tail", 2), ("summary", 2)]);
    assert_eq!(n_rollouts(&verification), vec![(2, posts.clone()), (2, posts)]);
    assert_eq!(verification.strategies, ["control", "tail", "summary"]);
    let cuts: Vec<_> = verification.boundaries.iter().map(|boundary| (boundary.cut, boundary.executed)).collect();
    assert_eq!(cuts, [(5, 2), (9, 4)]);
    let summary = &verification.boundaries[0].strategies["summary"];
    assert_eq!(summary.spend.n_model_calls, 1);
    assert!(matches!(summary.compaction, Compaction::Compacted { size: Some(size), .. } if size.events == 3));
}

#[test]
fn where_every_strategy_but_the_control_failed_nothing_runs() {
    let model = Arc::<Counting>::default();
    let verification = run(verifier(&model).strategy("a", fails()).strategy("b", fails()));
    let none = BTreeMap::from([("control", 0), ("a", 0), ("b", 0)]);
    assert_eq!(n_rollouts(&verification), vec![(0, none.clone()), (0, none)]);
    assert_eq!(model.shown.lock().unwrap().len(), 0);
    let failed = &verification.boundaries[0].strategies["a"].compaction;
    assert_eq!(*failed, Compaction::Failed { error: "the summary is empty".to_owned() });
}

#[test]
fn where_the_others_changed_nothing_only_pre_and_the_control_run() {
    let model = Arc::default();
    let verification = run(verifier(&model).strategy("wide", Arc::new(TailWindow::new(99))).strategy("bad", fails()));
    let posts = BTreeMap::from([("control", 2), ("wide", 0), ("bad", 0)]);
    assert_eq!(n_rollouts(&verification), vec![(2, posts.clone()), (2, posts)]);

    let verification = run(verifier(&model).strategy("wide", Arc::new(TailWindow::new(99))).control(false));
    assert_eq!(n_rollouts(&verification)[0], (0, BTreeMap::from([("wide", 0)])));
    assert_eq!(verification.control, None);
}

#[test]
fn a_strategy_that_breaks_costs_itself() {
    let model = Arc::default();
    let verification = run(verifier(&model)
        .strategy("panics", custom(|_| panic!("no idea")))
        .strategy("empties", custom(|_| Ok(Compacted::Changed(History::from(Vec::new())))))
        .strategy(
            "forgets",
            custom(|history| Ok(Compacted::Changed(History::new(history.iter().take(2).cloned().collect::<Vec<_>>())))),
        )
        .strategy("lies", custom(|history| Ok(Compacted::Changed(history.clone()))))
        .strategy("tail", Arc::new(TailWindow::new(2))));
    let outcomes = &verification.boundaries[0].strategies;
    let failed = Compaction::Failed { error: "the strategy panicked: no idea".to_owned() };
    assert_eq!(outcomes["panics"].compaction, failed);
    assert_eq!(flaw(&verification, "empties"), "nothing was kept");
    assert_eq!(flaw(&verification, "forgets"), "the newest results are not kept at the end");
    assert_eq!(outcomes["lies"].compaction, Compaction::Unchanged);
    assert_eq!(outcomes["tail"].post.len(), 2);
}

/// What is wrong with what a strategy kept at the first boundary.
fn flaw<'a>(verification: &'a Verification, strategy: &str) -> &'a str {
    match &verification.boundaries[0].strategies[strategy].compaction {
        Compaction::Flawed { flaw } => flaw,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_outcome_depends_on_the_seed_and_not_on_the_concurrency() {
    let with = |concurrency, seed| {
        let model = Arc::<Counting>::default();
        let settings = Settings { concurrency, seed, samples: 5, ..settings() };
        let verification = run(Verifier::new(model, settings)
            .strategy("tail", Arc::new(TailWindow::new(2)))
            .group(Group::new([recording("a", 9), recording("b", 7)], Arc::new(fresh_counters()))));
        let rollouts = verification.boundaries.into_iter().map(|boundary| {
            let posts = boundary.strategies.into_iter().map(|(name, outcome)| (name, outcome.post));
            (boundary.recording, boundary.cut, boundary.pre, posts.collect::<Vec<_>>())
        });
        rollouts.collect::<Vec<_>>()
    };
    assert_eq!(with(1, 1), with(7, 1));
    assert_ne!(with(1, 1), with(1, 2));
}

#[test]
fn no_agent_is_shown_what_the_recorded_run_did_later_and_histories_are_shared() {
    let model = Arc::<Counting>::default();
    let source = recording("a", 6);
    let events = Arc::clone(&source.events);
    let verifier = Verifier::new(Arc::<Counting>::clone(&model), Settings { horizon: 1, ..settings() })
        .strategy("tail", Arc::new(TailWindow::new(2)))
        .group(Group::new([source], Arc::new(fresh_counters())).cuts([9]));
    run(verifier);
    for history in model.shown.lock().unwrap().iter() {
        for event in history.iter() {
            let place = events.iter().position(|recorded| Arc::ptr_eq(recorded, event));
            assert!(place.expect("a pointer into the recording") < 9);
        }
    }
}

#[test]
fn given_cuts_are_sorted_and_taken_once_and_a_wrong_one_is_named() {
    let with = |cuts: Vec<usize>| {
        Verifier::new(Arc::<Counting>::default(), settings())
            .strategy("tail", Arc::new(TailWindow::new(2)))
            .group(Group::new([recording("a", 6)], Arc::new(fresh_counters())).cuts(cuts))
    };
    let cuts: Vec<_> = run(with(vec![9, 3, 9, 3])).boundaries.iter().map(|boundary| boundary.cut).collect();
    assert_eq!(cuts, [3, 9]);
    let error = refused(with(vec![3, 4]));
    assert!(error.to_string().starts_with("recording `a` cannot be cut after 4 of its 13 events"), "{error}");
    let hint = error.hint().unwrap();
    assert!(hint.starts_with("the nearest cuts are after 3 and 5 events; "), "{hint}");
    assert!(matches!(refused(with(vec![])), VerifyError::NoCuts));
}

#[test]
fn what_cannot_run_is_refused_before_anything_is_spent() {
    let tail = || -> Arc<dyn Strategy> { Arc::new(TailWindow::new(2)) };
    let new = |settings| Verifier::new(Arc::<Counting>::default(), settings);
    assert!(matches!(refused(new(settings())), VerifyError::NoStrategies));
    let error = refused(new(settings()).strategy("tail", tail()).strategy("tail", tail()));
    assert!(matches!(error, VerifyError::DuplicateStrategy { name } if name == "tail"));
    let error = refused(new(settings()).strategy("control", tail()));
    assert!(matches!(error, VerifyError::ControlNameTaken));
    for name in ["", " ", "tail "] {
        assert!(matches!(refused(new(settings()).strategy(name, tail())), VerifyError::BadName { .. }));
    }
    for (setting, settings) in [
        ("horizon", Settings { horizon: 0, ..settings() }),
        ("samples", Settings { samples: 0, ..settings() }),
        ("concurrency", Settings { concurrency: 0, ..settings() }),
    ] {
        let error = refused(new(settings).strategy("tail", tail()));
        assert!(matches!(error, VerifyError::OutOfRange { setting: other, value: 0, .. } if other == setting));
    }
    let error = refused(new(Settings { samples: u32::MAX, ..settings() }).strategy("tail", tail()));
    assert_eq!(error.to_string(), "`samples` is 4294967295, and must be from 1 to 10000");
    let limits = TimeLimits { restore: Duration::MAX, ..TimeLimits::default() };
    let error = refused(new(Settings { limits, ..settings() }).strategy("tail", tail()));
    assert!(matches!(error, VerifyError::OutOfRange { setting: "limits.restore", .. }));
    let asks = Summarize { target: 2, model: Some("another".to_owned()) };
    let error = refused(new(settings()).strategy("summary", Arc::new(asks)));
    assert!(matches!(error, VerifyError::UnknownModel { model, .. } if model == "another"));
}

#[test]
fn a_recording_that_cannot_be_used_costs_itself() {
    let model = Arc::<Counting>::default();
    let verification = run(Verifier::new(model, settings())
        .strategy("tail", Arc::new(TailWindow::new(2)))
        .group(Group::new([recording("a", 6), recording("a", 9), recording("short", 1)], Arc::new(fresh_counters()))));
    assert_eq!(verification.unusable[0].name, "a");
    let ids: Vec<_> = verification.recordings.iter().map(|facts| &*facts.id).collect();
    assert_eq!(ids, ["a", "short"]);
    assert_eq!(verification.boundaries.len(), 2);
}

#[test]
fn without_a_boundary_no_model_is_asked() {
    let model = Arc::<Counting>::default();
    let verification = run(Verifier::new(Arc::<Counting>::clone(&model), settings())
        .strategy("summary", Arc::new(Summarize::new(2)))
        .group(Group::new([recording("short", 1)], Arc::new(fresh_counters()))));
    assert_eq!((verification.boundaries.len(), model.shown.lock().unwrap().len()), (0, 0));
    assert_eq!(verification.recordings[0].length.unwrap().n_actions, 1);
}

/// The recording, but its call of this number, from 1, is said to have failed.
fn recorded_wrongly(number: usize) -> Recording {
    let mut wrong = recording("wrong", 6);
    let call = ToolCall::new("c", "count", "{}");
    let mut events = wrong.events.to_vec();
    events[2 * number] = Arc::new(Event::results([ToolResult::text_result(&call, Outcome::Error, "out of order")]));
    wrong.events = events.into();
    wrong
}

#[test]
fn nothing_runs_at_a_boundary_whose_replay_goes_another_way() {
    let model = Arc::<Counting>::default();
    let asked = Arc::clone(&model);
    let replayed = Mutex::new(Vec::new());
    let verifier = Verifier::new(model, settings())
        .strategy("tail", Arc::new(TailWindow::new(2)))
        .group(Group::new([recorded_wrongly(3), recording("right", 6)], Arc::new(fresh_counters())));
    let verification = run_with(verifier, &|progress| {
        if let Progress::Replayed { recording, replay, n_unusable, reason, .. } = progress {
            assert!(asked.shown.lock().unwrap().is_empty());
            let n_replayed = replay.map(|replay| replay.n_replayed);
            replayed.lock().unwrap().push((recording, n_replayed, n_unusable, reason.is_some()));
        }
    });
    let expected = [("wrong".to_owned(), Some(2), 1, true), ("right".to_owned(), Some(4), 0, false)];
    assert_eq!(*replayed.lock().unwrap(), expected);
    let ran = |at: usize| {
        let boundary = &verification.boundaries[at];
        (boundary.pre.len(), boundary.strategies.len(), boundary.unusable.as_deref().unwrap_or(""))
    };
    let reason = "replay of recording `wrong` diverged at action 3: `count({})` was recorded as a failure and now succeeds \
                  with `3`";
    assert_eq!([ran(0), ran(1), ran(2), ran(3)], [(2, 2, ""), (0, 0, reason), (2, 2, ""), (2, 2, "")]);
}

#[test]
fn an_environment_that_names_a_wrong_place_is_not_asked_forever() {
    struct Lost;

    impl Environment for Lost {
        fn open(&self) -> BoxFuture<'_, Result<Toolbox, RestoreError>> {
            let (recording, call, source) =
                ("a".to_owned(), "count({})".to_owned(), CallError::Environment { message: "lost".to_owned() });
            Box::pin(std::future::ready(Err(RestoreError::Call { recording, call, position: 1_000, source })))
        }
    }

    let lost = Verifier::new(Arc::<Counting>::default(), settings())
        .strategy("tail", Arc::new(TailWindow::new(2)))
        .group(Group::new([recording("a", 6)], Arc::new(Lost)));
    assert!(matches!(refused(lost), VerifyError::NothingReplays { n_boundaries: 2, .. }));
}

#[test]
fn where_no_recording_replays_as_far_as_a_boundary_nothing_is_spent() {
    let model = Arc::<Counting>::default();
    let verifier = Verifier::new(Arc::<Counting>::clone(&model), settings())
        .strategy("tail", Arc::new(TailWindow::new(2)))
        .group(Group::new([recorded_wrongly(1)], Arc::new(fresh_counters())));
    let error = refused(verifier);
    assert!(matches!(error, VerifyError::NothingReplays { n_boundaries: 2, .. }), "{error}");
    assert!(model.shown.lock().unwrap().is_empty());
}

#[test]
fn a_model_is_given_the_time_it_asks_for_and_is_then_asked_again() {
    let busy =
        || ModelError::RateLimited { message: "slow down".to_owned(), retry_after: Some(Duration::from_secs(70)) };
    let script = (0..2).flat_map(|_| [Step::from(busy()), Step::from(busy()), Step::from("done")]);
    let model = ScriptedModel::new(script);
    let settings = Settings { samples: 1, concurrency: 1, ..settings() };
    let verification = run(Verifier::new(Arc::new(model), settings)
        .strategy("tail", Arc::new(TailWindow::new(2)))
        .control(false)
        .group(Group::new([recording("a", 6)], Arc::new(fresh_counters())).cuts([5])));
    let boundary = &verification.boundaries[0];
    for rollout in boundary.pre.iter().chain(&boundary.strategies["tail"].post) {
        assert_eq!(rollout.end, EndReason::Answer);
    }
}

/// A model that never answers.
struct Silent;

impl Model for Silent {
    fn name(&self) -> &str {
        "silent"
    }

    fn respond<'a>(&'a self, _: &'a Prompt<'a>) -> BoxFuture<'a, Result<Answer, ModelError>> {
        Box::pin(std::future::pending())
    }
}

/// How the PRE rollouts of the first boundary ended.
fn failures(verification: Verification) -> Vec<String> {
    let ends = verification.boundaries[0].pre.iter().map(|rollout| rollout.end.to_string());
    ends.collect::<std::collections::BTreeSet<_>>().into_iter().collect()
}

#[test]
fn whatever_leaves_the_program_has_a_time_limit() {
    let limits = TimeLimits {
        model: Duration::from_secs(1),
        tool: Duration::from_secs(2),
        restore: Duration::from_secs(3),
        strategy: Duration::from_secs(40),
        rollout: Duration::from_secs(50),
    };
    let backoff = Backoff { max_attempts: 2, ..Backoff::default() };
    let tail = || Arc::new(TailWindow::new(2));
    let settings = || Settings { limits, backoff, ..settings() };

    let group = || Group::new([recording("a", 6)], Arc::new(fresh_counters()));
    let silent = run(Verifier::new(Arc::new(Silent), settings()).strategy("tail", tail()).group(group()));
    assert_eq!(failures(silent), ["model: no answer within 1s"]);

    let asks =
        run(Verifier::new(Arc::new(Silent), settings()).strategy("s", Arc::new(Summarize::new(2))).group(group()));
    let failed = Compaction::Failed { error: "the model call failed: no answer within 1s".to_owned() };
    assert_eq!(asks.boundaries[0].strategies["s"].compaction, failed);

    // The world answers the recorded calls, and then no more.
    let stuck = ReplayEnvironment::new(|| {
        let calls = Arc::new(AtomicUsize::new(0));
        Toolbox::builder().tool(FnTool::new_async("count", "Counts.", move |_: NoArguments| {
            let number = calls.fetch_add(1, Ordering::Relaxed) + 1;
            async move {
                if number > 2 {
                    std::future::pending::<()>().await;
                }
                number.to_string()
            }
        }))
    });
    let model = Arc::<Counting>::default();
    let group = Group::new([recording("a", 6)], Arc::new(stuck)).cuts([5]);
    let stuck = run(Verifier::new(model, Settings { seed: 1, ..settings() }).strategy("tail", tail()).group(group));
    assert!(failures(stuck).contains(&"environment: the tool `count` gave no answer within 2s".to_owned()));

    struct Never;
    impl retrace_env::Environment for Never {
        fn open(&self) -> BoxFuture<'_, Result<Toolbox, retrace_env::RestoreError>> {
            Box::pin(std::future::pending())
        }
    }
    let group = Group::new([recording("a", 6)], Arc::new(Never));
    let never = run(Verifier::new(Arc::<Counting>::default(), settings()).strategy("tail", tail()).group(group));
    let wanted = "restore: the environment could not be built: it was not restored within 3s";
    assert_eq!(failures(never), [wanted]);
}

#[test]
fn a_world_that_can_be_cloned_sees_each_recorded_call_once() {
    let n_calls = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&n_calls);
    let environment = ReplayEnvironment::cloned(0_usize, move |world| {
        let seen = Arc::clone(&seen);
        Toolbox::builder().tool(FnTool::on(world, "count", "Counts.", move |number, _: NoArguments| {
            seen.fetch_add(1, Ordering::Relaxed);
            *number += 1;
            number.to_string()
        }))
    });
    // A model that ends its turn at once, so that only replays and the check of the environment make calls.
    let model = ScriptedModel::new(vec!["done"; 100]);
    let settings = Settings { samples: 10, ..settings() };
    let verification = run(Verifier::new(Arc::new(model), settings)
        .strategy("tail", Arc::new(TailWindow::new(2)))
        .group(Group::new([recording("a", 6)], Arc::new(environment))));
    assert_eq!(verification.boundaries.len(), 2);
    assert!(verification.boundaries.iter().all(|boundary| boundary.pre.len() == 10));
    // Two boundaries, the later after 4 actions; the check tries the 4 calls after the first boundary in two worlds.
    assert_eq!(n_calls.load(Ordering::Relaxed), 4 + 2 * 4);
    let replay = verification.recordings[0].replay.as_ref().unwrap();
    assert_eq!((replay.n_replayed, replay.n_different), (4, 0));
}

#[test]
fn progress_accounts_for_every_planned_rollout() {
    let (planned, ended) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let verifier = verifier(&Arc::default())
        .strategy("tail", Arc::new(TailWindow::new(2)))
        .strategy("wide", Arc::new(TailWindow::new(99)))
        .strategy("bad", fails());
    run_with(verifier, &|progress| match progress {
        Progress::Planned { n_rollouts, .. } => planned.store(n_rollouts, Ordering::Relaxed),
        Progress::NotNeeded { n_rollouts } => drop(ended.fetch_add(n_rollouts, Ordering::Relaxed)),
        Progress::RolledOut { .. } => drop(ended.fetch_add(1, Ordering::Relaxed)),
        _ => {}
    });
    assert_eq!((planned.into_inner(), ended.into_inner()), (20, 20));
}

#[test]
fn an_environment_that_hands_out_one_world_is_found() {
    let one = Arc::<Mutex<usize>>::default();
    let shared = ReplayEnvironment::new(move || counter(&one));
    let verification = run(Verifier::new(Arc::<Counting>::default(), settings())
        .strategy("tail", Arc::new(TailWindow::new(2)))
        .group(Group::new([recording("a", 6)], Arc::new(shared)))
        .group(Group::new([recording("b", 6)], Arc::new(fresh_counters()))));
    let found: Vec<_> = verification.recordings.iter().map(|facts| facts.worlds_differ.is_some()).collect();
    assert_eq!(found, [true, false]);
}

#[test]
fn a_strategy_may_ask_the_run_s_own_model_or_another_by_name() {
    for name in ["counting", "other"] {
        let other = Arc::<Counting>::default();
        let asks = Summarize { target: 2, model: Some(name.to_owned()) };
        let verification =
            run(verifier(&Arc::default()).model("other", Arc::<Counting>::clone(&other)).strategy("s", Arc::new(asks)));
        assert!(matches!(verification.boundaries[0].strategies["s"].compaction, Compaction::Compacted { .. }));
        assert_eq!(other.shown.lock().unwrap().len(), if name == "other" { 2 } else { 0 });
    }
}

/// An environment that panics.
struct Broken;

impl retrace_env::Environment for Broken {
    fn open(&self) -> BoxFuture<'_, Result<Toolbox, retrace_env::RestoreError>> {
        Box::pin(async { panic!("no world") })
    }
}

#[test]
fn an_environment_that_panics_costs_its_rollouts() {
    let settings = Settings { give_up_after: usize::MAX, ..settings() };
    let verification = run(Verifier::new(Arc::<Counting>::default(), settings)
        .strategy("tail", Arc::new(TailWindow::new(2)))
        .group(Group::new([recording("a", 6)], Arc::new(Broken)))
        .group(Group::new([recording("b", 6)], Arc::new(fresh_counters()))));
    let failed: Vec<_> = verification.boundaries.iter().map(|boundary| boundary.pre[0].end.is_failure()).collect();
    assert_eq!(failed, [true, true, false, false]);
}

#[test]
fn of_several_identities_the_one_called_control_is_the_control() {
    let identity = || -> Arc<dyn Strategy> { Arc::new(Identity {}) };
    let two = verifier(&Arc::default()).strategy("other", identity()).strategy("control", identity());
    assert_eq!(run(two).control.as_deref(), Some("control"));
    let named = verifier(&Arc::default()).strategy("tail", Arc::new(TailWindow::new(2))).strategy("raw", identity());
    assert_eq!(run(named).control.as_deref(), Some("raw"));
}

/// An agent that looks away from what it is to resume from: it asks its model about the newest event alone.
struct Forgetful;

impl Agent for Forgetful {
    fn resume<'a>(&'a self, history: History, cx: &'a RunContext<'a>) -> BoxFuture<'a, Result<Turn, AgentError>> {
        Box::pin(async move {
            let newest = History::new(history.last().map(Arc::clone).into_iter().collect::<Vec<_>>());
            cx.respond(&newest).await?;
            Ok(Turn::Ended(history))
        })
    }
}

#[test]
fn a_rollout_whose_model_never_saw_the_arms_history_says_nothing() {
    let model = Arc::new(ScriptedModel::new(["done"; 20]));
    let verification = run(Verifier::new(model, settings())
        .agent(Arc::new(Forgetful))
        .strategy("tail", Arc::new(TailWindow::new(2)))
        .group(Group::new([recording("a", 6)], Arc::new(fresh_counters()))));
    let wanted = "agent: the model was not sent the history that the agent was to resume from";
    assert_eq!(failures(verification), [wanted]);
}

/// Bytes that two own.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_verification_is_repeated_from_a_cassette_without_its_model() {
    let rollouts = |verification: Verification| {
        let boundaries = verification.boundaries.into_iter();
        boundaries
            .map(|it| (it.pre, it.strategies["s"].compaction.clone(), it.strategies["s"].post.clone()))
            .collect::<Vec<_>>()
    };
    let bytes = Shared::default();
    let recorder = CassetteRecorder::new(bytes.clone()).unwrap();
    let around = move |model| recorder.around(model);
    let strategy = || Arc::new(Summarize::new(2));
    let recorded = run(verifier(&Arc::default()).strategy("s", strategy()).around_models(around));

    let cassette = Cassette::read(&bytes.0.lock().unwrap()[..], "a.cassette").unwrap();
    let player = cassette.clone();
    let replayed = run(Verifier::new(player.model("counting"), Settings { concurrency: 1, ..settings() })
        .group(Group::new([recording("a", 6)], Arc::new(fresh_counters())))
        .strategy("s", strategy())
        .around_models(move |model| player.model(model.name())));
    assert_eq!(rollouts(replayed), rollouts(recorded));
    assert_eq!((cassette.n_missed(), cassette.n_unused()), (0, 0));
}
