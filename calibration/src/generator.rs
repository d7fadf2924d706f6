//! Simulated verifications: recordings whose boundaries are alike, rollouts that mostly waste nothing, and PRE rollouts
//! that all strategies share.

use retrace_sim::Draws;

use crate::scenario::{HORIZON, Kind, Scenario, effect, wasted};

/// What a simulated verification looks like.
#[derive(Clone, Debug)]
pub struct Shape {
    /// What compaction does.
    pub scenario: Scenario,
    /// How many recordings there are.
    pub recordings: usize,
    /// How many boundaries each of them has.
    pub sizes: Sizes,
    /// How many rollouts an arm is given.
    pub samples: usize,
    /// The correlation of the kinds of two boundaries of one recording.
    pub correlation: f64,
    /// Which rollouts are lost.
    pub loss: Loss,
    /// For each strategy whether it does what the scenario says; one that does not has the distribution of PRE.
    pub acts: Vec<bool>,
}

/// Which rollouts break off before the horizon.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Loss {
    /// None: arms are equal.
    Nothing,
    /// Any, whatever it did.
    Any {
        /// With which probability one from the raw history.
        pre: f64,
        /// And one from the compacted history.
        post: f64,
    },
    /// Those from the compacted history that waste more than half of their actions.
    WorstOfPost,
}

/// How many boundaries recordings have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// All the same.
    Each(usize),
    /// 1 to 10, each as likely, whatever happens there.
    Mixed,
    /// 1 to 10, each as likely, and the effect at a boundary is m/10 of the scenario's where the recording has m.
    LongerIsWorse,
}

/// The size of the longest recording, where sizes are mixed.
const LONGEST: usize = 10;

/// What came out at a boundary.
#[derive(Clone, Debug)]
pub struct Boundary {
    /// The rollouts from the raw history.
    pub pre: Arm,
    /// Those from what each strategy kept, and the true mean of POST minus PRE.
    pub post: Vec<(Arm, f64)>,
}

/// Which history a rollout starts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Pre,
    Post,
}

/// The rollouts of an arm.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arm {
    /// How many actions each rollout wasted.
    pub wasted: Vec<u32>,
    /// 1 for each that stopped before the horizon, else 0.
    pub stopped: Vec<u32>,
    /// How many were lost.
    pub failed: u32,
}

/// What came out of a verification: the boundaries of each recording.
pub type Drawn = Vec<Vec<Boundary>>;

impl Shape {
    /// A shape with one strategy that acts, equal arms of three rollouts, and equal sizes.
    pub fn new(scenario: Scenario, recordings: usize, boundaries: usize, correlation: f64) -> Self {
        let sizes = Sizes::Each(boundaries);
        Self { scenario, recordings, sizes, samples: 3, correlation, loss: Loss::Nothing, acts: vec![true] }
    }

    /// The true mean over boundaries of POST minus PRE, on recordings not yet made.
    pub fn mean(&self) -> f64 {
        let share = match self.sizes {
            Sizes::Each(_) | Sizes::Mixed => 1.0,
            // Over boundaries a size is as common as it is large.
            Sizes::LongerIsWorse => {
                let sizes = || (1..=LONGEST).map(|size| size as f64);
                sizes().map(|size| size * size).sum::<f64>() / sizes().sum::<f64>() / LONGEST as f64
            }
        };
        self.scenario.mean() * share
    }

    /// A verification of this shape.
    pub fn draw(&self, draws: &mut Draws) -> Drawn {
        (0..self.recordings).map(|_| self.recording(draws)).collect()
    }

    /// The boundaries of a recording.
    ///
    /// The recording has a kind; each of its boundaries is of that kind with the probability √correlation, and else of one
    /// that is drawn anew. So the kinds of any two have the correlation.
    pub fn recording(&self, draws: &mut Draws) -> Vec<Boundary> {
        let size = match self.sizes {
            Sizes::Each(size) => size,
            Sizes::Mixed | Sizes::LongerIsWorse => 1 + draws.below(LONGEST),
        };
        let common = self.scenario.kind(draws);
        let boundary = |_| {
            let is_common = draws.chance(self.correlation.sqrt());
            let Kind { pre, mut post, .. } = if is_common { common } else { self.scenario.kind(draws) };
            if self.sizes == Sizes::LongerIsWorse {
                post = pre + (post - pre) * size as f64 / LONGEST as f64;
            }
            let arm = self.arm(pre, Side::Pre, draws);
            let strategies = self.acts.iter().map(|&acts| {
                let share = if acts { post } else { pre };
                (self.arm(share, Side::Post, draws), effect(pre, share))
            });
            Boundary { pre: arm, post: strategies.collect() }
        };
        (0..size).map(boundary).collect()
    }

