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

/// Compares a p-value with a case's fraction, which has to be in lowest terms, and its double.
pub(crate) fn assert_p(case: &Value, p: &Exact) {
    let name = &case["name"];
    assert_eq!(p.numer().to_string(), case["p_numerator"], "{name}");
    assert_eq!(p.denom().to_string(), case["p_denominator"], "{name}");
    assert_eq!(nearest_double(p).to_bits(), case["p"].as_f64().unwrap().to_bits(), "{name}");
}

/// Compares a double with what a case expects under a name, absolutely.
pub(crate) fn assert_near(case: &Value, name: &str, found: f64, tolerance: f64) {
    let expected = case["expect"][name].as_f64().unwrap();
    assert!((found - expected).abs() <= tolerance, "{} {name}: {found:e} is not {expected:e}", case["name"]);
}

/// Compares a double with what a case expects under a name, relatively.
pub(crate) fn assert_relative(case: &Value, name: &str, found: f64, tolerance: f64) {
    let expected = case["expect"][name].as_f64().unwrap();
    let off = (found - expected).abs();
    assert!(off <= tolerance * expected.abs() || off < 1e-14, "{} {name}: {found:e} is not {expected:e}", case["name"]);
}

/// The counts of both arms of a boundary, PRE first.
pub(crate) fn arms(value: &Value) -> [Vec<u32>; 2] {
    ["pre", "post"]
        .map(|arm| value[arm].as_array().unwrap().iter().map(|count| count.as_u64().unwrap() as u32).collect())
}
