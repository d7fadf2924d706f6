//! Errors of rig as errors of a model.
//!
//! What an error is is read from its kind and its status, never from its text; the text only says more.

use std::time::Duration;

use retrace_model::ModelError;
use rig_core::http_client::{Error as HttpError, HeaderMap, StatusCode};
use rig_core::{ProviderError, ProviderResponseError};
use serde_json::Value;

use crate::http::{Failure, FailureKind};
use crate::secrets::{Secrets, shown};

/// What an error says of the model that it came from.
#[derive(Clone, Debug)]
pub(crate) struct Context {
    /// The model, as the configuration names it.
    pub(crate) model: String,
    pub(crate) base_url: String,
    /// The variable that holds the key, if one is sent.
    pub(crate) key_variable: Option<String>,
    /// The settings that the configuration sets, as it spells them.
    pub(crate) settings: Vec<String>,
    pub(crate) timeout: Duration,
    pub(crate) secrets: Secrets,
}

impl Context {
    pub(crate) fn error(&self, error: &ProviderError) -> ModelError {
        match error {
            ProviderError::Http(error) => self.no_answer(error),
            ProviderError::ProviderResponse(reply) | ProviderError::InvalidAuthentication(reply) => self.reply(reply),
            ProviderError::CacheExpired { response, .. } => self.reply(response),
            ProviderError::Truncated => self.incomplete(),
            // The start of an answer, which was cut off on its way.
            ProviderError::Json(error) if error.is_eof() => self.incomplete(),
            ProviderError::Json(_) | ProviderError::Response(_) => {
                let message = self.shown(&error.to_string());
                let advice = format!("does {} lead to a provider that speaks so, path and all?", self.base_url);
                ModelError::Unusable { message: format!("{message}; {advice}") }
            }
            _ if error.is_retryable() => self.unavailable(self.shown(&error.to_string()), None),
            _ => ModelError::Refused { message: self.shown(&error.to_string()) },
        }
    }

    fn no_answer(&self, error: &HttpError) -> ModelError {
        let HttpError::Instance(source) = error else {
            return ModelError::Refused { message: self.shown(&error.to_string()) };
        };
        let text = self.shown(&source.to_string());
        let Some(failure) = source.downcast_ref::<Failure>() else { return self.unavailable(text, None) };
        match failure.kind {
            FailureKind::TimedOut => ModelError::TimedOut { limit: self.timeout },
            FailureKind::TooLarge => ModelError::Unusable { message: text },
            FailureKind::Broken => self.unavailable(text, None),
            FailureKind::Unreachable => self.unavailable(
                format!("cannot connect to {}: {text}; is the server running, and is `base_url` right?", self.base_url),
                None,
            ),
        }
    }

    /// The provider answered with a failure.
    fn reply(&self, reply: &ProviderResponseError) -> ModelError {
        let said = self.shown(&what_it_says(&reply.body));
        let retry_after = reply.headers.as_ref().and_then(retry_after);
        let said = if said.is_empty() { "no reason given".to_owned() } else { said };
        // A failure in an answer of success: the kind that rig found is all there is.
        let Some(status) = reply.status.filter(|status| !status.is_success()) else {
            return if reply.is_retryable() {
                self.unavailable(said, retry_after)
            } else {
                ModelError::Refused { message: said }
            };
        };
        let refused = |advice: String| ModelError::Refused { message: format!("{status}: {said}{advice}") };
        match status {
            StatusCode::TOO_MANY_REQUESTS if reply.machine_code().as_deref() == Some("insufficient_quota") => {
                refused("; the account has no quota left".to_owned())
            }
            StatusCode::TOO_MANY_REQUESTS => {
                ModelError::RateLimited { message: format!("{status}: {said}"), retry_after }
            }
            // What it says of a wrong key often quotes the key.
            StatusCode::UNAUTHORIZED => ModelError::Refused { message: format!("{status}: {}", self.key_advice()) },
            StatusCode::FORBIDDEN => refused(format!("; {}", self.key_advice())),
            StatusCode::NOT_FOUND => refused(format!(
                "; does {} have a model that it calls as `model` does (`{}`), and is `base_url` right?",
                self.base_url, self.model
            )),
            status if reply.is_retryable() => self.unavailable(format!("{status}: {said}"), retry_after),
            status if status.is_redirection() => {
                refused("; a redirect is not followed: set `base_url` to where it leads".to_owned())
            }
            _ => refused(self.setting_advice(&reply.body)),
        }
    }

    fn incomplete(&self) -> ModelError {
        self.unavailable("the answer is incomplete; does `base_url` lead to such a provider?".to_owned(), None)
    }

    fn unavailable(&self, message: String, retry_after: Option<Duration>) -> ModelError {
        ModelError::Unavailable { message, retry_after }
    }

    fn key_advice(&self) -> String {
        match &self.key_variable {
            Some(variable) => format!("the key in `{variable}` is not accepted"),
            None => "no key was sent: name the variable that holds it with `api_key_env`".to_owned(),
        }
    }

    /// Which setting a refusal speaks of: the one that it names as the parameter, or else every one in its text.
    fn setting_advice(&self, body: &str) -> String {
        let parameter = serde_json::from_str::<Value>(body).ok().and_then(|body| {
            let parameter = body.pointer("/error/param")?.as_str()?;
            self.settings.iter().find(|setting| *setting == parameter).cloned()
        });
        let named: Vec<_> = match parameter {
            Some(setting) => vec![setting],
            None => self.settings.iter().filter(|setting| body.contains(&***setting)).cloned().collect(),
        };
        if named.is_empty() {
            return String::new();
        }
        format!("; if the model refuses `{}`, leave it out of its configuration", named.join("`, `"))
    }

    fn shown(&self, text: &str) -> String {
        shown(&self.secrets.clean(text))
    }
}

/// The message in the body of a failure.
fn what_it_says(body: &str) -> String {
    let message = serde_json::from_str::<Value>(body).ok().and_then(|body| {
        let places = ["/error/message", "/error", "/message", "/detail", "/0/error/message"];
        places.into_iter().find_map(|place| body.pointer(place).and_then(Value::as_str).map(str::to_owned))
    });
    message.unwrap_or_else(|| body.to_owned())
}

/// How long a provider asks to wait: in milliseconds, as OpenAI has it, or in seconds. A date is not read, since that
/// would take our clock to be the provider's.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let number = |name: &str| headers.get(name)?.to_str().ok()?.trim().parse::<f64>().ok();
    let seconds = number("retry-after-ms").map(|ms| ms / 1000.0).or_else(|| number("retry-after"))?;
    Duration::try_from_secs_f64(seconds).ok()
}
