//! `[margin]` and `[verdict]`: how strategies are judged.

use retrace_score::{Judging, Key, Margins, Unit};

use crate::args::MarginArg;
use crate::failure::hinted;

/// The greatest mean differences that are acceptable.
#[derive(Clone, Copy, Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MarginConfig {
    wasted: Option<f64>,
    stopped: Option<f64>,
}

impl From<Margins> for MarginConfig {
    fn from(Margins { wasted, stopped }: Margins) -> Self {
        Self { wasted, stopped }
    }
}

impl MarginConfig {
    /// With what the command line says in place of these.
    pub(crate) fn or_given(self, given: &[MarginArg]) -> Self {
        given.iter().fold(self, |margins, given| match *given {
            MarginArg::Wasted(wasted) => Self { wasted: Some(wasted), ..margins },
            MarginArg::Stopped(stopped) => Self { stopped: Some(stopped), ..margins },
        })
    }

    pub(crate) fn margins(self, horizon: usize) -> anyhow::Result<Margins> {
        let Self { wasted, stopped } = self;
        for (key, margin, most) in [("wasted", wasted, horizon as f64), ("stopped", stopped, 1.0)] {
            if let Some(margin) = margin.filter(|margin| !(*margin > 0.0 && *margin < most)) {
                return Err(hinted(
                    format!("the margin of `{key}` is {margin}"),
                    format!("it is above 0 and below {most}, the greatest difference that there can be"),
                ));
            }
        }
        Ok(Margins { wasted, stopped })
    }
}

/// The rules of verdicts that are not the usual ones.
#[derive(Clone, Copy, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct VerdictConfig {
    unit: Unit,
    strict: bool,
    familywise: bool,
    pooled_baseline: bool,
    stop_early: bool,
    refetch_by: Key,
}

impl VerdictConfig {
    pub(crate) fn judging(self, margins: Margins, control: bool) -> anyhow::Result<Judging> {
        let Self { unit, strict, familywise, pooled_baseline, stop_early, refetch_by } = self;
        if stop_early && unit == Unit::Task {
            return Err(hinted(
                "`verdict.stop_early` looks after every recording, and the unit is the task",
                "leave one of the two out",
            ));
        }
        if stop_early && pooled_baseline {
            return Err(hinted(
                "`verdict.stop_early` holds strategies against PRE alone, and the baseline is pooled",
                "leave one of the two out",
            ));
        }
        if pooled_baseline && !control {
            return Err(hinted(
                "`verdict.pooled_baseline` takes the rollouts of a control, and `control` is false",
                "leave one of the two out",
            ));
        }
        Ok(Judging { margins, unit, strict, familywise, pooled_baseline, stop_early, refetch_by })
    }
}
