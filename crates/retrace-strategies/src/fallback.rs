//! `fallback`: the next strategy when one fails. Cost: that of its chain. Known from pydantic-ai-harness.

use std::sync::Arc;

use futures_core::future::BoxFuture;
use retrace_events::History;
use retrace_events::tokens::{TokenCounter, Tokens};

use crate::anchors::with_pins;
use crate::config::BadSetting;
use crate::context::CompactContext;
use crate::sizes::anchored;
use crate::strategy::{Business, CompactError, Compacted, Strategy, fresh};
use crate::trigger::{FALLBACK_WINDOW, Trigger, Window, is_of_trigger};

/// Runs the first strategy of its chain, and the next one on the original history where a model gives no answer or one
/// that is of no use. The first success is the result, even one that changed nothing; when all fail, the last error is.
#[derive(Clone)]
pub struct FallbackCompaction {
    /// The strategies, the preferred one first.
    pub chain: Vec<Arc<dyn Strategy>>,
    /// Compact when the next request has more tokens than this. Without a trigger it is never due of itself.
    pub max_tokens: Option<u64>,
    /// As `max_tokens`, as a share of the context window.
    pub max_fraction: Option<f64>,
    /// The context window in tokens, whatever the model's is.
    pub context_window: Option<u64>,
    /// The context window where the model's is not known.
    pub fallback_context_window: u64,
    /// From this share of the trigger on, its first strategy is started beside the agent.
    pub background_start: Option<f64>,
}

impl FallbackCompaction {
    /// These strategies, the preferred one first.
    pub fn new(chain: impl IntoIterator<Item = Arc<dyn Strategy>>) -> Self {
        Self {
            chain: chain.into_iter().collect(),
            max_tokens: None,
            max_fraction: None,
            context_window: None,
            fallback_context_window: FALLBACK_WINDOW,
            background_start: None,
        }
    }

    pub(crate) fn check(&self) -> Result<(), BadSetting> {
        if self.chain.is_empty() {
            return Err(BadSetting::new("chain", "is missing or empty: list strategies, the preferred one first"));
        }
        if let Some(share) = self.background_start {
            if !(share > 0.0 && share < 1.0) {
                return Err(BadSetting::new("background_start", "is a share of the trigger above 0 and below 1"));
            }
            return self.trigger().check_tokens_set("background_start");
        }
        self.trigger().check()
    }

    fn trigger(&self) -> Trigger {
        Trigger {
            max_messages: None,
            max_tokens: self.max_tokens,
            max_fraction: self.max_fraction,
            window: Window { own: self.context_window, fallback: self.fallback_context_window },
        }
    }

    async fn run(&self, history: &History, cx: &mut CompactContext<'_>) -> Result<Compacted, CompactError> {
        let mut failed = None;
        for strategy in &self.chain {
            match strategy.compact(history, cx).await {
                Ok(Compacted::Unchanged) => return Ok(Compacted::Unchanged),
                Ok(Compacted::Changed(after)) => {
                    return Ok(Compacted::of(history, with_pins(history, after)));
                }
                Err(
                    error @ (CompactError::Model(_)
                    | CompactError::EmptySummary
                    | CompactError::UnusableJudgement { .. }),
                ) => failed = Some(error),
                // A fault of our own is not the next one's to hide.
                Err(error) => return Err(error),
            }
        }
        failed.map_or(Ok(Compacted::Unchanged), Err)
    }
}

impl Strategy for FallbackCompaction {
    fn kind(&self) -> &'static str {
        "fallback"
    }

    fn business(&self) -> Business {
        Business::of_any(&self.chain)
    }

    fn settles(&self) -> bool {
        self.chain.iter().all(|link| link.settles())
    }

    fn is_due(&self, history: &History, window: Option<Tokens>, counter: &dyn TokenCounter) -> bool {
        self.trigger().fires(history, window, counter)
    }

    fn early(
        &self,
        history: &History,
        window: Option<Tokens>,
        counter: &dyn TokenCounter,
    ) -> Option<Arc<dyn Strategy>> {
        let most = self.trigger().most_tokens(window)?;
        let is_near = anchored(counter, history).0 as f64 > most.0 as f64 * self.background_start?;
        // Alone in a chain, so that its pins come back as they would there.
        let first = Self { background_start: None, ..Self::new(self.chain.first().map(Arc::clone)) };
        is_near.then(|| Arc::new(first) as Arc<dyn Strategy>)
    }

    fn fresh(&self) -> Option<Arc<dyn Strategy>> {
        let chain = fresh(&self.chain)?;
        Some(Arc::new(Self { chain, ..self.clone() }))
    }

    fn models(&self) -> Vec<&str> {
        self.chain.iter().flat_map(|link| link.models()).collect()
    }

    fn warnings(&self) -> Vec<BadSetting> {
        // Their triggers are not asked.
        self.chain.iter().flat_map(|part| part.warnings()).filter(|warning| !is_of_trigger(warning)).collect()
    }

    fn compact<'a>(
        &'a self,
        history: &'a History,
        cx: &'a mut CompactContext<'_>,
    ) -> BoxFuture<'a, Result<Compacted, CompactError>> {
        Box::pin(self.run(history, cx))
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn chains_agree_with_the_vectors() {
        crate::vectors::check_configured("strategies/fallback.jsonl");
    }
}
