//! Real verifications in simulated shops: the control changes nothing, and a window loses the session that everything
//! hangs on.

use std::sync::Arc;

use anyhow::{Context, Result};
use retrace_score::{Report, Verification};
use retrace_sim::{Draws, Shop, Shopkeeper, World, record};
use retrace_strategies::TailWindow;
use retrace_verifier::{Group, Settings, Verifier};

use crate::answer::Meaning::{Found, Promised};
use crate::answer::{Answers, Question};
use crate::cell::{Asked, Cell};
use crate::study::Grid;
use crate::verdicts;

/// How many events the window keeps: too few to hold the login.
const TARGET: usize = 4;

/// How often the agent does something else than what follows: often, so that there is noise to be mistaken for an effect.
const TEMPERATURE: f64 = 0.3;

/// Verifications of so many recordings.
pub fn cells(grid: Grid) -> Vec<Cell> {
    let (recordings, one_of): (&[usize], u32) = match grid {
        Grid::Full => (&[3, 6], 2),
        Grid::Few => (&[2], 8),
    };
    let cell = |&recordings: &usize| {
        let of_control = [Question::Here, Question::HereFifth, Question::HereHalf, Question::Gate];
        let of_control = of_control.map(|question| Asked::new(question, Promised, "the control"));
        let of_window = [Question::Worse, Question::WorseHere]
            .map(|question| Asked::new(question, Found, "a window that loses the session"));
        let asked = of_control.into_iter().chain(of_window).collect();
        Cell::new(format!("shops: {recordings} recordings"), recordings, asked, move |draws, answers| {
            let verification = verify(recordings, draws).expect("a simulated verification runs");
            answer(verification, answers);
        })
        .one_of(one_of)
    };
    recordings.iter().map(cell).collect()
}

fn answer(verification: Verification, answers: &mut Answers) {
    let report = Report::new(verification).expect("the horizon is within bounds");
    verdicts::answer(&report, answers);
    let control = report.control.as_ref().and_then(|name| report.strategies.get(name)?.inference.as_ref());
    let control = control.expect("the control is scored");
    let p = control.wasted.p_here.as_ref().map_or(1.0, |test| test.p.to_f64());
    answers.says(Question::Here, p <= 0.05);
    answers.says(Question::HereFifth, p <= 0.2);
    answers.says(Question::HereHalf, p <= 0.5);
    answers.says(Question::Gate, control.verdict == retrace_stats::Verdict::Invalid);
}

/// A verification of runs in shops of their own.
fn verify(recordings: usize, draws: &mut Draws) -> Result<Verification> {
    let agent = || Shopkeeper::new().temperature(TEMPERATURE);
    let settings = Settings { seed: draws.any(), concurrency: 1, ..Settings::default() };
    let mut verifier = Verifier::new(Arc::new(agent()), settings).strategy("window", Arc::new(TailWindow::new(TARGET)));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let verification = runtime.block_on(async {
        for number in 0..recordings {
            let shop = Shop::new(draws.any());
            // A run that ends its turn early leaves no boundary.
            let recording = loop {
                let recording = record(&shop, format!("shop-{number}"), &agent(), 24, draws.any()).await?;
                if recording.events.iter().map(|event| event.tool_calls().count()).sum::<usize>() >= 20 {
                    break recording;
                }
            };
            verifier = verifier.group(Group::new([recording], Arc::new(shop.environment())));
        }
        verifier.run(&|_| {}).await.context("failed to verify")
    })?;
    Ok(verification)
}
