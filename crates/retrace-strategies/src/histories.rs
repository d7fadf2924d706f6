//! Histories for property tests.

use proptest::prelude::*;
use retrace_events::{
    Event, Extra, History, Outcome, Part, PartBody, Request, Response, Summary, Thinking, ToolCall, ToolResult, Usage,
    UsageEvent,
};

fn word() -> impl Strategy<Value = String> {
    "[a-e]{1,3}( [a-e\n]{1,3})?"
}

fn request_part() -> impl Strategy<Value = Part> {
    prop_oneof![
        4 => word().prop_map(Part::text),
        2 => word().prop_map(Part::system),
        1 => word().prop_map(|text| Part::text(text).pinned()),
        1 => word().prop_map(|text| Part::system(text).pinned()),
    ]
}

fn response_part() -> impl Strategy<Value = Part> {
    prop_oneof![
        1 => word().prop_map(Part::text),
        1 => word().prop_map(|text| PartBody::Thinking(Thinking { text, signature: None }).into()),
        3 => ("c[0-3]", "f|g", word()).prop_map(|(id, name, arguments)| {
            PartBody::ToolCall(ToolCall::new(id, name, arguments)).into()
        }),
    ]
}

fn result() -> impl Strategy<Value = ToolResult> {
    ("c[0-3]", "f|g", word(), prop_oneof![Just(Outcome::Ok), Just(Outcome::Error)])
        .prop_map(|(id, name, text, outcome)| ToolResult::text_result(&ToolCall::new(id, name, ""), outcome, text))
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        2 => prop::collection::vec(request_part(), 0..3)
            .prop_map(|content| Event::Request(Request { content, ..Request::default() })),
        4 => prop::collection::vec(response_part(), 0..4)
            .prop_map(|content| Event::Response(Response { content, ..Response::default() })),
        4 => prop::collection::vec(result(), 0..4).prop_map(Event::results),
        1 => word().prop_map(|text| Event::Summary(Summary {
            content: vec![Part::text(text)],
            replaced: 2,
            ..Summary::default()
        })),
        1 => Just(Event::Usage(UsageEvent {
            kind: "chat".to_owned(),
            usage: Usage::default(),
            model: None,
            extra: Extra::default(),
        })),
    ]
}

/// Up to 14 events, with ids used again, calls without a result and results without a call.
pub(crate) fn history() -> impl Strategy<Value = History> {
    prop::collection::vec(event(), 0..14).prop_map(History::from)
}
