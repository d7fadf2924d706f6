//! Columns that are tested together, and what is shown of each.

use retrace_stats::{
    BoundedMean, ChannelEvidence, ClusterT, Exact, FlipInterval, HereInterval, Level, PValue, Recordings, ShownLow,
    SignFlipTest, VarianceComponents, bounded_mean, cluster_sign_flip_test, cluster_t, detectable_effect,
    flip_interval, here_interval, holm, joint_flips, nearest_double, shown_low, variance_components,
};

use super::comparison::Column;
use super::{ChannelInference, Components, Described, Ends, Intervals, TInterval, Test, UnitSum};
use crate::early::Evidence;
use crate::judging::Scope;

/// Fewer units than these can show no harm on others, however great it is.
const FEWEST_UNITS: usize = 6;

/// Whether p-values are adjusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    /// For each other.
    Together,
    /// Each stands for itself.
    Alone,
}

/// A column and its tests.
pub(super) struct Tested {
    pub(super) column: Column,
    pub(super) here: Option<PValue>,
    here_adjusted: Option<Exact>,
    recordings: Recordings,
    /// The recordings, had failed rollouts been as bad as can be.
    completed: Recordings,
    /// The limits at 95 %.
    bounded: Option<BoundedMean>,
    new: SignFlipTest,
    /// The least p of new recordings that as many can give.
    floor: Exact,
    new_adjusted: Exact,
    flips: FlipInterval,
    evidence: Option<Evidence>,
}

/// Tests columns: at the boundaries adjusted by Holm, since what was refused tells nothing; for new recordings by flipping all
/// columns together, no p below its own.
pub(super) fn test(columns: Vec<Column>, family: Family) -> Vec<Tested> {
    let differences: Vec<_> = columns.iter().map(Column::differences).collect();
    let recordings: Vec<_> =
        differences.iter().map(|column| Recordings::new(column.iter().map(Vec::as_slice))).collect();
    let here: Vec<_> = columns.iter().map(Column::p_here).collect();
    let uppers: Vec<_> = here.iter().flatten().map(PValue::upper).collect();
    let mut holm = holm(&uppers).into_iter();
    let joint = joint_flips(&recordings, Level::PERCENT_95).ok();
    let many = Exact::from_integer(columns.len().into());
    let tested = columns.into_iter().zip(differences).zip(recordings).zip(here).enumerate();
    let tested = tested.map(|(index, (((column, differences), recordings), here))| {
        let new = cluster_sign_flip_test(&differences);
        let (here_own, new_own) = (here.as_ref().map(PValue::upper), new.p.upper());
        let here_family = here.as_ref().and_then(|_| holm.next());
        // Columns of one verification always fit; if they did not, Bonferroni holds for any.
        let new_family = match &joint {
            Some(joint) => joint.test.columns[index].adjusted.clone().max(new_own.clone()),
            None => (&new_own * &many).min(Exact::from_integer(1.into())),
        };
        let (here_adjusted, new_adjusted) = match family {
            Family::Together => (here_family, new_family),
            Family::Alone => (here_own, new_own),
        };
        let flips = match &joint {
            Some(joint) => joint.intervals[index].clone(),
            None => flip_interval(&recordings, Level::PERCENT_95),
        };
        let floor = new.p_floor();
        let completed = column.completed();
        let bounded = bounded_mean(&recordings, column.worst, Level::PERCENT_95).ok();
        Tested {
            column,
            here,
            here_adjusted,
            recordings,
            completed,
            bounded,
            new,
            floor,
            new_adjusted,
            flips,
            evidence: None,
        }
    });
    tested.collect()
}

impl Tested {
    /// Puts evidence that may be looked at after every recording, among so many columns, in the place of the tests, which may
    /// not.
    pub(super) fn look_at_any_time(&mut self, columns: u32) {
        let mut evidence = Evidence::new(self.column.worst.bound);
        self.column.differences().iter().for_each(|recording| evidence.add(recording));
        (self.here, self.here_adjusted) = (None, None);
        self.new.p = evidence.p(1);
        self.new_adjusted = evidence.p(columns).upper();
        self.floor = Evidence::greatest_of(self.recordings.scored()).p(1).upper();
        self.evidence = Some(evidence);
    }

    /// Makes the adjusted values those of one of so many families (Bonferroni).
    pub(super) fn among(&mut self, n_families: usize) {
        let times = |p: &Exact| (p * Exact::from_integer(n_families.into())).min(Exact::from_integer(1.into()));
        self.here_adjusted = self.here_adjusted.as_ref().map(times);
        self.new_adjusted = times(&self.new_adjusted);
    }

    fn mean(&self) -> Exact {
        self.recordings.mean().unwrap_or_default()
    }

    /// The upper end, had failed rollouts been as bad as can be.
    pub(super) fn high_completed(&self, level: Level) -> f64 {
        let limits = match &self.bounded {
            // Where nothing failed, these are the same.
            Some(limits) if limits.level == level && self.completed == self.recordings => Some(*limits),
            _ => bounded_mean(&self.completed, self.column.worst, level).ok(),
        };
        limits.map_or(f64::from(self.column.worst.bound), |limits| limits.high)
    }

