//! What the numbers show of each strategy: at the boundaries that were run, and of recordings not yet made.
//!
//! Two channels are judged, wasted and stopped, at the full horizon. Everything else in a report describes.

#[cfg(test)]
mod tests;

use indexmap::IndexMap;
use retrace_stats::{
    Arms, ChannelEvidence, Completion, Exact, FailedRollouts, Level, PValue, Recordings, ShownLow, Verdict,
    WorstRecording, blind_share, bounded_mean, cluster_sign_flip_test, cluster_t, completed_difference, control_gate,
    detectable_effect, flip_interval, holm, max_t, nearest_double, rollout_permutation_test, shown_low, verdict,
};
use serde::Serialize;

use crate::delta::Score;
use crate::number;
use crate::report::{BoundaryReport, RolloutReport};

/// What is shown of one strategy.
#[derive(Clone, Debug, Serialize)]
pub struct Inference {
    /// How many recordings have a boundary that is scored.
    pub n_recordings: usize,
    /// Whether the agent is deterministic: all rollouts of each arm made the same actions. They are then one sample, and count
    /// as one at the boundaries that were run.
    pub deterministic: bool,
    /// A harm that is confined to a smaller share of recordings had more than one chance in twenty of not occurring in any
    /// of them.
    pub blind: f64,
    /// Actions that failed or were executed before, over the horizon.
    pub wasted: ChannelInference,
    /// Rollouts whose agent ended its turn before the horizon.
    pub stopped: ChannelInference,
    /// What follows.
    #[serde(serialize_with = "word")]
    pub verdict: Verdict,
}

/// What is shown of one channel of a strategy.
#[derive(Clone, Debug, Serialize)]
pub struct ChannelInference {
    /// The mean over boundaries of POST minus PRE.
    #[serde(serialize_with = "number::exact")]
    pub mean: Exact,
    /// The mean over recordings of their means, each counted once.
    #[serde(serialize_with = "number::exact")]
    pub each_once: Exact,
    /// The lower end for recordings not yet made; `None` where so few show none.
    pub low: Option<f64>,
    /// The upper end for recordings not yet made. It holds whatever their distribution.
    pub high: f64,
    /// The same, had every rollout that failed been as bad as can be; margins are held against this one.
    pub high_completed: f64,
    /// Whether there is a difference at the boundaries that were run; `None` where an arm has no rollouts anywhere.
    pub p_here: Option<Test>,
    /// Whether there is one on recordings not yet made.
    pub p_new: Test,
    /// The least p that as many recordings can give.
    #[serde(serialize_with = "number::exact")]
    pub p_new_floor: Exact,
    /// The least true effect that this run would have found four times in five; `None` where it could find none.
    pub detectable: Option<f64>,
}

/// A p-value and how it was found.
#[derive(Clone, Debug, Serialize)]
pub struct Test {
    /// The p-value, two-sided.
    pub p: f64,
    /// As a fraction, where it is exact.
    #[serde(serialize_with = "number::option")]
    pub exact: Option<Exact>,
    /// `exact`, `certified` or `sampled`.
    pub method: &'static str,
    /// The p-value adjusted for all strategies and both channels; the control's is not.
    pub adjusted: f64,
}

/// The greatest mean differences that are acceptable, given before the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Margins {
    /// In wasted actions over the horizon.
    pub wasted: Option<f64>,
    /// In shares of rollouts.
    pub stopped: Option<f64>,
}

/// What is shown of all strategies that have a boundary that is scored, by name.
pub(crate) fn infer<'a>(
    strategies: impl Iterator<Item = &'a String>,
    control: Option<&str>,
    boundaries: &[BoundaryReport],
    horizon: usize,
    margins: Margins,
) -> IndexMap<String, Inference> {
    let columns =
        strategies.flat_map(|name| CHANNELS.map(|channel| (name, Column::new(name, channel, boundaries, horizon))));
    let columns: Vec<_> = columns.filter(|(_, column)| column.recordings.scored() > 0).collect();
    let (of_control, family): (Vec<_>, Vec<_>) = columns.iter().partition(|(name, _)| Some(&***name) == control);
    let gate: Vec<_> = of_control.iter().filter_map(|(_, column)| Some(column.here.as_ref()?.upper())).collect();
    let gate_fired = control_gate(&gate).fired;
    let adjusted = Adjusted::of(&family.iter().map(|(_, column)| column).collect::<Vec<_>>());
    let mut inferences = IndexMap::new();
    for pair in columns.chunks(CHANNELS.len()) {
        let name = pair[0].0;
        let place = family.iter().position(|(other, _)| *other == name);
        let margins = [margins.wasted, margins.stopped];
        let channels = pair.iter().zip(margins).enumerate().map(|(channel, ((_, column), margin))| {
            column.inferred(place.map(|place| adjusted.at(place + channel)), margin)
        });
        let (mut channels, evidence): (Vec<_>, Vec<_>) = channels.unzip();
        let (Some(stopped), Some(wasted)) = (channels.pop(), channels.pop()) else { continue };
        let (n_recordings, deterministic) = (pair[0].1.recordings.scored(), pair[0].1.deterministic);
        let blind = blind_share(n_recordings, Level::PERCENT_95);
        let verdict = verdict(gate_fired, &evidence, Level::PERCENT_95);
        inferences.insert(name.clone(), Inference { n_recordings, deterministic, blind, wasted, stopped, verdict });
    }
    inferences
}

