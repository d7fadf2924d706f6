//! What compaction does in a simulation: kinds of boundaries, how common each is, and what is wasted there.

use retrace_sim::Draws;

/// How many actions of a rollout are looked at, so the most that can be wasted.
pub const HORIZON: u32 = 5;

/// How alike the actions of a rollout are: with 2, most rollouts waste nothing and some a lot.
const CONCENTRATION: f64 = 2.0;

/// A kind of boundary.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Kind {
    /// Which share of boundaries is of this kind.
    pub probability: f64,
    /// Which share of its actions a rollout from the raw history wastes, on average.
    pub pre: f64,
    /// Which share one from the compacted history wastes.
    pub post: f64,
}

impl Kind {
    const fn new(probability: f64, pre: f64, post: f64) -> Self {
        Self { probability, pre, post }
    }
}

/// How kinds of boundaries are mixed.
///
/// | scenario | share of boundaries (PRE wastes, POST wastes) | true mean of POST − PRE |
/// |---|---|---|
/// | `NoEffect` | 60 % (0, 0), 25 % (0.1, 0.1), 15 % (0.5, 0.5) | 0, and nothing happens anywhere |
/// | `Quiet` | 95 % (0, 0), 5 % (0.1, 0.1) | 0, and hardly anything is ever wasted |
/// | `BothSigns` | 60 % (0, 0), 20 % (0, 0.5), 20 % (0.5, 0) | 0: helps as much as it harms |
/// | `RareHarm` | 10 % (0, 0.72), 90 % (0.08, 0) | 0: a rare heavy harm makes up for a common small gain |
/// | `RareGain` | 10 % (0.72, 0), 90 % (0, 0.08) | 0: the mirror of `RareHarm` |
/// | `SeedLike` | 7/12 (0, 0), 5/12 (0, 0.55) | +1.146 |
/// | `RareHeavy` | 90 % (0.02, 0.02), 10 % (0.02, 0.6) | +0.29 |
/// | `Mild` | 50 % (0.1, 0.2), 50 % (0.2, 0.3) | +0.5 |
/// | `AllOrNothing` | 83 % (0, 0), 17 % (0, 1) | +0.85: what limits a mean is nowhere tighter |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the table above has them")]
pub enum Scenario {
    NoEffect,
    Quiet,
    BothSigns,
    RareHarm,
    RareGain,
    SeedLike,
    RareHeavy,
    Mild,
    AllOrNothing,
}

impl Scenario {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::NoEffect,
        Self::Quiet,
        Self::BothSigns,
        Self::RareHarm,
        Self::RareGain,
        Self::SeedLike,
        Self::RareHeavy,
        Self::Mild,
        Self::AllOrNothing,
    ];

    /// Those where POST has the distribution of PRE at every boundary.
    pub const NOTHING_HAPPENS: [Self; 2] = [Self::NoEffect, Self::Quiet];

    /// Those where, with equal arms, the sum of a recording is as likely as its negative.
    pub const SYMMETRIC: [Self; 3] = [Self::NoEffect, Self::Quiet, Self::BothSigns];

    /// Those whose harm is to be found.
    pub const HARM: [Self; 3] = [Self::SeedLike, Self::RareHeavy, Self::Mild];

    /// Its kinds of boundaries, whose probabilities add up to 1.
    pub fn kinds(self) -> &'static [Kind] {
        const NO_EFFECT: &[Kind] = &[Kind::new(0.6, 0.0, 0.0), Kind::new(0.25, 0.1, 0.1), Kind::new(0.15, 0.5, 0.5)];
        const QUIET: &[Kind] = &[Kind::new(0.95, 0.0, 0.0), Kind::new(0.05, 0.1, 0.1)];
        const BOTH_SIGNS: &[Kind] = &[Kind::new(0.6, 0.0, 0.0), Kind::new(0.2, 0.0, 0.5), Kind::new(0.2, 0.5, 0.0)];
        const RARE_HARM: &[Kind] = &[Kind::new(0.1, 0.0, 0.72), Kind::new(0.9, 0.08, 0.0)];
        const RARE_GAIN: &[Kind] = &[Kind::new(0.1, 0.72, 0.0), Kind::new(0.9, 0.0, 0.08)];
        const SEED_LIKE: &[Kind] = &[Kind::new(7.0 / 12.0, 0.0, 0.0), Kind::new(5.0 / 12.0, 0.0, 0.55)];
        const RARE_HEAVY: &[Kind] = &[Kind::new(0.9, 0.02, 0.02), Kind::new(0.1, 0.02, 0.6)];
        const MILD: &[Kind] = &[Kind::new(0.5, 0.1, 0.2), Kind::new(0.5, 0.2, 0.3)];
        const ALL_OR_NOTHING: &[Kind] = &[Kind::new(0.83, 0.0, 0.0), Kind::new(0.17, 0.0, 1.0)];
        match self {
            Self::NoEffect => NO_EFFECT,
            Self::Quiet => QUIET,
            Self::BothSigns => BOTH_SIGNS,
            Self::RareHarm => RARE_HARM,
            Self::RareGain => RARE_GAIN,
            Self::SeedLike => SEED_LIKE,
            Self::RareHeavy => RARE_HEAVY,
            Self::Mild => MILD,
            Self::AllOrNothing => ALL_OR_NOTHING,
        }
    }

    /// In the words of the table.
    pub fn words(self) -> &'static str {
        match self {
            Self::NoEffect => "no effect",
            Self::Quiet => "no effect and hardly any waste",
            Self::BothSigns => "as much gain as harm",
            Self::RareHarm => "rare harm, common gain",
            Self::RareGain => "rare gain, common harm",
            Self::SeedLike => "large harm (+1.15)",
            Self::RareHeavy => "rare heavy harm (+0.29)",
            Self::Mild => "mild harm (+0.50)",
            Self::AllOrNothing => "all wasted or nothing (+0.85)",
        }
    }

    /// The true mean over boundaries of POST minus PRE, in actions.
    pub fn mean(self) -> f64 {
        self.kinds().iter().map(|kind| kind.probability * effect(kind.pre, kind.post)).sum()
    }

    /// The kind of a boundary, drawn.
    pub(crate) fn kind(self, draws: &mut Draws) -> Kind {
        let (last, others) = self.kinds().split_last().expect("a scenario has kinds");
        let mut left = 1.0;
        for kind in others {
            if draws.chance(kind.probability / left) {
                return *kind;
            }
            left -= kind.probability;
        }
        *last
    }
}

