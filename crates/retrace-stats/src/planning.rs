//! How many recordings, boundaries and samples a question takes, and what they cost.

#[cfg(test)]
mod simulated;
mod split;

use thiserror::Error;

use crate::bounded_mean::{BoundedMeanError, WorstRecording, is_below};
use crate::interval::Level;
use crate::recordings::Recordings;
use crate::student::StudentT;
use crate::variance::VarianceComponents;

pub use self::split::{Rollouts, Split, best_split};

/// The most boundaries a recording that are looked at.
const MOST_BOUNDARIES: u32 = 12;

/// The most samples that are looked at.
const MOST_SAMPLES: u32 = 10;

/// The fewest recordings that can show anything at 95 %, and the most that are looked at.
const RECORDINGS: [u32; 2] = [6, 2_000];

/// What things cost, in any one currency.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Price {
    /// To make a recording.
    pub recording: f64,
    /// To prepare a boundary, such as to replay up to it.
    pub boundary: f64,
    /// To run one rollout.
    pub rollout: f64,
    /// How many strategies share the PRE rollouts.
    pub strategies: u32,
}

/// What a run is to find.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Goal {
    /// The true mean difference, in actions per rollout.
    pub effect: f64,
    /// The share of runs that are to find it: at least one half.
    pub power: Level,
    /// One minus the level of the test.
    pub level: Level,
}

/// A run of equal recordings, and what to expect of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Design {
    /// How many recordings.
    pub recordings: u32,
    /// How many boundaries each.
    pub boundaries: u32,
    /// How many rollouts an arm at each boundary.
    pub samples: u32,
    /// What it costs.
    pub total: f64,
    /// The share of such runs that find the effect, approximately.
    pub power: f64,
}

/// The numbers that are best by formula.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Optimum {
    /// Boundaries for each recording, from 1 to 12.
    pub boundaries: f64,
    /// Rollouts an arm at each boundary, from 1 to 10.
    pub samples: f64,
}

/// Why there is no plan.
#[derive(Debug, Clone, Copy, PartialEq, Error)]
#[non_exhaustive]
pub enum PlanError {
    /// A price is below zero or no number.
    #[error("a price of `{price}` is not a number from zero on")]
    Price {
        /// The price.
        price: f64,
    },
    /// A variance is no number.
    #[error("a variance of `{variance}` is not a number: take one from a pilot run")]
    Variance {
        /// The variance.
        variance: f64,
    },
    /// The effect is not above zero.
    #[error("an effect of `{effect}` is not above zero: name the least harm that should be found")]
    Effect {
        /// The effect.
        effect: f64,
    },
    /// A power below one half is no plan.
    #[error("a power of `{power}` is below one half: a run that most likely finds nothing is not worth a plan")]
    Power {
        /// The power.
        power: Level,
    },
    /// Six recordings with a rollout in each arm take more.
    #[error("`{rollouts}` rollouts are too few: `{least}` are the least that can show harm on new recordings")]
    TooFewRollouts {
        /// How many rollouts there are.
        rollouts: u32,
        /// How many it takes.
        least: u64,
    },
    /// Fewer than six recordings show nothing at 95 %.
    #[error("`{recordings}` recordings are too few: six are the least that can show harm on new ones")]
    TooFewRecordings {
        /// How many recordings there are.
        recordings: u32,
    },
    /// No design that is looked at is enough.
    #[error(
        "`{most}` recordings of `{MOST_BOUNDARIES}` boundaries with `{MOST_SAMPLES}` samples do not find an effect of `{effect}`: ask for a greater one"
    )]
    OutOfReach {
        /// The most recordings that were looked at.
        most: u32,
        /// The effect.
        effect: f64,
    },
}

