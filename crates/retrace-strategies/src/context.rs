//! All that a strategy may reach.

use futures_core::future::BoxFuture;
use retrace_events::tokens::{FourCharacters, TokenCounter, Tokens, count_sent};
use retrace_events::{Event, History, Response, Usage};
use retrace_model::{Model, Prompt};

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
}

/// What a run has used before a compaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunSoFar {
    /// Model calls, those of earlier compactions included.
    pub n_requests: u64,
    /// Tokens of all of them.
    pub total_tokens: Tokens,
}

/// What a compaction spent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spend {
    /// How many questions it asked, answered or not.
    pub n_model_calls: u64,
    /// The size of the questions, as the run's counter estimates it.
    pub question_tokens: Tokens,
    /// The tokens that the model reported.
    pub usage: Usage,
}

impl Spend {
    /// Adds what something else spent.
    pub fn add(&mut self, other: &Self) {
        self.n_model_calls = self.n_model_calls.saturating_add(other.n_model_calls);
        self.question_tokens += other.question_tokens;
        self.usage.add(&other.usage);
    }

    /// What was spent since it was `earlier`.
    pub fn since(&self, earlier: &Self) -> Self {
        let less = |now: Option<u64>, then: Option<u64>| now.map(|now| now.saturating_sub(then.unwrap_or(0)));
        let (now, then) = (&self.usage, &earlier.usage);
        Self {
            n_model_calls: self.n_model_calls.saturating_sub(earlier.n_model_calls),
            question_tokens: Tokens(self.question_tokens.0.saturating_sub(earlier.question_tokens.0)),
            usage: Usage {
                input_tokens: now.input_tokens.saturating_sub(then.input_tokens),
                output_tokens: now.output_tokens.saturating_sub(then.output_tokens),
                cache_read_tokens: less(now.cache_read_tokens, then.cache_read_tokens),
                cache_write_tokens: less(now.cache_write_tokens, then.cache_write_tokens),
                ..Usage::default()
            },
        }
    }
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
            spend: self.spend.clone(),
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
        self.spend.n_model_calls += 1;
        self.spend.question_tokens += question;
        let ask = self.asked.ok_or(CompactError::NotAsked { question })?;
        let prompt = Prompt { instructions: Some(instructions), history: &history, tools: &[], seed };
        let response = ask.ask(&prompt, model).await?;
        if let Some(usage) = &response.usage {
            self.spend.usage.add(usage);
        }
        Ok(response)
    }

    /// Books model calls that a strategy made without asking here, as one that is a program may.
    pub fn report_spend(&mut self, n_model_calls: u64, usage: &Usage) {
        self.spend.n_model_calls = self.spend.n_model_calls.saturating_add(n_model_calls);
        self.spend.usage.add(usage);
    }

    /// What was spent so far.
    pub fn spend(&self) -> &Spend {
        &self.spend
    }
}
