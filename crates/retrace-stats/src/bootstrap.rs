//! The percentile bootstrap of a mean.
//!
//! A resample draws as many values as there are, with replacement; the interval lies between two of
//! the means so found. Values are resampled as whole steps of their common grid and never as
//! doubles, so an end that is zero is zero, and a constant column has a point for an interval.

mod sums;

use std::num::NonZeroU32;

use num_bigint::BigInt;
use thiserror::Error;

use self::sums::Sums;
use crate::draws::IndexDraws;
use crate::grid::Grid;
use crate::interval::{Interval, Level};
use crate::rational::Exact;

/// The most resamples: a column keeps the sum of each, in 8 bytes as a rule.
const MOST_RESAMPLES: u32 = 10_000_000;

/// A mean and its percentile interval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bootstrap {
    /// The mean of the values themselves.
    pub mean: Exact,
    /// From the least mean of a resample that at least `(1 - level) / 2` of the resamples do not
    /// exceed, to the greatest that as many are not below.
    pub interval: Interval,
    /// How many resamples were made.
    pub resamples: u32,
    /// What the draws were seeded with.
    pub seed: u64,
}

/// Why there is no [`Bootstrap`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BootstrapError {
    /// There are no values to resample.
    #[error("there are no values to resample")]
    NoValues,
    /// Columns of one call do not have as many values as the first one.
    #[error("column `{column}` has `{values}` values where the first one has `{first}`")]
    UnequalColumns {
        /// The index of the column.
        column: usize,
        /// How many values it has.
        values: usize,
        /// How many values the first column has.
        first: usize,
    },
    /// There are more values than a 32-bit index tells apart.
    #[error("`{values}` values are more than can be resampled")]
    TooManyValues {
        /// How many values there are.
        values: usize,
    },
    /// The number of resamples is none, or more than can be kept.
    #[error("the number of resamples must be from `1` to `{MOST_RESAMPLES}`, not `{resamples}`")]
    Resamples {
        /// The number asked for.
        resamples: u32,
    },
}

/// Puts a percentile interval around the mean of `values`, one per boundary or other unit.
///
/// `resamples` from 1 to 10,000,000 (10,000 is usual) are made one after another, each by one draw
/// of an index per value. The draws are 32-bit words of the ChaCha key stream with 8 rounds, whose
/// key is `seed` in little-endian bytes and then zeros; word `w` stands for the index `w n / 2^32`,
/// rounded down, of `n` values, save the words passed over so that no index is likelier than
/// another (Lemire 2019, *Fast random integer generation in an interval*).
///
/// Of `B` resampled means in ascending order the ends are number `k` from either side, with `k` the
/// least whole number not below `B (1 - level) / 2`. So mirrored values have a mirrored interval.
///
/// # Errors
///
/// [`BootstrapError::NoValues`] for no values, [`BootstrapError::Resamples`] for too few or too
/// many resamples, [`BootstrapError::TooManyValues`] beyond 2^32 - 1 values.
///
/// # Examples
///
/// ```
/// use retrace_stats::{Exact, Level, bootstrap_mean};
///
/// let values = vec!["1/3".parse()?; 8];
/// let bootstrap = bootstrap_mean(&values, 1_000, Level::PERCENT_95, 0)?;
/// assert_eq!((&bootstrap.interval.low, &bootstrap.interval.high), (&values[0], &values[0]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Source
///
/// Efron & Tibshirani 1993, *An Introduction to the Bootstrap*, chapter 13.
pub fn bootstrap_mean(values: &[Exact], resamples: u32, level: Level, seed: u64) -> Result<Bootstrap, BootstrapError> {
    bootstrap_means(&[values], resamples, level, seed).map(|mut columns| columns.remove(0))
}

