//! What every model of a run has around it: time limits, a pace, and further attempts.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use retrace_model::{Model, Retry};

use crate::limits::{Timed, TokioSleep};
use crate::pace::{Pace, Paced};
use crate::settings::Settings;

/// Puts around models what lets them be asked with patience.
///
/// Each attempt has the time limit of a model call, and before it waits for its turn: models of one name share the
/// [`RateLimit`](crate::RateLimit) of that name, and are all asked more slowly once one of them is
/// [rate limited](retrace_model::ModelError::RateLimited). After an error that is transient there is another attempt.
pub struct Patience {
    settings: Settings,
    paces: Mutex<HashMap<String, Arc<Pace>>>,
}

impl Patience {
    /// The patience that these settings have.
    pub fn new(settings: &Settings) -> Self {
        Self { settings: settings.clone(), paces: Mutex::default() }
    }

    /// A model that is asked with patience, on the tokio runtime that polls it, which needs its clock.
    pub fn around<M: Model>(&self, model: M) -> impl Model + use<M> {
        let pace = self.pace(model.name());
        let timed = Timed::new(model, self.settings.limits.model);
        Retry::new(Paced::new(timed, pace, Arc::clone(&self.settings.counter)), TokioSleep, self.settings.backoff)
    }

    fn pace(&self, name: &str) -> Arc<Pace> {
        let mut paces = self.paces.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pace) = paces.get(name) {
            return Arc::clone(pace);
        }
        let Settings { rate_limits, concurrency, backoff, .. } = &self.settings;
        let limit = rate_limits.get(name).copied().unwrap_or_default();
        let pace = Arc::new(Pace::new(limit, *concurrency, *backoff));
        paces.insert(name.to_owned(), Arc::clone(&pace));
        pace
    }
}
