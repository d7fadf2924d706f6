//! The percentile bootstrap with all its resamples: the limit of one that draws them, without a seed.
//!
//! The sum of a resample of `n` values is the sum of `n` independent draws from them, so its law is the `n`-th power of
//! theirs, on the grid of the values. It is worked out in doubles with a bound on their error, which only has to tell where the share of the resamples
//! passes that of a tail; an end of the interval is then exactly a mean that a resample has. Where the
//! share comes too near to be told, whole numbers are.

mod power;

use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::ToPrimitive;

use self::power::Base;
use crate::bootstrap::{BootstrapError, bootstrap_mean};
use crate::grid::{Grid, small_steps};
use crate::interval::{Interval, Level};
use crate::rational::{Exact, exact_mean};

/// How many resamples are drawn where there are too many to be counted, and the seed.
pub(crate) const DRAWN: u32 = 10_000;
pub(crate) const SEED: u64 = 0;

/// A mean, and the percentile interval of all its resamples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExactBootstrap {
    /// The mean of the values themselves.
    pub mean: Exact,
    /// From the least mean that at least `(1 - level) / 2` of the resamples do not exceed, to the greatest that as many
    /// are not below.
    pub interval: Interval,
    /// Which resamples were looked at.
    pub resamples: Resamples,
}

/// Which resamples a bootstrap looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Resamples {
    /// All of them: the interval is exact.
    All,
    /// So many, drawn with a fixed seed, since all were too many.
    Drawn(u32),
}

impl Resamples {
    /// A word for reports: `exact` or `sampled`.
    pub fn method(self) -> &'static str {
        match self {
            Self::All => "exact",
            Self::Drawn(_) => "sampled",
        }
    }
}

/// Puts the percentile interval of all `n^n` resamples around the mean of `n` values, one per boundary or other unit.
///
/// It is what [`bootstrap_mean`](crate::bootstrap_mean) tends to with more and more resamples. Mirrored values have a mirrored interval, and a
/// constant column has a point for one.
///
/// *Assumption.* The values are independent and of one kind. A percentile interval is too narrow for few or skewed values; it
/// is here to compare with others who print it.
///
/// # Errors
///
/// [`BootstrapError::NoValues`] for no values, [`BootstrapError::TooManyValues`] beyond 2^32 - 1 values.
///
/// # Complexity
///
/// With `w` the number of steps of the values' common grid in 19 standard deviations of the sum, at most all that it may
/// have: about `w^2 / 2` additions of doubles: 1 ms for 400 differences of means over three rollouts. Beyond 5 10^7 of
/// them, a few hundredths of a second, 10,000 resamples are drawn instead, and [`ExactBootstrap::resamples`] says so.
///
/// # Examples
///
/// ```
/// use retrace_stats::{Exact, Level, Resamples, exact_bootstrap_mean};
///
/// let values: Vec<Exact> = vec!["0".parse()?, "0".parse()?, "0".parse()?, "7/3".parse()?, "7/3".parse()?, "0".parse()?];
/// let bootstrap = exact_bootstrap_mean(&values, Level::PERCENT_95)?;
/// assert_eq!((bootstrap.interval.low, bootstrap.interval.high), ("0".parse()?, "14/9".parse()?));
/// assert_eq!(bootstrap.resamples, Resamples::All);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Source
///
/// Efron & Tibshirani 1993, *An Introduction to the Bootstrap*, chapter 13; Fisher & Hall 1991, *Bootstrap algorithms for
/// small samples*, for resamples that are counted and not drawn.
pub fn exact_bootstrap_mean(values: &[Exact], level: Level) -> Result<ExactBootstrap, BootstrapError> {
    if values.is_empty() {
        return Err(BootstrapError::NoValues);
    }
    let n = BigInt::from(values.len());
    let mean = exact_mean(values).unwrap_or_default();
    let Above { least, unit, steps: above } = Above::new(values);
    let Some(sides) = above.and_then(|above| Base::new(above)?.sides(level)) else {
        let drawn = bootstrap_mean(values, DRAWN, level, SEED)?;
        return Ok(ExactBootstrap { mean, interval: drawn.interval, resamples: Resamples::Drawn(DRAWN) });
    };
    let [low, high] = [sides.low, sides.high].map(|sum| &least + &unit * sum / &n);
    Ok(ExactBootstrap { mean, interval: Interval { low, high, level }, resamples: Resamples::All })
}