/// The boundaries and samples that find most for their price, by formula.
///
/// The mean over `G` recordings of `m` boundaries with `S` samples has the variance `vR/G + vB/(G m) + vW/(G m S)`,
/// with `vW` that of a PRE and a POST rollout together, and costs `G (c_R + m (c_B + S c_W))` with
/// `c_W = (1 + strategies) rollout`. So `m = sqrt(vB c_R / (vR c_B))` and `S = sqrt(vW c_B / (vB c_W))`. Where `S` is
/// below 1, it is 1 and `m = sqrt((vB + vW) c_R / (vR (c_B + c_W)))`; where `m` is below 1, it is 1 and
/// `S = sqrt(vW (c_R + c_B) / ((vR + vB) c_W))`. Both are kept within what [`cheapest_design`] looks at. Variances
/// below zero count as zero.
///
/// # Errors
///
/// [`PlanError::Price`] and [`PlanError::Variance`] for what is no price or no variance.
///
/// # Source
///
/// Cochran 1977, *Sampling Techniques*, chapter 10 (subsampling).
pub fn optimum(components: &VarianceComponents, price: &Price) -> Result<Optimum, PlanError> {
    let Variances { recording, boundary, rollout } = Variances::new(components)?;
    let Price { recording: per_recording, boundary: per_boundary, .. } = *checked(price)?;
    let per_sample = price.per_sample();
    let mut samples = root(rollout * per_boundary, boundary * per_sample);
    let mut boundaries = root(boundary * per_recording, recording * per_boundary);
    if samples < 1.0 {
        boundaries = root((boundary + rollout) * per_recording, recording * (per_boundary + per_sample));
    }
    if boundaries < 1.0 {
        samples = root(rollout * (per_recording + per_boundary), (recording + boundary) * per_sample);
    }
    let within = |number: f64, most: u32| number.clamp(1.0, most.into());
    Ok(Optimum { boundaries: within(boundaries, MOST_BOUNDARIES), samples: within(samples, MOST_SAMPLES) })
}

/// The root of a quotient: zero where there is nothing to divide, infinite where there is nothing to divide by.
fn root(numerator: f64, denominator: f64) -> f64 {
    if numerator <= 0.0 { 0.0 } else { (numerator / denominator).sqrt() }
}

/// Finds the cheapest run that finds an effect, by going through all of 1 to 12 boundaries, 1 to 10 samples and 6 to
/// 2,000 recordings.
///
/// A run is taken to find the effect with probability `F(effect / se - t)`, with `se` the root of the variance that
/// [`optimum`] describes, and `F` and `t`, the quantile that the level asks for, of Student's distribution with
/// `recordings - 1` degrees of freedom. Of equally cheap ones it is that with the fewest recordings, then boundaries,
/// then samples. Power is an approximation: right within about 2 points for mild harm, and between 15 points too high
/// and 12 too low for rare heavy harm. Below 8 recordings it is far too high, as 6 show a harm only where each does: 80 %
/// is then 38 to 75 %.
///
/// # Errors
///
/// [`PlanError`], for what is no price, variance, effect or power, and where no such run is enough.
///
/// # Examples
///
/// ```
/// use retrace_stats::{Goal, Level, Price, VarianceComponents, cheapest_design};
///
/// let components =
///     VarianceComponents { recording: 0.241, boundary: 0.167, rollout_pre: Some(0.365), rollout_post: Some(0.248) };
/// let price = Price { recording: 13.0, boundary: 1.0, rollout: 1.0, strategies: 1 };
/// let goal = Goal { effect: 0.63, power: Level::new(4, 5).expect("a share"), level: Level::PERCENT_95 };
/// let design = cheapest_design(&components, &price, &goal)?;
/// assert_eq!((design.recordings, design.boundaries, design.samples, design.total), (12, 3, 1, 264.0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn cheapest_design(components: &VarianceComponents, price: &Price, goal: &Goal) -> Result<Design, PlanError> {
    let variances = Variances::new(components)?;
    checked(price)?;
    let mut powers = Powers::new(goal)?;
    let mut best: Option<Design> = None;
    for boundaries in 1..=MOST_BOUNDARIES {
        for samples in 1..=MOST_SAMPLES {
            let variance = variances.of_recording(boundaries, samples);
            let Some(recordings) = powers.fewest_recordings(variance) else { continue };
            let total = f64::from(recordings) * price.per_recording(boundaries, samples);
            let design = Design { recordings, boundaries, samples, total, power: powers.power(variance, recordings) };
            let better = |best: &Design| {
                let order = total.total_cmp(&best.total).then(recordings.cmp(&best.recordings));
                order.then(boundaries.cmp(&best.boundaries)).then(samples.cmp(&best.samples)).is_lt()
            };
            if best.as_ref().is_none_or(better) {
                best = Some(design);
            }
        }
    }
    best.ok_or(PlanError::OutOfReach { most: RECORDINGS[1], effect: goal.effect })
}

