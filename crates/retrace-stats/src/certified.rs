//! Probabilities of sums of independent steps, in doubles, with a bound on their error.
//!
//! Only products and sums of numbers that are not negative are formed, so nothing cancels and each rounding changes a
//! result by at most one part in 2^53. What falls below the range of doubles is charged for as if it had been lost.

use std::ops::Range;

use multiversion::multiversion;

use crate::p_value::{LEAST_CERTIFIED, relative_error_of};

/// The least double that has full precision.
const NORMAL: f64 = f64::MIN_POSITIVE;

/// The values that one variable may take, with their probabilities.
pub(crate) struct Steps {
    values: Vec<(usize, f64)>,
    /// How many roundings there are in each probability.
    roundings: u64,
    /// How much they miss together, besides, at most.
    lost: f64,
}

impl Steps {
    /// Nothing, or `value`, with a probability of one half each.
    pub(crate) fn either(value: usize) -> Self {
        Self { values: vec![(0, 0.5), (value, 0.5)], roundings: 0, lost: 0.0 }
    }

    /// `values` ascend.
    pub(crate) fn new(values: Vec<(usize, f64)>, roundings: u64, lost: f64) -> Self {
        Self { values, roundings, lost }
    }

    fn greatest(&self) -> usize {
        self.values.last().map_or(0, |&(value, _)| value)
    }

    /// How many roundings taking this step adds to a probability.
    fn roundings_of_step(&self) -> u64 {
        let is_exact = self.roundings == 0 && self.values.iter().all(|&(_, p)| p == 0.5);
        // Each is a product, and they are added four at a time.
        let additions = if self.values.len() <= 2 { 1 } else { 2 + self.values.len().div_ceil(TOGETHER) as u64 };
        additions + if is_exact { 0 } else { self.roundings + 1 }
    }
}

/// A probability: the true one is within a relative error of it, or both are below [`LEAST_CERTIFIED`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Rounded {
    pub(crate) p: f64,
    pub(crate) relative_error: f64,
}

impl Rounded {
    fn new(p: f64, roundings: u64, lost: f64) -> Self {
        Self { p, relative_error: relative_error_of(roundings) + 2.0 * lost / p.max(LEAST_CERTIFIED) }
    }

    /// The same, and besides heads so many times; exact, unless it falls below [`LEAST_CERTIFIED`].
    pub(crate) fn halved(self, times: usize) -> Self {
        let share = (0..times.min(2 * f64::MAX_EXP as usize)).fold(1.0, |share, _| share * 0.5);
        Self { p: self.p * share, ..self }
    }

    /// The probability of the opposite, if nothing cancels much.
    pub(crate) fn opposite(self) -> Option<Self> {
        // No more than what it was relative to, and one rounding.
        (self.p <= 0.5).then_some(Self { p: 1.0 - self.p, relative_error: self.relative_error + f64::EPSILON })
    }
}

/// Probabilities that a sum is below a bound, and at most the bound.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Tail {
    pub(crate) below: Rounded,
    pub(crate) up_to: Rounded,
}

/// How many additions of doubles [`tail`] makes, and how many doubles it keeps.
pub(crate) fn cost<'a>(steps: impl IntoIterator<Item = &'a Steps>, bound: usize) -> (f64, f64) {
    let (mut work, mut reach, mut greatest) = (0.0, 0usize, 0);
    for step in steps {
        reach = reach.saturating_add(step.greatest()).min(bound);
        greatest = greatest.max(step.greatest().min(bound));
        work += step.values.len() as f64 * (reach as f64 + 1.0);
    }
    (work, 2.0 * (reach as f64 + greatest as f64 + 1.0))
}

/// The tail of the sum of independent variables, from values of 0 up.
///
/// Work and memory as [`cost`] says. The order of the variables decides about the last bits of the result.
pub(crate) fn tail(steps: &[Steps], bound: usize) -> Tail {
    let law = law(steps, bound);
    let up_to = sum(&law.probabilities);
    let below = sum(&law.probabilities[..law.probabilities.len().min(bound.saturating_sub(law.first))]);
    let roundings = law.roundings + sum_roundings(law.probabilities.len());
    let [below, up_to] = [below, up_to].map(|p| Rounded::new(p, roundings, law.lost));
    Tail { below, up_to }
}

