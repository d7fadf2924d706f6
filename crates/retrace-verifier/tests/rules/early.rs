//! Runs that may stop before their last recording.

use retrace_score::{Judging, Report, Verdict};

use super::*;

/// Goes on counting while it knows that it is to count, and ends its turn when it does not.
pub(crate) struct Forgetful;

impl Model for Forgetful {
    fn name(&self) -> &str {
        "forgetful"
    }

    fn respond<'a>(&'a self, prompt: &'a Prompt<'a>) -> BoxFuture<'a, Result<Answer, ModelError>> {
        let knows = prompt.history.events().any(|event| matches!(event, Event::Request(_)));
        let content =
            if knows { vec![PartBody::ToolCall(ToolCall::new("c", "count", "{}")).into()] } else { Vec::new() };
        Box::pin(std::future::ready(Ok(Response { content: content.into(), ..Response::default() }.into())))
    }
}

fn verification(stop_early: bool, concurrency: usize, strategies: &[(&str, usize)]) -> Verification {
    let judging = Judging { stop_early, ..Judging::default() };
    let recordings = (0..12).map(|number| recording(&format!("r{number}"), 6));
    let verifier = Verifier::new(Arc::new(Forgetful), Settings { judging, concurrency, ..settings() })
        .group(Group::new(recordings, Arc::new(fresh_counters())));
    let tail =
        |verifier: Verifier, (name, kept): &(&str, usize)| verifier.strategy(*name, Arc::new(TailWindow::new(*kept)));
    let (planned, ended) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let verification = run_with(strategies.iter().fold(verifier, tail), &|progress| match progress {
        Progress::Planned { n_rollouts, .. } => planned.store(n_rollouts, Ordering::Relaxed),
        Progress::NotNeeded { n_rollouts } => drop(ended.fetch_add(n_rollouts, Ordering::Relaxed)),
        Progress::RolledOut { .. } => drop(ended.fetch_add(1, Ordering::Relaxed)),
        _ => {}
    });
    assert_eq!(planned.into_inner(), ended.into_inner());
    verification
}

#[test]
fn a_run_stops_when_harm_of_every_strategy_is_shown_and_not_before() {
    let whole = verification(false, 4, &[("tail", 2)]);
    assert_eq!((whole.n_not_reached, whole.boundaries.len()), (0, 24));
    for concurrency in [1, 4, 50] {
        let stopped = verification(true, concurrency, &[("tail", 2)]);
        // Seven recordings that all get worse make 2^7 · 0.9 of evidence, and two channels take 80.
        assert_eq!((stopped.n_not_reached, stopped.boundaries.len()), (5, 14));
        let run = |verification: &Verification| format!("{:?}", &verification.boundaries[..14]);
        assert_eq!(run(&stopped), run(&whole), "what did run is what runs without looks");

        let report = Report::new(stopped).unwrap();
        let inference = report.strategies["tail"].inference.as_ref().unwrap();
        assert_eq!(inference.verdict, Verdict::Worse);
        assert!(inference.stopped.evidence.unwrap() >= 80.0 && inference.stopped.p_here.is_none());
        assert_eq!(inference.wasted.p_new.adjusted.to_string(), "1", "it stops, and wastes nothing");
    }
}

#[test]
fn one_strategy_that_does_no_harm_is_reason_enough_to_go_on() {
    let verification = verification(true, 4, &[("tail", 2), ("all", 99)]);
    assert_eq!((verification.n_not_reached, verification.boundaries.len()), (0, 24));
    let report = Report::new(verification).unwrap();
    let verdict = |name: &str| report.strategies[name].inference.as_ref().unwrap().verdict;
    assert_eq!((verdict("tail"), verdict("all")), (Verdict::Worse, Verdict::NotShown));
}
