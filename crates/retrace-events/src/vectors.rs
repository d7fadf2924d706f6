//! The vectors that tests read.

use std::path::Path;

/// The rows of `<group>/<file>.jsonl` in the project's copy, or in the folder that `RETRACE_VECTORS` names; none if
/// such a folder is named and has no such file.
pub(crate) fn read(file: &str) -> Option<Vec<serde_json::Value>> {
    let other = std::env::var_os("RETRACE_VECTORS");
    let own = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/vectors");
    let path = Path::new(other.as_deref().unwrap_or(own.as_ref())).join(file);
    if other.is_some() && !path.exists() {
        return None;
    }
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let rows: Vec<_> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(!rows.is_empty(), "{} has no rows", path.display());
    println!("{}: {} cases", path.display(), rows.len());
    Some(rows)
}
