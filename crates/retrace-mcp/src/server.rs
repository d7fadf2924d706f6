//! Servers: how one is started or reached, and talked to.

use std::collections::HashMap;
use std::env;
use std::error::Error as _;
use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{HeaderName, HeaderValue};
use reqwest::redirect::Policy;
use retrace_process::{Hidden, Process, ProcessError, Program, Workspace, WorkspaceError};
use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig, ErrorData, Implementation, JsonObject,
    Tool,
};
use rmcp::service::{ClientInitializeError, RunningService, ServiceError};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransport, StreamableHttpClientTransportConfig, StreamableHttpError,
};
use rmcp::{RoleClient, ServiceExt};

use crate::config::McpConfig;
use crate::error::McpError;
use crate::listing::list;
use crate::overheard::{Garbage, MAX_LINE, Overheard};
use crate::placeholders::{Placeholders, with_variables};
use crate::shown_path::ShownPath;

/// How each server is started or reached: a configuration whose variables are filled in.
pub(crate) struct Setup {
    pub(crate) config: McpConfig,
    to: To,
}

enum To {
    /// A program that is started, with placeholders in its texts.
    Program(Program),
    /// An address, with placeholders, and the client that goes there.
    Address { url: String, headers: Vec<(HeaderName, String)>, client: reqwest::Client, hidden: Vec<String> },
}

/// A server that has said hello.
pub(crate) struct Server {
    // Dropped before the process, whose standard input it holds.
    service: RunningService<RoleClient, ClientConfig>,
    peer: Talk,
    pub(crate) placeholders: Placeholders,
    pub(crate) path: Option<ShownPath>,
    /// That of a server at an address; a process keeps its own until it has ended.
    _workspace: Option<Workspace>,
}

/// What is behind a server, for when it fails.
enum Talk {
    Program { process: Process, garbage: Garbage },
    Address { shown: String, hidden: Hidden },
}

/// What a request gave.
pub(crate) enum Reply<T> {
    /// What was asked for.
    Answer(T),
    /// An error of the protocol.
    Refusal(ErrorData),
}

impl Setup {
    pub(crate) fn new(config: McpConfig) -> Result<Self, McpError> {
        config.check()?;
        let variable = |name: &str| env::var(name).ok();
        let mut hidden = Vec::new();
        let mut fill = |text: &str, place: String| with_variables(text, &place, &variable, &mut hidden);
        let to = if let Some(url) = &config.url {
            let headers = config.headers.iter().map(|(name, value)| {
                let place = format!("headers.{name}");
                let value = fill(value, place.clone())?;
                let name = name.parse().map_err(|_| invalid(&place))?;
                HeaderValue::from_str(&value).map_err(|_| invalid(&place))?;
                Ok((name, value))
            });
            let headers = headers.collect::<Result<_, McpError>>()?;
            let url = fill(url, "url".to_owned())?;
            To::Address { url, headers, client: http_client()?, hidden }
        } else {
            let env = config.env.iter().map(|(name, value)| Ok((name.clone(), fill(value, format!("env.{name}"))?)));
            let env = env.collect::<Result<_, McpError>>()?;
            To::Program(Program {
                command: config.command.clone().unwrap_or_default(),
                args: config.args.clone(),
                env,
                pass_env: config.pass_env.clone(),
                secret_env: config.secret_env.clone(),
                hidden,
                folder: config.folder.clone(),
            })
        };
        Ok(Self { config, to })
    }

    /// Starts or reaches a server, with a workspace of its own if there is a template.
    pub(crate) async fn start(&self) -> Result<Server, McpError> {
        let workspace = match &self.config.workspace {
            Some(template) => Some(copy(template.clone()).await?),
            None => None,
        };
        let at = workspace.as_ref().map(|workspace| workspace.path().to_string_lossy().into_owned());
        let path = at.as_ref().map(|at| ShownPath::new(at, self.config.workspace_as()));
        let placeholders = Placeholders::next(at);
        let (service, peer, workspace) = match &self.to {
            To::Program(program) => {
                let (service, peer) = self.start_program(program, &placeholders, workspace).await?;
                (service, peer, None)
            }
            To::Address { url, headers, client, hidden } => {
                let headers = headers.iter().map(|(name, value)| (name, value.as_str()));
                let (service, peer) = self.reach(url, headers, client, hidden, &placeholders).await?;
                (service, peer, workspace)
            }
        };
        Ok(Server { service, peer, placeholders, path, _workspace: workspace })
    }

