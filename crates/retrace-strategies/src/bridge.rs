//! The line in front of notes that a model of another family than the agent's wrote.

use retrace_events::{Part, Summary};

const LINE: &str = "Another model took these notes: rely on the facts in them, and keep to your own way of working.";

/// Its mark: the strategy wrote it, not the model that it asked.
const ORIGIN: &str = "summarizing";

/// The line as a part of a summary.
pub(crate) fn bridge() -> Part {
    let mut line = Part::text(LINE);
    line.marks.set_origin(ORIGIN);
    line
}

/// Whether a part of a summary is the line, which no summarizer is shown.
pub(crate) fn is_bridge(part: &Part) -> bool {
    part.marks.origin() == Some(ORIGIN)
}

/// The texts of a summary that its model wrote.
pub(crate) fn notes(summary: &Summary) -> String {
    let texts = summary.content.iter().filter(|part| !is_bridge(part)).filter_map(Part::as_text);
    texts.collect::<Vec<_>>().join("\n")
}

/// Whether the agent's model, by its configured name, is of another family than the one that took notes: by the name
/// that came with its answer, else by its configured one. Where a family is not known, it is taken for the same.
pub(crate) fn is_needed(agent: Option<&str>, answered: Option<&str>, asked: &str) -> bool {
    let writer = answered.map_or_else(|| family(without_provider(asked)), family);
    let agent = agent.and_then(|agent| family(without_provider(agent)));
    agent.zip(writer).is_some_and(|(agent, writer)| agent != writer)
}

fn without_provider(name: &str) -> &str {
    name.split_once(':').map_or(name, |(_, model)| model)
}

/// `gpt` of `gpt-4.1-mini`, `qwen3` of `qwen3:8b`; none of words that describe a model without naming it.
fn family(model: &str) -> Option<&str> {
    let family = model.split(['-', '/', ':']).next()?;
    (!family.is_empty() && !model.contains(char::is_whitespace)).then_some(family)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_two_families_need_a_line() {
        for (agent, answered, asked, needed) in [
            (Some("openai:gpt-4.1"), None, "anthropic:claude-haiku-4-5", true),
            (Some("openai:gpt-4.1"), None, "azure:gpt-4.1-nano", false),
            (Some("gpt-4.1"), None, "openrouter:qwen/qwen3", true),
            (Some("ollama:qwen3:8b"), None, "ollama:qwen3", false),
            // What answered knows better than what a table of the configuration is called.
            (Some("openai:gpt-4.1"), Some("gpt-4.1-nano-2025"), "cheap", false),
            (Some("openai:gpt-4.1"), Some("qwen3:8b"), "gpt", true),
            (None, None, "openai:gpt-4.1", false),
            (Some("openai:gpt-4.1"), None, "", false),
            (Some("the agent's own"), None, "openai:gpt-4.1", false),
        ] {
            assert_eq!(is_needed(agent, answered, asked), needed, "{agent:?} {answered:?} {asked}");
        }
    }
}
