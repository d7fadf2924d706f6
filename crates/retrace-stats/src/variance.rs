//! Where the spread of differences comes from: recordings, boundaries, rollouts.

use std::collections::BTreeMap;

use num_bigint::BigInt;
use num_traits::{One, Zero};
use thiserror::Error;

use crate::arms::{Arms, squares_within};
use crate::rational::{Exact, nearest_double, square, sum};

/// Variances in squared actions per rollout. Estimates of recordings and boundaries may come out below zero and are
/// kept so; a plan takes them for zero.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VarianceComponents {
    /// Between recordings, of their true means.
    pub recording: f64,
    /// Between boundaries of one recording, of their true differences. It holds the noise of rollouts too where that is
    /// not known.
    pub boundary: f64,
    /// Between PRE rollouts of one boundary; `None` where no boundary has two.
    pub rollout_pre: Option<f64>,
    /// Between POST rollouts of one boundary; `None` where no boundary has two.
    pub rollout_post: Option<f64>,
}

/// Why there are no [`VarianceComponents`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum VarianceError {
    /// A spread between recordings takes two.
    #[error(
        "`{recordings}` recordings with scored boundaries show no spread between recordings: a pilot needs at least two"
    )]
    TooFewRecordings {
        /// How many recordings have scored boundaries.
        recordings: usize,
    },
    /// A spread between boundaries takes a recording with two.
    #[error("no recording has two scored boundaries: a pilot needs one that has")]
    TooFewBoundaries,
}

