//! Each procedure by itself: one strategy, one channel.

use retrace_sim::Draws;
use retrace_stats::{
    Exact, Level, PValue, ShownLow, bounded_mean, cluster_sign_flip_test, cluster_t, detectable_effect, flip_interval,
    here_interval, nearest_double, rollout_permutation_test, shown_low,
};

use crate::answer::Meaning::{Found, Promised, Shown};
use crate::answer::{Answers, Question};
use crate::cell::{Asked, Cell};
use crate::column::{Channel, Column, LEVEL, is_small};
use crate::generator::{Loss, Shape, Sizes};
use crate::scenario::{HORIZON, Scenario};
use crate::study::Grid;

/// The cells of the grid: every scenario in designs with equal arms, and some with unequal arms and with unequal
/// recordings.
pub fn cells(grid: Grid) -> Vec<Cell> {
    let mut cells = Vec::new();
    let designs: &[(usize, &[(usize, f64)])] = match grid {
        Grid::Full => &[
            (3, &[(1, 0.0), (4, 0.0), (4, 0.3), (10, 0.6)]),
            (6, &[(1, 0.0), (4, 0.0), (4, 0.3), (10, 0.6)]),
            (8, &[(1, 0.0), (4, 0.0), (4, 0.3), (10, 0.6)]),
            (12, &[(1, 0.0), (4, 0.0), (4, 0.3), (10, 0.6)]),
            (20, &[(4, 0.3), (10, 0.6)]),
            (40, &[(4, 0.3)]),
        ],
        Grid::Few => &[(8, &[(4, 0.3)])],
    };
    for scenario in Scenario::ALL {
        for (recordings, designs) in designs {
            for (boundaries, correlation) in *designs {
                cells.push(cell(Shape::new(scenario, *recordings, *boundaries, *correlation)));
            }
        }
    }
    let recordings: &[usize] = match grid {
        Grid::Full => &[3, 6, 8, 12],
        Grid::Few => &[6],
    };
    for &recordings in recordings {
        for scenario in Scenario::SYMMETRIC {
            let shape = Shape::new(scenario, recordings, 4, 0.3);
            cells.push(cell(Shape { samples: 5, loss: Loss::Any { pre: 0.1, post: 0.6 }, ..shape }));
        }
        for scenario in Scenario::ALL {
            cells.push(cell(Shape { sizes: Sizes::Mixed, ..Shape::new(scenario, recordings, 0, 0.3) }));
        }
        for scenario in Scenario::HARM {
            cells.push(cell(Shape { sizes: Sizes::LongerIsWorse, ..Shape::new(scenario, recordings, 0, 0.3) }));
        }
    }
    cells
}

fn cell(shape: Shape) -> Cell {
    let (name, asked) = (name(&shape), asked(&shape));
    cell_of(name, shape, asked)
}

/// A cell that is asked these questions of one strategy.
pub(crate) fn cell_of(name: String, shape: Shape, asked: Vec<Asked>) -> Cell {
    // All 2²⁰ subsets of 20 recordings, or as many drawn ones of more, take milliseconds.
    let one_of = if shape.recordings >= 18 { 4 } else { 1 };
    Cell::new(name, shape.recordings, asked, move |draws, answers| run(&shape, draws, answers)).one_of(one_of)
}

/// A shape in words.
pub(crate) fn name(shape: &Shape) -> String {
    let sizes = match shape.sizes {
        Sizes::Each(1) => "1 boundary each".to_owned(),
        Sizes::Each(size) => format!("{size} boundaries each"),
        Sizes::Mixed => "1 to 10 boundaries".to_owned(),
        Sizes::LongerIsWorse => "1 to 10 boundaries, more are worse".to_owned(),
    };
    let Shape { scenario, recordings, samples, correlation, .. } = shape;
    let lost = match shape.loss {
        Loss::Nothing => "",
        Loss::Any { .. } => ", some lost",
        Loss::WorstOfPost => ", the worst of POST lost",
    };
    format!(
        "{}: {recordings} recordings, {sizes}, {samples} rollouts{lost}, correlation {correlation}",
        scenario.words()
    )
}

