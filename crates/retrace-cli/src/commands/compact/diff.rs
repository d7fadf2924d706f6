//! What became of each event of a history.

use retrace_events::tokens::{TokenCounter, count_events};
use retrace_events::{Event, History, Part};
use retrace_report::printable;
use retrace_strategies::Fate;

/// How many characters of an event are shown.
const SHOWN: usize = 48;

/// One line an event, in the order of the two histories.
pub(super) fn text(before: &History, after: &History, counter: &dyn TokenCounter) -> String {
    let tokens = |event: &Event| count_events(counter, [event]).0.to_string();
    let line = |fate, number: Option<usize>, event: &Event, tokens: String| {
        let number = number.map_or(String::new(), |index| (index + 1).to_string());
        format!("{fate:<8}{number:>6}  {:<13}{tokens:>14}  {}", event.kind(), shown(event)).trim_end().to_owned() + "\n"
    };
    let mut lines = format!("{:<8}{:>6}  {:<13}{:>14}\n", "", "event", "kind", "tokens");
    for fate in Fate::of_all(before, after) {
        let (of_before, of_after) = (|index| before.get(index), |index| after.get(index));
        lines += &match fate {
            Fate::Kept { before } => of_before(before).map(|event| line("kept", Some(before), event, tokens(event))),
            Fate::Dropped { before } => {
                of_before(before).map(|event| line("dropped", Some(before), event, tokens(event)))
            }
            Fate::Made { after } => of_after(after).map(|event| line("made", None, event, tokens(event))),
            Fate::Blanked { before, after } => of_before(before)
                .zip(of_after(after))
                .map(|(old, new)| line("blanked", Some(before), new, format!("{} -> {}", tokens(old), tokens(new)))),
        }
        .unwrap_or_default();
    }
    lines
}

/// The start of what an event says.
fn shown(event: &Event) -> String {
    let text = match event {
        Event::ToolResults(round) => round.results.iter().map(|result| result.text()).collect::<Vec<_>>().join(" | "),
        Event::Response(response) if response.tool_calls().next().is_some() => {
            let calls = response.tool_calls().map(|call| format!("{}({})", call.name, call.arguments));
            calls.collect::<Vec<_>>().join(" | ")
        }
        _ => event.content().iter().filter_map(Part::as_text).collect::<Vec<_>>().join(" | "),
    };
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut cut: String = text.chars().take(SHOWN).collect();
    if cut.len() < text.len() {
        cut.push_str("...");
    }
    printable(&cut).into_owned()
}
