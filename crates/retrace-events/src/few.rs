//! A list that mostly has one item.

use smallvec::SmallVec;

/// A list that mostly has one item, as the content of an event has one part and a round one result. That one lies in the
/// list itself, so that an event is one piece of memory: what lies elsewhere is waited for, and has to be made.
///
/// Made of a `Vec` or an array by `into`, and collected; else used as a slice.
pub type Few<T> = SmallVec<[T; 1]>;

#[cfg(test)]
mod tests {
    use crate::event::Event;

    #[test]
    fn an_event_of_one_part_is_one_piece_of_memory() {
        let json = r#"[
            {"type":"request","content":"go"},
            {"type":"response","content":[{"type":"tool_call","id":"c1","name":"read","arguments":"{}"}]},
            {"type":"tool_results","results":[{"call_id":"c1","name":"read","content":"a line","outcome":"ok"}]}
        ]"#;
        let events: Vec<Event> = serde_json::from_str(json).expect("they are events");
        assert!(size_of::<Event>() <= 240, "an event has {} bytes", size_of::<Event>());
        for event in events {
            match event {
                Event::Request(request) => assert!(!request.content.spilled()),
                Event::Response(response) => assert!(!response.content.spilled()),
                Event::ToolResults(round) => assert!(!round.results.spilled() && !round.results[0].content.spilled()),
                other => panic!("{other:?} was not there"),
            }
        }
    }
}
