//! What was spent on models: calls, tokens and dollars.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::event::Usage;

/// What was spent on models. The default is nothing, which costs $0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spend {
    /// How often a model was asked by a compaction, or answered in a rollout.
    #[serde(default)]
    pub n_model_calls: u64,
    /// Tokens of the whole requests, their cached parts included, as far as the model reported them.
    #[serde(default)]
    pub input_tokens: u64,
    /// Tokens of the answers, as far as the model reported them.
    #[serde(default)]
    pub output_tokens: u64,
    /// Those of the input tokens that were read from the provider's cache; none where no call told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read_tokens: Option<u64>,
    /// Those of the input tokens that were written to the provider's cache; none where no call told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_tokens: Option<u64>,
    /// What all of it cost; none where that is unknown for any of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dollars: Option<Dollars>,
}

/// An amount of money, in whole billionths of a dollar, so that sums do not depend on their order. It is written as a
/// number of dollars, and exactly read back up to a million.
///
/// ```
/// use retrace_events::Dollars;
///
/// let cent = Dollars::new(0.01).expect("an amount");
/// assert_eq!((cent.nanos(), cent.to_f64(), cent.to_string()), (10_000_000, 0.01, "$0.01".to_owned()));
/// assert_eq!(Dollars::new(-1.0), None);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Dollars(u64);

const NANOS: f64 = 1e9;

impl Dollars {
    /// An amount, to the nearest billionth; none of what is negative, or no number that fits.
    pub fn new(dollars: f64) -> Option<Self> {
        let nanos = (dollars * NANOS).round();
        (nanos >= 0.0 && nanos < u64::MAX as f64).then_some(Self(nanos as u64))
    }

    /// So many billionths of a dollar.
    pub fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// The amount in billionths of a dollar.
    pub fn nanos(self) -> u64 {
        self.0
    }

    /// The amount in dollars.
    pub fn to_f64(self) -> f64 {
        self.0 as f64 / NANOS
    }

    /// The sum of two amounts; the greatest there is where it does not fit.
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Default for Spend {
    fn default() -> Self {
        Self {
            n_model_calls: 0,
            input_tokens: 0,
            output_tokens: 0,
            cache_read_tokens: None,
            cache_write_tokens: None,
            dollars: Some(Dollars::default()),
        }
    }
}

impl Spend {
    /// What calls spent whose tokens are known, and what they cost, if that is known.
    pub fn of_calls(n_model_calls: u64, usage: &Usage, dollars: Option<Dollars>) -> Self {
        Self {
            n_model_calls,
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            cache_read_tokens: usage.cache_read_tokens,
            cache_write_tokens: usage.cache_write_tokens,
            dollars,
        }
    }

    /// Adds what something else spent. What either cost must be known for the sum to be.
    pub fn add(&mut self, other: Self) {
        let mut usage = self.usage();
        usage.add(&other.usage());
        let dollars = self.dollars.zip(other.dollars).map(|(one, another)| one.plus(another));
        *self = Self::of_calls(self.n_model_calls.saturating_add(other.n_model_calls), &usage, dollars);
    }

    /// What was spent since it was `earlier`.
    pub fn since(self, earlier: Self) -> Self {
        let less = |now: Option<u64>, then: Option<u64>| now.map(|now| now.saturating_sub(then.unwrap_or(0)));
        Self {
            n_model_calls: self.n_model_calls.saturating_sub(earlier.n_model_calls),
            input_tokens: self.input_tokens.saturating_sub(earlier.input_tokens),
            output_tokens: self.output_tokens.saturating_sub(earlier.output_tokens),
            cache_read_tokens: less(self.cache_read_tokens, earlier.cache_read_tokens),
            cache_write_tokens: less(self.cache_write_tokens, earlier.cache_write_tokens),
            dollars: less(self.dollars.map(Dollars::nanos), earlier.dollars.map(Dollars::nanos)).map(Dollars),
        }
    }

    /// Its tokens.
    pub fn usage(self) -> Usage {
        Usage {
            input_tokens: self.input_tokens,
            output_tokens: self.output_tokens,
            cache_read_tokens: self.cache_read_tokens,
            cache_write_tokens: self.cache_write_tokens,
            ..Usage::default()
        }
    }

