//! POST minus PRE at one boundary.

use std::fmt;

use num_traits::{Signed, Zero};
use retrace_events::Rollout;
use retrace_stats::{Exact, exact_minus};
use serde::Serialize;
use thiserror::Error;

use crate::burden::{Burdens, Key};
use crate::executed::Executed;
use crate::facts::Sums;
use crate::number;

/// One of the two arms of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// Resumed from the raw history.
    Pre,
    /// Resumed from what a strategy keeps.
    Post,
}

/// One thing of each channel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Channels<T> {
    /// Actions that failed.
    pub blocked: T,
    /// Actions that were executed before.
    pub refetch: T,
    /// Actions that were either, counted once.
    pub wasted: T,
    /// Rollouts whose agent ended its turn before the horizon.
    pub stopped: T,
    /// What compaction adds in blocked and in refetch, each no less than zero. It is above zero by chance alone, so it is
    /// an estimate without a test.
    pub harm: T,
}

/// The means of an arm over the rollouts that are scored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ArmMeans {
    /// Actions that failed.
    #[serde(serialize_with = "number::exact")]
    pub blocked: Exact,
    /// Actions that were executed before.
    #[serde(serialize_with = "number::exact")]
    pub refetch: Exact,
    /// Actions that were either.
    #[serde(serialize_with = "number::exact")]
    pub wasted: Exact,
    /// The share of rollouts whose agent ended its turn before the horizon.
    #[serde(serialize_with = "number::exact")]
    pub stopped: Exact,
    /// Actions, at most the horizon.
    #[serde(serialize_with = "number::exact")]
    pub actions: Exact,
}

/// One boundary at one horizon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HorizonScore {
    /// How many actions are looked at.
    pub horizon: usize,
    /// What came out.
    #[serde(flatten)]
    pub score: Score,
}

/// What came out at one boundary and horizon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Score {
    /// Both arms have rollouts that reach the horizon.
    Scored(Box<Delta>),
    /// The strategy left the history as it was and nothing was run: zero by definition.
    Noop,
    /// There is no delta.
    Unscored(Unscored),
}

/// The means of both arms, and POST minus PRE.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Delta {
    /// POST minus PRE.
    #[serde(serialize_with = "number::channels")]
    pub delta: Channels<Exact>,
    /// The means of PRE.
    pub pre: ArmMeans,
    /// The means of POST.
    pub post: ArmMeans,
}

/// Why there is no delta.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Unscored {
    /// Nothing could run at the boundary.
    Unusable,
    /// The compaction failed, so there is nothing to resume from.
    CompactionFailed,
    /// No agent can be resumed from what was kept.
    CompactionFlawed,
    /// No rollout of this arm was run.
    NotRun(Side),
    /// Every rollout of this arm broke off before the horizon.
    AllFailed(Side),
}

/// Why a boundary cannot be scored at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ScoreError {
    /// An arm has no rollouts, so it has no mean.
    #[error("the {side} arm has no rollouts")]
    EmptyArm {
        /// The arm.
        side: Side,
    },
}

/// POST minus PRE at one boundary, for each of `horizons` in the order given; a repeat is a repeated call, and `executed`
/// says what was executed before the boundary.
///
/// At horizon k the first k actions of each rollout are looked at. `blocked`, `refetch` and `wasted` are means of counts
/// per rollout, `stopped` is a share of rollouts, and `harm` = max(Δblocked, 0) + max(Δrefetch, 0). A rollout that broke
/// off is left out at the horizons that its finished actions do not reach; where that leaves an arm empty, the boundary
/// is [`Score::Unscored`] there.
///
/// # Errors
/// [`ScoreError::EmptyArm`] for an arm without rollouts.
///
/// # Examples
///
/// ```
/// use std::collections::HashSet;
///
/// use retrace_events::{Action, EndReason, Outcome, Rollout, Spend};
/// use retrace_score::{Score, score_boundary};
///
/// let look = |item: &str| Action::new("look", format!(r#"{{"item":"{item}"}}"#), Outcome::Ok, None);
/// let rollout = |actions| Rollout { actions, end: EndReason::Budget, n_answers: 2, spend: Spend::default(), sent: None };
/// let executed = HashSet::from([look("tea").signature().clone()]);
///
/// let pre = [rollout(vec![look("rice"), look("salt")])];
/// let post = [rollout(vec![look("tea"), look("rice")]), rollout(vec![look("rice"), look("salt")])];
/// let scores = score_boundary(&pre, &post, &executed, &[1, 2])?;
/// let Score::Scored(scored) = &scores[1].score else { panic!("both arms ran") };
/// assert_eq!(scored.delta.refetch, "1/2".parse()?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn score_boundary(
    pre: &[Rollout],
    post: &[Rollout],
    executed: &dyn Executed,
    horizons: &[usize],
) -> Result<Vec<HorizonScore>, ScoreError> {
    score_boundary_by(Key::Call, pre, post, executed, horizons)
}

