//! The providers: their names, their addresses, and where their keys are.

use reqwest::Url;
use rig_core::catalog::Catalog;
use rig_core::providers::openai::wire::{Auth, Route};
use rig_core::providers::registry::{Format, ProviderConfig, ProviderId};
use rig_core::wire::Secret;

use crate::config::{ConfigError, RigConfig};

/// What stands before the colon in the name of a model, beside the names that rig has for its providers.
///
/// `openai` speaks Chat Completions, which is what most servers that look like OpenAI speak, except to the models of OpenAI
/// itself that take tools only through its newer interface; that one is `openai-responses`.
const ALIASES: [(&str, &str, Option<Route>); 9] = [
    ("azure", "azure.openai", None),
    ("gemini", "gcp.gemini", None),
    ("google", "gcp.gemini", None),
    ("minimax-anthropic", "minimax/anthropic", None),
    ("moonshot-anthropic", "moonshot/anthropic", None),
    ("openai", "openai", Some(Route::Chat)),
    ("openai-responses", "openai", Some(Route::Responses)),
    ("xiaomimimo-anthropic", "xiaomimimo/anthropic", None),
    ("zai-anthropic", "zai/anthropic", None),
];

/// What these sign in with is no key in an environment variable.
const NO_KEY: [&str; 2] = ["chatgpt", "copilot"];

/// The names of the providers, sorted: what may stand before the colon in `provider:model`.
///
/// ```
/// let known = retrace_rig::known_providers();
/// for name in ["anthropic", "gemini", "llamacpp", "ollama", "openai", "openai-responses", "openrouter"] {
///     assert!(known.contains(&name), "{known:?}");
/// }
/// ```
pub fn known_providers() -> Vec<&'static str> {
    let aliased = |vendor: &str| ALIASES.iter().any(|(_, selection, _)| selection.split('/').next() == Some(vendor));
    let mut known: Vec<_> = ProviderId::all()
        .map(|id| id.vendor())
        .filter(|vendor| !(NO_KEY.contains(vendor) || vendor.contains('.') && aliased(vendor)))
        .chain(ALIASES.iter().map(|(name, ..)| *name))
        .collect();
    known.sort_unstable();
    known.dedup();
    known
}

/// A provider with all that it takes to reach it.
#[derive(Debug)]
pub(crate) struct Reached {
    /// The provider's own name of the model.
    pub(crate) model: String,
    pub(crate) id: ProviderId,
    pub(crate) config: ProviderConfig,
    /// The variable that holds the key, if one is sent.
    pub(crate) key_variable: Option<String>,
    pub(crate) key: Secret,
    /// Whether it is the provider's own service, and no server that looks like it.
    pub(crate) own_address: bool,
}

/// What a configuration names, before any key is looked for.
pub(crate) struct Named<'a> {
    /// What stands before the colon.
    name: &'a str,
    /// The provider's own name of the model.
    pub(crate) model: &'a str,
    pub(crate) id: ProviderId,
    route: Option<Route>,
    preset: ProviderConfig,
    /// The address that is to be used in place of the provider's own.
    base_url: Option<String>,
}

impl Named<'_> {
    /// Whether it is the provider's own service, and no server that looks like it.
    pub(crate) fn is_own_service(&self) -> bool {
        self.base_url.is_none() && !is_local(&self.id)
    }
}

/// Finds the provider of a configuration; `variable` reads the environment.
pub(crate) fn name<'a>(
    config: &'a RigConfig,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Named<'a>, ConfigError> {
    let (name, model) = config
        .model
        .split_once(':')
        .filter(|(name, _)| !name.is_empty())
        .ok_or_else(|| ConfigError::NoProvider { model: config.model.clone() })?;
    let (id, route) = provider(name)?;
    if model.is_empty() {
        return Err(ConfigError::NoModel { provider: name.to_owned() });
    }
    let unknown = || ConfigError::UnknownProvider { provider: name.to_owned() };
    let preset = id.config("").ok_or_else(unknown)?;
    let base_url = match &config.base_url {
        Some(base_url) => Some(base_url.clone()),
        None => base_url_variable(&preset).and_then(variable).filter(|base_url| !base_url.is_empty()),
    };
    Ok(Named { name, model, id, route, preset, base_url })
}

