//! Giving back what models answered.

use std::collections::HashMap;
use std::io::{self, BufRead};
use std::sync::{Arc, Mutex, PoisonError};

use futures_core::future::BoxFuture;
use indexmap::IndexMap;
use retrace_events::Prices;
use retrace_events::codec::Lines;
use thiserror::Error;

use super::index::{EMPTY, Index, Key, Seen, canonical, instructions_text, tools_text};
use super::line::{AnswerLine, CASSETTE_VERSION, Known, Line, Outcome};
use super::nearest::{Asked, Nearest};
use crate::model::{Answer, Model, ModelError};
use crate::prompt::Prompt;
use crate::quote::quoted;
use crate::rules::Rules;

/// What models answered once, to be answered again.
#[derive(Clone, Debug)]
pub struct Cassette {
    tape: Arc<Tape>,
}

/// All of a cassette.
#[derive(Debug)]
pub(super) struct Tape {
    pub(super) file: String,
    pub(super) index: Index,
    pub(super) models: IndexMap<String, Known>,
    pub(super) answers: Vec<Kept>,
    /// The answers to each request, in the order they came.
    by_key: HashMap<Key, Vec<usize>>,
    nearest: Nearest,
    torn_line: Option<usize>,
    played: Mutex<Played>,
}

/// A request that was answered.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) line: usize,
    pub(super) key: Key,
    outcome: Outcome,
}

/// What was asked so far.
#[derive(Debug, Default)]
struct Played {
    seen: Seen<Option<u32>>,
    n_asked: HashMap<Key, usize>,
    n_missed: usize,
    first_miss: Option<String>,
}

/// Why a cassette could not be read.
#[derive(Debug, Error)]
#[error("{file}:{line}: {flaw}")]
pub struct CassetteError {
    /// The file, as the caller named it.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong there.
    pub flaw: CassetteFlaw,
}

/// What is wrong with a line of a cassette.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CassetteFlaw {
    /// The file could not be read.
    #[error("failed to read: {0}")]
    Io(#[from] io::Error),
    /// The line is not UTF-8.
    #[error("not UTF-8 from byte {0} of the line on")]
    NotUtf8(usize),
    /// The first line does not start a cassette.
    #[error("no cassette: the first line does not start one")]
    NoHeader,
    /// It is of a version that this crate does not know.
    #[error("a cassette of version {version}, and this is a reader of version {CASSETTE_VERSION}")]
    Version {
        /// Its version.
        version: u32,
    },
    /// The line is none of a cassette.
    #[error("{message}")]
    BadLine {
        /// Why.
        message: String,
    },
    /// Lines are numbered, and one is missing before this one or is there twice.
    #[error("number {found}, where {expected} is next: a line is missing or there twice")]
    OutOfOrder {
        /// The number that is next.
        expected: u32,
        /// The number that stands there.
        found: u32,
    },
    /// The line says again what a line before it says.
    #[error("the {what} {number} again")]
    Twice {
        /// What it is.
        what: &'static str,
        /// Its number.
        number: u32,
    },
    /// The line refers to something that no line before it has.
    #[error("no line before has the {what} {name}")]
    Unknown {
        /// What it refers to.
        what: &'static str,
        /// Its number or name.
        name: String,
    },
}

impl CassetteError {
    /// What to do next.
    pub fn hint(&self) -> Option<&'static str> {
        match self.flaw {
            CassetteFlaw::Io(_) => None,
            CassetteFlaw::Version { .. } => Some("read it with the retrace that recorded it, or record it again"),
            _ => Some("a cassette is recorded, not edited: record it again with `--record-cassette`"),
        }
    }
}

