//! What the next run is planned from: the report of a pilot, read from its JSON.

use indexmap::IndexMap;
use retrace_stats::{
    BoundedMeanError, Exact, Level, Recordings, VarianceComponents, VarianceError, WorstRecording,
    recordings_for_margin,
};
use serde::Deserialize;
use thiserror::Error;

use crate::inference::{Components, UnitSum};
use crate::input::MAX_HORIZON;
use crate::judging::{Margins, Unit};
use crate::number;
use crate::report::REPORT_VERSION;
use crate::score_input::{Object, path, plain};

/// A pilot run: those numbers of its report that a plan is made from. All else in the report is passed over.
///
/// ```
/// use retrace_score::Pilot;
///
/// let error = Pilot::from_json(r#"{"version": 1, "horizon": "five"}"#).unwrap_err();
/// assert!(error.to_string().starts_with("`horizon`: "));
/// ```
#[derive(Clone, Debug, Deserialize)]
pub struct Pilot {
    /// How many actions of a rollout were looked at.
    pub horizon: usize,
    /// How many rollouts each arm of a boundary was given, or at most was.
    pub samples: usize,
    /// Which strategy is the control, if one was run.
    pub control: Option<String>,
    /// How strategies were judged.
    pub judging: PilotJudging,
    /// All strategies, the control among them.
    pub strategies: IndexMap<String, PilotStrategy>,
}

/// How the strategies of a pilot were judged.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct PilotJudging {
    /// The greatest differences that are acceptable, if they were given.
    pub margins: Margins,
    /// What new ones are expected to be.
    pub unit: Unit,
    /// Whether the claims of safety of all strategies hold together.
    pub familywise: bool,
}

/// What a pilot showed of one strategy.
#[derive(Clone, Debug, Deserialize)]
pub struct PilotStrategy {
    /// `None` where nothing is scored.
    pub inference: Option<PilotInference>,
}

/// What a pilot showed of a strategy that is scored.
#[derive(Clone, Debug, Deserialize)]
pub struct PilotInference {
    /// How many recordings, or tasks if these are the unit, are scored.
    pub n_units: usize,
    /// Whether all rollouts of each arm made the same actions.
    pub deterministic: bool,
    /// The verdict, in the words of a report.
    pub verdict: String,
    /// Actions that failed or were executed before, over the horizon.
    pub wasted: PilotChannel,
    /// Rollouts whose agent ended its turn before the horizon.
    pub stopped: PilotChannel,
}

/// What a pilot showed of one channel.
#[derive(Clone, Debug, Deserialize)]
pub struct PilotChannel {
    /// The mean over boundaries of POST minus PRE.
    #[serde(deserialize_with = "number::read_exact")]
    pub mean: Exact,
    /// The least true effect that the pilot would have found four times in five; `None` where it could find none.
    pub detectable: Option<f64>,
    components: Option<Components>,
    completed: Vec<UnitSum>,
}

/// Why a pilot could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PilotError {
    /// It is no report, or a field of it is not as it should be.
    #[error("{}{message}", if path == "." { String::new() } else { format!("`{path}`: ") })]
    Json {
        /// The path to the field, such as `strategies.tail.inference`; `.` for the file as a whole.
        path: String,
        /// What is wrong there.
        message: String,
    },
    /// It is the report of another version of this program.
    #[error("`version` is {found}, and the only one known is {REPORT_VERSION}")]
    Version {
        /// The version that it has.
        found: u64,
    },
    /// The horizon is out of its range.
    #[error("`horizon` is {horizon}, and must be from 1 to {MAX_HORIZON}")]
    Horizon {
        /// The horizon.
        horizon: usize,
    },
}

impl PilotError {
    /// What to do next.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::Version { .. } => "run the pilot again with this program, or plan with the one that made the report",
            _ => {
                "give it the JSON report of a pilot: `retrace verify --json > pilot.json`, or of `retrace score --json`"
            }
        })
    }
}

