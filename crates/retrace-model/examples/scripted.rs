//! A scripted model behind a retry wrapper: a rate limit, then an answer; and what the model was asked.

#![expect(clippy::print_stdout, reason = "an example prints")]

use std::sync::Arc;
use std::time::Duration;

use retrace_events::{Event, History};
use retrace_model::{Backoff, BoxFuture, Model, ModelError, Prompt, Retry, ScriptedModel, Sleep, Step};

/// Says how long it would wait.
struct Announce;

impl Sleep for Announce {
    fn sleep<'a>(&'a self, time: Duration) -> BoxFuture<'a, ()> {
        println!("waiting {time:?}");
        Box::pin(std::future::ready(()))
    }
}

fn main() -> Result<(), ModelError> {
    let busy = ModelError::RateLimited { message: "slow down".to_owned(), retry_after: Some(Duration::from_secs(2)) };
    let model = Arc::new(ScriptedModel::new([Step::from(busy), Step::from("All shelves are full.")]));
    let patient = Retry::new(Arc::clone(&model), Announce, Backoff::default());

    let history = History::from(vec![Event::request("Keep every item in stock.")]);
    let prompt = Prompt { instructions: Some("You run a shop."), history: &history, tools: &[], seed: 7 };
    println!("{}", pollster::block_on(patient.respond(&prompt))?.response.text());
    println!("asked {} times", model.asked().len());
    Ok(())
}
