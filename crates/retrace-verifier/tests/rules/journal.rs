//! Runs that are kept in a folder, stopped anywhere, and go on.

use std::fs;
use std::path::Path;

use retrace_journal::{Run, Shard, merge};
use retrace_report::write_report;
use retrace_score::{Judging, Reporter};
use retrace_verifier::{RunFolder, SpendLimit, Stop, StopSignal};
use serde_json::json;
use tempfile::TempDir;

use super::*;

/// A verification of three recordings, two strategies and the control, by a model that counts what it is asked.
fn counted(model: &Arc<Counting>, settings: Settings) -> Verifier {
    let recordings = ["a", "b", "c"].map(|id| recording(id, 6));
    Verifier::new(Arc::<Counting>::clone(model), settings)
        .strategy("tail", Arc::new(TailWindow::new(2)))
        .strategy("summary", Arc::new(Summarize::new(3)))
        .group(Group::new(recordings, Arc::new(fresh_counters())))
}

fn folder(path: &Path) -> RunFolder {
    RunFolder { path: path.to_owned(), setup: json!({"agent": "counting"}), ..RunFolder::default() }
}

fn run_in(verifier: Verifier, folder: &RunFolder) -> Option<Stop> {
    try_run_in(verifier, folder).unwrap()
}

fn try_run_in(verifier: Verifier, folder: &RunFolder) -> Result<Option<Stop>, VerifyError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(verifier.run_in(folder, &|_| {}))
}

/// The report of what a folder holds.
fn report(folder: &Path) -> String {
    let run = Run::read(folder).unwrap();
    let boundaries = run.boundaries().collect::<Result<_, _>>().unwrap();
    json_of(Verification { boundaries, ..run.verification() })
}

fn json_of(mut verification: Verification) -> String {
    let outcomes = std::mem::take(&mut verification.boundaries);
    let mut reporter = Reporter::new(verification).unwrap();
    let scored: Vec<_> = outcomes.into_iter().map(|outcome| reporter.add(outcome).unwrap()).collect();
    let mut written = Vec::new();
    write_report(&mut written, &reporter.finish(), scored.into_iter().map(Ok::<_, std::io::Error>)).unwrap();
    String::from_utf8(written).unwrap()
}

/// Cuts the journal of a run after so many bytes.
fn cut(from: &Path, to: &Path, n_bytes: usize) {
    fs::create_dir_all(to).unwrap();
    fs::copy(from.join("manifest.json"), to.join("manifest.json")).unwrap();
    let bytes = fs::read(from.join("journal.jsonl")).unwrap();
    fs::write(to.join("journal.jsonl"), &bytes[..n_bytes]).unwrap();
}

fn n_asked(model: &Counting) -> usize {
    model.shown.lock().unwrap().len()
}

#[test]
fn a_run_that_was_cut_off_anywhere_goes_on_to_the_same_report() {
    for (chain, concurrency) in [(false, 1), (false, 4), (true, 3)] {
        let settings = || Settings { chain, concurrency, ..settings() };
        let place = TempDir::new().unwrap();
        let (whole, part) = (place.path().join("whole"), place.path().join("part"));
        let model = Arc::default();
        assert_eq!(run_in(counted(&model, settings()), &folder(&whole)), None);
        let expected = report(&whole);
        let in_memory = run(counted(&Arc::default(), settings()));
        assert!(json_of(in_memory) == expected);

        let bytes = fs::read(whole.join("journal.jsonl")).unwrap();
        let lines = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(index, _)| index + 1);
        let ends: Vec<_> = [0].into_iter().chain(lines).collect();
        let step = retrace_testing::cases(11, 1) as usize;
        for (number, window) in ends.windows(2).enumerate().step_by(step) {
            // At the end of a record, and in the middle of the next.
            for n_bytes in [window[0], (window[0] + window[1]) / 2] {
                cut(&whole, &part, n_bytes);
                let again = Arc::default();
                assert_eq!(run_in(counted(&again, settings()), &folder(&part)), None);
                assert!(report(&part) == expected, "{number}");
                let n_lines = |folder: &Path| fs::read_to_string(folder.join("journal.jsonl")).unwrap().lines().count();
                assert_eq!(n_lines(&part), n_lines(&whole), "nothing is written twice");
                assert!(n_asked(&again) <= n_asked(&model));
                fs::remove_dir_all(&part).unwrap();
            }
        }
        let again = Arc::default();
        assert_eq!(run_in(counted(&again, settings()), &folder(&whole)), None);
        assert!(n_asked(&again) == 0 && report(&whole) == expected);
    }
}