/// What is known of a sum: the probabilities of its values from `first` on.
#[derive(Debug, Clone)]
pub(crate) struct Law {
    pub(crate) first: usize,
    pub(crate) probabilities: Vec<f64>,
    /// How many roundings each of them went through, at most.
    roundings: u64,
    /// How much they miss together, besides, at most.
    lost: f64,
}

impl Law {
    /// How far a sum of probabilities, added by any who adds them, may be from the true one.
    pub(crate) fn error(&self) -> f64 {
        relative_error_of(self.roundings + self.probabilities.len() as u64) + 2.0 * self.lost
    }

    /// The law of the sum of two independent ones. The work is the product of their lengths.
    pub(crate) fn plus(&self, other: &Self) -> Self {
        let step = self.as_step();
        let pad = step.greatest();
        let [mut before, mut after] = [(); 2].map(|()| vec![0.0; 2 * pad + other.probabilities.len()]);
        before[pad..][..other.probabilities.len()].copy_from_slice(&other.probabilities);
        take(&step, &before, &mut after, pad, 0..pad + other.probabilities.len());
        let products = (self.probabilities.len() * other.probabilities.len()) as f64;
        Self {
            first: self.first + other.first,
            probabilities: after.split_off(pad),
            roundings: other.roundings + step.roundings_of_step(),
            lost: self.lost + other.lost + products * f64::from_bits(1),
        }
    }

    fn as_step(&self) -> Steps {
        let values = self.probabilities.iter().copied().enumerate().filter(|&(_, p)| p > 0.0).collect();
        Steps { values, roundings: self.roundings, lost: self.lost }
    }

    /// Drops the least likely values from both ends, until so much is lost at each.
    pub(crate) fn trimmed(mut self, share: f64) -> Self {
        let mut dropped = 0.0;
        let mut is_in = |p: &f64| {
            dropped += p;
            dropped > share
        };
        let last = self.probabilities.iter().rposition(&mut is_in).unwrap_or(0);
        self.probabilities.truncate(last + 1);
        dropped = 0.0;
        let mut is_in = |p: &f64| {
            dropped += p;
            dropped > share
        };
        let first = self.probabilities.iter().position(&mut is_in).unwrap_or(0);
        self.probabilities.drain(..first);
        self.first += first;
        self.lost += 2.0 * share;
        self
    }
}

/// The law of the sum of independent variables, of its values up to a bound. Work and memory as [`cost`] says.
pub(crate) fn law(steps: &[Steps], bound: usize) -> Law {
    // Zeros in front, for values below 0 that a step would come from.
    let pad = steps.iter().map(|step| step.greatest().min(bound)).max().unwrap_or(0);
    let greatest = steps.iter().fold(0usize, |sum, step| sum.saturating_add(step.greatest())).min(bound);
    let [mut before, mut after] = [(); 2].map(|()| vec![0.0; pad + greatest + 1]);
    before[pad] = 1.0;
    let (mut first, mut reach) = (0, 0usize);
    let (mut roundings, mut lost) = (0, 0.0);
    for step in steps {
        reach = reach.saturating_add(step.greatest()).min(bound);
        take(step, &before, &mut after, pad, first..reach + 1);
        roundings += step.roundings_of_step();
        // A product below the normal range is off by half of the least double.
        lost += step.lost + step.values.len() as f64 * (reach - first + 1) as f64 * f64::from_bits(1);
        while first < reach && after[pad + first] < NORMAL {
            lost += after[pad + first];
            (before[pad + first], after[pad + first]) = (0.0, 0.0);
            first += 1;
        }
        std::mem::swap(&mut before, &mut after);
    }
    before.truncate(pad + reach + 1);
    Law { first, probabilities: before.split_off(pad + first), roundings, lost }
}

/// How many products are added before their sum is.
const TOGETHER: usize = 4;

/// How many probabilities are worked out at a time, so that those in use stay in the nearest memory.
const TILE: usize = 512;

