//! Any recording, for the laws of the codec.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use crate::event::{
    Event, Outcome, OutcomeSource, Request, Response, Summary, ToolResult, ToolResults, Usage, UsageEvent,
};
use crate::few::Few;
use crate::part::{Marks, Media, MediaKind, MediaSource, Part, PartBody, Thinking, ToolCall};
use crate::raw::{Extra, Raw};
use crate::recording::{Header, Recording, ToolSpec};

/// Every field of the format, wherever it stands.
pub(super) const FIELDS: &str = "type version id task instructions model tools name description parameters content usage \
    provider_data replaced results kind text signature arguments rebuilt media_type data url pinned kept origin scope \
    receipt call_id outcome error outcome_from own input_tokens output_tokens cache_read_tokens cache_write_tokens";

pub(super) fn any_recording() -> impl Strategy<Value = Recording> {
    (header(), vec(event(), 0..6)).prop_map(|(header, events)| Recording::new(header, events))
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        "[a-z ]{1,12}",
        "\\PC{0,6}",
        select(vec![
            "\"\\/\u{8}\u{c}\n\r\t",
            "\0\u{1b}[31m\u{7f}\u{9b}",
            "é店😀\u{2028}\u{feff}",
            "\\u0041 {\"a\":[1]}"
        ])
        .prop_map(str::to_owned),
    ]
}

/// A JSON text as no program would lay it out twice.
fn json() -> impl Strategy<Value = String> {
    let scalars = select(vec![
        "null",
        "true",
        "-0",
        "1.00",
        "1E+400",
        "0.1e-7",
        "123456789012345678901234567890",
        r#""\u00e9\/\n""#,
        r#""\ud83d""#,
        r#""é店😀""#,
    ]);
    scalars.prop_map(str::to_owned).prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(|items| format!("[ {} ]", items.join(" ,"))),
            vec(inner, 0..3).prop_map(|items| {
                // One key, several times.
                let members: Vec<_> = items.iter().map(|item| format!(r#""k\u0065y" :{item}"#)).collect();
                format!("{{{}}}", members.join(", "))
            }),
        ]
    })
}

fn raw() -> impl Strategy<Value = Raw> {
    json().prop_map(|json| serde_json::from_str(&json).unwrap())
}

fn extra() -> impl Strategy<Value = Extra> {
    let key = text().prop_filter("an unknown field", |key| !FIELDS.split_whitespace().any(|field| field == key));
    vec((key, raw()), 0..3).prop_map(|fields| {
        let mut extra = Extra::default();
        fields.into_iter().for_each(|(key, value)| extra.push(key, value));
        extra
    })
}

fn header() -> impl Strategy<Value = Header> {
    let schema = json().prop_map(|json| {
        // What a schema holds is read as values, so it is made of what they hold.
        serde_json::from_str(&json).unwrap_or_else(|_| serde_json::json!({"type": "object"}))
    });
    let tool = (text(), option::of(text()), schema, extra())
        .prop_map(|(name, description, parameters, extra)| ToolSpec { name, description, parameters, extra });
    (text(), option::of(text()), option::of(text()), option::of(text()), vec(tool, 0..3), extra()).prop_map(
        |(id, task, instructions, model, tools, extra)| Header { id, task, instructions, model, tools, extra },
    )
}

fn event() -> impl Strategy<Value = Event> {
    let system = text().prop_map(|text| PartBody::System(text.into()));
    let request = (content(prop_oneof![plain(), system, media()]), extra())
        .prop_map(|(content, extra)| Event::Request(Request { content, extra }));
    let response = content(prop_oneof![plain(), thinking(), call()]);
    let response = (response, option::of(text()), option::of(usage()), option::of(raw()), extra()).prop_map(
        |(content, model, usage, provider_data, extra)| {
            // The field is optional, so null says that it is not there.
            let provider_data = provider_data.filter(|data| data.get() != "null");
            Event::Response(Response { content, model, usage, provider_data, extra })
        },
    );
    let results = (vec(result(), 0..3), extra())
        .prop_map(|(results, extra)| Event::ToolResults(ToolResults { results: results.into(), extra }));
    let summary = (content(plain()), any::<u64>(), extra())
        .prop_map(|(content, replaced, extra)| Event::Summary(Summary { content, replaced, extra }));
    let usage = (text(), usage(), option::of(text()), extra())
        .prop_map(|(kind, usage, model, extra)| Event::Usage(UsageEvent { kind, usage, model, extra }));
    prop_oneof![request, response, results, summary, usage]
}

fn usage() -> impl Strategy<Value = Usage> {
    (any::<u64>(), any::<u64>(), option::of(any::<u64>()), option::of(any::<u64>()), extra()).prop_map(
        |(input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, extra)| Usage {
            input_tokens,
            output_tokens,
            cache_read_tokens,
            cache_write_tokens,
            extra,
        },
    )
}

fn result() -> impl Strategy<Value = ToolResult> {
    use OutcomeSource::{Event, ExitCode, Flag, Rule, Unknown};
    let outcome = select(vec![Outcome::Ok, Outcome::Error, Outcome::NotFound]);
    let outcome_from = option::of(select(vec![Flag, Event, ExitCode, Rule, Unknown]));
    let content = content(prop_oneof![plain(), media()]);
    (text(), text(), content, outcome, option::of(text()), outcome_from, any::<bool>(), extra()).prop_map(
        |(call_id, name, content, outcome, error, outcome_from, own, extra)| ToolResult {
            call_id: call_id.into(),
            name: name.into(),
            content,
            outcome,
            error,
            outcome_from,
            own,
            extra,
        },
    )
}

fn content(body: impl Strategy<Value = PartBody>) -> impl Strategy<Value = Few<Part>> {
    let receipt = option::of(raw().prop_filter("null is no receipt", |raw| raw.get() != "null"));
    let marks = (any::<bool>(), any::<bool>(), option::of(text()), option::of(text()), receipt).prop_map(
        |(pinned, kept, origin, scope, receipt)| {
            let mut marks = Marks::default();
            (marks.pinned, marks.kept) = (pinned, kept);
            origin.into_iter().for_each(|origin| marks.set_origin(origin));
            scope.into_iter().for_each(|scope| marks.set_scope(scope));
            receipt.into_iter().for_each(|receipt| marks.set_receipt(receipt));
            marks
        },
    );
    let marks = prop_oneof![Just(Marks::default()), marks];
    vec((body, marks, extra()).prop_map(|(body, marks, extra)| Part { body, marks, extra }), 0..3).prop_map(Few::from)
}

fn plain() -> impl Strategy<Value = PartBody> {
    text().prop_map(|text| PartBody::Text(text.into()))
}

fn media() -> impl Strategy<Value = PartBody> {
    let kind = select(vec![MediaKind::Image, MediaKind::Audio, MediaKind::Document]);
    let source = prop_oneof![text().prop_map(MediaSource::Data), text().prop_map(MediaSource::Url)];
    (kind, text(), source).prop_map(|(kind, media_type, source)| PartBody::Media(Media { kind, media_type, source }))
}

fn thinking() -> impl Strategy<Value = PartBody> {
    (text(), option::of(text())).prop_map(|(text, signature)| PartBody::Thinking(Thinking { text, signature }))
}

fn call() -> impl Strategy<Value = PartBody> {
    (text(), text(), text(), any::<bool>())
        .prop_map(|(id, name, arguments, rebuilt)| ToolCall { rebuilt, ..ToolCall::new(id, name, arguments) })
        .prop_map(PartBody::ToolCall)
}
