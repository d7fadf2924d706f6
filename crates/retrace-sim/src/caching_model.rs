//! A provider that caches the starts of prompts.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_core::future::BoxFuture;
use retrace_events::sent::{SentHash, SentHasher};
use retrace_events::tokens::{FourCharacters, Size, TokenCounter, Tokens};
use retrace_events::{Event, MediaSource, Part, PartBody, Request, SentEvent, Usage};
use retrace_model::{Answer, Model, ModelError, Prices, Prompt, Rules, Sleep};

use crate::shown::output_tokens;

/// A model with the cache of a provider: it knows the starts of the prompts that it has answered.
///
/// A prompt is its instructions and tools, and then event after event of what is sent. How much of one is read from the cache is
/// the longest start that it shares with a prompt whose answer was there before it came: of equal prompts that are asked at
/// once, all pay. The rest is written to the cache, once it is answered. Nothing is ever forgotten.
///
/// [`Usage`] says what was read and written. An answer takes a fixed time, and longer for each token that was not read from the
/// cache.
pub struct CachingModel<M, S> {
    model: M,
    sleep: S,
    counter: Arc<dyn TokenCounter>,
    latency: Duration,
    latency_per_token: Duration,
    known: Mutex<HashSet<SentHash>>,
}

impl<M: Model, S: Sleep> CachingModel<M, S> {
    /// A model with an empty cache, which answers at once.
    pub fn new(model: M, sleep: S) -> Self {
        let (latency, latency_per_token) = (Duration::ZERO, Duration::ZERO);
        Self { model, sleep, counter: Arc::new(FourCharacters), latency, latency_per_token, known: Mutex::default() }
    }

    /// How long an answer takes, and how much longer for each token that is not read from the cache.
    #[must_use]
    pub fn latency(mut self, fixed: Duration, per_token: Duration) -> Self {
        (self.latency, self.latency_per_token) = (fixed, per_token);
        self
    }

    /// Counts tokens in this way instead of as characters / 4.
    #[must_use]
    pub fn counter(mut self, counter: Arc<dyn TokenCounter>) -> Self {
        self.counter = counter;
        self
    }

    /// All starts of a prompt, each with its tokens, the shortest first.
    fn starts(&self, prompt: &Prompt<'_>) -> Vec<(SentHash, Tokens)> {
        let (mut hasher, mut units) = (SentHasher::default(), 0);
        let instructions = prompt.instructions.unwrap_or_default();
        hasher.system(instructions);
        units += self.counter.units(instructions);
        for tool in prompt.tools {
            let parameters = tool.parameters.to_string();
            for text in [&*tool.name, tool.description.as_deref().unwrap_or_default(), &parameters] {
                hasher.system(text);
                units += self.counter.units(text);
            }
        }
        let fixed = self.counter.tokens(units);
        let mut size = Size::default();
        let mut starts = vec![(hasher.finish(), fixed)];
        for sent in prompt.history.sent().events() {
            add(&mut hasher, &sent);
            size += size_of(&*self.counter, &sent);
            starts.push((hasher.finish(), fixed + size.tokens(&*self.counter)));
        }
        starts
    }

