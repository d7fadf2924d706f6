//! The interval that is shown: a lower end from flips, an upper end without assumptions.

use num_traits::Signed;

use crate::bounded_mean::BoundedMean;
use crate::flip_interval::FlipInterval;
use crate::rational::Exact;
use crate::recordings::Recordings;

/// The lower end that is shown.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ShownLow {
    /// That of the flips of recordings.
    Flips(Exact),
    /// That which holds for every distribution, since recordings without any spread would leave an end without any
    /// width.
    Bounded(f64),
    /// There are too few recordings for one.
    None,
}

/// Chooses the lower end to show beside the upper one of [`bounded_mean`](crate::bounded_mean()).
///
/// Harm is claimed by an exact test of no effect, whose lower end is that of `flips`; safety by a limit that holds for
/// every distribution. If at least two recordings have one and the same mean, and it is not above zero, the end of
/// `bounded` is shown, so that nothing seen is never shown as `[0, 0]`.
///
/// ```
/// use retrace_stats::{Exact, Level, Recordings, ShownLow, WorstRecording, bounded_mean, flip_interval, shown_low};
///
/// let zeros = vec![Exact::default(); 12];
/// let recordings = Recordings::new(zeros.chunks(1));
/// let bounded = bounded_mean(&recordings, WorstRecording { boundaries: 1, bound: 5 }, Level::PERCENT_95)?;
/// let flips = flip_interval(&recordings, Level::PERCENT_95);
/// assert_eq!(shown_low(&recordings, &flips, &bounded), ShownLow::Bounded(bounded.low));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn shown_low(recordings: &Recordings, flips: &FlipInterval, bounded: &BoundedMean) -> ShownLow {
    match (&flips.low, recordings.common_mean()) {
        (_, Some(mean)) if !mean.is_positive() => ShownLow::Bounded(bounded.low),
        (Some(low), _) => ShownLow::Flips(low.clone()),
        (None, _) => ShownLow::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Level, WorstRecording, bounded_mean, flip_interval, max_t, vectors};

    fn shown(differences: &[Vec<Exact>]) -> (ShownLow, BoundedMean) {
        let recordings = Recordings::new(differences.iter().map(Vec::as_slice));
        let boundaries = differences.iter().map(Vec::len).max().unwrap_or_default() as u32;
        let bounded = bounded_mean(&recordings, WorstRecording { boundaries, bound: 5 }, Level::PERCENT_95).unwrap();
        (shown_low(&recordings, &flip_interval(&recordings, Level::PERCENT_95), &bounded), bounded)
    }

    fn whole(number: i64) -> Exact {
        Exact::from_integer(number.into())
    }

    #[test]
    fn degenerate_cases_agree_with_the_vectors() {
        for case in &retrace_testing::vectors::rows("stats/degenerate.jsonl") {
            let differences = vectors::columns(&case["recordings"]);
            let recordings = Recordings::new(differences.iter().map(Vec::as_slice));
            let flips = flip_interval(&recordings, Level::PERCENT_95);
            let expected =
                |name: &str| (!case["expect"][name].is_null()).then(|| vectors::exact(&case["expect"][name]));
            let p = max_t(std::slice::from_ref(&recordings)).unwrap().columns.remove(0).p;
            assert_eq!(
                (recordings.mean(), Some(p), flips.low, flips.high),
                (expected("mean"), expected("p"), expected("flip_low"), expected("flip_high")),
                "{}",
                case["name"]
            );
            vectors::assert_near(case, "high", shown(&differences).1.high, 1e-8);
        }
    }

    #[test]
    fn nothing_seen_is_not_shown_as_nothing_there() {
        for recordings in [2, 5, 12] {
            for mean in [0, -2] {
                let (low, bounded) = shown(&vec![vec![whole(mean)]; recordings]);
                assert_eq!(low, ShownLow::Bounded(bounded.low));
                assert!(bounded.low < mean as f64 && bounded.high > mean as f64);
            }
        }
    }

    #[test]
    fn a_constant_harm_has_the_end_of_the_flips_from_six_recordings_on() {
        assert_eq!(shown(&vec![vec![whole(1)]; 5]).0, ShownLow::None);
        assert_eq!(shown(&vec![vec![whole(1)]; 6]).0, ShownLow::Flips(whole(1)));
    }

    #[test]
    fn one_recording_has_no_lower_end() {
        // Its upper end is the difference and 97.5 % of the way from there to the worst.
        let (low, bounded) = shown(&[vec![whole(-1), whole(0)]]);
        assert_eq!(low, ShownLow::None);
        assert!((bounded.high - (-0.5 + 0.975 * 5.5)).abs() < 1e-10);
    }

    #[test]
    fn where_recordings_differ_the_flips_decide() {
        let mut differences = vec![vec![whole(0)]; 8];
        differences[3] = vec![whole(-1)];
        assert!(matches!(shown(&differences).0, ShownLow::Flips(_)));
    }
}
