//! Limits of a mean that hold for every distribution of counts that cannot exceed a bound.

use num_traits::Signed;
use thiserror::Error;

use crate::interval::Level;
use crate::rational::{Exact, nearest_double};
use crate::recordings::Recordings;

/// How near to each other the ends of the last bracket of a limit are.
const NEAR: f64 = 1e-12;

/// The recording that is imagined beside those there are: all of its boundaries are as bad as can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorstRecording {
    /// How many boundaries it has: as many as any recording may have, so the cap on boundaries, or the largest there
    /// is.
    pub boundaries: u32,
    /// The greatest magnitude of a difference: the horizon, for a count of actions; 1, for a share.
    pub bound: u32,
}

/// The limits of [`bounded_mean`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BoundedMean {
    /// The lower limit: the mirror image of the upper one.
    pub low: f64,
    /// The upper limit.
    pub high: f64,
    /// Half of what it leaves out is the share of such limits, each by itself, that are meant to miss the true mean.
    pub level: Level,
}

/// Why there is no [`BoundedMean`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BoundedMeanError {
    /// No recording has a boundary.
    #[error("no recording has a boundary: there is nothing to limit")]
    NothingScored,
    /// A recording is worse than the worst one.
    #[error(
        "recording `{recording}` sums to `{sum}` over `{size}` boundaries, beyond `{}` boundaries of magnitude `{}`: raise the bound or the cap to what the runs allow",
        worst.boundaries, worst.bound
    )]
    BeyondBound {
        /// The index of the recording.
        recording: usize,
        /// The sum of its differences.
        sum: Exact,
        /// How many boundaries it has.
        size: u32,
        /// What was said to be the worst.
        worst: WorstRecording,
    },
}

/// Limits the mean over boundaries from both sides without any assumption on how recordings are distributed.
///
/// One worst recording is imagined beside the `G` there are. All are weighed by a uniform random point of the simplex,
/// and the upper limit is the quantile at `1 - (1 - level) / 2` of
/// `(sum w_g D_g + w_0 m_0 K) / (sum w_g m_g + w_0 m_0)`, with the sum `D_g` and the size `m_g` of recording `g`, and
/// `K` the bound and `m_0` the boundaries of the worst recording. The lower limit imagines it at `-K`. If every
/// difference is 0 or `K` at one boundary each, the upper limit is that of Clopper and Pearson; if all are 0 it is
/// `K (1 - ((1 - level) / 2)^(1/G))`.
///
/// It is assumed that recordings are independent, come from the same process and cannot exceed the bound. That the
/// limit then misses at most half of what the level leaves out is proved for one recording and for distributions on two
/// points, and conjectured for all; no exception is known.
///
/// The probability to be at most `t` is that of a sum of uniform weights `sum w_i y_i <= 0` with `y_g = D_g - t m_g`
/// and `y_0 = m_0 (K - t)`: the integral of a B-spline. It is built up from convex combinations alone, so nothing
/// cancels and ties are no matter, in `O(G^2)`; `t` is bisected to 1e-12. There is no seed and no simulation. In
/// doubles, units of the differences; accurate to about 1e-11 times the bound.
///
/// # Errors
///
/// [`BoundedMeanError::NothingScored`] without boundaries, [`BoundedMeanError::BeyondBound`] if a recording has more
/// boundaries, or a greater sum than its own allow.
///
/// # Examples
///
/// ```
/// use retrace_stats::{Exact, Level, Recordings, WorstRecording, bounded_mean};
///
/// let zeros = vec![Exact::default(); 12];
/// let worst = WorstRecording { boundaries: 1, bound: 5 };
/// let limits = bounded_mean(&Recordings::new(zeros.chunks(1)), worst, Level::PERCENT_95)?;
/// // That nothing was seen in twelve recordings is no proof that there is nothing.
/// assert!((limits.high - 5.0 * (1.0 - 0.025_f64.powf(1.0 / 12.0))).abs() < 1e-9);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Source
///
/// Gaffke 2005, *Three test statistics for a nonparametric one-sided hypothesis on the mean of a nonnegative variable*;
/// Learned-Miller & Thomas 2019, *A new confidence interval for the mean of a bounded random variable*; Clopper &
/// Pearson 1934, *The use of confidence or fiducial limits illustrated in the case of the binomial*. The recurrence is
/// that of B-splines: de Boor 1972, *On calculating with B-splines*.
pub fn bounded_mean(
    recordings: &Recordings,
    worst: WorstRecording,
    level: Level,
) -> Result<BoundedMean, BoundedMeanError> {
    let pairs = checked(recordings, worst)?;
    let mirrored: Vec<(f64, f64)> = pairs.iter().map(|&(sum, size)| (-sum, size)).collect();
    let limit = |pairs| upper_limit(pairs, worst, level.tail());
    Ok(BoundedMean { low: -limit(&mirrored), high: limit(&pairs), level })
}

