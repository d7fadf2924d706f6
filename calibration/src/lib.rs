//! Our own procedures, put through simulated verifications whose truth is known.
//!
//! A procedure promises how often it errs. Here it is given thousands of verifications in which it can only err, and what it
//! says is counted, beside what it says where there is something to find.
//!
//! ```
//! use retrace_calibration::answer::Question;
//! use retrace_calibration::promises::broken;
//! use retrace_calibration::run::{Plan, run};
//! use retrace_calibration::study::{Grid, studies};
//! use retrace_calibration::table::Table;
//!
//! let study = studies(Grid::Few).remove(0);
//! let tallies = run(&study.cells, Plan { runs: 20, seed: 1, threads: 2 }, &|_, _| {});
//! assert_eq!(tallies[0].of(Question::Here).runs, 20);
//! assert_eq!(broken(&study.cells, &tallies), []);
//! assert!(Table::new(&study.cells, &tallies).to_string().starts_with("| what"));
//! ```
//!
//! From a draw to the table:
//!
//! * [`scenario`] says what compaction does, [`generator`] draws verifications in which it does so;
//! * [`answer`] has what is asked of a run, and [`cell`] puts questions to one kind of run;
//! * the cells are those of [`procedures`], [`families`], [`stopping`], [`planning`], [`verdicts`] and [`worlds`], whose
//!   functions are those of `retrace-stats`, `retrace-score` and `retrace-verifier`, never copies of them;
//! * [`study`] lists them all, [`mod@run`] runs them, [`table`] shows what came out, and [`promises`] holds it against what was
//!   promised.
//!
//! Every draw is fixed by a seed, the name of its cell and the number of its run, so neither the threads nor the other
//! cells matter. `cargo xtask calibrate` writes the tables into `docs/methods.md`.

pub mod answer;
pub mod cell;
mod column;
pub mod families;
pub mod generator;
pub mod planning;
pub mod procedures;
pub mod promises;
pub mod run;
pub mod scenario;
pub mod stopping;
pub mod study;
pub mod table;
pub mod verdicts;
pub mod worlds;

pub use scenario::HORIZON;
