//! Environments.

use std::collections::HashSet;
use std::sync::Arc;

use futures_util::future::join;
use retrace_command::CommandEnvironment;
use retrace_env::{Environment, check_rebuilds};
use retrace_events::{Boundary, Event, Header, Outcome, Recording, ToolCall, ToolResult, Trajectory};
use serde_json::json;

use crate::{block_on, program};

fn boundary() -> Boundary {
    let round = |id: &str, name: &str, arguments: &str, outcome, text: &str| {
        let call = ToolCall::new(id, name, arguments);
        let result = ToolResult::text_result(&call, outcome, text);
        [Event::calls([call]), Event::results([result])]
    };
    let events = [Event::request("go")]
        .into_iter()
        .chain(round("c1", "add", "{\"amount\": 2}", Outcome::Ok, "2"))
        .chain(round("c1", "add", "two", Outcome::Error, "no amount"))
        .chain(round("c1", "buy", "{}", Outcome::NotFound, "no such tool"))
        .chain(round("c1", "add", "{\"amount\": 3}", Outcome::Ok, "5"));
    let trajectory = Arc::new(Trajectory::new(Recording::new(Header::new("shop-1"), events)));
    Boundary::new(&trajectory, 9).unwrap()
}

#[test]
fn each_world_is_rebuilt_by_the_recorded_calls_and_has_a_state_of_its_own() {
    block_on(async {
        let boundary = boundary();
        for (serves, n_processes) in [("one", 3), ("many", 1)] {
            let environment = CommandEnvironment::start(&program("shop", json!({"serves": serves}))).await.unwrap();
            let mut pids = HashSet::new();
            let restored = [
                environment.restore(&boundary).await.unwrap(),
                environment.restore(&boundary).await.unwrap(),
                environment.restore(&boundary).await.unwrap(),
            ];
            for restored in &restored {
                assert_eq!((restored.replay.n_calls, restored.replay.n_same_text), (4, 3), "{:?}", restored.replay);
                let output = restored.toolbox.call("add", "{\"amount\": 1}").await.unwrap();
                assert_eq!((output.outcome, output.text()), (Outcome::Ok, "6".to_owned()));
                let output = restored.toolbox.call("add", "{}").await.unwrap();
                assert_eq!((output.outcome, output.error.as_deref()), (Outcome::Error, Some("Refused")));
                pids.insert(restored.toolbox.call("pid", "{}").await.unwrap().text());
            }
            assert_eq!(pids.len(), n_processes, "{serves}");
            assert!(check_rebuilds(&environment, &boundary).await.unwrap().is_none());
        }
    });
}

#[test]
fn calls_side_by_side_get_their_own_results() {
    block_on(async {
        let environment = CommandEnvironment::start(&program("pairs", json!({}))).await.unwrap();
        let toolbox = environment.open().await.unwrap();
        assert!(toolbox.is_independent());
        for _ in 0..3 {
            let (a, b) = join(toolbox.call("echo", "a"), toolbox.call("echo", "b")).await;
            assert_eq!((a.unwrap().text(), b.unwrap().text()), ("a".to_owned(), "b".to_owned()));
        }
    });
}

#[test]
fn worlds_one_by_one_are_refused() {
    block_on(async {
        let error = CommandEnvironment::start(&program("shop", json!({"serves": "one_by_one"}))).await.err().unwrap();
        assert!(error.to_string().contains("`one_by_one`"), "{error}");
    });
}
