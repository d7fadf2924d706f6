//! A model that breaks.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_core::future::BoxFuture;
use retrace_events::Part;
use retrace_model::{Answer, Model, ModelError, Prices, Prompt, Rules};

use super::rates::Rates;
use crate::agent::calls_of;
use crate::draws::Draws;
use crate::shown::respond;

/// What may go wrong with an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ModelFault {
    /// The provider takes no more requests for now (429), and says when it will.
    RateLimited,
    /// The provider breaks (500).
    Broken,
    /// The provider has too much to do (529).
    Overloaded,
    /// The connection is reset.
    Reset,
    /// No answer ever comes.
    Silent,
    /// The answer stops while it is sent.
    CutStream,
    /// The answer is the start of a JSON text.
    CutJson,
    /// The provider refuses the request.
    Refused,
    /// The answer calls a tool that does not exist.
    UnknownTool,
    /// The arguments of the answer's call are no JSON.
    BrokenArguments,
    /// The answer has ten thousand calls.
    ManyCalls,
    /// The answer says nothing.
    Empty,
}

impl ModelFault {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::RateLimited,
        Self::Broken,
        Self::Overloaded,
        Self::Reset,
        Self::Silent,
        Self::CutStream,
        Self::CutJson,
        Self::Refused,
        Self::UnknownTool,
        Self::BrokenArguments,
        Self::ManyCalls,
        Self::Empty,
    ];

    /// Whether an answer comes, though none that is of use.
    pub fn is_answer(self) -> bool {
        matches!(self, Self::UnknownTool | Self::BrokenArguments | Self::ManyCalls | Self::Empty)
    }

    fn error(self, retry_after: Duration) -> Option<ModelError> {
        let unavailable = |message: &str| ModelError::Unavailable { message: message.to_owned(), retry_after: None };
        Some(match self {
            Self::RateLimited => ModelError::RateLimited {
                message: "429 Too Many Requests: slow down".to_owned(),
                retry_after: Some(retry_after),
            },
            Self::Broken => unavailable("500 Internal Server Error: something broke"),
            Self::Overloaded => unavailable("529: too much to do"),
            Self::Reset => unavailable("connection reset by peer"),
            Self::CutStream => unavailable("the connection was closed before the answer was complete"),
            Self::CutJson => unavailable("the answer is incomplete: EOF while parsing a string"),
            Self::Refused => ModelError::Refused { message: "400 Bad Request: not this one".to_owned() },
            Self::Silent | Self::UnknownTool | Self::BrokenArguments | Self::ManyCalls | Self::Empty => return None,
        })
    }

    /// What the answer holds, if one comes.
    fn content(self, prompt: &Prompt<'_>, draws: &mut Draws) -> Vec<Part> {
        const NO_TOOL: &str = "no_such_tool";
        let tool = prompt.tools.first().map_or(NO_TOOL, |tool| &tool.name);
        match self {
            Self::UnknownTool => calls_of([(NO_TOOL, "{}".to_owned())], draws),
            Self::BrokenArguments => calls_of([(tool, "{\"page\": ".to_owned())], draws),
            Self::ManyCalls => calls_of((0..10_000).map(|_| (tool, "{}".to_owned())), draws),
            _ => Vec::new(),
        }
    }
}

/// A model whose answers go wrong at [`Rates`] that are set; the others are those of the model inside.
///
/// What happens is drawn from the prompt's seed, a seed of its own and the number of the attempt: a run is repeated in
/// whatever order its prompts come, and a prompt that is sent again after a fault that may pass may be answered. Prompts that
/// are asked at once must differ in their seeds.
///
/// ```
/// use retrace_events::History;
/// use retrace_model::{Model, ModelError, Prompt};
/// use retrace_sim::{FaultyModel, ModelFault, Rates, Shopkeeper};
///
/// let model = FaultyModel::new(Shopkeeper::new(), Rates::none().with(ModelFault::Reset, 1.0), 7);
/// let history = History::from(Vec::new());
/// let prompt = Prompt { instructions: None, history: &history, tools: &[], seed: 1 };
/// let error = pollster::block_on(model.respond(&prompt)).unwrap_err();
/// assert_eq!(error.to_string(), "unavailable: connection reset by peer");
/// ```
#[derive(Debug)]
pub struct FaultyModel<M> {
    model: M,
    rates: Rates<ModelFault>,
    seed: u64,
    retry_after: Duration,
    /// How often each prompt was asked, by its seed, where the last time was in vain.
    attempts: Mutex<HashMap<u64, u64>>,
}

impl<M: Model> FaultyModel<M> {
    /// A model around another, with a seed of its own.
    pub fn new(model: M, rates: Rates<ModelFault>, seed: u64) -> Self {
        Self { model, rates, seed, retry_after: Duration::from_secs(1), attempts: Mutex::default() }
    }

