//! Histories for property tests, and how their characters are counted.

use proptest::prelude::*;
use retrace_events::tokens::{FourCharacters, TokenCounter, Tokens};
use retrace_events::{
    Event, Extra, History, Marks, Media, MediaKind, MediaSource, Outcome, Part, PartBody, Raw, Request, Response,
    Summary, Thinking, ToolCall, ToolResult, Usage, UsageEvent,
};

/// One token for every character, so that nothing is rounded.
pub(crate) struct Characters;

impl TokenCounter for Characters {
    fn name(&self) -> &str {
        "characters"
    }

    fn units(&self, text: &str) -> u64 {
        FourCharacters.units(text)
    }

    fn tokens(&self, units: u64) -> Tokens {
        Tokens(units)
    }
}

fn word() -> impl Strategy<Value = String> {
    prop_oneof![4 => "[a-e]{1,3}( [a-e\n]{1,3})?", 1 => "[é世😀\u{301}\u{200d}<>]{1,4}"]
}

fn media() -> impl Strategy<Value = Part> {
    let kind = prop::sample::select(vec![MediaKind::Image, MediaKind::Audio, MediaKind::Document]);
    (kind, "[a-c]").prop_map(|(kind, name)| {
        PartBody::Media(Media { kind, media_type: "a/b".to_owned(), source: MediaSource::Url(name) }).into()
    })
}

fn request_part() -> impl Strategy<Value = Part> {
    prop_oneof![
        8 => word().prop_map(Part::text),
        4 => word().prop_map(Part::system),
        2 => word().prop_map(|text| Part::text(text).pinned()),
        2 => word().prop_map(|text| Part::system(text).pinned()),
        2 => media(),
        1 => media().prop_map(Part::pinned),
    ]
}

/// A text that a strategy made.
fn made_part() -> impl Strategy<Value = Part> {
    let [mut receipt, mut kept, mut warning] = <[Marks; 3]>::default();
    receipt.set_receipt(Raw::of(&serde_json::json!({"events": 3})).expect("it is JSON"));
    kept.kept = true;
    warning.set_origin("limit_warner");
    warning.set_scope("request");
    (word(), prop::sample::select(vec![receipt, kept, warning]))
        .prop_map(|(text, marks)| Part { marks, ..Part::text(text) })
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
    let outcome = prop_oneof![3 => Just(Outcome::Ok), 3 => Just(Outcome::Error), 1 => Just(Outcome::NotFound)];
    let content = prop::collection::vec(prop_oneof![4 => word().prop_map(Part::text), 1 => media()], 0..3);
    ("c[0-3]", "f|g", content, outcome).prop_map(|(id, name, content, outcome)| ToolResult {
        content: content.into(),
        error: outcome.is_blocked().then(|| "E".to_owned()),
        ..ToolResult::text_result(&ToolCall::new(id, name, ""), outcome, "")
    })
}

fn usage() -> impl Strategy<Value = Usage> {
    let tokens = || prop_oneof![6 => 0_u64..40, 1 => Just(u64::MAX)];
    (tokens(), tokens()).prop_map(|(input_tokens, output_tokens)| Usage {
        input_tokens,
        output_tokens,
        ..Usage::default()
    })
}

fn event() -> impl Strategy<Value = Event> {
    let request = |content: Vec<Part>| Event::Request(Request { content: content.into(), ..Request::default() });
    prop_oneof![
        4 => prop::collection::vec(request_part(), 0..3).prop_map(request),
        2 => made_part().prop_map(move |part| request(vec![part])),
        8 => (prop::collection::vec(response_part(), 0..4), prop::option::weighted(0.3, usage()))
            .prop_map(|(content, usage)| Event::Response(Response { content: content.into(), usage, ..Response::default() })),
        8 => prop::collection::vec(result(), 0..4).prop_map(Event::results),
        2 => word().prop_map(|text| Event::Summary(Summary {
            content: [Part::text(text)].into(),
            replaced: 2,
            ..Summary::default()
        })),
        2 => usage().prop_map(|usage| Event::Usage(UsageEvent {
            kind: "chat".to_owned(),
            usage,
            model: None,
            extra: Extra::default(),
        })),
    ]
}

/// Up to 14 events, with ids used again, calls without a result and results without a call, media, and what strategies
/// leave behind.
pub(crate) fn history() -> impl Strategy<Value = History> {
    prop::collection::vec(event(), 0..14).prop_map(History::from)
}
