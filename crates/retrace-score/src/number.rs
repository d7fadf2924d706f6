//! How exact numbers are written: the fraction, and the nearest double beside it.

use retrace_stats::{Exact, Interval, nearest_double};
use serde::{Serialize, Serializer};

use crate::delta::Channels;

/// `{"exact": "-5/12", "value": -0.4166666666666667}`
#[derive(Serialize)]
struct Number {
    exact: String,
    value: f64,
}

impl From<&Exact> for Number {
    fn from(exact: &Exact) -> Self {
        Self { exact: exact.to_string(), value: nearest_double(exact) }
    }
}

/// `{"low": …, "high": …, "level": …}`
#[derive(Serialize)]
struct Ends {
    low: Number,
    high: Number,
    level: Number,
}

pub(crate) fn exact<S: Serializer>(exact: &Exact, serializer: S) -> Result<S::Ok, S::Error> {
    Number::from(exact).serialize(serializer)
}

pub(crate) fn option<S: Serializer>(exact: &Option<Exact>, serializer: S) -> Result<S::Ok, S::Error> {
    exact.as_ref().map(Number::from).serialize(serializer)
}

pub(crate) fn channels<S: Serializer>(channels: &Channels<Exact>, serializer: S) -> Result<S::Ok, S::Error> {
    channels.as_ref().map(Number::from).serialize(serializer)
}

pub(crate) fn interval<S: Serializer>(interval: &Option<Interval>, serializer: S) -> Result<S::Ok, S::Error> {
    let ends = interval.as_ref().map(|Interval { low, high, level }| Ends {
        low: low.into(),
        high: high.into(),
        level: (&level.exact()).into(),
    });
    ends.serialize(serializer)
}