/// How many recordings like those of a pilot it takes for their [bounded limit](crate::bounded_mean()) to lie below a
/// margin: the pilot's are taken again and again until it does.
///
/// `None` where 2,000 are not enough, as where the mean of the pilot itself is not below the margin.
///
/// # Errors
///
/// Those of [`bounded_mean`](crate::bounded_mean()).
///
/// # Examples
///
/// ```
/// use retrace_stats::{Exact, Level, Recordings, WorstRecording, recordings_for_margin};
///
/// // Without any waste at all: 1 - 0.025^(1/G) is below one fifth of the horizon from 17 recordings on.
/// let pilot = Recordings::new([&[Exact::default()][..]]);
/// let worst = WorstRecording { boundaries: 1, bound: 5 };
/// assert_eq!(recordings_for_margin(&pilot, worst, 1.0, Level::PERCENT_95)?, Some(17));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn recordings_for_margin(
    pilot: &Recordings,
    worst: WorstRecording,
    margin: f64,
    level: Level,
) -> Result<Option<u32>, BoundedMeanError> {
    let scored = pilot.scored() as u32;
    let (mut too_few, mut enough) = (0, 1);
    while !is_below(pilot, enough, worst, margin, level)? {
        let most = RECORDINGS[1] / scored.max(1);
        if enough >= most {
            return Ok(None);
        }
        too_few = enough;
        enough = enough.saturating_mul(2).min(most);
    }
    while enough - too_few > 1 {
        let middle = too_few + (enough - too_few) / 2;
        if is_below(pilot, middle, worst, margin, level)? { enough = middle } else { too_few = middle }
    }
    Ok(Some(enough * scored))
}

impl Price {
    fn per_sample(&self) -> f64 {
        (1.0 + f64::from(self.strategies)) * self.rollout
    }

    fn per_recording(&self, boundaries: u32, samples: u32) -> f64 {
        self.recording + f64::from(boundaries) * (self.boundary + f64::from(samples) * self.per_sample())
    }
}

fn checked(price: &Price) -> Result<&Price, PlanError> {
    let prices = [price.recording, price.boundary, price.rollout];
    match prices.into_iter().find(|price| !(*price >= 0.0 && price.is_finite())) {
        Some(price) => Err(PlanError::Price { price }),
        None => Ok(price),
    }
}

/// The components, none below zero.
struct Variances {
    recording: f64,
    boundary: f64,
    /// Of a PRE and a POST rollout together.
    rollout: f64,
}

impl Variances {
    fn new(components: &VarianceComponents) -> Result<Self, PlanError> {
        let VarianceComponents { recording, boundary, rollout_pre, rollout_post } = *components;
        let [pre, post] = [rollout_pre, rollout_post].map(Option::unwrap_or_default);
        if let Some(variance) = [recording, boundary, pre, post].into_iter().find(|variance| !variance.is_finite()) {
            return Err(PlanError::Variance { variance });
        }
        Ok(Self { recording: recording.max(0.0), boundary: boundary.max(0.0), rollout: pre.max(0.0) + post.max(0.0) })
    }

    /// What the mean of one recording varies by.
    fn of_recording(&self, boundaries: u32, samples: u32) -> f64 {
        let (boundaries, samples) = (f64::from(boundaries), f64::from(samples));
        self.recording + self.boundary / boundaries + self.rollout / (boundaries * samples)
    }
}

/// Powers by the number of recordings.
struct Powers<'a> {
    goal: &'a Goal,
    quantiles: Vec<Option<f64>>,
}

