//! Compaction that is started early: it runs beside the agent on a copy of the history, and what it left stands in for the
//! copy once the history calls for it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use retrace_events::tokens::Tokens;
use retrace_events::{Event, History, Spend};
use tracing::warn;

use super::span::{Cause, trace};
use super::{Compactor, Outcome, Pass, usage_event};
use crate::context::CompactContext;
use crate::strategy::{CompactError, Compacted, Strategy};

/// So many run at once, for a compactor and all its clones.
const MAX_AT_ONCE: usize = 8;

/// A compaction to run beside the agent, from [`Compactor::start_early`]. One that is dropped makes room for another.
#[must_use = "it does nothing until it is run"]
pub struct EarlyStart {
    strategy: Arc<dyn Strategy>,
    copy: History,
    result: Arc<Mutex<Option<Finished>>>,
    _alive: Arc<()>,
    _permit: Permit,
}

/// What came of it.
type Finished = Result<Compacted, CompactError>;

/// An early compaction, as the compactor remembers it.
#[derive(Clone)]
pub(super) struct Early {
    copy: History,
    window: Option<Tokens>,
    model: Option<String>,
    result: Arc<Mutex<Option<Finished>>>,
    /// Gone as soon as nothing more will come.
    alive: Weak<()>,
}

/// What became of an early compaction when the history called for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Background {
    /// It stands in for its copy.
    Used,
    /// It is not there yet, the history or the model is another by now, or it left too much.
    Stale,
    /// It failed.
    Failed,
}

impl Background {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Used => "used",
            Self::Stale => "stale",
            Self::Failed => "failed",
        }
    }
}

/// One of those that may run at once.
struct Permit(Arc<AtomicUsize>);

impl Permit {
    fn of(running: &Arc<AtomicUsize>) -> Option<Self> {
        let one_more = |n| (n < MAX_AT_ONCE).then_some(n + 1);
        running.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_more).ok()?;
        Some(Self(Arc::clone(running)))
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl EarlyStart {
    /// Compacts the copy. A loop polls this beside its next request, or spawns it.
    ///
    /// What it asked of models is given back as an event for the loop to keep in its record, whatever becomes of what was
    /// left; no pass of the compactor accounts for it again.
    pub async fn run(self, cx: &mut CompactContext<'_>) -> Option<Event> {
        let earlier = cx.spend();
        let compacted = self.strategy.compact(&self.copy, cx).await;
        *self.result.lock().unwrap_or_else(PoisonError::into_inner) = Some(compacted);
        usage_event(cx.spend().since(earlier))
    }
}

impl Early {
    fn take_result(&self) -> Option<Finished> {
        self.result.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Whether it was dropped before it had come to an end.
    fn was_dropped(&self) -> bool {
        // In this order: one that ends in between has left its result.
        self.alive.strong_count() == 0 && self.result.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }
}

impl Compactor {
    /// The compaction to start now, beside the next request, where the strategy wants to be started early: a
    /// [`FallbackCompaction`](crate::FallbackCompaction) with a `background_start`. There is one at a time for each
    /// conversation.
    ///
    /// Once the history [is due](Self::is_due), what it left stands in for the events that it was started on, and what came
    /// since follows unchanged. A loop that waits for it then, before it calls [`before_request`](Self::before_request),
    /// pays for no second one.
    pub fn start_early(&mut self, history: &History, cx: &CompactContext<'_>) -> Option<EarlyStart> {
        self.early.take_if(|early| early.was_dropped());
        if self.early.is_some() || self.is_due(history, cx) {
            return None;
        }
        let corrected = self.corrected(history);
        let strategy = self.strategy.early(corrected.as_ref().unwrap_or(history), cx.window, cx.counter)?;
        let permit = Permit::of(&self.n_early)?;
        let (result, alive) = (Arc::default(), Arc::new(()));
        self.early = Some(Early {
            copy: history.clone(),
            window: cx.window,
            model: cx.model.map(str::to_owned),
            result: Arc::clone(&result),
            alive: Arc::downgrade(&alive),
        });
        Some(EarlyStart { strategy, copy: history.clone(), result, _alive: alive, _permit: permit })
    }

    /// Puts what an early compaction left in the place of its copy, if it can be used; else says why not.
    pub(super) fn swap_in(
        &mut self,
        early: &Early,
        history: &mut History,
        cx: &CompactContext<'_>,
        model_requested: bool,
    ) -> Result<Pass, Background> {
        let strategy = self.strategy.type_name();
        let left = match early.take_result() {
            Some(Ok(Compacted::Changed(left))) => left,
            None | Some(Ok(Compacted::Unchanged)) => return Err(Background::Stale),
            Some(Err(error)) => {
                warn!(strategy, error = &error as &dyn std::error::Error, "a compaction that was started early failed");
                return Err(Background::Failed);
            }
        };
        let is_same_model = early.window == cx.window && early.model.as_deref() == cx.model;
        if !is_same_model || !starts_with(history, &early.copy) {
            return Err(Background::Stale);
        }
        let since = history.iter().skip(early.copy.len());
        let swapped = History::new(left.iter().chain(since).map(Arc::clone).collect::<Vec<_>>());
        let stale = self.stale.clone();
        self.note_removed(history, &swapped, cx.counter);
        let leaves_too_much = self.is_triggered(&swapped, cx);
        self.stale = stale;
        if leaves_too_much {
            return Err(Background::Stale);
        }
        let before = std::mem::replace(history, swapped);
        trace(
            &*self.strategy,
            &before,
            history,
            cx.counter,
            Cause { model_requested, background: Some(Background::Used) },
        );
        Ok(Pass { outcome: Outcome::Compacted { before }, spend: Spend::default(), still_due: false })
    }
}

fn starts_with(history: &History, start: &History) -> bool {
    history.len() >= start.len()
        && history.iter().zip(start.iter()).all(|(event, copied)| Arc::ptr_eq(event, copied) || event == copied)
}
