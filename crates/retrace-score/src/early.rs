//! Stopping a verification early: evidence of harm that may be looked at after every recording.

use indexmap::IndexMap;
use num_traits::Zero;
use retrace_stats::{EProcess, Exact, Level, PValue, nearest_double};

use crate::burden::Key;
use crate::delta::{burdens, score_arms};
use crate::input::{BoundaryOutcome, Compaction};

/// How many channels are judged: wasted and stopped.
const CHANNELS: u32 = 2;

/// The evidence of harm of each strategy, recording by recording.
///
/// A verification may stop as soon as [`EarlyStop::is_over`] says so. Each channel of each strategy has an
/// [`EProcess`]; harm is shown where one reaches 40 times the number of them all, which happens with probability at most
/// 2.5 % if there is none, whenever one looks.
#[derive(Clone, Debug)]
pub struct EarlyStop {
    horizon: usize,
    refetch_by: Key,
    /// Of wasted and of stopped.
    evidence: IndexMap<String, [Evidence; CHANNELS as usize]>,
}

/// What has been seen of a channel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Evidence {
    process: EProcess,
    greatest: f64,
    /// What the boundaries so far sum up to, in doubles.
    sum: f64,
}

impl Evidence {
    /// `bound` is the greatest difference that there can be.
    pub(crate) fn new(bound: u32) -> Self {
        Self { process: EProcess::new(bound), greatest: 1.0, sum: 0.0 }
    }

    /// Takes in a recording, if it is scored.
    pub(crate) fn add(&mut self, differences: &[Exact]) {
        if !differences.is_empty() {
            let sum = differences.iter().sum::<Exact>();
            self.sum += nearest_double(&sum);
            let mean = sum / Exact::from_integer(differences.len().into());
            self.greatest = self.greatest.max(self.process.add(&mean));
        }
    }

    /// That of so many recordings which all got as much worse as can be.
    pub(crate) fn greatest_of(n_recordings: usize) -> Self {
        let mut evidence = Self::new(1);
        (0..n_recordings).for_each(|_| evidence.add(&[Exact::from_integer(1.into())]));
        evidence
    }

    /// Whether it shows harm among so many columns: there must still be some.
    fn shows_harm(&self, columns: u32) -> bool {
        self.sum > 0.0 && self.greatest >= EProcess::threshold(columns, Level::PERCENT_95)
    }

    /// The greatest so far.
    pub(crate) fn greatest(self) -> f64 {
        self.greatest
    }

    /// The evidence as a p-value that holds whenever one stops, two-sided, among so many channels of all strategies: 1/20
    /// where harm is shown.
    pub(crate) fn p(self, columns: u32) -> PValue {
        let p = EProcess::threshold(columns, Level::PERCENT_95) / 20.0 / self.greatest;
        PValue::Certified { p: p.clamp(1e-290, 1.0), relative_error: 1e-11 }
    }
}

impl EarlyStop {
    /// Before any recording. The control is not among the strategies.
    pub fn new(strategies: impl IntoIterator<Item = String>, horizon: usize, refetch_by: Key) -> Self {
        let bound = u32::try_from(horizon).unwrap_or(u32::MAX);
        let evidence = strategies.into_iter().map(|name| (name, [Evidence::new(bound), Evidence::new(1)]));
        Self { horizon, refetch_by, evidence: evidence.collect() }
    }

    /// Takes in all boundaries of one more recording.
    pub fn add(&mut self, boundaries: &[BoundaryOutcome]) {
        let (horizon, refetch_by) = (self.horizon, self.refetch_by);
        for (name, channels) in &mut self.evidence {
            let differences = boundaries.iter().filter_map(|boundary| difference(boundary, name, horizon, refetch_by));
            let (wasted, stopped): (Vec<_>, Vec<_>) = differences.unzip();
            channels[0].add(&wasted);
            channels[1].add(&stopped);
        }
    }

    /// Whether harm of every strategy is shown, so that more recordings would show nothing new of any.
    pub fn is_over(&self) -> bool {
        let columns = CHANNELS * self.evidence.len() as u32;
        let is_harmful = |channels: &[Evidence; 2]| channels.iter().any(|evidence| evidence.shows_harm(columns));
        !self.evidence.is_empty() && self.evidence.values().all(is_harmful)
    }

    /// How many recordings it takes to show harm of one of so many strategies, if all get as much worse as can be.
    pub fn fewest_recordings(n_strategies: usize) -> usize {
        let columns = CHANNELS * n_strategies as u32;
        (1..).find(|&n| Evidence::greatest_of(n).shows_harm(columns)).unwrap_or(usize::MAX)
    }
}

/// Wasted and stopped of a strategy at a boundary, if they are scored.
fn difference(boundary: &BoundaryOutcome, strategy: &str, horizon: usize, refetch_by: Key) -> Option<(Exact, Exact)> {
    let outcome = boundary.strategies.get(strategy)?;
    if outcome.compaction == Compaction::Unchanged && outcome.post.is_empty() {
        return Some((Exact::zero(), Exact::zero()));
    }
    let [pre, post] = [&boundary.pre, &outcome.post].map(|arm| burdens(arm, &*boundary.executed_calls, refetch_by));
    let delta = score_arms(&pre, &post, horizon).delta()?;
    Some((delta.wasted, delta.stopped))
}