/// The mean of POST minus PRE, in actions, where the arms waste these shares.
pub(crate) fn effect(pre: f64, post: f64) -> f64 {
    f64::from(HORIZON) * (post - pre)
}

/// How many actions a rollout wastes, where this share of actions is wasted on average: beta-binomial.
///
/// # Source
///
/// Drawn as an urn in which each draw adds a ball of its colour: Eggenberger & Pólya 1923, *Über die Statistik verketteter
/// Vorgänge*.
pub(crate) fn wasted(share: f64, draws: &mut Draws) -> u32 {
    let mut wasted = 0;
    for action in 0..HORIZON {
        let of_its_colour = CONCENTRATION * share + f64::from(wasted);
        wasted += u32::from(draws.chance(of_its_colour / (CONCENTRATION + f64::from(action))));
    }
    wasted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kinds_of_a_scenario_are_all_there_is_and_have_the_stated_mean() {
        let means = [0.0, 0.0, 0.0, 0.0, 0.0, 55.0 / 48.0, 0.29, 0.5, 0.85];
        for (scenario, mean) in Scenario::ALL.into_iter().zip(means) {
            let all: f64 = scenario.kinds().iter().map(|kind| kind.probability).sum();
            assert!((all - 1.0).abs() < 1e-12, "{scenario:?}");
            assert!((scenario.mean() - mean).abs() < 1e-12, "{scenario:?}: {}", scenario.mean());
        }
    }

    #[test]
    fn a_kind_comes_as_often_as_it_says() {
        let mut draws = Draws::new(1);
        let mut counts = [0_u32; 3];
        for _ in 0..30_000 {
            let drawn = Scenario::NoEffect.kind(&mut draws);
            counts[Scenario::NoEffect.kinds().iter().position(|kind| *kind == drawn).unwrap()] += 1;
        }
        for (count, expected) in counts.into_iter().zip([18_000_u32, 7_500, 4_500]) {
            assert!(count.abs_diff(expected) < 430, "{counts:?}: five standard deviations are at most 425");
        }
    }

    /// The probabilities of 0 to 5, by the density: C(5, x) a⁽ˣ⁾ b⁽⁵⁻ˣ⁾ / 2⁽⁵⁾ with rising factorials.
    fn beta_binomial(share: f64) -> Vec<f64> {
        let rising = |from: f64, steps: u32| (0..steps).map(|step| from + f64::from(step)).product::<f64>();
        let (a, b) = (CONCENTRATION * share, CONCENTRATION * (1.0 - share));
        let ways = [1.0, 5.0, 10.0, 10.0, 5.0, 1.0];
        (0..=HORIZON)
            .map(|x| ways[x as usize] * rising(a, x) * rising(b, HORIZON - x) / rising(CONCENTRATION, HORIZON))
            .collect()
    }

    #[test]
    fn what_is_wasted_is_beta_binomial() {
        const N: u32 = 40_000;
        for share in [0.0, 0.02, 0.1, 0.5, 0.72, 1.0] {
            let mut draws = Draws::new(2);
            let mut counts = [0_u32; HORIZON as usize + 1];
            (0..N).for_each(|_| counts[wasted(share, &mut draws) as usize] += 1);
            let expected = beta_binomial(share);
            let mean: f64 = (0..).zip(&expected).map(|(x, p)| f64::from(x) * p).sum();
            assert!((mean - f64::from(HORIZON) * share).abs() < 1e-12);
            for (count, p) in counts.into_iter().zip(expected) {
                let five_deviations = 5.0 * (f64::from(N) * p * (1.0 - p)).sqrt();
                assert!((f64::from(count) - f64::from(N) * p).abs() <= five_deviations, "{share}: {counts:?}");
            }
        }
    }
}