/// Finds the provider of a configuration and its key; `variable` reads the environment.
pub(crate) fn reach(config: &RigConfig, variable: &dyn Fn(&str) -> Option<String>) -> Result<Reached, ConfigError> {
    let named = name(config, variable)?;
    let own_service = named.is_own_service();
    let Named { name, model, id, route, preset, base_url } = named;
    let address = base_url.clone().unwrap_or_else(|| preset.base_url().to_owned());
    if address.is_empty() {
        return Err(ConfigError::MissingBaseUrl { provider: name.to_owned() });
    }
    check_base_url(&address)?;

    let own_address = config.base_url.is_none() || preset.base_url().is_empty() || is_local(&id);
    let (key_variable, key) = key(config, name, &id, own_address, variable)?;
    let mut reached = preset.with_credential(key.clone()).with_base_url(address);
    if let ProviderConfig::OpenAi(openai) = &mut reached {
        openai.route = if route == Some(Route::Chat) && base_url.is_none() && wants_responses(id, model) {
            Some(Route::Responses)
        } else {
            route
        };
        if key.is_empty() {
            openai.auth = Auth::OptionalBearer;
        }
    }
    Ok(Reached {
        model: model.to_owned(),
        id,
        config: reached,
        key_variable,
        key: key.into(),
        own_address: own_service,
    })
}

/// The provider of a name, and which of its interfaces is meant.
fn provider(name: &str) -> Result<(ProviderId, Option<Route>), ConfigError> {
    let aliased = ALIASES.iter().find(|(alias, ..)| *alias == name);
    let (selection, route) = aliased.map_or((name, None), |(_, selection, route)| (selection, *route));
    if NO_KEY.contains(&selection) {
        let problem = format!("cannot be used: `{name}` has a sign-in of its own and no key");
        return Err(ConfigError::BadSetting { setting: "model".to_owned(), problem });
    }
    // Of a vendor that speaks several formats the bare name is the first, which is OpenAI's.
    let found = ProviderId::resolve(selection).ok().or_else(|| ProviderId::new(selection, Format::OpenAi));
    let id = found.ok_or_else(|| ConfigError::UnknownProvider { provider: name.to_owned() })?;
    Ok((id, route))
}

/// Whether a model of OpenAI takes tools in Chat Completions only if it does not reason.
fn wants_responses(id: ProviderId, model: &str) -> bool {
    Catalog::builtin().find(id, model).is_some_and(|spec| spec.compat.chat_tools_need_reasoning_off)
}

/// Whether it is a program that people run themselves, so that its address and its key are their own.
fn is_local(id: &ProviderId) -> bool {
    !id.requires_credential()
}

/// The key and its variable. A provider's usual key goes to no address but the provider's own.
fn key(
    config: &RigConfig,
    name: &str,
    id: &ProviderId,
    own_address: bool,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<(Option<String>, String), ConfigError> {
    let usual = || id.api_key_env().filter(|_| own_address).map(str::to_owned);
    let Some(key_variable) = config.api_key_env.clone().or_else(usual) else {
        return Ok((None, String::new()));
    };
    let key = variable(&key_variable).unwrap_or_default().trim().to_owned();
    if !key.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(ConfigError::BadKey { variable: key_variable });
    }
    let wanted = config.api_key_env.is_some() || id.requires_credential();
    match key.is_empty() {
        true if wanted => Err(ConfigError::MissingKey { provider: name.to_owned(), variable: key_variable }),
        true => Ok((None, key)),
        false => Ok((Some(key_variable), key)),
    }
}

/// The environment variable that names a provider's address.
fn base_url_variable(preset: &ProviderConfig) -> Option<&'static str> {
    match preset {
        ProviderConfig::OpenAi(openai) => openai.dialect.base_url_env,
        ProviderConfig::Anthropic(anthropic) => anthropic.dialect.base_url_env,
        ProviderConfig::Gemini(_) => None,
    }
}

