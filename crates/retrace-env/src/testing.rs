//! What the tests of this crate share: recordings in a small language, and tools that tell what they were asked.

use std::sync::{Arc, Mutex};

use futures_core::future::BoxFuture;
use retrace_events::{Boundary, Event, Extra, Header, Outcome, Recording, ToolCall, ToolResult, ToolSpec, Trajectory};
use serde_json::Value;

use crate::fn_tool::FnTool;
use crate::tool::{CallError, Tool, ToolOutput};
use crate::toolbox::{Toolbox, ToolboxBuilder};

pub(crate) fn spec(name: &str, parameters: Value) -> ToolSpec {
    ToolSpec { name: name.to_owned(), description: None, parameters, extra: Extra::default() }
}

/// A tool that answers with the arguments it got.
pub(crate) struct EchoTool(ToolSpec);

impl EchoTool {
    pub(crate) fn new(name: &str, parameters: Value) -> Self {
        Self(spec(name, parameters))
    }
}

impl Tool for EchoTool {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn call<'a>(&'a self, arguments: &'a str) -> BoxFuture<'a, Result<ToolOutput, CallError>> {
        Box::pin(async move { Ok(ToolOutput::ok(arguments)) })
    }
}

/// One recorded call: tool, arguments, outcome and text.
pub(crate) type Recorded<'a> = (&'a str, &'a str, Outcome, &'a str);

/// A recording of rounds.
pub(crate) fn rounds(rounds: &[&[Recorded<'_>]]) -> Arc<Trajectory> {
    let events = rounds.iter().enumerate().flat_map(|(round_idx, round)| {
        let calls: Vec<_> = round
            .iter()
            .enumerate()
            .map(|(i, (name, arguments, ..))| ToolCall::new(format!("c{round_idx}-{i}"), *name, *arguments))
            .collect();
        let results: Vec<_> = calls
            .iter()
            .zip(*round)
            .map(|(call, (_, _, outcome, text))| ToolResult::text_result(call, *outcome, *text))
            .collect();
        [Event::calls(calls), Event::results(results)]
    });
    Arc::new(Trajectory::new(Recording::new(Header::new("shop-1"), events)))
}

/// A recording of rounds of one call.
pub(crate) fn calls(calls: &[Recorded<'_>]) -> Arc<Trajectory> {
    rounds(&calls.iter().map(std::slice::from_ref).collect::<Vec<_>>())
}

/// The boundary after a number of rounds.
pub(crate) fn after(trajectory: &Arc<Trajectory>, n_rounds: usize) -> Boundary {
    Boundary::new(trajectory, 2 * n_rounds).unwrap()
}

/// A world of one number.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Stock {
    pub(crate) amount: u32,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Amount {
    n: u32,
}

/// Tools that add to the stock, take from it as long as there is enough, and count how often they were called.
pub(crate) fn stock_tools(stock: &Arc<Mutex<Stock>>, n_calls: &Arc<Mutex<usize>>) -> ToolboxBuilder {
    let count = |n_calls: &Arc<Mutex<usize>>| *n_calls.lock().unwrap() += 1;
    let (for_add, for_take) = (Arc::clone(n_calls), Arc::clone(n_calls));
    Toolbox::builder()
        .tool(FnTool::on(stock, "add", "Adds.", move |stock: &mut Stock, amount: Amount| {
            count(&for_add);
            stock.amount += amount.n;
            format!("{} left", stock.amount)
        }))
        .tool(FnTool::on(stock, "take", "Takes.", move |stock: &mut Stock, amount: Amount| {
            count(&for_take);
            stock.amount = stock.amount.checked_sub(amount.n).ok_or("not enough")?;
            Ok::<_, &str>(format!("{} left", stock.amount))
        }))
}
