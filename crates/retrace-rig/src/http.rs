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

use crate::config::ConfigError;

/// No answer is larger than this, whatever a server sends.
const LARGEST: usize = 64 << 20;

/// How long a server may take to be reached.
const CONNECT: Duration = Duration::from_secs(20);

/// The HTTP client of a model. Proxies are those of the environment. A redirect is an answer and is not followed, since
/// the key would be sent along.
#[derive(Clone)]
pub(crate) struct Http(reqwest::Client);

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
    pub(crate) fn new(timeout: Duration) -> std::result::Result<Self, ConfigError> {
        // Whoever comes first chooses for the whole process; any choice will do.
        let _ = rustls::crypto::ring::default_provider().install_default();
        reqwest::Client::builder()
            .user_agent(concat!("retrace/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT.min(timeout))
            .timeout(timeout)
            .redirect(Policy::none())
            .build()
            .map(Self)
            .map_err(|error| ConfigError::Https { problem: with_sources(&error) })
    }

    #[expect(clippy::result_large_err, reason = "the error is rig's")]
    fn request(&self, request: Request<Bytes>) -> Result<reqwest::RequestBuilder> {
        let (parts, body) = request.into_parts();
        let mut url = Url::parse(&parts.uri.to_string()).map_err(Error::instance)?;
        let key = key_taken_out(&mut url);
        let mut request = self.0.request(parts.method, url).headers(parts.headers).body(body);
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
        let kind = if error.is_timeout() {
            FailureKind::TimedOut
        } else if error.is_connect() {
            FailureKind::Unreachable
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
        let http = Http::new(Duration::from_secs(1)).unwrap();
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
}