#[test]
fn a_run_is_extended_by_samples_strategies_and_recordings() {
    let place = TempDir::new().unwrap();
    let (grown, whole) = (place.path().join("grown"), place.path().join("whole"));
    let small = |model: &Arc<Counting>| {
        Verifier::new(Arc::<Counting>::clone(model), Settings { samples: 1, ..settings() })
            .strategy("tail", Arc::new(TailWindow::new(2)))
            .group(Group::new([recording("b", 6)], Arc::new(fresh_counters())))
    };
    let (first, second, all) = (Arc::default(), Arc::default(), Arc::default());
    run_in(small(&first), &folder(&grown));
    run_in(counted(&second, settings()), &folder(&grown));
    run_in(counted(&all, settings()), &folder(&whole));
    assert!(report(&grown) == report(&whole));
    assert_eq!(n_asked(&first) + n_asked(&second), n_asked(&all), "only what was missing ran");
    // What has grown does not shrink again.
    let error = try_run_in(small(&Arc::default()), &folder(&grown)).unwrap_err();
    assert!(error.to_string().contains("`samples` was 2 and is now 1"), "{error}");
}

#[test]
fn another_setup_is_refused_and_named() {
    let place = TempDir::new().unwrap();
    run_in(counted(&Arc::default(), settings()), &folder(place.path()));
    let other = RunFolder { setup: json!({"agent": "other"}), ..folder(place.path()) };
    let error = try_run_in(counted(&Arc::default(), settings()), &other).unwrap_err();
    assert!(error.to_string().contains("`setup.agent` was \"counting\" and is now \"other\""), "{error}");
    // How much at once is nobody's business.
    let settings = Settings { concurrency: 9, ..settings() };
    assert_eq!(run_in(counted(&Arc::default(), settings), &folder(place.path())), None);
}

/// Refuses everything, until it has its key.
struct NoKey;

impl Model for NoKey {
    fn name(&self) -> &str {
        "counting"
    }

    fn respond<'a>(&'a self, _: &'a Prompt<'a>) -> BoxFuture<'a, Result<Answer, ModelError>> {
        Box::pin(std::future::ready(Err(ModelError::Refused { message: "no key".to_owned() })))
    }
}

#[test]
fn a_run_whose_first_rollouts_all_fail_alike_stops_and_runs_them_again_once_mended() {
    let place = TempDir::new().unwrap();
    let settings = || Settings { give_up_after: 5, concurrency: 2, ..settings() };
    let verifier = |model: Arc<dyn Model>| {
        Verifier::new(model, settings())
            .strategy("tail", Arc::new(TailWindow::new(2)))
            .group(Group::new([recording("a", 6)], Arc::new(fresh_counters())))
    };
    let stop = run_in(verifier(Arc::new(NoKey)), &folder(place.path())).unwrap();
    assert_eq!(stop.to_string(), "the first 5 rollouts all failed alike: model: refused: no key");
    let n_there = Run::read(place.path()).unwrap().n_rollouts();
    assert!((5..=6).contains(&n_there), "what was at work is finished, and no more: {n_there}");
    assert!(report(place.path()).contains("all failed alike"));

    let model = Arc::<Counting>::default();
    assert_eq!(run_in(verifier(Arc::<Counting>::clone(&model)), &folder(place.path())), None);
    let expected = run(verifier(Arc::<Counting>::default()));
    assert!(report(place.path()) == json_of(expected));
}

