//! Runs that are written, cut off, read and merged.

use std::fs::{self, OpenOptions};
use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;
use retrace_events::tokens::Tokens;
use retrace_events::{Action, Arm, EndReason, Event, History, Outcome, Rollout, RolloutKey, Signature, Spend};
use retrace_score::{Compaction, EnvironmentKind, Executed, Judging, RecordingFacts, Size};
use tempfile::TempDir;

use crate::plan::tests::plan;
use crate::run::JOURNAL;
use crate::*;

fn manifest() -> Manifest {
    Manifest::new(plan(), Judging::default(), Vec::new(), 0)
}

fn recording(id: &str) -> Record {
    let executed =
        ["login", "list", "stock"].map(|name| ExecutedCall { name: name.to_owned(), arguments: "{}".to_owned() });
    let facts = RecordingFacts::new(id, EnvironmentKind::Rebuilt);
    Record::Recording(RecordingRecord { facts, cuts: vec![2, 4], executed: executed.to_vec() })
}

fn boundary(recording: &str, cut: usize) -> Record {
    let size = Size { events: cut, tokens: Tokens(100) };
    Record::Boundary(BoundaryRecord { recording: recording.to_owned(), cut, executed: cut / 2, size, unusable: None })
}

fn compaction(recording: &str, cut: usize, strategy: &str) -> Record {
    let events = [Arc::new(Event::request("so\nfar \u{2028}"))];
    let outcome = match strategy {
        "control" => Compaction::Unchanged,
        _ => Compaction::Compacted { size: Some(Size::default()), cached: None },
    };
    Record::Compaction(CompactionRecord {
        recording: recording.to_owned(),
        cut,
        strategy: strategy.to_owned(),
        outcome,
        lost_task: false,
        spend: Spend { n_model_calls: 1, input_tokens: 10, output_tokens: 1, ..Spend::default() },
        kept: Some(Kept::of(&History::new(events.to_vec()), &[])),
    })
}

fn key(recording: &str, cut: usize, arm: Arm, sample: u32) -> RolloutKey {
    RolloutKey { recording: recording.to_owned(), cut, arm, sample }
}

fn rollout(recording: &str, cut: usize, arm: Arm, sample: u32) -> Record {
    let actions = vec![Action::new("stock", format!("{{\"n\":{sample}}}"), Outcome::Ok, None)];
    let rollout = Rollout { actions, end: EndReason::Answer, ..Rollout::failed(retrace_events::Stage::Agent, "") };
    Record::Rollout(RolloutRecord { key: key(recording, cut, arm, sample), rollout })
}

/// A whole run of two recordings with two boundaries each.
fn records() -> Vec<Record> {
    let mut records = Vec::new();
    for id in ["a", "b"] {
        records.push(recording(id));
        records.extend([2, 4].map(|cut| boundary(id, cut)));
        records.push(Record::World(WorldRecord { recording: id.to_owned(), difference: None }));
    }
    for (id, cut) in [("b", 4), ("a", 2), ("b", 2), ("a", 4)] {
        records.extend(["control", "tail"].map(|strategy| compaction(id, cut, strategy)));
        for sample in [2, 0, 1] {
            let arms = [Arm::Post("tail".to_owned()), Arm::Pre, Arm::Post("control".to_owned())];
            records.extend(arms.map(|arm| rollout(id, cut, arm, sample)));
        }
    }
    records
}

fn written(folder: &Path, records: &[Record]) -> Result<(), JournalError> {
    Journal::open(folder, manifest())?.journal.append(records)
}

/// What a run says, in a form that can be compared.
fn outcomes(run: &Run) -> String {
    let boundaries: Vec<_> = run.boundaries().map(Result::unwrap).collect();
    let shown = boundaries.iter().map(|at| format!("{} {} {:?} {:?}\n", at.recording, at.cut, at.pre, at.strategies));
    format!("{:?}{}", run.verification().unfinished, shown.collect::<String>())
}