impl Cassette {
    /// Reads a cassette. `file` is what errors call the source. A last line that was cut off in writing is left out,
    /// and [told](Self::torn_line).
    ///
    /// # Errors
    /// At the first flaw, with its line.
    pub fn read(source: impl BufRead, file: impl Into<String>) -> Result<Self, CassetteError> {
        let (mut lines, file) = (Lines::new(source), file.into());
        let mut tape = Tape {
            file: file.clone(),
            index: Index::default(),
            models: IndexMap::new(),
            answers: Vec::new(),
            by_key: HashMap::new(),
            nearest: Nearest::default(),
            torn_line: None,
            played: Mutex::default(),
        };
        match tape.read(&mut lines) {
            Ok(()) => Ok(Self { tape: Arc::new(tape) }),
            Err(flaw) => {
                let beyond = usize::from(matches!(flaw, CassetteFlaw::Io(_)));
                Err(CassetteError { file, line: (lines.number() + beyond).max(1), flaw })
            }
        }
    }

    /// The number of the last line, if it was cut off and left out.
    pub fn torn_line(&self) -> Option<usize> {
        self.tape.torn_line
    }

    /// The model of this name, as it was recorded. A model that was not recorded answers nothing, and says so.
    pub fn model(&self, name: impl Into<String>) -> Arc<dyn Model> {
        Arc::new(Playing { tape: Arc::clone(&self.tape), name: name.into() })
    }

    /// How many requests found no answer so far.
    pub fn n_missed(&self) -> usize {
        self.tape.with(|played| played.n_missed)
    }

    /// What the first of them was told.
    pub fn first_miss(&self) -> Option<String> {
        self.tape.with(|played| played.first_miss.clone())
    }

    /// How many answers nobody has asked for so far.
    pub fn n_unused(&self) -> usize {
        let used = self.tape.with(|played| played.n_asked.values().sum::<usize>());
        self.tape.answers.len() - used
    }
}

impl Tape {
    fn read(&mut self, lines: &mut Lines<impl BufRead>) -> Result<(), CassetteFlaw> {
        let mut is_first = true;
        while lines.advance()? {
            let text = lines.text().map_err(|flaw| CassetteFlaw::NotUtf8(flaw.valid_up_to() + 1))?;
            let line = match serde_json::from_str::<Line>(text) {
                Ok(line) => line,
                Err(_) if is_first => return Err(CassetteFlaw::NoHeader),
                Err(_) if lines.is_torn() => {
                    self.torn_line = Some(lines.number());
                    return Ok(());
                }
                Err(error) => return Err(CassetteFlaw::BadLine { message: quoted(&error.to_string()) }),
            };
            match (is_first, line) {
                (true, Line::Cassette { version: CASSETTE_VERSION }) => is_first = false,
                (true, Line::Cassette { version }) => return Err(CassetteFlaw::Version { version }),
                (true, _) => return Err(CassetteFlaw::NoHeader),
                (false, line) => self.add(line, lines.number())?,
            }
        }
        if is_first { Err(CassetteFlaw::NoHeader) } else { Ok(()) }
    }

    fn add(&mut self, line: Line, number: usize) -> Result<(), CassetteFlaw> {
        match line {
            Line::Cassette { .. } => return Err(CassetteFlaw::BadLine { message: "a second first line".to_owned() }),
            Line::Model { name, rules, prices } => drop(self.models.insert(name, Known { rules, prices })),
            Line::Piece { n, is } => {
                in_order(self.index.n_pieces(), n)?;
                let text = canonical(is.get());
                once("piece", self.index.find(&text))?;
                self.index.add(text);
            }
            Line::History { first, after, events } => {
                in_order(self.index.n_histories(), first)?;
                known("history", after, self.index.n_histories())?;
                let mut history = after;
                for event in events {
                    known("piece", event, self.index.n_pieces())?;
                    once("history", self.index.longer(history, event))?;
                    history = self.index.add_longer(history, event);
                }
            }
            Line::Answer(answer) => {
                let AnswerLine { model, seed, instructions, tools, history, outcome } = *answer;
                let Some(model) = self.models.get_index_of(&model) else {
                    return Err(CassetteFlaw::Unknown { what: "model", name: quoted(&model) });
                };
                for piece in instructions.into_iter().chain([tools]) {
                    known("piece", piece, self.index.n_pieces())?;
                }
                known("history", history, self.index.n_histories())?;
                let key = Key { model: model as u32, seed, instructions, tools, history };
                self.by_key.entry(key).or_default().push(self.answers.len());
                self.nearest.add(&self.index, self.answers.len(), key);
                self.answers.push(Kept { line: number, key, outcome });
            }
        }
        Ok(())
    }

