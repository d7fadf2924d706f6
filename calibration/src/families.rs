//! Several strategies that share their PRE rollouts, and the control among them.
//!
//! Of strategies that do nothing each column is as likely as its negative, but where shared PRE rollouts are skew, all of them
//! together are not quite as likely as all of their negatives. So what `max_t` keeps is counted here.

use retrace_sim::Draws;
use retrace_stats::{Exact, PValue, cluster_sign_flip_test, control_gate, holm, max_t, rollout_permutation_test};

use crate::answer::Meaning::{Found, Promised, Shown};
use crate::answer::{Answers, Question};
use crate::cell::{Asked, Cell};
use crate::column::{Channel, Column, is_small};
use crate::generator::{Loss, Shape};
use crate::procedures::name;
use crate::scenario::Scenario;
use crate::study::Grid;

/// Families of strategies, each judged in both channels.
pub fn cells(grid: Grid) -> Vec<Cell> {
    let families: &[(Scenario, &[bool], &str)] = &[
        (Scenario::Mild, &[false, false, false], "3 strategies, none harmful"),
        (Scenario::Mild, &[true, false, false], "3 strategies, 1 of them harmful"),
        (Scenario::Mild, &[true, true, true], "3 strategies, all harmful"),
        (Scenario::NoEffect, &[false; 6], "6 strategies, none harmful, waste at few boundaries"),
    ];
    let recordings: &[usize] = match grid {
        Grid::Full => &[6, 8, 12, 20],
        Grid::Few => &[8],
    };
    let mut cells = Vec::new();
    for &(scenario, acts, row) in families {
        for &recordings in recordings {
            let shape = Shape { acts: acts.to_vec(), ..Shape::new(scenario, recordings, 4, 0.3) };
            let one_of = if recordings >= 20 { 4 } else { 1 };
            let name = format!("{row}: {}", name(&shape));
            let run = move |draws: &mut Draws, answers: &mut Answers| run(&shape, draws, answers);
            cells.push(Cell::new(name, recordings, asked(acts, row), run).one_of(one_of));
        }
    }
    cells
}

fn asked(acts: &[bool], row: &str) -> Vec<Asked> {
    let mut asked = Vec::new();
    let mut ask = |question, meaning| asked.push(Asked::new(question, meaning, row));
    if acts.contains(&false) {
        ask(Question::FamilyHere, Promised);
        ask(Question::FamilyNew, Promised);
        ask(Question::FamilyNewHolm, Shown);
        ask(Question::FamilyNewUnadjusted, Shown);
    }
    if acts.contains(&true) {
        ask(Question::FamilyFound, Found);
        ask(Question::FamilyFoundHolm, Found);
    }
    asked
}

fn run(shape: &Shape, draws: &mut Draws, answers: &mut Answers) {
    let drawn = shape.draw(draws);
    let strategies = 0..shape.acts.len();
    let columns: Vec<_> = strategies
        .flat_map(|strategy| Channel::BOTH.map(|channel| (strategy, Column::new(&drawn, strategy, channel))))
        .collect();
    let here: Vec<_> = columns.iter().map(|(_, column)| p_here(column)).collect();
    let new: Vec<_> = columns.iter().map(|(_, column)| cluster_sign_flip_test(&column.differences).p.upper()).collect();
    let recordings: Vec<_> = columns.iter().map(|(_, column)| column.recordings.clone()).collect();
    let flipped = max_t(&recordings).expect("columns of one verification have as many recordings").columns;
    let flipped: Vec<_> = flipped.into_iter().map(|column| column.adjusted).collect();

    let any = |p: &[Exact], acts: bool| {
        columns.iter().zip(p).any(|((strategy, _), p)| shape.acts[*strategy] == acts && is_small(p))
    };
    let new_by_holm = holm(&new);
    answers.says(Question::FamilyHere, any(&holm(&here), false));
    answers.says(Question::FamilyNew, any(&flipped, false));
    answers.says(Question::FamilyNewHolm, any(&new_by_holm, false));
    answers.says(Question::FamilyNewUnadjusted, any(&new, false));
    answers.says(Question::FamilyFound, any(&flipped, true));
    answers.says(Question::FamilyFoundHolm, any(&new_by_holm, true));
}

fn p_here(column: &Column<'_>) -> Exact {
    rollout_permutation_test(&column.arms).map_or(Exact::from_integer(1.into()), |test| PValue::upper(&test.p))
}

/// The control, whose POST is its PRE: equal arms, and arms of which some rollouts are lost.
pub fn controls(grid: Grid) -> Vec<Cell> {
    let recordings: &[usize] = match grid {
        Grid::Full => &[3, 6, 12],
        Grid::Few => &[6],
    };
    let mut cells = Vec::new();
    for scenario in [Scenario::NoEffect, Scenario::Mild, Scenario::RareHeavy] {
        for &recordings in recordings {
            for (loss, row) in [(Loss::Nothing, "equal arms"), (Loss::Any { pre: 0.1, post: 0.6 }, "unequal arms")] {
                let shape = Shape { acts: vec![false], samples: 5, loss, ..Shape::new(scenario, recordings, 4, 0.3) };
                let asked = vec![Asked::new(Question::Gate, Promised, row)];
                let name = format!("control, {}", name(&shape));
                cells.push(Cell::new(name, recordings, asked, move |draws, answers| {
                    let drawn = shape.draw(draws);
                    let p = Channel::BOTH.map(|channel| p_here(&Column::new(&drawn, 0, channel)));
                    answers.says(Question::Gate, control_gate(&p).fired);
                }));
            }
        }
    }
    cells
}