/// Fills in the probabilities of the sums in `range` after a step, from those before it.
#[multiversion(targets("x86_64+avx2"))]
fn take(step: &Steps, before: &[f64], after: &mut [f64], pad: usize, range: Range<usize>) {
    // What is above the bound cannot be reached from within it, and the padding is no longer than the bound.
    let within = step.values.partition_point(|&(value, _)| value <= pad);
    let values = &step.values[..within];
    for (first, after) in (pad + range.start..).step_by(TILE).zip(after[pad..][range].chunks_mut(TILE)) {
        take_tile(values, before, first, after);
    }
}

#[inline(always)]
fn take_tile(values: &[(usize, f64)], before: &[f64], first: usize, after: &mut [f64]) {
    let len = after.len();
    let from = |value: usize| &before[first - value..][..len];
    let (fours, rest) = values.as_chunks::<TOGETHER>();
    let mut is_first = true;
    if let &[(a, p), (b, q)] = rest {
        for ((after, a), b) in after.iter_mut().zip(from(a)).zip(from(b)) {
            *after = a * p + b * q;
        }
        is_first = false;
    } else {
        for &(value, p) in rest {
            let source = from(value).iter();
            if is_first {
                after.iter_mut().zip(source).for_each(|(after, source)| *after = source * p);
            } else {
                after.iter_mut().zip(source).for_each(|(after, source)| *after += source * p);
            }
            is_first = false;
        }
    }
    for &[(a, p), (b, q), (c, r), (d, s)] in fours {
        let sources = from(a).iter().zip(from(b)).zip(from(c).iter().zip(from(d)));
        let sums = sources.map(|((a, b), (c, d))| (a * p + b * q) + (c * r + d * s));
        if is_first {
            after.iter_mut().zip(sums).for_each(|(after, sum)| *after = sum);
        } else {
            after.iter_mut().zip(sums).for_each(|(after, sum)| *after += sum);
        }
        is_first = false;
    }
    if is_first {
        after.fill(0.0);
    }
}

/// A sum by halves, so that no number goes through more than [`sum_roundings`] additions.
pub(crate) fn sum(numbers: &[f64]) -> f64 {
    if numbers.len() <= SUMMED_IN_TURN {
        numbers.iter().sum()
    } else {
        let (left, right) = numbers.split_at(numbers.len() / 2);
        sum(left) + sum(right)
    }
}

const SUMMED_IN_TURN: usize = 32;

pub(crate) fn sum_roundings(numbers: usize) -> u64 {
    SUMMED_IN_TURN as u64 + u64::from(numbers.max(1).ilog2()) + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_make_exact_shares() {
        let steps = [1, 2, 3].map(Steps::either);
        for (bound, below, up_to) in [(0, 0.0, 1.0), (1, 1.0, 2.0), (3, 3.0, 5.0), (6, 7.0, 8.0), (9, 8.0, 8.0)] {
            let tail = tail(&steps, bound);
            assert_eq!((tail.below.p, tail.up_to.p), (below / 8.0, up_to / 8.0), "{bound}");
            assert!(tail.up_to.relative_error < 1e-14);
        }
        assert_eq!(tail(&[], 0).up_to.p, 1.0);
    }

    #[test]
    fn steps_of_any_number_of_values_sum_to_one() {
        for values in 1..=11 {
            let steps: Vec<Steps> = (0..6)
                .map(|_| Steps::new((0..values).map(|value| (3 * value, 1.0 / values as f64)).collect(), 1, 0.0))
                .collect();
            let all = tail(&steps, 18 * values);
            for Rounded { p, relative_error } in [all.below, all.up_to] {
                assert!((p - 1.0).abs() <= relative_error && relative_error < 1e-13, "{values}");
            }
        }
    }

    #[test]
    fn what_is_beyond_doubles_is_told_from_what_is_small() {
        let steps: Vec<Steps> = (0..4_096).map(|_| Steps::either(1)).collect();
        let least = tail(&steps, 0);
        assert!(least.up_to.p < LEAST_CERTIFIED && least.below.p == 0.0);
        let Tail { below, up_to } = tail(&steps, 2_048);
        assert!((below.p + up_to.p - 1.0).abs() <= below.relative_error && below.relative_error < 1e-12);
        assert_eq!(up_to.opposite(), None);
        let (work, doubles) = cost(&steps, 2_048);
        assert!(work < 4_096.0 * 2.0 * 2_049.0 && doubles < 5_000.0);
    }
}
