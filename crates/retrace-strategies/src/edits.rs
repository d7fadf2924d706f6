//! Rewriting events in place: what is not touched stays shared.

use std::sync::Arc;

use retrace_events::{Event, History, Part, ToolResult};

/// A history of which some events are rewritten.
pub(crate) struct Edits {
    events: Vec<Arc<Event>>,
    is_changed: bool,
}

impl Edits {
    pub(crate) fn of(history: &History) -> Self {
        Self { events: history.iter().map(Arc::clone).collect(), is_changed: false }
    }

    /// Rewrites the result at this index of the `tool_results` event at another.
    pub(crate) fn rewrite_result(&mut self, event: usize, index: usize, rewrite: impl FnOnce(&mut ToolResult)) {
        if let Event::ToolResults(round) = Arc::make_mut(&mut self.events[event])
            && let Some(result) = round.results.get_mut(index)
        {
            rewrite(result);
            self.is_changed = true;
        }
    }

    /// Rewrites the part at this index of the response at another.
    pub(crate) fn rewrite_part(&mut self, event: usize, index: usize, rewrite: impl FnOnce(&mut Part)) {
        if let Event::Response(response) = Arc::make_mut(&mut self.events[event])
            && let Some(part) = response.content.get_mut(index)
        {
            rewrite(part);
            self.is_changed = true;
        }
    }

    /// The history, if anything was rewritten.
    pub(crate) fn finish(self) -> Option<History> {
        self.is_changed.then(|| History::new(self.events))
    }
}

/// Replaces the content of a result by a placeholder. The outcome stays, so that a model still learns of a failure.
pub(crate) fn blank(result: &mut ToolResult, placeholder: &str) {
    result.content = vec![Part::text(placeholder)];
}

/// Whether the content of a result is the placeholder.
pub(crate) fn is_blank(result: &ToolResult, placeholder: &str) -> bool {
    matches!(&result.content[..], [part] if part.as_text() == Some(placeholder))
}
