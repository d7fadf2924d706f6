//! What the rollouts of a boundary counted.

use std::num::NonZeroU64;

use crate::rational::{Exact, exact_minus, exact_ratio};

/// The counts at one boundary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Arms<'a> {
    /// One count for each rollout that was scored, before and after compaction.
    Rollouts {
        /// The rollouts of the raw history.
        pre: &'a [u32],
        /// The rollouts of the compacted history.
        post: &'a [u32],
    },
    /// The history was left as it was: no rollouts, and a difference of exactly 0 without any noise.
    Unchanged,
}

impl Arms<'_> {
    /// Mean of POST minus mean of PRE; `None` where an arm has no rollouts.
    ///
    /// ```
    /// use retrace_stats::Arms;
    ///
    /// let arms = Arms::Rollouts { pre: &[0, 1], post: &[2, 3, 3] };
    /// assert_eq!(arms.difference(), Some("13/6".parse()?));
    /// assert_eq!(Arms::Rollouts { pre: &[], post: &[2] }.difference(), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn difference(&self) -> Option<Exact> {
        match self {
            Self::Rollouts { pre, post } => Some(exact_minus(&mean(post)?, &mean(pre)?)),
            Self::Unchanged => Some(Exact::default()),
        }
    }
}

/// The mean of some counts; `None` of none.
pub(crate) fn mean(counts: &[u32]) -> Option<Exact> {
    // As many counts as fit into memory sum to less than 2^127.
    Some(exact_ratio(sum(counts) as i128, NonZeroU64::new(counts.len() as u64)?))
}

fn sum(counts: &[u32]) -> u128 {
    counts.iter().map(|&count| u128::from(count)).sum()
}

/// How many counts there are, times the sum of the squares of what they differ from their mean by:
/// `n sum x^2 - (sum x)^2`.
pub(crate) fn squares_within(counts: &[u32]) -> u128 {
    let squares: u128 = counts.iter().map(|&count| u128::from(count).pow(2)).sum();
    counts.len() as u128 * squares - sum(counts).pow(2)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn mean(counts: &[u32]) -> Exact {
        let whole = |number: u128| Exact::from_integer(number.into());
        whole(sum(counts)) / whole(counts.len().max(1) as u128)
    }

    proptest! {
        #[test]
        fn a_difference_is_that_of_the_means(
            pre in prop::collection::vec(any::<u32>(), 1..6),
            post in prop::collection::vec(any::<u32>(), 1..6),
        ) {
            let arms = Arms::Rollouts { pre: &pre, post: &post };
            prop_assert_eq!(arms.difference(), Some(mean(&post) - mean(&pre)));
        }

        #[test]
        fn squares_are_those_of_the_definition(counts in prop::collection::vec(any::<u32>(), 0..9)) {
            let mean = mean(&counts);
            let squares: Exact = counts.iter().map(|&count| (Exact::from_integer(count.into()) - &mean).pow(2)).sum();
            prop_assert_eq!(Exact::from_integer(squares_within(&counts).into()), squares * Exact::from_integer(counts.len().into()));
        }
    }
}
