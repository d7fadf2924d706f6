//! Time limits around everything that leaves the program.

use std::ops::Deref;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_core::future::BoxFuture;
use futures_util::FutureExt;
use retrace_env::{CallError, Dispatch, Environment, RestoreError, Restored, ToolOutput, Toolbox};
use retrace_events::tokens::{TokenCounter, Tokens};
use retrace_events::{Boundary, History, panic_text};
use retrace_model::{Answer, Clock, Model, ModelError, Prices, Prompt, Rules, Sleep};
use retrace_strategies::{BadSetting, Business, CompactContext, CompactError, Compacted, Strategy};
use tokio::time::{Instant, timeout};

/// How long each thing outside the program may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeLimits {
    /// One model call. Out of time it is a transient error.
    pub model: Duration,
    /// One tool call. Out of time the environment has failed, and with it the rollout.
    pub tool: Duration,
    /// Restoring an environment. Out of time the rollout has failed.
    pub restore: Duration,
    /// One compaction, its model calls included. Out of time the strategy has failed there.
    pub strategy: Duration,
    /// One rollout, from the restored environment to its end. Out of time it has failed, with what it had finished.
    pub rollout: Duration,
}

impl Default for TimeLimits {
    /// Two minutes for a model call or a tool call, five for a restore, ten for a compaction, an hour for a rollout.
    fn default() -> Self {
        Self {
            model: Duration::from_secs(120),
            tool: Duration::from_secs(120),
            restore: Duration::from_secs(300),
            strategy: Duration::from_secs(600),
            rollout: Duration::from_secs(3600),
        }
    }
}

/// Something with a time limit around it.
///
/// The limit takes effect where the thing awaits; what computes without awaiting cannot be interrupted.
#[derive(Clone, Debug)]
pub struct Timed<T> {
    inner: T,
    limit: Duration,
}

impl<T> Timed<T> {
    /// Gives each call of `inner` this much time.
    pub fn new(inner: T, limit: Duration) -> Self {
        Self { inner, limit }
    }
}

/// Waits on the clock of tokio.
#[derive(Clone, Copy, Debug, Default)]
pub struct TokioSleep;

impl Sleep for TokioSleep {
    fn sleep<'a>(&'a self, time: Duration) -> BoxFuture<'a, ()> {
        Box::pin(tokio::time::sleep(time))
    }
}

/// Tells the time of tokio since it was made, and waits on it.
#[derive(Clone, Copy, Debug)]
pub struct TokioClock(Instant);

impl TokioClock {
    /// A clock that starts now.
    pub fn start() -> Self {
        Self(Instant::now())
    }
}

impl Sleep for TokioClock {
    fn sleep<'a>(&'a self, time: Duration) -> BoxFuture<'a, ()> {
        TokioSleep.sleep(time)
    }
}

impl Clock for TokioClock {
    fn now(&self) -> Duration {
        self.0.elapsed()
    }
}

impl<M: Model> Model for Timed<M> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn rules(&self) -> Rules {
        self.inner.rules()
    }

    fn prices(&self) -> Option<Prices> {
        self.inner.prices()
    }

    fn respond<'a>(&'a self, prompt: &'a Prompt<'a>) -> BoxFuture<'a, Result<Answer, ModelError>> {
        Box::pin(async move {
            let answer = timeout(self.limit, self.inner.respond(prompt)).await;
            answer.unwrap_or(Err(ModelError::TimedOut { limit: self.limit }))
        })
    }
}

impl Dispatch for Timed<Toolbox> {
    fn dispatch<'a>(&'a self, name: &'a str, arguments: &'a str) -> BoxFuture<'a, Result<ToolOutput, CallError>> {
        Box::pin(async move {
            let answer = timeout(self.limit, self.inner.call(name, arguments)).await;
            answer.unwrap_or_else(|_| {
                let message = format!("the tool `{name}` gave no answer within {:?}", self.limit);
                Err(CallError::Environment { message })
            })
        })
    }
}

/// An environment with time limits: on restoring it, and on each call of its tools. A panic is a failure to restore.
pub(crate) struct Bounded<'a> {
    pub(crate) environment: &'a dyn Environment,
    pub(crate) limits: TimeLimits,
}

impl Environment for Bounded<'_> {
    fn open(&self) -> BoxFuture<'_, Result<Toolbox, RestoreError>> {
        Box::pin(async move { Ok(self.timed(self.within(|| self.environment.open()).await?)) })
    }

    fn restore<'a>(&'a self, boundary: &'a Boundary) -> BoxFuture<'a, Result<Restored, RestoreError>> {
        Box::pin(async move {
            let Restored { toolbox, replay } = self.within(|| self.environment.restore(boundary)).await?;
            Ok(Restored { toolbox: self.timed(toolbox), replay })
        })
    }
}

impl Bounded<'_> {
    async fn within<'w, T>(
        &self,
        build: impl FnOnce() -> BoxFuture<'w, Result<T, RestoreError>>,
    ) -> Result<T, RestoreError> {
        let limit = self.limits.restore;
        let failed = |source: String| Err(RestoreError::Environment { source: source.into() });
        // Made inside the future that is watched: an environment may panic before it returns one.
        let world = AssertUnwindSafe(async { build().await }).catch_unwind();
        match timeout(limit, world).await {
            Ok(Ok(world)) => world,
            Ok(Err(panic)) => failed(format!("it panicked: {}", panic_text(&*panic))),
            Err(_) => failed(format!("it was not restored within {limit:?}")),
        }
    }

    fn timed(&self, toolbox: Toolbox) -> Toolbox {
        toolbox.wrapped(|toolbox| Timed::new(toolbox, self.limits.tool))
    }
}

impl<S: Deref<Target = dyn Strategy> + Send + Sync> Strategy for Timed<S> {
    fn kind(&self) -> &'static str {
        self.inner.kind()
    }

    fn type_name(&self) -> &'static str {
        self.inner.type_name()
    }

    fn business(&self) -> Business {
        self.inner.business()
    }

    fn settles(&self) -> bool {
        self.inner.settles()
    }

    fn is_due(&self, history: &History, window: Option<Tokens>, counter: &dyn TokenCounter) -> bool {
        self.inner.is_due(history, window, counter)
    }

    fn counter(&self) -> Option<&dyn TokenCounter> {
        self.inner.counter()
    }

    fn early(
        &self,
        history: &History,
        window: Option<Tokens>,
        counter: &dyn TokenCounter,
    ) -> Option<Arc<dyn Strategy>> {
        let early = self.inner.early(history, window, counter)?;
        Some(Arc::new(Timed::new(early, self.limit)))
    }

    fn fresh(&self) -> Option<Arc<dyn Strategy>> {
        Some(Arc::new(Timed::new(self.inner.fresh()?, self.limit)))
    }

    fn models(&self) -> Vec<&str> {
        self.inner.models()
    }

    fn warnings(&self) -> Vec<BadSetting> {
        self.inner.warnings()
    }

    fn compact<'a>(
        &'a self,
        history: &'a History,
        cx: &'a mut CompactContext<'_>,
    ) -> BoxFuture<'a, Result<Compacted, CompactError>> {
        Box::pin(async move {
            timeout(self.limit, self.inner.compact(history, cx))
                .await
                .unwrap_or_else(|_| Err(CompactError::Other { message: format!("no result within {:?}", self.limit) }))
        })
    }
}
