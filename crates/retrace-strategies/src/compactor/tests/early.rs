//! What is started early stands in for its copy, or is as if it had never been.

use super::*;
use crate::FallbackCompaction;

/// Due above 100 tokens and started above 50; keeps a summary and the two newest events.
fn fallback() -> FallbackCompaction {
    let links: [Arc<dyn Strategy>; 2] = [Arc::new(Summarize::new(2)), Arc::new(TailWindow::new(1))];
    FallbackCompaction { max_tokens: Some(100), background_start: Some(0.5), ..FallbackCompaction::new(links) }
}

fn scribe<const N: usize>(answers: [&str; N]) -> AskModel<ScriptedModel> {
    AskModel(ScriptedModel::new(answers.map(Step::from)))
}

fn with_model(model: &dyn crate::Ask) -> CompactContext<'_> {
    let mut cx = CompactContext::new(model, 0);
    cx.model = Some("agent");
    cx
}

/// A compactor that has started early on six events of ten tokens, and what it had started on.
fn started(compactor: &mut Compactor, model: &dyn crate::Ask) -> History {
    let (six, mut cx) = (long(6), with_model(model));
    assert!(compactor.start_early(&long(5), &cx).is_none(), "too early");
    let start = compactor.start_early(&six, &cx).unwrap();
    assert!(compactor.start_early(&six, &cx).is_none(), "one at a time");
    assert!(pollster::block_on(start.run(&mut cx)).is_some(), "what it cost is told where it is run");
    six
}

/// The history with events of ten tokens added, up to 110 tokens.
fn grown(mut history: History) -> History {
    for n in history.len()..11 {
        history.push(Event::request(format!("{n:040}")));
    }
    history
}

fn pass(compactor: &mut Compactor, history: &mut History, model: &dyn crate::Ask) -> Pass {
    pollster::block_on(compactor.before_request(history, &mut with_model(model)))
}

/// What the only span says of a compaction that was started early.
fn background<'a>(spans: &'a [BTreeMap<&'static str, String>]) -> Option<&'a str> {
    let [span] = spans else { panic!("{spans:?}") };
    span.get("compaction.background").map(|text| &**text)
}

#[test]
fn what_was_left_of_the_copy_stands_in_for_it_and_what_came_since_follows() {
    let (model, nobody) = (scribe(["so far"]), scribe([]));
    let mut compactor = compactor(fallback());
    let mut history = grown(started(&mut compactor, &model));
    let before = history.clone();
    let (spans, n_warnings) = traced(|| {
        let pass = pass(&mut compactor, &mut history, &nobody);
        assert_eq!((pass.outcome, pass.spend.n_model_calls), (Outcome::Compacted { before: before.clone() }, 0));
    });
    assert_eq!((background(&spans), n_warnings), (Some("\"used\""), 0));
    // The summary, two events of the copy, and the five since.
    let kinds: Vec<_> = history.events().map(Event::kind).collect();
    assert_eq!(kinds, [&["summary"][..], &["request"; 7]].concat());
    assert!(history.iter().skip(1).take(7).eq(before.iter().skip(4)));
    assert_eq!(pass(&mut compactor, &mut history, &nobody).outcome, Outcome::NotDue);
    // There may be another one now.
    assert!(compactor.start_early(&history, &with_model(&nobody)).is_some());
}

#[test]
fn what_cannot_stand_in_is_dropped_and_the_compaction_is_made_anew() {
    let changed = |history: History| {
        let mut events: Vec<_> = history.iter().map(Arc::clone).collect();
        events[0] = Arc::new(Event::request("something else of forty characters, more"));
        History::new(events)
    };
    let model = || scribe(["so far", "so good"]);
    let unchanged: fn(History) -> History = |history| history;
    let cases = [
        (model(), unchanged, "\"used\""),
        (model(), changed, "\"stale\""),
        (scribe(["", "so good"]), unchanged, "\"failed\""),
    ];
    for (model, change, wanted) in cases {
        let mut compactor = compactor(fallback());
        let mut history = change(grown(started(&mut compactor, &model)));
        let (spans, n_warnings) = traced(|| {
            let pass = pass(&mut compactor, &mut history, &model);
            assert!(matches!(pass.outcome, Outcome::Compacted { .. }), "{pass:?}");
            assert_eq!(pass.spend.n_model_calls, if wanted == "\"used\"" { 0 } else { 1 });
        });
        assert_eq!((background(&spans), n_warnings), (Some(wanted), usize::from(wanted == "\"failed\"")));
    }
}

#[test]
fn another_model_another_window_and_too_much_left_are_stale() {
    let long_summary = "x".repeat(400);
    for (answer, other) in [("so far", true), (&*long_summary, false)] {
        let (model, later) = (scribe([answer]), scribe(["so good"]));
        let mut compactor = compactor(fallback());
        let mut history = grown(started(&mut compactor, &model));
        let mut cx = with_model(&later);
        cx.model = if other { Some("another") } else { cx.model };
        let (spans, _) = traced(|| drop(pollster::block_on(compactor.before_request(&mut history, &mut cx))));
        assert_eq!(background(&spans), Some("\"stale\""));
    }
}

#[test]
fn what_has_not_finished_is_not_waited_for() {
    let later = scribe(["so good"]);
    let mut compactor = compactor(fallback());
    let unfinished = compactor.start_early(&long(6), &with_model(&later));
    let mut history = grown(long(6));
    let (spans, _) = traced(|| drop(pass(&mut compactor, &mut history, &later)));
    assert!(unfinished.is_some() && background(&spans) == Some("\"stale\""), "{spans:?}");
}

#[test]
fn eight_run_at_once_of_a_compactor_and_its_clones() {
    let model = scribe([]);
    let one = compactor(fallback());
    let start = |_| one.clone().start_early(&long(6), &with_model(&model));
    let mut running: Vec<_> = (0..9).map(start).collect();
    assert_eq!(running.iter().filter(|start| start.is_some()).count(), 8);
    running.truncate(3);
    assert!(start(0).is_some(), "those that are dropped make room");
}

#[test]
fn one_that_is_dropped_makes_room_for_another() {
    let model = scribe([]);
    let mut compactor = compactor(fallback());
    drop(compactor.start_early(&long(6), &with_model(&model)));
    assert!(compactor.start_early(&long(7), &with_model(&model)).is_some());
}

#[test]
fn a_wish_uses_what_was_started_early_unless_it_has_a_focus() {
    for focus in [None, Some("the tea".to_owned())] {
        let (model, later) = (scribe(["so far"]), scribe(["so good"]));
        let mut compactor = compactor(fallback()).on_request(OnRequest { min_tokens: Tokens(1), max_per_run: 1 });
        let mut history = started(&mut compactor, &model);
        compactor.wish(focus.clone(), &history, &retrace_events::tokens::FourCharacters).unwrap();
        assert!(compactor.is_due(&history, &with_model(&later)));
        let (spans, _) = traced(|| drop(pass(&mut compactor, &mut history, &later)));
        let wanted = if focus.is_some() { "\"stale\"" } else { "\"used\"" };
        assert_eq!(background(&spans), Some(wanted));
        assert_eq!(spans[0]["compaction.model_requested"], "true");
        assert_eq!(later.0.asked().len(), usize::from(focus.is_some()));
    }
}