/// Does what [`bootstrap_mean`] does for several columns of values of the same units, such as the
/// channels of one strategy, and draws the resamples once for all of them. The result for a column
/// does not depend on the others.
///
/// # Errors
///
/// Those of [`bootstrap_mean`], and [`BootstrapError::UnequalColumns`] if the columns have
/// different numbers of values. No columns have no intervals and are no error.
pub fn bootstrap_means(
    columns: &[&[Exact]],
    resamples: u32,
    level: Level,
    seed: u64,
) -> Result<Vec<Bootstrap>, BootstrapError> {
    let Some(first) = columns.first().map(|column| column.len()) else {
        return Ok(Vec::new());
    };
    if let Some(column) = columns.iter().position(|column| column.len() != first) {
        return Err(BootstrapError::UnequalColumns { column, values: columns[column].len(), first });
    }
    let values = u32::try_from(first).map_err(|_| BootstrapError::TooManyValues { values: first })?;
    let values = NonZeroU32::new(values).ok_or(BootstrapError::NoValues)?;
    if !(1..=MOST_RESAMPLES).contains(&resamples) {
        return Err(BootstrapError::Resamples { resamples });
    }

    let grids: Vec<Grid> = columns.iter().map(|column| Grid::new(column)).collect();
    let mut sums = Sums::new(grids.iter().map(|grid| &*grid.steps));
    let mut draws = IndexDraws::new(seed);
    let mut indices = vec![0; first];
    for _ in 0..resamples {
        indices.fill_with(|| draws.below(values));
        sums.resample(&indices);
    }

    let tail = level.tail_of(resamples) as usize;
    let bootstraps = grids.into_iter().zip(sums.tails(tail)).map(|(grid, ends)| {
        let mean = |sum: BigInt| &grid.unit * sum / BigInt::from(first);
        let [low, high] = ends.map(mean);
        Bootstrap { mean: mean(grid.steps.iter().sum()), interval: Interval { low, high, level }, resamples, seed }
    });
    Ok(bootstraps.collect())
}

#[cfg(test)]
mod tests {
    use num_traits::{Signed, ToPrimitive, Zero};
    use proptest::prelude::*;

    use super::*;
    use crate::vectors;

    fn exacts(values: &[&str]) -> Vec<Exact> {
        values.iter().map(|value| value.parse().unwrap()).collect()
    }

    fn interval(values: &[Exact], resamples: u32, seed: u64) -> Interval {
        bootstrap_mean(values, resamples, Level::PERCENT_95, seed).unwrap().interval
    }

    /// The definition, on fractions: sort the means of all resamples and count from either side.
    fn by_sorting(values: &[Exact], resamples: u32, level: Level, seed: u64) -> [Exact; 2] {
        let n = NonZeroU32::new(values.len() as u32).unwrap();
        let mut draws = IndexDraws::new(seed);
        let mut means: Vec<Exact> = (0..resamples)
            .map(|_| {
                let sum: Exact = (0..n.get()).map(|_| &values[draws.below(n) as usize]).sum();
                sum / BigInt::from(n.get())
            })
            .collect();
        means.sort_unstable();
        let left_out = Exact::from_integer(1.into()) - level.exact();
        let tail = (left_out * BigInt::from(resamples) / BigInt::from(2)).ceil().to_integer().to_usize().unwrap();
        [means[tail - 1].clone(), means[means.len() - tail].clone()]
    }

    // Computed by a second program, from the definitions of the cipher and of the interval.
    #[test]
    fn a_known_interval_does_not_change() {
        let values = exacts(&["1", "1", "7/3", "7/3", "4", "0", "0", "0", "0", "0", "0", "0"]);
        let bootstrap = bootstrap_mean(&values, 10_000, Level::PERCENT_95, 20_260_803).unwrap();
        let Interval { low, high, level } = bootstrap.interval;
        assert_eq!((low, high, level), ("1/4".parse().unwrap(), "5/3".parse().unwrap(), Level::PERCENT_95));
        assert_eq!((bootstrap.resamples, bootstrap.seed), (10_000, 20_260_803));
    }

    #[test]
    fn what_cannot_be_resampled_is_refused() {
        let one = exacts(&["1"]);
        let two = exacts(&["1", "2"]);
        let check = |columns: &[&[Exact]], resamples, error: &str| {
            let result = bootstrap_means(columns, resamples, Level::PERCENT_95, 0);
            assert_eq!(result.unwrap_err().to_string(), error);
        };
        check(&[&[]], 10, "there are no values to resample");
        check(&[&two, &two, &one], 10, "column `2` has `1` values where the first one has `2`");
        check(&[&one], 0, "the number of resamples must be from `1` to `10000000`, not `0`");
        check(&[&one], 10_000_001, "the number of resamples must be from `1` to `10000000`, not `10000001`");
        assert_eq!(bootstrap_means(&[], 10, Level::PERCENT_95, 0), Ok(Vec::new()));
    }

    #[test]
    fn an_end_that_is_zero_is_zero() {
        // In doubles, sums such as 0.1 + 0.2 - 0.3 come out a little above.
        let values = exacts(&["1/10", "1/5", "-3/10"]);
        let Interval { low, high, .. } = interval(&values, 10_000, 1);
        assert_eq!((low, high), ("-3/10".parse().unwrap(), "1/5".parse().unwrap()));
        let rare = exacts(&["15", "0", "0", "0", "0", "0", "0", "0", "0", "0"]);
        assert!(interval(&rare, 10_000, 1).low.is_zero());
        assert!(!interval(&rare, 10_000, 1).excludes_zero());
    }

