//! Agents, strategies and environments that are programs in any language.
//!
//! A program reads messages from its standard input and writes messages to its standard output, one JSON object a line;
//! `docs/protocol.md` has them all, and `examples/python/` and `examples/typescript/` have programs. Which role a program
//! plays is up to who starts it:
//!
//! | type | is a | the program |
//! |---|---|---|
//! | [`CommandStrategy`] | [`Strategy`](retrace_strategies::Strategy) | gets a history, gives what it keeps of it |
//! | [`CommandAgent`] | [`Agent`](retrace_agent::Agent) | gets a history, tools and a budget, and acts |
//! | [`CommandEnvironment`] | [`Environment`](retrace_env::Environment) | opens worlds and answers calls |
//!
//! Starting one checks that it greets as it should, and keeps its process for the first use. Whether each use then has a
//! process of its own, or all share one, is the program's choice. What it does wrong costs the use it belongs to, or, where
//! that cannot be told, all uses of its process; the next use has a new one. Nothing is left of a program when the type is
//! dropped.
//!
//! ```
//! use retrace_command::{CommandStrategy, ProgramConfig};
//! use retrace_events::{Event, History};
//! use retrace_strategies::{CompactContext, Compacted, Strategy};
//!
//! // A strategy in two lines of shell: it keeps the last event.
//! let script = r#"echo '{"type":"greeting","retrace":1,"role":"strategy","name":"last"}'
//!     read hello; read compact; echo '{"type":"compacted","use":1,"events":[2]}'; read over"#;
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let last = CommandStrategy::start(&ProgramConfig::new(["sh", "-c", script])).await?;
//!
//! let history = History::from(vec![Event::request("old"), Event::answer("fine"), Event::request("new")]);
//! let compacted = last.compact(&history, &mut CompactContext::without_model()).await?;
//! assert_eq!(compacted, Compacted::Changed(History::from(vec![Event::request("new")])));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod protocol;

mod agent;
mod config;
mod connection;
mod environment;
mod error;
mod events;
mod host;
mod strategy;
mod told;

pub use agent::CommandAgent;
pub use config::ProgramConfig;
pub use environment::CommandEnvironment;
pub use error::CommandError;
pub use strategy::CommandStrategy;
