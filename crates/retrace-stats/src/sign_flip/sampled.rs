//! Random subsets, for magnitudes that no way of counting takes.

use std::cmp::Ordering;

use num_bigint::BigUint;
use num_traits::ToPrimitive;

use crate::draws::BitDraws;

/// One less than a million: the observed signs are the millionth.
pub(crate) const DRAWS: u32 = 999_999;

/// What the stream of bits is seeded with: `sign` in ASCII.
const SEED: u64 = 0x7369_676e;

/// How many bits of a sum are kept, so that two words hold it and what the others may add to it.
const KEPT_BITS: u64 = 96;

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
/// their sum. The work is an addition for eight magnitudes of a draw.
pub(super) fn draw(magnitudes: &[BigUint], bound: &BigUint) -> Hits {
    let all: BigUint = magnitudes.iter().sum();
    let scale = Scale { magnitudes, shift: all.bits().saturating_sub(KEPT_BITS) };
    let tables: Vec<Vec<u128>> = magnitudes.chunks(8).map(|eight| scale.subset_sums(eight)).collect();
    let (bound, mirror) = (scale.bound(bound.clone()), scale.bound(all - bound));
    let mut bits = BitDraws::new(SEED);
    let mut members = vec![0u8; tables.len().next_multiple_of(8)];
    let mut hits = Hits { below: 0, up_to: 0, either: 0 };
    for _ in 0..DRAWS {
        members.as_chunks_mut().0.iter_mut().for_each(|eight| *eight = bits.eight_bytes());
        let sums = tables.iter().zip(&members).map(|(table, byte)| table[usize::from(*byte) & (table.len() - 1)]);
        let sum = sums.sum();
        let order = scale.compare(sum, &members, &bound);
        hits.below += u32::from(order.is_lt());
        hits.up_to += u32::from(order.is_le());
        hits.either += u32::from(order.is_le() || scale.compare(sum, &members, &mirror).is_ge());
    }
    hits
}

/// Magnitudes without their last bits, if they have too many.
struct Scale<'a> {
    magnitudes: &'a [BigUint],
    shift: u64,
}

/// What sums are compared with, as it is and without its last bits.
struct Bound {
    exact: BigUint,
    scaled: u128,
}

impl Scale<'_> {
    fn scaled(&self, number: &BigUint) -> u128 {
        (number >> self.shift).to_u128().unwrap_or(u128::MAX)
    }

    fn bound(&self, exact: BigUint) -> Bound {
        Bound { scaled: self.scaled(&exact), exact }
    }

    /// The sums of all subsets, each at the number whose bits are its members.
    fn subset_sums(&self, magnitudes: &[BigUint]) -> Vec<u128> {
        magnitudes.iter().map(|magnitude| self.scaled(magnitude)).fold(vec![0], |mut sums, magnitude| {
            sums.extend_from_within(..);
            let half = sums.len() / 2;
            sums[half..].iter_mut().for_each(|sum| *sum += magnitude);
            sums
        })
    }

    /// How a subset's sum, of which `sum` is known, compares with a bound.
    fn compare(&self, sum: u128, members: &[u8], bound: &Bound) -> Ordering {
        // Each magnitude may have lost less than one, and the bound too.
        let lost = if self.shift == 0 { 0 } else { self.magnitudes.len() as u128 };
        if sum > bound.scaled {
            Ordering::Greater
        } else if sum + lost < bound.scaled {
            Ordering::Less
        } else if lost == 0 {
            Ordering::Equal
        } else {
            let is_member = |index: usize| members[index / 8] >> (index % 8) & 1 == 1;
            let members = self.magnitudes.iter().enumerate().filter(|&(index, _)| is_member(index));
            members.map(|(_, magnitude)| magnitude).sum::<BigUint>().cmp(&bound.exact)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_and_wide_sums_are_hit_alike() {
        let magnitudes: Vec<BigUint> = (1..=20u32).map(BigUint::from).collect();
        let drawn = draw(&magnitudes, &80u8.into());
        for shift in [40u32, 88, 89, 100, 200, 3_000] {
            let wide: Vec<BigUint> = magnitudes.iter().map(|magnitude| magnitude << shift).collect();
            assert_eq!(draw(&wide, &(BigUint::from(80u8) << shift)), drawn, "{shift}");
        }
        assert!(drawn.below < drawn.up_to && drawn.up_to < drawn.either);
        // What the last bits decide, whole sums do.
        let odd: Vec<BigUint> = magnitudes.iter().map(|magnitude| (magnitude << 200u32) + 1u8).collect();
        let at = |more: u8| draw(&odd, &((BigUint::from(80u8) << 200u32) + more));
        assert_eq!((at(0).up_to, at(20).up_to), (drawn.below, drawn.up_to));
        assert!(drawn.below < at(8).up_to && at(8).up_to < drawn.up_to);
    }

    #[test]
    fn the_share_of_hits_is_near_the_share_of_subsets() {
        // A subset of 9 ones has at most 3 with probability 130 / 512, and as many are mirrored.
        let hits = draw(&vec![1u8.into(); 9], &3u8.into());
        let near = |hits: u32, share: f64| (f64::from(hits) / f64::from(DRAWS) - share).abs() < 0.003;
        assert!(near(hits.below, 46.0 / 512.0) && near(hits.up_to, 130.0 / 512.0) && near(hits.either, 260.0 / 512.0));
    }
}
