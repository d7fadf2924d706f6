//! The [`Model`] port: a prompt goes in, a response comes out.
//!
//! Whatever answers an agent is a `Model`: a provider, a simulated agent, or a [`ScriptedModel`] in a test. What goes
//! wrong says whether trying again may help ([`ModelError::is_transient`]), and [`Retry`] then tries again.
//! What a model would refuse is known beforehand from its [`Rules`], and what its tokens cost from its [`Prices`](Model::prices). A [`CassetteRecorder`] keeps what models answer, and a
//! [`Cassette`] answers it again.
//!
//! ```
//! use retrace_events::{Event, History};
//! use retrace_model::{Model, Prompt, ScriptedModel};
//!
//! let model = ScriptedModel::new(["All shelves are full."]);
//! let history = History::from(vec![Event::request("Keep every item in stock.")]);
//! let prompt = Prompt { instructions: None, history: &history, tools: &[], seed: 7 };
//! let answer = pollster::block_on(model.respond(&prompt))?;
//! assert_eq!(answer.response.text(), "All shelves are full.");
//! assert_eq!(model.asked()[0].seed, 7);
//! # Ok::<(), retrace_model::ModelError>(())
//! ```

mod cassette;
mod clock;
mod model;
mod priced;
mod prompt;
mod quote;
mod retry;
mod rules;
mod scripted;
mod seed;

pub use cassette::{CASSETTE_VERSION, Cassette, CassetteError, CassetteFlaw, CassetteRecorder};
pub use clock::Clock;
pub use futures_core::future::BoxFuture;
pub use model::{Answer, Model, ModelError};
pub use priced::Priced;
pub use prompt::Prompt;
pub use retrace_events::Prices;
pub use retry::{Backoff, Retry, Sleep};
pub use rules::{CallAt, Flaw, Rules, Spelling};
pub use scripted::{Asked, ScriptedModel, Step};
pub use seed::mix;