    async fn start_program(
        &self,
        program: &Program,
        placeholders: &Placeholders,
        workspace: Option<Workspace>,
    ) -> Result<(RunningService<RoleClient, ClientConfig>, Talk), McpError> {
        let folder = program.folder.as_ref().map(|folder| match folder.to_str() {
            Some(folder) => placeholders.fill(folder).into(),
            None => folder.clone(),
        });
        let program = Program {
            args: program.args.iter().map(|arg| placeholders.fill(arg)).collect(),
            env: program.env.iter().map(|(name, value)| (name.clone(), placeholders.fill(value))).collect(),
            folder,
            ..program.clone()
        };
        let mut process = Process::spawn(&program).await?;
        if let Some(workspace) = workspace {
            process.keep(workspace);
        }
        let Some((stdin, stdout)) = process.take_pipes() else {
            return Err(process.failure("has no pipes").await.into());
        };
        let (stdout, garbage) = Overheard::new(stdout);
        let hello = client_config().serve(AsyncRwTransport::new_client(stdout, stdin));
        let limit = self.config.start_timeout();
        let talk = Talk::Program { process, garbage };
        match talk.timed("answer `initialize`", limit, hello).await? {
            Ok(service) => Ok((service, talk)),
            Err(error) => Err(talk.failure(&hello_problem(&error, &talk)).await),
        }
    }

    async fn reach(
        &self,
        url: &str,
        headers: impl Iterator<Item = (&HeaderName, &str)>,
        client: &reqwest::Client,
        hidden: &[String],
        placeholders: &Placeholders,
    ) -> Result<(RunningService<RoleClient, ClientConfig>, Talk), McpError> {
        let headers = headers.map(|(name, value)| {
            let mut value =
                HeaderValue::from_str(&placeholders.fill(value)).map_err(|_| invalid(&format!("headers.{name}")))?;
            value.set_sensitive(true);
            Ok((name.clone(), value))
        });
        let headers = headers.collect::<Result<HashMap<_, _>, McpError>>()?;
        let url = placeholders.fill(url);
        // The address may hold a key, so messages have it as the configuration has it.
        let shown = self.config.url.clone().unwrap_or_default();
        let hidden = Hidden::new(hidden.iter().chain([&url]).cloned());
        let config = StreamableHttpClientTransportConfig::with_uri(url).custom_headers(headers);
        let talk = Talk::Address { shown, hidden };
        let hello = client_config().serve(StreamableHttpClientTransport::with_client(client.clone(), config));
        match talk.timed("answer `initialize`", self.config.start_timeout(), hello).await? {
            Ok(service) => Ok((service, talk)),
            Err(error) => Err(talk.failure(&hello_problem(&error, &talk)).await),
        }
    }
}

impl Server {
    /// Whether it may still be talked to.
    pub(crate) fn is_alive(&self) -> bool {
        let has_ended = matches!(&self.peer, Talk::Program { process, .. } if process.status().is_some());
        !has_ended && !self.service.is_closed()
    }

    /// All that it lists, as the agent is to see it.
    pub(crate) async fn tools(&self, limit: Duration) -> Result<Vec<Tool>, McpError> {
        let problem = match self.ask("list its tools", limit, list(&self.service)).await? {
            Reply::Answer(Ok(mut tools)) => {
                if let Some(path) = &self.path {
                    tools.iter_mut().for_each(|tool| show(tool, path));
                }
                return Ok(tools);
            }
            Reply::Answer(Err(flaw)) => self.peer.quoted(&flaw),
            Reply::Refusal(error) => format!("does not list its tools: {}", self.peer.quoted(&error.message)),
        };
        Err(self.peer.broken(&problem))
    }

    /// What a call gives.
    pub(crate) async fn call(
        &self,
        tool: &str,
        arguments: JsonObject,
        limit: Duration,
    ) -> Result<Reply<CallToolResult>, McpError> {
        let request = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let doing = format!("answer a call of `{}`", self.peer.quoted(tool));
        self.ask(&doing, limit, self.service.call_tool(request)).await
    }

    async fn ask<T>(
        &self,
        doing: &str,
        limit: Duration,
        request: impl Future<Output = Result<T, ServiceError>>,
    ) -> Result<Reply<T>, McpError> {
        let problem = match self.peer.timed(doing, limit, request).await? {
            Ok(answer) => return Ok(Reply::Answer(answer)),
            Err(ServiceError::McpError(error)) => return Ok(Reply::Refusal(error)),
            Err(ServiceError::TransportSend(error)) => self.peer.told(&*error.error),
            Err(ServiceError::TransportClosed) => "closed the connection".to_owned(),
            Err(ServiceError::UnexpectedResponse) => format!("did not {doing} with what the protocol has for it"),
            Err(error) => self.peer.told(&error),
        };
        Err(self.peer.failure(&problem).await)
    }
}

