//! The model.

use std::fmt;
use std::time::Duration;

use retrace_events::tokens::Tokens;
use retrace_events::{Event, ToolSpec};
use retrace_model::{Answer, BoxFuture, Model, ModelError, Prices, Prompt, Rules, Spelling};
use rig_core::DynModel;
use rig_core::catalog::{Catalog, ModelSpec, Sampling};
use rig_core::completion::message::{Message, ToolChoice};
use rig_core::completion::{CompletionRequest, ToolDefinition};
use rig_core::operation::Completion;
use rig_core::providers::anthropic::Anthropic;
use rig_core::providers::gemini::Gemini;
use rig_core::providers::openai::OpenAI;
use rig_core::providers::openai::wire::OpenAiWire;
use rig_core::providers::registry::{Format, ProviderConfig, ProviderId};
use serde_json::Value;

use crate::config::{ConfigError, RigConfig};
use crate::decode::decode;
use crate::errors::Context;
use crate::http::{Http, Texts};
use crate::providers::{name, reach};
use crate::render::{render, tool_name};
use crate::secrets::Secrets;
use crate::target::Target;

/// A model of a provider.
///
/// It makes one request for an answer; trying again is the business of [`Retry`](retrace_model::Retry). It must be used
/// within a tokio runtime that drives time and input.
pub struct RigModel {
    config: RigConfig,
    provider: ProviderId,
    own_address: bool,
    client: Client,
    model: DynModel<Completion>,
    target: Target,
    context: Context,
}

enum Client {
    OpenAi(Box<OpenAI>),
    Anthropic(Anthropic),
    Gemini(Gemini),
}

/// What is known of a model before it is reached.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Listed {
    /// The most tokens that it reads and writes in one request.
    pub context_window: Option<u64>,
    /// What its tokens cost.
    pub prices: Option<Prices>,
}

/// What is known of the model of a configuration: as configured, or else as rig's catalog has it. It takes no key.
///
/// # Errors
/// For whatever else can be known to be wrong before a request is made.
pub fn listed(config: &RigConfig, variable: &dyn Fn(&str) -> Option<String>) -> Result<Listed, ConfigError> {
    config.check()?;
    let named = name(config, variable)?;
    Ok(Listed::of(config, in_catalog(named.id, named.model, named.is_own_service())))
}

impl Listed {
    fn of(config: &RigConfig, spec: Option<&ModelSpec>) -> Self {
        let prices = || {
            let pricing = spec?.pricing?;
            let (cache_read, cache_write) = (pricing.cache_read, pricing.cache_write);
            Some(Prices { input: pricing.input, output: pricing.output, cache_read, cache_write })
        };
        let window = || spec?.context_window.map(u64::from);
        Self { context_window: config.context_window.or_else(window), prices: config.prices.or_else(prices) }
    }
}

fn in_catalog(provider: ProviderId, model: &str, own_address: bool) -> Option<&'static ModelSpec> {
    Catalog::builtin().find(provider, model).filter(|_| own_address)
}

impl RigModel {
    /// The model of a configuration; `variable` reads the environment, from which the key comes, and the address if the
    /// configuration has none and the provider has a variable for it.
    ///
    /// # Errors
    /// For whatever can be known to be wrong before a request is made.
    pub fn new(config: RigConfig, variable: &dyn Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        config.check()?;
        let reached = reach(&config, variable)?;
        let timeout = Duration::from_secs(config.timeout_seconds);
        let texts = if reached.own_address { Texts::Apart } else { Texts::Joined };
        let marks_cache = config.prompt_cache && reached.id.vendor() == "anthropic";
        let http = Http::new(timeout, texts, marks_cache)?;
        let context = Context {
            model: reached.model.clone(),
            base_url: reached.config.base_url().to_owned(),
            key_variable: reached.key_variable,
            settings: settings(&config),
            timeout,
            secrets: Secrets::new([reached.key.expose()]),
        };
        let name = reached.model;
        let (client, model, target) = match reached.config {
            ProviderConfig::OpenAi(openai) => {
                let client = openai.connect(http);
                let model = client.completion(name);
                let target = match model.wire.clone() {
                    OpenAiWire::Chat(wire) => Target::new(wire, Format::OpenAi),
                    OpenAiWire::Responses(wire) => Target::new(wire, Format::OpenAi),
                };
                (Client::OpenAi(Box::new(client)), model.erase(), target)
            }
            ProviderConfig::Anthropic(anthropic) => {
                let client = anthropic.connect(http);
                let mut model = client.completion(name);
                model.wire.prompt_caching = marks_cache;
                if config.max_tokens.is_none() && model.wire.default_max_tokens.is_none() {
                    return Err(ConfigError::BadSetting {
                        setting: "max_tokens".to_owned(),
                        problem: format!("is wanted for `{}`, whose own limit is not known: set it", config.model),
                    });
                }
                let target = Target::new(model.wire.clone(), Format::Anthropic);
                (Client::Anthropic(client), model.erase(), target)
            }
            ProviderConfig::Gemini(gemini) => {
                let client = gemini.connect(http);
                let model = client.completion(name);
                let target = Target::new(model.wire.clone(), Format::Gemini);
                (Client::Gemini(client), model.erase(), target)
            }
        };
        let new =
            Self { config, provider: reached.id, own_address: reached.own_address, client, model, target, context };
        match new.catalog().and_then(|spec| spec.sampling) {
            Some(Sampling::Never) if new.config.temperature.is_some() => Err(ConfigError::BadSetting {
                setting: "temperature".to_owned(),
                problem: format!("is not taken by `{}`: leave it out", new.config.model),
            }),
            _ => Ok(new),
        }
    }

