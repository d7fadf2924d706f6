//! Recordings of growing length: the time of everything must grow no faster than they do.
//!
//! Read the MB/s of `read_recording` beside those of `json_values`, the floor that any reader of the same lines has.

use std::fmt::Write as _;
use std::hint::black_box;
use std::sync::Arc;

use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};
use retrace_events::codec::{read_recording, write_recording};
use retrace_events::cuts::{Spacing, resumable_cuts};
use retrace_events::pairing::pair;
use retrace_events::tokens::{FourCharacters, count_events};
use retrace_events::{
    Boundary, Event, Extra, Header, Outcome, Part, PartBody, Raw, Recording, Response, Signature, ToolCall, ToolResult,
    Trajectory, Usage,
};

const SIZES: [usize; 3] = [1_000, 10_000, 100_000];

fn main() {
    divan::main();
}

/// A customer service's run of `n_events` events: rounds of a call of some 200 bytes and a result of 1 to 2 kB of JSON,
/// every tenth of them before a user's question and an answer.
fn recording(n_events: usize) -> Recording {
    let events = (0..).flat_map(|i| {
        let question =
            (i % 10 == 0).then(|| Event::request(format!("And reservation {i}? I'd like to \"upgrade\" it.")));
        let answer = (i % 10 == 9).then(|| response([Part::text("It is done.\n\nCan I help you with anything else?")]));
        let call = ToolCall::new(format!("call_{i:024x}"), "update_reservation_flights", arguments(i));
        let mut result = ToolResult::text_result(&call, Outcome::Ok, reservation(i));
        result.extra.push("duration_ms", json(&(i % 1000)));
        let call = response([Part::text("Let me change the flights first."), PartBody::ToolCall(call).into()]);
        question.into_iter().chain([call, Event::results([result])]).chain(answer)
    });
    Recording::new(Header::new("airline-1"), events.take(n_events))
}

fn response(content: impl IntoIterator<Item = Part>) -> Event {
    let usage = Usage { input_tokens: 4821, output_tokens: 57, ..Usage::default() };
    let mut extra = Extra::default();
    extra.push("timestamp", json("2024-05-15T15:00:00Z"));
    Event::Response(Response {
        content: content.into_iter().collect(),
        model: Some("gpt-4o".to_owned()),
        usage: Some(usage),
        extra,
        ..Response::default()
    })
}

fn json(value: &(impl serde::Serialize + ?Sized)) -> Raw {
    Raw::of(value).expect("a number or a text is JSON")
}

fn arguments(i: usize) -> String {
    format!(
        r#"{{"reservation_id":"R{i:05}","cabin":"economy","flights":[{{"flight_number":"HAT{:03}","date":"2024-05-{:02}"}},{{"flight_number":"HAT{:03}","date":"2024-05-{:02}"}}],"payment_id":"credit_card_{}"}}"#,
        i % 300,
        i % 28 + 1,
        i % 299,
        i % 27 + 1,
        i % 97
    )
}

