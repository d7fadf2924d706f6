//! What tokens cost, and what a call spent by it.

use serde::{Deserialize, Serialize};

use crate::event::{Response, Usage};
use crate::spend::{Dollars, Spend};

/// What tokens cost, in dollars for a million of them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// Those of the request.
    pub input: f64,
    /// Those of the answer, its reasoning included.
    pub output: f64,
    /// Those of the request that are read from a cache; as `input` where it is unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<f64>,
    /// Those of the request that are written to a cache; as `input` where it is unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<f64>,
}

impl Prices {
    /// Whether each is an amount of 0 or more.
    pub fn are_amounts(&self) -> bool {
        let all = [Some(self.input), Some(self.output), self.cache_read, self.cache_write];
        all.into_iter().flatten().all(|price| price.is_finite() && price >= 0.0)
    }

    /// What these tokens cost. The input tokens include the cached ones, as [`Usage`] has it; what is said to be cached
    /// beyond them costs nothing. None where the prices are no [amounts](Self::are_amounts), or the sum is none.
    ///
    /// ```
    /// use retrace_events::{Dollars, Prices, Usage};
    ///
    /// let prices = Prices { input: 2.0, output: 8.0, cache_read: Some(0.5), cache_write: None };
    /// let usage = Usage {
    ///     input_tokens: 1_000_000,
    ///     output_tokens: 250_000,
    ///     cache_read_tokens: Some(500_000),
    ///     ..Usage::default()
    /// };
    /// assert_eq!(prices.cost(&usage), Dollars::new(1.0 + 2.0 + 0.25));
    /// ```
    pub fn cost(&self, usage: &Usage) -> Option<Dollars> {
        let read = usage.cache_read_tokens.unwrap_or(0).min(usage.input_tokens);
        let written = usage.cache_write_tokens.unwrap_or(0).min(usage.input_tokens - read);
        let plain = usage.input_tokens - read - written;
        let price = |tokens: u64, per_million: f64| tokens as f64 * per_million / 1_000_000.0;
        let sum = price(plain, self.input)
            + price(usage.output_tokens, self.output)
            + price(read, self.cache_read.unwrap_or(self.input))
            + price(written, self.cache_write.unwrap_or(self.input));
        Dollars::new(sum).filter(|_| self.are_amounts())
    }

    /// What a call spent that was answered so. What it cost is unknown where the prices are, and where the model does not
    /// report its tokens.
    pub fn spent(prices: Option<Self>, response: &Response) -> Spend {
        let dollars = prices.zip(response.usage.as_ref()).and_then(|(prices, usage)| prices.cost(usage));
        Spend::of_calls(1, response.usage.as_ref().unwrap_or(&Usage::default()), dollars)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRICES: Prices = Prices { input: 3.0, output: 15.0, cache_read: Some(0.3), cache_write: Some(3.75) };

    #[test]
    fn cached_tokens_are_part_of_the_input_and_have_prices_of_their_own() {
        let usage = |read, written| Usage {
            input_tokens: 1000,
            output_tokens: 100,
            cache_read_tokens: read,
            cache_write_tokens: written,
            ..Usage::default()
        };
        let cost = |prices: Prices, read, written| prices.cost(&usage(read, written)).map(Dollars::nanos);
        // 1000 · 3 + 100 · 15 = 4500 millionths of a dollar.
        assert_eq!(cost(PRICES, None, None), Some(4_500_000));
        // 200 · 3 + 600 · 0.3 + 200 · 3.75 + 100 · 15 = 3030.
        assert_eq!(cost(PRICES, Some(600), Some(200)), Some(3_030_000));
        let one_price = Prices { cache_read: None, cache_write: None, ..PRICES };
        assert_eq!(cost(one_price, Some(600), Some(200)), Some(4_500_000));
        // 1000 · 0.3 + 100 · 15 = 1800: a provider that says more than there was.
        assert_eq!(cost(PRICES, Some(9000), Some(9000)), Some(1_800_000));
        assert_eq!(cost(Prices { output: f64::NAN, ..PRICES }, None, None), None);
        assert_eq!(cost(Prices { input: -1.0, ..PRICES }, None, None), None);
    }

    #[test]
    fn what_a_call_cost_is_unknown_without_prices_or_tokens() {
        let usage = Usage { input_tokens: 1000, output_tokens: 100, ..Usage::default() };
        let told = Response { usage: Some(usage), ..Response::default() };
        let spend = Prices::spent(Some(PRICES), &told);
        assert_eq!(
            (spend.n_model_calls, spend.input_tokens, spend.dollars),
            (1, 1000, Some(Dollars::from_nanos(4_500_000)))
        );
        assert_eq!(Prices::spent(None, &told), Spend { dollars: None, ..spend });
        let silent = Prices::spent(Some(PRICES), &Response::default());
        assert_eq!((silent.n_model_calls, silent.total_tokens(), silent.dollars), (1, 0, None));
    }
}
