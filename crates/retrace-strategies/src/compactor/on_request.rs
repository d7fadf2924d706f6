//! Compaction on request: a model wishes for it through a tool `compact_context`, and has it before the next request.

use retrace_events::tokens::{TokenCounter, Tokens};
use retrace_events::{Extra, History, Outcome, ToolCall, ToolResult, ToolSpec};
use serde::Deserialize;
use serde_json::json;

use super::Compactor;

/// The name of the tool.
const TOOL: &str = "compact_context";

/// When a model may wish for a compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OnRequest {
    /// A smaller history is not compacted.
    #[serde(deserialize_with = "tokens")]
    pub min_tokens: Tokens,
    /// So many wishes are granted to one conversation.
    pub max_per_run: usize,
}

fn tokens<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Tokens, D::Error> {
    u64::deserialize(deserializer).map(Tokens)
}

/// Why a wish is not granted; the text is the tool's answer to the model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WishRefused {
    /// The loop grants none.
    #[error("compaction on request is not configured")]
    NotConfigured,
    /// There is little to compact.
    #[error("the context has about {} tokens, and is compacted from {} on", size.0, min.0)]
    TooSmall {
        /// What the history has.
        size: Tokens,
        /// What it must have.
        min: Tokens,
    },
    /// All wishes are used up.
    #[error("the context was compacted on request {max} times, which is all that is allowed")]
    UsedUp {
        /// How many there were.
        max: usize,
    },
    /// The same was wished for already.
    #[error("the context is about to be compacted already")]
    Pending,
}

/// The wishes of a conversation.
#[derive(Clone, Debug)]
pub(super) struct Wishes {
    limits: OnRequest,
    /// The one that is to be granted before the next request.
    pending: Option<Wish>,
    n_granted: usize,
}

/// A wish for a compaction.
#[derive(Clone, Debug)]
pub(super) struct Wish {
    /// What is to be kept in view.
    focus: Option<String>,
}

impl Wish {
    pub(super) fn focus(&self) -> Option<&str> {
        self.focus.as_deref()
    }
}

impl Wishes {
    pub(super) fn take(&mut self) -> Option<Wish> {
        self.pending.take()
    }

    /// Counts a wish for which a compaction was made. One whose history was due anyway lapses and is not counted; it waits
    /// for the next request where that compaction failed.
    pub(super) fn settle(&mut self, wish: Wish, lapses: bool, failed: bool) {
        if !lapses {
            self.n_granted += 1;
        } else if failed {
            self.pending = Some(wish);
        }
    }

    pub(super) fn is_pending(&self) -> bool {
        self.pending.is_some()
    }
}

/// The arguments of the tool.
#[derive(Deserialize)]
struct Arguments {
    focus: Option<String>,
}

impl Compactor {
    /// Grants wishes of the model, within these limits.
    #[must_use]
    pub fn on_request(mut self, limits: OnRequest) -> Self {
        self.wishes = Some(Wishes { limits, pending: None, n_granted: 0 });
        self
    }

    /// The tool through which a model wishes for a compaction, for a loop to offer; none where no wish is granted.
    pub fn tool(&self) -> Option<ToolSpec> {
        self.wishes.as_ref()?;
        let focus = json!({
            "type": "string",
            "description": "What you need above all to go on, such as the task at hand. Left out, nothing is put first.",
        });
        Some(ToolSpec {
            name: TOOL.to_owned(),
            description: Some(
                "Shortens your context before your next turn: older messages are summarized or dropped. Call it when a piece \
                 of work is done and its details are no longer needed."
                    .to_owned(),
            ),
            parameters: json!({
                "type": "object",
                "properties": {"focus": focus},
                "additionalProperties": false,
            }),
            extra: Extra::default(),
        })
    }

    /// Answers a call of that tool, which takes or refuses a wish; nothing where the call is another one. `history` is the
    /// one that ends with the call.
    pub fn answer(&mut self, call: &ToolCall, history: &History, counter: &dyn TokenCounter) -> Option<ToolResult> {
        self.wishes.as_ref().filter(|_| call.name == TOOL)?;
        // A model that has nothing to say may send no arguments at all.
        let arguments = if call.arguments.trim().is_empty() { "{}" } else { &call.arguments };
        let answer = match serde_json::from_str(arguments) {
            Err(error) => Err(format!("the arguments are not an object with an optional text `focus`: {error}")),
            Ok(Arguments { focus }) => self.wish(focus, history, counter).map_err(|refused| refused.to_string()),
        };
        let (outcome, text) = match answer {
            Ok(()) => (Outcome::Ok, "The context is compacted before your next turn.".to_owned()),
            Err(reason) => (Outcome::Error, format!("Not compacted: {reason}.")),
        };
        Some(ToolResult { own: true, ..ToolResult::text_result(call, outcome, text) })
    }

    /// Takes a wish for a compaction before the next request, whatever the trigger says, so that the call that wished for
    /// it and its result are there to be kept. Where the trigger has the history compacted by then, the wish lapses, and
    /// is not counted.
    ///
    /// # Errors
    /// When it is not granted, with what to answer the model.
    pub fn wish(
        &mut self,
        focus: Option<String>,
        history: &History,
        counter: &dyn TokenCounter,
    ) -> Result<(), WishRefused> {
        let size = self.size(history, counter);
        let wishes = self.wishes.as_mut().ok_or(WishRefused::NotConfigured)?;
        let OnRequest { min_tokens: min, max_per_run: max } = wishes.limits;
        if wishes.pending.is_some() {
            return Err(WishRefused::Pending);
        }
        if wishes.n_granted >= max {
            return Err(WishRefused::UsedUp { max });
        }
        if size < min {
            return Err(WishRefused::TooSmall { size, min });
        }
        let focus = focus.filter(|focus| !focus.trim().is_empty());
        wishes.pending = Some(Wish { focus });
        Ok(())
    }
}
