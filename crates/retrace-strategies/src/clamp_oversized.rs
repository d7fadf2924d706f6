//! `clamp_oversized`: the middle cut out of one huge part of a response. Cost: none. Known from pydantic-ai-harness.

use std::borrow::Cow;

use futures_core::future::BoxFuture;
use retrace_events::tokens::{FourCharacters, TokenCounter};
use retrace_events::{Event, History, PartBody};
use serde::{Deserialize, Serialize};

use crate::config::{BadSetting, at_least_one};
use crate::context::CompactContext;
use crate::edits::Edits;
use crate::strategy::{Business, CompactError, Compacted, Strategy};

/// The fewest characters of the mark between head and tail.
const MARKER_CHARS: usize = 38;

/// Arguments that were clamped. What has any other key is found out at that key, and not read to its end.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Clamped<'a> {
    #[serde(rename = "_clamped")]
    text: Cow<'a, str>,
}

/// Cuts the middle out of each text and each call's arguments of a response that are larger than a limit. Reasoning,
/// requests, results and summaries are never touched. It works part by part and has no trigger.
///
/// A limit below head, tail and the mark between them clamps its own output again, for as long as that shrinks it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ClampOversizedMessages {
    /// The most characters of a part.
    pub max_part_chars: Option<usize>,
    /// The most tokens of a part.
    pub max_part_tokens: Option<u64>,
    /// The characters of its start that stay.
    pub keep_head_chars: usize,
    /// The characters of its end that stay.
    pub keep_tail_chars: usize,
    /// Whether arguments of calls are clamped, too. They become an object with one key, `_clamped`.
    pub clamp_tool_call_args: bool,
}

impl Default for ClampOversizedMessages {
    fn default() -> Self {
        Self {
            max_part_chars: None,
            max_part_tokens: None,
            keep_head_chars: 2000,
            keep_tail_chars: 2000,
            clamp_tool_call_args: true,
        }
    }
}

impl ClampOversizedMessages {
    pub(crate) fn check(&self) -> Result<(), BadSetting> {
        at_least_one("max_part_chars", self.max_part_chars)?;
        at_least_one("max_part_tokens", self.max_part_tokens)?;
        if self.max_part_chars.is_none() && self.max_part_tokens.is_none() {
            return Err(BadSetting::new("max_part_chars", "is missing: set it or `max_part_tokens`"));
        }
        Ok(())
    }

    fn clamp(&self, history: &History, counter: &dyn TokenCounter) -> Compacted {
        let mut edits = Edits::of(history, "");
        for (event_idx, event) in history.events().enumerate() {
            let Event::Response(response) = event else { continue };
            for (index, part) in response.content.iter().enumerate() {
                match &part.body {
                    PartBody::Text(text) => {
                        if let Some(text) = self.clamped(text, counter) {
                            edits.replace(event_idx, index, text);
                        }
                    }
                    PartBody::ToolCall(call) if self.clamp_tool_call_args => {
                        if let Some(arguments) = self.clamped_arguments(&call.arguments, counter) {
                            edits.replace(event_idx, index, arguments);
                        }
                    }
                    _ => {}
                }
            }
        }
        edits.finish().map_or(Compacted::Unchanged, Compacted::Changed)
    }

    /// The text with its middle cut out, if it is too large and that makes it shorter.
    fn clamped(&self, text: &str, counter: &dyn TokenCounter) -> Option<String> {
        let n = n_chars(text);
        let is_oversized = self.max_part_chars.is_some_and(|most| n > most)
            || self.max_part_tokens.is_some_and(|most| counter.tokens(counter.units(text)).0 > most);
        let removed = n.checked_sub(self.keep_head_chars.saturating_add(self.keep_tail_chars)).filter(|&n| n > 0)?;
        if !is_oversized {
            return None;
        }
        let mark = format!("\n[clamped: removed {removed} of {n} characters]\n");
        if self.keep_head_chars + self.keep_tail_chars + mark.len() >= n {
            return None;
        }
        let (head, tail) = if n == text.len() {
            (self.keep_head_chars, n - self.keep_tail_chars)
        } else {
            let tail = text.char_indices().rev().take(self.keep_tail_chars).last();
            let head = text.char_indices().nth(self.keep_head_chars);
            (head.map_or(text.len(), |(byte, _)| byte), tail.map_or(text.len(), |(byte, _)| byte))
        };
        Some([&text[..head], &mark, &text[tail..]].concat())
    }

    fn clamped_arguments(&self, arguments: &str, counter: &dyn TokenCounter) -> Option<String> {
        let clamped = self.clamped(arguments, counter)?;
        let is_object = arguments.trim_start().starts_with('{');
        if is_object && serde_json::from_str::<Clamped<'_>>(arguments).is_ok() {
            return None;
        }
        // With room for a few escapes.
        let mut json = Vec::with_capacity(clamped.len() + clamped.len() / 4 + 32);
        serde_json::to_writer(&mut json, &Clamped { text: clamped.into() }).ok()?;
        let clamped = String::from_utf8(json).ok()?;
        (n_chars(&clamped) < n_chars(arguments)).then_some(clamped)
    }
}

/// The characters of a text.
fn n_chars(text: &str) -> usize {
    FourCharacters.units(text) as usize
}

impl Strategy for ClampOversizedMessages {
    fn kind(&self) -> &'static str {
        "clamp_oversized"
    }

    fn business(&self) -> Business {
        Business::Blanks
    }

    fn settles(&self) -> bool {
        // A mark has at most 45 characters and the digits of two numbers.
        let own = self.keep_head_chars.saturating_add(self.keep_tail_chars).saturating_add(80);
        self.max_part_chars.is_none_or(|most| most >= own) && self.max_part_tokens.is_none_or(|most| most >= own as u64)
    }

    fn is_due(&self, _: &History, _: Option<retrace_events::tokens::Tokens>, _: &dyn TokenCounter) -> bool {
        true
    }

    fn warnings(&self) -> Vec<BadSetting> {
        let limits = [
            ("max_part_chars", self.max_part_chars),
            ("max_part_tokens", self.max_part_tokens.and_then(|tokens| usize::try_from(tokens).ok()?.checked_mul(4))),
        ];
        let left = self.keep_head_chars.saturating_add(self.keep_tail_chars).saturating_add(MARKER_CHARS);
        let below = limits.into_iter().filter(|(_, limit)| limit.is_some_and(|limit| limit < left));
        let problem = || format!("is below the {left} characters that are left of a clamped part: it is clamped again");
        below.map(|(key, _)| BadSetting::new(key, problem())).collect()
    }

    fn compact<'a>(
        &'a self,
        history: &'a History,
        cx: &'a mut CompactContext<'_>,
    ) -> BoxFuture<'a, Result<Compacted, CompactError>> {
        Box::pin(std::future::ready(Ok(self.clamp(history, cx.counter))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clamps_agree_with_the_vectors() {
        crate::vectors::check_free::<ClampOversizedMessages>("strategies/clamp_oversized.jsonl");
    }
}
