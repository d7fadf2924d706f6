//! `retrace strategies`: the menu.

use anyhow::Result;
use retrace_report::layout::wrap;
use retrace_report::{COLUMNS, json};
use retrace_strategies::{MenuEntry, menu};
use serde_json::Value;

use crate::args::StrategiesArgs;
use crate::exit::Exit;
use crate::output;

pub(crate) fn run(args: &StrategiesArgs) -> Result<Exit> {
    let menu = menu();
    let text = || menu.iter().map(text).collect::<Vec<_>>().join("\n");
    output::print(&if args.json { json(&menu) } else { text() })?;
    Ok(Exit::Ok)
}

/// A strategy as a reader sees it.
fn text(entry: &MenuEntry) -> String {
    let MenuEntry { kind, cost, does, reach_for, known_from, defaults } = entry;
    let settings: Vec<_> = defaults.iter().map(|(key, value)| setting(key, value)).collect();
    let rows = [
        ("does", (*does).to_owned()),
        ("for when", (*reach_for).to_owned()),
        ("costs", format!("{cost}; known from {known_from}")),
        ("settings", settings.join(", ")),
    ];
    let mut lines = format!("{kind}\n");
    for (label, words) in rows.iter().filter(|(_, words)| !words.is_empty()) {
        for (number, line) in wrap(words, COLUMNS - LABEL - 2).iter().enumerate() {
            let label = if number == 0 { *label } else { "" };
            lines.push_str(&format!("  {label:LABEL$}{line}\n"));
        }
    }
    lines
}

/// The columns of a label and the space behind it.
const LABEL: usize = 10;

/// A setting with its default, if it has one that fits a list.
fn setting(key: &str, value: &Value) -> String {
    let text = value.to_string();
    if value.is_null() || text == "[]" || text.chars().count() > 40 {
        key.to_owned()
    } else {
        format!("{key} = {text}")
    }
}