proptest! {
    #[test]
    fn a_journal_cut_at_any_byte_goes_on_with_every_whole_line(cut in 0.0..1.0_f64) {
        let (records, whole, part) = (records(), TempDir::new().unwrap(), TempDir::new().unwrap());
        written(whole.path(), &records).unwrap();
        written(part.path(), &records).unwrap();
        let bytes = fs::read(whole.path().join(JOURNAL)).unwrap();
        let cut = (bytes.len() as f64 * cut) as usize;
        let journal = part.path().join(JOURNAL);
        fs::write(&journal, &bytes[..cut]).unwrap();

        let n_whole = bytes[..cut].iter().filter(|&&byte| byte == b'\n').count();
        let is_torn = !bytes[..cut].is_empty() && bytes[cut - 1] != b'\n';
        let run = Run::read(part.path()).unwrap();
        prop_assert_eq!(run.torn_line(), is_torn.then_some(n_whole + 1));
        prop_assert_eq!(run.verification().unfinished.is_some(), n_whole < records.len());

        let Opened { run, mut journal } = Journal::open(part.path(), manifest()).unwrap();
        for record in &records[..n_whole] {
            match record {
                Record::Rollout(done) => {
                    prop_assert!(run.has_rollout(&done.key));
                    prop_assert_eq!(&run.rollout(&done.key).unwrap().unwrap(), done);
                }
                Record::Compaction(done) => {
                    let site = Site { recording: done.recording.clone(), cut: done.cut };
                    prop_assert_eq!(&run.compaction(&site, &done.strategy).unwrap().unwrap(), done);
                }
                _ => {}
            }
        }
        journal.append(&records[n_whole..]).unwrap();
        drop(journal);
        prop_assert_eq!(fs::read(part.path().join(JOURNAL)).unwrap(), bytes);
        let [part, whole] = [part, whole].map(|folder| outcomes(&Run::read(folder.path()).unwrap()));
        prop_assert_eq!(part, whole);
    }
}

