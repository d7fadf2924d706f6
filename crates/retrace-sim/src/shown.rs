//! What a prompt shows to a simulated model, and how such a model answers.

use retrace_events::tokens::{FourCharacters, TokenCounter, Tokens, count_parts, count_sent};
use retrace_events::{Event, Part, PartBody, Response, ToolCall, Usage};
use retrace_model::{Answer, Prompt};

/// Something that a prompt shows.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shown<'a> {
    /// What was said, by whomever, or what a tool answered.
    Text(&'a str),
    /// A call that was made.
    Call(&'a ToolCall),
}

/// All that a prompt shows, in the order it is sent. A model's reasoning and media are passed over.
pub(crate) fn shown<'a>(prompt: &Prompt<'a>) -> impl Iterator<Item = Shown<'a>> + use<'a> {
    let events = prompt.history.sent().events().flat_map(|sent| {
        let results = if let Event::ToolResults(round) = sent.event { &round.results[..] } else { &[] };
        sent.parts().chain(results.iter().flat_map(|result| &result.content))
    });
    let parts = events.filter_map(|part| match &part.body {
        PartBody::Text(text) | PartBody::System(text) => Some(Shown::Text(text)),
        PartBody::ToolCall(call) => Some(Shown::Call(call)),
        PartBody::Thinking(_) | PartBody::Media(_) => None,
    });
    prompt.instructions.map(Shown::Text).into_iter().chain(parts)
}

/// An answer of these parts, with the tokens that it and its prompt have by estimate. All that is sent was read.
pub(crate) fn respond(model: &str, prompt: &Prompt<'_>, content: Vec<Part>) -> Answer {
    let output = count_parts(&FourCharacters, &content);
    let usage = Usage { input_tokens: input_tokens(prompt).0, output_tokens: output.0, ..Usage::default() };
    let response =
        Response { content: content.into(), model: Some(model.to_owned()), usage: Some(usage), ..Response::default() };
    Answer { response, sent: Some(prompt.history.sent_hash()) }
}

/// The tokens of a prompt by estimate, without those of its tools.
pub(crate) fn input_tokens(prompt: &Prompt<'_>) -> Tokens {
    let tokens = |text: &str| FourCharacters.tokens(FourCharacters.units(text));
    tokens(prompt.instructions.unwrap_or_default()) + count_sent(&FourCharacters, prompt.history)
}

/// The tokens of an answer, as it reports them or else by estimate.
pub(crate) fn output_tokens(response: &Response) -> u64 {
    let counted = || count_parts(&FourCharacters, &response.content).0;
    response.usage.as_ref().map_or_else(counted, |usage| usage.output_tokens)
}
