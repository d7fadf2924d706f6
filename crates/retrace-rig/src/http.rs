//! How requests travel: over one HTTP client, with retrace's own limits.

use std::error::Error as _;
use std::fmt;
use std::future::{Future, ready};
use std::time::Duration;

use bytes::Bytes;
use reqwest::Url;
use reqwest::header::HeaderValue;
use reqwest::redirect::Policy;
use rig_core::http_client::{
    Error, HttpClientExt, LazyBody, MultipartForm, Request, Response, Result, StreamingResponse,
};
use serde_json::Value;

use crate::breakpoints::mark_the_request_before;
use crate::config::ConfigError;

/// No answer is larger than this, whatever a server sends.
const LARGEST: usize = 64 << 20;

/// How long a server may take to be reached, or half of the time limit if that is less.
const CONNECT: Duration = Duration::from_secs(20);

/// The HTTP client of a model. Proxies are those of the environment. A redirect is an answer and is not followed, since
/// the key would be sent along.
#[derive(Clone)]
pub(crate) struct Http {
    client: reqwest::Client,
    texts: Texts,
    /// Whether requests say where a cache is to end.
    marks_cache: bool,
}

/// How a message of Chat Completions has several texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Texts {
    /// As a list.
    Apart,
    /// As one, with an empty line between them, and as the empty text where there is none: many servers take nothing
    /// else, or show the model how their language prints it.
    Joined,
}

/// Why there was no answer.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) kind: FailureKind,
    /// Without the address, which may hold a key.
    message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailureKind {
    TimedOut,
    Unreachable,
    Broken,
    TooLarge,
}