/// Values as whole steps above the least of them, since only their differences need a common grid.
struct Above {
    least: Exact,
    unit: Exact,
    /// `None` where they are too many for a word.
    steps: Option<Vec<usize>>,
}

impl Above {
    fn new(values: &[Exact]) -> Self {
        Self::small(values).unwrap_or_else(|| {
            let least = values.iter().min().cloned().unwrap_or_default();
            let grid = Grid::new(&values.iter().map(|value| value - &least).collect::<Vec<_>>());
            Self { least, unit: grid.unit, steps: grid.steps.iter().map(ToPrimitive::to_usize).collect() }
        })
    }

    /// Where whole numbers of a word do, many times as fast.
    fn small(values: &[Exact]) -> Option<Self> {
        let steps = small_steps(values)?;
        let (place, least) = steps.iter().enumerate().min_by_key(|&(_, step)| step)?;
        let above: Vec<i64> = steps.iter().map(|step| step.checked_sub(*least)).collect::<Option<_>>()?;
        let (other, highest) = above.iter().enumerate().max_by_key(|&(_, step)| step)?;
        let divisor = above.iter().fold(0, |gcd: i64, step| if gcd == 1 { 1 } else { gcd.gcd(step) }).max(1);
        let unit = match highest {
            0 => Exact::default(),
            highest => (&values[other] - &values[place]) / BigInt::from(highest / divisor),
        };
        let steps = above.iter().map(|step| usize::try_from(step / divisor).ok()).collect();
        Some(Self { least: values[place].clone(), unit, steps })
    }
}

#[cfg(test)]
mod tests {
    use num_traits::Zero;
    use proptest::prelude::*;

    use super::*;
    use crate::vectors;

    fn interval(values: &[Exact], level: Level) -> [Exact; 2] {
        let bootstrap = exact_bootstrap_mean(values, level).unwrap();
        assert_eq!(bootstrap.resamples, Resamples::All);
        [bootstrap.interval.low, bootstrap.interval.high]
    }

    /// The definition, on fractions: the means of all resamples, sorted, counted from either side.
    fn by_enumeration(values: &[Exact], level: Level) -> [Exact; 2] {
        let n = values.len();
        let mut means = vec![Exact::zero()];
        for _ in 0..n {
            means = means.iter().flat_map(|sum| values.iter().map(move |value| sum + value)).collect();
        }
        means.sort_unstable();
        let tail = level.tail_of(means.len() as u32) as usize;
        [tail - 1, means.len() - tail].map(|rank| &means[rank] / BigInt::from(n))
    }

    #[test]
    fn agrees_with_the_vectors() {
        for case in &retrace_testing::vectors::rows("stats/exact_bootstrap.jsonl") {
            assert_eq!(case["level"], "19/20");
            let expect = &case["expect"];
            let ends = interval(&vectors::exacts(&case["deltas"]), Level::PERCENT_95);
            assert_eq!(ends, ["low", "high"].map(|end| vectors::exact(&expect[end])), "{}", case["name"]);
        }
        for case in &retrace_testing::vectors::rows("verifier/bootstrap.jsonl") {
            let ends = interval(&vectors::exacts(&case["values"]), Level::PERCENT_95);
            assert_eq!(ends[0], vectors::exact(&case["low"]), "{}", case["name"]);
        }
    }

    #[test]
    fn no_values_are_refused_and_one_value_is_a_point() {
        assert_eq!(exact_bootstrap_mean(&[], Level::PERCENT_95), Err(BootstrapError::NoValues));
        let one = vec!["7/3".parse().unwrap()];
        assert_eq!(interval(&one, Level::PERCENT_95), [one[0].clone(), one[0].clone()]);
        let fifty = vec![one[0].clone(); 50];
        assert_eq!(interval(&fifty, Level::PERCENT_95), [one[0].clone(), one[0].clone()]);
    }

