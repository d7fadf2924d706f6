//! The law of the sum of a resample, and where its tails end.

use num_bigint::{BigInt, BigUint};

use crate::certified::{self, Law, Steps};
use crate::interval::Level;
use crate::sign_flip::MOST_MEMORY;

/// The most products of doubles: a few hundredths of a second, since a report has dozens of columns.
const MOST_WORK: f64 = 5e7;

/// The most products of 64-bit words where whole numbers decide.
const MOST_WORDS: f64 = 2e7;

/// What each sum of two laws may lose at either end: far below what decides about an end of an interval.
const TRIMMED: f64 = 1e-18;

/// How many standard deviations of a sum are left of it then, about.
const KEPT_DEVIATIONS: f64 = 20.0;

/// The values that are resampled, from 0 up, and how often each is there.
pub(super) struct Base {
    n: usize,
    /// Ascending, from 0.
    values: Vec<(usize, u64)>,
}

/// The ends of an interval, as sums of a resample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sides {
    pub(super) low: BigInt,
    pub(super) high: BigInt,
}

impl Base {
    /// `None` if no array holds the sums of `values`, the least of which is 0.
    pub(super) fn new(mut values: Vec<usize>) -> Option<Self> {
        values.sort_unstable();
        values.last()?.checked_mul(values.len())?;
        let runs = values.chunk_by(PartialEq::eq).map(|run| (run[0], run.len() as u64));
        Some(Self { n: values.len(), values: runs.collect() })
    }

    fn greatest(&self) -> usize {
        self.values.last().map_or(0, |&(value, _)| value)
    }

    /// `None` if there is too much to be counted.
    pub(super) fn sides(&self, level: Level) -> Option<Sides> {
        self.rounded(level).or_else(|| self.counted(level))
    }

    /// From doubles, unless they are too many or an end is too near to be told.
    pub(super) fn rounded(&self, level: Level) -> Option<Sides> {
        if self.products() > MOST_WORK {
            return None;
        }
        let law = self.law();
        let share = level.tail_share();
        let error = law.error() + 4.0 * f64::EPSILON;
        let low = law.first + passed(law.probabilities.iter(), share, error)?;
        let high = law.first + law.probabilities.len() - 1 - passed(law.probabilities.iter().rev(), share, error)?;
        Some(Sides { low: low.into(), high: high.into() })
    }

    /// How many products of doubles [`Base::law`] takes, about.
    fn products(&self) -> f64 {
        let n = self.n as f64;
        let mean_of = |of: &dyn Fn(f64) -> f64| {
            self.values.iter().map(|&(value, times)| times as f64 * of(value as f64)).sum::<f64>() / n
        };
        let mean = mean_of(&|value| value);
        let deviation = mean_of(&|value| (value - mean) * (value - mean)).sqrt();
        let width = |n: f64| (self.greatest() as f64 * n).min(KEPT_DEVIATIONS * deviation * n.sqrt()) + 1.0;
        // Of the powers up to a half, each is multiplied by itself, or by that and the values.
        let squares = std::iter::successors(Some(n / 2.0), |half| (*half >= 1.0).then_some(half / 2.0));
        squares.map(|half| width(half) * (width(half) + 2.0 * self.values.len() as f64)).sum()
    }

    /// The power by squaring, trimmed where nothing can be decided any more.
    fn law(&self) -> Law {
        let probability = |times: u64| times as f64 / self.n as f64;
        let values = self.values.iter().map(|&(value, times)| (value, probability(times))).collect();
        let one = certified::law(&[Steps::new(values, 1, 0.0)], self.greatest());
        let bits = (0..self.n.ilog2()).rev().map(|bit| self.n >> bit & 1 == 1);
        let first = one.clone();
        bits.fold(first, |power, is_odd| {
            let square = power.plus(&power).trimmed(TRIMMED);
            if is_odd { one.plus(&square).trimmed(TRIMMED) } else { square }
        })
    }

    /// From whole numbers, unless there is too much to be counted.
    pub(super) fn counted(&self, level: Level) -> Option<Sides> {
        let sums = self.greatest() as f64 * self.n as f64 + 1.0;
        let words = self.n as f64 * (f64::from(self.n.ilog2()) + 1.0) / 64.0 + 1.0;
        let bytes = sums * (words * size_of::<u64>() as f64 + 64.0);
        if sums * self.values.len() as f64 * words > MOST_WORDS || bytes > MOST_MEMORY as f64 {
            return None;
        }
        let mirrored = Self {
            n: self.n,
            values: self.values.iter().rev().map(|&(value, times)| (self.greatest() - value, times)).collect(),
        };
        let low = self.counted_from_below(level);
        let high = BigInt::from(self.greatest()) * self.n - mirrored.counted_from_below(level);
        Some(Sides { low, high })
    }

    /// The least sum that at least half of what a level leaves out of all resamples does not exceed.
    ///
    /// The numbers of resamples are the coefficients of a power of a polynomial, which follow from each other: the
    /// derivative of `p^n` times `p` is `n` times that of `p` times `p^n` (Knuth, *The Art of Computer Programming*,
    /// volume 2, section 4.7).
    fn counted_from_below(&self, level: Level) -> BigInt {
        let (left_out, of) = level.left_out_parts();
        let all = BigUint::from(self.n).pow(self.n as u32) * left_out;
        let least = self.values.first().map_or(0, |&(_, times)| times);
        let mut counts = vec![BigInt::from(least).pow(self.n as u32)];
        let mut total = counts[0].clone();
        while total.magnitude() * of * 2u8 < all {
            let sum = counts.len();
            let others = self.values.iter().skip(1).take_while(|&&(value, _)| value <= sum);
            let weighed: BigInt = others
                .map(|&(value, times)| {
                    let weight = BigInt::from(value) * (self.n + 1) - sum;
                    weight * times * &counts[sum - value]
                })
                .sum();
            let count = weighed / (BigInt::from(sum) * least);
            total += &count;
            counts.push(count);
        }
        BigInt::from(counts.len() - 1)
    }
}

/// The index at which a sum of probabilities reaches a share; `None` if an error could change that.
fn passed<'a>(probabilities: impl Iterator<Item = &'a f64>, share: f64, error: f64) -> Option<usize> {
    let mut sum = 0.0;
    for (index, p) in probabilities.enumerate() {
        let before = sum;
        sum += p;
        if sum + error >= share {
            return (sum - error >= share && before + error < share).then_some(index);
        }
    }
    None
}
