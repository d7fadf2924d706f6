//! Counting subsets by meeting in the middle: the sums that each half of the magnitudes reaches,
//! with their counts, paired from opposite ends.

use std::cmp::Reverse;

use num_bigint::BigUint;
use num_traits::{NumRef, RefNum, ToPrimitive};

use super::{MOST_MEMORY, MOST_WORK};
use crate::cells::Ways;

/// Sums and counts of up to so many bits are kept as `u128`: a sum may go past the bound by one.
const NARROW_BITS: u64 = 126;

/// What a kind of number costs, and how far a half may go with it.
#[derive(Clone, Copy)]
struct Cost {
    /// Additions of 64-bit words that writing a sum and its count is worth.
    work: usize,
    /// Bytes that they take.
    bytes: usize,
}

impl Cost {
    const NARROW: Self = Self { work: 8, bytes: 32 };
    const WIDE: Self = Self { work: 160, bytes: 128 };

    /// Sums that a half may hold. The magnitude that takes it beyond may double what it holds.
    fn most_held(self) -> usize {
        MOST_MEMORY / (4 * self.bytes)
    }

    /// Sums that a half may write on the way.
    fn most_written(self) -> usize {
        MOST_WORK as usize / (2 * self.work)
    }
}

/// The magnitudes, dealt to two halves.
pub(super) struct Plan<'a> {
    halves: [Half<'a>; 2],
    bound: &'a BigUint,
}

struct Half<'a> {
    magnitudes: Vec<&'a BigUint>,
    /// The most sums that the half can reach.
    sums: f64,
    /// The most sums written on the way.
    written: f64,
}

impl<'a> Plan<'a> {
    /// `magnitudes` ascend, each from 1 to `bound`.
    pub(super) fn new(magnitudes: &'a [BigUint], bound: &'a BigUint) -> Self {
        let mut halves = [(); 2].map(|()| Half { magnitudes: Vec::new(), sums: 1.0, written: 1.0 });
        // Equal magnitudes stay together: n of them make n + 1 sums, not 2^n.
        let mut runs: Vec<&[BigUint]> = magnitudes.chunk_by(PartialEq::eq).collect();
        runs.sort_by_key(|run| Reverse(run.len()));
        for run in runs {
            let [left, right] = &mut halves;
            if left.sums <= right.sums { left.take(run) } else { right.take(run) }
        }
        Self { halves, bound }
    }

    /// Additions of 64-bit words, at most: less where different magnitudes make equal sums.
    pub(super) fn expected_work(&self) -> f64 {
        let written: f64 = self.halves.iter().map(|half| half.written).sum();
        let cost = if self.is_narrow() { Cost::NARROW } else { Cost::WIDE };
        written * cost.work as f64
    }

    /// How many subsets sum to less than the bound, and to at most the bound; `None` as soon as the sums are too many.
    pub(super) fn count(&self) -> Option<Ways> {
        let [left, right] = self.halves.each_ref().map(|half| &half.magnitudes);
        if self.is_narrow() {
            let narrow = |number: &BigUint| number.to_u128().expect("nothing is above the bound");
            let narrow_all = |half: &Vec<&BigUint>| half.iter().map(|number| narrow(number)).collect();
            meet(narrow_all(left), narrow_all(right), &narrow(self.bound), Cost::NARROW)
                .map(|[below, up_to]| Ways { below: below.into(), up_to: up_to.into() })
        } else {
            let wide_all = |half: &Vec<&BigUint>| half.iter().copied().cloned().collect();
            meet(wide_all(left), wide_all(right), self.bound, Cost::WIDE).map(|[below, up_to]| Ways { below, up_to })
        }
    }

    fn is_narrow(&self) -> bool {
        let signs: usize = self.halves.iter().map(|half| half.magnitudes.len()).sum();
        signs as u64 <= NARROW_BITS && self.bound.bits() <= NARROW_BITS
    }
}

impl<'a> Half<'a> {
    fn take(&mut self, run: &'a [BigUint]) {
        let times = run.len() as f64;
        // The first of them doubles the sums, the next makes three of each, and so on.
        self.written += self.sums * times * (times + 3.0) / 2.0;
        self.sums *= times + 1.0;
        self.magnitudes.extend(run);
    }
}

