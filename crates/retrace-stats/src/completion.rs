//! What a difference would be, had the rollouts that failed been as bad, or as good, as can be.

use std::num::NonZeroU64;

use crate::arms::Arms;
use crate::rational::{Exact, exact_minus, exact_ratio};

/// In whose favour failed rollouts are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Completion {
    /// Failed POST rollouts count as the bound, failed PRE rollouts as 0: the greatest difference there can be.
    Adverse,
    /// Failed POST rollouts count as 0, failed PRE rollouts as the bound: the least difference there can be.
    Favourable,
}

/// How many rollouts of a boundary failed, and so have no count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FailedRollouts {
    /// Those of the raw history.
    pub pre: u32,
    /// Those of the compacted history.
    pub post: u32,
}

/// The difference of a boundary with its failed rollouts counted in, each at an end of what is possible.
///
/// With counts from 0 to `bound`, the adverse difference is
/// `(sum post + bound * failed post) / (n_post + failed post) - sum pre / (n_pre + failed pre)`, and the favourable one
/// its mirror image. Where an arm has no scored rollout it is `bound`, or `-bound`. An unchanged boundary has 0. So the
/// true difference of all rollouts lies between the two whatever made some fail, and a limit that is worked out from
/// adverse differences needs no model of that.
///
/// In actions per rollout, exact; linear in the rollouts.
///
/// ```
/// use retrace_stats::{Arms, Completion, FailedRollouts, completed_difference};
///
/// let arms = Arms::Rollouts { pre: &[1, 0], post: &[2] };
/// let failed = FailedRollouts { pre: 1, post: 1 };
/// assert_eq!(completed_difference(&arms, failed, 5, Completion::Adverse), "19/6".parse()?);
/// assert_eq!(completed_difference(&arms, failed, 5, Completion::Favourable), "-1".parse()?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Source
///
/// Horowitz & Manski 2000, *Nonparametric analysis of randomized experiments with missing covariate and outcome data*.
pub fn completed_difference(arms: &Arms<'_>, failed: FailedRollouts, bound: u32, completion: Completion) -> Exact {
    let &Arms::Rollouts { pre, post } = arms else { return Exact::default() };
    let (failed_pre, failed_post, unscored) = match completion {
        Completion::Adverse => (0, bound, Exact::from_integer(bound.into())),
        Completion::Favourable => (bound, 0, -Exact::from_integer(bound.into())),
    };
    let mean = |counts: &[u32], failed: u32, each: u32| {
        let sum: u128 = counts.iter().map(|&count| u128::from(count)).sum();
        let rollouts = NonZeroU64::new(counts.len() as u64).map(|n| n.saturating_add(failed.into()));
        rollouts.map(|rollouts| exact_ratio((sum + u128::from(failed) * u128::from(each)) as i128, rollouts))
    };
    match (mean(post, failed.post, failed_post), mean(pre, failed.pre, failed_pre)) {
        (Some(post), Some(pre)) => exact_minus(&post, &pre),
        _ => unscored,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_arm_without_scored_rollouts_is_at_the_end() {
        for (pre, post) in [(&[][..], &[3][..]), (&[3], &[]), (&[], &[])] {
            let check = |completion, expected: i32| {
                let failed = FailedRollouts { pre: 2, post: 1 };
                let found = completed_difference(&Arms::Rollouts { pre, post }, failed, 5, completion);
                assert_eq!(found, Exact::from_integer(expected.into()));
            };
            check(Completion::Adverse, 5);
            check(Completion::Favourable, -5);
        }
        let failed = FailedRollouts { pre: u32::MAX, post: u32::MAX };
        assert_eq!(completed_difference(&Arms::Unchanged, failed, 5, Completion::Adverse), Exact::default());
    }

    proptest! {
        #[test]
        fn whatever_the_failed_rollouts_counted_lies_between(
            pre in prop::collection::vec(0..=5_u32, 1..4),
            post in prop::collection::vec(0..=5_u32, 1..4),
            lost_pre in prop::collection::vec(0..=5_u32, 0..4),
            lost_post in prop::collection::vec(0..=5_u32, 0..4),
        ) {
            let arms = Arms::Rollouts { pre: &pre, post: &post };
            let failed = FailedRollouts { pre: lost_pre.len() as u32, post: lost_post.len() as u32 };
            let all = Arms::Rollouts { pre: &[pre.clone(), lost_pre].concat(), post: &[post.clone(), lost_post].concat() }.difference().unwrap();
            let [worst, best] =
                [Completion::Adverse, Completion::Favourable].map(|completion| completed_difference(&arms, failed, 5, completion));
            prop_assert!(best <= all && all <= worst);
            let none = completed_difference(&arms, FailedRollouts::default(), 5, Completion::Adverse);
            prop_assert_eq!(Some(none), arms.difference());
        }
    }
}
