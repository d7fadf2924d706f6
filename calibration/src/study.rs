//! The studies: what is looked at together, in a table of its own.

use crate::cell::Cell;
use crate::{families, planning, procedures, stopping, verdicts, worlds};

/// Which designs are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grid {
    /// All of them.
    Full,
    /// A few that are quick.
    Few,
}

/// Cells that make a table.
#[derive(Debug)]
pub struct Study {
    /// Its heading.
    pub title: &'static str,
    /// What is to be known of it, in a paragraph.
    pub text: &'static str,
    /// Its cells.
    pub cells: Vec<Cell>,
}

/// All studies.
pub fn studies(grid: Grid) -> Vec<Study> {
    vec![
        Study {
            title: "Each procedure by itself",
            text: "\
One strategy, one channel. Recordings have 1, 4 or 10 boundaries each, or 1 to 10, in a part of them with more harm where
there are more; the kinds of their boundaries have a correlation of 0, 0.3 or 0.6. Where arms are unequal, a tenth of 5 PRE
rollouts and six tenths of 5 POST rollouts are lost. A `cluster_t` is there to compare with.",
            cells: procedures::cells(grid),
        },
        Study {
            title: "Several strategies, and the control",
            text: "\
All share their PRE rollouts, and each is judged in both channels. An error is one of any strategy that does nothing.",
            cells: [families::cells(grid), families::controls(grid)].into_iter().flatten().collect(),
        },
        Study {
            title: "Looking after every recording",
            text: "What is claimed by a run that is looked at after each of its recordings, 4 boundaries and 3 rollouts each.",
            cells: stopping::cells(grid),
        },
        Study {
            title: "Planned runs",
            text: "\
The designs of `cheapest_design`, from a pilot of 2,000 recordings, where a recording costs ten times as much as a boundary
or a rollout: what they were to find, and what they found.",
            cells: planning::cells(grid),
        },
        Study {
            title: "Verdicts",
            text: "\
Whole reports by `retrace-score`, with a control. In half of those about harmless strategies, a tenth of PRE and three tenths of
POST are lost; where the worst rollouts break off, they are those of POST that waste more than half of their actions.",
            cells: verdicts::cells(grid),
        },
        Study {
            title: "Simulated shops",
            text: "\
Whole verifications by `retrace-verifier`, each of shops of its own (`retrace-sim`), whose agent does something else than what
follows in 3 of 10 answers: the control, and a window that loses the session.",
            cells: worlds::cells(grid),
        },
    ]
}
