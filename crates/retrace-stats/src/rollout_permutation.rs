//! The permutation test of rollouts between the two arms of each boundary.
//!
//! Within a boundary each way to call as many of the pooled rollouts POST as there were makes a sum of POST, and with it a
//! difference of means. Boundaries are independent, so the ways to reach a total are those of their sums, convolved on
//! the common grid of the differences. Only totals on the nearer side of the observed one are kept.

mod labels;
mod sampled;
mod side;

use num_bigint::BigUint;
use thiserror::Error;

use self::labels::Labels;
use self::side::Side;
use crate::arms::Arms;
use crate::binomial::binomial;
use crate::grid::Grid;
use crate::p_value::PValue;
use crate::rational::{Exact, exact_mean};

/// The most steps that working out the sums of all boundaries may take: about a second.
const MOST_STEPS: u128 = 1_000_000_000;

/// The counts of a boundary with rollouts in both arms.
#[derive(Debug, Clone, Copy)]
struct ArmCounts<'a> {
    pre: &'a [u32],
    post: &'a [u32],
}

impl<'a> ArmCounts<'a> {
    fn of(arms: &Arms<'a>) -> Option<Self> {
        match *arms {
            Arms::Rollouts { pre, post } if !pre.is_empty() && !post.is_empty() => Some(Self { pre, post }),
            Arms::Rollouts { .. } | Arms::Unchanged => None,
        }
    }

    fn difference(&self) -> Option<Exact> {
        Arms::Rollouts { pre: self.pre, post: self.post }.difference()
    }
}

/// The outcome of [`rollout_permutation_test`].
#[derive(Debug, Clone, PartialEq)]
pub struct RolloutPermutationTest {
    /// How many boundaries have rollouts in both arms; the others are left out.
    pub boundaries: usize,
    /// At how many of them not all rollouts count alike. The others cannot tell anything.
    pub varying: usize,
    /// The mean over the boundaries of mean POST minus mean PRE, in counts per rollout.
    pub mean: Exact,
    /// In how many ways the pooled rollouts of all boundaries may be dealt to the arms. No one-sided p is below its inverse.
    pub allocations: BigUint,
    /// The two-sided p-value: twice the smaller of the two others, at most 1.
    pub p: PValue,
    /// The one-sided p-value against more in POST: the share of the allocations with at least the observed difference.
    pub p_harm: PValue,
    /// The one-sided p-value against less in POST: the share with at most the observed difference.
    pub p_gain: PValue,
}

/// Why there is no [`RolloutPermutationTest`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RolloutPermutationError {
    /// No boundary has rollouts in both arms.
    #[error("no boundary has rollouts in both arms")]
    NoBoundary,
}