impl BoundedMean {
    /// Whether the true mean is shown to be below `margin`: the upper limit is. This is a claim of safety, and needs a
    /// margin that was given before the run.
    ///
    /// Source: Altman & Bland 1995, *Absence of evidence is not evidence of absence* (why a large p is no such claim).
    pub fn is_no_worse(&self, margin: f64) -> bool {
        self.high < margin
    }

    /// Whether the true mean is shown to lie between `-margin` and `margin`: both limits do.
    ///
    /// Source: Schuirmann 1987, *A comparison of the two one-sided tests procedure and the power approach for assessing
    /// the equivalence of average bioavailability*.
    pub fn is_equivalent(&self, margin: f64) -> bool {
        self.is_no_worse(margin) && self.low > -margin
    }
}

/// Whether the upper limit would lie below `margin` if every recording were there `copies` times.
pub(crate) fn is_below(
    recordings: &Recordings,
    copies: u32,
    worst: WorstRecording,
    margin: f64,
    level: Level,
) -> Result<bool, BoundedMeanError> {
    let pairs = checked(recordings, worst)?;
    let off = (0..copies).flat_map(|_| pairs.iter().copied());
    Ok(Share::default().above_zero(worst.beside(off, margin)) < level.tail())
}

/// The sum and size of each recording that has boundaries.
fn checked(recordings: &Recordings, worst: WorstRecording) -> Result<Vec<(f64, f64)>, BoundedMeanError> {
    if recordings.scored() == 0 {
        return Err(BoundedMeanError::NothingScored);
    }
    let bound = Exact::from_integer(worst.bound.into());
    for (recording, (sum, &size)) in recordings.sums().iter().zip(recordings.sizes()).enumerate() {
        if size > worst.boundaries || sum.abs() > &bound * Exact::from_integer(size.into()) {
            return Err(BoundedMeanError::BeyondBound { recording, sum: sum.clone(), size, worst });
        }
    }
    Ok(recordings.scored_pairs().map(|(sum, size)| (nearest_double(sum), size.into())).collect())
}

impl WorstRecording {
    /// What recordings are off by from a mean of `t`, and this one with them.
    fn beside(self, recordings: impl Iterator<Item = (f64, f64)>, t: f64) -> impl Iterator<Item = f64> {
        let own = f64::from(self.boundaries) * (f64::from(self.bound) - t);
        recordings.map(move |(sum, size)| sum - t * size).chain([own])
    }
}

/// The `t` that the weighted mean exceeds with probability `tail`.
fn upper_limit(recordings: &[(f64, f64)], worst: WorstRecording, tail: f64) -> f64 {
    let mut share = Share::default();
    let [mut low, mut high] = [-f64::from(worst.bound), f64::from(worst.bound)];
    while high - low > NEAR {
        let t = low + (high - low) / 2.0;
        if t <= low || t >= high {
            break;
        }
        if share.above_zero(worst.beside(recordings.iter().copied(), t)) > tail {
            low = t;
        } else {
            high = t;
        }
    }
    high
}

/// Room for the recurrence.
#[derive(Default)]
struct Share {
    below: Vec<f64>,
    above: Vec<f64>,
    row: Vec<f64>,
}

