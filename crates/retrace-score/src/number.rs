//! How exact numbers are written: the fraction, and the nearest double beside it.

use retrace_stats::{Exact, Interval, PValue, nearest_double};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

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

/// Reads what [`exact`] writes.
pub(crate) fn read_exact<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Exact, D::Error> {
    #[derive(Deserialize)]
    struct Written {
        exact: String,
    }

    let Written { exact } = Written::deserialize(deserializer)?;
    exact.parse().map_err(|_| D::Error::custom(format!("`{exact}` is no fraction such as `-5/12`")))
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

/// A p-value: what it is, the fraction if it is exact, how it was found, and how far off it may be.
#[derive(Serialize)]
struct Probability {
    value: f64,
    exact: Option<String>,
    method: &'static str,
    /// Of a certified one: the true value is nearer than this share of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    relative_error: Option<f64>,
    /// Of one that is only known to be below `value`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    below: bool,
    /// Of a sampled one: how far it is from that of all cases.
    #[serde(skip_serializing_if = "Option::is_none")]
    standard_error: Option<f64>,
}

pub(crate) fn p_value<S: Serializer>(p: &PValue, serializer: S) -> Result<S::Ok, S::Error> {
    let (mut relative, mut standard) = (None, None);
    match p {
        PValue::Certified { relative_error, .. } => relative = Some(*relative_error),
        PValue::Sampled { standard_error, .. } => standard = Some(*standard_error),
        _ => {}
    }
    Probability {
        value: p.to_f64(),
        exact: p.exact().map(Exact::to_string),
        method: p.method(),
        relative_error: relative,
        below: matches!(p, PValue::Below(_)),
        standard_error: standard,
    }
    .serialize(serializer)
}