    /// The rollouts of an arm that wastes this share of its actions. Half as often its agent stops early, if it did
    /// anything that was not wasted.
    fn arm(&self, share: f64, side: Side, draws: &mut Draws) -> Arm {
        let mut arm = Arm::default();
        for _ in 0..self.samples {
            let wasted = wasted(share, draws);
            let stopped = draws.chance(share / 2.0) && wasted < HORIZON;
            let is_lost = match (self.loss, side) {
                (Loss::Any { pre, .. }, Side::Pre) => draws.chance(pre),
                (Loss::Any { post, .. }, Side::Post) => draws.chance(post),
                (Loss::WorstOfPost, Side::Post) => 2 * wasted > HORIZON,
                _ => false,
            };
            if is_lost {
                arm.failed += 1;
            } else {
                arm.wasted.push(wasted);
                arm.stopped.push(u32::from(stopped));
            }
        }
        arm
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(numbers: &[f64]) -> f64 {
        numbers.iter().sum::<f64>() / numbers.len() as f64
    }

    /// The correlation of pairs that have one distribution.
    fn correlation(pairs: &[[f64; 2]]) -> f64 {
        let all: Vec<f64> = pairs.iter().flatten().copied().collect();
        let center = mean(&all);
        let variance = mean(&all.iter().map(|x| (x - center).powi(2)).collect::<Vec<_>>());
        mean(&pairs.iter().map(|[a, b]| (a - center) * (b - center)).collect::<Vec<_>>()) / variance
    }

    #[test]
    fn the_true_mean_is_what_many_rollouts_come_to() {
        for (scenario, sizes) in [
            (Scenario::SeedLike, Sizes::Each(4)),
            (Scenario::RareHarm, Sizes::Mixed),
            (Scenario::Mild, Sizes::LongerIsWorse),
            (Scenario::SeedLike, Sizes::LongerIsWorse),
        ] {
            let shape = Shape { sizes, ..Shape::new(scenario, 4_000, 4, 0.3) };
            let drawn = shape.draw(&mut Draws::new(3));
            let sum = |wasted: &[u32]| f64::from(wasted.iter().sum::<u32>()) / shape.samples as f64;
            let by_recording = drawn.iter().map(|boundaries| {
                let differences = boundaries.iter().map(|it| sum(&it.post[0].0.wasted) - sum(&it.pre.wasted));
                (differences.sum::<f64>(), boundaries.len() as f64)
            });
            let by_recording: Vec<_> = by_recording.collect();
            let boundaries: f64 = by_recording.iter().map(|(_, size)| size).sum();
            let found = by_recording.iter().map(|(sum, _)| sum).sum::<f64>() / boundaries;
            let residuals = by_recording.iter().map(|(sum, size)| (sum - size * found).powi(2)).sum::<f64>();
            let error = residuals.sqrt() / boundaries;
            assert!((found - shape.mean()).abs() < 4.0 * error, "{scenario:?} {sizes:?}: {found} ± {error}");
            let told = drawn.iter().flatten().map(|boundary| boundary.post[0].1).sum::<f64>() / boundaries;
            assert!((told - shape.mean()).abs() < 4.0 * error, "{scenario:?} {sizes:?}: {told}");
        }
    }

    #[test]
    fn two_boundaries_of_a_recording_have_the_correlation_that_was_asked_for() {
        for rho in [0.0, 0.3, 0.6] {
            let shape = Shape::new(Scenario::SeedLike, 20_000, 2, rho);
            let drawn = shape.draw(&mut Draws::new(4));
            let kinds: Vec<_> = drawn.iter().map(|it| [it[0].post[0].1, it[1].post[0].1]).collect();
            let found = correlation(&kinds);
            assert!((found - rho).abs() < 4.0 / 20_000_f64.sqrt(), "{rho}: {found}");
        }
    }

    #[test]
    fn strategies_share_their_pre_rollouts_and_one_that_does_not_act_is_like_them() {
        let loss = Loss::Any { pre: 0.0, post: 0.4 };
        let shape = Shape { acts: vec![false, true], loss, ..Shape::new(Scenario::SeedLike, 3_000, 4, 0.0) };
        let drawn = shape.draw(&mut Draws::new(5));
        let boundaries: Vec<_> = drawn.iter().flatten().collect();
        assert!(boundaries.iter().all(|it| it.post[0].1 == 0.0 && it.post[0].0.wasted.iter().all(|&x| x == 0)));
        assert!(boundaries.iter().any(|it| it.post[1].1 > 0.0));
        assert!(boundaries.iter().all(|it| it.pre.failed == 0 && it.pre.wasted.len() == 3));
        let failed: u32 = boundaries.iter().map(|it| it.post[1].0.failed).sum();
        // Five standard deviations of 36,000 such draws are 465.
        assert!(failed.abs_diff(14_400) < 465, "{failed}");
    }
    #[test]
    fn the_worst_rollouts_of_post_can_be_lost_and_no_others() {
        let shape = Shape { loss: Loss::WorstOfPost, ..Shape::new(Scenario::RareHarm, 500, 4, 0.0) };
        let drawn = shape.draw(&mut Draws::new(6));
        let (pre, post): (Vec<_>, Vec<_>) = drawn.iter().flatten().map(|it| (&it.pre, &it.post[0].0)).unzip();
        assert!(post.iter().all(|arm| arm.wasted.iter().all(|&wasted| wasted <= 2)));
        assert!(post.iter().any(|arm| arm.failed > 0));
        assert!(pre.iter().all(|arm| arm.failed == 0) && pre.iter().any(|arm| arm.wasted.contains(&4)));
    }
}