impl Talk {
    async fn timed<T>(&self, doing: &str, limit: Duration, work: impl Future<Output = T>) -> Result<T, McpError> {
        match self {
            Self::Program { process, garbage } => process.timed(doing, limit, work).await.map_err(|error| {
                let ProcessError::TimedOut { program, doing, limit, stderr } = error else { return error.into() };
                // What it wrote instead is what to look at.
                let doing = garbage.quoted(process).map_or(doing.clone(), |line| format!("{doing}, but wrote {line},"));
                ProcessError::TimedOut { program, doing, limit, stderr }.into()
            }),
            Self::Address { .. } => tokio::time::timeout(limit, work)
                .await
                .map_err(|_| self.broken(&format!("did not {doing} within {} s", limit.as_secs_f64()))),
        }
    }

    /// The error to tell when it cannot be talked to, for a problem, a predicate.
    async fn failure(&self, problem: &str) -> McpError {
        let Self::Program { process, garbage } = self else { return self.broken(problem) };
        match garbage.quoted(process) {
            None => process.failure(problem).await.into(),
            // Should it have ended, that is because nobody listens any more.
            Some(line) if garbage.is_too_long() => {
                self.broken(&format!("wrote a line of more than {} MB: {line}", MAX_LINE >> 20))
            }
            Some(line) => process.failure(format!("{problem}, and wrote {line}, which is no message")).await.into(),
        }
    }

    /// The error to tell when what it answers cannot be used, for a problem, a predicate.
    fn broken(&self, problem: &str) -> McpError {
        match self {
            Self::Program { process, .. } => process.broken(problem).into(),
            Self::Address { shown, .. } => McpError::Http { url: shown.clone(), problem: format!("it {problem}") },
        }
    }

    /// An error of the transport as a predicate, without what must not be shown.
    fn told(&self, error: &(dyn std::error::Error + 'static)) -> String {
        if let Some(StreamableHttpError::Client(error)) = error.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
            return self.http_problem(error);
        }
        format!("cannot be talked to: {}", self.quoted(&error.to_string()))
    }

    /// A failure of HTTP as a predicate, without the address.
    fn http_problem(&self, error: &reqwest::Error) -> String {
        if let Some(status) = error.status() {
            return format!("answered with HTTP status {status}");
        }
        let mut problem = if error.is_connect() { "cannot be reached" } else { "cannot be talked to" }.to_owned();
        let mut source = error.source();
        while let Some(inner) = source {
            problem = format!("{problem}: {}", self.quoted(&inner.to_string()));
            source = inner.source();
        }
        problem
    }

    /// What the server says, as an error may quote it.
    fn quoted(&self, text: &str) -> String {
        match self {
            Self::Program { process, .. } => process.quoted(text),
            Self::Address { hidden, .. } => hidden.escaped(text),
        }
    }
}

/// Takes the path of the workspace out of what the agent is shown of a tool.
fn show(tool: &mut Tool, path: &ShownPath) {
    tool.description = tool.description.take().map(|text| path.show(&text).into());
    Arc::make_mut(&mut tool.input_schema).values_mut().for_each(|value| path.show_value(value));
}

/// What was wrong with the answer to `initialize`, as a predicate.
fn hello_problem(error: &ClientInitializeError, talk: &Talk) -> String {
    match error {
        ClientInitializeError::ConnectionClosed(_) => {
            "closed the connection before it answered `initialize`".to_owned()
        }
        ClientInitializeError::JsonRpcError(error) => format!("refused `initialize`: {}", talk.quoted(&error.message)),
        ClientInitializeError::TransportError { error, .. } => talk.told(&*error.error),
        error => talk.told(error),
    }
}

/// Redirects are not followed, since the headers would be sent along.
fn http_client() -> Result<reqwest::Client, McpError> {
    // Whoever comes first chooses for the whole process; any choice will do.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder()
        .user_agent(concat!("retrace/", env!("CARGO_PKG_VERSION")))
        .redirect(Policy::none())
        // As the transport's own client: a connection whose last answer was not read to its end stalls when it is reused.
        .pool_max_idle_per_host(0);
    client.build().map_err(|error| McpError::Config { message: format!("HTTPS is not available: {error}") })
}

async fn copy(template: PathBuf) -> Result<Workspace, McpError> {
    let copied = tokio::task::spawn_blocking({
        let template = template.clone();
        move || Workspace::copy(&template)
    });
    // It does not panic, so the runtime is about to end.
    copied
        .await
        .unwrap_or_else(|error| Err(WorkspaceError::Io { path: template, source: error.into() }))
        .map_err(Into::into)
}

fn client_config() -> ClientConfig {
    ClientConfig::new(ClientCapabilities::default(), Implementation::new("retrace", env!("CARGO_PKG_VERSION")))
}

fn invalid(place: &str) -> McpError {
    McpError::Config { message: format!("`{place}` is no header that can be sent") }
}
