//! Counting subsets with arrays of counts, one for every sum up to the bound.

use num_bigint::BigUint;
use num_traits::ToPrimitive;

use super::{MOST_MEMORY, MOST_WORK};
use crate::cells::{Cells, Ways};

/// A count that is within the limits.
///
/// The magnitudes are dealt to two arrays, which are paired in the end: counts of half as many magnitudes have half as
/// many words.
pub(super) struct Plan {
    halves: [Vec<usize>; 2],
    bound: usize,
    work: u128,
}

impl Plan {
    /// `magnitudes` ascend, each from 1 to `bound`. `None` if the count is beyond the limits.
    pub(super) fn new(magnitudes: &[BigUint], bound: &BigUint) -> Option<Self> {
        let magnitudes: Vec<usize> = magnitudes.iter().map(ToPrimitive::to_usize).collect::<Option<_>>()?;
        Self::of(&magnitudes, bound.to_usize()?)
    }

    /// The same of small numbers.
    pub(super) fn of(magnitudes: &[usize], bound: usize) -> Option<Self> {
        let mut halves = [(); 2].map(|()| Vec::with_capacity(magnitudes.len() / 2 + 1));
        magnitudes.iter().enumerate().for_each(|(index, &magnitude)| halves[index % 2].push(magnitude));
        let [rows, memory] = [
            halves.iter().map(|half| rows(half, bound).map(|row| row.words()).sum::<u128>()).sum::<u128>(),
            // An array is there twice while its counts become wider.
            3 * size_of::<u64>() as u128
                * halves.iter().filter_map(|half| rows(half, bound).last()).map(|row| row.words()).max().unwrap_or(0),
        ];
        let [left, right] = halves.each_ref().map(|half| words(half.len()) as u128);
        let pairs = (bound as u128 + 1) * left * right;
        let work = rows + pairs;
        (memory <= MOST_MEMORY as u128 && work <= MOST_WORK).then_some(Self { halves, bound, work })
    }

    /// Additions and products of 64-bit words.
    pub(super) fn work(&self) -> u128 {
        self.work
    }

    /// How many subsets sum to less than the bound, and to at most the bound.
    pub(super) fn count(&self) -> Ways {
        let [left, right] = self.halves.each_ref().map(|half| {
            let mut cells = Cells::new();
            for row in rows(half, self.bound) {
                cells.widen(row.width);
                cells.step(row.magnitude, row.reach);
            }
            cells
        });
        left.paired(right, self.bound)
    }
}

/// What an array is after one more magnitude.
struct Row {
    magnitude: usize,
    /// The greatest sum so far, or the bound.
    reach: usize,
    /// Words in a count.
    width: usize,
}

impl Row {
    fn words(&self) -> u128 {
        (self.reach as u128 + 1) * self.width as u128
    }
}

fn rows(magnitudes: &[usize], bound: usize) -> impl Iterator<Item = Row> {
    magnitudes.iter().enumerate().scan(0usize, move |reach, (index, &magnitude)| {
        *reach = reach.saturating_add(magnitude).min(bound);
        Some(Row { magnitude, reach: *reach, width: words(index + 1) })
    })
}

/// How many 64-bit words hold `2^signs`, the greatest count of so many magnitudes.
fn words(signs: usize) -> usize {
    signs / 64 + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(magnitudes: &[usize], bound: usize) -> BigUint {
        let big: Vec<BigUint> = magnitudes.iter().map(|&magnitude| magnitude.into()).collect();
        Plan::new(&big, &bound.into()).unwrap().count().up_to
    }

    #[test]
    fn the_empty_subset_is_one() {
        assert_eq!(count(&[], 0), 1u8.into());
        assert_eq!(count(&[], 7), 1u8.into());
    }

    #[test]
    fn subsets_at_the_bound_are_in() {
        assert_eq!(count(&[1, 2, 3], 3), 5u8.into());
        assert_eq!(count(&[1, 2, 3], 4), 6u8.into());
        assert_eq!(count(&[1, 2, 3], 6), 8u8.into());
    }

    #[test]
    fn counts_beyond_any_word_are_whole() {
        for signs in [62, 63, 64, 65, 126, 127, 128, 129, 130, 300] {
            assert_eq!(count(&vec![1; signs], signs), BigUint::from(1u8) << signs);
            // Half of the subsets of an odd number of ones have less than half of them.
            let odd = signs | 1;
            assert_eq!(count(&vec![1; odd], odd / 2), BigUint::from(1u8) << (odd - 1));
        }
    }

    #[test]
    fn what_is_beyond_the_limits_has_no_plan() {
        let check =
            |magnitude: u128, signs, bound: u128| Plan::new(&vec![magnitude.into(); signs], &bound.into()).is_some();
        assert!(check(1 << 20, 8, 1 << 22));
        assert!(!check(1, 8, u128::MAX), "sums that no word holds");
        assert!(!check(1 << 30, 3, 1 << 40), "memory");
        assert!(!check(1 << 10, 20_000, 1 << 20), "work");
    }
}
