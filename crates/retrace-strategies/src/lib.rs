//! Compaction strategies: what is kept of a history when it grows too long.
//!
//! A [`Strategy`] is a function from a history to a shorter one. It reads no clock and no file, reaches a model only
//! through the [`CompactContext`] that its driver hands it, and never sees the agent's instructions.
//!
//! | kind | cost | does | reach for it when |
//! |---|---|---|---|
//! | [`identity`](Identity) | none | nothing | as the control: its delta is the noise floor |
//! | [`tail_window`](TailWindow) | none | keeps the last N events | old context is worthless |
//! | [`summarize`](Summarize) | 1 call | one summary, then the last N events | the baseline with a model |
//! | [`clamp_oversized`](ClampOversizedMessages) | none | cuts the middle out of a huge part of a response | one runaway generation |
//! | [`sliding_window`](SlidingWindow) | none | drops the oldest events, keeps the task | only recent rounds matter |
//! | [`clear_tool_results`](ClearToolResults) | none | blanks old results in place | results dominate and can be fetched again |
//! | [`deduplicate_file_reads`](DeduplicateFileReads) | none | blanks reads that a newer read replaces | files are read again and again |
//! | [`summarizing`](SummarizingCompaction) | 1 call | a structured summary, updated from pass to pass | old context matters but must shrink |
//! | [`relevance`](RelevanceCompaction) | 1 call for every few new steps, 1 for a summary | keeps, reduces or drops each older step, as a judge ranks it | some old results are needed word for word, others never again |
//! | [`tiered`](TieredCompaction) | escalates | runs tiers in order until the history fits | the sensible default |
//! | [`limit_warner`](LimitWarner) | none | appends a warning | the agent should wrap up, not be rewritten |
//! | [`fallback`](FallbackCompaction) | that of its chain | the next strategy when one fails | a summary may fail and the run must go on |
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

pub mod audit;
pub mod laws;

mod anchors;
mod bridge;
mod briefing;
mod cache;
mod chain;
mod changes;
mod clamp_oversized;
mod clear_tool_results;
mod compactor;
mod config;
mod context;
mod counted;
mod cut;
mod deduplicate_file_reads;
mod edits;
mod fallback;
#[cfg(test)]
mod histories;
mod identity;
mod limit_warner;
mod menu;
mod receipt;
mod relevance;
mod sizes;
mod sliding_window;
mod strategy;
mod summarize;
mod summarizing;
mod tail_window;
mod tiered;
mod transcript;
mod trigger;
#[cfg(test)]
mod vectors;

pub use cache::CacheKept;
pub use chain::go_on;
pub use changes::{Changes, Fate};
pub use clamp_oversized::ClampOversizedMessages;
pub use clear_tool_results::ClearToolResults;
pub use compactor::{Compactor, EarlyStart, OnRequest, Outcome, Pass, Sizes, WishRefused, compact};
pub use config::{BadSetting, StrategyConfig};
pub use context::{Ask, AskModel, CompactContext, RunSoFar};
pub use counted::Counted;
pub use deduplicate_file_reads::{DeduplicateFileReads, FileKey, FileKeyFn, ReadTool};
pub use fallback::FallbackCompaction;
pub use futures_core::future::BoxFuture;
pub use identity::Identity;
pub use limit_warner::{LimitWarner, WarnOn};
pub use menu::{MenuEntry, menu};
pub use relevance::{Judgements, RelevanceCompaction};
pub use sliding_window::SlidingWindow;
pub use strategy::{Business, CompactError, Compacted, Strategy};
pub use summarize::Summarize;
pub use summarizing::SummarizingCompaction;
pub use tail_window::TailWindow;
pub use tiered::TieredCompaction;
