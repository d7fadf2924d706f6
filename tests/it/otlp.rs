//! What a collector receives of a compaction over OTLP.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use opentelemetry_otlp::{SpanExporter, WithExportConfig};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use retrace_events::{Event, History};
use retrace_strategies::{ClampOversizedMessages, CompactContext, Compactor, Outcome, SlidingWindow, Strategy};

#[path = "../../examples/otlp.rs"]
#[expect(dead_code, reason = "the conversation of the example is for its `main`")]
mod example;

/// A collector on loopback: its address, and the bodies that it was sent.
fn collector() -> (String, Receiver<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}/v1/traces", listener.local_addr().unwrap());
    let (received, bodies) = channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.unwrap());
            let mut head = Vec::new();
            while head.last().is_none_or(|line: &String| line != "\r\n") {
                let mut line = String::new();
                stream.read_line(&mut line).unwrap();
                head.push(line.to_ascii_lowercase());
            }
            assert!(head[0].starts_with("post /v1/traces "), "{head:?}");
            assert!(head.contains(&"content-type: application/x-protobuf\r\n".to_owned()), "{head:?}");
            let length = head.iter().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
            let mut body = vec![0; length.trim().parse().unwrap()];
            stream.read_exact(&mut body).unwrap();
            // Kept before it is acknowledged: what was sent is there once the exporter is done.
            received.send(body).unwrap();
            stream.get_mut().write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n").unwrap();
        }
    });
    (endpoint, bodies)
}

/// The attributes that are ours, by name.
fn ours(attributes: &[KeyValue]) -> Vec<(&str, Value)> {
    let ours = attributes.iter().filter(|it| it.key.starts_with("gen_ai.") || it.key.starts_with("compaction."));
    let mut ours: Vec<_> = ours.map(|it| (it.key.as_str(), it.value.clone().unwrap().value.unwrap())).collect();
    ours.sort_by_key(|(key, _)| *key);
    ours
}

fn look(strategy: impl Strategy + 'static, history: &mut History) -> Outcome {
    let mut compactor = Compactor::new(Arc::new(strategy));
    pollster::block_on(compactor.before_request(history, &mut CompactContext::without_model())).outcome
}

#[test]
fn a_compaction_is_one_span_with_its_sizes_and_its_receipt_and_nothing_of_the_content() {
    let (endpoint, bodies) = collector();
    example::with_crypto();
    let exporter = SpanExporter::builder().with_http().with_endpoint(endpoint).build().unwrap();
    let (subscriber, provider) = example::exporting(exporter);
    tracing::subscriber::with_default(subscriber, || {
        let window = |max| SlidingWindow {
            max_messages: Some(max),
            keep_messages: 3,
            receipts: true,
            ..SlidingWindow::default()
        };
        let mut history =
            History::from((0..6).map(|n| Event::request(format!("earl grey {n:030}"))).collect::<Vec<_>>());
        assert_eq!(look(window(6), &mut history), Outcome::NotDue);
        let clamp = ClampOversizedMessages { max_part_chars: Some(100), ..ClampOversizedMessages::default() };
        assert_eq!(look(clamp, &mut history), Outcome::Unchanged);
        assert!(matches!(look(window(5), &mut history), Outcome::Compacted { .. }));
    });
    provider.shutdown().unwrap();

    let bodies: Vec<_> = bodies.try_iter().collect();
    let requests = bodies.iter().map(|body| ExportTraceServiceRequest::decode(&body[..]).unwrap());
    let scopes = requests.flat_map(|request| request.resource_spans).flat_map(|resource| resource.scope_spans);
    let spans: Vec<Span> = scopes.flat_map(|scope| scope.spans).collect();
    let [span] = &spans[..] else { panic!("{spans:#?}") };
    assert_eq!(span.name, "compact_messages");
    let strategy = Value::StringValue("SlidingWindow".to_owned());
    let wanted = [
        ("compaction.messages_after", Value::IntValue(4)),
        ("compaction.messages_before", Value::IntValue(6)),
        ("compaction.strategy", strategy.clone()),
        ("compaction.tokens_after", Value::IntValue(46)),
        ("compaction.tokens_before", Value::IntValue(60)),
        ("gen_ai.conversation.compacted", Value::BoolValue(true)),
    ];
    assert_eq!(ours(&span.attributes), wanted);
    let [event] = &span.events[..] else { panic!("{span:#?}") };
    assert_eq!(event.name, "compaction.receipt");
    let wanted = [
        ("compaction.receipt.messages_dropped", Value::IntValue(3)),
        ("compaction.receipt.strategy", strategy),
        ("compaction.receipt.tokens_dropped", Value::IntValue(30)),
    ];
    assert_eq!(ours(&event.attributes), wanted);
    let words = b"earl grey";
    assert!(bodies.iter().all(|body| !body.windows(words.len()).any(|it| it == words)));
}

#[test]
fn the_example_of_the_documents_is_the_one_that_is_built() {
    let documents = include_str!("../../docs/running-agents.md");
    let (_, section) = documents.split_once("\n## Sent to a collector\n").unwrap();
    let (_, shown) = section.split_once("```rust\n").unwrap();
    let (shown, _) = shown.split_once("```").unwrap();
    let built = include_str!("../../examples/otlp.rs").lines();
    let mut built = built.map(|line| line.strip_prefix("pub(crate) ").unwrap_or(line));
    for line in shown.lines() {
        assert!(built.any(|it| it == line), "`{line}`");
    }
}