#[test]
fn what_a_run_gave_up_for_runs_again_whatever_worked_before() {
    let place = TempDir::new().unwrap();
    let verifier = |model: Arc<dyn Model>, tokens| {
        let spend_limit = SpendLimit { tokens, dollars: None };
        Verifier::new(model, Settings { give_up_after: 3, spend_limit, ..settings() })
            .strategy("tail", Arc::new(TailWindow::new(2)))
            .group(Group::new([recording("a", 6)], Arc::new(fresh_counters())))
    };
    run_in(verifier(Arc::new(Talkative), Some(30)), &folder(place.path())).unwrap();
    let n_before = Run::read(place.path()).unwrap().n_rollouts();
    let broken = Named("talkative", NoKey);
    assert!(matches!(run_in(verifier(Arc::new(broken), None), &folder(place.path())), Some(Stop::AllAlike { .. })));
    assert!(Run::read(place.path()).unwrap().n_rollouts() >= n_before + 3);
    assert_eq!(run_in(verifier(Arc::new(Talkative), None), &folder(place.path())), None);
    let (shown, expected) = (report(place.path()), json_of(run(verifier(Arc::new(Talkative), None))));
    let differs = shown.lines().zip(expected.lines()).find(|(shown, expected)| shown != expected);
    assert_eq!(differs, None);
}

/// A model under another name.
struct Named<M>(&'static str, M);

impl<M: Model> Model for Named<M> {
    fn name(&self) -> &str {
        self.0
    }

    fn respond<'a>(&'a self, prompt: &'a Prompt<'a>) -> BoxFuture<'a, Result<Answer, ModelError>> {
        self.1.respond(prompt)
    }
}

#[test]
fn compactions_that_left_nothing_to_run_are_tried_again() {
    let place = TempDir::new().unwrap();
    let verifier = |model: Arc<dyn Model>| {
        Verifier::new(model, settings())
            .strategy("summary", Arc::new(Summarize::new(3)))
            .group(Group::new([recording("a", 6)], Arc::new(fresh_counters())))
    };
    assert_eq!(run_in(verifier(Arc::new(NoKey)), &folder(place.path())), None);
    assert_eq!(Run::read(place.path()).unwrap().n_rollouts(), 0);
    assert_eq!(run_in(verifier(Arc::<Counting>::default()), &folder(place.path())), None);
    assert!(report(place.path()) == json_of(run(verifier(Arc::<Counting>::default()))));
}

#[test]
fn a_finished_run_has_spent_what_it_may_and_is_finished_all_the_same() {
    let place = TempDir::new().unwrap();
    let verifier = |tokens| {
        let spend_limit = SpendLimit { tokens, dollars: None };
        Verifier::new(Arc::new(Talkative), Settings { spend_limit, ..settings() })
            .strategy("tail", Arc::new(TailWindow::new(2)))
            .group(Group::new([recording("a", 6)], Arc::new(fresh_counters())))
    };
    assert_eq!(run_in(verifier(None), &folder(place.path())), None);
    assert_eq!(run_in(verifier(Some(1)), &folder(place.path())), None);
    assert!(Run::read(place.path()).unwrap().is_finished());
}

#[test]
fn what_may_be_spent_is_not_exceeded_by_more_than_what_is_at_work() {
    let place = TempDir::new().unwrap();
    let limited = |tokens| {
        let spend_limit = SpendLimit { tokens: Some(tokens), dollars: None };
        Settings { spend_limit, concurrency: 2, ..settings() }
    };
    let model = || Arc::new(Talkative);
    let verifier = |settings| {
        Verifier::new(model(), settings)
            .strategy("tail", Arc::new(TailWindow::new(2)))
            .group(Group::new([recording("a", 6)], Arc::new(fresh_counters())))
    };
    let stop = run_in(verifier(limited(100)), &folder(place.path())).unwrap();
    assert_eq!(stop.to_string(), "100 tokens are spent");
    let spent = Run::read(place.path()).unwrap().spent().total_tokens();
    // A rollout is one answer of 15 tokens.
    assert!((100..130).contains(&spent), "{spent}");
    assert!(report(place.path()).contains("100 tokens are spent"));
    // The limit is that of the whole run.
    assert!(run_in(verifier(limited(100)), &folder(place.path())).is_some());
    assert_eq!(Run::read(place.path()).unwrap().spent().total_tokens(), spent);
    assert_eq!(run_in(verifier(limited(1_000_000)), &folder(place.path())), None);
    let dollars = SpendLimit { tokens: None, dollars: retrace_events::Dollars::new(1.0) };
    let error = try_run_in(verifier(Settings { spend_limit: dollars, ..settings() }), &folder(place.path()));
    assert!(matches!(error, Err(VerifyError::PriceUnknown { .. })));
}

