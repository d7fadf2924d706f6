//! Evidence that may be looked at after every recording.

use crate::interval::Level;
use crate::rational::{Exact, nearest_double};

/// What is bet on each recording: a little, and a lot.
const BETS: [f64; 4] = [0.75, 2.0, 5.0, 15.0];

/// Evidence of harm on recordings not yet made, that may be looked at after each recording, and be stopped by.
///
/// After the recordings `1..t` it is `E_t`, the mean over the bets `l` in 0.75, 2, 5, 15 of `prod_g (1 + tanh(l u_g))`,
/// with `u_g` the mean difference of recording `g` divided by the bound. If each recording is as likely as its mirror
/// image, every factor has the mean 1 given its magnitude, whatever came before: then `E` ever reaches `1 / a` with
/// probability at most `a`, at whatever time one stops. At 2.5 % that is 40, and with several columns as many times
/// that, which [`threshold`](Self::threshold) says; six recordings are the least that can reach 40.
///
/// A p-value that is looked at after each recording makes no such promise. In doubles, accurate to about 1e-12; a
/// magnitude beyond the bound counts as the bound.
///
/// ```
/// use retrace_stats::{EProcess, Level};
///
/// let mut evidence = EProcess::new(5);
/// let after: Vec<f64> = (0..6).map(|_| evidence.add(&"5".parse().expect("a number"))).collect();
/// let threshold = EProcess::threshold(1, Level::PERCENT_95);
/// assert_eq!(after.iter().position(|&e| e >= threshold), Some(5));
/// ```
///
/// # Source
///
/// Robbins 1970, *Statistical methods related to the law of the iterated logarithm* (mixtures of martingales); Vovk &
/// Wang 2024, *Nonparametric e-tests of symmetry*; Ramdas & Wang 2025, *Hypothesis Testing with E-values*. That it ever
/// reaches so much is bounded by Ville 1939, *Étude critique de la notion de collectif*.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EProcess {
    bound: u32,
    products: [f64; BETS.len()],
}

impl EProcess {
    /// Before any recording; `bound` is the greatest magnitude a difference can have.
    pub fn new(bound: u32) -> Self {
        Self { bound, products: [1.0; BETS.len()] }
    }

    /// Takes in the mean difference of one more recording, and gives the evidence after it.
    pub fn add(&mut self, mean: &Exact) -> f64 {
        let bound = f64::from(self.bound);
        let share = if self.bound == 0 { 0.0 } else { (nearest_double(mean) / bound).clamp(-1.0, 1.0) };
        for (product, bet) in self.products.iter_mut().zip(BETS) {
            // 1 + tanh x, without cancelling where x is far below zero.
            *product = (*product * 2.0 / (1.0 + (-2.0 * bet * share).exp())).min(f64::MAX);
        }
        self.evidence()
    }

    /// The evidence so far.
    pub fn evidence(&self) -> f64 {
        let share = 1.0 / BETS.len() as f64;
        self.products.iter().map(|product| product * share).sum()
    }

    /// What the evidence must reach for harm to be shown in any of `columns` columns: twice their number by what the
    /// level leaves out, as harm is one of two sides.
    pub fn threshold(columns: u32, level: Level) -> f64 {
        f64::from(columns) / level.tail()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::vectors;

    #[test]
    fn agrees_with_the_vectors() {
        for case in &retrace_testing::vectors::rows("stats/e_process.jsonl") {
            let mut evidence = EProcess::new(case["bound"].as_u64().unwrap() as u32);
            let found: Vec<f64> =
                vectors::exacts(&case["recording_means"]).iter().map(|mean| evidence.add(mean)).collect();
            let expected = case["expect"]["e"].as_array().unwrap();
            assert_eq!(found.len(), expected.len());
            for (found, expected) in found.iter().zip(expected) {
                let expected = expected.as_f64().unwrap();
                assert!((found / expected - 1.0).abs() <= 1e-10, "{}: {found} is not {expected}", case["name"]);
            }
            let threshold = EProcess::threshold(1, Level::PERCENT_95);
            assert_eq!(threshold, case["threshold"].as_f64().unwrap());
            let stop = found.iter().position(|&e| e >= threshold).map(|place| place as u64 + 1);
            assert_eq!(stop, case["expect"]["stop_at"].as_u64(), "{}", case["name"]);
        }
    }

    #[test]
    fn nothing_overflows() {
        let mut evidence = EProcess::new(1);
        for sign in [1, -1] {
            let mean = Exact::from_integer(num_bigint::BigInt::from(sign) << 5_000);
            for _ in 0..5_000 {
                assert!(evidence.add(&mean).is_finite());
            }
        }
        assert_eq!(EProcess::new(0).add(&"3".parse().unwrap()), 1.0);
    }

    proptest! {
        #[test]
        fn on_all_sign_patterns_its_mean_is_one(means in prop::collection::vec(-5..=5_i64, 0..9)) {
            let patterns = 1_u32 << means.len();
            let total: f64 = (0..patterns)
                .map(|pattern| {
                    let mut evidence = EProcess::new(5);
                    for (place, &mean) in means.iter().enumerate() {
                        let sign = if pattern >> place & 1 == 1 { -1 } else { 1 };
                        evidence.add(&Exact::from_integer((sign * mean).into()));
                    }
                    evidence.evidence()
                })
                .sum();
            prop_assert!((total / f64::from(patterns) - 1.0).abs() < 1e-9);
        }
    }
}
