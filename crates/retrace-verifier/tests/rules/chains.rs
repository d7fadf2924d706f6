//! In a chain each compaction goes on from what the last one of its recording left.

use std::sync::{Arc, Mutex};

use retrace_events::{Event, History, Recording, Response, Usage};
use retrace_score::{Compaction, Verification};
use retrace_strategies::{CompactError, Compacted, Strategy, Summarize, TailWindow, TieredCompaction};
use retrace_verifier::{Group, Settings, Verifier};

use super::{Counting, custom, fresh_counters, recording, run, settings};

/// Boundaries after 5, 9 and 13 events of each of two recordings.
fn chained(chain: bool, strategy: Arc<dyn Strategy>) -> Verification {
    let settings = Settings { chain, concurrency: 3, ..settings() };
    let recordings = [recording("a", 8), recording("b", 8)];
    run(Verifier::new(Arc::new(Counting::default()), settings)
        .group(Group::new(recordings, Arc::new(fresh_counters())))
        .strategy("s", strategy))
}

/// The request and the newest round, of the history that `when` is true of.
fn shortens(given: &Arc<Mutex<Vec<usize>>>, when: fn(usize) -> Result<bool, CompactError>) -> Arc<dyn Strategy> {
    let given = Arc::clone(given);
    custom(move |history| {
        given.lock().unwrap().push(history.len());
        if !when(history.len())? {
            return Ok(Compacted::Unchanged);
        }
        let kept = [0, history.len() - 2, history.len() - 1].map(|index| Arc::clone(history.get(index).unwrap()));
        Ok(Compacted::Changed(History::new(kept)))
    })
}

/// How many events each compaction was given, in order, and how many it left.
fn lengths(chain: bool, when: fn(usize) -> Result<bool, CompactError>) -> (Vec<usize>, Vec<Option<usize>>) {
    let given = Arc::default();
    let verification = chained(chain, shortens(&given, when));
    let left = verification.boundaries.iter().map(|boundary| match &boundary.strategies["s"].compaction {
        Compaction::Compacted { size, .. } => Some(size.unwrap().events),
        _ => None,
    });
    let left: Vec<_> = left.collect();
    assert_eq!(left[..3], left[3..], "both recordings are alike");
    let mut given = given.lock().unwrap().clone();
    given.sort_unstable();
    let given = given.chunks(2).map(|of_both| {
        assert_eq!(of_both[0], of_both[1]);
        of_both[0]
    });
    (given.collect(), left[..3].to_vec())
}

#[test]
fn a_chain_goes_on_from_what_was_left() {
    let always: fn(usize) -> _ = |_| Ok(true);
    assert_eq!(lengths(false, always), (vec![5, 9, 13], vec![Some(3); 3]));
    assert_eq!(lengths(true, always), (vec![5, 7, 7], vec![Some(3); 3]));
}

#[test]
fn where_nothing_is_done_the_chain_grows_and_is_not_the_raw_history() {
    assert_eq!(lengths(true, |n| Ok(n == 5)), (vec![5, 7, 11], vec![Some(3), Some(7), Some(11)]));
    // A round too late: the first boundary keeps the raw history, and so the second is given all of it.
    assert_eq!(lengths(true, |n| Ok(n > 5)), (vec![5, 7, 9], vec![None, Some(3), Some(3)]));
}

#[test]
fn where_a_compaction_fails_the_chain_goes_on_with_what_it_was_given() {
    let fails: fn(usize) -> _ = |n| if n == 7 { Err(CompactError::EmptySummary) } else { Ok(true) };
    assert_eq!(lengths(true, fails), (vec![5, 7, 11], vec![Some(3), None, Some(3)]));
}

#[test]
fn a_prompt_cache_knows_what_the_history_before_starts_with() {
    let newest_round_once = || {
        custom(|history| match history.len() {
            5 => Ok(Compacted::Changed(History::new([3, 4].map(|index| Arc::clone(history.get(index).unwrap()))))),
            _ => Ok(Compacted::Unchanged),
        })
    };
    let cached = |chain| {
        let verification = chained(chain, newest_round_once());
        assert_eq!(verification.chain, chain);
        let of = |index: usize| match verification.boundaries[index].strategies["s"].compaction {
            Compaction::Compacted { size, cached } => Some((size?.tokens.0, cached?.0)),
            _ => None,
        };
        [of(0), of(1)]
    };
    assert_eq!(cached(false), [Some((2, 0)), None]);
    // What is left as it was is all in the cache, though nothing of it starts the raw history.
    assert_eq!(cached(true), [Some((2, 0)), Some((6, 6))]);
}

/// A large request, and rounds whose responses tell how large the raw history is.
fn told() -> Recording {
    let small = recording("told", 8);
    let rounds = small.events.iter().skip(1).enumerate().map(|(n, event)| match &**event {
        Event::Response(response) => {
            let usage = Some(Usage { input_tokens: 500 + 2 * n as u64, output_tokens: 1, ..Usage::default() });
            Event::Response(Response { usage, ..response.clone() })
        }
        event => event.clone(),
    });
    let events = [Event::request("x".repeat(2_000))].into_iter().chain(rounds);
    Recording::new(small.header.clone(), events.collect::<Vec<_>>())
}

#[test]
fn what_a_provider_said_of_the_raw_history_is_not_believed_of_a_chain() {
    // The window is enough. Whoever believes that the history still has 500 tokens asks for a summary, too.
    let tiers: [Arc<dyn Strategy>; 2] = [Arc::new(TailWindow::new(4)), Arc::new(Summarize::new(2))];
    let verification = run(Verifier::new(Arc::new(Counting::default()), Settings { chain: true, ..settings() })
        .group(Group::new([told()], Arc::new(fresh_counters())))
        .strategy("tiered", Arc::new(TieredCompaction::new(tiers, 100))));
    let outcomes = verification.boundaries.iter().map(|boundary| &boundary.strategies["tiered"]);
    let asked: Vec<_> =
        outcomes.map(|tiered| (tiered.spend.n_model_calls, tiered.compaction.leaves_nothing())).collect();
    assert_eq!(asked, [(0, false); 3]);
}
