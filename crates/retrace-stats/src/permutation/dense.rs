//! Counting subsets with an array of counts, one for every sum up to the bound.

use num_bigint::BigUint;
use num_traits::ToPrimitive;

use super::{MOST_MEMORY, MOST_WORK};

/// A count that is within the limits.
pub(super) struct Plan {
    magnitudes: Vec<usize>,
    bound: usize,
    work: u128,
}

impl Plan {
    /// `magnitudes` ascend, each from 1 to `bound`. `None` if the count is beyond the limits.
    pub(super) fn new(magnitudes: &[BigUint], bound: &BigUint) -> Option<Self> {
        let bound = bound.to_usize()?;
        let magnitudes: Vec<usize> = magnitudes.iter().map(ToPrimitive::to_usize).collect::<Option<_>>()?;
        let last_row = (bound as u128 + 1) * limbs(magnitudes.len()) as u128;
        // Two arrays while the counts become wider.
        let memory = 2 * last_row * size_of::<u64>() as u128;
        let work = rows(&magnitudes, bound).map(|row| (row.reach as u128 + 1) * row.width as u128).sum();
        (memory <= MOST_MEMORY as u128 && work <= MOST_WORK).then_some(Self { magnitudes, bound, work })
    }

    /// Additions of 64-bit words.
    pub(super) fn work(&self) -> u128 {
        self.work
    }

    /// How many subsets sum to at most the bound.
    pub(super) fn count(&self) -> BigUint {
        // The count of sum s is cells[s * width..][..width], least significant word first. No count
        // overflows its cell, so a whole row is added as one long number.
        let mut cells = vec![1u64];
        let mut width = 1;
        for row in rows(&self.magnitudes, self.bound) {
            if row.width > width {
                cells = widen(&cells, width, row.width);
                width = row.width;
            }
            let shift = row.magnitude * width;
            cells.resize((row.reach + 1) * width, 0);
            add_shifted(&mut cells, shift, width);
        }
        total(&cells, width)
    }
}

/// What the array is after one more magnitude.
struct Row {
    magnitude: usize,
    /// The greatest sum so far, or the bound.
    reach: usize,
    /// Words in a count.
    width: usize,
}

fn rows(magnitudes: &[usize], bound: usize) -> impl Iterator<Item = Row> {
    magnitudes.iter().enumerate().scan(0usize, move |reach, (index, &magnitude)| {
        *reach = reach.saturating_add(magnitude).min(bound);
        Some(Row { magnitude, reach: *reach, width: limbs(index + 1) })
    })
}

/// How many 64-bit words hold `2^signs`, the greatest count of so many magnitudes.
fn limbs(signs: usize) -> usize {
    signs / 64 + 1
}

fn widen(cells: &[u64], from: usize, to: usize) -> Vec<u64> {
    let mut wide = vec![0; cells.len() / from * to];
    for (cell, wide) in cells.chunks_exact(from).zip(wide.chunks_exact_mut(to)) {
        wide[..from].copy_from_slice(cell);
    }
    wide
}

/// Adds to every word the one `shift` words before it, in whole cells of `width` words.
fn add_shifted(cells: &mut [u64], shift: usize, width: usize) {
    // From the top, in blocks no longer than the shift, so that no word is read after it has grown.
    let mut end = cells.len();
    while end > shift {
        let start = end.saturating_sub(shift).max(shift);
        let (lower, upper) = cells[start - shift..end].split_at_mut(shift);
        add(upper, lower, width);
        end = start;
    }
}

/// Adds `b` to `a`, word by word as far as `a` goes.
fn add(a: &mut [u64], b: &[u64], width: usize) {
    if width == 1 {
        // Without a carry to pass on, the additions run side by side.
        for (a, b) in a.iter_mut().zip(b) {
            *a = a.wrapping_add(*b);
        }
        return;
    }
    // In blocks, which compilers turn into chains of additions with carry.
    let (a_blocks, a_rest) = a.as_chunks_mut::<8>();
    let (b_blocks, b_rest) = b[..a_blocks.len() * 8 + a_rest.len()].as_chunks::<8>();
    let mut carry = false;
    for (a, b) in a_blocks.iter_mut().zip(b_blocks) {
        carry = add_words(a, b, carry);
    }
    add_words(a_rest, b_rest, carry);
}

#[inline(always)]
fn add_words(a: &mut [u64], b: &[u64], mut carry: bool) -> bool {
    for (a, b) in a.iter_mut().zip(b) {
        (*a, carry) = a.carrying_add(*b, carry);
    }
    carry
}

/// The sum of all counts.
fn total(cells: &[u64], width: usize) -> BigUint {
    let mut words = vec![0u128; width];
    for cell in cells.chunks_exact(width) {
        for (sum, word) in words.iter_mut().zip(cell) {
            *sum += u128::from(*word);
        }
    }
    words.into_iter().rev().fold(BigUint::ZERO, |total, word| (total << 64) + word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(magnitudes: &[usize], bound: usize) -> BigUint {
        let big: Vec<BigUint> = magnitudes.iter().map(|&magnitude| magnitude.into()).collect();
        Plan::new(&big, &bound.into()).unwrap().count()
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
        for signs in [62, 63, 64, 65, 127, 128, 129, 300] {
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
        assert!(!check(1, 2, 1 << 40), "memory");
        assert!(!check(1 << 10, 20_000, 1 << 20), "work");
    }
}
