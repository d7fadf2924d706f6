//! Any run of an agent, for the laws of pairing, cutting and reading: few ids, tools and arguments, so that they meet
//! often.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use crate::event::{Event, Outcome, Response, Summary, ToolResult, Usage, UsageEvent};
use crate::part::{Part, PartBody, ToolCall};
use crate::raw::Extra;
use crate::recording::{Header, Recording};

pub(crate) fn any_events() -> impl Strategy<Value = Vec<Event>> {
    let id = || select(vec!["c1", "c2", ""]);
    let tool = || select(vec!["login", "check"]);
    let call = (id(), tool(), select(vec!["{}", "{ }", "{\"room\":7}", "not json"]))
        .prop_map(|(id, name, arguments)| ToolCall::new(id, name, arguments));
    let call_part = call.prop_map(|call| Part::from(PartBody::ToolCall(call)));
    let text_part = select(vec!["hello", ""]).prop_map(Part::text);
    let response = vec(prop_oneof![3 => call_part, 1 => text_part], 0..4)
        .prop_map(|content| Event::Response(Response { content: content.into(), ..Response::default() }));
    let outcome = select(vec![Outcome::Ok, Outcome::Error, Outcome::NotFound]);
    let result = (id(), tool(), outcome, proptest::bool::weighted(0.2)).prop_map(|(id, name, outcome, own)| {
        ToolResult { own, ..ToolResult::text_result(&ToolCall::new(id, name, ""), outcome, "") }
    });
    let results = vec(result, 0..4).prop_map(Event::results);
    let other = select(vec![
        Event::request("go on"),
        Event::Summary(Summary { content: [Part::text("so far")].into(), replaced: 2, extra: Extra::default() }),
        Event::Usage(UsageEvent {
            kind: "compaction".to_owned(),
            usage: Usage::default(),
            model: None,
            extra: Extra::default(),
        }),
    ]);
    vec(prop_oneof![3 => response, 3 => results, 1 => other], 0..12)
}

pub(crate) fn any_run() -> impl Strategy<Value = Recording> {
    any_events().prop_map(|events| Recording::new(Header::new("run-1"), events))
}
