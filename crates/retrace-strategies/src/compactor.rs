//! Compaction in a running agent, and between runs: a history edited in place, a span for what changed, an account of
//! what it cost.

mod early;
mod on_request;
mod span;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use retrace_events::tokens::{TokenCounter, Tokens, count_events, count_sent};
use retrace_events::{Event, Extra, History, Spend, UsageEvent};
use tracing::warn;

pub use self::early::EarlyStart;
use self::early::{Background, Early};
pub use self::on_request::{OnRequest, WishRefused};
use self::on_request::{Wish, Wishes};
use self::span::{Cause, trace};
use crate::context::CompactContext;
use crate::sizes::anchored;
use crate::strategy::{CompactError, Compacted, Strategy};

/// Compacts the history of one conversation as it grows. A fresh one is for one conversation; a clone goes on from where
/// it is.
///
/// Any loop can have one: it calls [`before_request`](Self::before_request) on its history just before each request.
///
/// ```
/// use std::sync::Arc;
/// use retrace_events::{Event, History};
/// use retrace_strategies::{CompactContext, Compactor, Outcome, SlidingWindow};
///
/// let window = SlidingWindow { max_messages: Some(3), keep_messages: 2, ..SlidingWindow::default() };
/// let mut compactor = Compactor::new(Arc::new(window));
/// let mut history = History::from(vec![Event::request("the task")]);
/// for n in 1..=3 {
///     let pass = pollster::block_on(compactor.before_request(&mut history, &mut CompactContext::without_model()));
///     if let Outcome::Failed(error) = pass.outcome {
///         println!("round {n} goes on with the whole history: {error}");
///     }
///     // Here the loop would ask its model.
///     history.push(Event::answer("an answer"));
///     history.push(Event::request("go on"));
/// }
/// assert_eq!(history.len(), 5); // The task and the two newest events, and what came after them.
/// ```
#[derive(Clone)]
pub struct Compactor {
    strategy: Arc<dyn Strategy>,
    max_events: Option<usize>,
    /// What the model may wish for; none where it may not.
    wishes: Option<Wishes>,
    /// The newest response that told its input when something was removed before it, and how many tokens were: until
    /// there is a newer one, what it told is too much.
    stale: Option<(Arc<Event>, u64)>,
    /// The size that a history must grow beyond before it is compacted again, while its trigger stays true.
    held_up_to: Option<Tokens>,
    has_said: bool,
    /// What was started early and has not been asked for yet.
    early: Option<Early>,
    /// How many of those run, of this one and its clones.
    n_early: Arc<AtomicUsize>,
}

/// What came of one look at a history, or of one compaction.
#[derive(Clone, Debug, PartialEq)]
pub struct Pass {
    /// What became of the history.
    pub outcome: Outcome,
    /// What it cost, whatever came of it.
    pub spend: Spend,
    /// Whether the history still calls for a compaction: what cannot be removed is larger than the trigger, or the
    /// strategy keeps more than it allows. A [`Compactor`] warns of it once, and then waits until the history has grown by a
    /// quarter, instead of compacting at every request.
    pub still_due: bool,
}

/// What became of a history.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It did not call for a compaction.
    NotDue,
    /// There was nothing to do.
    Unchanged,
    /// It was compacted.
    Compacted {
        /// What it was.
        before: History,
    },
    /// It could not be compacted, and was left as it was.
    Failed(CompactError),
}

/// How large a history was before a compaction and after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Events that counted.
    pub messages_before: usize,
    /// Events that count.
    pub messages_after: usize,
    /// Tokens, by the run's counter.
    pub tokens_before: Tokens,
    /// Tokens now; there may be more of them.
    pub tokens_after: Tokens,
}

/// Compacts a history in place, whatever it calls for: between runs, or on request. What was asked of models is appended
/// as a `usage` event of kind `compaction`.
///
/// A compaction that changed something is a span `compact_messages`, opened and closed once it is done; its sizes are
/// counted only if someone listens. Each receipt that it put there is an event `compaction.receipt` in the span.
pub async fn compact(strategy: &dyn Strategy, history: &mut History, cx: &mut CompactContext<'_>) -> Pass {
    compact_because(Cause::default(), strategy, history, cx).await
}

