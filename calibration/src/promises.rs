//! Whether every promised error is as rare as it is meant to be, as far as so many runs can tell.

use std::fmt;

use indexmap::IndexMap;

use crate::answer::{Meaning, Question, Tallies, Tally};
use crate::cell::Cell;

/// How often all of this finds fault with procedures that keep every promise exactly.
const FALSE_ALARMS: f64 = 0.001;

/// A promise that was not kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Broken {
    /// Where: a cell, or a row of the table with so many cells.
    pub place: String,
    /// Which error.
    pub question: Question,
    /// How often it was made.
    pub tally: Tally,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (words, nominal) = self.question.words();
        let percent = |share: f64| 100.0 * share;
        let [found, error] = [self.tally.mean(), self.tally.error()].map(percent);
        write!(f, "{words} in {found:.2} ± {error:.2} % of {} runs", self.tally.runs)?;
        if let Some(nominal) = nominal {
            write!(f, ", nominal {} %", percent(nominal))?;
        }
        write!(f, ": {}", self.place)
    }
}

/// Every promise that is broken in a cell, or in the cells of a row together.
///
/// An error of `nominal` or less happens in at least as many of `n` runs with at most the binomial's tail. A tail below
/// 1/1000, divided by how many promises are looked at, is taken for a promise that is broken. Cells are independent, so the
/// runs of a row are those of one cell.
///
/// # Source
///
/// The division is Bonferroni's: Dunn 1961, *Multiple comparisons among means*.
pub fn broken(cells: &[Cell], tallies: &[Tallies]) -> Vec<Broken> {
    let mut looked_at = Vec::new();
    let mut rows: IndexMap<(Question, &str), (Tally, usize)> = IndexMap::new();
    for (cell, tallies) in cells.iter().zip(tallies) {
        for asked in cell.asked.iter().filter(|asked| asked.meaning == Meaning::Promised) {
            let tally = tallies.of(asked.question);
            looked_at.push((cell.name.clone(), asked.question, tally));
            let (of_row, cells) = rows.entry((asked.question, &asked.row)).or_default();
            of_row.merge(&tally);
            *cells += 1;
        }
    }
    let rows =
        rows.into_iter().map(|((question, row), (tally, cells))| (format!("{row}, {cells} cells"), question, tally));
    looked_at.extend(rows);
    let least = FALSE_ALARMS / looked_at.len().max(1) as f64;
    let is_broken =
        |question: Question, tally: &Tally| question.words().1.is_some_and(|nominal| tally.surprise(nominal) < least);
    let broken = looked_at.into_iter().filter(|(_, question, tally)| is_broken(*question, tally));
    broken.map(|(place, question, tally)| Broken { place, question, tally }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::Asked;
    use crate::run::{Plan, run};
    use crate::study::{Grid, studies};

    fn cell(name: &str, meaning: Meaning, p: f64) -> Cell {
        let asked = vec![Asked::new(Question::New, meaning, "a row")];
        Cell::new(name.to_owned(), 1, asked, move |draws, answers| answers.says(Question::New, draws.chance(p)))
    }

    fn found(cells: &[Cell]) -> Vec<String> {
        let tallies = run(cells, Plan { runs: 1_000, seed: 1, threads: 1 }, &|_, _| {});
        broken(cells, &tallies).into_iter().map(|broken| broken.place).collect()
    }

    #[test]
    fn an_error_that_is_too_common_is_found_where_it_was_promised_to_be_rare() {
        assert_eq!(found(&[cell("good", Meaning::Promised, 0.05), cell("shown", Meaning::Shown, 0.2)]), [""; 0]);
        assert_eq!(found(&[cell("good", Meaning::Promised, 0.0), cell("bad", Meaning::Promised, 0.1)]), ["bad"]);
    }

    #[test]
    fn what_no_cell_shows_by_itself_is_found_in_all_of_a_row() {
        let cells: Vec<_> = (0..20).map(|number| cell(&number.to_string(), Meaning::Promised, 0.06)).collect();
        assert_eq!(found(&cells), ["a row, 20 cells"]);
    }

    /// A few runs of a few cells, or with `RETRACE_SLOW` those of the table in `docs/methods.md`.
    #[test]
    fn every_promise_is_kept() {
        const ALL: u32 = 2_000;
        let runs = retrace_testing::cases(30, ALL);
        let cells: Vec<_> = studies(if runs == ALL { Grid::Full } else { Grid::Few })
            .into_iter()
            .flat_map(|study| study.cells)
            .collect();
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let tallies = run(&cells, Plan { runs, seed: 1, threads }, &|_, _| {});
        let broken: Vec<_> = broken(&cells, &tallies).iter().map(Broken::to_string).collect();
        assert_eq!(broken, [""; 0]);
    }
}