/// What is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Channel {
    Wasted,
    Stopped,
}

const CHANNELS: [Channel; 2] = [Channel::Wasted, Channel::Stopped];

impl Channel {
    /// The counts of the rollouts that reach the horizon.
    fn counts(self, rollouts: &[RolloutReport], horizon: usize) -> Vec<u32> {
        let burdens = rollouts.iter().filter_map(|rollout| rollout.burdens.at(horizon));
        let count = |burden: crate::burden::Burden| match self {
            Self::Wasted => u32::try_from(burden.wasted).unwrap_or(u32::MAX),
            Self::Stopped => u32::from(burden.stopped),
        };
        burdens.map(count).collect()
    }

    /// The greatest difference that there can be.
    fn bound(self, horizon: usize) -> u32 {
        match self {
            Self::Wasted => u32::try_from(horizon).unwrap_or(u32::MAX),
            Self::Stopped => 1,
        }
    }
}

/// One channel of one strategy.
struct Column {
    /// The differences that are scored, recording by recording.
    recordings: Recordings,
    /// Those of all boundaries at which it was tested, had failed rollouts been as bad as can be.
    completed: Recordings,
    worst: WorstRecording,
    deterministic: bool,
    here: Option<PValue>,
    new: PValue,
    floor: Exact,
}

impl Column {
    fn new(name: &str, channel: Channel, boundaries: &[BoundaryReport], horizon: usize) -> Self {
        let bound = channel.bound(horizon);
        let mut scored: IndexMap<&str, Vec<Exact>> = IndexMap::new();
        let mut completed: IndexMap<&str, Vec<Exact>> = IndexMap::new();
        let mut rolled = Vec::new();
        for boundary in boundaries {
            let (scored, completed) =
                (scored.entry(&boundary.recording).or_default(), completed.entry(&boundary.recording).or_default());
            let Some(here) = boundary.strategies.get(name) else { continue };
            if here.scores.get(horizon - 1).is_some_and(|score| score.score == Score::Noop) {
                scored.push(Exact::default());
                completed.push(Exact::default());
                continue;
            }
            let [pre, post] = [&boundary.pre, &here.post].map(|rollouts| channel.counts(rollouts, horizon));
            let failed = |all: &[RolloutReport], counts: &[u32]| (all.len() - counts.len()) as u32;
            let failed = FailedRollouts { pre: failed(&boundary.pre, &pre), post: failed(&here.post, &post) };
            let arms = Arms::Rollouts { pre: &pre, post: &post };
            completed.push(completed_difference(&arms, failed, bound, Completion::Adverse));
            scored.extend(arms.difference());
            rolled.push([pre, post]);
        }
        let deterministic = is_deterministic(name, boundaries);
        let most = if deterministic { 1 } else { usize::MAX };
        let [pre, post] =
            [0, 1].map(|arm| rolled.iter().map(move |arms: &[Vec<u32>; 2]| &arms[arm][..arms[arm].len().min(most)]));
        let arms: Vec<_> = pre.zip(post).map(|(pre, post)| Arms::Rollouts { pre, post }).collect();
        let differences: Vec<_> = scored.values().map(Vec::as_slice).collect();
        let test = cluster_sign_flip_test(&differences);
        let completed = Recordings::new(completed.values().map(Vec::as_slice));
        let largest = completed.sizes().iter().copied().max().unwrap_or_default();
        Self {
            recordings: Recordings::new(differences),
            completed,
            worst: WorstRecording { boundaries: largest, bound },
            deterministic,
            here: rollout_permutation_test(&arms).ok().map(|test| test.p),
            floor: test.p_floor(),
            new: test.p,
        }
    }