/// As [`compact`], with what its span says of it.
async fn compact_because(
    cause: Cause,
    strategy: &dyn Strategy,
    history: &mut History,
    cx: &mut CompactContext<'_>,
) -> Pass {
    let earlier = cx.spend();
    let compacted = strategy.compact(history, cx).await;
    let mut pass = Pass { outcome: Outcome::Unchanged, spend: cx.spend().since(earlier), still_due: false };
    match compacted {
        Ok(Compacted::Unchanged) => {}
        Ok(Compacted::Changed(kept)) => {
            let before = std::mem::replace(history, kept);
            trace(strategy, &before, history, cx.counter, cause);
            pass.outcome = Outcome::Compacted { before };
            if let Some(usage) = pass.usage_event() {
                history.push(usage);
            }
        }
        Err(error) => {
            let strategy = strategy.type_name();
            warn!(strategy, error = &error as &dyn std::error::Error, "a compaction failed; the history is as it was");
            pass.outcome = Outcome::Failed(error);
        }
    }
    pass
}

impl Compactor {
    /// Compacts when the strategy's own trigger says so.
    pub fn new(strategy: Arc<dyn Strategy>) -> Self {
        Self {
            strategy,
            max_events: None,
            wishes: None,
            stale: None,
            held_up_to: None,
            has_said: false,
            early: None,
            n_early: Arc::default(),
        }
    }

    /// Compacts when more than this many events count, too. Strategies that have no trigger of their own need it.
    pub fn max_events(mut self, max_events: usize) -> Self {
        self.max_events = Some(max_events);
        self
    }

    /// What compacts.
    pub fn strategy(&self) -> &Arc<dyn Strategy> {
        &self.strategy
    }

    /// Whether a history of nothing but what can never be removed, such as the instructions, the tools and the task, calls
    /// for a compaction already: its trigger would stay true whatever it does.
    pub fn is_set_off_by(&self, least: &History, cx: &CompactContext<'_>) -> bool {
        self.is_still_due(least, cx)
    }

    /// Compacts a history in place, if it calls for it. To be called just before each request; the next one starts from
    /// what this one left.
    ///
    /// Nothing makes it fail: where the strategy does, the history is left as it was, and [`Outcome::Failed`] says so.
    pub async fn before_request(&mut self, history: &mut History, cx: &mut CompactContext<'_>) -> Pass {
        let is_triggered = self.is_triggered(history, cx);
        if !is_triggered {
            self.held_up_to = None;
        }
        let is_held = self.held_up_to.is_some_and(|most| self.size(history, cx.counter) <= most);
        let wish = self.wishes.as_mut().and_then(Wishes::take);
        let lapses = is_triggered && !is_held;
        let mut pass = match &wish {
            _ if lapses => self.compact_for(None, history, cx).await,
            Some(wish) => self.compact_for(Some(wish), history, cx).await,
            None => return Pass { outcome: Outcome::NotDue, spend: Spend::default(), still_due: false },
        };
        if let (Some(wish), Some(wishes)) = (wish, &mut self.wishes) {
            wishes.settle(wish, lapses, matches!(pass.outcome, Outcome::Failed(_)));
        }
        match &pass.outcome {
            Outcome::Compacted { before } => self.note_removed(before, history, cx.counter),
            Outcome::NotDue | Outcome::Unchanged => {}
            // It is tried again before the next request.
            Outcome::Failed(_) => return pass,
        }
        pass.still_due = self.is_still_due(history, cx);
        self.held_up_to = pass.still_due.then(|| {
            let left = self.size(history, cx.counter);
            left + Tokens(left.0 / 4)
        });
        if pass.still_due && !std::mem::replace(&mut self.has_said, true) {
            warn!(
                strategy = self.strategy.type_name(),
                "a compacted history still calls for compaction: the trigger is below what the strategy keeps; \
                 the next one waits until the history has grown by a quarter"
            );
        }
        pass
    }

    /// Compacts a history that calls for it, or for a wish. A compaction that was started early may be there.
    async fn compact_for(&mut self, wish: Option<&Wish>, history: &mut History, cx: &mut CompactContext<'_>) -> Pass {
        let model_requested = wish.is_some();
        let focus = wish.and_then(Wish::focus);
        let background = match self.early.take() {
            None => None,
            // It knew nothing of the focus.
            Some(_) if focus.is_some() => Some(Background::Stale),
            Some(early) => match self.swap_in(&early, history, cx, model_requested) {
                Ok(pass) => return pass,
                Err(background) => Some(background),
            },
        };
        let cause = Cause { model_requested, background };
        let Some(focus) = focus else { return compact_because(cause, &*self.strategy, history, cx).await };
        let mut focused = cx.focusing(focus);
        let pass = compact_because(cause, &*self.strategy, history, &mut focused).await;
        let spend = focused.spend();
        cx.go_on_from(spend);
        pass
    }

