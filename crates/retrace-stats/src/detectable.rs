//! What a run could have missed.

use crate::interval::Level;
use crate::student::StudentT;

/// The least true effect that a run of this precision finds with the given power: `mde`.
///
/// It is `(t_{1 - a/2, v} + t_{power, v}) se`, with `a` what the level leaves out and `v` the degrees of freedom of the
/// standard error `se`, in its units. Against the noncentral t that it stands for it is right within 0.5 % from 7
/// degrees of freedom on, 2 % low at 4 and 9 % at 2. Where fewer than six recordings can show nothing, or the standard
/// error is zero for want of spread, do not show it. `None` where `se` or `freedom` is no number or not above zero,
/// zero itself being allowed for `se`.
///
/// ```
/// use retrace_stats::{Level, detectable_effect};
///
/// let power = Level::new(4, 5).expect("a share");
/// let mde = detectable_effect(0.327, 39.0, power, Level::PERCENT_95);
/// assert!(mde.is_some_and(|mde| (mde - 0.939_676).abs() < 1e-6));
/// ```
///
/// # Source
///
/// Bloom 1995, *Minimum detectable effects: a simple way to report the statistical power of experimental designs*.
pub fn detectable_effect(se: f64, freedom: f64, power: Level, level: Level) -> Option<f64> {
    let t = StudentT::new(freedom).filter(|_| se >= 0.0)?;
    Some((t.quantile(1.0 - level.tail()) + t.quantile(power.double())) * se)
}

/// The share of recordings that a harm must be confined to, to have one chance in twenty, at 95 %, of not occurring in
/// any of `recordings` recordings: `blind`.
///
/// It is `1 - (1 - level)^(1 / recordings)`, for recordings drawn independently; 1 for none.
///
/// ```
/// use retrace_stats::{Level, blind_share};
///
/// assert!((blind_share(12, Level::PERCENT_95) - 0.2209).abs() < 1e-4);
/// ```
pub fn blind_share(recordings: usize, level: Level) -> f64 {
    if recordings == 0 {
        return 1.0;
    }
    // Without cancelling where there are many.
    -((2.0 * level.tail()).ln() / recordings as f64).exp_m1()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vectors;

    #[test]
    fn agrees_with_the_vectors() {
        for case in &retrace_testing::vectors::rows("stats/mde.jsonl") {
            let number = |name: &str| case[name].as_f64().unwrap();
            let power = Level::new((number("power") * 10.0).round() as u32, 10).unwrap();
            let found = detectable_effect(number("se"), number("df"), power, Level::PERCENT_95).unwrap();
            vectors::assert_relative(case, "mde", found, 1e-8);
        }
        for case in &retrace_testing::vectors::rows("stats/degenerate.jsonl") {
            let recordings = case["recordings"].as_array().unwrap().len();
            vectors::assert_near(case, "blind_share", blind_share(recordings, Level::PERCENT_95), 1e-8);
        }
    }

    #[test]
    fn what_is_no_precision_detects_nothing() {
        for (se, freedom) in [(f64::NAN, 3.0), (-1.0, 3.0), (1.0, 0.0), (1.0, f64::NAN)] {
            assert_eq!(detectable_effect(se, freedom, Level::PERCENT_95, Level::PERCENT_95), None);
        }
        assert_eq!(detectable_effect(0.0, 3.0, Level::PERCENT_95, Level::PERCENT_95), Some(0.0));
    }

    #[test]
    fn more_recordings_are_less_blind() {
        assert_eq!(blind_share(0, Level::PERCENT_95), 1.0);
        assert!((blind_share(1, Level::PERCENT_95) - 0.95).abs() < 1e-12);
        let shares: Vec<f64> = (0..300).map(|recordings| blind_share(recordings, Level::PERCENT_95)).collect();
        assert!(shares.windows(2).all(|pair| pair[1] < pair[0]));
        // The recordings that are needed to be blind to no more than a tenth.
        assert_eq!(shares.iter().position(|&share| share <= 0.1), Some(29));
    }
}