    fn known(&self) -> MutexGuard<'_, HashSet<SentHash>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The size of what is sent of an event.
fn size_of(counter: &dyn TokenCounter, sent: &SentEvent<'_>) -> Size {
    if sent.parts().count() == sent.event.content().len() {
        return Size::of_event(counter, sent.event);
    }
    let content = sent.parts().cloned().collect();
    Size::of_event(counter, &Event::Request(Request { content, ..Request::default() }))
}

/// Adds what is sent of an event.
fn add(hasher: &mut SentHasher, sent: &SentEvent<'_>) {
    let say = |hasher: &mut SentHasher, text: &str| match sent.event {
        Event::Response(_) => hasher.assistant(text),
        _ => hasher.user(text),
    };
    let add_part = |hasher: &mut SentHasher, part: &Part| match &part.body {
        PartBody::Text(text) => say(hasher, text),
        PartBody::System(text) => hasher.system(text),
        PartBody::Thinking(thinking) => say(hasher, &thinking.text),
        PartBody::ToolCall(call) => {
            say(hasher, &call.name);
            say(hasher, &call.arguments);
        }
        PartBody::Media(media) => {
            let (MediaSource::Data(source) | MediaSource::Url(source)) = &media.source;
            hasher.media(&media.media_type, source);
        }
    };
    sent.parts().for_each(|part| add_part(hasher, part));
    if let Event::ToolResults(round) = sent.event {
        for result in &round.results {
            hasher.result(&result.name, "");
            result.content.iter().for_each(|part| add_part(hasher, part));
        }
    }
}

impl<M: Model, S: Sleep> Model for CachingModel<M, S> {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn rules(&self) -> Rules {
        self.model.rules()
    }

    fn prices(&self) -> Option<Prices> {
        self.model.prices()
    }

    fn respond<'a>(&'a self, prompt: &'a Prompt<'a>) -> BoxFuture<'a, Result<Answer, ModelError>> {
        Box::pin(async move {
            let starts = self.starts(prompt);
            let all = starts.last().map_or(0, |(_, tokens)| tokens.0);
            let read = {
                let known = self.known();
                starts.iter().rev().find(|(start, _)| known.contains(start)).map_or(0, |(_, tokens)| tokens.0)
            };
            let fresh = all - read;
            let fresh_time = self.latency_per_token.saturating_mul(u32::try_from(fresh).unwrap_or(u32::MAX));
            self.sleep.sleep(self.latency.saturating_add(fresh_time)).await;
            let mut answer = self.model.respond(prompt).await?;
            self.known().extend(starts.into_iter().map(|(start, _)| start));
            answer.response.usage = Some(Usage {
                input_tokens: all,
                output_tokens: output_tokens(&answer.response),
                cache_read_tokens: Some(read),
                cache_write_tokens: Some(fresh),
                ..Usage::default()
            });
            Ok(answer)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Waker};

    use retrace_events::{Extra, History, Outcome, ToolCall, ToolResult, ToolSpec};
    use retrace_model::ScriptedModel;

    use super::*;

    /// Writes down how long was waited for, and goes on at the second look.
    #[derive(Clone, Default)]
    struct Waits(Arc<Mutex<Vec<Duration>>>);

    impl Sleep for Waits {
        fn sleep<'a>(&'a self, time: Duration) -> BoxFuture<'a, ()> {
            self.0.lock().unwrap().push(time);
            let mut looked = false;
            Box::pin(std::future::poll_fn(move |cx| {
                cx.waker().wake_by_ref();
                if std::mem::replace(&mut looked, true) { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
            }))
        }
    }

    fn model() -> (CachingModel<ScriptedModel, Waits>, Waits) {
        let waits = Waits::default();
        let scripted = ScriptedModel::new(vec!["eight ch"; 100]);
        let (fixed, per_token) = (Duration::from_secs(1), Duration::from_millis(10));
        (CachingModel::new(scripted, waits.clone()).latency(fixed, per_token), waits)
    }

    fn tool() -> ToolSpec {
        ToolSpec {
            name: "look".to_owned(),
            description: Some("Looks around here".to_owned()),
            parameters: serde_json::json!({}),
            extra: Extra::default(),
        }
    }

    fn round(id: &str, text: &str) -> [Event; 2] {
        let call = ToolCall::new(id, "look", "{ }!");
        [Event::calls([call.clone()]), Event::results([ToolResult::text_result(&call, Outcome::Ok, text)])]
    }

    fn history(events: impl IntoIterator<Item = Event>) -> History {
        History::from([Event::request("x".repeat(40))].into_iter().chain(events).collect::<Vec<_>>())
    }

