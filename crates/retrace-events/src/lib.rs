//! The words of retrace: what an agent did, where its history can be cut, and when two calls are the same.
//!
//! An agent's run is a [`Recording`]: a list of [`Event`]s that can be written and read as JSON Lines ([`codec`]).
//! Read as a [`Trajectory`] it has its executed calls and the points where it can be resumed.
//!
//! ```
//! use std::sync::Arc;
//! use retrace_events::{Boundary, Event, Header, Outcome, Recording, ToolCall, ToolResult, Trajectory};
//!
//! let round = |id: &str, name: &str, outcome| {
//!     let call = ToolCall::new(id, name, "{}");
//!     let result = ToolResult::text_result(&call, outcome, "…");
//!     [Event::calls([call]), Event::results([result])]
//! };
//! let events = [Event::request("Keep every item in stock.")]
//!     .into_iter()
//!     .chain(round("c1", "login", Outcome::Ok))
//!     .chain(round("c2", "reorder", Outcome::Error));
//! let trajectory = Arc::new(Trajectory::new(Recording::new(Header::new("shop-1"), events)));
//!
//! let boundary = Boundary::new(&trajectory, 3)?;
//! assert_eq!(boundary.history().len(), 3);
//! assert_eq!(boundary.actions()[0].action.name(), "login");
//! # Ok::<(), retrace_events::NotResumable>(())
//! ```
//!
//! # Glossary
//!
//! * **recording**: one agent run, as events in the order the agent saw them;
//! * **round**: one response with tool calls and the `tool_results` that answer them all;
//! * **action**: one tool call that an environment executed, with the outcome of the result that answered it; a result of a
//!   tool of the agent's **own** makes none;
//! * **signature**: what two calls share exactly if they would do the same thing;
//! * **history**: the events an agent resumes from;
//! * **boundary**: a point between two rounds at which a recording can be resumed;
//! * **strategy**: turns the raw history into what is kept of it;
//! * **chain**: a strategy applied, at each boundary of a recording, to what it left at the one before;
//! * **arm**: PRE, resumed from the raw history, or POST, resumed from what a strategy keeps;
//! * **rollout**: what the agent did after it was resumed; each arm of a boundary has several **samples**;
//! * **horizon**: how many actions of a rollout are looked at;
//! * **burden**: the actions that are **blocked** (the execution failed), a **refetch** (the same call was executed
//!   before, ahead of the boundary or earlier in the rollout) or **wasted** (either, counted once), and whether the
//!   agent **stopped** before the horizon;
//! * **delta**: the mean over POST rollouts minus the mean over PRE rollouts, at one boundary and horizon;
//! * **kept**: the share of the tokens that a strategy left;
//! * **spend**: model calls, the tokens they read, cached ones included, and wrote, and the dollars they cost, where
//!   known.

pub mod codec;
pub mod cuts;
pub mod pairing;
pub mod sent;
pub mod tokens;

#[cfg(test)]
mod any_events;

mod action;
mod boundary;
mod event;
mod few;
mod history;
mod outcome_rule;
mod part;
mod prices;
mod quote;
mod raw;
mod recording;
mod rollout;
mod signature;
mod spend;
mod trajectory;

pub use action::{Action, actions_from_events};
pub use boundary::{Boundary, NotResumable};
pub use event::{
    Event, Outcome, OutcomeSource, Request, Response, Summary, ToolResult, ToolResults, Usage, UsageEvent,
};
pub use few::Few;
pub use history::{History, Sent, SentEvent};
pub use outcome_rule::{OutcomeRule, OutcomeRuleError};
pub use part::{Marks, Media, MediaKind, MediaSource, Part, PartBody, Thinking, ToolCall};
pub use prices::Prices;
pub use raw::{Extra, Raw};
pub use recording::{FORMAT_VERSION, Header, Recording, ToolSpec};
pub use rollout::{Arm, EndReason, Failure, Rollout, RolloutKey, Stage, panic_text, with_causes};
pub use signature::{Signature, canonical_arguments};
pub use smol_str::SmolStr;
pub use spend::{Dollars, Spend};
pub use trajectory::{PairingFinding, RecordedAction, Trajectory};