impl Share {
    /// The probability that numbers weighed by a uniform random point of the simplex sum to more than zero.
    ///
    /// Zero is the mean of any number `-u` not above it and any `v` above it with the weights `v / (u + v)` and
    /// `u / (u + v)`. With the same weights the probability for a set of numbers is the mean of those without `-u` and
    /// without `v`. Taken one number after another, in any order, that is a table with a row for each number not above
    /// zero.
    fn above_zero(&mut self, numbers: impl Iterator<Item = f64>) -> f64 {
        self.below.clear();
        self.above.clear();
        for number in numbers {
            if number > 0.0 { self.above.push(number) } else { self.below.push(-number) }
        }
        // Without numbers below it is certain, without numbers above impossible: the edges of the table.
        self.row.clear();
        self.row.resize(self.above.len(), 1.0);
        let (fours, rest) = self.below.as_chunks::<4>();
        fours.iter().for_each(|&below| take(&mut self.row, below, &self.above));
        rest.iter().for_each(|&below| take(&mut self.row, [below], &self.above));
        self.row.last().copied().unwrap_or(0.0)
    }
}

/// The row below, after a few more numbers: several at a time, since each entry of a row waits for the one before.
fn take<const N: usize>(row: &mut [f64], below: [f64; N], above: &[f64]) {
    let mut lefts = [0.0; N];
    for (up, &v) in row.iter_mut().zip(above) {
        for (left, u) in lefts.iter_mut().zip(below) {
            *left += (*up - *left) * (v / (u + v));
            *up = *left;
        }
    }
}

#[cfg(test)]
mod tests {
    use num_traits::Zero;
    use proptest::prelude::*;

    use super::*;
    use crate::vectors;

    fn recordings(differences: &[Vec<Exact>]) -> Recordings {
        Recordings::new(differences.iter().map(Vec::as_slice))
    }

    fn limits(differences: &[Vec<Exact>], bound: u32) -> BoundedMean {
        let boundaries = differences.iter().map(Vec::len).max().unwrap() as u32;
        bounded_mean(&recordings(differences), WorstRecording { boundaries, bound }, Level::PERCENT_95).unwrap()
    }

    fn whole(number: i64) -> Exact {
        Exact::from_integer(number.into())
    }

    #[test]
    fn agrees_with_the_vectors() {
        for case in &retrace_testing::vectors::rows("stats/bounded_mean.jsonl") {
            let found = limits(&vectors::columns(&case["recordings"]), case["bound"].as_u64().unwrap() as u32);
            let tolerance = if case["tol"] == "absolute 1e-09" { 1e-9 } else { 1e-8 };
            vectors::assert_near(case, "low", found.low, tolerance);
            vectors::assert_near(case, "high", found.high, tolerance);
        }
    }

    #[test]
    fn without_any_difference_it_is_the_rule_of_three() {
        for recordings in [1, 2, 12, 250] {
            let found = limits(&vec![vec![Exact::zero(); 3]; recordings], 5);
            let expected = 5.0 * (1.0 - 0.025_f64.powf(1.0 / recordings as f64));
            assert!((found.high - expected).abs() < 1e-10 && (found.low + expected).abs() < 1e-10, "{recordings}");
        }
    }

    #[test]
    fn claims_against_a_margin_agree_with_the_vectors() {
        for case in &retrace_testing::vectors::rows("stats/no_worse.jsonl") {
            let differences = vectors::columns(&case["recordings"]);
            let bound = case["bound"].as_u64().unwrap() as u32;
            let found = limits(&differences, bound);
            vectors::assert_near(case, "low", found.low, 1e-8);
            vectors::assert_near(case, "high", found.high, 1e-8);
            let margin = case["margin"].as_f64().unwrap();
            let expected = ["no_worse", "equivalent"].map(|claim| case["expect"][claim].as_bool().unwrap());
            assert_eq!([found.is_no_worse(margin), found.is_equivalent(margin)], expected, "{}", case["name"]);
            let boundaries = differences.iter().map(Vec::len).max().unwrap() as u32;
            let below =
                is_below(&recordings(&differences), 1, WorstRecording { boundaries, bound }, margin, Level::PERCENT_95);
            assert_eq!(below, Ok(expected[0]), "{}", case["name"]);
        }
    }

