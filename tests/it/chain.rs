//! A verification of strategies that run again and again.

use std::fs;

use serde_json::Value;

use crate::program::retrace_in;

/// The tokens that a strategy left at each boundary of the first recording.
fn left(report: &Value, strategy: &str) -> Vec<u64> {
    let boundaries = report["boundaries"].as_array().unwrap().iter();
    let of_first = boundaries.filter(|boundary| boundary["recording"] == "shop-1");
    let size =
        |boundary: &Value| boundary["strategies"][strategy]["compaction"]["compacted"]["size"]["tokens"].as_u64();
    of_first.map(|boundary| size(boundary).unwrap()).collect()
}

#[test]
fn a_chain_summarizes_its_own_summaries_and_its_window_is_the_same() {
    let folder = tempfile::tempdir().unwrap();
    retrace_in(folder.path(), &["demo", "--save", "shop"]).ok();
    let config = folder.path().join("shop/retrace.toml");
    let plain = retrace_in(folder.path(), &["verify", "-c", "shop/retrace.toml", "--json"]).json();
    fs::write(&config, format!("chain = true\n{}", fs::read_to_string(&config).unwrap())).unwrap();
    let chained = ["verify", "-c", "shop/retrace.toml", "--json", "--run", "chained"];
    let chained = retrace_in(folder.path(), &chained).json();
    assert_eq!((&plain["chain"], &chained["chain"]), (&Value::Bool(false), &Value::Bool(true)));

    // A window keeps the newest events, however it came to them.
    assert_eq!(left(&plain, "tail"), left(&chained, "tail"));
    let (plain, chained) = (left(&plain, "summary"), left(&chained, "summary"));
    assert!(plain.len() > 2 && plain[0] == chained[0] && plain[2..] != chained[2..], "{plain:?} {chained:?}");

    let text = retrace_in(folder.path(), &["verify", "-c", "shop/retrace.toml", "--run", "chained"]).ok();
    assert!(text.contains("* Chained: at each boundary"), "{text}");
    let inspected = retrace_in(folder.path(), &["inspect", "-c", "shop/retrace.toml", "shop/recordings"]).ok();
    assert!(
        inspected.contains("summary, chained, in tokens") && inspected.contains("summarized its summary"),
        "{inspected}"
    );
}
