//! Whole reports of simulated rollouts: the verdicts that a reader is shown.

use indexmap::IndexMap;
use retrace_events::{Action, EndReason, Failure, Outcome, Rollout, Spend, Stage};
use retrace_score::{
    BoundaryOutcome, Compaction, EnvironmentKind, ExecutedCalls, Judging, Margins, RecordingFacts, Report,
    StrategyOutcome, Verification,
};
use retrace_stats::Verdict;

use crate::answer::Meaning::{Found, Promised};
use crate::answer::{Answers, Question};
use crate::cell::{Asked, Cell};
use crate::generator::{Arm, Boundary, Drawn, Loss, Shape};
use crate::procedures::name;
use crate::scenario::{HORIZON, Scenario};
use crate::study::Grid;

/// The name of the strategy that keeps everything.
const CONTROL: &str = "control";

/// Reports of a control with two strategies that do nothing, and with one that harms.
pub fn cells(grid: Grid) -> Vec<Cell> {
    let (recordings, harmless): (&[usize], &[Scenario]) = match grid {
        Grid::Full => (&[3, 12], &[Scenario::NoEffect, Scenario::Mild]),
        Grid::Few => (&[6], &[Scenario::NoEffect]),
    };
    let mut cells = Vec::new();
    for &recordings in recordings {
        for &scenario in harmless {
            for loss in [Loss::Nothing, Loss::Any { pre: 0.1, post: 0.3 }] {
                let shape = Shape { acts: vec![false; 3], loss, ..Shape::new(scenario, recordings, 4, 0.3) };
                let mut asked = vec![
                    Asked::new(Question::WorseHere, Promised, "two harmless strategies"),
                    Asked::new(Question::Invalid, Promised, "two harmless strategies"),
                ];
                if loss == Loss::Nothing {
                    asked.push(Asked::new(Question::Worse, Promised, "two harmless strategies, equal arms"));
                }
                cells.push(cell("two harmless strategies", shape, Margins::default(), asked));
            }
        }
        for scenario in Scenario::HARM {
            for (loss, row) in [
                (Loss::Nothing, "a strategy that is worse by the very margin"),
                (Loss::WorstOfPost, "the same, and its worst rollouts break off"),
            ] {
                let shape = Shape { acts: vec![false, true], loss, ..Shape::new(scenario, recordings, 4, 0.3) };
                // In the other channel any difference is within the margin, so that this one decides.
                let margins = Margins { wasted: Some(scenario.mean()), stopped: Some(1.5) };
                let mut asked = vec![Asked::new(Question::WithinMargin, Promised, row)];
                if loss == Loss::Nothing {
                    let row = scenario.words();
                    asked.push(Asked::new(Question::Worse, Found, row));
                    asked.push(Asked::new(Question::WorseHere, Found, row));
                }
                cells.push(cell("a harmful strategy", shape, margins, asked));
            }
        }
    }
    cells
}

fn cell(what: &str, shape: Shape, margins: Margins, asked: Vec<Asked>) -> Cell {
    let name = format!("verdicts, {what}, {}", name(&shape));
    Cell::new(name, shape.recordings, asked, move |draws, answers| {
        let report = Report::new(verification(shape.draw(draws), margins)).expect("the horizon is within bounds");
        answer(&report, answers);
    })
    // A report has intervals of every channel at every horizon, which take most of its time.
    .one_of(4)
}

/// What the verdicts of a report say; the control's own counts only where it says that the harness differs from itself.
pub(crate) fn answer(report: &Report, answers: &mut Answers) {
    let inferences = report.strategies.iter().filter_map(|(name, strategy)| Some((name, strategy.inference.as_ref()?)));
    let of_strategies: Vec<_> =
        inferences.filter(|(name, _)| *name != CONTROL).map(|(_, inference)| &inference.verdict).collect();
    let any = |is: fn(&Verdict) -> bool| of_strategies.iter().any(|verdict| is(verdict));
    answers.says(Question::Worse, any(|verdict| *verdict == Verdict::Worse));
    answers.says(Question::WorseHere, any(|verdict| *verdict == Verdict::WorseHere));
    answers.says(Question::WithinMargin, any(|verdict| matches!(verdict, Verdict::WithinMargin { .. })));
    answers.says(Question::Invalid, any(|verdict| *verdict == Verdict::Invalid));
}

/// What a verifier would hand over, had its rollouts come out like this. The first strategy is the control.
fn verification(drawn: Drawn, margins: Margins) -> Verification {
    let strategies: Vec<String> = match drawn.iter().flatten().next() {
        Some(boundary) => (0..boundary.post.len()).map(strategy).collect(),
        None => Vec::new(),
    };
    let recordings =
        (0..drawn.len()).map(|recording| RecordingFacts::new(recording.to_string(), EnvironmentKind::Rebuilt));
    Verification {
        horizon: HORIZON as usize,
        samples: 3,
        seed: 0,
        model: None,
        token_counter: "none".to_owned(),
        prices: None,
        strategies,
        control: Some(CONTROL.to_owned()),
        recordings: recordings.collect(),
        unusable: Vec::new(),
        n_left_out: 0,
        chain: false,
        judging: Judging { margins, ..Judging::default() },
        n_not_reached: 0,
        unfinished: None,
        boundaries: drawn
            .into_iter()
            .enumerate()
            .flat_map(|(recording, boundaries)| {
                boundaries.into_iter().enumerate().map(move |(cut, boundary)| outcome(recording, cut, &boundary))
            })
            .collect(),
    }
}

fn strategy(number: usize) -> String {
    if number == 0 { CONTROL.to_owned() } else { format!("strategy {number}") }
}

fn outcome(recording: usize, cut: usize, boundary: &Boundary) -> BoundaryOutcome {
    let compacted = |(number, (post, _)): (usize, &(Arm, f64))| {
        let compaction = Compaction::Compacted { size: None, cached: None };
        let outcome = StrategyOutcome { compaction, lost_task: false, spend: Spend::default(), post: rollouts(post) };
        (strategy(number), outcome)
    };
    BoundaryOutcome {
        recording: recording.to_string(),
        cut,
        executed: cut,
        executed_calls: Box::new(ExecutedCalls::default()),
        pre_size: None,
        unusable: None,
        pre: rollouts(&boundary.pre),
        strategies: boundary.post.iter().enumerate().map(compacted).collect::<IndexMap<_, _>>(),
    }
}

fn rollouts(arm: &Arm) -> Vec<Rollout> {
    let ran = arm.wasted.iter().zip(&arm.stopped).map(|(&wasted, &stopped)| {
        // One that stopped did nothing but what it wasted.
        let worked = if stopped == 1 { 0 } else { HORIZON - wasted };
        let blocked = (0..wasted).map(|n| Action::new(format!("blocked{n}"), "{}", Outcome::Error, None));
        let worked = (0..worked).map(|n| Action::new(format!("worked{n}"), "{}", Outcome::Ok, None));
        rollout(blocked.chain(worked).collect(), if stopped == 1 { EndReason::Answer } else { EndReason::Budget })
    });
    let failure = || Failure { stage: Stage::Model, message: "lost".to_owned() };
    let failed = (0..arm.failed).map(|_| rollout(Vec::new(), EndReason::Failed(failure())));
    ran.chain(failed).collect()
}

fn rollout(actions: Vec<Action>, end: EndReason) -> Rollout {
    Rollout { actions, end, n_answers: 1, spend: Spend::default(), sent: None }
}
