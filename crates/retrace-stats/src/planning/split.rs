//! A fixed number of rollouts, and what to spend them on.

use super::{Goal, MOST_BOUNDARIES, MOST_SAMPLES, PlanError, Powers, RECORDINGS, Variances};
use crate::detectable::detectable_effect;
use crate::variance::VarianceComponents;

/// Rollouts that are to be split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rollouts {
    /// How many there are, PRE and those of all strategies together.
    pub total: u32,
    /// How many strategies share the PRE rollouts.
    pub strategies: u32,
    /// The most recordings that they can be split over, such as those there are.
    pub recordings: u32,
}

/// A run of equal recordings that a number of rollouts is split into, and what to expect of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Split {
    /// How many recordings.
    pub recordings: u32,
    /// How many boundaries each.
    pub boundaries: u32,
    /// How many rollouts an arm at each boundary.
    pub samples: u32,
    /// How many rollouts that takes in all arms.
    pub rollouts: u64,
    /// The standard error of the mean difference, in its units.
    pub standard_error: f64,
    /// The share of such runs that find the effect, approximately.
    pub power: f64,
    /// The least true mean difference that the wanted share of such runs finds, approximately.
    pub detectable: f64,
}

/// Splits rollouts over recordings, boundaries and samples so that the effect is found most often, by going through all
/// of 6 to 2,000 recordings, 1 to 12 boundaries and 1 to 10 samples.
///
/// `G` recordings of `m` boundaries with `S` samples take `G m S (1 + strategies)` rollouts, at most `total`. Their mean
/// has the standard error `se = sqrt((vR + vB/m + vW/(m S)) / G)` and finds the effect with probability
/// `F(effect / se - t)`, in actions per rollout, by the terms and assumptions of
/// [`cheapest_design`](crate::cheapest_design) and about as exactly. `detectable` is
/// [`detectable_effect`] with `G - 1` degrees of freedom. Of equally powerful splits it is the one with the least
/// standard error, then with the fewest rollouts, recordings and boundaries.
///
/// Where recordings are not limited, each is cut once and sampled once: whatever `G m S` is, no term is smaller than with
/// `m = S = 1`. So limit them to those that there are.
///
/// 24,000 splits at most, a distribution function each.
///
/// # Errors
///
/// [`PlanError`], for what is no variance, effect or power, and for fewer than six recordings or rollouts for them.
///
/// # Examples
///
/// ```
/// use retrace_stats::{Goal, Level, Rollouts, VarianceComponents, best_split};
///
/// let components =
///     VarianceComponents { recording: 0.241, boundary: 0.167, rollout_pre: Some(0.365), rollout_post: Some(0.248) };
/// let goal = Goal { effect: 0.63, power: Level::new(4, 5).expect("a share"), level: Level::PERCENT_95 };
/// let rollouts = Rollouts { total: 200, strategies: 1, recordings: 12 };
/// let split = best_split(&components, &rollouts, &goal)?;
/// assert_eq!((split.recordings, split.boundaries, split.samples, split.rollouts), (12, 8, 1, 192));
/// assert!(split.power > 0.8 && split.detectable < 0.63);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Source
///
/// Cochran 1977, *Sampling Techniques*, chapter 10 (subsampling); the search is our own.
pub fn best_split(components: &VarianceComponents, rollouts: &Rollouts, goal: &Goal) -> Result<Split, PlanError> {
    let variances = Variances::new(components)?;
    let mut powers = Powers::new(goal)?;
    let [fewest, most] = RECORDINGS;
    let arms = 1 + u64::from(rollouts.strategies);
    // Of one arm; below `total`, so it fits.
    let each = (u64::from(rollouts.total) / arms) as u32;
    if each < fewest {
        return Err(PlanError::TooFewRollouts { rollouts: rollouts.total, least: u64::from(fewest) * arms });
    }
    if rollouts.recordings < fewest {
        return Err(PlanError::TooFewRecordings { recordings: rollouts.recordings });
    }
    let mut best: Option<Split> = None;
    for recordings in fewest..=most.min(rollouts.recordings).min(each) {
        for boundaries in 1..=MOST_BOUNDARIES.min(each / recordings) {
            // More samples never harm, and where rollouts do not vary they bring nothing.
            let most_samples = MOST_SAMPLES.min(each / (recordings * boundaries));
            let samples = if variances.rollout > 0.0 { most_samples } else { 1 };
            let variance = variances.of_recording(boundaries, samples);
            let standard_error = (variance / f64::from(recordings)).sqrt();
            let freedom = f64::from(recordings) - 1.0;
            let split = Split {
                recordings,
                boundaries,
                samples,
                rollouts: u64::from(recordings * boundaries * samples) * arms,
                standard_error,
                power: powers.power(variance, recordings),
                detectable: detectable_effect(standard_error, freedom, goal.power, goal.level).unwrap_or_default(),
            };
            if best.as_ref().is_none_or(|best| split.beats(best)) {
                best = Some(split);
            }
        }
    }
    Ok(best.expect("six recordings of one boundary fit"))
}

