//! The tool loop: an [`Agent`] is resumed from a history and acts until its budget is spent or it ends its turn.
//!
//! The [`Budget`] is enforced by the [`RunContext`] that an agent is handed, through which alone it reaches a model
//! and tools; so every run ends, whatever the agent does.
//!
//! ```
//! use retrace_agent::{Budget, Run, ToolLoop};
//! use retrace_env::Toolbox;
//! use retrace_events::{EndReason, Event, History, ToolCall};
//! use retrace_model::{ScriptedModel, Step};
//!
//! let model = ScriptedModel::new([Step::from(vec![ToolCall::new("c1", "nope", "{}")]), Step::from("I give up.")]);
//! let run = Run {
//!     history: History::from(vec![Event::request("go")]),
//!     instructions: None,
//!     model: &model,
//!     toolbox: &Toolbox::builder().build()?,
//!     budget: Budget::actions(5),
//!     seed: 0,
//!     observer: None,
//! };
//! let (rollout, _) = pollster::block_on(run.execute(&ToolLoop::default()));
//! assert!(rollout.actions[0].is_blocked());
//! assert_eq!(rollout.end, EndReason::Answer);
//! # Ok::<(), retrace_env::ToolboxError>(())
//! ```

mod agent;
mod budget;
mod context;
mod run;
mod tool_loop;

pub use agent::{Agent, AgentError, Turn};
pub use budget::Budget;
pub use context::{Halt, Observer, RunContext};
pub use futures_core::future::BoxFuture;
pub use run::Run;
pub use tool_loop::ToolLoop;
