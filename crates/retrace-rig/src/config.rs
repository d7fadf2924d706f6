//! The settings of a model, as a configuration file gives them.

use retrace_model::Prices;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::providers::known_providers;

/// The settings of a model.
///
/// A key is never among them: they name the environment variable that holds it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RigConfig {
    /// The provider and its own name of the model, such as `openai:gpt-4.1-mini`; see the
    /// [providers](known_providers).
    pub model: String,
    /// The address to use in place of the provider's own. A key is sent there only if `api_key_env` names it, or if the
    /// provider has no address of its own.
    #[serde(default)]
    pub base_url: Option<String>,
    /// The environment variable that holds the key, in place of the provider's usual one.
    #[serde(default)]
    pub api_key_env: Option<String>,
    /// The sampling temperature; not sent unless it is set, since some models refuse it.
    #[serde(default)]
    pub temperature: Option<f64>,
    /// The most tokens of one answer. Where it is unset and the provider wants one, the model's own limit is sent.
    #[serde(default)]
    pub max_tokens: Option<u64>,
    /// The most seconds that one answer may take.
    #[serde(default = "five_minutes")]
    pub timeout_seconds: u64,
    /// The most tokens that the model reads and writes in one request, in place of what the catalog says.
    #[serde(default)]
    pub context_window: Option<u64>,
    /// What tokens cost, in place of what the catalog says.
    #[serde(default)]
    pub prices: Option<Prices>,
    /// Whether requests say what is worth caching, to providers that cache nothing unasked. Others cache by themselves.
    #[serde(default = "yes")]
    pub prompt_cache: bool,
    /// More fields of the request, as the provider spells them, such as `top_p` or `reasoning_effort`.
    #[serde(default)]
    pub extra: Map<String, Value>,
}

/// Why no model can be made of a configuration; nothing has been sent.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The name of the model does not start with a provider.
    #[error("`{model}` names no provider: write `provider:model`, such as `openai:gpt-4.1-mini`")]
    NoProvider {
        /// The name.
        model: String,
    },
    /// The provider's name is followed by nothing.
    #[error("`{provider}:` names no model: write `{provider}:` and the provider's own name of the model")]
    NoModel {
        /// The provider.
        provider: String,
    },
    /// There is no such provider.
    #[error(
        "unknown provider `{provider}`: known are {}; for any other server that speaks as OpenAI does, write `openai:` \
         and set `base_url`",
        known_providers().join(", ")
    )]
    UnknownProvider {
        /// The provider.
        provider: String,
    },
    /// The provider's key is not in the environment.
    #[error(
        "`{provider}` wants a key: set the environment variable `{variable}`, or name the one that holds it with \
         `api_key_env`"
    )]
    MissingKey {
        /// The provider.
        provider: String,
        /// The variable.
        variable: String,
    },
    /// What the environment holds cannot be a key.
    #[error("the environment variable `{variable}` holds no key: it has characters that no header can carry")]
    BadKey {
        /// The variable.
        variable: String,
    },
    /// The provider has no address of its own.
    #[error("`{provider}` has no address that all share: set `base_url`")]
    MissingBaseUrl {
        /// The provider.
        provider: String,
    },
    /// The address cannot be used. It is not shown, since it may hold a password.
    #[error("`base_url` {problem}; it looks like `http://localhost:8000/v1`")]
    BadBaseUrl {
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A setting cannot be used.
    #[error("`{setting}` {problem}")]
    BadSetting {
        /// The setting.
        setting: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The HTTP client cannot be made.
    #[error("cannot set up HTTPS: {problem}")]
    Https {
        /// What is wrong.
        problem: String,
    },
}

fn yes() -> bool {
    true
}

fn five_minutes() -> u64 {
    300
}

impl RigConfig {
    /// A model with nothing set.
    pub fn new(model: impl Into<String>) -> Self {
        Self {
            model: model.into(),
            base_url: None,
            api_key_env: None,
            temperature: None,
            max_tokens: None,
            timeout_seconds: five_minutes(),
            context_window: None,
            prices: None,
            prompt_cache: true,
            extra: Map::new(),
        }
    }

    /// Refuses settings that no request can carry.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let bad = |setting: &str, problem: &str| {
            Err(ConfigError::BadSetting { setting: setting.to_owned(), problem: problem.to_owned() })
        };
        let is_amount = |amount: f64| amount.is_finite() && amount >= 0.0;
        if self.temperature.is_some_and(|temperature| !is_amount(temperature)) {
            return bad("temperature", "must be 0 or more");
        }
        if self.max_tokens == Some(0) {
            return bad("max_tokens", "must be 1 or more");
        }
        if self.timeout_seconds == 0 {
            return bad("timeout_seconds", "must be 1 or more");
        }
        if self.context_window == Some(0) {
            return bad("context_window", "must be 1 or more");
        }
        if self.prices.is_some_and(|prices| !prices.are_amounts()) {
            return bad("prices", "must be 0 or more, in dollars for a million tokens");
        }
        let is_name = |name: &String| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if self.api_key_env.as_ref().is_some_and(|name| name.is_empty() || !is_name(name)) {
            // It is not shown: it may be the key.
            return bad("api_key_env", "is the name of an environment variable, not a key");
        }
        match self.extra.keys().find(|key| OURS.contains(&key.as_str())) {
            Some(key) => bad(&format!("extra.{key}"), "is a field that retrace fills itself: leave it out"),
            None => Ok(()),
        }
    }
}

/// Fields of a request, of any provider, that `extra` must not replace.
const OURS: [&str; 14] = [
    "contents",
    "input",
    "instructions",
    "max_completion_tokens",
    "max_output_tokens",
    "max_tokens",
    "messages",
    "model",
    "stream",
    "system",
    "systemInstruction",
    "system_instruction",
    "temperature",
    "tools",
];
