//! When a history is compacted, what is said of it, and what a wish is worth.

mod early;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Mutex;

use retrace_events::{Part, Request, Response, Usage};
use retrace_model::{ScriptedModel, Step};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Metadata, Subscriber};

use super::*;
use crate::{AskModel, SlidingWindow, Summarize, SummarizingCompaction, TailWindow, TieredCompaction};

/// Keeps the fields of spans and of receipts, and counts warnings.
#[derive(Default)]
struct Spans {
    spans: Mutex<Vec<BTreeMap<&'static str, String>>>,
    receipts: Mutex<Vec<BTreeMap<&'static str, String>>>,
    n_warnings: Mutex<usize>,
}

struct Fields<'a>(&'a mut BTreeMap<&'static str, String>);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}

impl Subscriber for Spans {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut spans = self.spans.lock().unwrap();
        let mut fields = BTreeMap::from([("name", span.metadata().name().to_owned())]);
        span.record(&mut Fields(&mut fields));
        spans.push(fields);
        Id::from_u64(spans.len() as u64)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        values.record(&mut Fields(&mut self.spans.lock().unwrap()[span.into_u64() as usize - 1]));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        if event.metadata().name() == "compaction.receipt" {
            let mut fields = BTreeMap::new();
            event.record(&mut Fields(&mut fields));
            self.receipts.lock().unwrap().push(fields);
        } else {
            *self.n_warnings.lock().unwrap() += 1;
        }
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// What is traced meanwhile.
fn listening(work: impl FnOnce()) -> Arc<Spans> {
    let spans = Arc::new(Spans::default());
    tracing::subscriber::with_default(Arc::clone(&spans), work);
    spans
}

/// What is traced meanwhile: the fields of spans, and how many warnings.
fn traced(work: impl FnOnce()) -> (Vec<BTreeMap<&'static str, String>>, usize) {
    let spans = listening(work);
    let n_warnings = *spans.n_warnings.lock().unwrap();
    let spans = spans.spans.lock().unwrap().clone();
    (spans, n_warnings)
}

fn compactor(strategy: impl Strategy + 'static) -> Compactor {
    Compactor::new(Arc::new(strategy))
}

fn look(compactor: &mut Compactor, history: &mut History) -> Pass {
    pollster::block_on(compactor.before_request(history, &mut CompactContext::without_model()))
}

fn window(max_tokens: u64, keep_messages: usize) -> SlidingWindow {
    SlidingWindow { max_tokens: Some(max_tokens), keep_messages, ..SlidingWindow::default() }
}

/// An answer whose request had so many tokens.
fn told(input_tokens: u64, text: &str) -> Event {
    let usage = Usage { input_tokens, output_tokens: 1, ..Usage::default() };
    Event::Response(Response { content: [Part::text(text)].into(), usage: Some(usage), ..Response::default() })
}

fn long(n: usize) -> History {
    History::from((0..n).map(|n| Event::request(format!("{n:040}"))).collect::<Vec<_>>())
}

#[test]
fn an_edit_stays_and_is_one_span_with_its_sizes() {
    let mut compactor = compactor(window(60, 3));
    let mut history = long(5);
    let (spans, n_warnings) = traced(|| {
        assert_eq!(look(&mut compactor, &mut history).outcome, Outcome::NotDue);
        history.push(Event::request("x".repeat(80)));
        let before = history.clone();
        assert_eq!(look(&mut compactor, &mut history).outcome, Outcome::Compacted { before });
        assert_eq!(look(&mut compactor, &mut history).outcome, Outcome::NotDue);
    });
    assert_eq!(history.len(), 4);
    let wanted = [
        ("name", "compact_messages"),
        ("gen_ai.conversation.compacted", "true"),
        ("compaction.strategy", "\"SlidingWindow\""),
        ("compaction.messages_before", "6"),
        ("compaction.messages_after", "4"),
        ("compaction.tokens_before", "70"),
        ("compaction.tokens_after", "50"),
    ];
    assert_eq!(spans, [wanted.map(|(key, value)| (key, value.to_owned())).into()]);
    assert_eq!(n_warnings, 0);
}

#[test]
fn a_receipt_is_told_by_the_compaction_that_wrote_it() {
    let receipts =
        SlidingWindow { max_messages: Some(4), keep_messages: 3, receipts: true, ..SlidingWindow::default() };
    let clamps = crate::ClampOversizedMessages {
        max_part_chars: Some(200),
        keep_head_chars: 10,
        keep_tail_chars: 10,
        ..crate::ClampOversizedMessages::default()
    };
    let (mut window, mut clamp) = (compactor(receipts), compactor(clamps));
    let mut history = long(6);
    let spans = listening(|| {
        look(&mut window, &mut history);
        // As many again: another receipt of the same words.
        long(3).events().for_each(|event| history.push(event.clone()));
        look(&mut window, &mut history);
        // This one keeps the receipt that is there.
        history.push(told(10, &"y".repeat(400)));
        look(&mut clamp, &mut history);
    });
    let receipt = [
        ("compaction.receipt.strategy", "\"SlidingWindow\""),
        ("compaction.receipt.messages_dropped", "3"),
        ("compaction.receipt.tokens_dropped", "30"),
    ];
    let receipt: BTreeMap<_, _> = receipt.map(|(key, value)| (key, value.to_owned())).into();
    assert_eq!(spans.spans.lock().unwrap().len(), 3);
    assert_eq!(*spans.receipts.lock().unwrap(), [receipt.clone(), receipt]);
}

#[test]
fn the_counter_of_a_strategy_counts_what_its_span_says_too() {
    let counted = crate::Counted::new(Arc::new(window(60, 3)), Arc::new(crate::histories::Characters));
    let mut history = long(6);
    let (spans, _) = traced(|| drop(look(&mut compactor(counted), &mut history)));
    assert_eq!((&*spans[0]["compaction.tokens_before"], &*spans[0]["compaction.tokens_after"]), ("240", "160"));
}

#[test]
fn a_failure_leaves_the_history_alone_and_is_tried_again() {
    let model = AskModel(ScriptedModel::new([Step::from(""), Step::from("so far, so good")]));
    let mut compactor = compactor(Summarize::new(2)).max_events(3);
    let (mut history, before) = (long(5), long(5));
    let mut cx = CompactContext::new(&model, 0);
    let mut pass = |history: &mut History| pollster::block_on(compactor.before_request(history, &mut cx));
    let (spans, n_warnings) = traced(|| {
        let failed = pass(&mut history);
        assert_eq!(failed.outcome, Outcome::Failed(CompactError::EmptySummary));
        assert_eq!(failed.spend.n_model_calls, 1);
    });
    assert_eq!((spans.len(), n_warnings), (0, 1));
    assert_eq!(history, before);
    let second = pass(&mut history);
    assert_eq!(second.outcome, Outcome::Compacted { before });
    assert_eq!(second.spend.n_model_calls, 1);
    assert_eq!(history.last().map(|event| &**event), second.usage_event().as_ref());
}

#[test]
fn what_a_provider_said_before_a_compaction_does_not_call_for_another() {
    let mut events: Vec<_> = long(20).events().cloned().collect();
    events.push(told(300, "an answer"));
    events.push(Event::request("next"));
    let mut history = History::from(events);
    let mut compactor = compactor(window(250, 4));
    let pass = look(&mut compactor, &mut history);
    assert!(matches!(pass.outcome, Outcome::Compacted { .. }) && !pass.still_due, "{pass:?}");
    // The request failed, say, and is made again.
    assert_eq!(look(&mut compactor, &mut history).outcome, Outcome::NotDue);
    history.push(told(251, "what cannot be removed has grown"));
    assert!(matches!(look(&mut compactor, &mut history).outcome, Outcome::Compacted { .. }));
}

#[test]
fn a_trigger_that_stays_true_is_said_once_and_does_not_compact_at_every_request() {
    let huge =
        Request { content: vec![Part::system("x".repeat(4_000)), Part::text("go")].into(), ..Request::default() };
    let tiers: [Arc<dyn Strategy>; 1] = [Arc::new(window(1, 2))];
    let strategies: [(Compactor, &str); 3] = [
        (compactor(window(500, 2)), "own trigger"),
        (compactor(TieredCompaction::new(tiers, 500)), "target"),
        (compactor(TailWindow::new(6)).max_events(4), "events"),
    ];
    for (mut compactor, name) in strategies {
        let mut history = History::from(vec![Event::Request(huge.clone())]);
        let (mut n_compacted, mut n_said) = (0, 0);
        let (_, n_warnings) = traced(|| {
            for n in 0..40 {
                history.push(told(1_100 + 30 * (history.len() as u64), &format!("{n:080}")));
                history.push(Event::request(format!("{n:040}")));
                let pass = look(&mut compactor, &mut history);
                n_compacted += usize::from(matches!(pass.outcome, Outcome::Compacted { .. }));
                n_said += usize::from(pass.still_due);
            }
        });
        assert_eq!(n_warnings, 1, "{name}");
        assert!((1..=20).contains(&n_compacted) && n_said >= n_compacted, "{name}: {n_compacted} of 40, {n_said}");
    }
}

#[test]
fn what_can_never_be_removed_is_seen_to_be_above_the_trigger_before_anything_runs() {
    let least = |chars: usize| {
        let content = vec![Part::system("x".repeat(chars)), Part::text("go")].into();
        History::from(vec![Event::Request(Request { content, ..Request::default() })])
    };
    let cx = CompactContext::without_model();
    let tiers: [Arc<dyn Strategy>; 1] = [Arc::new(window(1, 2))];
    for compactor in [compactor(window(500, 2)), compactor(TieredCompaction::new(tiers, 500))] {
        assert!(compactor.is_set_off_by(&least(4_000), &cx) && !compactor.is_set_off_by(&least(400), &cx));
    }
    assert!(!compactor(TailWindow::new(2)).is_set_off_by(&least(4_000), &cx), "it has no trigger");
}

#[test]
fn a_wish_is_granted_once_before_the_next_request_with_its_focus_and_within_its_limits() {
    let asked = AskModel(ScriptedModel::new([Step::from("so far"), Step::from("so good")]));
    let limits = OnRequest { min_tokens: Tokens(45), max_per_run: 1 };
    let summarizing =
        SummarizingCompaction { max_messages: Some(8), keep_messages: 2, ..SummarizingCompaction::default() };
    let mut compactor = compactor(summarizing).on_request(limits);
    let wish = |compactor: &mut Compactor, history: &History| {
        compactor.wish(Some("the tea".to_owned()), history, &retrace_events::tokens::FourCharacters)
    };
    let look = |compactor: &mut Compactor, history: &mut History| {
        let mut cx = CompactContext::new(&asked, 0);
        let pass = pollster::block_on(compactor.before_request(history, &mut cx));
        assert_eq!(cx.spend(), pass.spend);
        pass
    };
    let mut history = long(4);
    assert_eq!(wish(&mut compactor, &history), Err(WishRefused::TooSmall { size: Tokens(40), min: Tokens(45) }));
    // The trigger has it compacted before, so the wish lapses.
    history = long(9);
    assert_eq!(wish(&mut compactor, &history), Ok(()));
    assert_eq!(wish(&mut compactor, &history), Err(WishRefused::Pending));
    assert!(matches!(look(&mut compactor, &mut history).outcome, Outcome::Compacted { .. }));
    assert_eq!(look(&mut compactor, &mut history).outcome, Outcome::NotDue);

    history = long(6);
    assert_eq!(look(&mut compactor, &mut history).outcome, Outcome::NotDue);
    assert_eq!(wish(&mut compactor, &history), Ok(()));
    let pass = look(&mut compactor, &mut history);
    assert!(matches!(pass.outcome, Outcome::Compacted { .. }) && pass.spend.n_model_calls == 1, "{pass:?}");
    assert_eq!(look(&mut compactor, &mut history).outcome, Outcome::NotDue);
    assert_eq!(wish(&mut compactor, &long(6)), Err(WishRefused::UsedUp { max: 1 }));
    let questions = asked.0.asked().into_iter().map(|asked| format!("{asked:?}").contains("the tea"));
    assert_eq!(questions.collect::<Vec<_>>(), [false, true]);
}

#[test]
fn a_wish_waits_where_the_compaction_that_was_due_failed() {
    let asked = AskModel(ScriptedModel::new(["", "", "so good"].map(Step::from)));
    let limits = OnRequest { min_tokens: Tokens(1), max_per_run: 1 };
    let summarizing =
        SummarizingCompaction { max_messages: Some(4), keep_messages: 2, ..SummarizingCompaction::default() };
    let mut compactor = compactor(summarizing).on_request(limits);
    let mut history = long(6);
    compactor.wish(Some("the tea".to_owned()), &history, &retrace_events::tokens::FourCharacters).unwrap();
    let pass = |compactor: &mut Compactor, history: &mut History| {
        pollster::block_on(compactor.before_request(history, &mut CompactContext::new(&asked, 0))).outcome
    };
    assert!(matches!(pass(&mut compactor, &mut history), Outcome::Failed(_)));
    // Shorter, it is due no more, and the wish is granted.
    let mut shorter = long(4);
    assert!(matches!(pass(&mut compactor, &mut shorter), Outcome::Compacted { .. }));
    assert!(format!("{:?}", asked.0.asked().last()).contains("the tea"));
}

#[test]
fn a_strategy_that_looks_for_itself_looks_every_time_and_nothing_is_said_of_it() {
    let mut compactor = compactor(crate::ClampOversizedMessages {
        max_part_chars: Some(200),
        keep_head_chars: 10,
        keep_tail_chars: 10,
        ..crate::ClampOversizedMessages::default()
    });
    let mut history = long(3);
    let (spans, n_warnings) = traced(|| {
        for _ in 0..3 {
            history.push(told(10, &"y".repeat(400)));
            let pass = look(&mut compactor, &mut history);
            assert!(matches!(pass.outcome, Outcome::Compacted { .. }) && !pass.still_due, "{pass:?}");
        }
    });
    assert_eq!((spans.len(), n_warnings), (3, 0));
}
