//! What a report shows, as text for a terminal and as JSON.
//!
//! ```
//! use retrace_report::{View, json, text};
//! use retrace_score::{Report, ScoreInput};
//!
//! let input = ScoreInput::from_json(
//!     r#"{
//!         "horizon": 1,
//!         "boundaries": [{
//!             "recording": "shop-1",
//!             "cut": 9,
//!             "history": [{"name": "login", "arguments": {"user": "ada"}}],
//!             "pre": [{"actions": [{"name": "stock", "arguments": {"item": "tea"}, "blocked": false}]}],
//!             "strategies": {
//!                 "tail": {"post": [{"actions": [{"name": "login", "arguments": {"user": "ada"}, "blocked": false}]}]}
//!             }
//!         }]
//!     }"#,
//! )?;
//! let report = Report::new(input.into_verification())?;
//! assert!(text(&View::new(&report)).contains("refetch +1.000"));
//! assert!(json(&report).contains(r#""exact": "1""#));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! * A [`View`] is what every rendering shows: one horizon, a row for each strategy, and notes in plain sentences.
//! * [`text`] lays a view out for a terminal of [`COLUMNS`] columns; names of any length and of any characters keep
//!   the table whole.
//! * [`write_report`] writes all of a report, whatever the horizon, as JSON; [`json`] leaves out its boundaries.
//! * [`printable`] makes recorded text safe to look at. All text of a view has been through it.
//!
//! The numbers themselves are worked out in `retrace-score`; where they come from is in `docs/methods.md`.

mod json;
pub mod layout;
mod notes;
mod number;
mod printable;
mod reference;
mod table;
mod text;
mod view;

pub use json::{json, write_report};
pub use number::counted;
pub use printable::printable;
pub use text::{COLUMNS, text};
pub use view::{ContrastRow, Look, NoSuchHorizon, Ps, Row, RowOutcome, Scored, Shown, Style, View};
