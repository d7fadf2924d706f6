//! Simulated agents: models that know nothing but what their prompt shows.

use std::marker::PhantomData;

use futures_core::future::BoxFuture;
use retrace_events::{Part, PartBody, ToolCall};
use retrace_model::{Answer, Model, ModelError, Prompt};
use serde_json::Value;

use crate::draws::Draws;
use crate::shown::{Shown, respond, shown};

/// What an agent of a world can know, and what it makes of it.
///
/// All of it comes from texts. Calls are not read, only what was said and what tools answered: an agent knows what it
/// was told, not what it once did with it.
pub trait Knowledge: Default {
    /// The name of the agent, as a model.
    const AGENT: &'static str;

    /// Reads what a text tells: a request, a result, a summary, or a transcript of them.
    fn read(&mut self, text: &str);

    /// What follows from what is known.
    fn next(&self) -> Move;

    /// Something else that could be done, if there is anything.
    fn other(&self, draws: &mut Draws) -> Option<Move>;

    /// All that is known, one phrase a fact. Whoever reads all phrases knows the same.
    fn facts(&self) -> Vec<String>;
}

/// What an agent does.
#[derive(Clone, Debug, PartialEq)]
pub enum Move {
    /// Calls tools: the name and the arguments of each.
    Call(Vec<(&'static str, Value)>),
    /// Ends its turn with this text.
    Say(String),
}

/// A model that acts on what its prompt shows, and on nothing else: equal prompts with equal seeds get equal answers.
///
/// It reads its [`Knowledge`] from the prompt, anew each time, so it forgets what the prompt no longer shows. Asked
/// without tools, it answers with the facts it can read. See [`Shopkeeper`](crate::Shopkeeper) and
/// [`Coder`](crate::Coder).
#[derive(Clone, Debug, PartialEq)]
pub struct SimulatedAgent<K> {
    temperature: f64,
    summary_loss: f64,
    knowledge: PhantomData<fn() -> K>,
}

impl<K> Default for SimulatedAgent<K> {
    fn default() -> Self {
        Self { temperature: 0.0, summary_loss: 0.0, knowledge: PhantomData }
    }
}

impl<K: Knowledge> SimulatedAgent<K> {
    /// An agent that always does what follows, and summarizes without loss.
    pub fn new() -> Self {
        Self::default()
    }

    /// The probability, 0 unless set, that an answer is something else than what follows: in half the cases a call
    /// that the prompt still shows, spelled as it was, in nine of twenty another move, in one of twenty the end of the
    /// turn. Where one of these is not possible, what follows is done after all.
    #[must_use]
    pub fn temperature(mut self, probability: f64) -> Self {
        self.temperature = probability;
        self
    }

    /// The probability, 0 unless set, that a summary leaves a fact out, for each fact by itself.
    #[must_use]
    pub fn summary_loss(mut self, probability: f64) -> Self {
        self.summary_loss = probability;
        self
    }

    fn answer(&self, prompt: &Prompt<'_>) -> Vec<Part> {
        let mut draws = Draws::new(prompt.seed);
        let mut knowledge = K::default();
        let mut calls = Vec::new();
        for thing in shown(prompt) {
            match thing {
                Shown::Text(text) => knowledge.read(text),
                Shown::Call(call) => calls.push(call),
            }
        }
        if prompt.tools.is_empty() {
            return vec![Part::text(self.summary(&knowledge, &mut draws))];
        }
        let stray = draws.chance(self.temperature).then(|| match draws.below(20) {
            0 => Some(vec![Part::text("That is enough for now.")]),
            1..=10 => draws.pick(&calls).map(|call| calls_of([(&*call.name, call.arguments.to_string())], &mut draws)),
            _ => knowledge.other(&mut draws).map(|other| parts(other, &mut draws)),
        });
        stray.flatten().unwrap_or_else(|| parts(knowledge.next(), &mut draws))
    }

    fn summary(&self, knowledge: &K, draws: &mut Draws) -> String {
        let facts = knowledge.facts();
        let kept: Vec<_> = facts.into_iter().filter(|_| !draws.chance(self.summary_loss)).collect();
        // A summary of nothing still has to say so: an empty one would be taken for no answer.
        if kept.is_empty() { "Nothing of note so far.".to_owned() } else { kept.join("\n") }
    }
}

impl<K: Knowledge> Model for SimulatedAgent<K> {
    fn name(&self) -> &str {
        K::AGENT
    }

    fn respond<'a>(&'a self, prompt: &'a Prompt<'a>) -> BoxFuture<'a, Result<Answer, ModelError>> {
        Box::pin(async move { Ok(respond(K::AGENT, prompt, self.answer(prompt))) })
    }
}

fn parts(next: Move, draws: &mut Draws) -> Vec<Part> {
    match next {
        Move::Call(calls) => calls_of(calls.into_iter().map(|(name, value)| (name, value.to_string())), draws),
        Move::Say(text) => vec![Part::text(text)],
    }
}

/// Calls as parts of a response, with ids that are drawn.
pub(crate) fn calls_of<'a>(calls: impl IntoIterator<Item = (&'a str, String)>, draws: &mut Draws) -> Vec<Part> {
    let calls = calls.into_iter();
    calls
        .map(|(name, arguments)| {
            let call = ToolCall::new(format!("call_{:016x}", draws.any()), name, arguments);
            PartBody::ToolCall(call).into()
        })
        .collect()
}