    #[test]
    fn a_share_that_is_exactly_that_of_a_tail_is_in_it() {
        // Of the four resamples of two values one has the lesser value twice: 1/4, the tail of 1/2.
        let values = ["0", "1"].map(|value| value.parse().unwrap());
        assert_eq!(interval(&values, Level::new(1, 2).unwrap()), ["0", "1"].map(|end| end.parse().unwrap()));
        assert_eq!(interval(&values, Level::new(49, 100).unwrap()), ["1/2", "1/2"].map(|end| end.parse().unwrap()));
    }

    #[test]
    fn a_grid_that_is_too_fine_is_drawn_from() {
        let values: Vec<Exact> = (1..40i64).map(|i| Exact::new(i.into(), (2 * i * i + 1).into())).collect();
        let bootstrap = exact_bootstrap_mean(&values, Level::PERCENT_95).unwrap();
        assert_eq!((bootstrap.resamples.method(), bootstrap.resamples), ("sampled", Resamples::Drawn(10_000)));
        let drawn = bootstrap_mean(&values, 10_000, Level::PERCENT_95, 0).unwrap();
        assert_eq!((bootstrap.mean, bootstrap.interval), (drawn.mean, drawn.interval));
    }

    fn values(n: std::ops::RangeInclusive<usize>) -> impl Strategy<Value = Vec<Exact>> {
        prop::collection::vec((-12..12i64, 1..4i64).prop_map(|(p, q)| Exact::new(p.into(), q.into())), n)
    }

    fn level() -> impl Strategy<Value = Level> {
        prop_oneof![
            Just(Level::PERCENT_95),
            (2..50u32).prop_flat_map(|d| (1..d).prop_map(move |n| Level::new(n, d).unwrap())),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(retrace_testing::cases(128, 3_000)))]

        #[test]
        fn ends_are_those_of_all_resamples(values in values(1..=6), level in level()) {
            prop_assert_eq!(interval(&values, level), by_enumeration(&values, level));
        }

        #[test]
        fn doubles_and_whole_numbers_agree(values in values(1..=40), level in level()) {
            let least = values.iter().min().unwrap();
            let steps = Grid::new(&values.iter().map(|value| value - least).collect::<Vec<_>>()).steps;
            let base = Base::new(steps.iter().map(|step| step.to_usize().unwrap()).collect()).unwrap();
            let whole = base.counted(level).unwrap();
            if let Some(rounded) = base.rounded(level) {
                prop_assert_eq!(rounded, whole);
            }
        }

        #[test]
        fn a_shift_a_stretch_and_a_mirror_carry_over_in_any_order(
            (values, shuffled) in values(1..=60).prop_flat_map(|v| (Just(v.clone()), Just(v).prop_shuffle())),
            shift in -50..50i64,
            stretch in 1..50i64,
            level in level(),
        ) {
            let (shift, stretch) = (Exact::new(shift.into(), 3.into()), Exact::new(stretch.into(), 7.into()));
            let moved: Vec<Exact> = shuffled.iter().map(|value| &shift - value * &stretch).collect();
            let [low, high] = interval(&values, level);
            prop_assert_eq!(interval(&moved, level), [&shift - high * &stretch, &shift - low * &stretch]);
        }
    }

    proptest! {
        #[test]
        fn steps_of_a_word_are_those_of_any_size(
            values in prop::collection::vec((-40..40i64, 1..8i64), 1..20),
            far in prop_oneof![Just("0"), Just("1/4611686018427387904")],
        ) {
            // Far from zero the steps need more than a word, and stand as far above the least.
            let far: Exact = far.parse().unwrap();
            let values: Vec<Exact> = values.iter().map(|&(p, q)| Exact::new(p.into(), q.into()) + &far).collect();
            let Above { least, unit, steps } = Above::new(&values);
            for (value, steps) in values.iter().zip(steps.unwrap()) {
                prop_assert_eq!(&least + &unit * BigInt::from(steps), value.clone());
            }
        }
    }
}
