//! What an agent that has compacted saves with each model call.

use retrace_events::Prices;
use retrace_stats::{Exact, nearest_double};
use serde::Serialize;

use crate::number;

/// What an agent saves with each model call in steady state: it has compacted and goes on from what was kept, so that each
/// prompt is shorter by the same tokens. It is negative where more is left than there was.
///
/// What is saved of a context is not what a rollout spent: a context is what one call reads, a spend is the sum of all.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Saved {
    /// At how many boundaries both sizes are known, unchanged histories included.
    pub n_boundaries: usize,
    /// The mean over them of the tokens of the raw history less those that are left.
    #[serde(serialize_with = "number::exact")]
    pub tokens: Exact,
    /// What these cost where nothing is cached: tokens · input price / 10⁶; none where prices are unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dollars: Option<f64>,
    /// What they cost where a cache holds all of the prompt but what is newest in it, which both arms have: what is saved
    /// was read from the cache, tokens · price of cached input / 10⁶.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dollars_cached: Option<f64>,
}

/// The tokens that are saved, boundary by boundary.
#[derive(Debug, Default)]
pub(crate) struct SavedTally {
    n_boundaries: usize,
    sum: i128,
}

impl SavedTally {
    /// Takes in a boundary: the tokens of the raw history, and those that are left.
    pub(crate) fn add(&mut self, before: u64, after: u64) {
        self.n_boundaries += 1;
        self.sum += i128::from(before) - i128::from(after);
    }

    pub(crate) fn finish(self, prices: Option<Prices>) -> Option<Saved> {
        let Self { n_boundaries, sum } = self;
        if n_boundaries == 0 {
            return None;
        }
        let tokens = Exact::new(sum.into(), n_boundaries.into());
        let cost = |per_million: f64| nearest_double(&tokens) * per_million / 1_000_000.0;
        let dollars = prices.map(|prices| cost(prices.input));
        let dollars_cached = prices.map(|prices| cost(prices.cache_read.unwrap_or(prices.input)));
        Some(Saved { n_boundaries, tokens, dollars, dollars_cached })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saved(sizes: &[(u64, u64)], prices: Option<Prices>) -> Option<Saved> {
        let mut tally = SavedTally::default();
        sizes.iter().for_each(|&(before, after)| tally.add(before, after));
        tally.finish(prices)
    }

    #[test]
    fn tokens_are_saved_at_the_price_of_input_and_of_cached_input() {
        // 10,000 less 4,000, nothing, and 2,000 less 2,600: 5,400 over three.
        let sizes = [(10_000, 4_000), (5_000, 5_000), (2_000, 2_600)];
        let prices = Prices { input: 2.5, output: 10.0, cache_read: Some(1.25), cache_write: None };
        let all = saved(&sizes, Some(prices)).unwrap();
        assert_eq!((all.n_boundaries, &all.tokens), (3, &Exact::from_integer(1_800.into())));
        // 1,800 · 2.5 and 1,800 · 1.25 millionths of a dollar.
        assert_eq!((all.dollars, all.dollars_cached), (Some(0.0045), Some(0.00225)));
        let uncached = Prices { cache_read: None, ..prices };
        assert_eq!(saved(&sizes, Some(uncached)).unwrap().dollars_cached, Some(0.0045));
        let unpriced = saved(&sizes, None).unwrap();
        assert_eq!((unpriced.tokens, unpriced.dollars, unpriced.dollars_cached), (all.tokens, None, None));
        assert_eq!(saved(&[], Some(prices)), None);
    }
}
