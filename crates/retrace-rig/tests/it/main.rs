//! The model against providers on this machine that speak HTTP.

#![expect(clippy::unwrap_used, reason = "tests may")]

mod agent;
mod answers;
mod failures;
mod page;
mod requests;
mod server;

use retrace_events::{Event, Extra, History, Outcome, ToolCall, ToolResult, ToolSpec};
use retrace_model::{Answer, Model, ModelError, Prompt};
use retrace_rig::{RigConfig, RigModel};
use serde_json::json;

use server::Server;

/// The key that every provider is given.
const KEY: &str = "sk-test-0123456789abcdef";

/// A model at a server, with whatever the test sets.
fn model_with(name: &str, server: &Server, set: impl FnOnce(&mut RigConfig)) -> RigModel {
    let mut config = RigConfig::new(name);
    config.base_url = Some(server.url.clone());
    config.api_key_env = Some("TEST_KEY".to_owned());
    set(&mut config);
    RigModel::new(config, &|name| (name == "TEST_KEY").then(|| KEY.to_owned())).unwrap()
}

fn model(name: &str, server: &Server) -> RigModel {
    model_with(name, server, |_| {})
}

async fn ask(model: &RigModel, history: &History) -> Result<Answer, ModelError> {
    let prompt = Prompt { instructions: Some("Keep the shop."), history, tools: &tools(), seed: 7 };
    let answer = model.respond(&prompt).await;
    if let Ok(answer) = &answer {
        assert_eq!(answer.sent, Some(history.sent_hash()));
    }
    answer
}

fn tools() -> Vec<ToolSpec> {
    vec![ToolSpec {
        name: "check".to_owned(),
        description: Some("Counts an item.".to_owned()),
        parameters: json!({"type": "object", "properties": {"item": {"type": "string"}}}),
        extra: Extra::default(),
    }]
}

fn call(id: &str, arguments: &str) -> ToolCall {
    ToolCall::new(id, "check", arguments)
}

fn result(id: &str, outcome: Outcome, text: &str) -> ToolResult {
    ToolResult::text_result(&call(id, ""), outcome, text)
}

fn history(events: impl IntoIterator<Item = Event>) -> History {
    History::from(events.into_iter().collect::<Vec<_>>())
}

fn go() -> History {
    history([Event::request("Go.")])
}
