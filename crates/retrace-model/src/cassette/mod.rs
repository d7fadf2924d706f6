//! Cassettes: what models answered, kept so that a run can be repeated exactly, with no model at all.
//!
//! A [`CassetteRecorder`] stands around a model and keeps every answer with the request it answered. A [`Cassette`]
//! gives the answers back: to a request of the same model with the same seed, instructions, tools and
//! [sent](retrace_events::History::sent) history, and to the n-th such request the n-th answer. The order in which
//! different requests come means nothing. A request that was never recorded is an [error](crate::ModelError::Cassette)
//! that names the nearest recorded one and where the two part.
//!
//! Both stand *outside* [`Retry`](crate::Retry) and time limits: what is kept is what the caller was told in the end. An
//! error is kept like an answer, and given back as the same error, at once. A request whose caller did not wait for its
//! answer is kept as abandoned.
//!
//! ```
//! use std::sync::Arc;
//! use retrace_events::{Event, History};
//! use retrace_model::{Cassette, CassetteRecorder, Model, Prompt, ScriptedModel};
//!
//! let history = History::from(vec![Event::request("Keep every item in stock.")]);
//! let prompt = Prompt { instructions: None, history: &history, tools: &[], seed: 7 };
//! let (file, sink) = std::io::pipe()?;
//!
//! let recorder = CassetteRecorder::new(sink)?;
//! let model = recorder.around(Arc::new(ScriptedModel::new(["All shelves are full."])));
//! let answer = pollster::block_on(model.respond(&prompt))?;
//! drop((recorder, model));
//!
//! let cassette = Cassette::read(std::io::BufReader::new(file), "shop.cassette")?;
//! let model = cassette.model("scripted");
//! assert_eq!(pollster::block_on(model.respond(&prompt))?, answer);
//! let error = pollster::block_on(model.respond(&Prompt { seed: 8, ..prompt })).unwrap_err();
//! assert!(error.to_string().contains("the nearest request, in line 6, has the seed 7"), "{error}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod index;
mod line;
mod nearest;
mod player;
mod recorder;
#[cfg(test)]
mod tests;

pub use line::CASSETTE_VERSION;
pub use player::{Cassette, CassetteError, CassetteFlaw};
pub use recorder::CassetteRecorder;
