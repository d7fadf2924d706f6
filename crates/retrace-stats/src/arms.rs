//! What the rollouts of a boundary counted.

use crate::rational::Exact;

/// The counts at one boundary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
            Self::Rollouts { pre, post } => Some(mean(post)? - mean(pre)?),
            Self::Unchanged => Some(Exact::default()),
        }
    }
}

fn mean(counts: &[u32]) -> Option<Exact> {
    (!counts.is_empty()).then(|| Exact::new(sum(counts).into(), counts.len().into()))
}

fn sum(counts: &[u32]) -> u128 {
    counts.iter().map(|&count| u128::from(count)).sum()
}

/// The sum of the squares of what counts differ from their mean by: `sum x^2 - (sum x)^2 / n`, exact, 0 for no counts.
pub(crate) fn squares_within(counts: &[u32]) -> Exact {
    if counts.is_empty() {
        return Exact::default();
    }
    let n = num_bigint::BigInt::from(counts.len());
    let squares: num_bigint::BigInt =
        counts.iter().map(|&count| num_bigint::BigInt::from(u64::from(count).pow(2))).sum();
    let total = num_bigint::BigInt::from(sum(counts));
    Exact::new(squares * &n - &total * &total, n)
}

#[cfg(test)]
mod tests {
    use num_traits::Signed;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn squares_are_those_of_the_definition(counts in prop::collection::vec(any::<u32>(), 0..9)) {
            let mean = mean(&counts).unwrap_or_default();
            let expected: Exact = counts.iter().map(|&count| (Exact::from_integer(count.into()) - &mean).pow(2)).sum();
            prop_assert_eq!(&squares_within(&counts), &expected);
            prop_assert!(!expected.is_negative());
        }
    }
}