impl Pilot {
    /// Reads the JSON of a report.
    ///
    /// # Errors
    /// [`PilotError`] for what is no report, a report of another version, and a field that is missing or of the wrong
    /// type.
    pub fn from_json(text: &str) -> Result<Self, PilotError> {
        #[derive(Deserialize)]
        struct Versioned {
            version: u64,
        }

        let Object(Versioned { version: found }) = read(text)?;
        if found != u64::from(REPORT_VERSION) {
            return Err(PilotError::Version { found });
        }
        let Object(pilot) = read::<Object<Self>>(text)?;
        match pilot.horizon {
            1..=MAX_HORIZON => Ok(pilot),
            horizon => Err(PilotError::Horizon { horizon }),
        }
    }

    /// The strategies but the control, in the user's order.
    pub fn candidates(&self) -> impl Iterator<Item = (&str, &PilotStrategy)> {
        let is_control = |name: &str| self.control.as_deref() == Some(name);
        self.strategies.iter().map(|(name, strategy)| (&**name, strategy)).filter(move |(name, _)| !is_control(name))
    }

    /// The level at which a strategy is said to be within a margin.
    pub fn safety(&self) -> Level {
        let claims = u32::try_from(self.candidates().count()).unwrap_or(u32::MAX);
        let shared = Level::PERCENT_95.shared_by(claims).filter(|_| self.judging.familywise);
        shared.unwrap_or(Level::PERCENT_95)
    }
}

impl PilotInference {
    /// Where the spread of one of its channels comes from.
    ///
    /// # Errors
    /// When there are too few recordings or boundaries to tell.
    pub fn components(&self, channel: &PilotChannel) -> Result<VarianceComponents, VarianceError> {
        match channel.components {
            Some(components) => Ok(components.into()),
            None if self.n_units < 2 => Err(VarianceError::TooFewRecordings { recordings: self.n_units }),
            None => Err(VarianceError::TooFewBoundaries),
        }
    }
}

impl PilotChannel {
    /// How many boundaries the strategy was tested at.
    pub fn n_boundaries(&self) -> u64 {
        self.completed.iter().map(|unit| u64::from(unit.n_boundaries)).sum()
    }

    /// How many recordings like those of the pilot it takes to show that the mean is below a margin; `bound` is the greatest
    /// difference that there can be. `None` where 2,000 are not enough.
    ///
    /// # Errors
    /// When nothing was tested, or something is beyond the bound.
    pub fn recordings_for_margin(
        &self,
        bound: u32,
        margin: f64,
        level: Level,
    ) -> Result<Option<u32>, BoundedMeanError> {
        let boundaries = self.completed.iter().map(|unit| unit.n_boundaries).max().unwrap_or_default();
        let units = self.completed.iter().map(|unit| (unit.sum.clone(), unit.n_boundaries));
        recordings_for_margin(&Recordings::from_sums(units), WorstRecording { boundaries, bound }, margin, level)
    }
}

