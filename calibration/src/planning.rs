//! Runs that were planned from a pilot to find a harm four times in five.

use retrace_sim::Draws;
use retrace_stats::{Arms, Goal, Level, Price, cheapest_design, variance_components};

use crate::answer::Meaning::Found;
use crate::answer::Question;
use crate::cell::{Asked, Cell};
use crate::column::LEVEL;
use crate::generator::{Shape, Sizes};
use crate::procedures::{cell_of, name};
use crate::scenario::Scenario;
use crate::study::Grid;

/// What is paid: a recording is dearer than a boundary, and a boundary as dear as a rollout.
const PRICE: Price = Price { recording: 10.0, boundary: 1.0, rollout: 1.0, strategies: 1 };

/// The runs that are cheapest for their power of 80 %, with variances from a pilot that is large enough to know them.
pub fn cells(grid: Grid) -> Vec<Cell> {
    let (scenarios, pilot): (&[Scenario], usize) = match grid {
        Grid::Full => (&Scenario::HARM, 2_000),
        Grid::Few => (&[Scenario::Mild], 200),
    };
    scenarios.iter().map(|&scenario| planned(scenario, pilot)).collect()
}

fn planned(scenario: Scenario, recordings: usize) -> Cell {
    let pilot = Shape::new(scenario, recordings, 4, 0.3);
    let drawn = pilot.draw(&mut Draws::new(1));
    let arms: Vec<Vec<Arms<'_>>> = drawn
        .iter()
        .map(|boundaries| {
            let arms = boundaries.iter().map(|it| Arms::Rollouts { pre: &it.pre.wasted, post: &it.post[0].0.wasted });
            arms.collect()
        })
        .collect();
    let components = variance_components(&arms.iter().map(Vec::as_slice).collect::<Vec<_>>())
        .expect("the pilot has many recordings");
    let goal =
        Goal { effect: scenario.mean(), power: Level::new(4, 5).expect("four in five is a level"), level: LEVEL };
    let design = cheapest_design(&components, &PRICE, &goal).expect("each of these harms can be found");
    let [recordings, boundaries, samples] =
        [design.recordings, design.boundaries, design.samples].map(|number| number as usize);
    let shape = Shape { recordings, sizes: Sizes::Each(boundaries), samples, ..pilot };
    let row = format!(
        "{}: planned {recordings} recordings, {boundaries} boundaries, {samples} rollouts, to find it in {:.0} %",
        scenario.words(),
        100.0 * design.power
    );
    let asked = vec![Asked::new(Question::New, Found, row)];
    cell_of(format!("planned, {}", name(&shape)), shape, asked)
}
