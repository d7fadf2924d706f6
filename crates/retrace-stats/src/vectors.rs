//! Reading the cases that were computed by other methods, for tests.

use std::path::PathBuf;
use std::{env, fs, io};

use serde_json::Value;

use crate::rational::{Exact, nearest_double};

/// The cases of a file such as `verifier/sign.jsonl`, from `$RETRACE_VECTORS` where that is set;
/// `None` if it is set and has no such file.
pub(crate) fn read(group_file: &str) -> Option<Vec<Value>> {
    let given = env::var_os("RETRACE_VECTORS");
    let folder = given
        .as_ref()
        .map_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/vectors")), PathBuf::from);
    let path = folder.join(group_file);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if given.is_some() && error.kind() == io::ErrorKind::NotFound => {
            println!("{group_file}: passed over, it is not in the folder given");
            return None;
        }
        Err(error) => panic!("failed to read `{}`: {error}", path.display()),
    };
    Some(text.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

/// Says how many cases ran, and fails when none did.
pub(crate) fn ran(group_file: &str, cases: usize) {
    println!("{group_file}: {cases} cases");
    assert!(cases > 0, "{group_file} has no case");
}

/// A fraction written as text.
pub(crate) fn exact(value: &Value) -> Exact {
    value.as_str().unwrap().parse().unwrap()
}

/// A list of fractions written as text.
pub(crate) fn exacts(value: &Value) -> Vec<Exact> {
    value.as_array().unwrap().iter().map(exact).collect()
}

/// Compares a p-value with a case's fraction, which has to be in lowest terms, and its double.
pub(crate) fn assert_p(case: &Value, p: &Exact) {
    let name = &case["name"];
    assert_eq!(p.numer().to_string(), case["p_numerator"], "{name}");
    assert_eq!(p.denom().to_string(), case["p_denominator"], "{name}");
    assert_eq!(nearest_double(p).to_bits(), case["p"].as_f64().unwrap().to_bits(), "{name}");
}
