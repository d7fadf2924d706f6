//! Keeping what models answer.

use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use futures_core::future::BoxFuture;
use retrace_events::Prices;
use serde_json::value::RawValue;

use super::index::{EMPTY, Index, Seen, instructions_text, tools_text};
use super::line::{AnswerLine, CASSETTE_VERSION, Known, Line, Outcome};
use crate::model::{Answer, Model, ModelError};
use crate::prompt::Prompt;
use crate::rules::Rules;

/// Keeps what the models that it is put around answer, each answer with the request it answered, as JSON Lines.
///
/// An answer is written and flushed before its caller has it. If that fails, the caller gets the
/// [error](ModelError::Cassette) instead, and from then on no model is asked: what cannot be kept is not paid for.
/// Instructions, tools and events are written once, however many requests have them.
///
/// A cassette holds all that the models were sent, and what they answered. Keys are no part of either.
#[derive(Clone)]
pub struct CassetteRecorder {
    tape: Arc<Mutex<Tape>>,
}

struct Tape {
    sink: Box<dyn Write + Send>,
    index: Index,
    seen: Seen<u32>,
    models: HashMap<String, Known>,
    failure: Option<String>,
}

impl CassetteRecorder {
    /// Starts a cassette.
    ///
    /// # Errors
    /// When the sink cannot be written to.
    pub fn new(sink: impl Write + Send + 'static) -> io::Result<Self> {
        let mut tape = Tape {
            sink: Box::new(sink),
            index: Index::default(),
            seen: Seen::default(),
            models: HashMap::new(),
            failure: None,
        };
        tape.write(&[Line::Cassette { version: CASSETTE_VERSION }])?;
        Ok(Self { tape: Arc::new(Mutex::new(tape)) })
    }

    /// The same model, its answers kept. Models of one name are one model to the cassette.
    ///
    /// Put it around [`Retry`](crate::Retry) and time limits, not inside.
    pub fn around(&self, model: Arc<dyn Model>) -> Arc<dyn Model> {
        self.with(|tape| tape.add_model(model.name(), Known { rules: model.rules(), prices: model.prices() }));
        Arc::new(Recorded { model, recorder: self.clone() })
    }

    /// Why no more is kept, if it is not.
    pub fn failure(&self) -> Option<String> {
        self.with(|tape| tape.failure.clone())
    }

    fn with<T>(&self, use_it: impl FnOnce(&mut Tape) -> T) -> T {
        use_it(&mut self.tape.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn check(&self) -> Result<(), ModelError> {
        self.failure().map_or(Ok(()), |message| Err(ModelError::Cassette { message }))
    }
}

/// A model whose answers are kept.
struct Recorded {
    model: Arc<dyn Model>,
    recorder: CassetteRecorder,
}

impl Model for Recorded {
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
            self.recorder.check()?;
            let mut waiting = Waiting { recorded: self, prompt, outcome: Outcome::Abandoned {} };
            let answer = self.model.respond(prompt).await;
            waiting.outcome = Outcome::of(&answer);
            drop(waiting);
            self.recorder.check()?;
            answer
        })
    }
}

/// A request on its way. What came of it is kept when it ends, also when nobody waits for it any more.
struct Waiting<'a> {
    recorded: &'a Recorded,
    prompt: &'a Prompt<'a>,
    outcome: Outcome,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let outcome = std::mem::replace(&mut self.outcome, Outcome::Abandoned {});
        self.recorded.recorder.with(|tape| tape.add_answer(self.recorded.name(), self.prompt, outcome));
    }
}

impl Tape {
    fn add_model(&mut self, name: &str, known: Known) {
        if self.models.insert(name.to_owned(), known) != Some(known) {
            let Known { rules, prices } = known;
            self.keep(&[Line::Model { name: name.to_owned(), rules, prices }]);
        }
    }

    fn add_answer(&mut self, model: &str, prompt: &Prompt<'_>, outcome: Outcome) {
        let mut lines = Vec::new();
        let mut number = |text: String| {
            self.index.find(&text).unwrap_or_else(|| {
                let is = RawValue::from_string(text.clone()).expect("a piece is JSON");
                let n = self.index.add(text);
                lines.push(Line::Piece { n, is });
                n
            })
        };
        let instructions = prompt.instructions.map(instructions_text).map(&mut number);
        let tools = number(tools_text(prompt.tools));
        let events = self.seen.events(prompt.history, number);
        let history = self.history(&events, &mut lines);
        let model = model.to_owned();
        let answer = AnswerLine { model, seed: prompt.seed, instructions, tools, history, outcome };
        lines.push(Line::Answer(Box::new(answer)));
        self.keep(&lines);
    }

    /// The number of a history. What of it is new is added in one line.
    fn history(&mut self, events: &[u32], lines: &mut Vec<Line>) -> u32 {
        let (mut history, mut n_known) = (EMPTY, 0);
        while let Some(longer) = events.get(n_known).and_then(|&event| self.index.longer(history, event)) {
            (history, n_known) = (longer, n_known + 1);
        }
        let new = &events[n_known..];
        if !new.is_empty() {
            lines.push(Line::History { first: self.index.n_histories(), after: history, events: new.to_vec() });
        }
        new.iter().fold(history, |history, &event| self.index.add_longer(history, event))
    }

    /// Writes lines, unless an earlier attempt has failed.
    fn keep(&mut self, lines: &[Line]) {
        if self.failure.is_none()
            && let Err(error) = self.write(lines)
        {
            self.failure = Some(format!("failed to write the cassette, so no model is asked any more: {error}"));
        }
    }

    fn write(&mut self, lines: &[Line]) -> io::Result<()> {
        let mut text = Vec::new();
        for line in lines {
            serde_json::to_writer(&mut text, line)?;
            text.push(b'\n');
        }
        self.sink.write_all(&text)?;
        self.sink.flush()
    }
}