impl<'a> Powers<'a> {
    fn new(goal: &'a Goal) -> Result<Self, PlanError> {
        if !(goal.effect > 0.0 && goal.effect.is_finite()) {
            return Err(PlanError::Effect { effect: goal.effect });
        }
        if goal.power.double() < 0.5 {
            return Err(PlanError::Power { power: goal.power });
        }
        Ok(Self { goal, quantiles: vec![None; RECORDINGS[1] as usize + 1] })
    }

    fn power(&mut self, variance: f64, recordings: u32) -> f64 {
        let Some(t) = StudentT::new(f64::from(recordings) - 1.0) else { return 0.0 };
        let level = self.goal.level;
        let quantile = *self.quantiles[recordings as usize].get_or_insert_with(|| t.quantile(1.0 - level.tail()));
        t.cdf(self.goal.effect / (variance / f64::from(recordings)).sqrt() - quantile)
    }

    /// More recordings have more power wherever it is one half at least, so that halving finds the fewest.
    fn fewest_recordings(&mut self, variance: f64) -> Option<u32> {
        let enough = |powers: &mut Self, recordings| powers.power(variance, recordings) >= powers.goal.power.double();
        let [mut low, mut high] = RECORDINGS;
        if !enough(self, high) {
            return None;
        }
        while low < high {
            let middle = low + (high - low) / 2;
            if enough(self, middle) { high = middle } else { low = middle + 1 }
        }
        Some(high)
    }
}

#[cfg(test)]
mod tests {
    use num_traits::One;
    use proptest::prelude::*;

    use super::*;
    use crate::Exact;

    fn power(tenths: u32) -> Level {
        Level::new(tenths, 10).unwrap()
    }

    #[test]
    fn agrees_with_the_vectors() {
        for case in &retrace_testing::vectors::rows("stats/planning.jsonl") {
            let number = |group: &str, name: &str| case[group][name].as_f64().unwrap();
            let variance = |name: &str| number("components", name);
            let components = VarianceComponents {
                recording: variance("recording"),
                boundary: variance("boundary"),
                rollout_pre: Some(variance("rollout_pre")),
                rollout_post: Some(variance("rollout_post")),
            };
            let price = Price {
                recording: number("cost", "recording"),
                boundary: number("cost", "boundary"),
                rollout: number("cost", "rollout"),
                strategies: number("cost", "strategies") as u32,
            };
            let share = power((case["power"].as_f64().unwrap() * 10.0).round() as u32);
            let goal = Goal { effect: case["effect"].as_f64().unwrap(), power: share, level: Level::PERCENT_95 };
            let found = cheapest_design(&components, &price, &goal).unwrap();
            let whole = |name: &str| number("expect", name) as u32;
            assert_eq!(
                (found.recordings, found.boundaries, found.samples, found.total),
                (whole("recordings"), whole("boundaries"), whole("samples"), number("expect", "total")),
                "{}",
                case["name"]
            );
            assert!(found.power >= share.double());
        }
    }

    const QUIET: VarianceComponents =
        VarianceComponents { recording: -0.1, boundary: 0.0, rollout_pre: None, rollout_post: Some(0.0) };
    const FREE: Price = Price { recording: 0.0, boundary: 0.0, rollout: 0.0, strategies: 0 };

    #[test]
    fn what_is_no_plan_is_refused_with_what_to_do() {
        let goal = Goal { effect: 1.0, power: power(8), level: Level::PERCENT_95 };
        let check = |components: VarianceComponents, price: Price, goal: Goal, error: &str| {
            assert_eq!(cheapest_design(&components, &price, &goal).unwrap_err().to_string(), error);
        };
        check(QUIET, Price { boundary: -1.0, ..FREE }, goal, "a price of `-1` is not a number from zero on");
        check(
            VarianceComponents { boundary: f64::NAN, ..QUIET },
            FREE,
            goal,
            "a variance of `NaN` is not a number: take one from a pilot run",
        );
        check(
            QUIET,
            FREE,
            Goal { effect: 0.0, ..goal },
            "an effect of `0` is not above zero: name the least harm that should be found",
        );
        check(
            QUIET,
            FREE,
            Goal { power: power(4), ..goal },
            "a power of `2/5` is below one half: a run that most likely finds nothing is not worth a plan",
        );
        check(
            VarianceComponents { recording: 1e6, ..QUIET },
            FREE,
            goal,
            "`2000` recordings of `12` boundaries with `10` samples do not find an effect of `1`: ask for a greater one",
        );
    }