    /// How long it asks to wait where it is [`RateLimited`](ModelFault::RateLimited): a second unless set.
    #[must_use]
    pub fn retry_after(mut self, time: Duration) -> Self {
        self.retry_after = time;
        self
    }

    /// What goes wrong with a prompt this time, and the draws that it was drawn with.
    fn draw(&self, seed: u64) -> (Option<ModelFault>, Draws) {
        let mut attempts = self.attempts.lock().unwrap_or_else(PoisonError::into_inner);
        let attempt = attempts.entry(seed).or_default();
        let mut draws = Draws::keyed([self.seed, seed, *attempt, 0]);
        let fault = self.rates.draw(&mut draws, |_| true);
        *attempt += 1;
        // What may pass is asked again; anything else has been answered, and the prompt is a new one if it comes again.
        if fault.is_none_or(|fault| fault.is_answer() || fault == ModelFault::Refused) {
            attempts.remove(&seed);
        }
        (fault, draws)
    }
}

impl<M: Model> Model for FaultyModel<M> {
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
            let (fault, mut draws) = self.draw(prompt.seed);
            let Some(fault) = fault else { return self.model.respond(prompt).await };
            if let Some(error) = fault.error(self.retry_after) {
                return Err(error);
            }
            if fault == ModelFault::Silent {
                std::future::pending::<()>().await;
            }
            Ok(respond(self.name(), prompt, fault.content(prompt, &mut draws)))
        })
    }
}

#[cfg(test)]
mod tests {
    use retrace_events::History;
    use retrace_model::ScriptedModel;

    use super::*;

    fn ask(model: &dyn Model, seed: u64) -> Result<Answer, ModelError> {
        let history = History::from(Vec::new());
        pollster::block_on(model.respond(&Prompt { instructions: None, history: &history, tools: &[], seed }))
    }

    fn scripted() -> ScriptedModel {
        ScriptedModel::new(vec!["done"; 1000])
    }

    /// What is said to each prompt when it is asked until it is answered, in this order of prompts.
    fn said(order: impl Iterator<Item = u64>) -> Vec<(u64, Vec<String>)> {
        let kinds: Vec<_> = ModelFault::ALL.into_iter().filter(|fault| *fault != ModelFault::Silent).collect();
        let model = FaultyModel::new(scripted(), Rates::evenly(&kinds, 0.9), 3);
        let mut said: Vec<_> = order
            .map(|seed| {
                let mut texts = Vec::new();
                loop {
                    let answer = ask(&model, seed);
                    texts.push(match &answer {
                        Ok(answer) => format!("{} calls", answer.response.tool_calls().count()),
                        Err(error) => error.to_string(),
                    });
                    if !matches!(&answer, Err(error) if error.is_transient()) {
                        break (seed, texts);
                    }
                }
            })
            .collect();
        said.sort();
        said
    }

    #[test]
    fn a_run_is_repeated_in_any_order_and_an_attempt_that_follows_draws_anew() {
        let one = said(0..200);
        assert_eq!(one, said((0..200).rev()));
        let texts: Vec<_> = one.iter().map(|(_, texts)| texts).collect();
        assert!(texts.iter().any(|texts| texts.len() > 2) && texts.iter().any(|texts| texts.len() == 1));
        for wanted in
            ["rate limited: 429", "unavailable: 500", "unavailable: 529", "refused: 400", "10000 calls", "0 calls"]
        {
            assert!(texts.iter().any(|texts| texts.iter().any(|text| text.starts_with(wanted))), "{wanted}");
        }
    }

    #[test]
    fn a_prompt_that_was_answered_is_answered_alike_when_it_comes_again() {
        let rates = Rates::evenly(&[ModelFault::Broken, ModelFault::Empty], 0.7);
        let model = FaultyModel::new(scripted(), rates, 5);
        let until_answered = |seed| (0..).map(|_| ask(&model, seed)).take_while(Result::is_err).count();
        let first: Vec<_> = (0..50).map(until_answered).collect();
        assert_eq!(first, (0..50).map(until_answered).collect::<Vec<_>>());
        assert!(first.iter().any(|n| *n > 1));
        assert_eq!(model.attempts.lock().unwrap().len(), 0);
    }

    #[test]
    fn the_wait_that_it_asks_for_can_be_set_and_all_else_is_the_model_s_own() {
        let rates = Rates::none().with(ModelFault::RateLimited, 1.0);
        let model = FaultyModel::new(scripted(), rates, 0).retry_after(Duration::from_secs(9));
        assert_eq!(ask(&model, 0).unwrap_err().retry_after(), Some(Duration::from_secs(9)));
        let sound = FaultyModel::new(scripted(), Rates::none(), 0);
        assert_eq!(ask(&sound, 0).unwrap().response.text(), "done");
        assert_eq!((sound.name(), sound.rules()), ("scripted", Rules::default()));
    }
}
