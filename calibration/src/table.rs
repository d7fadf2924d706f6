//! The tables, in Markdown that can be read as it is.

use std::fmt;

use indexmap::IndexMap;

use crate::answer::{Meaning, Question, Tallies, Tally};
use crate::cell::Cell;

/// What came out of cells: a row for each question and place, a column for each number of recordings.
#[derive(Debug)]
pub struct Table<'a> {
    rows: IndexMap<(Question, &'a str), Row>,
}

/// One question, asked of several cells.
#[derive(Debug)]
struct Row {
    meaning: Meaning,
    /// By how many recordings there are.
    by_recordings: IndexMap<usize, Tally>,
    n_cells: usize,
    worst: Tally,
}

impl<'a> Table<'a> {
    /// The table of these cells.
    pub fn new(cells: &'a [Cell], tallies: &[Tallies]) -> Self {
        let mut rows: IndexMap<(Question, &str), Row> = IndexMap::new();
        for (cell, tallies) in cells.iter().zip(tallies) {
            for asked in &cell.asked {
                let tally = tallies.of(asked.question);
                let new = Row { meaning: asked.meaning, by_recordings: IndexMap::new(), n_cells: 0, worst: tally };
                let row = rows.entry((asked.question, &asked.row)).or_insert(new);
                row.by_recordings.entry(cell.recordings).or_default().merge(&tally);
                row.n_cells += 1;
                if tally.mean() > row.worst.mean() {
                    row.worst = tally;
                }
            }
        }
        rows.sort_by(|a, _, b, _| a.0.cmp(&b.0));
        Self { rows }
    }

    fn lines(&self) -> Vec<Vec<String>> {
        let mut recordings: Vec<usize> = self.rows.values().flat_map(|row| row.by_recordings.keys().copied()).collect();
        recordings.sort_unstable();
        recordings.dedup();
        let is_pooled = self.rows.values().any(|row| row.n_cells > row.by_recordings.len());
        let mut head: Vec<String> = ["what", "where", "nominal", "promised"].map(str::to_owned).into();
        head.extend(recordings.iter().map(|recordings| format!("{recordings} recordings")));
        head.extend(is_pooled.then(|| "worst cell".to_owned()));
        let mut lines = vec![head];
        for ((question, place), row) in &self.rows {
            let (words, nominal) = question.words();
            let (nominal, promised) = match (row.meaning, nominal) {
                (Meaning::Found, _) | (_, None) => (String::new(), ""),
                (Meaning::Promised, Some(nominal)) => (percent(nominal), "yes"),
                (Meaning::Shown, Some(nominal)) => (percent(nominal), "no"),
            };
            let mut line = vec![words.to_owned(), (*place).to_owned(), nominal, promised.to_owned()];
            line.extend(recordings.iter().map(|of| {
                row.by_recordings
                    .get(of)
                    .filter(|tally| tally.runs > 0)
                    .map_or_else(String::new, |it| shown(*question, it))
            }));
            if is_pooled {
                let is_error = row.meaning != Meaning::Found && row.n_cells > 1;
                line.push(if is_error {
                    format!("{} of {}", shown(*question, &row.worst), row.n_cells)
                } else {
                    String::new()
                });
            }
            lines.push(line);
        }
        lines
    }
}

impl fmt::Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = self.lines();
        let columns = lines[0].len();
        let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or_default();
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for (number, line) in lines.iter().enumerate() {
            for (cell, &width) in line.iter().zip(&widths) {
                write!(f, "| {cell:width$} ")?;
            }
            writeln!(f, "|")?;
            if number == 0 {
                widths.iter().try_for_each(|width| write!(f, "|{}", "-".repeat(width + 2)))?;
                writeln!(f, "|")?;
            }
        }
        Ok(())
    }
}

/// A mean with its Monte Carlo error: of yes and no in percent.
fn shown(question: Question, tally: &Tally) -> String {
    let (mean, error) = (tally.mean(), tally.error());
    if question.is_number() {
        format!("{mean:.2} ± {error:.2}")
    } else {
        format!("{:.1} ± {:.1}", 100.0 * mean, 100.0 * error)
    }
}

fn percent(share: f64) -> String {
    format!("{}", 100.0 * share)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::Asked;
    use crate::run::{Plan, run};

    #[test]
    fn cells_of_a_row_are_pooled_by_how_many_recordings_there_are() {
        let cell = |recordings, p, asked| {
            Cell::new(format!("{recordings} {p}"), recordings, asked, move |draws, answers| {
                answers.says(Question::New, draws.chance(p));
                answers.measures(Question::Width, 1.5);
            })
        };
        let new = |meaning, row: &str| Asked::new(Question::New, meaning, row);
        let width = || Asked::new(Question::Width, Meaning::Found, "wide");
        let cells = vec![
            cell(12, 1.0, vec![width(), new(Meaning::Shown, "skewed")]),
            cell(3, 0.0, vec![new(Meaning::Promised, "even")]),
            cell(3, 1.0, vec![new(Meaning::Promised, "even")]),
        ];
        let tallies = run(&cells, Plan { runs: 50, seed: 1, threads: 1 }, &|_, _| {});
        let expected = "\
| what                               | where  | nominal | promised | 3 recordings | 12 recordings | worst cell       |
|------------------------------------|--------|---------|----------|--------------|---------------|------------------|
| `p new` ≤ 0.05                     | skewed | 5       | no       |              | 100.0 ± 0.0   |                  |
| `p new` ≤ 0.05                     | even   | 5       | yes      | 50.0 ± 5.0   |               | 100.0 ± 0.0 of 2 |
| width of `[low, high]`, in actions | wide   |         |          |              | 1.50 ± 0.00   |                  |
";
        assert_eq!(Table::new(&cells, &tallies).to_string(), expected);
    }
}
