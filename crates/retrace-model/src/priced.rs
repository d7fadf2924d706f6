//! A model whose tokens are said to cost something.

use futures_core::future::BoxFuture;
use retrace_events::Prices;

use crate::model::{Answer, Model, ModelError};
use crate::prompt::Prompt;
use crate::rules::Rules;

/// A model whose tokens are said to cost this.
#[derive(Clone, Debug)]
pub struct Priced<M> {
    model: M,
    prices: Prices,
}

impl<M: Model> Priced<M> {
    /// Asks `model`, whatever that says of its prices.
    pub fn new(model: M, prices: Prices) -> Self {
        Self { model, prices }
    }
}

impl<M: Model> Model for Priced<M> {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn rules(&self) -> Rules {
        self.model.rules()
    }

    fn prices(&self) -> Option<Prices> {
        Some(self.prices)
    }

    fn respond<'a>(&'a self, prompt: &'a Prompt<'a>) -> BoxFuture<'a, Result<Answer, ModelError>> {
        self.model.respond(prompt)
    }
}
