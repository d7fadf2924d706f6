//! Which recorded request comes nearest to one that was never recorded, and where the two part.

use std::collections::HashMap;

use retrace_events::Event;

use super::index::{EMPTY, Index, Key};
use super::player::Tape;
use crate::prompt::Prompt;
use crate::quote::parted;

/// Of requests with one seed so many are compared.
const MOST_COMPARED: usize = 100;

/// A request as it is looked for.
pub(super) struct Asked {
    pub(super) model: u32,
    pub(super) seed: u64,
    pub(super) instructions: Option<String>,
    pub(super) tools: String,
    /// The pieces of its events, where they are known.
    pub(super) events: Vec<Option<u32>>,
}

/// For each thing that requests share, the first request that has it.
#[derive(Debug, Default)]
pub(super) struct Nearest {
    by_seed: HashMap<(u32, u64), Vec<usize>>,
    /// By model and a history that theirs begins with.
    by_history: HashMap<(u32, u32), usize>,
}

impl Nearest {
    pub(super) fn add(&mut self, index: &Index, answer: usize, key: Key) {
        self.by_seed.entry((key.model, key.seed)).or_default().push(answer);
        let mut history = key.history;
        // What another request has come through is known from there on.
        while !self.by_history.contains_key(&(key.model, history)) {
            self.by_history.insert((key.model, history), answer);
            history = index.history(history).after;
        }
    }

    /// Which recorded request is nearest, and where it parts from this one. A request with the same seed is nearest,
    /// since it is what this one was when it was recorded; then the one with the longest beginning in common.
    pub(super) fn explain(&self, tape: &Tape, asked: &Asked, prompt: &Prompt<'_>) -> String {
        let mut history = EMPTY;
        for event in &asked.events {
            let longer = event.and_then(|event| tape.index.longer(history, event));
            match longer.filter(|longer| self.by_history.contains_key(&(asked.model, *longer))) {
                Some(longer) => history = longer,
                None => break,
            }
        }
        let same_seed = self.by_seed.get(&(asked.model, asked.seed)).map_or(&[][..], |answers| answers);
        let alike = |answer: &usize| {
            let kept = tape.answers[*answer].key;
            let n_shared = shared(&tape.index.events(kept.history), &asked.events);
            (n_shared, instructions(tape, kept) == asked.instructions.as_deref())
        };
        let nearest = match same_seed {
            [] => self.by_history.get(&(asked.model, history)).copied(),
            [only] => Some(*only),
            several => several.iter().take(MOST_COMPARED).copied().max_by_key(alike),
        };
        let Some(kept) = nearest.and_then(|answer| tape.answers.get(answer)) else {
            return "none was recorded".to_owned();
        };
        let place = format!("the nearest request, in line {}, ", kept.line);
        let difference = difference(tape, kept.key, asked, prompt);
        match (kept.key.seed == asked.seed, difference) {
            (true, Some(difference)) => format!("{place}has the same seed, but {difference}"),
            (true, None) => format!("{place}cannot be told from it"),
            (false, None) => format!("{place}has the seed {}, and this one {}", kept.key.seed, asked.seed),
            (false, Some(difference)) => {
                format!("{place}has the seed {}, and this one {}; {difference}", kept.key.seed, asked.seed)
            }
        }
    }
}

/// With how many events two histories begin alike.
fn shared(kept: &[u32], asked: &[Option<u32>]) -> usize {
    kept.iter().zip(asked).take_while(|(kept, asked)| Some(**kept) == **asked).count()
}

/// The first thing that tells a recorded request from this one, seeds apart.
fn difference(tape: &Tape, kept: Key, asked: &Asked, prompt: &Prompt<'_>) -> Option<String> {
    let piece = |number: u32| tape.index.piece(number).unwrap_or_default();
    let apart = |what: &str, kept: &str, asked: &str| {
        let (kept, asked) = parted(kept, asked);
        format!("{what}: {kept} was recorded, {asked} is asked")
    };
    let instructions = instructions(tape, kept);
    if instructions != asked.instructions.as_deref() {
        let or_none = |text: Option<&str>| text.unwrap_or("none").to_owned();
        return Some(apart("its instructions differ", &or_none(instructions), &or_none(asked.instructions.as_deref())));
    }
    if piece(kept.tools) != asked.tools {
        return Some(apart("its tools differ", piece(kept.tools), &asked.tools));
    }
    let events = tape.index.events(kept.history);
    let n_shared = shared(&events, &asked.events);
    let number = n_shared + 1;
    match (events.get(n_shared), sent_event(prompt, n_shared)) {
        (None, None) => None,
        (Some(_), None) => Some(format!("its history goes on after the {n_shared} events of this one")),
        (None, Some(event)) => {
            Some(format!("its history ends before event {number} of this one, a `{}`", event.kind()))
        }
        (Some(&kept), Some(_)) => {
            let asked = super::index::sent_text(prompt.history, n_shared);
            Some(apart(&format!("its history differs in event {number}"), piece(kept), &asked))
        }
    }
}

fn instructions(tape: &Tape, kept: Key) -> Option<&str> {
    kept.instructions.and_then(|number| tape.index.piece(number))
}

/// The n-th event that is sent, from 0.
fn sent_event<'a>(prompt: &Prompt<'a>, n: usize) -> Option<&'a Event> {
    prompt.history.events().filter(|event| event.counts()).nth(n)
}