    /// Whether a history is compacted before the next request: it calls for it, or the model has wished for it.
    pub fn is_due(&self, history: &History, cx: &CompactContext<'_>) -> bool {
        self.is_triggered(history, cx) || self.wishes.as_ref().is_some_and(Wishes::is_pending)
    }

    fn is_triggered(&self, history: &History, cx: &CompactContext<'_>) -> bool {
        self.exceeds_events(history) || self.strategy_is_due(history, cx)
    }

    /// As [`is_triggered`](Self::is_triggered), but for a strategy that looks for itself at every request: that is no trigger.
    fn is_still_due(&self, history: &History, cx: &CompactContext<'_>) -> bool {
        let nothing = History::from(Vec::new());
        self.exceeds_events(history)
            || self.strategy_is_due(history, cx) && !self.strategy.is_due(&nothing, cx.window, cx.counter)
    }

    fn exceeds_events(&self, history: &History) -> bool {
        self.max_events.is_some_and(|most| history.n_counting() > most)
    }

    fn strategy_is_due(&self, history: &History, cx: &CompactContext<'_>) -> bool {
        let corrected = self.corrected(history);
        self.strategy.is_due(corrected.as_ref().unwrap_or(history), cx.window, cx.counter)
    }

    /// The tokens of the next request: what the provider said of the newest one, less what was removed since, and what came
    /// after it by the counter.
    pub fn size(&self, history: &History, counter: &dyn TokenCounter) -> Tokens {
        anchored(counter, self.corrected(history).as_ref().unwrap_or(history))
    }

    /// Keeps in mind that what the provider said of the input is more than what is left of it.
    fn note_removed(&mut self, before: &History, after: &History, counter: &dyn TokenCounter) {
        let Some(anchor) = newest_anchor(after) else { return };
        let Some(old_anchor) = newest_anchor(before) else { return };
        let up_to = |history: &History, index: usize| count_events(counter, history.events().take(index + 1)).0;
        let removed = up_to(before, old_anchor).saturating_sub(up_to(after, anchor));
        let earlier = before.get(old_anchor).and_then(|event| self.removed_before(event)).unwrap_or(0);
        self.stale = after.get(anchor).map(|event| (Arc::clone(event), removed.saturating_add(earlier)));
    }

    fn removed_before(&self, anchor: &Arc<Event>) -> Option<u64> {
        let (stale, removed) = self.stale.as_ref()?;
        (Arc::ptr_eq(stale, anchor) || stale == anchor).then_some(*removed)
    }

    /// The history with what was removed taken off what the provider said of it, if that is too much.
    fn corrected(&self, history: &History) -> Option<History> {
        self.stale.as_ref()?;
        let anchor = newest_anchor(history)?;
        let removed = self.removed_before(history.get(anchor)?)?;
        let mut events: Vec<_> = history.iter().map(Arc::clone).collect();
        if let Event::Response(response) = Arc::make_mut(&mut events[anchor])
            && let Some(usage) = &mut response.usage
        {
            usage.input_tokens = usage.input_tokens.saturating_sub(removed).max(1);
        }
        Some(History::new(events))
    }
}

/// The newest response that told its input.
fn newest_anchor(history: &History) -> Option<usize> {
    let told = |event: &Event| matches!(event, Event::Response(response) if response.usage.as_ref().is_some_and(|usage| usage.input_tokens > 0));
    history.events().rev().position(told).map(|back| history.len() - 1 - back)
}

impl Pass {
    /// What was asked of models, as an event of the run; nothing where none was asked.
    pub fn usage_event(&self) -> Option<Event> {
        usage_event(self.spend)
    }
}

fn usage_event(spend: Spend) -> Option<Event> {
    let usage =
        || UsageEvent { kind: "compaction".to_owned(), usage: spend.usage(), model: None, extra: Extra::default() };
    (spend.n_model_calls > 0).then(|| Event::Usage(usage()))
}

impl Sizes {
    /// Those of a history before a compaction and after it.
    pub fn of(before: &History, after: &History, counter: &dyn TokenCounter) -> Self {
        Self {
            messages_before: before.n_counting(),
            messages_after: after.n_counting(),
            tokens_before: count_sent(counter, before),
            tokens_after: count_sent(counter, after),
        }
    }
}
