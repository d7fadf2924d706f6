//! Worlds that an agent's tools act on, and how each rollout gets one in the state that its boundary had.
//!
//! A [`Tool`] answers calls; a [`Toolbox`] holds the tools of one rollout and checks arguments against their schemas; an
//! [`Environment`] restores the toolbox of a boundary. There are two of them here: [`ReplayEnvironment`] executes the
//! recorded calls again, and [`RecordedEnvironment`] answers out of the recording.
//!
//! ```
//! use std::sync::{Arc, Mutex};
//! use retrace_env::{Environment, FnTool, ReplayEnvironment, Toolbox};
//! use retrace_events::{Boundary, Event, Header, Outcome, Recording, ToolCall, ToolResult, Trajectory};
//!
//! #[derive(Clone, Default)]
//! struct Shop {
//!     ordered: u32,
//! }
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Order {
//!     amount: u32,
//! }
//!
//! let environment = ReplayEnvironment::cloned(Shop::default(), |shop: &Arc<Mutex<Shop>>| {
//!     Toolbox::builder().tool(FnTool::on(shop, "order", "Orders items.", |shop: &mut Shop, order: Order| {
//!         if order.amount == 0 {
//!             return Err("an order needs an amount");
//!         }
//!         shop.ordered += order.amount;
//!         Ok(format!("{} ordered so far", shop.ordered))
//!     }))
//! });
//!
//! let round = |id: &str, arguments: &str, text: &str| {
//!     let call = ToolCall::new(id, "order", arguments);
//!     let result = ToolResult::text_result(&call, Outcome::Ok, text);
//!     [Event::calls([call]), Event::results([result])]
//! };
//! let events = round("c1", r#"{"amount":2}"#, "2 ordered so far").into_iter().chain(round("c2", r#"{"amount":1}"#, "…"));
//! let trajectory = Arc::new(Trajectory::new(Recording::new(Header::new("shop-1"), events)));
//! let boundary = Boundary::new(&trajectory, 2)?;
//!
//! # pollster::block_on(async {
//! let restored = environment.restore(&boundary).await?;
//! assert_eq!((restored.replay.n_calls, restored.replay.n_same_text), (1, 1));
//!
//! // What is not quite the integer of the schema is read as one, and a refused call is a result.
//! let output = restored.toolbox.call("order", r#"{"amount":"40"}"#).await?;
//! assert_eq!(output.text(), "42 ordered so far");
//! let output = restored.toolbox.call("order", r#"{"amount":0}"#).await?;
//! assert_eq!((output.outcome, output.text().as_str()), (Outcome::Error, "an order needs an amount"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod arguments;
mod coercion;
mod derived_tools;
mod digests;
mod environment;
mod fn_tool;
mod menu;
mod per_recording;
mod rebuilds;
mod recorded_environment;
mod replay;
mod replay_environment;
#[cfg(test)]
mod testing;
mod text;
mod tool;
mod toolbox;

pub use futures_core::future::BoxFuture;

pub use derived_tools::derived_tools;
pub use environment::{Environment, RestoreError, Restored};
pub use fn_tool::{FnTool, IntoOutput, NoArguments};
pub use rebuilds::{RebuildDifference, check_rebuilds};
pub use recorded_environment::RecordedEnvironment;
pub use replay::{Comparison, Difference, Replay, compare, replay};
pub use replay_environment::ReplayEnvironment;
pub use tool::{CallError, Tool, ToolOutput};
pub use toolbox::{Dispatch, IntoToolbox, Toolbox, ToolboxBuilder, ToolboxError};
