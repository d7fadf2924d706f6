//! Runs that are looked at after every recording, and stopped once they show harm.

use retrace_sim::Draws;
use retrace_stats::{EProcess, Exact, Recordings, sign_flip_test};

use crate::answer::Meaning::{Found, Promised, Shown};
use crate::answer::{Answers, Question};
use crate::cell::{Asked, Cell};
use crate::column::{Channel, Column, LEVEL, is_small};
use crate::generator::Shape;
use crate::procedures::name;
use crate::scenario::{HORIZON, Scenario};
use crate::study::Grid;

/// Every scenario, with a run of so many recordings that is looked at after each of them.
pub fn cells(grid: Grid) -> Vec<Cell> {
    let recordings = match grid {
        Grid::Full => 40,
        Grid::Few => 12,
    };
    let cell = |scenario| {
        let shape = Shape::new(scenario, recordings, 4, 0.3);
        let name = format!("looked at after each recording, {}", name(&shape));
        Cell::new(name, recordings, asked(scenario), move |draws, answers| run(&shape, draws, answers))
    };
    Scenario::ALL.map(cell).into()
}

fn asked(scenario: Scenario) -> Vec<Asked> {
    let [stopped, flipped] = if Scenario::SYMMETRIC.contains(&scenario) {
        [Promised, Shown]
    } else if scenario.mean() > 0.01 {
        [Found, Found]
    } else {
        [Shown, Shown]
    };
    let ask = |question, meaning| Asked::new(question, meaning, scenario.words());
    let mut asked = vec![ask(Question::EverStopped, stopped), ask(Question::EverNewHarm, flipped)];
    if stopped == Found {
        asked.push(ask(Question::StoppedAfter, Found));
    }
    asked
}

fn run(shape: &Shape, draws: &mut Draws, answers: &mut Answers) {
    let mut process = EProcess::new(HORIZON);
    let mut sums: Vec<Exact> = Vec::new();
    let (mut stopped_after, mut ever_new_harm) = (None, false);
    for looked in 1..=shape.recordings {
        let recording = [shape.recording(draws)];
        let differences = Column::new(&recording, 0, Channel::Wasted).recordings;
        let evidence = process.add(&Recordings::mean(&differences).unwrap_or_default());
        if evidence >= EProcess::threshold(1, LEVEL) {
            stopped_after.get_or_insert(looked);
        }
        sums.extend(differences.sums().iter().cloned());
        let toward_harm = sums.iter().sum::<Exact>() > Exact::default();
        ever_new_harm = ever_new_harm || (toward_harm && is_small(&sign_flip_test(&sums).p.upper()));
    }
    answers.says(Question::EverStopped, stopped_after.is_some());
    answers.says(Question::EverNewHarm, ever_new_harm);
    answers.measures(Question::StoppedAfter, stopped_after.unwrap_or(shape.recordings) as f64);
}
