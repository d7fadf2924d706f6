//! The port.

use std::sync::Arc;

use futures_core::future::BoxFuture;
use retrace_events::History;
use retrace_events::tokens::{FourCharacters, TokenCounter, Tokens};
use retrace_model::ModelError;

use crate::cache::CacheKept;
use crate::config::BadSetting;
use crate::context::CompactContext;

/// Turns a history into what is kept of it.
///
/// It applies unconditionally, obeys the [`laws`](crate::laws), and reaches nothing but what its context hands it.
pub trait Strategy: Send + Sync {
    /// Its kind, as a configuration names it.
    fn kind(&self) -> &'static str;

    /// The name of its Rust type, such as `SlidingWindow`; spans have it.
    fn type_name(&self) -> &'static str {
        let name = std::any::type_name::<Self>();
        let outer = name.split('<').next().unwrap_or(name);
        outer.rsplit("::").next().unwrap_or(outer)
    }

    /// What becomes of the events that it does not keep.
    fn business(&self) -> Business;

    /// Whether a second pass over its own output, with nothing new, changes nothing and asks nothing.
    fn settles(&self) -> bool {
        true
    }

    /// Whether a running agent is to compact this history before its next request; `window` is the context window of its
    /// model, if known. A verification does not ask.
    fn is_due(&self, _history: &History, _window: Option<Tokens>, _counter: &dyn TokenCounter) -> bool {
        false
    }

    /// What counts its tokens, if not what counts those of the run.
    fn counter(&self) -> Option<&dyn TokenCounter> {
        None
    }

    /// What to run on a copy of this history now, beside the agent, since the history will soon call for the strategy; the
    /// result stands in for the copy once it does. Nothing unless the strategy is to be started early.
    fn early(
        &self,
        _history: &History,
        _window: Option<Tokens>,
        _counter: &dyn TokenCounter,
    ) -> Option<Arc<dyn Strategy>> {
        None
    }

    /// The same strategy as if it had never run, where it remembers what it did; nothing where it does not. A verification
    /// takes a fresh one for each compaction, so that none depends on which came before it.
    fn fresh(&self) -> Option<Arc<dyn Strategy>> {
        None
    }

    /// The models that it asks for by name.
    fn models(&self) -> Vec<&str> {
        Vec::new()
    }

    /// What its settings allow and hardly anybody means, such as a trigger that what it keeps sets off again.
    fn warnings(&self) -> Vec<BadSetting> {
        Vec::new()
    }

    /// Compacts a history.
    ///
    /// # Errors
    /// When there is nothing it can keep; the history is then left as it was.
    fn compact<'a>(
        &'a self,
        history: &'a History,
        cx: &'a mut CompactContext<'_>,
    ) -> BoxFuture<'a, Result<Compacted, CompactError>>;
}

/// Fresh ones of these, if any of them remembers anything.
pub(crate) fn fresh(strategies: &[Arc<dyn Strategy>]) -> Option<Vec<Arc<dyn Strategy>>> {
    let fresh: Vec<_> = strategies.iter().map(|strategy| strategy.fresh()).collect();
    let remembers = fresh.iter().any(Option::is_some);
    let all = fresh.into_iter().zip(strategies).map(|(fresh, old)| fresh.unwrap_or_else(|| Arc::clone(old)));
    remembers.then(|| all.collect())
}

/// What becomes of the events that a strategy does not keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Business {
    /// It keeps them all.
    Keeps,
    /// It keeps them all, but not all that they hold, and asks no model.
    Blanks,
    /// It drops them, and asks no model.
    Drops,
    /// It shows them to a model and keeps its summary.
    Summarizes,
    /// Some of them it drops, others it shows to a model.
    DropsAndSummarizes,
}

impl Business {
    /// Whether events, or what they held, may be gone that no model was shown.
    pub fn may_drop(self) -> bool {
        matches!(self, Self::Blanks | Self::Drops | Self::DropsAndSummarizes)
    }

    /// Whether it may ask a model.
    pub fn may_ask(self) -> bool {
        matches!(self, Self::Summarizes | Self::DropsAndSummarizes)
    }

    /// That of strategies of which any may run.
    pub(crate) fn of_any<'a>(strategies: impl IntoIterator<Item = &'a Arc<dyn Strategy>>) -> Self {
        let each = strategies.into_iter().map(|strategy| strategy.business());
        let (drops, asks) = each
            .fold((false, false), |(drops, asks), business| (drops || business.may_drop(), asks || business.may_ask()));
        match (drops, asks) {
            (true, true) => Self::DropsAndSummarizes,
            (true, false) => Self::Drops,
            (false, true) => Self::Summarizes,
            (false, false) => Self::Keeps,
        }
    }
}

/// What a strategy made of a history.
#[derive(Clone, Debug, PartialEq)]
pub enum Compacted {
    /// There was nothing to do.
    Unchanged,
    /// What it kept.
    Changed(History),
}

impl Compacted {
    /// The outcome of turning `before` into `after`, which may be no change at all.
    pub fn of(before: &History, after: History) -> Self {
        if *before == after { Self::Unchanged } else { Self::Changed(after) }
    }

    /// The index, in what was kept, of the first event that is another than the one that stood there: up to it a provider's
    /// prompt cache still knows the history. Nothing where no event differs; [`CacheKept`](crate::CacheKept) tells it in
    /// tokens.
    ///
    /// ```
    /// use retrace_events::{Event, History};
    /// use retrace_strategies::Compacted;
    ///
    /// let before = History::from(vec![Event::request("go"), Event::answer("a long story"), Event::request("on")]);
    /// let after = History::from(vec![Event::request("go"), Event::request("on")]);
    /// assert_eq!(Compacted::of(&before, after).first_changed(&before), Some(1));
    /// ```
    pub fn first_changed(&self, before: &History) -> Option<usize> {
        match self {
            Self::Unchanged => None,
            Self::Changed(after) => CacheKept::of(&FourCharacters, before, after).first_changed,
        }
    }
}

/// Why a history could not be compacted. It is then left as it was.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CompactError {
    /// The model gave no answer.
    #[error("the model call failed")]
    Model(#[from] ModelError),
    /// The model answered with nothing.
    #[error("the summary is empty")]
    EmptySummary,
    /// The model was asked which steps matter, and its answer does not say.
    #[error("the judge's answer is of no use: {problem}")]
    UnusableJudgement {
        /// What is wrong with it.
        problem: String,
    },
    /// A dry run asks nobody.
    #[error("no model is asked here; the question has about {} tokens", question.0)]
    NotAsked {
        /// The size of the question.
        question: Tokens,
    },
    /// The strategy names a model that the run does not have.
    #[error("there is no model `{name}`")]
    UnknownModel {
        /// The name.
        name: String,
    },
    /// Anything else that a strategy of one's own may fail with.
    #[error("{message}")]
    Other {
        /// What went wrong.
        message: String,
    },
}
