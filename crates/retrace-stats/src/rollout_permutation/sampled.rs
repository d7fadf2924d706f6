//! Random labels, for boundaries that no way of counting takes.

use std::num::NonZeroU32;
use std::ops::AddAssign;

use num_bigint::BigUint;
use num_traits::{ToPrimitive, Zero};

use super::labels::{Labels, Sums};
use crate::draws::IndexDraws;

/// What the stream of draws is seeded with: `labels` in ASCII.
const SEED: u64 = 0x6c61_6265_6c73;

/// The most draws, the least, and how many labels are drawn together, about.
const MOST_DRAWS: usize = 999_999;
const LEAST_DRAWS: usize = 9_999;
const MOST_LABELS: usize = 200_000_000;

/// A boundary of at most so many allocations has a list of them.
const MOST_LISTED: u64 = 4_096;

/// A list that takes more steps is not made.
const MOST_LISTING: u128 = 100_000;

/// The bits of sums that two words hold.
const TWO_WORD_BITS: u64 = 127;

/// Of so many draws, how many have at most the observed sum, and at least that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hits {
    pub(super) draws: u32,
    pub(super) at_most: u32,
    pub(super) at_least: u32,
}

/// Draws labels for all boundaries, which are sorted so that their order does not matter.
pub(super) fn draw(boundaries: &[Labels]) -> Hits {
    let greatest: BigUint = boundaries.iter().map(|labels| &labels.factor * labels.greatest()).sum();
    if greatest.bits() <= TWO_WORD_BITS {
        hits(boundaries, |number| number.to_u128().unwrap_or(u128::MAX))
    } else {
        hits(boundaries, BigUint::clone)
    }
}

/// How the sum of a boundary is drawn.
enum Draw<N> {
    /// One of the sums of its allocations, each as often as it occurs.
    Listed(Vec<N>),
    /// So many of its counts, one after another.
    Dealt(Vec<N>, usize),
}

impl<N: Clone> Draw<N> {
    fn new(labels: &Labels, scaled: impl Fn(u64) -> N) -> Self {
        let is_short = labels.steps() <= MOST_LISTING && labels.allocations() <= MOST_LISTED.into();
        match is_short.then(|| labels.sums()).flatten() {
            Some(Sums::Ways(ways)) => {
                let least = labels.least();
                let times = |(sum, ways): (u64, u64)| std::iter::repeat_n(scaled(sum + least), ways as usize);
                Self::Listed(ways.into_iter().flat_map(times).collect())
            }
            _ => Self::Dealt(labels.pooled.iter().map(|&count| scaled(count)).collect(), labels.n_post),
        }
    }

    fn labels(&self) -> usize {
        match self {
            Self::Listed(_) => 1,
            Self::Dealt(_, n_post) => *n_post,
        }
    }

    fn add_to(&mut self, sum: &mut N, indices: &mut IndexDraws)
    where
        N: for<'a> AddAssign<&'a N>,
    {
        match self {
            Self::Listed(sums) => *sum += &sums[below(indices, sums.len())],
            Self::Dealt(pooled, n_post) => {
                for dealt in 0..*n_post {
                    let next = dealt + below(indices, pooled.len() - dealt);
                    pooled.swap(dealt, next);
                    *sum += &pooled[dealt];
                }
            }
        }
    }
}

/// An index below a length, of which a 32-bit word can tell the indices apart.
fn below(indices: &mut IndexDraws, len: usize) -> usize {
    let len = NonZeroU32::new(u32::try_from(len).unwrap_or(u32::MAX));
    len.map_or(0, |len| indices.below(len) as usize)
}

fn hits<N>(boundaries: &[Labels], narrow: impl Fn(&BigUint) -> N) -> Hits
where
    N: Clone + Ord + Zero + for<'a> AddAssign<&'a N>,
{
    let scaled = |labels: &Labels, sum: u64| narrow(&(&labels.factor * sum));
    let mut parts: Vec<Draw<N>> =
        boundaries.iter().map(|labels| Draw::new(labels, |sum| scaled(labels, sum))).collect();
    let mut observed = N::zero();
    boundaries.iter().for_each(|labels| observed += &scaled(labels, labels.observed));
    let labels: usize = parts.iter().map(Draw::labels).sum();
    let draws = (MOST_LABELS / labels.max(1)).clamp(LEAST_DRAWS, MOST_DRAWS) as u32;
    let mut indices = IndexDraws::new(SEED);
    let mut hits = Hits { draws, at_most: 0, at_least: 0 };
    for _ in 0..draws {
        let mut sum = N::zero();
        parts.iter_mut().for_each(|part| part.add_to(&mut sum, &mut indices));
        hits.at_most += u32::from(sum <= observed);
        hits.at_least += u32::from(sum >= observed);
    }
    hits
}