    #[test]
    fn without_any_variance_the_fewest_are_enough() {
        let goal = Goal { effect: 0.1, power: power(9), level: Level::PERCENT_95 };
        let found = cheapest_design(&QUIET, &FREE, &goal).unwrap();
        assert_eq!((found.recordings, found.boundaries, found.samples, found.power), (6, 1, 1, 1.0));
        assert_eq!(optimum(&QUIET, &FREE), Ok(Optimum { boundaries: 1.0, samples: 1.0 }));
    }

    #[test]
    fn recordings_that_cost_nothing_extra_are_cut_once() {
        let components =
            VarianceComponents { recording: 0.3, boundary: 0.5, rollout_pre: Some(0.4), rollout_post: Some(0.9) };
        let price = Price { rollout: 1.0, strategies: 1, ..FREE };
        assert_eq!(optimum(&components, &price), Ok(Optimum { boundaries: 1.0, samples: 1.0 }));
        // And where they are dear, as often as it takes.
        let found = optimum(&components, &Price { recording: 100.0, boundary: 4.0, ..price }).unwrap();
        assert!((found.boundaries - (0.5_f64 * 100.0 / (0.3 * 4.0)).sqrt()).abs() < 1e-12);
        assert!((found.samples - (1.3_f64 * 4.0 / (0.5 * 2.0)).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn a_margin_without_waste_takes_what_the_rule_of_three_says() {
        let worst = WorstRecording { boundaries: 1, bound: 5 };
        let zero = vec![Exact::default()];
        for (margin, expected) in [(1.0, Some(17)), (0.5, Some(36)), (0.25, Some(72)), (0.001, None), (0.0, None)] {
            let pilot = Recordings::new([zero.as_slice()]);
            assert_eq!(recordings_for_margin(&pilot, worst, margin, Level::PERCENT_95), Ok(expected), "{margin}");
        }
        let harmed = Recordings::new([zero.as_slice(), &[Exact::one()]]);
        assert_eq!(recordings_for_margin(&harmed, worst, 0.5, Level::PERCENT_95), Ok(None));
        let nothing = recordings_for_margin(&Recordings::default(), worst, 1.0, Level::PERCENT_95);
        assert_eq!(nothing, Err(BoundedMeanError::NothingScored));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(retrace_testing::cases(24, 500)))]

        #[test]
        fn a_greater_effect_is_never_dearer(
            variances in [0.0..2.0_f64, 0.0..2.0, 0.0..2.0],
            prices in [0.0..50.0_f64, 0.0..5.0, 0.1..3.0],
            effect in 0.2..2.0_f64,
        ) {
            let [recording, boundary, rollout] = variances;
            let components = VarianceComponents { recording, boundary, rollout_pre: Some(rollout), rollout_post: None };
            let price = Price { recording: prices[0], boundary: prices[1], rollout: prices[2], strategies: 2 };
            let goal = Goal { effect, power: power(8), level: Level::PERCENT_95 };
            let total = |effect| cheapest_design(&components, &price, &Goal { effect, ..goal }).map(|design| design.total);
            if let Ok(dear) = total(effect) {
                prop_assert!(total(effect * 1.5).unwrap() <= dear);
            }
        }
    }

    #[test]
    fn a_margin_is_looked_for_as_far_as_it_is_said() {
        let worst = WorstRecording { boundaries: 1, bound: 5 };
        let zeros = vec![Exact::default(); 20];
        let pilot = Recordings::new(zeros.chunks(1));
        // 5 (1 - 0.025^(1/G)) is below 1/80 from 1,474 recordings on, which are 74 times twenty.
        let enough = |margin| recordings_for_margin(&pilot, worst, margin, Level::PERCENT_95).unwrap();
        assert_eq!((enough(0.0125), enough(0.0093), enough(0.009)), (Some(1_480), Some(2_000), None));
    }
}
