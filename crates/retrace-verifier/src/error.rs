//! What keeps a verification from running.

use std::sync::Arc;

use retrace_events::NotResumable;
use retrace_journal::JournalError;

/// The name of the control that is added where no strategy is an identity.
pub(crate) const CONTROL: &str = "control";

/// Why a verification did not run. Nothing was spent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VerifyError {
    /// A number is out of its range.
    #[error("`{setting}` is {value}{unit}, and must be from 1 to {most}{unit}")]
    OutOfRange {
        /// The setting.
        setting: &'static str,
        /// The number.
        value: u64,
        /// The largest it may be.
        most: u64,
        /// What both are counted in, with a space in front, if in anything.
        unit: &'static str,
    },
    /// A strategy asks a model that the run does not have.
    #[error("the strategy `{strategy}` asks the model `{model}`, which the run does not have")]
    UnknownModel {
        /// The name of the strategy.
        strategy: String,
        /// The name of the model.
        model: String,
    },
    /// There is nothing to compare.
    #[error("there is no strategy to verify")]
    NoStrategies,
    /// Two strategies have one name.
    #[error("two strategies are called `{name}`")]
    DuplicateStrategy {
        /// The name.
        name: String,
    },
    /// A name that a reader could not tell from another, or not see.
    #[error("a strategy is called `{name}`")]
    BadName {
        /// The name.
        name: String,
    },
    /// The name of the control is taken by another strategy.
    #[error("a strategy that is no identity is called `{CONTROL}`, which is the name of the control")]
    ControlNameTaken,
    /// A group has a list of cuts with nothing in it.
    #[error("0 cuts given")]
    NoCuts,
    /// No recording replays as far as its first boundary.
    #[error("no boundary can be reached by replay, out of {n_boundaries}; the first cannot since {reason}")]
    NothingReplays {
        /// How many boundaries there are.
        n_boundaries: usize,
        /// Why the first cannot be reached.
        reason: String,
    },
    /// The model would refuse the raw history at every boundary that is left.
    #[error("no boundary is left to run at: {reason}; and so at {n_boundaries} in all")]
    AllRefused {
        /// At how many boundaries.
        n_boundaries: usize,
        /// Why it would refuse the first.
        reason: String,
    },
    /// It was asked to stop before anything had run.
    #[error("stopped before anything had run")]
    Stopped,
    /// Dollars are limited, and it is not known what a model costs.
    #[error("dollars are limited, and the prices of the model `{model}` are not known")]
    PriceUnknown {
        /// The name of the model.
        model: String,
    },
    /// A shard that there is not.
    #[error("shard {index} of {of} is asked for")]
    NoSuchShard {
        /// Its number.
        index: u32,
        /// How many there are.
        of: u32,
    },
    /// A run that may stop early cannot be run in shards: none of them sees what the others have.
    #[error("a run that may stop early is asked for in shards")]
    EarlyShards,
    /// The folder of the run cannot be used, or does not go with it.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The plan of the run could not be kept.
    #[error(transparent)]
    NotKept(#[from] Arc<JournalError>),
    /// A cut that was asked for cannot be.
    #[error(transparent)]
    Cut(#[from] NotResumable),
}

impl VerifyError {
    /// What to do next.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::UnknownModel { .. } => Some("leave its `model` out to ask the run's own".to_owned()),
            Self::NoStrategies => Some("name at least one, such as a `tail_window`".to_owned()),
            Self::ControlNameTaken => Some("rename it, or leave the control out with `control = false`".to_owned()),
            Self::BadName { .. } => Some("give it a name that neither starts nor ends with a space".to_owned()),
            Self::NothingReplays { .. } => Some(
                "`retrace replay` shows how far each recording replays; the environment must start in the state that the recordings \
                 started from, and an outcome rule must read failures as the recording does"
                    .to_owned(),
            ),
            Self::AllRefused { .. } => Some(
                "no agent can go on from such a recording: mend or record it again, so that every call has its result right \
                 after its response"
                    .to_owned(),
            ),
            Self::NoCuts => Some("leave `cuts` out to cut where the spacing says".to_owned()),
            Self::Cut(error) => {
                let nearest: Vec<_> = error.nearest.iter().map(ToString::to_string).collect();
                let nearest = match &nearest[..] {
                    [] => String::new(),
                    nearest => format!("the nearest cuts are after {} events; ", nearest.join(" and ")),
                };
                Some(format!("{nearest}recordings that are cut in different places need groups of their own"))
            }
            Self::PriceUnknown { .. } => Some("set the `prices` of the model, or limit tokens instead".to_owned()),
            Self::NoSuchShard { .. } => Some("shards are counted from 1".to_owned()),
            Self::EarlyShards => Some("leave out `stop_early`, or run it whole".to_owned()),
            Self::Journal(error) => error.hint().map(str::to_owned),
            Self::NotKept(error) => error.hint().map(str::to_owned),
            Self::OutOfRange { .. } => Some("choose a number in that range".to_owned()),
            _ => None,
        }
    }
}
