//! An agent of rig whose history is compacted before each request, and goes on from there.
//!
//!     cargo run -p retrace-rig --example agent
//!
//! The agent, its tool and its model are rig's; only the provider behind the model is played, so that nothing is sent.

#![expect(clippy::print_stdout, reason = "an example prints")]

use std::convert::Infallible;
use std::error::Error;
use std::future::{Future, ready};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use retrace_events::{Event, History};
use retrace_rig::{events_of, messages_of};
use retrace_strategies::{CompactContext, Compactor, Outcome, SlidingWindow};
use rig_agent::agent::{DispatchAction, DispatchEvent};
use rig_agent::prelude::{Agent, AgentBuilder, AgentHook, HookContext, Message, Tool};
use rig_agent::tool::ToolContext;
use rig_core::effect::EffectKind;
use rig_core::http_client::{self, HttpClientExt, LazyBody, MultipartForm, Request, Response, StreamingResponse};
use rig_core::providers::openai::OpenAIConfig;
use rig_core::providers::openai::wire::Route;
use serde::Deserialize;
use serde_json::{Value, json};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    converse(&Played::default()).await
}

/// Two questions to one agent, the second with all that was said before it.
pub(crate) async fn converse(provider: &Played) -> Result<(), Box<dyn Error>> {
    let window = SlidingWindow { max_messages: Some(8), keep_messages: 4, ..SlidingWindow::default() };
    let agent = reader(provider.clone(), Compactor::new(Arc::new(window)));
    let first = agent.prompt("Read six pages.").max_turns(10).run().await?;
    println!("agent: {}", first.output());
    let second = agent.prompt("And one more.").history(first.messages).max_turns(10).run().await?;
    println!("agent: {}", second.output());
    Ok(())
}

fn reader(provider: Played, compactor: Compactor) -> Agent {
    let openai = OpenAIConfig::new("a key").with_route(Route::Chat).connect(provider);
    let model = openai.completion("gpt-4.1-mini");
    AgentBuilder::new(model).preamble("You read a book.").tool(TurnPage).add_hook(Compacting::new(compactor)).build()
}

/// Compacts the history of one conversation before each request.
///
/// rig keeps the whole of it and offers it anew each time; what has become of it is kept here, and what is new is added.
struct Compacting(tokio::sync::Mutex<Conversation>);

struct Conversation {
    compactor: Compactor,
    history: History,
    /// How many messages of rig are in it.
    n_seen: usize,
}

impl Compacting {
    fn new(compactor: Compactor) -> Self {
        let history = History::from(Vec::new());
        Self(tokio::sync::Mutex::new(Conversation { compactor, history, n_seen: 0 }))
    }
}

impl AgentHook for Compacting {
    async fn on_dispatch(&self, _: &HookContext, event: DispatchEvent<'_>) -> DispatchAction {
        let EffectKind::Completion { request, stream } = event.kind else { return DispatchAction::proceed() };
        // The preamble is no part of the conversation.
        let start = usize::from(matches!(request.chat_history.first(), Some(Message::System { .. })));
        let compacted = self.0.lock().await.go_on(&request.chat_history[start..]).await;
        match compacted {
            Ok(messages) => {
                let mut request = request.clone();
                request.chat_history.splice(start.., messages);
                DispatchAction::patch(EffectKind::Completion { request, stream: *stream })
            }
            Err(error) => {
                println!("sent whole: {error}");
                DispatchAction::proceed()
            }
        }
    }
}

impl Conversation {
    /// The messages to send for those of rig.
    async fn go_on(&mut self, messages: &[Message]) -> Result<Vec<Message>, Box<dyn Error + Send + Sync>> {
        let new = messages.get(self.n_seen..).ok_or("rig has taken back what was said")?;
        let events: Vec<Vec<Event>> = new.iter().map(events_of).collect::<Result<_, _>>()?;
        events.into_iter().flatten().for_each(|event| self.history.push(event));
        self.n_seen = messages.len();
        let mut cx = CompactContext::without_model();
        match self.compactor.before_request(&mut self.history, &mut cx).await.outcome {
            Outcome::Compacted { before } => {
                println!("compacted: {} events before, {} now", before.len(), self.history.len());
            }
            Outcome::Failed(error) => println!("not compacted: {error}"),
            _ => {}
        }
        Ok(messages_of(&self.history)?)
    }
}

/// The agent's tool.
struct TurnPage;

#[derive(Deserialize)]
struct Page {
    number: u32,
}

impl Tool for TurnPage {
    const NAME: &'static str = "turn_page";
    type Args = Page;
    type Output = String;
    type Error = Infallible;

    fn description(&self) -> String {
        "Turns to a page and reads it.".to_owned()
    }

    fn parameters(&self) -> Value {
        json!({"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]})
    }

    async fn call(&self, _: &mut ToolContext, page: Page) -> Result<String, Infallible> {
        Ok(format!("Page {}: {}", page.number, "words ".repeat(20)))
    }
}

/// Plays OpenAI: turns page after page, and has answered after the sixth and the seventh.
#[derive(Clone, Default)]
pub(crate) struct Played {
    /// The messages of each request.
    pub(crate) asked: Arc<Mutex<Vec<Vec<Value>>>>,
}

impl Played {
    fn answer(&self, request: &[u8]) -> Value {
        let request: Value = serde_json::from_slice(request).unwrap_or_default();
        let messages = request["messages"].as_array().cloned().unwrap_or_default();
        let Ok(mut asked) = self.asked.lock() else { return Value::Null };
        println!("request {}: {} messages", asked.len() + 1, messages.len());
        asked.push(messages);
        let page = match asked.len() {
            n @ 1..=6 => Some(n),
            8 => Some(7),
            _ => None,
        };
        let (message, reason) = match page {
            Some(number) => {
                let function = json!({"name": "turn_page", "arguments": json!({"number": number}).to_string()});
                let call = json!({"id": format!("c{number}"), "type": "function", "function": function});
                (json!({"role": "assistant", "content": null, "tool_calls": [call]}), "tool_calls")
            }
            None => (json!({"role": "assistant", "content": "Read."}), "stop"),
        };
        let choice = json!({"index": 0, "message": message, "finish_reason": reason});
        json!({"id": "r", "object": "chat.completion", "created": 0, "model": "gpt-4.1-mini", "choices": [choice]})
    }
}

impl HttpClientExt for Played {
    fn send<T, U>(
        &self,
        request: Request<T>,
    ) -> impl Future<Output = http_client::Result<Response<LazyBody<U>>>> + Send + 'static
    where
        T: Into<Bytes> + Send,
        U: From<Bytes> + Send + 'static,
    {
        let answer = self.answer(&request.into_body().into());
        let body = U::from(Bytes::from(answer.to_string()));
        ready(Ok(Response::new(Box::pin(ready(Ok(body))) as LazyBody<U>)))
    }

    fn send_multipart<U>(
        &self,
        _: Request<MultipartForm>,
    ) -> impl Future<Output = http_client::Result<Response<LazyBody<U>>>> + Send + 'static
    where
        U: From<Bytes> + Send + 'static,
    {
        ready(Err(http_client::Error::NoHeaders))
    }

    fn send_streaming<T>(&self, _: Request<T>) -> impl Future<Output = http_client::Result<StreamingResponse>> + Send
    where
        T: Into<Bytes> + Send,
    {
        ready(Err(http_client::Error::StreamEnded))
    }
}
