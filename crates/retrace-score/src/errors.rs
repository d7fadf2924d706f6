//! What went wrong, counted by its text.

use std::fmt;

use indexmap::IndexMap;
use retrace_events::{EndReason, Failure, Rollout, Stage};
use serde::Serialize;

/// An error of a rollout or a compaction, and how often it came.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ErrorCount {
    /// The part of the set-up that broke; `None` for a compaction and for a limit.
    pub stage: Option<Stage>,
    /// The error, on one line and at most 160 characters long.
    pub text: String,
    /// How often it came.
    pub count: usize,
    /// Where it came first.
    pub first: Place,
}

/// A boundary, and a rollout there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Place {
    /// The id of the recording.
    pub recording: String,
    /// Events before the boundary.
    pub cut: usize,
    /// The number of the sample, from 0; `None` for a compaction.
    pub sample: Option<usize>,
    /// How many actions that rollout had finished; `None` for a compaction.
    pub after_actions: Option<usize>,
}

/// The longest text of an error, in characters.
const LONGEST: usize = 160;

/// The most texts that are told apart: some have a number of their own each time, such as that of a request.
const MOST_TEXTS: usize = 1_000;

/// What stands for the texts beyond those.
const OTHER_TEXTS: &str = "errors of other texts";

/// Errors counted in the order they are met.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    counts: IndexMap<(Option<Stage>, String), (usize, Place)>,
    /// Those whose text is one too many.
    others: Option<(usize, Place)>,
}

impl Tally {
    pub(crate) fn add(&mut self, stage: Option<Stage>, error: &str, place: impl FnOnce() -> Place) {
        let key = (stage, one_line(error));
        let count = if self.counts.len() < MOST_TEXTS || self.counts.contains_key(&key) {
            self.counts.entry(key).or_insert_with(|| (0, place()))
        } else {
            self.others.get_or_insert_with(|| (0, place()))
        };
        count.0 += 1;
    }

    /// Adds the error of a rollout that broke, save one that left the record: nothing went wrong there.
    pub(crate) fn add_rollout(&mut self, rollout: &Rollout, place: impl FnOnce() -> Place) {
        match &rollout.end {
            EndReason::OffTheRecord { .. } => {}
            EndReason::Failed(failure) => self.add(Some(failure.stage), &failure.message, place),
            end => self.add(None, &end.to_string(), place),
        }
    }

    /// The most common first; of those that are as common the first seen. Texts that are not told apart come last.
    pub(crate) fn into_counts(self) -> Vec<ErrorCount> {
        let counts = self.counts.into_iter();
        let mut counts: Vec<_> =
            counts.map(|((stage, text), (count, first))| ErrorCount { stage, text, count, first }).collect();
        counts.sort_by_key(|error| std::cmp::Reverse(error.count));
        counts.extend(self.others.map(|(count, first)| {
            let text = OTHER_TEXTS.to_owned();
            ErrorCount { stage: None, text, count, first }
        }));
        counts
    }
}

/// The part that broke and the error, in the words of a [`Failure`].
impl fmt::Display for ErrorCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.stage {
            Some(stage) => Failure { stage, message: self.text.clone() }.fmt(f),
            None => f.write_str(&self.text),
        }
    }
}

impl Place {
    /// A boundary as a whole.
    pub(crate) fn boundary(recording: &str, cut: usize) -> Self {
        Self { recording: recording.to_owned(), cut, sample: None, after_actions: None }
    }

    /// A rollout at a boundary, where it broke off.
    pub(crate) fn rollout(recording: &str, cut: usize, sample: usize, rollout: &Rollout) -> Self {
        let after_actions = Some(rollout.actions.len());
        Self { sample: Some(sample), after_actions, ..Self::boundary(recording, cut) }
    }
}

/// White space folded, and cut with an ellipsis where it is too long.
fn one_line(error: &str) -> String {
    let mut line = String::new();
    let mut n_characters = 0;
    for word in error.split_whitespace() {
        let space = if line.is_empty() { "" } else { " " };
        for character in space.chars().chain(word.chars()) {
            if n_characters == LONGEST {
                line.pop();
                line.push('…');
                return line;
            }
            line.push(character);
            n_characters += 1;
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_is_folded_and_a_long_text_cut() {
        assert_eq!(one_line(" a\n\t b  c\r\n"), "a b c");
        assert_eq!(one_line(&"é".repeat(160)), "é".repeat(160));
        assert_eq!(one_line(&"é".repeat(161)), "é".repeat(159) + "…");
        assert_eq!(one_line(&format!("{} {}", "a".repeat(160), "b")), "a".repeat(159) + "…");
        assert_eq!(one_line(" \n "), "");
    }

    #[test]
    fn the_most_common_comes_first_and_among_equals_the_first_seen() {
        let mut tally = Tally::default();
        for (sample, error) in ["late", "lost", "lost", "gone", "late \n", "odd"].into_iter().enumerate() {
            let rollout = Rollout::failed(Stage::Model, error);
            tally.add(None, error, || Place::rollout("r", 3, sample, &rollout));
        }
        let counts: Vec<_> = tally.into_counts().into_iter().map(|e| (e.text, e.count, e.first.sample)).collect();
        let expected = [("late", 2, 0), ("lost", 2, 1), ("gone", 1, 3), ("odd", 1, 5)];
        assert_eq!(counts, expected.map(|(text, count, sample)| (text.to_owned(), count, Some(sample))));
    }

    #[test]
    fn texts_beyond_a_thousand_are_counted_together_and_come_last() {
        let mut tally = Tally::default();
        for number in (0..MOST_TEXTS + 3).chain([0, 5_000]) {
            tally.add(None, &format!("request {number}"), || Place::boundary("r", number));
        }
        let counts = tally.into_counts();
        assert_eq!(counts.len(), MOST_TEXTS + 1);
        assert_eq!((&*counts[0].text, counts[0].count), ("request 0", 2));
        let last = counts.last().unwrap();
        assert_eq!((&*last.text, last.count, last.first.cut), (OTHER_TEXTS, 4, MOST_TEXTS));
    }

    #[test]
    fn one_text_from_two_stages_is_two_errors_that_say_so() {
        let mut tally = Tally::default();
        for stage in [Stage::Model, Stage::Environment] {
            let rollout = Rollout::failed(stage, "no answer in 30 s");
            tally.add_rollout(&rollout, || Place::rollout("r", 3, 0, &rollout));
        }
        tally.add(None, "no answer in 30 s", || Place::boundary("r", 3));
        let errors: Vec<_> = tally.into_counts().iter().map(ToString::to_string).collect();
        assert_eq!(errors, ["model: no answer in 30 s", "environment: no answer in 30 s", "no answer in 30 s"]);
    }
}
