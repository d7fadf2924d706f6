//! What the vectors say, for tests.

use serde_json::Value;

use crate::rational::{Exact, nearest_double};

/// A fraction written as text.
pub(crate) fn exact(value: &Value) -> Exact {
    value.as_str().unwrap().parse().unwrap()
}

/// A list of fractions written as text.
pub(crate) fn exacts(value: &Value) -> Vec<Exact> {
    value.as_array().unwrap().iter().map(exact).collect()
}

/// A list of lists of fractions.
pub(crate) fn columns(value: &Value) -> Vec<Vec<Exact>> {
    value.as_array().unwrap().iter().map(exacts).collect()
}

/// A list of lists of fractions written as text.
pub(crate) fn lists(value: &Value) -> Vec<Vec<Exact>> {
    value.as_array().unwrap().iter().map(exacts).collect()
}

/// Compares a p-value with a case's fraction, which has to be in lowest terms, and its double.
pub(crate) fn assert_p(case: &Value, p: &Exact) {
    let name = &case["name"];
    assert_eq!(p.numer().to_string(), case["p_numerator"], "{name}");
    assert_eq!(p.denom().to_string(), case["p_denominator"], "{name}");
    assert_eq!(nearest_double(p).to_bits(), case["p"].as_f64().unwrap().to_bits(), "{name}");
}
