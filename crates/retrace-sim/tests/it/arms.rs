//! What the tests share: the rollouts of an arm, run by hand.

use std::sync::Arc;

use retrace_agent::{Budget, Run, ToolLoop};
use retrace_env::Environment;
use retrace_events::cuts::Spacing;
use retrace_events::{Boundary, History, Recording, Rollout, Signature, Trajectory};
use retrace_model::Model;
use retrace_strategies::{AskModel, CompactContext, Compacted, Strategy as Compaction};

/// The boundaries of a recording: the first after three actions, then one every five, four at most.
pub(crate) fn boundaries(recording: Recording) -> Vec<Boundary> {
    let trajectory = Arc::new(Trajectory::new(recording));
    let cuts = trajectory.choose_cuts(&Spacing::new(5, 3).unwrap().at_most(4).unwrap()).cuts;
    cuts.iter().map(|point| Boundary::new(&trajectory, point.cut).unwrap()).collect()
}

/// Every boundary of a recording.
pub(crate) fn all_boundaries(recording: Recording) -> Vec<Boundary> {
    let trajectory = Arc::new(Trajectory::new(recording));
    let points = trajectory.resumable_points();
    points.iter().map(|point| Boundary::new(&trajectory, point.cut).unwrap()).collect()
}

/// What a strategy keeps of a history.
pub(crate) fn compact<M: Model + Clone>(strategy: &dyn Compaction, history: &History, model: &M, seed: u64) -> History {
    let ask = AskModel(model.clone());
    match pollster::block_on(strategy.compact(history, &mut CompactContext::new(&ask, seed))).unwrap() {
        Compacted::Unchanged => history.clone(),
        Compacted::Changed(kept) => kept,
    }
}

/// What an agent does from a history on, in a world restored to the boundary.
pub(crate) fn rollout(
    environment: &dyn Environment,
    boundary: &Boundary,
    history: &History,
    model: &dyn Model,
    horizon: usize,
    seed: u64,
) -> Rollout {
    let restored = pollster::block_on(environment.restore(boundary)).unwrap();
    let instructions = boundary.trajectory().recording().header.instructions.as_deref();
    let run = Run {
        history: history.clone(),
        instructions,
        model,
        toolbox: &restored.toolbox,
        budget: Budget::actions(horizon),
        seed,
        observer: None,
    };
    pollster::block_on(run.execute(&ToolLoop::default())).0
}

/// The names of the tools that a rollout called.
pub(crate) fn names(rollout: &Rollout) -> Vec<&str> {
    rollout.actions.iter().map(|action| action.name()).collect()
}

/// How many actions of a rollout were executed before, ahead of the boundary or earlier in the rollout.
pub(crate) fn refetches(boundary: &Boundary, rollout: &Rollout) -> usize {
    let mut seen: Vec<&Signature> = Vec::new();
    let again = rollout.actions.iter().filter(|action| {
        let is_again = boundary.has_executed(action.signature()) || seen.contains(&action.signature());
        seen.push(action.signature());
        is_again
    });
    again.count()
}

/// The mean of something over rollouts that differ in their seeds.
pub(crate) fn mean(seeds: std::ops::Range<u64>, count: impl Fn(u64) -> usize) -> f64 {
    let n = seeds.end - seeds.start;
    seeds.map(|seed| count(seed) as f64).sum::<f64>() / n as f64
}
