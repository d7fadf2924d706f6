//! The quick start: a shop as closures, three recorded runs, and what compaction does to the clerk.
//!
//! Run it with `cargo run -p retrace-verifier --example shop`.

#![expect(clippy::print_stdout, reason = "an example prints")]

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::{Arc, Mutex};

use retrace_agent::{Budget, Run, ToolLoop};
use retrace_env::{FnTool, NoArguments, ReplayEnvironment, Toolbox, ToolboxBuilder};
use retrace_events::{Event, Header, History, Part, PartBody, Recording, Response, ToolCall};
use retrace_model::{Answer, BoxFuture, Model, ModelError, Prompt};
use retrace_report::{View, text};
use retrace_score::Report;
use retrace_strategies::{Summarize, TailWindow};
use retrace_verifier::{Group, Settings, Verifier};
use schemars::JsonSchema;
use serde::Deserialize;

/// The world: who is logged in, and what is on the shelf.
#[derive(Clone, Default)]
struct Shop {
    sessions: usize,
    stock: BTreeMap<String, u32>,
}

#[derive(Deserialize, JsonSchema)]
struct Restock {
    session: String,
    item: String,
    packs: u32,
}

/// The tools that act on it. An `Err` is a failed call.
fn tools(shop: &Arc<Mutex<Shop>>) -> ToolboxBuilder {
    Toolbox::builder()
        .tool(FnTool::on(shop, "login", "Opens a session.", |shop: &mut Shop, _: NoArguments| {
            shop.sessions += 1;
            format!("session=s-{}", shop.sessions)
        }))
        .tool(FnTool::on(shop, "restock", "Puts packs of an item on the shelf.", |shop: &mut Shop, order: Restock| {
            if order.session != format!("s-{}", shop.sessions) {
                return Err("no such session");
            }
            let packs = shop.stock.entry(order.item).or_default();
            *packs += order.packs;
            Ok(format!("{packs} packs on the shelf"))
        }))
}

/// The agent's model. Put a real one here; this one knows only what it can read in its prompt.
struct Clerk;

impl Model for Clerk {
    fn name(&self) -> &str {
        "clerk"
    }

    fn respond<'a>(&'a self, prompt: &'a Prompt<'a>) -> BoxFuture<'a, Result<Answer, ModelError>> {
        let content = [self.answer(prompt)].into();
        Box::pin(std::future::ready(Ok(Response { content, ..Response::default() }.into())))
    }
}

impl Clerk {
    fn answer(&self, prompt: &Prompt<'_>) -> Part {
        let session = session_in(prompt.history);
        if prompt.tools.is_empty() {
            // A question without tools asks for a summary. One in three forgets the session.
            let session = session.filter(|_| !prompt.seed.is_multiple_of(3));
            return Part::text(session.map_or("Some shelves are filled.".to_owned(), |id| format!("session={id}")));
        }
        let id = format!("c{}", prompt.history.len());
        let call = match session {
            None => ToolCall::new(id, "login", "{}"),
            Some(session) => {
                let (item, packs) = (["tea", "rice", "salt"][(prompt.seed % 3) as usize], prompt.seed % 50);
                let arguments = format!(r#"{{"session":"{session}","item":"{item}","packs":{packs}}}"#);
                ToolCall::new(id, "restock", arguments)
            }
        };
        PartBody::ToolCall(call).into()
    }
}

/// The newest session that a history shows.
fn session_in(history: &History) -> Option<String> {
    let texts = history.events().rev().flat_map(|event| {
        let results = if let Event::ToolResults(round) = event { &round.results[..] } else { &[] };
        let said = event.content().iter().filter_map(Part::as_text).map(str::to_owned);
        said.chain(results.iter().map(|result| result.text())).collect::<Vec<_>>()
    });
    texts.filter_map(|text| Some(text.split("session=").nth(1)?.split_whitespace().next()?.to_owned())).next()
}

/// Runs the clerk in a fresh shop and keeps the recording.
async fn record(number: u64) -> Result<Recording, Box<dyn Error>> {
    let toolbox = tools(&Arc::default()).build()?;
    let run = Run {
        history: History::from(vec![Event::request("Keep the shelves full.")]),
        instructions: None,
        model: &Clerk,
        toolbox: &toolbox,
        budget: Budget::actions(20),
        seed: number,
        observer: None,
    };
    let (_, history) = run.execute(&ToolLoop::default()).await;
    let history = history.ok_or("the run broke off")?;
    let header = Header { tools: toolbox.specs().to_vec(), ..Header::new(format!("run-{number}")) };
    Ok(Recording { header, events: history.iter().cloned().collect() })
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let recordings = [record(1).await?, record(2).await?, record(3).await?];
    let environment = ReplayEnvironment::cloned(Shop::default(), tools);
    let verifier = Verifier::new(Arc::new(Clerk), Settings::default())
        .strategy("tail", Arc::new(TailWindow::new(6)))
        .strategy("summary", Arc::new(Summarize::new(6)))
        .group(Group::new(recordings, Arc::new(environment)));
    let report = Report::new(verifier.run(&|_| {}).await?)?;
    println!("{}", text(&View::new(&report)));
    Ok(())
}
