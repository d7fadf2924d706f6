//! What is traced of a compaction.

use retrace_events::History;
use retrace_events::tokens::TokenCounter;
use tracing::field::Empty;
use tracing::{Level, event, info_span};

use super::Sizes;
use super::early::Background;
use crate::receipt::new_receipts;
use crate::strategy::Strategy;

/// What a span says beside what was done.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cause {
    /// Whether the model wished for it.
    pub(super) model_requested: bool,
    /// What became of a compaction that was started early.
    pub(super) background: Option<Background>,
}

/// One span for a compaction that changed something, opened and closed at once. Its tokens are by the strategy's own counter,
/// or else by that of the run.
pub(super) fn trace(
    strategy: &dyn Strategy,
    before: &History,
    after: &History,
    counter: &dyn TokenCounter,
    cause: Cause,
) {
    let span = info_span!(
        "compact_messages",
        gen_ai.conversation.compacted = true,
        compaction.strategy = strategy.type_name(),
        compaction.messages_before = Empty,
        compaction.messages_after = Empty,
        compaction.tokens_before = Empty,
        compaction.tokens_after = Empty,
        compaction.model_requested = cause.model_requested.then_some(true),
        compaction.background = cause.background.map(Background::as_str),
    );
    if span.is_disabled() {
        return;
    }
    let sizes = Sizes::of(before, after, strategy.counter().unwrap_or(counter));
    span.record("compaction.messages_before", attribute(sizes.messages_before));
    span.record("compaction.messages_after", attribute(sizes.messages_after));
    span.record("compaction.tokens_before", attribute(sizes.tokens_before.0));
    span.record("compaction.tokens_after", attribute(sizes.tokens_after.0));
    // A span that nobody enters is not exported by all.
    let _entered = span.entered();
    for receipt in new_receipts(before, after) {
        event!(
            name: "compaction.receipt",
            Level::INFO,
            compaction.receipt.strategy = strategy.type_name(),
            compaction.receipt.messages_dropped = attribute(receipt.events),
            compaction.receipt.tokens_dropped = attribute(receipt.tokens),
        );
    }
}

/// A number as OpenTelemetry has it: what is unsigned arrives there as a text.
fn attribute(number: impl TryInto<i64>) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}