#[test]
fn a_finished_run_is_told_in_the_order_of_its_plan() {
    let folder = TempDir::new().unwrap();
    written(folder.path(), &records()).unwrap();
    let run = Run::read(folder.path()).unwrap();
    assert_eq!(run.verification().unfinished, None);
    assert_eq!(run.spent().input_tokens, 8 * 10);
    let boundaries: Vec<_> = run.boundaries().map(Result::unwrap).collect();
    let places: Vec<_> = boundaries.iter().map(|at| (&*at.recording, at.cut)).collect();
    assert_eq!(places, [("a", 2), ("a", 4), ("b", 2), ("b", 4)]);
    for at in &boundaries {
        assert_eq!(at.strategies.keys().collect::<Vec<_>>(), ["control", "tail"]);
        for arm in [&at.pre, &at.strategies["tail"].post] {
            let samples: Vec<_> = arm.iter().map(|rollout| rollout.actions[0].arguments()).collect();
            assert_eq!(samples, [r#"{"n":0}"#, r#"{"n":1}"#, r#"{"n":2}"#]);
        }
        let executed = |tool: &str| at.executed_calls.has_executed(&Signature::of(tool, "{}"));
        assert_eq!([executed("login"), executed("list"), executed("stock")], [true, at.cut == 4, false]);
        assert_eq!(at.executed_calls.has_used("list"), at.cut == 4);
    }
}

#[test]
fn one_program_writes_at_a_time() {
    let folder = TempDir::new().unwrap();
    let opened = Journal::open(folder.path(), manifest()).unwrap();
    assert!(matches!(Journal::open(folder.path(), manifest()), Err(JournalError::Locked { .. })));
    drop(opened);
    Journal::open(folder.path(), manifest()).unwrap();
}

#[test]
fn another_plan_is_refused_and_a_greater_one_is_not() {
    let folder = TempDir::new().unwrap();
    written(folder.path(), &records()).unwrap();
    let open = |plan| Journal::open(folder.path(), Manifest { plan, ..manifest() });
    let error = open(Plan { seed: 8, ..plan() }).unwrap_err();
    assert!(error.to_string().contains("`seed` was 7 and is now 8"), "{error}");
    assert_eq!(Run::read(folder.path()).unwrap().manifest(), &manifest());

    drop(open(Plan { samples: 4, ..plan() }).unwrap());
    let unfinished = Run::read(folder.path()).unwrap().verification().unfinished.unwrap();
    // One more rollout of three arms at four boundaries.
    assert_eq!((unfinished.n_recordings, unfinished.n_boundaries, unfinished.n_rollouts), (0, 4, 12));
    // None of these has run, so it may be taken back; what has run may not.
    drop(open(plan()).unwrap());
    let error = open(Plan { samples: 2, ..plan() }).unwrap_err();
    assert!(error.to_string().contains("`samples` was 3 and is now 2"), "{error}");
    let mut more = plan();
    more.strategies.insert("more".to_owned(), serde_json::json!({"kind": "tail_window"}));
    drop(open(more).unwrap());
    drop(open(plan()).unwrap());
    let mut fewer = plan();
    fewer.strategies.shift_remove("tail");
    assert!(open(fewer).unwrap_err().to_string().contains("`strategies.tail`"));
}

#[test]
fn a_run_that_has_finished_nothing_begins_again_as_another() {
    let folder = TempDir::new().unwrap();
    written(folder.path(), &records()[..4]).unwrap();
    let other = Manifest { plan: Plan { seed: 8, ..plan() }, ..manifest() };
    let run = Journal::open(folder.path(), other.clone()).unwrap().run;
    assert!(run.recording("a").is_none());
    assert_eq!(run.manifest(), &other);
}

#[test]
fn what_fails_to_be_written_stops_the_journal_and_spoils_nothing() {
    let (folder, records) = (TempDir::new().unwrap(), records());
    written(folder.path(), &records[..3]).unwrap();
    let path = folder.path().join(JOURNAL);
    let bytes = fs::read(&path).unwrap();
    let mut journal = Journal::open(folder.path(), manifest()).unwrap().journal;
    // As on a disk that takes no more.
    journal.replace_file(OpenOptions::new().read(true).open(&path).unwrap());
    assert!(matches!(journal.append(&records[3..4]), Err(JournalError::Io { .. })));
    journal.replace_file(OpenOptions::new().append(true).open(&path).unwrap());
    assert!(matches!(journal.append(&records[3..4]), Err(JournalError::Stopped { .. })));
    assert_eq!(fs::read(&path).unwrap(), bytes);
}

#[test]
fn a_line_that_cannot_be_is_named() {
    let error = |records: &[Record], more: &str| {
        let folder = TempDir::new().unwrap();
        written(folder.path(), records).unwrap();
        let path = folder.path().join(JOURNAL);
        fs::write(&path, [&fs::read(&path).unwrap()[..], more.as_bytes()].concat()).unwrap();
        let error = Run::read(folder.path()).unwrap_err();
        error.to_string().rsplit_once("journal.jsonl:").unwrap().1.to_owned()
    };
    let (a, at, login) = (recording("a"), boundary("a", 2), rollout("a", 2, Arm::Pre, 0));
    assert_eq!(error(std::slice::from_ref(&a), "{}\n"), "2: no record of a run");
    assert_eq!(error(std::slice::from_ref(&a), "\u{0}\n"), "2: no record of a run");
    assert_eq!(error(&[a.clone(), a.clone()], ""), "2: the recording `a` is there twice");
    assert_eq!(error(std::slice::from_ref(&at), ""), "1: the recording `a` is not there");
    assert_eq!(error(&[a.clone(), at.clone(), at.clone()], ""), "3: the boundary at 2 of `a` is there twice");
    assert_eq!(error(&[a.clone(), login.clone()], ""), "2: the boundary at 2 of `a` is not there");
    let twice = [a, at, login.clone(), login];
    assert_eq!(error(&twice, ""), "4: a rollout that is there already");
}

#[test]
fn what_is_withdrawn_may_run_again_and_stays_paid_for() {
    let folder = TempDir::new().unwrap();
    let mut records = records();
    let withdrawn = key("a", 2, Arm::Pre, 1);
    records.push(Record::Withdrawn(Withdrawn {
        rollouts: vec![withdrawn.clone()],
        compactions: Vec::new(),
        reason: "no key".to_owned(),
    }));
    records.push(Record::Stopped(Stopped { reason: "every rollout failed alike".to_owned(), since: None }));
    written(folder.path(), &records).unwrap();
    let Opened { run, mut journal } = Journal::open(folder.path(), manifest()).unwrap();
    assert!(!run.has_rollout(&withdrawn));
    let unfinished = run.verification().unfinished.unwrap();
    assert_eq!(unfinished.n_rollouts, 1);
    assert_eq!(unfinished.reason.as_deref(), Some("every rollout failed alike"));
    journal.append(&[rollout("a", 2, Arm::Pre, 1)]).unwrap();
    let run = Run::read(folder.path()).unwrap();
    assert!(run.has_rollout(&withdrawn) && run.verification().unfinished.is_none());
}

#[test]
fn a_folder_of_something_else_is_left_alone() {
    let folder = TempDir::new().unwrap();
    assert!(matches!(Run::read(folder.path()), Err(JournalError::NoRun { .. })));
    fs::write(folder.path().join(JOURNAL), "mine\n").unwrap();
    assert!(matches!(Journal::open(folder.path(), manifest()), Err(JournalError::NotARun { .. })));
    assert_eq!(fs::read_to_string(folder.path().join(JOURNAL)).unwrap(), "mine\n");

    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("manifest.json"), "{\"journal\": 2, \"more\": 1}").unwrap();
    assert!(matches!(Run::read(folder.path()), Err(JournalError::UnknownVersion { found: 2, .. })));
}

mod shards {
    use super::*;

    fn shard(folder: &Path, index: u32, records: &[Record]) -> Run {
        let plan = Plan { shard: Some(Shard { index, of: 2 }), ..plan() };
        Journal::open(folder, Manifest { plan, ..manifest() }).unwrap().journal.append(records).unwrap();
        Run::read(folder).unwrap()
    }

    /// The run of [`records`] in two halves, by boundary.
    fn halves(folder: &Path) -> [Run; 2] {
        let is_of = |index: u32| {
            move |record: &Record| {
                let cut = match record {
                    Record::Boundary(at) => at.cut,
                    Record::Compaction(done) => done.cut,
                    Record::Rollout(done) => done.key.cut,
                    Record::World(_) => 2,
                    _ => return true,
                };
                cut == 2 * index as usize
            }
        };
        [1, 2].map(|index| {
            let records: Vec<_> = records().into_iter().filter(is_of(index)).collect();
            shard(&folder.join(index.to_string()), index, &records)
        })
    }

    #[test]
    fn shards_are_merged_into_the_whole() {
        let folder = TempDir::new().unwrap();
        let whole = folder.path().join("whole");
        written(&whole, &records()).unwrap();
        let merged = merge(&halves(folder.path()), &folder.path().join("merged")).unwrap();
        assert_eq!(merged.manifest(), &manifest());
        assert_eq!(outcomes(&merged), outcomes(&Run::read(&whole).unwrap()));
        // Nothing else was left beside it.
        let mut names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["1", "2", "merged", "whole"]);
    }

    #[test]
    fn a_missing_shard_is_what_the_merged_run_lacks() {
        let folder = TempDir::new().unwrap();
        let [first, _] = halves(folder.path());
        let merged = folder.path().join("merged");
        let unfinished = merge(&[first], &merged).unwrap().verification().unfinished.unwrap();
        // Two boundaries, of which three samples of three arms may run.
        assert_eq!((unfinished.n_boundaries, unfinished.n_rollouts), (2, 18));
        drop(Journal::open(&merged, manifest()).unwrap());
    }

    #[test]
    fn what_does_not_belong_together_is_refused() {
        let folder = TempDir::new().unwrap();
        let [first, second] = halves(folder.path());
        let again = shard(&folder.path().join("again"), 1, &[]);
        let merged = folder.path().join("merged");
        assert!(matches!(merge(&[first, second, again], &merged), Err(JournalError::NotShards { .. })));
        let [first, second] = [1, 2].map(|index| shard(&folder.path().join(format!("{index}")), index, &[]));
        let other = Plan { seed: 8, shard: second.manifest().plan.shard, ..plan() };
        let other = Manifest { plan: other, ..manifest() };
        drop(Journal::open(&folder.path().join("other"), other).unwrap());
        let other = Run::read(&folder.path().join("other")).unwrap();
        let error = merge(&[first, other], &merged).unwrap_err();
        assert!(error.to_string().contains("`seed`"), "{error}");
        let whole = folder.path().join("whole");
        written(&whole, &[]).unwrap();
        assert!(merge(&[Run::read(&whole).unwrap()], &merged).is_err());
        assert!(!merged.exists());
    }
}