/// Does what [`score_boundary`] does, with a choice of what makes a repeat.
///
/// # Errors
/// [`ScoreError::EmptyArm`] for an arm without rollouts.
pub fn score_boundary_by(
    key: Key,
    pre: &[Rollout],
    post: &[Rollout],
    executed: &dyn Executed,
    horizons: &[usize],
) -> Result<Vec<HorizonScore>, ScoreError> {
    for (side, arm) in [(Side::Pre, pre), (Side::Post, post)] {
        if arm.is_empty() {
            return Err(ScoreError::EmptyArm { side });
        }
    }
    let [pre, post] = [pre, post].map(|arm| burdens(arm, executed, key));
    Ok(horizons.iter().map(|&horizon| HorizonScore { horizon, score: score_arms(&pre, &post, horizon) }).collect())
}

/// The burdens of an arm.
pub(crate) fn burdens(arm: &[Rollout], executed: &dyn Executed, key: Key) -> Vec<Burdens> {
    arm.iter().map(|rollout| Burdens::of(rollout, executed, key)).collect()
}

/// POST minus PRE at one horizon.
pub(crate) fn score_arms(pre: &[Burdens], post: &[Burdens], horizon: usize) -> Score {
    score_sums(Sums::of(pre, horizon), Sums::of(post, horizon))
}

/// POST minus PRE, of both arms at one horizon.
pub(crate) fn score_sums(pre: Sums, post: Sums) -> Score {
    for (side, arm) in [(Side::Pre, pre), (Side::Post, post)] {
        if arm.n_rollouts == 0 {
            return Score::Unscored(Unscored::NotRun(side));
        }
    }
    let Some(pre) = pre.means() else { return Score::Unscored(Unscored::AllFailed(Side::Pre)) };
    let Some(post) = post.means() else { return Score::Unscored(Unscored::AllFailed(Side::Post)) };
    let change = |of: fn(&ArmMeans) -> &Exact| exact_minus(of(&post), of(&pre));
    let (blocked, refetch) = (change(|arm| &arm.blocked), change(|arm| &arm.refetch));
    let harm = match (blocked.is_positive(), refetch.is_positive()) {
        (true, true) => &blocked + &refetch,
        (true, false) => blocked.clone(),
        (false, true) => refetch.clone(),
        (false, false) => Exact::zero(),
    };
    let (wasted, stopped) = (change(|arm| &arm.wasted), change(|arm| &arm.stopped));
    Score::Scored(Box::new(Delta { delta: Channels { blocked, refetch, wasted, stopped, harm }, pre, post }))
}

impl Score {
    /// POST minus PRE, if it is known.
    pub fn delta(&self) -> Option<Channels<Exact>> {
        match self {
            Self::Scored(scored) => Some(scored.delta.clone()),
            Self::Noop => Some(Channels::default().map(|(): ()| Exact::zero())),
            Self::Unscored(_) => None,
        }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pre => "PRE",
            Self::Post => "POST",
        })
    }
}

impl<T> Channels<T> {
    /// Each channel turned into something else.
    pub fn map<U>(self, mut f: impl FnMut(T) -> U) -> Channels<U> {
        Channels {
            blocked: f(self.blocked),
            refetch: f(self.refetch),
            wasted: f(self.wasted),
            stopped: f(self.stopped),
            harm: f(self.harm),
        }
    }

    /// Each channel by reference.
    pub fn as_ref(&self) -> Channels<&T> {
        Channels {
            blocked: &self.blocked,
            refetch: &self.refetch,
            wasted: &self.wasted,
            stopped: &self.stopped,
            harm: &self.harm,
        }
    }
}
