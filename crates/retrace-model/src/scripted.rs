//! A model that plays a script and tells what it was asked.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use futures_core::future::BoxFuture;
use retrace_events::{Event, Part, Response, ToolCall, ToolSpec};

use crate::model::{Answer, Model, ModelError};
use crate::prompt::Prompt;

/// A model for tests: it gives the answers of a script in order, whatever it is asked, and tells what it was asked.
///
/// Once the script has run out, every prompt is [refused](ModelError::Refused).
#[derive(Debug, Default)]
pub struct ScriptedModel {
    script: Mutex<VecDeque<Step>>,
    asked: Mutex<Vec<Asked>>,
}

/// One answer of a script.
#[derive(Clone, Debug)]
pub struct Step(Result<Response, ModelError>);

/// A prompt that a [`ScriptedModel`] was given.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// The instructions.
    pub instructions: Option<String>,
    /// The whole history, whether or not all of it is sent.
    pub events: Vec<Arc<Event>>,
    /// The tools.
    pub tools: Vec<ToolSpec>,
    /// The seed.
    pub seed: u64,
}

impl ScriptedModel {
    /// A model with this script: texts, lists of calls, responses or errors.
    pub fn new<S: Into<Step>>(script: impl IntoIterator<Item = S>) -> Self {
        Self { script: Mutex::new(script.into_iter().map(Into::into).collect()), asked: Mutex::default() }
    }

    /// What it was asked so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Model for ScriptedModel {
    fn name(&self) -> &str {
        "scripted"
    }

    fn respond<'a>(&'a self, prompt: &'a Prompt<'a>) -> BoxFuture<'a, Result<Answer, ModelError>> {
        let asked = Asked {
            instructions: prompt.instructions.map(str::to_owned),
            events: prompt.history.iter().cloned().collect(),
            tools: prompt.tools.to_vec(),
            seed: prompt.seed,
        };
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).push(asked);
        let step = self.script.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let answer = step.map_or_else(
            || Err(ModelError::Refused { message: "the script of the model has run out".to_owned() }),
            |Step(answer)| answer,
        );
        let answer = answer.map(|response| Answer { response, sent: Some(prompt.history.sent_hash()) });
        Box::pin(std::future::ready(answer))
    }
}

impl From<Response> for Step {
    fn from(response: Response) -> Self {
        Self(Ok(response))
    }
}

impl From<ModelError> for Step {
    fn from(error: ModelError) -> Self {
        Self(Err(error))
    }
}

impl From<&str> for Step {
    fn from(text: &str) -> Self {
        Response { content: [Part::text(text)].into(), ..Response::default() }.into()
    }
}

impl From<Vec<ToolCall>> for Step {
    fn from(calls: Vec<ToolCall>) -> Self {
        let content = calls.into_iter().map(|call| retrace_events::PartBody::ToolCall(call).into()).collect();
        Response { content, ..Response::default() }.into()
    }
}
