//! A [`Model`](retrace_model::Model) over any provider of [rig](rig_core).
//!
//! A [`RigModel`] is made from a [`RigConfig`]: a name such as `openai:gpt-4.1-mini`, `anthropic:claude-sonnet-4-5`,
//! `ollama:qwen3`, `gemini:gemini-2.5-flash` or `openrouter:qwen/qwen3-32b`, and what else is to be set. The
//! [providers](known_providers) are rig's. `openai` speaks Chat Completions, which with `base_url` reaches most other
//! servers too. OpenAI's own newer interface is `openai-responses`; `openai` takes it by itself for the models of OpenAI
//! that have tools nowhere else.
//!
//! ```
//! use retrace_model::Model;
//! use retrace_rig::{RigConfig, RigModel};
//!
//! let config = RigConfig { base_url: Some("http://localhost:8000/v1".to_owned()), ..RigConfig::new("openai:gemma-3") };
//! let model = RigModel::from_env(config)?;
//! assert_eq!(model.name(), "openai:gemma-3");
//! assert_eq!(model.prices(), None, "nobody knows what that server costs");
//! # Ok::<(), retrace_rig::ConfigError>(())
//! ```
//!
//! # What a provider is sent
//!
//! What [`History::sent`](retrace_events::History::sent) gives, in the shapes that the provider takes:
//!
//! * A result stands right after its response, with the id of the call that it answers by its place. Ids that are empty,
//!   there twice or odd are replaced. A result that answers no call is text of the user, a call without a result gets one
//!   that says so.
//! * A failed result has the provider's flag (Anthropic, Gemini), and elsewhere `[tool error]` before its text, unless
//!   an outcome rule found the failure in the text itself.
//! * A conversation that starts with the model is opened by a line of the user, one that ends with it is closed by one.
//! * Reasoning and its signatures go back to the model that made them, and to no other.
//! * Arguments that are no JSON object are sent as what can be read of them, since many servers refuse anything else. The
//!   event keeps the text.
//! * Servers other than a provider's own get texts that stand side by side as one, since many take no list of them.
//! * A medium that the model does not take is an error, and never left out.
//!
//! With each [`Answer`](retrace_model::Answer) comes the hash of what was sent, read from the messages.
//!
//! # A loop that keeps rig's messages
//!
//! [`events_of`] makes events of a message and [`messages_of`] messages of a history, so that a strategy can compact what an
//! agent of rig holds; the example `agent` does it before each request.
//!
//! # Keys
//!
//! A key comes from the environment variable that the provider or the configuration names, and goes nowhere but to the
//! provider's own address or to the one that the configuration sets beside `api_key_env`. No text that leaves this crate
//! holds it: errors are cleaned of it, whole or cut short, and an answer that echoes it is refused.

mod breakpoints;
mod config;
mod decode;
mod errors;
mod http;
mod ids;
mod media;
mod messages;
mod model;
mod providers;
mod render;
mod replay;
mod secrets;
mod sent;
mod target;

pub use config::{ConfigError, RigConfig};
pub use messages::{MessageError, events_of, messages_of};
pub use model::{Listed, RigModel, listed};
pub use providers::known_providers;
