//! What faults do to the numbers, where both arms fail alike.

use std::collections::BTreeMap;
use std::sync::Arc;

use retrace_events::cuts::Spacing;
use retrace_events::{Header, Recording};
use retrace_model::{Backoff, mix};
use retrace_score::{Report, Score};
use retrace_sim::{EnvironmentFault, FaultyEnvironment, FaultyModel, ModelFault, Rates, Shop, World, record};
use retrace_stats::nearest_double;
use retrace_strategies::TailWindow;
use retrace_testing::cases;
use retrace_verifier::{Group, Settings, Verifier};

use super::try_run;

/// Runs in shops of their own.
fn recordings(n: u64) -> Vec<(Shop, Recording)> {
    let agent = Shop::demo_agent();
    let one = |seed| {
        let shop = Shop::new(seed);
        let recorded = record(&shop, format!("shop-{seed}"), &agent, 26, mix(9, seed));
        let recording = pollster::block_on(recorded).unwrap();
        (shop, Recording { header: Header { id: format!("shop-{seed}"), ..recording.header }, ..recording })
    };
    (0..n).map(one).collect()
}

/// Which boundary: its recording, and the events before it.
type Place = (String, usize);

/// The wasted actions of POST minus those of PRE at each boundary that is scored, and the share of the rollouts that failed.
fn deltas(shops: &[(Shop, Recording)], rate: f64, seed: u64) -> (BTreeMap<Place, f64>, f64) {
    let faults: Vec<_> = ModelFault::ALL.into_iter().filter(|fault| !fault.is_answer()).collect();
    let model = FaultyModel::new(Shop::demo_agent(), Rates::evenly(&faults, rate), mix(seed, 1));
    // Not those of calls: the same call breaks in every rollout of a boundary, so those are left that made another one.
    let worlds = Rates::none().with(EnvironmentFault::NoStart, rate / 3.0);
    let settings = Settings {
        samples: 4,
        seed,
        spacing: Spacing::new(4, 3).unwrap(),
        concurrency: 8,
        backoff: Backoff { max_attempts: 3, ..Backoff::default() },
        ..Settings::default()
    };
    let verifier =
        Verifier::new(Arc::new(model), settings).strategy("tail", Arc::new(TailWindow::new(4))).control(false);
    let verifier = shops.iter().fold(verifier, |verifier, (shop, recording)| {
        let environment = FaultyEnvironment::new(shop.environment(), worlds.clone(), mix(seed, 2));
        verifier.group(Group::new([recording.clone()], Arc::new(environment)))
    });
    let report = Report::new(try_run(verifier).unwrap()).unwrap();
    let scored = report.boundaries.iter().filter_map(|boundary| {
        let Score::Scored(delta) = &boundary.strategies["tail"].scores.last()?.score else { return None };
        Some(((boundary.recording.clone(), boundary.cut), nearest_double(&delta.delta.wasted)))
    });
    let post = &report.strategies["tail"].post;
    let n_failed = report.pre.n_failed.last().unwrap() + post.n_failed.last().unwrap();
    (scored.collect(), n_failed as f64 / (report.pre.n_rollouts + post.n_rollouts) as f64)
}

/// A mean and its standard error.
fn mean(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, (variance / n).sqrt())
}

#[test]
fn what_breaks_in_both_arms_alike_leaves_the_deltas_where_they_are() {
    let shops = recordings(cases(8, 80).into());
    let (sound, none) = deltas(&shops, 0.0, 1);
    assert!(none == 0.0 && sound.len() >= 3 * shops.len());
    for (rate, seed) in [(0.1, 2), (0.3, 3)] {
        let (faulty, share) = deltas(&shops, rate, seed);
        // Each boundary against itself: what differs between boundaries is no part of the error.
        let differences: Vec<_> = faulty.iter().map(|(place, delta)| delta - sound[place]).collect();
        let ((bias, error), (effect, _)) = (mean(&differences), mean(&sound.values().copied().collect::<Vec<_>>()));
        assert!(
            share > rate / 3.0 && faulty.len() * 2 > sound.len(),
            "{rate}: {share} failed, {} scored",
            faulty.len()
        );
        assert!(bias.abs() < 3.0 * error && error < effect / 5.0, "{rate}: {bias} ± {error} of {effect}");
    }
}