    #[test]
    fn what_the_bound_does_not_allow_is_refused_with_what_to_do() {
        let check = |differences: &[Vec<Exact>], boundaries, error: &str| {
            let worst = WorstRecording { boundaries, bound: 1 };
            let result = bounded_mean(&recordings(differences), worst, Level::PERCENT_95);
            assert_eq!(result.unwrap_err().to_string(), error);
        };
        check(&[vec![]], 1, "no recording has a boundary: there is nothing to limit");
        check(
            &[vec![whole(1)], vec![whole(-1), Exact::new((-1).into(), 2.into())]],
            1,
            "recording `1` sums to `-3/2` over `2` boundaries, beyond `1` boundaries of magnitude `1`: raise the bound or the cap to what the runs allow",
        );
        check(
            &[vec![whole(-2)]],
            4,
            "recording `0` sums to `-2` over `1` boundaries, beyond `4` boundaries of magnitude `1`: raise the bound or the cap to what the runs allow",
        );
    }

    #[test]
    fn a_bound_of_nothing_leaves_nothing() {
        let found = limits(&vec![vec![Exact::zero()]; 4], 0);
        assert_eq!((found.low, found.high), (0.0, 0.0));
    }

    #[test]
    fn huge_counts_have_a_limit() {
        let differences = vec![vec![whole(u32::MAX.into())], vec![whole(-5)], vec![whole(0)]];
        let found = limits(&differences, u32::MAX);
        assert!(found.low < found.high && found.high <= f64::from(u32::MAX));
    }

    prop_compose! {
        fn sizes()(differences in prop::collection::vec(prop::collection::vec((-15..=15_i64, 3..=6_i64), 1..4), 1..12)) -> Vec<Vec<Exact>> {
            differences.into_iter().map(|one| one.into_iter().map(|(p, q)| Exact::new(p.into(), q.into())).collect()).collect()
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(retrace_testing::cases(128, 2_000)))]

        #[test]
        fn the_mean_lies_between_the_limits(differences in sizes()) {
            let found = limits(&differences, 5);
            let mean = nearest_double(&recordings(&differences).mean().unwrap());
            prop_assert!(found.low <= mean + 1e-9 && mean <= found.high + 1e-9);
        }

        #[test]
        fn mirrored_and_shuffled_recordings_have_mirrored_limits(
            (differences, shuffled) in sizes().prop_flat_map(|d| (Just(d.clone()), Just(d).prop_shuffle()))
        ) {
            let mirrored: Vec<Vec<Exact>> = shuffled.iter().map(|one| one.iter().map(|d| -d).collect()).collect();
            let (found, mirrored) = (limits(&differences, 5), limits(&mirrored, 5));
            prop_assert!((found.low + mirrored.high).abs() < 1e-10 && (found.high + mirrored.low).abs() < 1e-10);
        }

        #[test]
        fn a_worse_difference_or_a_wider_bound_never_lowers_the_limit(differences in sizes(), which in 0..12_usize) {
            let found = limits(&differences, 5);
            let mut worse = differences.clone();
            let which = which % worse.len();
            worse[which][0] = whole(5);
            prop_assert!(limits(&worse, 5).high >= found.high - 1e-10);
            prop_assert!(limits(&differences, 6).high >= found.high - 1e-10);
        }

        #[test]
        fn bounds_scale_with_the_differences(differences in sizes()) {
            let twice: Vec<Vec<Exact>> = differences.iter().map(|one| one.iter().map(|d| d * whole(2)).collect()).collect();
            let (found, twice) = (limits(&differences, 5), limits(&twice, 10));
            prop_assert!((2.0 * found.high - twice.high).abs() < 1e-10 && (2.0 * found.low - twice.low).abs() < 1e-10);
        }

        /// With differences of 0 and the bound alone, the binomial tail at the limit is what it should be.
        #[test]
        fn zeros_and_bounds_have_the_limit_of_clopper_and_pearson(hits in 0..=20_usize, misses in 1..=20_usize) {
            let differences: Vec<Vec<Exact>> =
                (0..hits + misses).map(|place| vec![whole(if place < hits { 1 } else { 0 })]).collect();
            let rate = limits(&differences, 1).high;
            let n = hits + misses;
            let mut term = (1.0 - rate).powi(n as i32);
            let mut tail = term;
            for k in 1..=hits {
                term *= rate / (1.0 - rate) * (n - k + 1) as f64 / k as f64;
                tail += term;
            }
            prop_assert!((tail - 0.025).abs() < 1e-8, "{}", tail);
        }
    }
}
