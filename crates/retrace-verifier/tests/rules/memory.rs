//! A strategy that remembers does not make a result depend on what ran first.

use std::fmt::Write as _;
use std::sync::Arc;

use retrace_events::{Part, Response};
use retrace_model::{Answer, Model, ModelError, Prompt};
use retrace_strategies::{BoxFuture, RelevanceCompaction};
use retrace_verifier::{Group, Settings, Verifier};

use super::{fresh_counters, recording, run, settings};

/// Rates every step alike, later or sooner as its seed says, and makes no call.
struct Judge;

impl Model for Judge {
    fn name(&self) -> &str {
        "judge"
    }

    fn respond<'a>(&'a self, prompt: &'a Prompt<'a>) -> BoxFuture<'a, Result<Answer, ModelError>> {
        Box::pin(async move {
            for _ in 0..prompt.seed % 7 {
                tokio::task::yield_now().await;
            }
            let mut ratings = String::from("{");
            for step in 1..40 {
                let _ = write!(ratings, "\"{step}\": [{}, 50], ", step * 2);
            }
            let text = ratings + "\"40\": [80, 50]}";
            Ok(Response { content: [Part::text(text)].into(), ..Response::default() }.into())
        })
    }
}

#[test]
fn what_a_judge_said_elsewhere_is_asked_anew_at_each_boundary() {
    let spends = |concurrency| {
        let strategy = RelevanceCompaction {
            max_tokens: Some(30),
            target_tokens: Some(8),
            keep_tokens: 2,
            judge_input_tokens: 20,
            ..RelevanceCompaction::default()
        };
        let settings = Settings { concurrency, samples: 1, ..settings() };
        let verification = run(Verifier::new(Arc::new(Judge), settings)
            .group(Group::new([recording("a", 12), recording("b", 12)], Arc::new(fresh_counters())))
            .strategy("relevance", Arc::new(strategy)));
        let spend = |boundary: &retrace_score::BoundaryOutcome| boundary.strategies["relevance"].spend.n_model_calls;
        verification.boundaries.iter().map(spend).collect::<Vec<_>>()
    };
    let one = spends(1);
    let (a, b) = one.split_at(one.len() / 2);
    assert!(a == b && a.iter().sum::<u64>() > 4, "recordings that are alike cost as much: {one:?}");
    assert_eq!(one, spends(4));
}