/// Splits the variance of a pilot run by the method of moments; one list of boundaries for each recording, of any
/// lengths.
///
/// `s2_pre` and `s2_post` are pooled over the boundaries with at least two rollouts in that arm. A boundary's
/// difference `d` has the noise `e = s2_pre / n_pre + s2_post / n_post`. With `SSB = sum (d - mean_g)^2` within and
/// `SSR = sum m_g (mean_g - mean)^2` between `G` recordings of `m_g` of `N` boundaries:
/// `boundary = (SSB - sum e (1 - 1/m_g)) / (N - G)` and
/// `recording = (SSR - (G - 1) boundary - sum e (1/m_g - 1/N)) / (N - sum m_g^2 / N)`.
///
/// An unchanged boundary has no difference and no noise. One without rollouts in an arm is left out. Everything is
/// exact up to the last step; about linear in the rollouts.
///
/// # Errors
///
/// [`VarianceError::TooFewRecordings`] below two, [`VarianceError::TooFewBoundaries`] if none has two boundaries.
///
/// # Examples
///
/// ```
/// use retrace_stats::{Arms, variance_components};
///
/// let quiet = Arms::Rollouts { pre: &[0, 1], post: &[1, 0] };
/// let harmed = Arms::Rollouts { pre: &[0, 1], post: &[4, 5] };
/// let found = variance_components(&[&[quiet, harmed], &[quiet, quiet], &[harmed]])?;
/// assert_eq!((found.rollout_pre, found.rollout_post), (Some(0.5), Some(0.5)));
/// assert!(found.boundary > 0.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Source
///
/// Searle, Casella & McCulloch 1992, *Variance Components*, chapter 5 (unbalanced nested data).
pub fn variance_components(recordings: &[&[Arms<'_>]]) -> Result<VarianceComponents, VarianceError> {
    let scored: Vec<Vec<(&Arms<'_>, Exact)>> = recordings
        .iter()
        .map(|recording| recording.iter().filter_map(|arms| Some((arms, arms.difference()?))).collect())
        .filter(|recording: &Vec<_>| !recording.is_empty())
        .collect();
    let total: usize = scored.iter().map(Vec::len).sum();
    if scored.len() < 2 {
        return Err(VarianceError::TooFewRecordings { recordings: scored.len() });
    }
    if total == scored.len() {
        return Err(VarianceError::TooFewBoundaries);
    }

    let all = || scored.iter().flatten().map(|&(arms, _)| arms);
    let pre = pooled(all().filter_map(|arms| if let Arms::Rollouts { pre, .. } = arms { Some(*pre) } else { None }));
    let post = pooled(all().filter_map(|arms| if let Arms::Rollouts { post, .. } = arms { Some(*post) } else { None }));
    let inverse = |counts: &[u32]| Exact::new_raw(BigInt::one(), counts.len().into());
    let mut within = Exact::zero();
    let mut between = Exact::zero();
    let mut noise_within = Exact::zero();
    let mut noise_between = Exact::zero();
    let mut sums = Vec::new();
    let mut squared_sizes = 0_u128;
    for recording in &scored {
        let size = whole(recording.len());
        let total_of = sum(recording.iter().map(|(_, difference)| difference));
        let squares = sum(&recording.iter().map(|(_, difference)| square(difference)).collect::<Vec<_>>());
        let mut noise = Exact::zero();
        for (variance, pick) in [(&pre, 0), (&post, 1)] {
            let Some(variance) = variance else { continue };
            let rollouts = recording.iter().filter_map(|(arms, _)| match arms {
                Arms::Rollouts { pre, post } => Some(if pick == 0 { *pre } else { *post }),
                Arms::Unchanged => None,
            });
            noise += variance * sum(&rollouts.map(&inverse).collect::<Vec<_>>());
        }
        let of_mean = square(&total_of) / &size;
        within += squares - &of_mean;
        between += of_mean;
        noise_within += &noise - &noise / &size;
        noise_between += &noise / &size - &noise / whole(total);
        sums.push(total_of);
        squared_sizes += (recording.len() as u128).pow(2);
    }
    between -= square(&sum(&sums)) / whole(total);
    let boundary = (within - noise_within) / whole(total - scored.len());
    let sizes = whole(total) - Exact::new(BigInt::from(squared_sizes), total.into());
    let recording = (between - whole(scored.len() - 1) * &boundary - noise_between) / sizes;
    let [rollout_pre, rollout_post] = [pre, post].map(|variance| variance.as_ref().map(nearest_double));
    Ok(VarianceComponents {
        recording: nearest_double(&recording),
        boundary: nearest_double(&boundary),
        rollout_pre,
        rollout_post,
    })
}

fn whole(number: usize) -> Exact {
    Exact::from_integer(number.into())
}

/// The variance within arms of at least two rollouts.
fn pooled<'a>(arms: impl Iterator<Item = &'a [u32]>) -> Option<Exact> {
    let mut squares: BTreeMap<usize, BigInt> = BTreeMap::new();
    let mut freedom = 0;
    for counts in arms.filter(|counts| counts.len() >= 2) {
        *squares.entry(counts.len()).or_default() += squares_within(counts);
        freedom += counts.len() - 1;
    }
    let squares = squares.into_iter().map(|(rollouts, squares)| Exact::new(squares, rollouts.into()));
    (freedom > 0).then(|| sum(&squares.collect::<Vec<_>>()) / whole(freedom))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::vectors;

    type Counts = Vec<Vec<[Vec<u32>; 2]>>;

    fn components(counts: &Counts) -> Result<VarianceComponents, VarianceError> {
        let arms: Vec<Vec<Arms<'_>>> = counts
            .iter()
            .map(|recording| recording.iter().map(|[pre, post]| Arms::Rollouts { pre, post }).collect())
            .collect();
        variance_components(&arms.iter().map(Vec::as_slice).collect::<Vec<_>>())
    }

    #[test]
    fn agrees_with_the_vectors() {
        for case in &retrace_testing::vectors::rows("stats/variance_components.jsonl") {
            let recordings = case["recordings"].as_array().unwrap().iter();
            let counts: Counts =
                recordings.map(|recording| recording.as_array().unwrap().iter().map(vectors::arms).collect()).collect();
            let found = components(&counts).unwrap();
            for (name, value) in [
                ("recording", found.recording),
                ("boundary", found.boundary),
                ("rollout_pre", found.rollout_pre.unwrap()),
                ("rollout_post", found.rollout_post.unwrap()),
            ] {
                let expected = case["expect"][name].as_f64().unwrap();
                vectors::assert_near(case, name, value, (1e-9 * expected.abs()).max(1e-10));
            }
        }
    }

    #[test]
    fn a_pilot_that_shows_no_spread_is_refused() {
        let one = || [vec![0, 1], vec![2, 1]];
        let few = |counts: &Counts| components(counts).unwrap_err();
        assert_eq!(few(&vec![]), VarianceError::TooFewRecordings { recordings: 0 });
        assert_eq!(few(&vec![vec![one(), one()], vec![]]), VarianceError::TooFewRecordings { recordings: 1 });
        assert_eq!(few(&vec![vec![one()], vec![one()]]), VarianceError::TooFewBoundaries);
        // A boundary without POST rollouts is none.
        let unscored = [vec![0, 1], vec![]];
        assert_eq!(few(&vec![vec![one(), unscored], vec![one()]]), VarianceError::TooFewBoundaries);
    }

    #[test]
    fn one_rollout_an_arm_leaves_its_noise_in_the_boundaries() {
        let counts = vec![vec![[vec![0], vec![3]], [vec![1], vec![1]]], vec![[vec![0], vec![2]]]];
        let found = components(&counts).unwrap();
        assert_eq!((found.rollout_pre, found.rollout_post), (None, None));
        assert!(found.boundary > 0.0);
    }

    #[test]
    fn what_never_differs_has_no_variance() {
        let found = variance_components(&[&[Arms::Unchanged; 3], &[Arms::Unchanged; 2]]).unwrap();
        assert_eq!((found.recording, found.boundary, found.rollout_pre, found.rollout_post), (0.0, 0.0, None, None));
    }

    proptest! {
        #[test]
        fn any_counts_have_components_or_an_error(
            counts in prop::collection::vec(
                prop::collection::vec(
                    [prop::collection::vec(any::<u32>(), 0..4), prop::collection::vec(any::<u32>(), 0..4)],
                    0..4,
                ),
                0..5,
            ),
        ) {
            if let Ok(found) = components(&counts) {
                prop_assert!(found.recording.is_finite() && found.boundary.is_finite());
                prop_assert!(found.rollout_pre.is_none_or(|variance| variance >= 0.0));
                let backwards: Counts = counts.iter().rev().cloned().collect();
                prop_assert_eq!(components(&backwards), Ok(found));
            }
        }
    }
}