    /// Questions and answers together.
    pub fn total_tokens(self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }
}

impl Serialize for Dollars {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.to_f64())
    }
}

impl<'de> Deserialize<'de> for Dollars {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let dollars = f64::deserialize(deserializer)?;
        Self::new(dollars)
            .ok_or_else(|| de::Error::custom(format_args!("`{dollars}` is no number of dollars from 0 on")))
    }
}

/// In cents, and below a dollar with as many digits as it has, at most six behind the point.
impl fmt::Display for Dollars {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 >= 1_000_000_000 {
            return write!(f, "${:.2}", self.to_f64());
        }
        let text = format!("{:.6}", self.to_f64());
        let (whole, part) = text.split_at(text.len() - 4);
        match part.trim_end_matches('0') {
            "" if self.0 > 0 && whole == "0.00" => write!(f, "<$0.000001"),
            rest => write!(f, "${whole}{rest}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn spend() -> impl Strategy<Value = Spend> {
        let tokens = || 0..1_000_000_u64;
        let maybe = || proptest::option::of(tokens());
        let dollars = proptest::option::of((0..=1_000_000_000_000_000_u64).prop_map(Dollars));
        (tokens(), tokens(), tokens(), maybe(), maybe(), dollars).prop_map(
            |(n_model_calls, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, dollars)| Spend {
                n_model_calls,
                input_tokens,
                output_tokens,
                cache_read_tokens,
                cache_write_tokens,
                dollars,
            },
        )
    }

    proptest! {
        #[test]
        fn what_is_spent_is_read_back_as_it_was_written(spend in spend()) {
            let json = serde_json::to_string(&spend).unwrap();
            prop_assert_eq!(serde_json::from_str::<Spend>(&json).unwrap(), spend, "{}", json);
        }

        #[test]
        fn a_sum_is_the_same_in_any_order_and_less_one_part_is_the_other(one in spend(), another in spend()) {
            let (mut sum, mut turned) = (one, another);
            sum.add(another);
            turned.add(one);
            prop_assert_eq!(sum, turned);
            let mut alone = one;
            alone.add(Spend::default());
            prop_assert_eq!(alone, one, "nothing adds nothing");
            let rest = sum.since(one);
            prop_assert_eq!((rest.n_model_calls, rest.total_tokens()), (another.n_model_calls, another.total_tokens()));
            if sum.dollars.is_some() {
                prop_assert_eq!(rest.dollars, another.dollars);
            }
        }
    }

    #[test]
    fn what_is_unknown_of_a_part_is_unknown_of_the_sum() {
        let call = |dollars| Spend { n_model_calls: 1, dollars, ..Spend::default() };
        let mut sum = call(Dollars::new(0.5));
        sum.add(call(Dollars::new(0.25)));
        assert_eq!((sum.n_model_calls, sum.dollars), (2, Dollars::new(0.75)));
        sum.add(call(None));
        sum.add(call(Dollars::new(1.0)));
        assert_eq!((sum.n_model_calls, sum.dollars), (4, None));
    }

    #[test]
    fn fields_that_nobody_told_are_left_out_and_may_be() {
        let spend = Spend { n_model_calls: 1, input_tokens: 2, output_tokens: 3, dollars: None, ..Spend::default() };
        let json = r#"{"n_model_calls":1,"input_tokens":2,"output_tokens":3}"#;
        assert_eq!(serde_json::to_string(&spend).unwrap(), json);
        assert_eq!(serde_json::from_str::<Spend>("{}").unwrap(), Spend { dollars: None, ..Spend::default() });
        for wrong in ["-1", "1e300", "\"1\""] {
            assert!(serde_json::from_str::<Dollars>(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_amount_is_shown_in_cents_or_finer() {
        let shown = |dollars| Dollars::new(dollars).unwrap().to_string();
        let amounts = [0.0, 0.5, 0.0123, 0.000_001_2, 0.000_000_004, 1.0, 12.345_678, 0.999_999_9];
        let texts = ["$0.00", "$0.50", "$0.0123", "$0.000001", "<$0.000001", "$1.00", "$12.35", "$1.00"];
        assert_eq!(amounts.map(shown), texts);
    }
}