    fn with<T>(&self, use_it: impl FnOnce(&mut Played) -> T) -> T {
        use_it(&mut self.played.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn answer(&self, model: &str, prompt: &Prompt<'_>) -> Result<Answer, ModelError> {
        let Some(model_idx) = self.models.get_index_of(model) else {
            let models: Vec<_> = self.models.keys().take(5).map(|name| quoted(name)).collect();
            let it_has =
                if models.is_empty() { "none at all".to_owned() } else { format!("those of {}", models.join(", ")) };
            return Err(self.missed(format!(
                "the cassette {} has no answers of {}, but {it_has}",
                self.file,
                quoted(model)
            )));
        };
        let events = self.with(|played| played.seen.events(prompt.history, |text| self.index.find(&text)));
        let asked = Asked {
            model: model_idx as u32,
            seed: prompt.seed,
            instructions: prompt.instructions.map(instructions_text),
            tools: tools_text(prompt.tools),
            events,
        };
        let why = match self.key(&asked).and_then(|key| Some((key, self.by_key.get(&key)?))) {
            Some((key, answers)) => match answers.get(self.with(|played| played.ask(key, answers.len()))) {
                Some(&answer) => return self.answers[answer].outcome.clone().into_answer(),
                None => {
                    format!("it was asked before, and all its answers have been given, {} in number", answers.len())
                }
            },
            None => self.nearest.explain(self, &asked, prompt),
        };
        Err(self.missed(format!("the cassette {} has no answer of {} to this: {why}", self.file, quoted(model))))
    }

    /// What the request is known by, if all it is made of is known.
    fn key(&self, asked: &Asked) -> Option<Key> {
        let instructions = match &asked.instructions {
            Some(text) => Some(self.index.find(text)?),
            None => None,
        };
        let history = asked.events.iter().try_fold(EMPTY, |history, event| self.index.longer(history, (*event)?))?;
        let tools = self.index.find(&asked.tools)?;
        Some(Key { model: asked.model, seed: asked.seed, instructions, tools, history })
    }

    fn missed(&self, message: String) -> ModelError {
        self.with(|played| {
            played.n_missed += 1;
            played.first_miss.get_or_insert_with(|| message.clone());
        });
        ModelError::Cassette { message }
    }
}

impl Played {
    /// How often a request of which `n_answers` were recorded has been asked before this time; no more than that.
    fn ask(&mut self, key: Key, n_answers: usize) -> usize {
        let n_asked = self.n_asked.entry(key).or_default();
        let n_before = *n_asked;
        *n_asked = (n_before + 1).min(n_answers);
        n_before
    }
}

fn in_order(expected: u32, found: u32) -> Result<(), CassetteFlaw> {
    if expected == found { Ok(()) } else { Err(CassetteFlaw::OutOfOrder { expected, found }) }
}

fn once(what: &'static str, number: Option<u32>) -> Result<(), CassetteFlaw> {
    number.map_or(Ok(()), |number| Err(CassetteFlaw::Twice { what, number }))
}

fn known(what: &'static str, number: u32, n_known: u32) -> Result<(), CassetteFlaw> {
    if number < n_known { Ok(()) } else { Err(CassetteFlaw::Unknown { what, name: number.to_string() }) }
}

/// A model that answers what it answered before.
struct Playing {
    tape: Arc<Tape>,
    name: String,
}

impl Playing {
    fn known(&self) -> Known {
        self.tape.models.get(&self.name).copied().unwrap_or_default()
    }
}

impl Model for Playing {
    fn name(&self) -> &str {
        &self.name
    }

    fn rules(&self) -> Rules {
        self.known().rules
    }

    fn prices(&self) -> Option<Prices> {
        self.known().prices
    }

    fn respond<'a>(&'a self, prompt: &'a Prompt<'a>) -> BoxFuture<'a, Result<Answer, ModelError>> {
        Box::pin(std::future::ready(self.tape.answer(&self.name, prompt)))
    }
}