/// The counts over both halves, below the bound and up to it.
fn meet<N>(left: Vec<N>, right: Vec<N>, bound: &N, cost: Cost) -> Option<[N; 2]>
where
    N: NumRef + Ord + Clone,
    for<'a> &'a N: RefNum<N>,
{
    let left = sums(left, bound, cost)?;
    let right = sums(right, bound, cost)?;
    // The sums on the right that fit beside one on the left are fewer as that one grows.
    let mut fitting = right.as_slice();
    let mut subsets = right.iter().fold(N::zero(), |subsets, (_, count)| subsets + count);
    let mut total = N::zero();
    let mut at = N::zero();
    for (sum, count) in &left {
        while let Some(((greatest, last), others)) = fitting.split_last()
            && sum + greatest > *bound
        {
            subsets = subsets - last;
            fitting = others;
        }
        total = total + count * &subsets;
        if let Some((greatest, last)) = fitting.last()
            && sum + greatest == *bound
        {
            at = at + count * last;
        }
    }
    Some([&total - &at, total])
}

/// The sums up to the bound that subsets reach, ascending, each with the number of its subsets.
fn sums<N>(mut magnitudes: Vec<N>, bound: &N, cost: Cost) -> Option<Vec<(N, N)>>
where
    N: NumRef + Ord + Clone,
    for<'a> &'a N: RefNum<N>,
{
    magnitudes.sort_unstable();
    let mut written = 0;
    let mut sums = vec![(N::zero(), N::one())];
    for magnitude in &magnitudes {
        sums = without_and_with(&sums, magnitude, bound);
        written += sums.len();
        if sums.len() > cost.most_held() || written > cost.most_written() {
            return None;
        }
    }
    Some(sums)
}

/// What the sums are after one more magnitude.
fn without_and_with<N>(sums: &[(N, N)], magnitude: &N, bound: &N) -> Vec<(N, N)>
where
    N: NumRef + Ord + Clone,
    for<'a> &'a N: RefNum<N>,
{
    let mut merged = Vec::with_capacity(2 * sums.len());
    let mut without = sums.iter().peekable();
    for (sum, count) in sums {
        let sum = sum + magnitude;
        if sum > *bound {
            break;
        }
        while let Some(lower) = without.next_if(|(other, _)| *other < sum) {
            merged.push(lower.clone());
        }
        let count = match without.next_if(|(other, _)| *other == sum) {
            Some((_, other)) => count + other,
            None => count.clone(),
        };
        merged.push((sum, count));
    }
    merged.extend(without.cloned());
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(magnitudes: &[u64], bound: u64, scale: &BigUint) -> Option<BigUint> {
        let big: Vec<BigUint> = magnitudes.iter().map(|&magnitude| scale * magnitude).collect();
        Plan::new(&big, &(scale * bound)).count().map(|ways| ways.up_to)
    }

    #[test]
    fn narrow_and_wide_sums_count_alike() {
        for scale in [BigUint::from(1u8), BigUint::from(3u8) << 200] {
            let check = |magnitudes: &[u64], bound, expected: u64| {
                assert_eq!(count(magnitudes, bound, &scale), Some(expected.into()));
            };
            check(&[], 0, 1);
            check(&[1], 1, 2);
            check(&[1, 2, 3], 3, 5);
            check(&[1, 2, 3], 4, 6);
            check(&[1, 1, 1, 1], 2, 11);
            check(&[1, 2, 4, 8, 16, 32], 40, 41);
        }
    }

    #[test]
    fn counts_beyond_128_bits_are_whole() {
        let magnitudes = [vec![1; 150], vec![1_000_000; 151]].concat();
        let half = BigUint::from(1u8) << 300;
        assert_eq!(count(&magnitudes, 75_000_150, &BigUint::from(1u8)), Some(half));
    }

    #[test]
    fn a_half_that_reaches_too_many_sums_is_given_up() {
        let powers: Vec<u64> = (0..60).map(|bit| 1 << bit).collect();
        assert_eq!(count(&powers, 1 << 59, &BigUint::from(1u8)), None);
    }
}
