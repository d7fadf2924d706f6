//! The spans of compactions, sent to an OpenTelemetry collector.
//!
//!     OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318 cargo run -p retrace-tests --example otlp

use std::error::Error;
use std::sync::Arc;

use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::SpanExporter;
use opentelemetry_sdk::trace::SdkTracerProvider;
use retrace_events::{Event, History};
use retrace_strategies::{CompactContext, Compactor, SlidingWindow};
use tracing::Subscriber;
use tracing_subscriber::Registry;
use tracing_subscriber::layer::SubscriberExt;

fn main() -> Result<(), Box<dyn Error>> {
    with_crypto();
    let exporter = SpanExporter::builder().with_http().build()?; // OTEL_EXPORTER_OTLP_ENDPOINT says where to
    let (subscriber, provider) = exporting(exporter);
    tracing::subscriber::set_global_default(subscriber)?;
    converse();
    provider.shutdown()?; // sends what is left
    Ok(())
}

/// What collects the spans of a program, and what sends them.
pub(crate) fn exporting(exporter: SpanExporter) -> (impl Subscriber + Send + Sync, SdkTracerProvider) {
    let provider = SdkTracerProvider::builder().with_batch_exporter(exporter).build();
    let spans = tracing_opentelemetry::layer().with_tracer(provider.tracer("agent"));
    (Registry::default().with(spans), provider)
}

/// An HTTP client that is built without a crypto provider, as in this workspace, needs one to be there.
pub(crate) fn with_crypto() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// A conversation whose history is compacted: a span each time.
fn converse() {
    let window = SlidingWindow { max_messages: Some(6), keep_messages: 4, receipts: true, ..SlidingWindow::default() };
    let mut compactor = Compactor::new(Arc::new(window));
    let mut history = History::from(vec![Event::request("Tell me of tea.")]);
    for n in 1..=10 {
        let mut cx = CompactContext::without_model();
        pollster::block_on(compactor.before_request(&mut history, &mut cx));
        history.push(Event::answer(format!("Tea number {n} is green.")));
        history.push(Event::request("And the next?"));
    }
}
