//! What the rollouts of one strategy come to in one channel, as the procedures take it.

use retrace_stats::{Arms, Exact, Level, Recordings, WorstRecording};

use crate::generator::{Arm, Boundary};
use crate::scenario::HORIZON;

/// The level of everything that is asked.
pub(crate) const LEVEL: Level = Level::PERCENT_95;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Channel {
    Wasted,
    Stopped,
}

impl Channel {
    pub(crate) const BOTH: [Self; 2] = [Self::Wasted, Self::Stopped];

    fn counts(self, arm: &Arm) -> &[u32] {
        match self {
            Self::Wasted => &arm.wasted,
            Self::Stopped => &arm.stopped,
        }
    }

    fn bound(self) -> u32 {
        match self {
            Self::Wasted => HORIZON,
            Self::Stopped => 1,
        }
    }
}

/// One channel of one strategy.
pub(crate) struct Column<'a> {
    /// The boundaries with rollouts in both arms.
    pub(crate) arms: Vec<Arms<'a>>,
    /// Their differences, recording by recording.
    pub(crate) differences: Vec<Vec<Exact>>,
    /// The same, summed up.
    pub(crate) recordings: Recordings,
    /// Beside which the mean is limited.
    pub(crate) worst: WorstRecording,
    /// The true mean of these very boundaries.
    pub(crate) mean_here: f64,
}

impl<'a> Column<'a> {
    pub(crate) fn new(drawn: &'a [Vec<Boundary>], strategy: usize, channel: Channel) -> Self {
        let mut arms = Vec::new();
        let mut effects = Vec::new();
        let mut differences = vec![Vec::new(); drawn.len()];
        for (boundaries, differences) in drawn.iter().zip(&mut differences) {
            for boundary in boundaries {
                let (post, effect) = &boundary.post[strategy];
                let of_both = Arms::Rollouts { pre: channel.counts(&boundary.pre), post: channel.counts(post) };
                if let Some(difference) = of_both.difference() {
                    arms.push(of_both);
                    effects.push(*effect);
                    differences.push(difference);
                }
            }
        }
        let largest = drawn.iter().map(Vec::len).max().unwrap_or_default();
        Self {
            mean_here: effects.iter().sum::<f64>() / effects.len().max(1) as f64,
            arms,
            recordings: Recordings::new(differences.iter().map(Vec::as_slice)),
            differences,
            worst: WorstRecording { boundaries: largest as u32, bound: channel.bound() },
        }
    }
}

/// Whether a p-value is at most 0.05, told exactly.
pub(crate) fn is_small(p: &Exact) -> bool {
    *p <= Exact::new(1.into(), 20.into())
}
