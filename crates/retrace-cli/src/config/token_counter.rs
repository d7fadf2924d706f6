//! How tokens are counted, as a configuration says it.

use std::sync::Arc;

use anyhow::Result;
use retrace_events::tokens::{FourCharacters, TokenCounter};

use crate::failure::hinted;

/// What counts tokens, for all strategies and for every number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
pub(crate) enum TokenCounterConfig {
    /// One token for every four characters.
    #[default]
    #[serde(rename = "characters/4")]
    FourCharacters,
    /// OpenAI's tokenizer of GPT-4o and of all models since.
    #[serde(rename = "o200k")]
    O200k,
    /// OpenAI's tokenizer of GPT-4 and GPT-3.5.
    #[serde(rename = "cl100k")]
    Cl100k,
    /// The tokenizer of the agent's model.
    #[serde(rename = "model")]
    Model,
}

impl TokenCounterConfig {
    /// The counter; `model` is the agent's, as the configuration names it.
    #[cfg(feature = "tokens-openai")]
    pub(crate) fn build(self, model: Option<&str>) -> Result<Arc<dyn TokenCounter>> {
        use retrace_events::tokens::OpenAiTokens;

        Ok(match (self, model) {
            (Self::FourCharacters, _) => Arc::new(FourCharacters),
            (Self::O200k, _) => Arc::new(OpenAiTokens::o200k()),
            (Self::Cl100k, _) => Arc::new(OpenAiTokens::cl100k()),
            (Self::Model, None) => {
                let message = "`token_counter = \"model\"` wants the agent's model, and the agent has none";
                return Err(hinted(message, format!("set `model` in `[agent]`, or {OTHERS}")));
            }
            (Self::Model, Some(model)) => {
                // What stands before the first colon is the provider.
                let name = model.split_once(':').map_or(model, |(_, name)| name);
                Arc::new(OpenAiTokens::for_model(name).ok_or_else(|| {
                    let message = format!("`token_counter = \"model\"`: no tokenizer is known for the model `{model}`");
                    hinted(message, format!("only those of OpenAI's models are known: {OTHERS}"))
                })?)
            }
        })
    }

    /// The counter; `model` is the agent's, as the configuration names it.
    #[cfg(not(feature = "tokens-openai"))]
    pub(crate) fn build(self, _model: Option<&str>) -> Result<Arc<dyn TokenCounter>> {
        if self == Self::FourCharacters {
            return Ok(Arc::new(FourCharacters));
        }
        Err(hinted(
            "`token_counter` names a tokenizer, and this program was built without: its feature `tokens-openai` is off",
            "install it with `cargo install --path crates/retrace-cli --features tokens-openai`, or leave \
             `token_counter` out to count `characters/4`",
        ))
    }
}

/// What to write instead of `model`.
#[cfg(feature = "tokens-openai")]
const OTHERS: &str = "name one with `token_counter = \"o200k\"`, or leave it out to count `characters/4`";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, StrategyTable};
    use crate::failure::text;

    fn counter(first_line: &str, agent: &str) -> Result<String, String> {
        let config = format!("{first_line}\n[agent]\n{agent}\n[models.strong]\nmodel = \"openai:gpt-4\"\n");
        let config: Config = toml::from_str(&config).map_err(|error| error.to_string())?;
        config.settings().map(|settings| settings.counter.name().to_owned()).map_err(|error| text(&error))
    }

    #[test]
    fn characters_are_counted_unless_it_says_otherwise() {
        for line in ["", "token_counter = \"characters/4\""] {
            assert_eq!(counter(line, "model = \"sim:wander\"").as_deref(), Ok("characters / 4"));
        }
        let error = counter("token_counter = \"o200\"", "model = \"sim:wander\"").unwrap_err();
        for word in ["line 1", "`o200`", "`characters/4`", "`o200k`", "`cl100k`", "`model`"] {
            assert!(error.contains(word), "{word} is not in: {error}");
        }
    }

    #[test]
    fn a_strategy_may_have_its_own() {
        let with = |line: &str| {
            let config = format!(
                "[agent]\nmodel = \"sim:wander\"\n[strategies.tail]\nkind = \"tail_window\"\ntarget = 2\n{line}\n"
            );
            let config = toml::from_str::<Config>(&config);
            config.map_err(|error| error.to_string()).map(|mut config| config.strategies.swap_remove("tail"))
        };
        let own = with("token_counter = \"o200k\"");
        assert!(
            matches!(&own, Ok(Some(StrategyTable::Menu(tail))) if tail.counter == Some(TokenCounterConfig::O200k)),
            "{own:?}"
        );
        assert!(matches!(with(""), Ok(Some(StrategyTable::Menu(tail))) if tail.counter.is_none()));
        for line in ["token_counter = \"o200\"", "token_counter = 4"] {
            let error = with(line).unwrap_err();
            assert!(error.contains("line 3") && error.contains("`token_counter`"), "{error}");
        }
    }

    #[test]
    #[cfg(not(feature = "tokens-openai"))]
    fn a_program_without_tokenizers_says_so() {
        for name in ["o200k", "cl100k", "model"] {
            let error = counter(&format!("token_counter = \"{name}\""), "model = \"openai:gpt-4o\"").unwrap_err();
            assert!(error.contains("`tokens-openai`"), "{error}");
        }
    }

    #[test]
    #[cfg(feature = "tokens-openai")]
    fn a_tokenizer_is_named_or_that_of_the_agents_model() {
        let of = |name: &str, agent| counter(&format!("token_counter = \"{name}\""), agent);
        assert_eq!(of("o200k", "model = \"sim:wander\"").as_deref(), Ok("o200k_base"));
        assert_eq!(of("cl100k", "model = \"sim:wander\"").as_deref(), Ok("cl100k_base"));
        assert_eq!(of("model", "model = \"openai:gpt-4.1-mini\"").as_deref(), Ok("o200k_base"));
        assert_eq!(of("model", "model = \"openrouter:openai/gpt-4o\"").as_deref(), Ok("o200k_base"));
        assert_eq!(of("model", "model = \"strong\"").as_deref(), Ok("cl100k_base"));
        assert!(of("model", "model = \"anthropic:claude-haiku-4-5\"").unwrap_err().contains("claude-haiku-4-5"));
        assert!(of("model", "model = \"sim:wander\"").unwrap_err().contains("sim:wander"));
        assert!(of("model", "program = { command = [\"agent\"] }").unwrap_err().contains("has none"));
    }
}
