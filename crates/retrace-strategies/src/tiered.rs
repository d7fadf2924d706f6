//! `tiered`: strategies in order until the history fits. Cost: escalates. Known from pydantic-ai-harness.

use std::sync::Arc;

use futures_core::future::BoxFuture;
use retrace_events::History;
use retrace_events::tokens::{TokenCounter, Tokens};

use crate::anchors::with_pins;
use crate::config::{BadSetting, at_least_one};
use crate::context::CompactContext;
use crate::sizes::{Recount, anchored, told};
use crate::strategy::{Business, CompactError, Compacted, Strategy, fresh};
use crate::trigger::{FALLBACK_WINDOW, Window, is_of_trigger};

/// Runs its tiers in order, cheap to dear, whatever their triggers say, until the history is no larger than its target.
/// A tier that fails ends it.
#[derive(Clone)]
pub struct TieredCompaction {
    /// The strategies, the cheapest first.
    pub tiers: Vec<Arc<dyn Strategy>>,
    /// The size to get to, in tokens.
    pub target_tokens: Option<u64>,
    /// As `target_tokens`, as a share of the context window.
    pub target_fraction: Option<f64>,
    /// The context window in tokens, whatever the model's is.
    pub context_window: Option<u64>,
    /// The context window where the model's is not known.
    pub fallback_context_window: u64,
}

impl TieredCompaction {
    /// These strategies, until the history has at most so many tokens.
    pub fn new(tiers: impl IntoIterator<Item = Arc<dyn Strategy>>, target_tokens: u64) -> Self {
        Self {
            tiers: tiers.into_iter().collect(),
            target_tokens: Some(target_tokens),
            target_fraction: None,
            context_window: None,
            fallback_context_window: FALLBACK_WINDOW,
        }
    }

    pub(crate) fn check(&self) -> Result<(), BadSetting> {
        if self.tiers.is_empty() {
            return Err(BadSetting::new("tiers", "is missing or empty: list strategies, the cheapest first"));
        }
        if self.target_tokens.is_some() == self.target_fraction.is_some() {
            return Err(BadSetting::new("target_tokens", "or `target_fraction` is to be set, and only one of them"));
        }
        at_least_one("target_tokens", self.target_tokens)?;
        if let Some(fraction) = self.target_fraction {
            Window::check_share("target_fraction", fraction)?;
        }
        self.window().check()
    }

    fn window(&self) -> Window {
        Window { own: self.context_window, fallback: self.fallback_context_window }
    }

    /// The size to get to; what is not configured is not to be got to.
    fn target(&self, window: Option<Tokens>) -> Tokens {
        let share = || Some(self.window().share(self.target_fraction?, window));
        self.target_tokens.map(Tokens).or_else(share).unwrap_or(Tokens(u64::MAX))
    }

    async fn run(&self, history: &History, cx: &mut CompactContext<'_>) -> Result<Compacted, CompactError> {
        let target = self.target(cx.window);
        let mut sizes = Recount::new(cx.counter);
        let words = sizes.count(history);
        let start = told(cx.counter, history).unwrap_or(words);
        let mut kept = history.clone();
        let mut removed = Some(0);
        for tier in &self.tiers {
            // What the provider said of the input knows nothing of what was removed since.
            let removed_so_far = removed.get_or_insert_with(|| words.0.saturating_sub(sizes.count(&kept).0));
            if Tokens(start.0.saturating_sub(*removed_so_far)) <= target {
                break;
            }
            if let Compacted::Changed(after) = tier.compact(&kept, cx).await? {
                kept = with_pins(history, after);
                removed = None;
            }
        }
        Ok(Compacted::of(history, kept))
    }
}

impl Strategy for TieredCompaction {
    fn kind(&self) -> &'static str {
        "tiered"
    }

    fn business(&self) -> Business {
        Business::of_any(&self.tiers)
    }

    fn settles(&self) -> bool {
        // What a provider said of a history stands in it after a tier has made it smaller, too: a second pass believes it
        // and goes on with the next tier.
        self.tiers.len() <= 1 && self.tiers.iter().all(|tier| tier.settles())
    }

    fn is_due(&self, history: &History, window: Option<Tokens>, counter: &dyn TokenCounter) -> bool {
        anchored(counter, history) > self.target(window)
    }

    fn fresh(&self) -> Option<Arc<dyn Strategy>> {
        let tiers = fresh(&self.tiers)?;
        Some(Arc::new(Self { tiers, ..self.clone() }))
    }

    fn models(&self) -> Vec<&str> {
        self.tiers.iter().flat_map(|tier| tier.models()).collect()
    }

    fn warnings(&self) -> Vec<BadSetting> {
        // Their triggers are not asked.
        self.tiers.iter().flat_map(|part| part.warnings()).filter(|warning| !is_of_trigger(warning)).collect()
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
    fn tiers_agree_with_the_vectors() {
        crate::vectors::check_configured("strategies/tiered.jsonl");
    }
}
