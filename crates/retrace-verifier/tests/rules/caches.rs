//! How much of what a provider reads it has read before.

use retrace_events::Spend;
use retrace_sim::CachingModel;
use retrace_strategies::ClearToolResults;
use retrace_verifier::TokioSleep;
use tokio::time::Instant;

use super::early::Forgetful;
use super::*;

/// Verifies four recordings of 50,000 tokens with three samples at a horizon of five; the share of the input tokens that came from
/// the provider's cache, and how long it took.
fn verified(warms_caches: bool, concurrency: usize) -> (f64, Duration) {
    let settings = Settings { samples: 3, horizon: 5, concurrency, warms_caches, ..settings() };
    // An answer takes two seconds, and two more where all of its prompt is new.
    let (fixed, per_token) = (Duration::from_secs(2), Duration::from_micros(40));
    let model = CachingModel::new(Forgetful, TokioSleep).latency(fixed, per_token);
    let recordings = ["a", "b", "c", "d"].map(|id| {
        let Recording { header, events } = recording(id, 4);
        let long = Event::request(id.repeat(200_000));
        Recording::new(header, [long].into_iter().chain(events.iter().map(|event| Event::clone(event))))
    });
    let verifier = Verifier::new(Arc::new(model), settings)
        .strategy("clear", Arc::new(ClearToolResults { keep_pairs: 1, ..ClearToolResults::default() }))
        .control(false)
        .group(Group::new(recordings, Arc::new(fresh_counters())));
    runtime().block_on(async {
        let start = Instant::now();
        let verification = verifier.run(&|_| {}).await.unwrap();
        let mut spend = Spend::default();
        for boundary in &verification.boundaries {
            let arms = [&boundary.pre, &boundary.strategies["clear"].post];
            assert_eq!(arms.map(Vec::len), [3, 3]);
            arms.into_iter().flatten().for_each(|rollout| spend.add(rollout.spend));
        }
        assert_eq!((verification.boundaries.len(), spend.n_model_calls), (4, 4 * 2 * 3 * 5));
        (spend.cache_read_tokens.unwrap() as f64 / spend.input_tokens as f64, start.elapsed())
    })
}

#[test]
fn an_arm_that_warms_the_cache_reads_most_from_it_and_takes_hardly_longer() {
    for concurrency in [2, 4, 8] {
        let (plain, plain_time) = verified(false, concurrency);
        let (warmed, time) = verified(true, concurrency);
        assert!(warmed >= 0.8, "{warmed}");
        // Of fifteen prompts of an arm one is new, instead of as many as are asked at once.
        assert!(warmed >= plain, "{warmed} and {plain}");
        assert!(concurrency < 8 || 1.0 - warmed < 0.6 * (1.0 - plain), "{warmed} and {plain}");
        assert!(time < plain_time.mul_f64(1.2), "{time:?} and {plain_time:?}");
    }
}