    /// The model of a configuration, with the environment of this process.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn from_env(config: RigConfig) -> Result<Self, ConfigError> {
        Self::new(config, &|name| std::env::var(name).ok())
    }

    /// Its settings.
    pub fn config(&self) -> &RigConfig {
        &self.config
    }

    /// The most tokens that it reads and writes in one request: as configured, or else as rig's catalog has it; none where
    /// neither says.
    pub fn context_window(&self) -> Option<u64> {
        self.listed().context_window
    }

    fn listed(&self) -> Listed {
        Listed::of(&self.config, self.catalog())
    }

    /// What the catalog says of the model. Of a server that only looks like the provider it says nothing.
    fn catalog(&self) -> Option<&'static ModelSpec> {
        in_catalog(self.provider, &self.context.model, self.own_address)
    }

    /// Asks the provider something that costs nothing, to see that it is there and takes the key. Not every provider has
    /// such a question, and the answer says nothing of the model.
    ///
    /// # Errors
    /// [`ModelError::Unavailable`] and [`ModelError::TimedOut`] if it cannot be reached, [`ModelError::Refused`] if it does
    /// not take the key.
    pub async fn preflight(&self) -> Result<(), ModelError> {
        let asked = match &self.client {
            Client::OpenAi(client) if client.config().dialect.quirks.verify_path.is_empty() => return Ok(()),
            Client::OpenAi(client) => client.verify().await,
            Client::Anthropic(client) => client.verify().await,
            Client::Gemini(client) => client.verify().await,
        };
        match asked {
            Ok(()) => Ok(()),
            Err(error) => match error.provider_response_status() {
                // It is there, and only does not know the question.
                Some(status) if status.is_client_error() && !matches!(status.as_u16(), 401 | 403 | 429) => Ok(()),
                _ => Err(self.context.error(&error)),
            },
        }
    }

    #[cfg(test)]
    pub(crate) fn target(&self) -> &Target {
        &self.target
    }

    async fn ask(&self, prompt: &Prompt<'_>) -> Result<Answer, ModelError> {
        let rendered = render(prompt, &self.target)?;
        let sent = rendered.sent_hash();
        let request = self.request(rendered.messages, prompt.tools)?;
        let answer = self.model.call(request).await.map_err(|error| self.context.error(&error))?;
        let n_calls = prompt.history.events().flat_map(Event::tool_calls).count();
        let response = decode(answer, n_calls)?;
        // As a recording would keep it; what cannot be written cannot be searched.
        let kept = serde_json::to_string(&Event::Response(response.clone()));
        if kept.map_or(true, |kept| self.context.secrets.stand_in(&kept)) {
            return Err(ModelError::Unusable { message: "the answer holds the key that was sent".to_owned() });
        }
        Ok(Answer { response, sent: Some(sent) })
    }

    fn request(&self, messages: Vec<Message>, tools: &[ToolSpec]) -> Result<CompletionRequest, ModelError> {
        if !tools.is_empty() && !self.target.takes_tools() {
            let message = format!("`{}` takes no tools: choose a model that does", self.config.model);
            return Err(ModelError::Refused { message });
        }
        let definition = |tool: &ToolSpec| {
            let description = tool.description.clone().unwrap_or_default();
            Ok(ToolDefinition::new(tool_name(&tool.name)?, description, tool.parameters.clone()))
        };
        let mut request = CompletionRequest::new(Message::user(""))
            .tools(tools.iter().map(definition).collect::<Result<_, ModelError>>()?)
            .temperature(self.config.temperature)
            .max_tokens(self.config.max_tokens)
            // Servers have words of their own for having stopped; a failure that rig knows is still one.
            .accept_unknown_finish_reasons(true);
        request.chat_history = messages;
        if !tools.is_empty() {
            // What all take it for if it is not sent; but some servers then leave out the tools.
            request = request.tool_choice(ToolChoice::Auto);
        }
        if !self.config.extra.is_empty() {
            request = request.additional_params(Value::Object(self.config.extra.clone()));
        }
        Ok(request)
    }
}

impl Model for RigModel {
    fn name(&self) -> &str {
        &self.config.model
    }