impl Split {
    fn beats(&self, other: &Self) -> bool {
        let order = other.power.total_cmp(&self.power).then(self.standard_error.total_cmp(&other.standard_error));
        let order = order.then(self.rollouts.cmp(&other.rollouts)).then(self.recordings.cmp(&other.recordings));
        order.then(self.boundaries.cmp(&other.boundaries)).is_lt()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::interval::Level;
    use crate::student::StudentT;

    fn goal(effect: f64) -> Goal {
        Goal { effect, power: Level::new(8, 10).unwrap(), level: Level::PERCENT_95 }
    }

    fn components([recording, boundary, pre, post]: [f64; 4]) -> VarianceComponents {
        VarianceComponents { recording, boundary, rollout_pre: Some(pre), rollout_post: Some(post) }
    }

    #[test]
    fn too_few_are_refused_with_what_it_takes() {
        let check = |total, recordings, expected: &str| {
            let rollouts = Rollouts { total, strategies: 3, recordings };
            let error = best_split(&components([1.0; 4]), &rollouts, &goal(1.0)).unwrap_err();
            assert_eq!(error.to_string(), expected);
        };
        check(23, 9, "`23` rollouts are too few: `24` are the least that can show harm on new recordings");
        check(24, 5, "`5` recordings are too few: six are the least that can show harm on new ones");
        let least = Rollouts { total: 24, strategies: 3, recordings: 6 };
        assert_eq!(best_split(&components([1.0; 4]), &least, &goal(1.0)).unwrap().rollouts, 24);
        assert!(matches!(
            best_split(&components([1.0; 4]), &least, &goal(-1.0)),
            Err(PlanError::Effect { effect: -1.0 })
        ));
    }

    #[test]
    fn recordings_without_limit_are_cut_once_and_sampled_once() {
        let rollouts = Rollouts { total: 401, strategies: 1, recordings: u32::MAX };
        let split = best_split(&components([0.2, 0.3, 0.4, 0.5]), &rollouts, &goal(0.4)).unwrap();
        assert_eq!((split.recordings, split.boundaries, split.samples, split.rollouts), (200, 1, 1, 400));
    }

    #[test]
    fn what_never_varies_takes_the_fewest() {
        let rollouts = Rollouts { total: u32::MAX, strategies: 0, recordings: u32::MAX };
        let split = best_split(&components([-0.1, 0.0, 0.0, 0.0]), &rollouts, &goal(0.1)).unwrap();
        assert_eq!((split.recordings, split.boundaries, split.samples, split.rollouts), (6, 1, 1, 6));
        assert_eq!((split.power, split.detectable), (1.0, 0.0));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(retrace_testing::cases(24, 500)))]

        #[test]
        fn no_other_split_is_more_powerful(
            variances in [-0.2..1.0_f64, -0.2..1.0, 0.0..1.0, 0.0..1.0],
            total in 18_u32..260,
            strategies in 1_u32..3,
            recordings in 6_u32..30,
            effect in 0.2..1.5_f64,
        ) {
            let components = components(variances);
            let found = best_split(&components, &Rollouts { total, strategies, recordings }, &goal(effect)).unwrap();
            prop_assert!(found.rollouts <= total.into() && found.recordings <= recordings);
            let [of_recording, of_boundary, pre, post] = variances.map(|variance| variance.max(0.0));
            let (mut most, mut at_found) = (0.0_f64, None);
            for g in 6..=recordings {
                let t = StudentT::new(f64::from(g) - 1.0).unwrap();
                let quantile = t.quantile(0.975);
                for (m, s) in (1..=12).flat_map(|m| (1..=10).map(move |s| (m, s))) {
                    if g * m * s * (1 + strategies) > total {
                        continue;
                    }
                    let [g_of, m_of, s_of] = [g, m, s].map(f64::from);
                    let se =
                        (of_recording / g_of + of_boundary / (g_of * m_of) + (pre + post) / (g_of * m_of * s_of)).sqrt();
                    let power = t.cdf(effect / se - quantile);
                    most = most.max(power);
                    if (g, m, s) == (found.recordings, found.boundaries, found.samples) {
                        at_found = Some((power, se));
                    }
                }
            }
            let (power, se) = at_found.unwrap();
            prop_assert!((found.power - most).abs() < 1e-12 && (power - most).abs() < 1e-12, "{found:?} {most}");
            prop_assert!((found.standard_error - se).abs() < 1e-12);
            // An effect as large as what it detects is found with the wanted power.
            let again = goal(found.detectable);
            let split = Rollouts { total, strategies, recordings: found.recordings };
            if found.detectable > 0.0 {
                prop_assert!(best_split(&components, &split, &again).unwrap().power >= 0.8 - 1e-9);
            }
        }
    }
}