/// What is asked of a shape, and what is promised of it.
///
/// * `p here` conditions on the boundaries: it holds wherever POST has the distribution of PRE, with arms of any size.
/// * `p new` and `low` hold where the sum of a recording is as likely as its negative, which takes equal arms, too.
/// * `high` holds wherever counts are bounded, and with it the two ends together, except where a rare gain is offset by
///   a common harm: there the lower end takes the typical recording for the mean.
fn asked(shape: &Shape) -> Vec<Asked> {
    let scenario = shape.scenario;
    let (is_null, is_symmetric, is_harm) = (
        Scenario::NOTHING_HAPPENS.contains(&scenario),
        Scenario::SYMMETRIC.contains(&scenario),
        Scenario::HARM.contains(&scenario),
    );
    let is_lopsided = [Scenario::RareHarm, Scenario::RareGain].contains(&scenario);
    let mut asked = Vec::new();
    let mut ask = |question, meaning, row: &str| asked.push(Asked::new(question, meaning, row));
    if shape.loss != Loss::Nothing {
        if is_null {
            ask(Question::Here, Promised, "no effect, unequal arms");
        }
        ask(Question::New, Shown, "no effect or as much gain as harm, unequal arms");
        ask(Question::HighBelow, Promised, "everywhere");
        return asked;
    }
    if is_null {
        ask(Question::Here, Promised, "no effect");
    }
    if is_symmetric {
        ask(Question::New, Promised, "no effect, or as much gain as harm");
        ask(Question::LowAbove, Promised, "no effect, or as much gain as harm");
    }
    if is_lopsided {
        ask(Question::NewHarm, Shown, scenario.words());
        ask(Question::NewGain, Shown, scenario.words());
    }
    if !is_symmetric && !is_lopsided {
        ask(Question::LowAbove, Shown, "harm");
    }
    ask(Question::HighBelow, Promised, "everywhere");
    if scenario == Scenario::RareGain {
        ask(Question::PairMisses, Shown, scenario.words());
    } else {
        ask(Question::PairMisses, Promised, "all but rare gain, common harm");
    }
    ask(Question::TMisses, Shown, if is_symmetric { "no effect, or as much gain as harm" } else { "all others" });
    ask(Question::HereMisses, Shown, "everywhere, if rollouts differ");
    if shape.sizes == Sizes::Each(4) && shape.correlation == 0.3 {
        if is_harm {
            for question in [Question::Here, Question::New, Question::Detectable, Question::Width] {
                ask(question, Found, scenario.words());
            }
        }
        if is_null {
            ask(Question::WithinOne, Found, scenario.words());
        }
    }
    asked
}

fn run(shape: &Shape, draws: &mut Draws, answers: &mut Answers) {
    let drawn = shape.draw(draws);
    let column = Column::new(&drawn, 0, Channel::Wasted);
    let truth = shape.mean();
    let here = rollout_permutation_test(&column.arms).map(|test| test.p.upper());
    answers.says(Question::Here, here.as_ref().is_ok_and(is_small));
    let new = cluster_sign_flip_test(&column.differences).p;
    let is_new = is_small(&PValue::upper(&new));
    let mean = column.recordings.mean().unwrap_or_default();
    answers.says(Question::New, is_new);
    answers.says(Question::NewHarm, is_new && mean > Exact::default());
    answers.says(Question::NewGain, is_new && mean < Exact::default());

    let bound = f64::from(HORIZON);
    let limits = bounded_mean(&column.recordings, column.worst, LEVEL);
    let high = limits.as_ref().map_or(bound, |limits| limits.high);
    let flips = flip_interval(&column.recordings, LEVEL);
    let low = limits.ok().and_then(|limits| match shown_low(&column.recordings, &flips, &limits) {
        ShownLow::Flips(low) => Some(nearest_double(&low)),
        ShownLow::Bounded(low) => Some(low),
        _ => None,
    });
    let [is_above, is_below] = [low.is_some_and(|low| low > truth), high < truth];
    answers.says(Question::LowAbove, is_above);
    answers.says(Question::HighBelow, is_below);
    answers.says(Question::PairMisses, is_above || is_below);
    answers.says(Question::WithinOne, high < 1.0);
    answers.measures(Question::Width, high - low.unwrap_or(-bound));

    if let Ok(t) = cluster_t(&column.recordings, LEVEL) {
        answers.says(Question::TMisses, truth < t.low || t.high < truth);
        let four_of_five = Level::new(4, 5).filter(|_| column.recordings.scored() >= 6 && !t.is_without_spread());
        if let Some(effect) = four_of_five.and_then(|power| detectable_effect(t.se, t.freedom, power, LEVEL)) {
            answers.measures(Question::Detectable, effect);
        }
    }
    if let Ok(here) = here_interval(&column.arms, LEVEL) {
        answers.says(Question::HereMisses, column.mean_here < here.low || here.high < column.mean_here);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::Tally;

    /// The upper end is below the truth, 0.85, where none of 20 boundaries wastes all, and only there: it is then
    /// 5 (1 - 0.025^(1/20)) = 0.842.
    #[test]
    fn the_upper_end_misses_as_often_as_it_may_where_all_is_wasted_or_nothing() {
        const RUNS: u32 = 4_000;
        let shape = Shape::new(Scenario::AllOrNothing, 20, 1, 0.0);
        let mut draws = Draws::new(7);
        let (mut missed, mut without) = (0, 0);
        for _ in 0..RUNS {
            let drawn = shape.draw(&mut draws);
            let column = Column::new(&drawn, 0, Channel::Wasted);
            let high = bounded_mean(&column.recordings, column.worst, LEVEL).unwrap().high;
            missed += u64::from(high < shape.mean());
            without += u64::from(column.recordings.mean() == Some(Exact::default()));
        }
        assert_eq!(missed, without);
        let tally = Tally::of(missed, RUNS.into());
        assert!((tally.mean() - 0.83_f64.powi(20)).abs() < 4.0 * tally.error(), "{}", tally.mean());
        assert!(tally.surprise(0.025) > 0.01, "{}", tally.mean());
    }
}