/// Tests whether POST rollouts count as PRE rollouts do at each of these boundaries, by dealing them to the arms anew.
///
/// The statistic is the sum over boundaries of mean POST minus mean PRE. It is compared with its values under all
/// `C(n_pre + n_post, n_post)` ways of calling the pooled rollouts of a boundary POST, independently over boundaries,
/// ties included. Twice the smaller tail is the two-sided p, so that each direction has its half of the level also where
/// unequal arms make the statistic skew. With one rollout in each arm it is the sign-flip test of the boundaries.
///
/// *Assumption.* At every boundary the rollouts of both arms are exchangeable if there is no effect: independent runs, in
/// an order that does not depend on the arm. Nothing is assumed of their distribution, of arm sizes, or of how the boundaries of one
/// recording resemble each other: all that is given. So it says nothing of other boundaries or recordings.
///
/// *Not for a deterministic agent.* Where every arm's rollouts are copies of one, they are one sample and not
/// several, and this p is fiction. Counts alike do not show that, only the actions do: it is for the caller to see, and to
/// pass one rollout for each arm.
///
/// # Errors
///
/// [`RolloutPermutationError::NoBoundary`] if no boundary has rollouts in both arms.
///
/// # Complexity
///
/// With `k` the number of different sums of a boundary and `L` the reachable totals on the nearer side, the work is the
/// sum over boundaries of `k L`, times the words of a count. It is exact up to 10^9 words, if no boundary has more than
/// 2^63 allocations (33 + 33 rollouts), certified up to 4 10^9 additions of doubles, and otherwise drawn, always with the
/// same 999,999 draws or fewer, but not below 9,999: about a second each. Memory never goes beyond a gibibyte.
///
/// # Examples
///
/// ```
/// use retrace_stats::{Arms, PValue, rollout_permutation_test};
///
/// let boundaries = [
///     Arms::Rollouts { pre: &[0, 1], post: &[4, 4] },
///     Arms::Rollouts { pre: &[0, 0], post: &[1, 1] },
///     Arms::Rollouts { pre: &[0, 0], post: &[3, 3] },
/// ];
/// let test = rollout_permutation_test(&boundaries)?;
/// assert_eq!((test.mean, test.p), ("5/2".parse()?, PValue::Exact("1/108".parse()?)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Source
///
/// Fisher 1935, *The Design of Experiments*; Pitman 1937, *Significance tests which may be applied to samples from any
/// populations*; Pagano & Tritchler 1983, *On obtaining permutation distributions in polynomial time*; Ding 2017, *A
/// paradox from randomization-based causal inference*, for what such a null does not say.
pub fn rollout_permutation_test(boundaries: &[Arms<'_>]) -> Result<RolloutPermutationTest, RolloutPermutationError> {
    let tested: Vec<_> = boundaries.iter().filter_map(ArmCounts::of).collect();
    if tested.is_empty() {
        return Err(RolloutPermutationError::NoBoundary);
    }
    let differences: Vec<_> = tested.iter().filter_map(ArmCounts::difference).collect();
    let allocations = tested.iter().map(|counts| binomial(counts.pre.len() + counts.post.len(), counts.post.len()));
    let pooled = Pooled::new(tested.iter().filter_map(Labels::new).collect());
    let (p_gain, p_harm) = pooled.sides();
    Ok(RolloutPermutationTest {
        boundaries: tested.len(),
        varying: pooled.boundaries.len(),
        mean: exact_mean(&differences).unwrap_or_default(),
        allocations: allocations.product(),
        p: p_gain.smaller(&p_harm).doubled(),
        p_harm,
        p_gain,
    })
}

/// The boundaries at which labels matter, on one grid.
struct Pooled {
    /// Sorted, so that their order does not matter.
    boundaries: Vec<Labels>,
}

impl Pooled {
    fn new(mut boundaries: Vec<Labels>) -> Self {
        let weights: Vec<Exact> = boundaries.iter().map(Labels::weight).collect();
        for (labels, factor) in boundaries.iter_mut().zip(Grid::new(&weights).steps) {
            labels.factor = factor.magnitude().clone();
        }
        boundaries.sort_unstable();
        Self { boundaries }
    }

    /// The shares of the allocations with at most and with at least the observed total.
    fn sides(&self) -> (PValue, PValue) {
        let total = |of: fn(&Labels) -> u64| -> BigUint {
            self.boundaries.iter().map(|labels| &labels.factor * of(labels)).sum()
        };
        let [least, observed, greatest] =
            [Labels::least, |labels: &Labels| labels.observed, Labels::greatest].map(total);
        let [from_least, from_greatest] = [&observed - least, greatest - observed];
        let is_lower = from_least <= from_greatest;
        let bounds = if is_lower { [from_least, from_greatest] } else { [from_greatest, from_least] };
        let is_little = self.boundaries.iter().map(Labels::steps).sum::<u128>() <= MOST_STEPS;
        let sums = || self.boundaries.iter().map(Labels::sums).collect::<Option<Vec<_>>>();
        let (near, far) = is_little
            .then(sums)
            .flatten()
            .and_then(|sums| {
                let side = |is_lower, bound: &BigUint| Side::new(&self.boundaries, &sums, is_lower, bound);
                let near = side(is_lower, &bounds[0])?;
                near.count().or_else(|| near.certified(|| side(!is_lower, &bounds[1])))
            })
            .unwrap_or_else(|| {
                let sampled::Hits { draws, at_most, at_least } = sampled::draw(&self.boundaries);
                let [near, far] = if is_lower { [at_most, at_least] } else { [at_least, at_most] };
                (PValue::sampled(near, draws), PValue::sampled(far, draws))
            });
        if is_lower { (near, far) } else { (far, near) }
    }
}

#[cfg(test)]
mod tests;