fn reservation(i: usize) -> String {
    let mut text =
        format!(r#"{{"reservation_id": "R{i:05}", "user_id": "omar_davis_3817", "cabin": "economy", "flights": ["#);
    for leg in 0..5 + i % 6 {
        let separator = if leg == 0 { "" } else { ", " };
        write!(
            text,
            r#"{separator}{{"origin": "ORD", "destination": "SFO", "flight_number": "HAT{:03}", "date": "2024-05-{:02}", "price": {}, "status": "on time"}}"#,
            (i + leg) % 300,
            leg + 1,
            (i * 7 + leg) % 400
        )
        .expect("a text takes what is written");
    }
    text.push_str(r#"], "insurance": "no", "note": "Der Flug nach Zürich fällt aus."}"#);
    text
}

fn lines(recording: &Recording) -> Vec<u8> {
    let mut lines = Vec::new();
    write_recording(&mut lines, recording).expect("a vector takes what is written");
    lines
}

#[divan::bench(args = SIZES)]
fn read_recording_of_n_events(bencher: Bencher, n_events: usize) {
    let lines = lines(&recording(n_events));
    bencher
        .counter(BytesCount::of_slice(&lines))
        .bench(|| read_recording(&lines[..], "bench").expect("it was written so"));
}

/// The floor of reading: the same lines as `serde_json` values.
#[divan::bench(args = SIZES)]
fn json_values_of_n_events(bencher: Bencher, n_events: usize) {
    let lines = lines(&recording(n_events));
    bencher.counter(BytesCount::of_slice(&lines)).bench(|| {
        let values = serde_json::Deserializer::from_slice(&lines).into_iter::<serde_json::Value>();
        values.collect::<Result<Vec<_>, _>>().expect("it was written so")
    });
}

/// The floor of reading, without keeping anything.
#[divan::bench(args = SIZES)]
fn json_ignored_of_n_events(bencher: Bencher, n_events: usize) {
    let lines = lines(&recording(n_events));
    bencher.counter(BytesCount::of_slice(&lines)).bench(|| {
        let values = serde_json::Deserializer::from_slice(&lines).into_iter::<serde::de::IgnoredAny>();
        values.filter(Result::is_ok).count()
    });
}

#[divan::bench(args = SIZES)]
fn write_recording_of_n_events(bencher: Bencher, n_events: usize) {
    let recording = recording(n_events);
    let mut sink = lines(&recording);
    bencher.counter(BytesCount::of_slice(&sink)).bench_local(|| {
        sink.clear();
        write_recording(&mut sink, &recording).expect("a vector takes what is written");
    });
}

#[divan::bench(args = SIZES)]
fn trajectory_of_n_events(bencher: Bencher, n_events: usize) {
    let recording = recording(n_events);
    bencher.counter(ItemsCount::new(n_events)).with_inputs(|| recording.clone()).bench_values(Trajectory::new);
}

#[divan::bench(args = SIZES)]
fn pair_n_events(bencher: Bencher, n_events: usize) {
    let recording = recording(n_events);
    bencher
        .counter(ItemsCount::new(n_events))
        .bench(|| pair(recording.events.iter().map(|event| &**event)).calls.len());
}

/// All calls have one id, as with servers that number the calls of each response.
#[divan::bench(args = SIZES)]
fn pair_n_events_of_one_call_id(bencher: Bencher, n_events: usize) {
    let call = ToolCall::new("0", "list", "{}");
    let calls = std::iter::repeat_n(Event::calls([call.clone()]), n_events / 2);
    let results = std::iter::repeat_n(Event::results([ToolResult::text_result(&call, Outcome::Ok, "")]), n_events / 2);
    let events: Vec<_> = calls.chain(results).collect();
    bencher.counter(ItemsCount::new(n_events)).bench(|| pair(&events).calls.len());
}

#[divan::bench(args = SIZES)]
fn cuts_of_n_events(bencher: Bencher, n_events: usize) {
    let recording = recording(n_events);
    let spacing = Spacing::new(5, 3).expect("neither is 0");
    bencher.counter(ItemsCount::new(n_events)).bench(|| {
        let points = resumable_cuts(recording.events.iter().map(|event| &**event));
        spacing.choose(&points, n_events)
    });
}

/// What a verification asks of each of its boundaries must not grow with the recording.
#[divan::bench(args = SIZES)]
fn boundary_amid_n_events(bencher: Bencher, n_events: usize) {
    let trajectory = Arc::new(Trajectory::new(recording(n_events)));
    let points = trajectory.resumable_points();
    let cut = points[points.len() / 2].cut;
    let signature = Signature::of("update_reservation_flights", &arguments(7));
    bencher.bench(|| {
        let boundary = Boundary::new(&trajectory, cut).expect("it is a resumable point");
        (boundary.history().len(), boundary.has_executed(black_box(&signature)))
    });
}

#[divan::bench(args = SIZES)]
fn signature_of_n_calls(bencher: Bencher, n_calls: usize) {
    let arguments: Vec<_> = (0..n_calls).map(arguments).collect();
    bencher.counter(ItemsCount::new(n_calls)).bench(|| {
        for arguments in &arguments {
            black_box(Signature::of("update_reservation_flights", arguments));
        }
    });
}

#[divan::bench(args = SIZES)]
fn count_tokens_of_n_events(bencher: Bencher, n_events: usize) {
    let recording = recording(n_events);
    bencher
        .counter(ItemsCount::new(n_events))
        .bench(|| count_events(&FourCharacters, recording.events.iter().map(|event| &**event)));
}
