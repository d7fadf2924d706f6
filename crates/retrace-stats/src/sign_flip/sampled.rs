//! Random subsets, for magnitudes that no way of counting takes.

use std::ops::{Add, AddAssign};

use num_bigint::BigUint;
use num_traits::{ToPrimitive, Zero};

use crate::draws::BitDraws;

/// One less than a million: the observed signs are the millionth.
pub(crate) const DRAWS: u32 = 999_999;

/// What the stream of bits is seeded with: `sign` in ASCII.
const SEED: u64 = 0x7369_676e;

/// Sums of up to so many bits are kept in a word, or in two.
const WORD_BITS: u64 = 64;
const TWO_WORD_BITS: u64 = 128;

/// Of [`DRAWS`] random subsets, how many sum to less than the bound, to at most the bound, or to as much as the rest of
/// such a subset does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hits {
    pub(super) below: u32,
    pub(super) up_to: u32,
    /// The sum of the subset, or of the magnitudes that are not in it, is at most the bound.
    pub(super) either: u32,
}

/// Draws subsets of the magnitudes, which are sorted so that their order does not matter. The bound is below half of
/// their sum. The work is an addition for eight magnitudes of a draw; about 5 ns for sums of up to 128 bits, 50 ns and
/// more for longer ones.
pub(super) fn draw(magnitudes: &[BigUint], bound: &BigUint) -> Hits {
    let all: BigUint = magnitudes.iter().sum();
    if all.bits() <= WORD_BITS {
        hits(magnitudes, bound, &all, |number| number.to_u64().unwrap_or(u64::MAX))
    } else if all.bits() <= TWO_WORD_BITS {
        hits(magnitudes, bound, &all, |number| number.to_u128().unwrap_or(u128::MAX))
    } else {
        hits(magnitudes, bound, &all, BigUint::clone)
    }
}

fn hits<N>(magnitudes: &[BigUint], bound: &BigUint, all: &BigUint, narrow: impl Fn(&BigUint) -> N) -> Hits
where
    N: Clone + Zero + Ord + Add<Output = N> + for<'a> AddAssign<&'a N>,
{
    let tables: Vec<Vec<N>> = magnitudes.chunks(8).map(|eight| subset_sums(eight.iter().map(&narrow))).collect();
    let [bound, mirror] = [bound, &(all - bound)].map(&narrow);
    let mut bits = BitDraws::new(SEED);
    let mut hits = Hits { below: 0, up_to: 0, either: 0 };
    for _ in 0..DRAWS {
        let mut sum = N::zero();
        for tables in tables.chunks(8) {
            for (table, byte) in tables.iter().zip(bits.eight_bytes()) {
                sum += &table[usize::from(byte) & (table.len() - 1)];
            }
        }
        hits.below += u32::from(sum < bound);
        hits.up_to += u32::from(sum <= bound);
        hits.either += u32::from(sum <= bound || sum >= mirror);
    }
    hits
}

/// The sums of all subsets, each at the number whose bits are its members.
fn subset_sums<N: Clone + Zero + Add<Output = N>>(magnitudes: impl Iterator<Item = N>) -> Vec<N> {
    magnitudes.fold(vec![N::zero()], |mut sums, magnitude| {
        let with: Vec<N> = sums.iter().map(|sum| sum.clone() + magnitude.clone()).collect();
        sums.extend(with);
        sums
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_and_wide_sums_are_hit_alike() {
        let magnitudes: Vec<BigUint> = (1..=20u32).map(BigUint::from).collect();
        let drawn = draw(&magnitudes, &80u8.into());
        for shift in [40u32, 100, 200] {
            let wide: Vec<BigUint> = magnitudes.iter().map(|magnitude| magnitude << shift).collect();
            assert_eq!(draw(&wide, &(BigUint::from(80u8) << shift)), drawn, "{shift}");
        }
        assert!(drawn.below < drawn.up_to && drawn.up_to < drawn.either);
    }

    #[test]
    fn the_share_of_hits_is_near_the_share_of_subsets() {
        // A subset of 9 ones has at most 3 with probability 130 / 512, and as many are mirrored.
        let hits = draw(&vec![1u8.into(); 9], &3u8.into());
        let near = |hits: u32, share: f64| (f64::from(hits) / f64::from(DRAWS) - share).abs() < 0.003;
        assert!(near(hits.below, 46.0 / 512.0) && near(hits.up_to, 130.0 / 512.0) && near(hits.either, 260.0 / 512.0));
    }
}
