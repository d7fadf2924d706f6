//! Runs a verification: agents resumed from raw and from compacted histories, in environments rebuilt to the same
//! state.
//!
//! A [`Verifier`] is told which recordings to cut and where, which strategies to compare, and what rollouts run with.
//! What comes out is the input of `retrace-score`, which makes the report of it.
//!
//! ```
//! use std::sync::Arc;
//! use retrace_agent::ToolLoop;
//! use retrace_env::{FnTool, NoArguments, ReplayEnvironment, Toolbox};
//! use retrace_events::{Event, Header, Outcome, Recording, ToolCall, ToolResult};
//! use retrace_model::ScriptedModel;
//! use retrace_strategies::TailWindow;
//! use retrace_verifier::{Group, Settings, Verifier};
//!
//! let round = |id: &str| {
//!     let call = ToolCall::new(id, "look", "{}");
//!     let result = ToolResult::text_result(&call, Outcome::Ok, "nothing new");
//!     [Event::calls([call]), Event::results([result])]
//! };
//! let events = [Event::request("Keep watch.")].into_iter().chain(["c1", "c2", "c3", "c4"].into_iter().flat_map(round));
//! let recording = Recording::new(Header::new("watch"), events);
//! let tools = || Toolbox::builder().tool(FnTool::new("look", "Looks around.", |_: NoArguments| "nothing new"));
//!
//! let verifier = Verifier::new(Arc::new(ScriptedModel::new(["All quiet."; 2])), Settings { samples: 1, ..Settings::default() })
//!     .agent(Arc::new(ToolLoop::default()))
//!     .strategy("tail", Arc::new(TailWindow::new(2)))
//!     .control(false)
//!     .group(Group::new([recording], Arc::new(ReplayEnvironment::new(tools))));
//! let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
//! let verification = runtime.block_on(verifier.run(&|_| {}))?;
//! assert_eq!(verification.boundaries.len(), 1);
//! assert_eq!(verification.boundaries[0].pre.len(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod at_boundary;
mod books;
mod cell;
mod error;
mod limits;
mod looks;
mod pace;
mod patience;
mod plan;
mod post;
mod progress;
mod refusals;
mod replays;
mod run_folder;
mod schedule;
mod seeds;
mod settings;
mod stop;
mod verifier;
mod warm;

pub use error::VerifyError;
pub use limits::{TimeLimits, Timed, TokioClock, TokioSleep};
pub use pace::RateLimit;
pub use patience::Patience;
pub use progress::Progress;
pub use run_folder::RunFolder;
pub use settings::{Group, Settings, SpendLimit};
pub use stop::{Stop, StopSignal};
pub use verifier::Verifier;