impl Http {
    pub(crate) fn new(timeout: Duration, texts: Texts, marks_cache: bool) -> std::result::Result<Self, ConfigError> {
        // Whoever comes first chooses for the whole process; any choice will do.
        let _ = rustls::crypto::ring::default_provider().install_default();
        reqwest::Client::builder()
            .user_agent(concat!("retrace/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT.min(timeout / 2))
            .timeout(timeout)
            .redirect(Policy::none())
            .build()
            .map(|client| Self { client, texts, marks_cache })
            .map_err(|error| ConfigError::Https { problem: with_sources(&error) })
    }

    #[expect(clippy::result_large_err, reason = "the error is rig's")]
    fn request(&self, request: Request<Bytes>) -> Result<reqwest::RequestBuilder> {
        let (parts, body) = request.into_parts();
        let mut url = Url::parse(&parts.uri.to_string()).map_err(Error::instance)?;
        let key = key_taken_out(&mut url);
        let body = match url.path() {
            path if path.ends_with("/chat/completions") => plain_texts(body, self.texts),
            path if path.ends_with("/messages") && self.marks_cache => mark_the_request_before(body),
            _ => body,
        };
        let mut request = self.client.request(parts.method, url).headers(parts.headers).body(body);
        if let Some(key) = key {
            let mut key = HeaderValue::from_str(&key)?;
            key.set_sensitive(true);
            request = request.header("x-goog-api-key", key);
        }
        Ok(request)
    }
}

/// The `key` of an address's query, as Gemini has it, which is then no longer there: an address stands in many an error
/// and log, a header in none.
fn key_taken_out(url: &mut Url) -> Option<String> {
    let (keys, rest): (Vec<_>, Vec<_>) = url.query_pairs().into_owned().partition(|(name, _)| name == "key");
    let (_, key) = keys.into_iter().next()?;
    url.set_query(None);
    if !rest.is_empty() {
        url.query_pairs_mut().extend_pairs(rest);
    }
    Some(key)
}

/// A request with each content of one text as that text, and each of several as the server wants it.
fn plain_texts(body: Bytes, texts: Texts) -> Bytes {
    let Ok(mut request) = serde_json::from_slice::<Value>(&body) else { return body };
    let Some(messages) = request.get_mut("messages").and_then(Value::as_array_mut) else { return body };
    for message in messages.iter_mut().filter_map(Value::as_object_mut) {
        let content = message.entry("content").or_insert(Value::Null);
        if content.is_null() && texts == Texts::Joined {
            *content = Value::from("");
        }
        let Some(parts) = content.as_array() else { continue };
        let text = |part: &Value| match part.as_object()?.get("text")? {
            Value::String(text) if part.as_object()?.len() == 2 => Some(text.clone()),
            _ => None,
        };
        let said: Option<Vec<_>> = parts.iter().map(text).collect();
        if let Some(said) = said.filter(|said| said.len() == 1 || texts == Texts::Joined) {
            *content = Value::String(said.join("\n\n"));
        }
    }
    serde_json::to_vec(&request).map_or(body, Bytes::from)
}

async fn answer(request: Result<reqwest::RequestBuilder>) -> Result<Response<Bytes>> {
    let failed = |error: reqwest::Error| Error::instance(Failure::from(error));
    let mut response = request?.send().await.map_err(failed)?;
    let (status, headers) = (response.status(), std::mem::take(response.headers_mut()));
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(failed)? {
        if body.len() + chunk.len() > LARGEST {
            let message = format!("the answer is larger than {} MiB", LARGEST >> 20);
            return Err(Error::instance(Failure { kind: FailureKind::TooLarge, message }));
        }
        body.extend_from_slice(&chunk);
    }
    if !status.is_success() {
        let body = String::from_utf8_lossy(&body).into_owned();
        return Err(Error::non_success_with_details(status, headers, body));
    }
    let mut answer = Response::new(Bytes::from(body));
    (*answer.status_mut(), *answer.headers_mut()) = (status, headers);
    Ok(answer)
}

impl HttpClientExt for Http {
    fn send<T, U>(&self, request: Request<T>) -> impl Future<Output = Result<Response<LazyBody<U>>>> + Send + 'static
    where
        T: Into<Bytes> + Send,
        U: From<Bytes> + Send + 'static,
    {
        let request = self.request(request.map(Into::into));
        async move {
            let answer = answer(request).await?;
            Ok(answer.map(|body| Box::pin(ready(Ok(U::from(body)))) as LazyBody<U>))
        }
    }

    fn send_multipart<U>(
        &self,
        _: Request<MultipartForm>,
    ) -> impl Future<Output = Result<Response<LazyBody<U>>>> + Send + 'static
    where
        U: From<Bytes> + Send + 'static,
    {
        ready(Err(Error::NoHeaders))
    }

    fn send_streaming<T>(&self, _: Request<T>) -> impl Future<Output = Result<StreamingResponse>> + Send
    where
        T: Into<Bytes> + Send,
    {
        ready(Err(Error::StreamEnded))
    }
}

impl From<reqwest::Error> for Failure {
    fn from(error: reqwest::Error) -> Self {
        // A connection that is not made in time is both.
        let kind = if error.is_connect() {
            FailureKind::Unreachable
        } else if error.is_timeout() {
            FailureKind::TimedOut
        } else {
            FailureKind::Broken
        };
        Self { kind, message: with_sources(&error.without_url()) }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

/// An error and its causes; the innermost says what happened.
fn with_sources(error: &reqwest::Error) -> String {
    let (mut text, mut source) = (error.to_string(), error.source());
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_in_an_address_becomes_a_header() {
        let http = Http::new(Duration::from_secs(1), Texts::Apart, false).unwrap();
        let send = |uri: &str| {
            let request = Request::builder().uri(uri).body(Bytes::new()).unwrap();
            http.request(request).unwrap().build().unwrap()
        };
        let request = send("https://example.org/v1/models?pageSize=9&key=s%2Bcret");
        assert_eq!(request.url().as_str(), "https://example.org/v1/models?pageSize=9");
        assert_eq!(request.headers()["x-goog-api-key"], "s+cret");
        assert!(!format!("{request:?}").contains("cret"), "{request:?}");

        let plain = send("https://example.org/v1/chat?api-version=2024-10-21");
        assert_eq!(plain.url().as_str(), "https://example.org/v1/chat?api-version=2024-10-21");
        assert!(plain.headers().is_empty());
    }

    #[test]
    fn texts_are_as_plain_as_the_server_wants_them() {
        let request = r#"{"messages":[{"content":[{"type":"text","text":"a"}]},{"tool_calls":[]},{"content":"b"},
            {"content":[{"type":"text","text":"c"},{"type":"text","text":"d"}]},
            {"content":[{"type":"text","text":"e"},{"type":"image_url","image_url":{}}]}]}"#;
        let contents = |texts| -> Vec<String> {
            let body: Value = serde_json::from_slice(&plain_texts(Bytes::from(request), texts)).unwrap();
            body["messages"].as_array().unwrap().iter().map(|message| message["content"].to_string()).collect()
        };
        let (apart, joined) = (contents(Texts::Apart), contents(Texts::Joined));
        assert_eq!(apart[..3], ["\"a\"", "null", "\"b\""]);
        assert!(apart[3].starts_with('[') && apart[4].starts_with('['));
        assert_eq!(joined[3], r#""c\n\nd""#);
        assert_eq!((&joined[0], &*joined[1], &joined[4]), (&apart[0], "\"\"", &apart[4]));
    }
}
