//! What the power of a plan is worth: simulated runs, and the exact test of each.

use std::num::NonZeroU32;
use std::ops::Range;

use super::{Goal, Powers};
use crate::draws::IndexDraws;
use crate::{Exact, Level, sign_flip_test};

const ACTIONS: u32 = 5;
const RUNS: u32 = 300;
const PARTS: NonZeroU32 = NonZeroU32::new(10_000).unwrap();
/// Parts of all actions that are wasted before.
const BEFORE: u32 = 440;

/// The share of runs that show harm by a sign flip of recordings, of those that are said to do so 80 times in 100. Each
/// action is wasted by itself, and everywhere as often.
fn found(recordings: u32, boundaries: u32, samples: u32) -> f64 {
    let power = |after: u32| {
        let [before, after] = [BEFORE, after].map(|parts| f64::from(parts) / f64::from(PARTS.get()));
        let variance = f64::from(ACTIONS) * (before * (1.0 - before) + after * (1.0 - after));
        let effect = f64::from(ACTIONS) * (after - before);
        let goal = Goal { effect, power: Level::new(4, 5).unwrap(), level: Level::PERCENT_95 };
        Powers::new(&goal).unwrap().power(variance / f64::from(boundaries * samples), recordings)
    };
    let after = (BEFORE + 1..PARTS.get()).step_by(10).find(|&after| power(after) >= 0.8).unwrap();
    let mut draws = IndexDraws::new(u64::from(recordings));
    let mut wasted = |parts: u32| {
        let actions = ACTIONS * boundaries * samples;
        i64::from((0..actions).map(|_| u32::from(draws.below(PARTS) < parts)).sum::<u32>())
    };
    let mut shows_harm = || {
        let sums: Vec<_> = (0..recordings).map(|_| wasted(after) - wasted(BEFORE)).collect();
        let is_harm = sums.iter().sum::<i64>() > 0;
        let sums: Vec<_> = sums.into_iter().map(|sum| Exact::from_integer(sum.into())).collect();
        is_harm && sign_flip_test(&sums).p.upper() <= Level::PERCENT_95.left_out()
    };
    (0..RUNS).map(|_| f64::from(shows_harm())).sum::<f64>() / f64::from(RUNS)
}

#[test]
fn few_recordings_find_less_than_they_promise_and_many_as_much() {
    let check = |design: [u32; 3], expected: Range<f64>| {
        let found = found(design[0], design[1], design[2]);
        assert!(expected.contains(&found), "{design:?}: {found}");
    };
    check([6, 1, 1], 0.30..0.50);
    check([6, 4, 3], 0.45..0.65);
    check([7, 2, 2], 0.45..0.75);
    check([8, 4, 1], 0.60..0.80);
    check([10, 2, 2], 0.70..0.90);
    check([12, 4, 3], 0.72..0.88);
}