fn read<'de, T: Deserialize<'de>>(text: &'de str) -> Result<T, PilotError> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let error = |path, error: &serde_json::Error| PilotError::Json { path, message: plain(error.to_string()) };
    let value = serde_path_to_error::deserialize(&mut deserializer)
        .map_err(|found| error(path(found.path()), found.inner()))?;
    deserializer.end().map_err(|found| error(".".to_owned(), &found))?;
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Report, ScoreInput};

    /// A report of three recordings of two boundaries, in each of which POST wastes one action of two and PRE none.
    fn report() -> Report {
        let arm = |blocked: &[bool]| {
            let action = |blocked| format!(r#"{{"name": "f", "arguments": {blocked}, "blocked": {blocked}}}"#);
            let end = r#"{"name": "g", "arguments": 0, "blocked": false}"#;
            let rollouts = blocked.iter().map(|&blocked| format!(r#"{{"actions": [{}, {end}]}}"#, action(blocked)));
            format!("[{}]", rollouts.collect::<Vec<_>>().join(","))
        };
        let boundary = |recording: usize, cut: usize| {
            format!(
                r#"{{"recording": "r{recording}", "cut": {cut}, "history": [], "pre": {},
                    "strategies": {{"control": {{"unchanged": true, "post": {}}}, "tail": {{"post": {}}}}}}}"#,
                arm(&[false, false]),
                arm(&[false, false]),
                arm(&[true, recording == cut]),
            )
        };
        let boundaries: Vec<_> = (0..3).flat_map(|r| [boundary(r, 1), boundary(r, 2)]).collect();
        let input = format!(r#"{{"horizon": 2, "boundaries": [{}]}}"#, boundaries.join(","));
        Report::new(ScoreInput::from_json(&input).unwrap().into_verification()).unwrap()
    }

    #[test]
    fn a_report_is_read_back() {
        let report = report();
        let pilot = Pilot::from_json(&serde_json::to_string(&report).unwrap()).unwrap();
        let candidates: Vec<_> = pilot.candidates().map(|(name, _)| name).collect();
        assert_eq!((candidates, pilot.horizon, pilot.samples), (vec!["tail"], 2, 2));
        let (written, read) = (report.strategies["tail"].inference.as_ref().unwrap(), &pilot.strategies["tail"]);
        let read = read.inference.as_ref().unwrap();
        assert_eq!((read.n_units, &*read.verdict), (3, "WORSE HERE"));
        for (written, channel) in [(&written.wasted, &read.wasted), (&written.stopped, &read.stopped)] {
            assert_eq!((&channel.mean, channel.detectable), (&written.mean, written.detectable));
            assert_eq!((&channel.completed, channel.components), (&written.completed, written.components));
            assert_eq!(channel.n_boundaries(), 6);
        }
        assert!(read.components(&read.wasted).is_ok_and(|components| components.rollout_post > Some(0.0)));
    }

    #[test]
    fn a_margin_is_reached_where_the_limit_of_the_report_says_so() {
        let report = report();
        let pilot = Pilot::from_json(&serde_json::to_string(&report).unwrap()).unwrap();
        let high = report.strategies["tail"].inference.as_ref().unwrap().wasted.high_completed;
        let wasted = &pilot.strategies["tail"].inference.as_ref().unwrap().wasted;
        let recordings = |margin| wasted.recordings_for_margin(2, margin, pilot.safety()).unwrap();
        assert_eq!(recordings(high + 1e-9), Some(3), "the pilot's own");
        assert!(recordings(high - 0.1).is_some_and(|recordings| recordings > 3));
        assert_eq!(recordings(0.1), None, "below what the pilot itself shows");
    }

    #[test]
    fn what_is_no_report_is_refused_with_the_field() {
        let check = |text: &str, expected: &str| {
            let error = Pilot::from_json(text).unwrap_err();
            assert!(error.to_string().starts_with(expected), "{error}");
            assert!(error.hint().is_some());
        };
        check("", "EOF while parsing");
        check("[1]", "invalid type: an array, expected an object");
        check("{}", "missing field `version`");
        check(r#"{"version": 2}"#, "`version` is 2, and the only one known is 1");
        check(r#"{"version": 1, "horizon": 5}"#, "missing field `samples`");
        let json = serde_json::to_string(&report()).unwrap();
        check(&json.replace(r#""horizon":2,"samples""#, r#""horizon":0,"samples""#), "`horizon` is 0");
        check(
            &json.replace(r#""completed":[{"#, r#""completed":[7,{"#),
            "`strategies.control.inference.wasted.completed[0]`: ",
        );
        check(
            &json.replace(r#""sum":{"exact":"0""#, r#""sum":{"exact":"1/0""#),
            "`strategies.control.inference.wasted.completed[0].sum`: `1/0` is no fraction",
        );
        check(&(json + "7"), "trailing characters");
    }
}