    /// What a verdict is reached by. Safety is claimed at its own level.
    pub(super) fn evidence(&self, margin: Option<f64>, strict: bool, safety: Level) -> ChannelEvidence {
        let limit = || self.bounded.as_ref().map_or(f64::NEG_INFINITY, |limits| limits.low);
        ChannelEvidence {
            mean: self.mean(),
            p_here: self.here_adjusted.clone(),
            p_new: self.new_adjusted.clone(),
            strict_low: strict.then(limit),
            high: self.high_completed(safety),
            margin,
        }
    }

    /// All that is shown.
    pub(super) fn inference(&self, high_completed: f64) -> ChannelInference {
        let level = Level::PERCENT_95;
        let samples = self.column.samples();
        let of_units: Vec<_> = samples.iter().map(Vec::as_slice).collect();
        let cluster_t = cluster_t(&self.recordings, level).ok().filter(|t| !t.is_without_spread());
        let spread = cluster_t.as_ref().filter(|_| self.recordings.scored() >= FEWEST_UNITS && self.evidence.is_none());
        let power = Level::new(4, 5).expect("four in five is a level");
        let detectable = spread.and_then(|t| detectable_effect(t.se, t.freedom, power, level));
        let end = |end: &Option<Exact>| end.as_ref().map(nearest_double);
        let bounded = self.bounded.as_ref();
        ChannelInference {
            mean: self.mean(),
            each_once: self.recordings.each_once().unwrap_or_default(),
            p_here: self.here.clone().zip(self.here_adjusted.clone()).map(|(p, adjusted)| Test { p, adjusted }),
            p_new: Test { p: self.new.p.clone(), adjusted: self.new_adjusted.clone() },
            evidence: self.evidence.map(Evidence::greatest),
            p_new_floor: self.floor.clone(),
            ends: ends(&self.recordings, &self.flips, bounded),
            high_completed,
            detectable,
            intervals: Intervals {
                here: here_interval(&samples.concat(), level).ok().map(TInterval::from),
                flips: Ends { low: end(&self.flips.low), high: end(&self.flips.high) },
                bounded: Ends { low: bounded.map(|limits| limits.low), high: bounded.map(|limits| limits.high) },
                cluster_t: cluster_t.map(TInterval::from),
            },
            components: variance_components(&of_units).ok().map(Components::from),
            completed: sums(&self.completed),
        }
    }
}

/// The mean and the interval of a column that is not tested.
pub(super) fn described(column: &Column, scope: Scope) -> Described {
    let level = Level::PERCENT_95;
    let recordings = Recordings::new(column.differences().iter().map(Vec::as_slice));
    let ends = match scope {
        Scope::Here => {
            let here = here_interval(&column.samples().concat(), level).ok();
            Ends { low: here.as_ref().map(|here| here.low), high: here.as_ref().map(|here| here.high) }
        }
        Scope::New => {
            let bounded = bounded_mean(&recordings, column.worst, level).ok();
            ends(&recordings, &flip_interval(&recordings, level), bounded.as_ref())
        }
    };
    Described { mean: recordings.mean().unwrap_or_default(), ends, n_units: column.n_units() }
}

/// What recordings sum up to, as numbers of a report.
fn sums(recordings: &Recordings) -> Vec<UnitSum> {
    let units = recordings.sums().iter().zip(recordings.sizes());
    units.map(|(sum, &n_boundaries)| UnitSum { n_boundaries, sum: sum.clone() }).collect()
}

/// The ends to show.
fn ends(recordings: &Recordings, flips: &FlipInterval, bounded: Option<&BoundedMean>) -> Ends {
    let low = bounded.and_then(|bounded| match shown_low(recordings, flips, bounded) {
        ShownLow::Flips(low) => Some(nearest_double(&low)),
        ShownLow::Bounded(low) => Some(low),
        _ => None,
    });
    Ends { low, high: bounded.map(|bounded| bounded.high) }
}

impl From<HereInterval> for TInterval {
    fn from(HereInterval { se, freedom, low, high, .. }: HereInterval) -> Self {
        Self { se, freedom, low, high }
    }
}

impl From<ClusterT> for TInterval {
    fn from(ClusterT { se, freedom, low, high, .. }: ClusterT) -> Self {
        Self { se, freedom, low, high }
    }
}

impl From<Components> for VarianceComponents {
    fn from(components: Components) -> Self {
        let Components { recording, boundary, rollout_pre, rollout_post } = components;
        Self { recording, boundary, rollout_pre, rollout_post }
    }
}

impl From<VarianceComponents> for Components {
    fn from(components: VarianceComponents) -> Self {
        let VarianceComponents { recording, boundary, rollout_pre, rollout_post } = components;
        Self { recording, boundary, rollout_pre, rollout_post }
    }
}
