//! The t interval of the mean at these very boundaries, whatever their recordings.

use thiserror::Error;

use crate::arms::{Arms, squares_within};
use crate::interval::Level;
use crate::rational::{Exact, nearest_double, sum};
use crate::student::StudentT;

/// The mean over some boundaries, with the noise of their rollouts alone.
#[derive(Debug, Clone, PartialEq)]
pub struct HereInterval {
    /// The mean of the differences.
    pub mean: Exact,
    /// Its standard error if the same boundaries were run again.
    pub se: f64,
    /// Degrees of freedom, by Welch and Satterthwaite.
    pub freedom: f64,
    /// `mean - t se`.
    pub low: f64,
    /// `mean + t se`.
    pub high: f64,
    /// What the interval is meant to hold the true mean of these boundaries with.
    pub level: Level,
}

/// Why there is no [`HereInterval`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HereIntervalError {
    /// There is no boundary.
    #[error("there is no boundary to speak of")]
    NoBoundaries,
    /// An arm has too few rollouts for a spread.
    #[error(
        "an arm of boundary `{boundary}` has `{rollouts}` rollouts: run at least two samples, or leave the boundary out"
    )]
    TooFewRollouts {
        /// The index of the boundary.
        boundary: usize,
        /// How many rollouts its smaller arm has.
        rollouts: usize,
    },
    /// No arm has two counts that differ, which is no evidence of certainty.
    #[error("no arm has rollouts that differ: more samples may show a spread, or the agent is deterministic")]
    NoSpread,
}

/// Puts a t interval around the mean difference of some boundaries, for what other rollouts of the same boundaries
/// would give; it says nothing of other boundaries or recordings.
///
/// `V = sum (s2_pre / n_pre + s2_post / n_post) / N^2` over `N` boundaries, with the variance `s2` of each arm's `n`
/// counts, and `(sum v)^2 / sum (v^2 / (n - 1))` degrees of freedom over the arms' terms `v = s2 / n`. An unchanged
/// boundary counts in `N` and adds nothing. Variances are exact, the rest is in doubles; in actions per rollout. Linear
/// in the rollouts.
///
/// # Errors
///
/// [`HereIntervalError::TooFewRollouts`] if an arm has fewer than two, [`HereIntervalError::NoSpread`] if no arm has
/// two counts that differ, [`HereIntervalError::NoBoundaries`] for none.
///
/// # Examples
///
/// ```
/// use retrace_stats::{Arms, Level, here_interval};
///
/// let arms = [Arms::Rollouts { pre: &[0, 0, 0, 1], post: &[1, 4, 1, 1] }, Arms::Unchanged];
/// let found = here_interval(&arms, Level::PERCENT_95)?;
/// assert_eq!(found.mean, "3/4".parse()?);
/// assert!(found.low < 0.0 && found.high > 1.5);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Source
///
/// Welch 1947, *The generalization of "Student's" problem when several different population variances are involved*;
/// Satterthwaite 1946, *An approximate distribution of estimates of variance components*.
pub fn here_interval(boundaries: &[Arms<'_>], level: Level) -> Result<HereInterval, HereIntervalError> {
    let mut differences = Vec::new();
    let (mut variance, mut squares) = (0.0, 0.0);
    for (boundary, arms) in boundaries.iter().enumerate() {
        let &Arms::Rollouts { pre, post } = arms else { continue };
        let rollouts = pre.len().min(post.len());
        let difference = arms.difference().filter(|_| rollouts >= 2);
        differences.push(difference.ok_or(HereIntervalError::TooFewRollouts { boundary, rollouts })?);
        for counts in [pre, post] {
            let n = counts.len() as f64;
            let term = squares_within(counts) as f64 / ((n - 1.0) * n * n);
            variance += term;
            squares += term * term / (n - 1.0);
        }
    }
    if boundaries.is_empty() {
        return Err(HereIntervalError::NoBoundaries);
    }
    let t = StudentT::new(variance * variance / squares).ok_or(HereIntervalError::NoSpread)?;
    let mean = sum(&differences) / Exact::from_integer(boundaries.len().into());
    let se = variance.sqrt() / boundaries.len() as f64;
    let (center, half) = (nearest_double(&mean), t.quantile(1.0 - level.tail()) * se);
    Ok(HereInterval {
        se,
        freedom: variance * variance / squares,
        low: center - half,
        high: center + half,
        level,
        mean,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::vectors;

    fn interval(counts: &[[Vec<u32>; 2]]) -> Result<HereInterval, HereIntervalError> {
        let arms: Vec<Arms<'_>> = counts.iter().map(|[pre, post]| Arms::Rollouts { pre, post }).collect();
        here_interval(&arms, Level::PERCENT_95)
    }

    #[test]
    fn agrees_with_the_vectors() {
        for case in &retrace_testing::vectors::rows("stats/here_interval.jsonl") {
            let counts: Vec<[Vec<u32>; 2]> = case["boundaries"].as_array().unwrap().iter().map(vectors::arms).collect();
            if case["expect"]["low"].is_null() {
                assert_eq!(interval(&counts), Err(HereIntervalError::NoSpread), "{}", case["name"]);
                continue;
            }
            let found = interval(&counts).unwrap();
            let mean = nearest_double(&found.mean);
            for (name, value) in
                [("mean", mean), ("se", found.se), ("df", found.freedom), ("low", found.low), ("high", found.high)]
            {
                vectors::assert_relative(case, name, value, 1e-8);
            }
        }
    }

    #[test]
    fn what_has_no_spread_is_refused_with_what_to_do() {
        let check = |counts: &[[Vec<u32>; 2]], error: HereIntervalError| assert_eq!(interval(counts), Err(error));
        check(&[], HereIntervalError::NoBoundaries);
        check(&[[vec![1, 2], vec![]]], HereIntervalError::TooFewRollouts { boundary: 0, rollouts: 0 });
        check(
            &[[vec![1, 2], vec![1, 3]], [vec![0], vec![0, 5]]],
            HereIntervalError::TooFewRollouts { boundary: 1, rollouts: 1 },
        );
        check(&[[vec![0, 0], vec![5, 5]]], HereIntervalError::NoSpread);
        assert_eq!(here_interval(&[Arms::Unchanged], Level::PERCENT_95), Err(HereIntervalError::NoSpread));
    }

    proptest! {
        #[test]
        fn an_unchanged_boundary_narrows_what_it_dilutes(
            counts in prop::collection::vec([prop::collection::vec(any::<u32>(), 2..5), prop::collection::vec(any::<u32>(), 2..5)], 1..5)
        ) {
            let mut arms: Vec<Arms<'_>> = counts.iter().map(|[pre, post]| Arms::Rollouts { pre, post }).collect();
            let Ok(without) = here_interval(&arms, Level::PERCENT_95) else { return Ok(()) };
            let n = arms.len() as f64;
            arms.push(Arms::Unchanged);
            let with = here_interval(&arms, Level::PERCENT_95).unwrap();
            prop_assert!((with.se / without.se - n / (n + 1.0)).abs() < 1e-12);
            prop_assert_eq!(with.freedom, without.freedom);
        }
    }
}
