//! Transcripts of other programs become recordings, and nothing is guessed on the way.
//!
//! Each format is a module with one function, `import`: a source in, its [`Recording`](retrace_events::Recording)s and
//! what was noticed out.
//!
//! ```
//! use retrace_formats::{ImportOptions, openai_chat};
//!
//! let transcript = r#"[
//!     {"role": "user", "content": "Is there tea left?"},
//!     {"role": "assistant", "content": null, "tool_calls": [
//!         {"id": "c1", "type": "function", "function": {"name": "check", "arguments": "{\"item\": \"tea\"}"}}]},
//!     {"role": "tool", "tool_call_id": "c1", "content": "12 packs"}
//! ]"#;
//! let imported = openai_chat::import(&mut transcript.as_bytes(), &ImportOptions::new("shop"))?;
//!
//! let recording = &imported.recordings[0];
//! assert_eq!(recording.header.id, "shop");
//! assert_eq!(recording.events.len(), 3);
//! assert!(imported.findings.is_empty());
//! # Ok::<(), retrace_formats::ImportError>(())
//! ```
//!
//! # What every importer keeps to
//!
//! * The arguments of a call stay the text that the model sent. Where a source has only their parsed form, the text is
//!   marked as rebuilt.
//! * Whether a call failed is taken from the source, and each result says how it was known. Where the source has no
//!   word on it, the result is `ok` with `outcome_from: unknown`, for an
//!   [`OutcomeRule`](retrace_events::OutcomeRule) of the user to decide.
//! * A result is given to a call only where there is no doubt. What does not pair is a [`Finding`].
//! * Fields that have no place in a recording are kept under `source`, where no word of the recording format can be
//!   mistaken for one of its own.
//!
//! No file is opened here: the caller brings the source.

pub mod openai_chat;

mod error;
mod finding;
mod json;
mod options;
mod place;
mod run_ids;
mod source;

pub use error::ImportError;
pub use finding::{Finding, FindingKind, Imported};
pub use options::ImportOptions;
pub use place::Place;
