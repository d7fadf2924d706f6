//! Asks a model to keep a small shop, with one tool, until it stops or has been asked six times.
//!
//!     cargo run -p retrace-rig --example ask -- openai:gemma-3 http://localhost:8000/v1
//!
//! More fields of the request can follow as JSON, such as `'{"tool_choice": "required"}'`. The key comes from the environment variable of the provider; a local server needs none.

use std::env;

use retrace_events::{Event, Extra, History, Outcome, ToolResult, ToolSpec};
use retrace_model::{Model, ModelError, Prompt};
use retrace_rig::{ConfigError, RigConfig, RigModel};
use serde_json::json;

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("usage: ask PROVIDER:MODEL [BASE_URL [EXTRA]]")]
    Usage,
    #[error("cannot read the extra fields")]
    Extra(#[from] serde_json::Error),
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Model(#[from] ModelError),
}

#[expect(clippy::print_stdout, reason = "an example")]
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let mut arguments = env::args().skip(1);
    let mut config = RigConfig::new(arguments.next().ok_or(Error::Usage)?);
    config.base_url = arguments.next();
    config.extra = arguments.next().map_or(Ok(Default::default()), |extra| serde_json::from_str(&extra))?;
    config.max_tokens = Some(200);
    let model = RigModel::from_env(config)?;
    model.preflight().await?;
    println!("{}: window {:?}, prices {:?}", model.name(), model.context_window(), model.prices());

    let tools = [ToolSpec {
        name: "count".to_owned(),
        description: Some("How many of an item are in stock.".to_owned()),
        parameters: json!({"type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]}),
        extra: Extra::default(),
    }];
    let mut history = History::from(vec![Event::request("Count the nails, then the bolts. Then say which are fewer.")]);
    for _ in 0..6 {
        let instructions = Some("You keep a shop. Use the tool.");
        let answer = model.respond(&Prompt { instructions, history: &history, tools: &tools, seed: 0 }).await?;
        let is_whole = answer.sent == Some(history.sent_hash());
        println!("{:?} (sent whole: {is_whole})", answer.response);
        let calls: Vec<_> = answer.response.tool_calls().cloned().collect();
        history.push(Event::Response(answer.response));
        if calls.is_empty() {
            break;
        }
        history.push(Event::results(calls.iter().map(|call| match &*call.name {
            "count" => ToolResult::text_result(call, Outcome::Ok, format!("{}", call.arguments.len() % 7)),
            _ => ToolResult::text_result(call, Outcome::NotFound, "no such tool"),
        })));
    }
    Ok(())
}