/// Ends its turn at once, for ten tokens and five.
struct Talkative;

impl Model for Talkative {
    fn name(&self) -> &str {
        "talkative"
    }

    fn respond<'a>(&'a self, _: &'a Prompt<'a>) -> BoxFuture<'a, Result<Answer, ModelError>> {
        let usage = retrace_events::Usage { input_tokens: 10, output_tokens: 5, ..retrace_events::Usage::default() };
        Box::pin(std::future::ready(Ok(Response { usage: Some(usage), ..Response::default() }.into())))
    }
}

/// Gives the signal at its fifth question, and never answers from then on.
struct Stuck {
    signal: StopSignal,
    n_asked: AtomicUsize,
}

impl Model for Stuck {
    fn name(&self) -> &str {
        "counting"
    }

    fn respond<'a>(&'a self, _: &'a Prompt<'a>) -> BoxFuture<'a, Result<Answer, ModelError>> {
        Box::pin(async {
            if self.n_asked.fetch_add(1, Ordering::Relaxed) >= 4 {
                self.signal.stop();
                std::future::pending::<()>().await;
            }
            Ok(Response::default().into())
        })
    }
}

#[test]
fn a_run_that_is_asked_to_stop_gives_what_is_at_work_a_moment() {
    let place = TempDir::new().unwrap();
    let signal = StopSignal::default();
    let model = Arc::new(Stuck { signal: signal.clone(), n_asked: AtomicUsize::new(0) });
    let settings = Settings { concurrency: 3, grace: Duration::from_secs(7), ..settings() };
    let verifier = Verifier::new(model.clone(), settings)
        .stopped_by(&signal)
        .strategy("tail", Arc::new(TailWindow::new(2)))
        .group(Group::new([recording("a", 6)], Arc::new(fresh_counters())));
    let start = std::time::Instant::now();
    assert_eq!(run_in(verifier, &folder(place.path())), Some(Stop::Asked));
    assert!(start.elapsed() < Duration::from_secs(5), "the clock is paused");
    let run = Run::read(place.path()).unwrap();
    assert_eq!(run.n_rollouts(), 4, "what had its answer is kept, and what had not is not");
    assert!(model.n_asked.load(Ordering::Relaxed) <= 4 + 3);
    assert_eq!(run.verification().unfinished.unwrap().reason.as_deref(), Some("it was asked to"));
}

#[test]
fn a_run_that_may_stop_early_looks_at_the_same_when_it_goes_on() {
    let judging = Judging { stop_early: true, ..Judging::default() };
    let settings = || Settings { judging, ..settings() };
    let place = TempDir::new().unwrap();
    let (whole, part) = (place.path().join("whole"), place.path().join("part"));
    let verifier = || {
        let recordings = (0..12).map(|number| recording(&format!("r{number:02}"), 6));
        Verifier::new(Arc::new(super::early::Forgetful), settings())
            .strategy("tail", Arc::new(TailWindow::new(2)))
            .group(Group::new(recordings, Arc::new(fresh_counters())))
    };
    run_in(verifier(), &folder(&whole));
    let expected = report(&whole);
    assert!(expected == json_of(run(verifier())));
    assert!(expected.contains("\"n_not_reached\": 5"));
    let n_bytes = fs::metadata(whole.join("journal.jsonl")).unwrap().len() as usize;
    for n_bytes in [0, n_bytes / 3, n_bytes * 2 / 3, n_bytes] {
        cut(&whole, &part, n_bytes);
        run_in(verifier(), &folder(&part));
        assert!(report(&part) == expected);
        fs::remove_dir_all(&part).unwrap();
    }
}