    /// What is shown of it, and what it is judged by. The p-values of the control are not adjusted.
    fn inferred(
        &self,
        adjusted: Option<(Option<Exact>, Exact)>,
        margin: Option<f64>,
    ) -> (ChannelInference, ChannelEvidence) {
        let level = Level::PERCENT_95;
        let unadjusted = || (self.here.as_ref().map(PValue::upper), self.new.upper());
        let (here, new) = adjusted.unwrap_or_else(unadjusted);
        let flips = flip_interval(&self.recordings, level);
        let limits = |recordings: &Recordings| bounded_mean(recordings, self.worst, level).ok();
        let limits_scored = limits(&self.recordings);
        let bound = f64::from(self.worst.bound);
        let high = |limits: Option<&retrace_stats::BoundedMean>| limits.map_or(bound, |limits| limits.high);
        let low = limits_scored.as_ref().and_then(|limits| match shown_low(&self.recordings, &flips, limits) {
            ShownLow::Flips(low) => Some(nearest_double(&low)),
            ShownLow::Bounded(low) => Some(low),
            _ => None,
        });
        let spread =
            cluster_t(&self.recordings, level).ok().filter(|t| self.recordings.scored() >= 6 && !t.is_without_spread());
        let mean = self.recordings.mean().unwrap_or_default();
        let high_completed = high(limits(&self.completed).as_ref());
        let evidence = ChannelEvidence {
            mean: mean.clone(),
            p_here: here.clone(),
            p_new: new.clone(),
            high: high_completed,
            margin,
        };
        let channel = ChannelInference {
            each_once: self.recordings.each_once().unwrap_or_default(),
            low,
            high: high(limits_scored.as_ref()),
            high_completed,
            p_here: self.here.as_ref().zip(here).map(|(p, adjusted)| Test::new(p, &adjusted)),
            p_new: Test::new(&self.new, &new),
            p_new_floor: self.floor.clone(),
            detectable: spread.and_then(|t| detectable_effect(t.se, t.freedom, Level::new(4, 5)?, level)),
            mean,
        };
        (channel, evidence)
    }
}

/// Whether each arm's rollouts made the same actions, though some arm has several.
fn is_deterministic(name: &str, boundaries: &[BoundaryReport]) -> bool {
    let tested = boundaries.iter().filter_map(|boundary| Some([&boundary.pre, &boundary.strategies.get(name)?.post]));
    let mut arms = tested.flatten().filter(|arm| arm.len() > 1).peekable();
    arms.peek().is_some()
        && arms.all(|arm| arm.windows(2).all(|pair| pair[0].rollout.actions == pair[1].rollout.actions))
}

impl Test {
    fn new(p: &PValue, adjusted: &Exact) -> Self {
        Self { p: p.to_f64(), exact: p.exact().cloned(), method: p.method(), adjusted: nearest_double(adjusted) }
    }
}

/// The p-values of a family, adjusted for each other.
struct Adjusted {
    here: Vec<Option<Exact>>,
    new: Vec<Exact>,
}

impl Adjusted {
    /// At the boundaries by Holm, since what was refused tells nothing; for new recordings by flipping all columns together,
    /// no p below its own.
    fn of(columns: &[&Column]) -> Self {
        let tested: Vec<_> = columns.iter().filter_map(|column| Some(column.here.as_ref()?.upper())).collect();
        let mut adjusted = holm(&tested).into_iter();
        let here = columns.iter().map(|column| column.here.as_ref().and_then(|_| adjusted.next())).collect();
        let recordings: Vec<_> = columns.iter().map(|column| column.recordings.clone()).collect();
        let flipped = max_t(&recordings).map(|test| test.columns).unwrap_or_default();
        let own = columns.iter().map(|column| column.new.upper());
        // Columns of one verification always fit; if they did not, Bonferroni holds for any.
        let many = Exact::from_integer(columns.len().into());
        let new = own.enumerate().map(|(index, own)| match flipped.get(index) {
            Some(column) => column.adjusted.clone().max(own),
            None => (own * &many).min(Exact::from_integer(1.into())),
        });
        Self { here, new: new.collect() }
    }

    fn at(&self, index: usize) -> (Option<Exact>, Exact) {
        (self.here[index].clone(), self.new[index].clone())
    }
}

/// A verdict as reports have it.
fn word<S: serde::Serializer>(verdict: &Verdict, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(verdict_words(verdict))
}

/// A verdict in the words of a report.
pub fn verdict_words(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Invalid => "INVALID",
        Verdict::NotScored => "NOT SCORED",
        Verdict::WithinMargin { .. } => "WITHIN MARGIN",
        Verdict::Worse => "WORSE",
        Verdict::WorseHere => "WORSE HERE",
        _ => "NOT SHOWN",
    }
}
