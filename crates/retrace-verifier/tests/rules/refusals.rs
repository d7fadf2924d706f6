//! What a model would refuse is seen before anything is spent.

use std::sync::Arc;

use retrace_events::{Event, History, Outcome, Recording, ToolCall, ToolResult};
use retrace_model::{Answer, Model, ModelError, Prompt, Rules};
use retrace_score::Compaction;
use retrace_strategies::{BoxFuture, Compacted, Strategy, TailWindow};
use retrace_verifier::{Group, Verifier, VerifyError};

use super::{Counting, custom, flaw, fresh_counters, recording, refused, run, settings};

/// What a strategy keeps: the events at these places, after others of its own.
fn keeps(own: &'static [fn() -> Event], places: &'static [usize]) -> Arc<dyn Strategy> {
    custom(|history| {
        let kept = places.iter().filter_map(|&place| history.get(place).cloned());
        let own = own.iter().map(|make| Arc::new(make()));
        Ok(Compacted::Changed(History::new(own.chain(kept).collect::<Vec<_>>())))
    })
}

#[test]
fn what_a_model_would_refuse_is_a_flaw_and_never_sent() {
    let call = |name: &str| ToolCall::new("x", name, "{}");
    let round = |calls: &[ToolCall]| {
        let results = calls.iter().map(|call| ToolResult::text_result(call, Outcome::Ok, "1"));
        [Event::calls(calls.to_vec()), Event::results(results.collect::<Vec<_>>())]
    };
    let adds = |added: [Event; 2]| {
        custom(move |history| {
            let events = added.clone().map(Arc::new).into_iter().chain(history.iter().cloned());
            Ok(Compacted::Changed(History::new(events.collect::<Vec<_>>())))
        })
    };
    let model = Arc::<Counting>::default();
    // The boundary lies after a request and two rounds.
    let verification = run(Verifier::new(Arc::<Counting>::clone(&model), settings())
        .group(Group::new([recording("a", 6)], Arc::new(fresh_counters())).cuts([5]))
        .strategy("orphans", keeps(&[], &[0, 4]))
        .strategy("drops", keeps(&[], &[0, 1, 3, 4]))
        .strategy("talks", keeps(&[|| Event::answer("done")], &[0, 1]))
        .strategy("reorders", keeps(&[], &[1, 0, 2, 3, 4]))
        .strategy("invents", adds(round(&[call("recall")])))
        .strategy("remembers", adds(round(&[call("count")])))
        .strategy("doubles", adds(round(&[call("count"), call("count")]))));
    assert_eq!(flaw(&verification, "orphans"), "the result of `count` (id `c`) in event 2 answers no call");
    assert_eq!(flaw(&verification, "drops"), "the call of `count` (id `c`) in event 2 has no result");
    assert_eq!(flaw(&verification, "talks"), "the newest results are not kept at the end");
    let late = "the call of `count` (id `c`) in event 1 is answered in event 3, and not right after its response";
    assert_eq!(flaw(&verification, "reorders"), late);
    assert_eq!(
        flaw(&verification, "invents"),
        "the call of `recall` (id `x`) in event 1 is of a tool that is not offered"
    );
    let strategies = &verification.boundaries[0].strategies;
    for (name, n_post) in [("orphans", 0), ("invents", 0), ("remembers", 2), ("doubles", 2), ("control", 2)] {
        assert_eq!(strategies[name].post.len(), n_post, "{name}");
    }
}

/// A model that takes nothing that a provider might refuse.
struct Strict(Counting);

impl Model for Strict {
    fn name(&self) -> &str {
        "strict"
    }

    fn rules(&self) -> Rules {
        Rules::strict()
    }

    fn respond<'a>(&'a self, prompt: &'a Prompt<'a>) -> BoxFuture<'a, Result<Answer, ModelError>> {
        self.0.respond(prompt)
    }
}

#[test]
fn each_model_has_its_own_rules() {
    let twins = || {
        custom(|history| {
            let calls = [ToolCall::new("x", "count", "{}"), ToolCall::new("x", "count", "{}")];
            let results = calls.clone().map(|call| ToolResult::text_result(&call, Outcome::Ok, "1"));
            let added = [Event::calls(calls), Event::results(results)].map(Arc::new);
            Ok(Compacted::Changed(History::new(added.into_iter().chain(history.iter().cloned()).collect::<Vec<_>>())))
        })
    };
    let with = |model: Arc<dyn Model>| {
        run(Verifier::new(model, settings())
            .group(Group::new([recording("a", 6)], Arc::new(fresh_counters())))
            .strategy("twins", twins()))
    };
    let strict = with(Arc::new(Strict(Counting::default())));
    let shared = "the id of the call of `count` (id `x`) in event 1 is that of another call of the same response";
    assert_eq!(flaw(&strict, "twins"), shared);
    let lenient = with(Arc::<Counting>::default());
    assert!(matches!(lenient.boundaries[0].strategies["twins"].compaction, Compaction::Compacted { .. }));
}

#[test]
fn nothing_runs_where_the_raw_history_itself_would_be_refused() {
    let broken = |id: &str, place: usize| {
        let mut recording = recording(id, 6);
        let mut events = recording.events.to_vec();
        let call = ToolCall::new("lost", "count", "{}");
        // A call that was never answered: the round after it can still be cut behind.
        events.insert(place, Arc::new(Event::calls([call])));
        recording.events = events.into();
        recording
    };
    let model = Arc::<Counting>::default();
    let verifier = |recordings: Vec<Recording>| {
        Verifier::new(Arc::<Counting>::clone(&model), settings())
            .strategy("tail", Arc::new(TailWindow::new(2)))
            .group(Group::new(recordings, Arc::new(fresh_counters())))
    };
    let verification = run(verifier(vec![broken("late", 7), recording("fine", 6)]));
    let reason =
        "the model `counting` would refuse the raw history: the call of `count` (id `lost`) in event 8 has no result";
    let ran: Vec<_> = verification
        .boundaries
        .iter()
        .map(|boundary| (boundary.pre.len(), boundary.strategies.len(), boundary.unusable.as_deref()))
        .collect();
    assert_eq!(ran, [(2, 2, None), (0, 0, Some(reason)), (2, 2, None), (2, 2, None)]);

    let n_asked = model.shown.lock().unwrap().len();
    let error = refused(verifier(vec![broken("early", 1)]));
    assert!(matches!(&error, VerifyError::AllRefused { n_boundaries: 2, .. }), "{error}");
    assert!(error.to_string().contains("in event 2 has no result"), "{error}");
    assert!(error.hint().is_some());
    assert_eq!(model.shown.lock().unwrap().len(), n_asked);
}
