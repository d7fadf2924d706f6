//! The port, and what may go wrong behind it.

use std::sync::Arc;
use std::time::Duration;

use futures_core::future::BoxFuture;
use retrace_events::sent::SentHash;
use retrace_events::{Prices, Response};

use crate::prompt::Prompt;
use crate::rules::Rules;

/// Answers prompts.
///
/// An implementor sends what [`History::sent`](retrace_events::History::sent) gives and nothing else of the history,
/// makes one call at a time (trying again is [`Retry`](crate::Retry)'s business), and never puts a key into an error.
pub trait Model: Send + Sync {
    /// Its name, as reports give it, such as `openai:gpt-4.1-mini`.
    fn name(&self) -> &str;

    /// Answers a prompt.
    ///
    /// # Errors
    /// When there is no answer; [`ModelError::is_transient`] says whether another attempt may get one.
    fn respond<'a>(&'a self, prompt: &'a Prompt<'a>) -> BoxFuture<'a, Result<Answer, ModelError>>;

    /// What it refuses in a prompt; what goes around another model says what that one does.
    fn rules(&self) -> Rules {
        Rules::default()
    }

    /// What its tokens cost, if that is known; what goes around another model says what that one does.
    fn prices(&self) -> Option<Prices> {
        None
    }
}

/// What a model answered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// Its response.
    pub response: Response,
    /// The hash of what it was sent of the history, made from the messages that left the program; none where that is
    /// not known. A caller compares it with [`History::sent_hash`](retrace_events::History::sent_hash).
    pub sent: Option<SentHash>,
}

/// Why a model gave no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The provider takes no more requests for now.
    #[error("rate limited: {message}")]
    RateLimited {
        /// What the provider said.
        message: String,
        /// How long it asks to wait.
        retry_after: Option<Duration>,
    },
    /// The provider cannot be reached, or broke.
    #[error("unavailable: {message}")]
    Unavailable {
        /// What was seen of it.
        message: String,
        /// How long it asks to wait.
        retry_after: Option<Duration>,
    },
    /// No answer came in time.
    #[error("no answer within {limit:?}")]
    TimedOut {
        /// The time limit.
        limit: Duration,
    },
    /// The provider refused the request; sent again it would be refused again.
    #[error("refused: {message}")]
    Refused {
        /// What the provider said.
        message: String,
    },
    /// An answer came that cannot be used.
    #[error("unusable answer: {message}")]
    Unusable {
        /// What is wrong with it.
        message: String,
    },
    /// No model was asked: a [cassette](crate::Cassette) has no such answer, or can keep none.
    #[error("{message}")]
    Cassette {
        /// Why, and what it has instead.
        message: String,
    },
}

impl ModelError {
    /// Whether the same request may be answered when it is sent again.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::RateLimited { .. } | Self::Unavailable { .. } | Self::TimedOut { .. })
    }

    /// How long the provider asks to wait before the request is sent again.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::RateLimited { retry_after, .. } | Self::Unavailable { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}

impl From<Response> for Answer {
    fn from(response: Response) -> Self {
        Self { response, sent: None }
    }
}

impl<M: Model + ?Sized> Model for Arc<M> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn respond<'a>(&'a self, prompt: &'a Prompt<'a>) -> BoxFuture<'a, Result<Answer, ModelError>> {
        (**self).respond(prompt)
    }

    fn rules(&self) -> Rules {
        (**self).rules()
    }

    fn prices(&self) -> Option<Prices> {
        (**self).prices()
    }
}
