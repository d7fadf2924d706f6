//! Runs cells, on several threads, and tallies their answers. What comes out does not depend on the threads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::answer::Tallies;
use crate::cell::Cell;

/// How many runs a thread makes before it takes the next ones: sums are rounded in this order, whoever makes them.
const CHUNK: u32 = 50;

/// How much is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// How often each cell is run, but for the costly ones.
    pub runs: u32,
    /// What all draws are made from.
    pub seed: u64,
    /// On how many threads.
    pub threads: usize,
}

/// The tallies of each cell. `progress` is told how many chunks of how many are done.
pub fn run(cells: &[Cell], plan: Plan, progress: &(dyn Fn(usize, usize) + Sync)) -> Vec<Tallies> {
    let jobs: Vec<(usize, u32, u32)> =
        cells.iter().enumerate().flat_map(|(index, cell)| jobs(index, cell, plan)).collect();
    let (next, done) = (AtomicUsize::new(0), Mutex::new(0));
    let worker = || {
        let mut found = Vec::new();
        loop {
            let job = next.fetch_add(1, Ordering::Relaxed);
            let Some(&(index, from, to)) = jobs.get(job) else { return found };
            let mut tallies = Tallies::default();
            (from..to).for_each(|run| tallies.add(&cells[index].answers(plan.seed, run)));
            found.push((job, tallies));
            let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
            *done += 1;
            progress(*done, jobs.len());
        }
    };
    let mut found: Vec<_> = thread::scope(|scope| {
        let workers: Vec<_> = (0..plan.threads.max(1)).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("a simulated run does not panic")).collect()
    });
    found.sort_unstable_by_key(|(job, _)| *job);
    let mut tallies = vec![Tallies::default(); cells.len()];
    for (job, found) in found {
        tallies[jobs[job].0].merge(&found);
    }
    tallies
}

/// The chunks of a cell: which runs, from and up to.
fn jobs(index: usize, cell: &Cell, plan: Plan) -> impl Iterator<Item = (usize, u32, u32)> {
    let runs = cell.runs(plan.runs);
    (0..runs.div_ceil(CHUNK)).map(move |chunk| (index, chunk * CHUNK, ((chunk + 1) * CHUNK).min(runs)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::Question;

    fn cells() -> Vec<Cell> {
        let cell = |name: &str, p: f64| {
            Cell::new(name.to_owned(), 1, Vec::new(), move |draws, answers| {
                answers.says(Question::New, draws.chance(p));
                answers.measures(Question::Width, draws.below(1_000) as f64 / 7.0);
            })
        };
        vec![cell("rare", 0.1), cell("common", 0.9).one_of(4), cell("often", 0.9)]
    }

    #[test]
    fn what_comes_out_does_not_depend_on_the_threads() {
        let tallies = |threads| run(&cells(), Plan { runs: 333, seed: 8, threads }, &|_, _| {});
        let one = tallies(1);
        assert_eq!(tallies(2), one);
        assert_eq!(tallies(7), one);
        assert_eq!(one.iter().map(|tallies| tallies.of(Question::New).runs).collect::<Vec<_>>(), [333, 84, 333]);
        assert!(one[0].of(Question::New).mean() < 0.2 && one[2].of(Question::New).mean() > 0.8);
    }

    #[test]
    fn another_seed_and_another_name_have_other_draws() {
        let plan = Plan { runs: 200, seed: 8, threads: 1 };
        let one = run(&cells(), plan, &|_, _| {});
        assert_ne!(run(&cells(), Plan { seed: 9, ..plan }, &|_, _| {}), one);
        assert_ne!(one[1].of(Question::Width).mean(), one[2].of(Question::Width).mean());
    }
}
