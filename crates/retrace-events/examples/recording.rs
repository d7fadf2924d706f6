//! A run of an agent written as JSON Lines, read back, and looked at: its actions, and where it can be cut.

#![expect(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;
use std::sync::Arc;

use retrace_events::codec::{RecordingWriter, read_recording};
use retrace_events::cuts::Spacing;
use retrace_events::tokens::{FourCharacters, count_sent};
use retrace_events::{Boundary, Event, Header, Outcome, ToolCall, ToolResult, Trajectory};

fn main() -> Result<(), Box<dyn Error>> {
    // An agent can append each event as it comes; a run that dies in the middle of a line loses that line only.
    let mut writer = RecordingWriter::new(Vec::new(), &Header::new("shop-1"))?;
    writer.write(&Event::request("Keep every item in stock."))?;
    for (i, (tool, arguments, outcome, text)) in [
        ("login", r#"{"user": "ada"}"#, Outcome::Ok, "s-4821"),
        ("stock", r#"{"session": "s-4821", "item": "tea"}"#, Outcome::Ok, "0 left"),
        ("reorder", r#"{"session": "s-4812", "item": "tea"}"#, Outcome::Error, "invalid session"),
        ("reorder", r#"{"session": "s-4821", "item": "tea"}"#, Outcome::Ok, "ordered"),
        ("stock", r#"{"item": "tea", "session": "s-4821"}"#, Outcome::Ok, "20 left"),
    ]
    .into_iter()
    .enumerate()
    {
        let call = ToolCall::new(format!("c{i}"), tool, arguments);
        let result = ToolResult::text_result(&call, outcome, text);
        writer.write(&Event::calls([call]))?;
        writer.write(&Event::results([result]))?;
    }
    writer.write(&Event::answer("Tea is in stock again."))?;
    let lines = writer.finish()?;
    println!("{}", String::from_utf8_lossy(&lines));

    let read = read_recording(&lines[..], "shop-1.jsonl")?;
    assert_eq!(read.torn_line, None);
    let trajectory = Arc::new(Trajectory::new(read.recording));
    println!("{}: {} rounds, {} actions", trajectory.id(), trajectory.n_rounds(), trajectory.actions().len());
    for (i, recorded) in trajectory.actions().iter().enumerate() {
        let blocked = if recorded.action.is_blocked() { " blocked" } else { "" };
        // The signature tells that the last call is the second one again, though its arguments are spelt otherwise.
        let repeat = if trajectory.has_executed(recorded.action.signature(), i) { " repeated" } else { "" };
        println!("  {}{blocked}{repeat}", recorded.action.signature());
    }

    for point in trajectory.choose_cuts(&Spacing::new(2, 1)?).cuts {
        let boundary = Boundary::new(&trajectory, point.cut)?;
        let tokens = count_sent(&FourCharacters, &boundary.history());
        println!("cut after {} events: {} actions, about {} tokens", point.cut, boundary.executed(), tokens.0);
    }
    Ok(())
}
