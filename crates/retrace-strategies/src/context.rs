//! All that a strategy may reach.

use futures_core::future::BoxFuture;
use retrace_events::tokens::{FourCharacters, TokenCounter, Tokens, count_sent};
use retrace_events::{Dollars, Event, History, Response, Spend, Usage};
use retrace_model::{Model, Prices, Prompt};

use crate::strategy::CompactError;

/// All that a strategy may reach, and the account of what it spent.
pub struct CompactContext<'a> {
    asked: Option<&'a dyn Ask>,
    seed: u64,
    pub(crate) spend: Spend,
    /// How tokens are counted.
    pub counter: &'a dyn TokenCounter,
    /// The context window of the run's model, if known; for strategies that keep to a share of it.
    pub window: Option<Tokens>,
    /// The name of the run's model, if known, such as `openai:gpt-4.1`; for strategies that say who wrote their notes.
    pub model: Option<&'a str>,
    /// What the run has used so far.
    pub run: RunSoFar,
    /// What whoever wished for the compaction wants it to keep in view; for strategies that write prose.
    pub focus: Option<&'a str>,
}

/// Whom a strategy's questions go to. Only the driver calls models, so accounting, limits and time limits hold for
/// every strategy.
pub trait Ask: Send + Sync {
    /// Answers a prompt with the model of this name, or with the run's own model if no name is given.
    ///
    /// # Errors
    /// When there is no such model, when it may not be asked, and when it gives no answer.
    fn ask<'a>(
        &'a self,
        prompt: &'a Prompt<'a>,
        model: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Response, CompactError>>;

    /// What the tokens of the model of this name cost, or those of the run's own, if that is known.
    fn prices(&self, _model: Option<&str>) -> Option<Prices> {
        None
    }
}

/// Asks one model, whatever model a strategy wishes for.
pub struct AskModel<M>(pub M);

impl<M: Model> Ask for AskModel<M> {
    fn ask<'a>(
        &'a self,
        prompt: &'a Prompt<'a>,
        _model: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Response, CompactError>> {
        Box::pin(async move { Ok(self.0.respond(prompt).await?.response) })
    }

    fn prices(&self, _model: Option<&str>) -> Option<Prices> {
        self.0.prices()
    }
}

/// What a run has used before a compaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunSoFar {
    /// Model calls, those of earlier compactions included.
    pub n_requests: u64,
    /// Tokens of all of them.
    pub total_tokens: Tokens,
}

impl<'a> CompactContext<'a> {
    /// A context whose questions go to `ask`. All randomness of a simulated model comes from `seed`.
    pub fn new(ask: &'a dyn Ask, seed: u64) -> Self {
        Self { asked: Some(ask), seed, ..Self::without_model() }
    }

    /// A context for a dry run: a question is priced and then fails with [`CompactError::NotAsked`].
    pub fn without_model() -> Self {
        Self {
            asked: None,
            seed: 0,
            spend: Spend::default(),
            counter: &FourCharacters,
            window: None,
            model: None,
            run: RunSoFar::default(),
            focus: None,
        }
    }

    /// The same context with another counter, and an account that goes on from this one's.
    pub(crate) fn counting<'b>(&self, counter: &'b dyn TokenCounter) -> CompactContext<'b>
    where
        'a: 'b,
    {
        CompactContext {
            asked: self.asked,
            seed: self.seed,
            spend: self.spend,
            counter,
            window: self.window,
            model: self.model,
            run: self.run,
            focus: self.focus,
        }
    }

    /// The same context with another focus, and an account that goes on from this one's.
    pub(crate) fn focusing<'b>(&self, focus: &'b str) -> CompactContext<'b>
    where
        'a: 'b,
    {
        CompactContext { focus: Some(focus), ..self.counting(self.counter) }
    }

    /// Takes over an account that went on from this one's.
    pub(crate) fn go_on_from(&mut self, spend: Spend) {
        self.spend = spend;
    }

    /// Asks a model: the one of this name, or the run's own.
    ///
    /// # Errors
    /// When the model gives no answer, is not known, or may not be asked.
    pub async fn ask(
        &mut self,
        instructions: &str,
        question: String,
        model: Option<&str>,
    ) -> Result<Response, CompactError> {
        let history = History::from(vec![Event::request(question)]);
        let question = count_sent(self.counter, &history);
        let seed = self.seed.wrapping_add(self.spend.n_model_calls);
        self.spend.n_model_calls = self.spend.n_model_calls.saturating_add(1);
        let ask = self.asked.ok_or(CompactError::NotAsked { question })?;
        let prompt = Prompt { instructions: Some(instructions), history: &history, tools: &[], seed };
        let response = ask.ask(&prompt, model).await?;
        // The call is counted already, since one that is not answered is a call too.
        self.spend.add(Spend { n_model_calls: 0, ..Prices::spent(ask.prices(model), &response) });
        Ok(response)
    }

    /// Books model calls that a strategy made without asking here, as one that is a program may. Nobody knows what they
    /// cost.
    pub fn report_spend(&mut self, n_model_calls: u64, usage: &Usage) {
        let nothing = n_model_calls == 0 && usage.total_tokens() == 0;
        self.spend.add(Spend::of_calls(n_model_calls, usage, nothing.then(Dollars::default)));
    }

    /// What was spent so far. A question that was not answered is a call, and costs nothing.
    pub fn spend(&self) -> Spend {
        self.spend
    }
}

#[cfg(test)]
mod tests {
    use retrace_events::Part;
    use retrace_model::{ModelError, Priced, ScriptedModel, Step};

    use super::*;

    #[test]
    fn a_question_costs_what_its_model_costs_and_one_without_an_answer_is_a_call() {
        let usage = Usage { input_tokens: 100, output_tokens: 10, cache_read_tokens: Some(50), ..Usage::default() };
        let told =
            Response { content: [Part::text("yes")].into_iter().collect(), usage: Some(usage), ..Response::default() };
        let refused = ModelError::Refused { message: "no".to_owned() };
        let script = || ScriptedModel::new([Step::from(told.clone()), refused.clone().into(), told.clone().into()]);
        let spent = |ask: &dyn Ask| {
            let mut cx = CompactContext::new(ask, 0);
            for _ in 0..3 {
                let _ = pollster::block_on(cx.ask("be brief", "well?".to_owned(), None));
            }
            cx.spend()
        };
        let prices = Prices { input: 2.0, output: 10.0, cache_read: Some(1.0), cache_write: None };
        let spend = spent(&AskModel(Priced::new(script(), prices)));
        // Twice 50 · 2 + 50 · 1 + 10 · 10 millionths of a dollar.
        let expected = Spend {
            n_model_calls: 3,
            input_tokens: 200,
            output_tokens: 20,
            cache_read_tokens: Some(100),
            cache_write_tokens: None,
            dollars: Some(Dollars::from_nanos(500_000)),
        };
        assert_eq!(spend, expected);
        assert_eq!(spent(&AskModel(script())), Spend { dollars: None, ..expected });
    }

    #[test]
    fn what_a_strategy_reports_costs_what_nobody_knows_unless_it_is_nothing() {
        let mut cx = CompactContext::without_model();
        cx.report_spend(0, &Usage::default());
        assert_eq!(cx.spend(), Spend::default());
        cx.report_spend(2, &Usage { input_tokens: 7, ..Usage::default() });
        assert_eq!((cx.spend().n_model_calls, cx.spend().input_tokens, cx.spend().dollars), (2, 7, None));
    }
}
