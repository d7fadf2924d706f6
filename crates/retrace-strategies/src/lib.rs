//! Compaction strategies: what is kept of a history when it grows too long.
//!
//! A [`Strategy`] is a function from a history to a shorter one. It reads no clock and no file, reaches a model only
//! through the [`CompactContext`] that its driver hands it, and never sees the agent's instructions.
//!
//! | kind | cost | does | reach for it when |
//! |---|---|---|---|
//! | [`identity`](Identity) | none | nothing | as the control: its delta is the noise floor |
//! | [`tail_window`](TailWindow) | none | keeps the last N events | old context is worthless |
//! | [`summarize`](Summarize) | 1 call | one summary, then the last N events | old context matters but must shrink |
//!
//! ```
//! use retrace_events::{Event, History};
//! use retrace_strategies::{CompactContext, Compacted, Strategy, TailWindow};
//!
//! let history = History::from(vec![Event::request("old"), Event::answer("fine"), Event::request("new")]);
//! let compacted = pollster::block_on(TailWindow::new(1).compact(&history, &mut CompactContext::without_model()))?;
//! assert_eq!(compacted, Compacted::Changed(History::from(vec![Event::request("new")])));
//! # Ok::<(), retrace_strategies::CompactError>(())
//! ```
//!
//! Every strategy obeys the [`laws`], and any strategy of your own can be put through them.

pub mod laws;

mod anchors;
mod config;
mod context;
mod cut;
#[cfg(test)]
mod histories;
mod identity;
mod strategy;
mod summarize;
mod tail_window;
mod transcript;
#[cfg(test)]
mod vectors;

pub use config::StrategyConfig;
pub use context::{Ask, AskModel, CompactContext, RunSoFar, Spend};
pub use futures_core::future::BoxFuture;
pub use identity::Identity;
pub use strategy::{Business, CompactError, Compacted, Strategy};
pub use summarize::Summarize;
pub use tail_window::TailWindow;
