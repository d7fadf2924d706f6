//! Strategies.

use std::collections::HashSet;

use futures_util::future::join_all;
use retrace_command::CommandStrategy;
use retrace_events::History;
use retrace_model::{ModelError, ScriptedModel, Step};
use retrace_strategies::{AskModel, Business, CompactContext, CompactError, Compacted, Strategy};
use serde_json::json;

use crate::program::text_of;
use crate::{block_on, history, is_same, program};

async fn compact(strategy: &CommandStrategy, history: &History) -> Compacted {
    let model = AskModel(ScriptedModel::new([" so far"]));
    strategy.compact(history, &mut CompactContext::new(&model, 0)).await.unwrap()
}

#[test]
fn what_is_kept_is_the_same_whatever_one_process_serves() {
    block_on(async {
        for (serves, asks, n_processes) in [("one", false, 6), ("one_by_one", true, 1), ("many", true, 1)] {
            let config = program("window", json!({"keep": 2, "serves": serves, "asks": asks}));
            let strategy = CommandStrategy::start(&config).await.unwrap();
            assert_eq!(strategy.business(), if asks { Business::Summarizes } else { Business::Drops });
            let histories: Vec<_> = (1..=6).map(history).collect();
            let compacted = join_all(histories.iter().map(|history| compact(&strategy, history))).await;
            let mut said = HashSet::new();
            for (history, compacted) in histories.iter().zip(compacted) {
                let Compacted::Changed(kept) = compacted else { panic!("{serves}: {compacted:?}") };
                assert_eq!(kept.len(), 3);
                assert!(kept.iter().skip(1).zip(history.iter().skip(history.len() - 2)).all(|(a, b)| is_same(a, b)));
                said.insert(text_of(kept.get(0).unwrap()));
            }
            assert_eq!(said.len(), n_processes, "{serves}: {said:?}");
            assert!(said.iter().all(|said| said.ends_with(" so far") == asks));
            assert_eq!(compact(&strategy, &history(0)).await, Compacted::Unchanged);
        }
    });
}

#[test]
fn a_question_costs_and_fails_as_those_of_other_strategies() {
    block_on(async {
        let config = program("window", json!({"keep": 2, "asks": true}));
        let strategy = CommandStrategy::start(&config).await.unwrap();
        let mut dry = CompactContext::without_model();
        let error = strategy.compact(&history(3), &mut dry).await.unwrap_err();
        assert!(matches!(error, CompactError::NotAsked { .. }), "{error}");
        assert_eq!(dry.spend().n_model_calls, 1);

        // The program is told, and this one fails then.
        let refused = ModelError::Refused { message: "no such model".to_owned() };
        let model = AskModel(ScriptedModel::new([Step::from(refused)]));
        let error = strategy.compact(&history(3), &mut CompactContext::new(&model, 0)).await.unwrap_err();
        assert!(error.to_string().contains("no such model"), "{error}");
        assert!(
            matches!(compact(&strategy, &history(3)).await, Compacted::Changed(_)),
            "the next use has a new process"
        );
    });
}