    fn ask(model: &dyn Model, instructions: &str, history: &History) -> [u64; 4] {
        let tools = [tool()];
        let prompt = Prompt { instructions: Some(instructions), history, tools: &tools, seed: 0 };
        let usage = pollster::block_on(model.respond(&prompt)).unwrap().response.usage.unwrap();
        let cached = [usage.cache_read_tokens, usage.cache_write_tokens].map(Option::unwrap);
        [usage.input_tokens, cached[0], cached[1], usage.output_tokens]
    }

    #[test]
    fn the_longest_start_that_was_answered_is_read_and_the_rest_is_written() {
        let (model, waits) = model();
        // 17 characters of instructions and 4 + 17 + 2 of the tool.
        let instructions = "Keep the shop ok.";
        let one = history(round("a", "12345678"));
        assert_eq!(ask(&model, instructions, &one), [10 + 10 + 2 + 2, 0, 24, 2]);
        assert_eq!(ask(&model, instructions, &one), [24, 24, 0, 2]);
        let longer = history(round("a", "12345678").into_iter().chain(round("b", "1234")));
        assert_eq!(ask(&model, instructions, &longer), [27, 24, 3, 2]);
        // The id of a call is not what the model reads, but its text is.
        let other = history(round("c", "12345678").into_iter().chain(round("d", "4321")));
        assert_eq!(ask(&model, instructions, &other), [27, 26, 1, 2]);
        let compacted = history(round("b", "1234"));
        assert_eq!(ask(&model, instructions, &compacted), [23, 22, 1, 2]);
        assert_eq!(ask(&model, "Keep the shop on.", &one), [24, 0, 24, 2]);
        let fresh = [24, 0, 3, 1, 1, 24].map(|tokens| Duration::from_millis(1000 + 10 * tokens));
        assert_eq!(*waits.0.lock().unwrap(), fresh);
    }

    #[test]
    fn nothing_is_known_before_it_is_answered() {
        let (model, _) = model();
        let (tools, history) = ([tool()], history([]));
        let prompt = Prompt { instructions: None, history: &history, tools: &tools, seed: 0 };
        let (mut first, mut second) = (model.respond(&prompt), model.respond(&prompt));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(first.as_mut().poll(&mut cx).is_pending() && second.as_mut().poll(&mut cx).is_pending());
        for answer in [first, second] {
            let usage = pollster::block_on(answer).unwrap().response.usage.unwrap();
            assert_eq!(usage.cache_read_tokens, Some(0), "they came before there was an answer");
        }
        let usage = pollster::block_on(model.respond(&prompt)).unwrap().response.usage.unwrap();
        assert_eq!(usage.cache_read_tokens, Some(usage.input_tokens));
    }

    #[test]
    fn a_prompt_that_got_no_answer_and_a_part_that_is_no_longer_sent_are_not_known() {
        let broken = ModelError::Refused { message: "no".to_owned() };
        let steps = [retrace_model::Step::from(broken), "b".into(), "c".into(), "d".into()];
        let model = CachingModel::new(ScriptedModel::new(steps), Waits::default());
        let ask = |history: &History| {
            let prompt = Prompt { instructions: None, history, tools: &[], seed: 0 };
            let answer = pollster::block_on(model.respond(&prompt));
            answer.map(|answer| answer.response.usage.unwrap().cache_read_tokens.unwrap()).ok()
        };
        let plain = history([]);
        assert_eq!([ask(&plain), ask(&plain)], [None, Some(0)]);
        let mut hint = Part::text("go on, go on");
        hint.marks.set_scope("request");
        let hinted = Event::Request(Request { content: [hint].into_iter().collect(), ..Request::default() });
        assert_eq!(ask(&history([hinted.clone()])), Some(10));
        let later = history([hinted].into_iter().chain(round("a", "1234")));
        assert_eq!(ask(&later), Some(10), "the hint is not sent again");
    }
}
