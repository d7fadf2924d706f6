//! Telling when the first rollout of an arm has been answered, so that a provider's cache holds what the others share.

use std::sync::{Arc, Mutex, PoisonError};

use retrace_env::{CallError, Dispatch, ToolOutput, Toolbox};
use retrace_events::Arm;
use retrace_model::{Answer, BoxFuture, Model, ModelError, Prices, Prompt, Rules};
use tokio::sync::mpsc::UnboundedSender;

/// Whom to tell, once.
#[derive(Clone)]
pub(crate) struct Warm(Arc<Mutex<Option<Tell>>>);

struct Tell {
    whom: UnboundedSender<(usize, Arm)>,
    what: (usize, Arm),
}

impl Warm {
    pub(crate) fn new(whom: UnboundedSender<(usize, Arm)>, what: (usize, Arm)) -> Self {
        Self(Arc::new(Mutex::new(Some(Tell { whom, what }))))
    }

    fn tell(&self) {
        let tell = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Tell { whom, what }) = tell {
            // Where nobody listens any more, nobody waits.
            let _ = whom.send(what);
        }
    }
}

/// A model whose first answer is told.
pub(crate) struct WarmingModel<'a> {
    pub(crate) model: &'a dyn Model,
    pub(crate) warm: Warm,
}

impl Model for WarmingModel<'_> {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn rules(&self) -> Rules {
        self.model.rules()
    }

    fn prices(&self) -> Option<Prices> {
        self.model.prices()
    }

    fn respond<'a>(&'a self, prompt: &'a Prompt<'a>) -> BoxFuture<'a, Result<Answer, ModelError>> {
        Box::pin(async move {
            let answer = self.model.respond(prompt).await?;
            self.warm.tell();
            Ok(answer)
        })
    }
}

/// Tools whose first call is told: an agent that asks a model of its own has had its answer by then.
pub(crate) struct WarmingTools {
    pub(crate) toolbox: Toolbox,
    pub(crate) warm: Warm,
}

impl Dispatch for WarmingTools {
    fn dispatch<'a>(&'a self, name: &'a str, arguments: &'a str) -> BoxFuture<'a, Result<ToolOutput, CallError>> {
        self.warm.tell();
        self.toolbox.call(name, arguments)
    }
}