fn check_base_url(address: &str) -> Result<(), ConfigError> {
    let bad = |problem| Err(ConfigError::BadBaseUrl { problem });
    let Ok(url) = Url::parse(address) else { return bad("is no address") };
    if !matches!(url.scheme(), "http" | "https") {
        return bad("must start with `http://` or `https://`");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return bad("holds a password: put it in an environment variable and name that with `api_key_env`");
    }
    if url.query().is_some() || url.fragment().is_some() {
        return bad("must end with its path");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reached(config: &RigConfig, environment: &[(&str, &str)]) -> Result<Reached, ConfigError> {
        let variable = |name: &str| environment.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned());
        reach(config, &variable)
    }

    fn problem(config: &RigConfig, environment: &[(&str, &str)]) -> String {
        reached(config, environment).unwrap_err().to_string()
    }

    #[test]
    fn every_known_provider_is_found_and_wants_its_key() {
        for name in known_providers() {
            let mut config = RigConfig::new(format!("{name}:m/o:del"));
            if name == "azure" {
                config.base_url = Some("https://mine.openai.azure.com".to_owned());
            }
            match reached(&config, &[]) {
                Ok(reached) => assert_eq!((reached.key_variable, &*reached.model), (None, "m/o:del"), "{name}"),
                Err(ConfigError::MissingKey { provider, variable }) => {
                    assert_eq!(provider, name);
                    let reached = reached(&config, &[(&variable, "k-123")]).unwrap();
                    assert_eq!((reached.key.expose(), reached.key_variable), ("k-123", Some(variable)), "{name}");
                }
                Err(error) => panic!("{name}: {error}"),
            }
        }
    }

    #[test]
    fn what_cannot_be_reached_is_said_before_anything_is_sent() {
        let with =
            |model: &str, base_url: &str| RigConfig { base_url: Some(base_url.to_owned()), ..RigConfig::new(model) };
        let check = |config: RigConfig, expected: &str| {
            let problem = problem(&config, &[("OPENAI_API_KEY", "sk-1\n2")]);
            assert!(problem.contains(expected), "{problem}");
        };
        check(RigConfig::new("gpt-4.1"), "`gpt-4.1` names no provider");
        check(RigConfig::new("anthropic:"), "names no model");
        check(RigConfig::new("opnai:gpt"), "unknown provider `opnai`: known are anthropic, azure, cohere, ");
        check(RigConfig::new("copilot:gpt"), "no key");
        check(RigConfig::new("anthropic:claude"), "`ANTHROPIC_API_KEY`");
        check(RigConfig::new("openai:gpt"), "no header can carry");
        check(RigConfig::new("azure:gpt"), "set `base_url`");
        check(with("openai:m", "localhost:8000/v1"), "`http://` or `https://`");
        check(with("openai:m", "not an address"), "is no address");
        check(with("openai:m", "http://host/v1?key=secret"), "end with its path");
        let named = RigConfig { api_key_env: Some("MY_KEY".to_owned()), ..RigConfig::new("ollama:qwen3") };
        check(named, "`MY_KEY`");

        let with_password = problem(&with("openai:m", "http://me:secret@host/v1"), &[]);
        assert!(with_password.contains("`api_key_env`") && !with_password.contains("secret"), "{with_password}");
    }

    #[test]
    fn openai_is_asked_where_the_model_takes_tools() {
        let route = |model: &str, base_url: Option<&str>| {
            let config = RigConfig { base_url: base_url.map(str::to_owned), ..RigConfig::new(model) };
            match reached(&config, &[("OPENAI_API_KEY", "k")]).unwrap().config {
                ProviderConfig::OpenAi(openai) => openai.completion_route(),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(route("openai:gpt-4.1-mini", None), Route::Chat);
        assert_eq!(route("openai:gpt-6-sol", None), Route::Responses);
        assert_eq!(route("openai:gpt-6-sol", Some("http://localhost:1/v1")), Route::Chat);
        assert_eq!(route("openai-responses:any", Some("http://localhost:1/v1")), Route::Responses);
    }

    #[test]
    fn a_usual_key_goes_to_no_other_address() {
        let environment = [
            ("OPENAI_API_KEY", "sk-usual"),
            ("OPENAI_BASE_URL", "http://proxy/v1"),
            ("LLAMACPP_API_KEY", "lc-usual"),
            ("MY_KEY", "sk-mine"),
        ];
        let check = |model: &str, base_url: Option<&str>, api_key_env: Option<&str>, expected: (&str, &str)| {
            let config = RigConfig {
                base_url: base_url.map(str::to_owned),
                api_key_env: api_key_env.map(str::to_owned),
                ..RigConfig::new(model)
            };
            let reached = reached(&config, &environment).unwrap();
            assert_eq!((reached.config.base_url(), reached.key.expose()), expected, "{model}");
        };
        check("openai:m", None, None, ("http://proxy/v1", "sk-usual"));
        check("openai:m", Some("http://other/v1"), None, ("http://other/v1", ""));
        check("openai:m", Some("http://other/v1"), Some("MY_KEY"), ("http://other/v1", "sk-mine"));
        check("llamacpp:m", Some("http://other/v1"), None, ("http://other/v1", "lc-usual"));
        check("ollama:m", None, None, ("http://localhost:11434/v1", ""));
    }
}