    fn respond<'a>(&'a self, prompt: &'a Prompt<'a>) -> BoxFuture<'a, Result<Answer, ModelError>> {
        Box::pin(self.ask(prompt))
    }

    /// Only the names of tools and media: ids, pairs and the order of messages are put right when a prompt is rendered.
    fn rules(&self) -> Rules {
        let names = match self.provider.vendor() {
            "openai" | "azure.openai" => Spelling::Word { most: 64 },
            "anthropic" => Spelling::Word { most: 128 },
            _ => Spelling::NotEmpty,
        };
        let window = self.context_window().map(Tokens);
        Rules { names, text_only: !self.target.takes_images(), window, ..Rules::default() }
    }

    /// What its tokens cost: as configured, or else as rig's catalog has it; none where neither says.
    fn prices(&self) -> Option<Prices> {
        self.listed().prices
    }
}

impl fmt::Debug for RigModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RigModel").field("config", &self.config).finish_non_exhaustive()
    }
}

/// The settings that are set, as the configuration and the providers spell them.
fn settings(config: &RigConfig) -> Vec<String> {
    let ours = [("temperature", config.temperature.is_some()), ("max_tokens", config.max_tokens.is_some())];
    let set = ours.into_iter().filter(|(_, is_set)| *is_set).map(|(name, _)| name.to_owned());
    set.chain(config.extra.keys().cloned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(set: impl FnOnce(&mut RigConfig), name: &str) -> Result<RigModel, ConfigError> {
        let mut config = RigConfig::new(name);
        set(&mut config);
        RigModel::new(config, &|name| name.ends_with("_KEY").then(|| "key".to_owned()))
    }

    #[test]
    fn window_and_prices_are_those_of_the_configuration_or_of_the_catalog_or_unknown() {
        let listed = model(|_| {}, "anthropic:claude-haiku-4-5").unwrap();
        let prices = Prices { input: 1.0, output: 5.0, cache_read: Some(0.1), cache_write: Some(1.25) };
        assert_eq!((listed.context_window(), listed.prices()), (Some(200_000), Some(prices)));
        let keyless = super::listed(&RigConfig::new("anthropic:claude-haiku-4-5"), &|_| None).unwrap();
        assert_eq!(keyless, Listed { context_window: Some(200_000), prices: Some(prices) });
        assert!(super::listed(&RigConfig::new("claude-haiku-4-5"), &|_| None).is_err());

        let mine = Prices { input: 0.0, output: 0.0, cache_read: None, cache_write: None };
        let set = |config: &mut RigConfig| (config.context_window, config.prices) = (Some(7), Some(mine));
        let overridden = model(set, "anthropic:claude-haiku-4-5").unwrap();
        assert_eq!((overridden.context_window(), overridden.prices()), (Some(7), Some(mine)));

        let elsewhere = |config: &mut RigConfig| config.base_url = Some("http://localhost:1".to_owned());
        for model in [
            model(|config| config.max_tokens = Some(100), "anthropic:claude-of-tomorrow"),
            model(|_| {}, "ollama:gpt-oss:120b"),
            model(elsewhere, "anthropic:claude-haiku-4-5"),
        ] {
            let model = model.unwrap();
            assert_eq!((model.context_window(), model.prices()), (None, None), "{model:?}");
        }
    }

    #[test]
    fn an_answer_s_limit_that_the_provider_wants_and_nobody_knows_is_asked_for() {
        let error = model(|_| {}, "anthropic:not-in-any-catalog").unwrap_err();
        assert!(error.to_string().starts_with("`max_tokens` is wanted for `anthropic:not-in-any-catalog`"), "{error}");
        assert!(model(|config| config.max_tokens = Some(100), "anthropic:not-in-any-catalog").is_ok());
        assert!(model(|_| {}, "anthropic:claude-sonnet-4-5").is_ok());
    }

    #[test]
    fn settings_that_no_request_can_carry_are_refused() {
        let problem = |set: fn(&mut RigConfig), name| model(set, name).unwrap_err().to_string();
        let warm = |config: &mut RigConfig| config.temperature = Some(0.0);
        assert!(model(warm, "openai:gpt-4.1").is_ok());
        assert_eq!(
            problem(warm, "openai:gpt-5-mini"),
            "`temperature` is not taken by `openai:gpt-5-mini`: leave it out"
        );
        assert_eq!(
            problem(|config| config.temperature = Some(f64::NAN), "openai:m"),
            "`temperature` must be 0 or more"
        );
        let pasted = problem(|config| config.api_key_env = Some("sk-proj-123".to_owned()), "openai:m");
        assert_eq!(pasted, "`api_key_env` is the name of an environment variable, not a key");
        let extra = |config: &mut RigConfig| drop(config.extra.insert("messages".to_owned(), Value::Null));
        assert!(problem(extra, "openai:m").starts_with("`extra.messages` is a field that retrace fills itself"));
    }

    #[test]
    fn a_configuration_with_a_field_that_is_not_known_is_no_configuration() {
        let read = |text: &str| serde_json::from_str::<RigConfig>(text);
        assert_eq!(read(r#"{"model": "openai:m"}"#).unwrap(), RigConfig::new("openai:m"));
        assert!(read(r#"{"model": "openai:m", "api_key": "sk-1"}"#).unwrap_err().to_string().contains("`api_key`"));
    }
}