#[test]
fn what_was_not_reached_is_reached_when_more_is_asked() {
    let judging = Judging { stop_early: true, ..Judging::default() };
    let place = TempDir::new().unwrap();
    let (grown, whole) = (place.path().join("grown"), place.path().join("whole"));
    let verifier = || {
        let recordings = (0..12).map(|number| recording(&format!("r{number:02}"), 6));
        Verifier::new(Arc::new(super::early::Forgetful), Settings { judging, ..settings() })
            .strategy("tail", Arc::new(TailWindow::new(2)))
            .group(Group::new(recordings, Arc::new(fresh_counters())))
    };
    run_in(verifier(), &folder(&grown));
    assert_eq!(Run::read(&grown).unwrap().not_reached().len(), 5);
    // Of one that leaves all as it is no harm will be shown.
    let both = || verifier().strategy("all", Arc::new(TailWindow::new(50)));
    run_in(both(), &folder(&grown));
    run_in(both(), &folder(&whole));
    assert_eq!(Run::read(&grown).unwrap().not_reached(), [""; 0]);
    assert!(report(&grown) == report(&whole));
}

#[test]
fn shards_run_each_their_share_and_are_merged_into_the_whole() {
    for chain in [false, true] {
        let settings = || Settings { chain, ..settings() };
        let place = TempDir::new().unwrap();
        let whole = place.path().join("whole");
        let all = Arc::default();
        run_in(counted(&all, settings()), &folder(&whole));
        let mut n = 0;
        let shards = [1, 2, 3].map(|index| {
            let path = place.path().join(index.to_string());
            let shard = RunFolder { shard: Some(Shard { index, of: 3 }), ..folder(&path) };
            let model = Arc::default();
            assert_eq!(run_in(counted(&model, settings()), &shard), None);
            n += n_asked(&model);
            Run::read(&path).unwrap()
        });
        assert_eq!(n, n_asked(&all), "every cell runs once");
        let merged = place.path().join("merged");
        merge(&shards, &merged).unwrap();
        assert!(report(&merged) == report(&whole));
        // What is merged is a run like any other.
        let again = Arc::default();
        assert_eq!(run_in(counted(&again, settings()), &folder(&merged)), None);
        assert_eq!(n_asked(&again), 0);
    }
    let none = RunFolder { shard: Some(Shard { index: 4, of: 3 }), ..folder(Path::new("nowhere")) };
    let error = try_run_in(counted(&Arc::default(), settings()), &none);
    assert!(matches!(error, Err(VerifyError::NoSuchShard { .. })));
}

/// Notes when each question came, and answers after a second.
#[derive(Default)]
struct Slow {
    asked: Mutex<Vec<(tokio::time::Instant, usize)>>,
}

impl Model for Slow {
    fn name(&self) -> &str {
        "slow"
    }

    fn respond<'a>(&'a self, prompt: &'a Prompt<'a>) -> BoxFuture<'a, Result<Answer, ModelError>> {
        Box::pin(async {
            self.asked.lock().unwrap().push((tokio::time::Instant::now(), prompt.history.len()));
            tokio::time::sleep(Duration::from_secs(1)).await;
            Ok(Response::default().into())
        })
    }
}

#[test]
fn the_first_of_an_arm_goes_alone_and_the_others_follow_its_answer() {
    for (warms_caches, expected) in [(true, vec![0, 0, 1, 1, 1, 1]), (false, vec![0; 6])] {
        let model = Arc::new(Slow::default());
        let settings = Settings { samples: 3, concurrency: 9, warms_caches, ..settings() };
        let verifier = Verifier::new(model.clone(), settings)
            .strategy("tail", Arc::new(TailWindow::new(2)))
            .control(false)
            .group(Group::new([recording("a", 4)], Arc::new(fresh_counters())));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let verification = runtime.block_on(verifier.run(&|_| {})).unwrap();
        assert_eq!(verification.boundaries.len(), 1);
        let asked = model.asked.lock().unwrap();
        let seconds: Vec<_> = asked.iter().map(|(at, _)| (*at - asked[0].0).as_secs()).collect();
        assert_eq!(seconds, expected);
        let first: std::collections::HashSet<_> = asked[..2].iter().map(|(_, length)| length).collect();
        assert_eq!(first.len(), if warms_caches { 2 } else { first.len() }, "one of each arm");
    }
}