    #[test]
    fn sums_beyond_a_word_do_not_overflow() {
        let narrow = exacts(&["1", "-2", "3", "5", "0"]);
        let expected = interval(&narrow, 500, 3);
        // One more value on a grid of its own makes the steps of all others long.
        for fine in ["1/4611686018427387904", "1/170141183460469231731687303715884105727"] {
            let fine: Exact = fine.parse().unwrap();
            let long: Vec<Exact> = narrow.iter().map(|value| value + &fine).collect();
            let Interval { low, high, .. } = interval(&long, 500, 3);
            assert_eq!((low - &fine, high - &fine), (expected.low.clone(), expected.high.clone()));
        }
        let greatest: Exact = Exact::from_integer(i64::MAX.into());
        let values = [greatest.clone(), greatest.clone(), greatest - Exact::from_integer(1.into())];
        assert_eq!(interval(&values, 100, 3).high, values[0]);
    }

    #[test]
    fn agrees_with_the_vectors() {
        for case in &retrace_testing::vectors::rows("verifier/bootstrap.jsonl") {
            let name = &case["name"];
            let resamples = case["resamples"].as_u64().unwrap().try_into().unwrap();
            let bootstrap = bootstrap_mean(&vectors::exacts(&case["values"]), resamples, Level::PERCENT_95, 1).unwrap();
            assert_eq!(bootstrap.mean, vectors::exact(&case["mean"]), "{name}");
            let band = |end: &str| [0, 1].map(|i| vectors::exact(&case["monte_carlo_band"][end][i]));
            let ([low_from, low_to], [high_from, high_to]) = (band("low"), band("high"));
            let Interval { low, high, .. } = &bootstrap.interval;
            assert!((&low_from..=&low_to).contains(&low), "{name}: {low}");
            assert!((&high_from..=&high_to).contains(&high), "{name}: {high}");
            // Where no end of the band is on the other side, the exact answer is the only one.
            let excludes = |low: &Exact, high: &Exact| low.is_positive() || high.is_negative();
            if excludes(&low_from, &high_from) == excludes(&low_to, &high_to) {
                assert_eq!(bootstrap.interval.excludes_zero(), case["excludes_zero"], "{name}");
            }
        }
    }

    fn columns() -> impl Strategy<Value = Vec<Vec<Exact>>> {
        (1..12usize, 1..4usize).prop_flat_map(|(values, columns)| {
            let value = (-40..40i64, 1..8i64).prop_map(|(p, q)| Exact::new(p.into(), q.into()));
            prop::collection::vec(prop::collection::vec(value, values), columns)
        })
    }

    proptest! {
        #[test]
        fn ends_are_counted_tails_of_the_sorted_means(
            columns in columns(),
            resamples in 1..60u32,
            (numerator, denominator) in (2..50u32).prop_flat_map(|d| (1..d, Just(d))),
            seed: u64,
        ) {
            let level = Level::new(numerator, denominator).unwrap();
            let bootstrap = bootstrap_mean(&columns[0], resamples, level, seed).unwrap();
            let Interval { low, high, .. } = bootstrap.interval;
            prop_assert_eq!([low, high], by_sorting(&columns[0], resamples, level, seed));
        }

        #[test]
        fn columns_together_are_as_each_alone(columns in columns(), seed: u64) {
            let slices: Vec<&[Exact]> = columns.iter().map(Vec::as_slice).collect();
            let together = bootstrap_means(&slices, 50, Level::PERCENT_95, seed);
            let alone: Result<Vec<_>, _> =
                slices.iter().map(|column| bootstrap_mean(column, 50, Level::PERCENT_95, seed)).collect();
            prop_assert_eq!(together, alone);
        }

        #[test]
        fn a_shift_a_stretch_and_a_mirror_carry_over(columns in columns(), shift in -50..50i64, stretch in 1..50i64, seed: u64) {
            let (shift, stretch) = (Exact::new(shift.into(), 3.into()), Exact::new(stretch.into(), 7.into()));
            let moved: Vec<Exact> = columns[0].iter().map(|value| &shift - value * &stretch).collect();
            let [plain, moved] = [&columns[0], &moved].map(|values| interval(values, 50, seed));
            prop_assert_eq!(moved.low, &shift - plain.high * &stretch);
            prop_assert_eq!(moved.high, &shift - plain.low * &stretch);
        }

        #[test]
        fn ends_are_ordered_and_within_the_values(columns in columns(), resamples in 1..60u32, seed: u64) {
            let Interval { low, high, .. } = interval(&columns[0], resamples, seed);
            prop_assert!(low <= high);
            prop_assert!(columns[0].iter().min().unwrap() <= &low && &high <= columns[0].iter().max().unwrap());
        }
    }
}
