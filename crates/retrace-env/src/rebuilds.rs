//! Whether an environment really rebuilds a world, or hands the same one out again.

use std::fmt;

use retrace_events::Boundary;

use crate::environment::{Environment, RestoreError, Restored};
use crate::replay::{call_text, is_same_answer};
use crate::text::where_they_part;

/// How many of the calls after the boundary are tried.
const N_PROBES: usize = 10;

/// What shows that two restores of a boundary do not give the same world.
#[derive(Debug)]
#[non_exhaustive]
pub enum RebuildDifference {
    /// A recorded call before the boundary answered something else when it was executed for the second restore.
    Replay {
        /// The call, cut short.
        call: String,
        /// Which action of the recording it is, from 1.
        position: usize,
    },
    /// A recorded call after the boundary answered something else in the second world than in the first.
    Probe {
        /// The call, cut short.
        call: String,
        /// Which action of the recording it is, from 1.
        position: usize,
        /// What the first world answered, where the two part, cut short.
        first: String,
        /// What the second world answered, where the two part, cut short.
        second: String,
    },
    /// The second restore failed where the first had worked.
    Restore(RestoreError),
}

impl fmt::Display for RebuildDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Replay { call, position } => {
                write!(f, "action {position}, `{call}`, was answered differently when it was replayed a second time")
            }
            Self::Probe { call, position, first, second } => write!(
                f,
                "action {position}, `{call}`, was answered with `{first}` in one restored world and with `{second}` in the next"
            ),
            Self::Restore(error) => write!(f, "the second restore failed: {error}"),
        }
    }
}

/// Restores a boundary twice and compares the two worlds.
///
/// Worlds that share state are the fault to be found: then what one rollout does changes what the next one meets, and
/// no delta means anything. So the first world is acted on, with up to ten of the calls that the recording made after the
/// boundary, before the second one is restored and acted on in the same way.
///
/// It sees shared state that changes the answer of one of the calls it makes. It does not see state that none of them
/// reads, nor worlds that disturb each other only while they run at once. It cannot tell shared state from a clock or
/// from random ids in the answers; either way two rollouts do not start from the same world.
///
/// # Errors
/// When the first restore fails.
pub async fn check_rebuilds(
    environment: &dyn Environment,
    boundary: &Boundary,
) -> Result<Option<RebuildDifference>, RestoreError> {
    let Restored { toolbox, replay } = environment.restore(boundary).await?;
    let probes = boundary.trajectory().actions()[boundary.executed()..].iter().take(N_PROBES).map(|next| &next.action);
    let mut answers = Vec::new();
    for action in probes {
        match toolbox.call(action.name(), action.arguments()).await {
            Ok(answer) => answers.push((action, answer)),
            // A call without a result says nothing about the world.
            Err(_) => break,
        }
    }
    // An environment that has only one world at a time gives no second one while the first is held.
    drop(toolbox);
    let second = match environment.restore(boundary).await {
        Ok(second) => second,
        Err(error) => return Ok(Some(RebuildDifference::Restore(error))),
    };
    if let Some(index) = replay.digests.first_difference(&second.replay.digests) {
        let call = call_text(&boundary.actions()[index].action);
        return Ok(Some(RebuildDifference::Replay { call, position: index + 1 }));
    }
    for (index, (action, before)) in answers.iter().enumerate() {
        let (before_text, now_text) = match second.toolbox.call(action.name(), action.arguments()).await {
            Ok(now) if is_same_answer(before, &now) => continue,
            Ok(now) => (before.text(), now.text()),
            Err(error) => (before.text(), error.to_string()),
        };
        let (first, second) = where_they_part(&before_text, &now_text);
        let position = boundary.executed() + index + 1;
        return Ok(Some(RebuildDifference::Probe { call: call_text(action), position, first, second }));
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, Mutex};

    use retrace_events::Outcome;

    use super::*;
    use crate::recorded_environment::RecordedEnvironment;
    use crate::replay_environment::ReplayEnvironment;
    use crate::testing::{Stock, after, calls, stock_tools};
    use crate::{FnTool, NoArguments, Toolbox};

    fn boundary() -> Boundary {
        let ok = Outcome::Ok;
        let trajectory = calls(&[
            ("add", r#"{"n":5}"#, ok, "5 left"),
            ("take", r#"{"n":2}"#, ok, "3 left"),
            ("take", r#"{"n":2}"#, ok, "1 left"),
        ]);
        after(&trajectory, 2)
    }

    fn check(environment: &dyn Environment) -> Option<RebuildDifference> {
        pollster::block_on(check_rebuilds(environment, &boundary())).unwrap()
    }

    #[test]
    fn worlds_of_their_own_show_no_difference() {
        assert!(check(&ReplayEnvironment::new(|| stock_tools(&Arc::default(), &Arc::default()))).is_none());
        let cloned = ReplayEnvironment::cloned(Stock::default(), |stock| stock_tools(stock, &Arc::default()));
        assert!(check(&cloned).is_none());
        assert!(check(&RecordedEnvironment::new()).is_none());
    }

    #[test]
    fn a_factory_of_one_world_is_found_out_by_its_replay() {
        let stock = Arc::new(Mutex::new(Stock::default()));
        let difference = check(&ReplayEnvironment::new(move || stock_tools(&stock, &Arc::default())));
        assert!(matches!(difference, Some(RebuildDifference::Replay { position: 1, .. })), "{difference:?}");
    }

    #[test]
    fn a_clone_of_shared_state_is_found_out_by_what_comes_after() {
        let stock = Arc::new(Mutex::new(Stock::default()));
        let difference =
            check(&ReplayEnvironment::cloned(stock, |shared| stock_tools(&shared.lock().unwrap(), &Arc::default())));
        let Some(RebuildDifference::Probe { call, position, first, second }) = &difference else {
            panic!("{difference:?}")
        };
        assert_eq!((&**call, *position), (r#"take({"n":2})"#, 3));
        assert_eq!((&**first, &**second), ("1 left", "not enough"));
        assert_eq!(
            difference.unwrap().to_string(),
            "action 3, `take({\"n\":2})`, was answered with `1 left` in one restored world and with `not enough` in the next"
        );
    }

    #[test]
    fn a_world_that_can_be_built_only_once_is_found_out() {
        let built = AtomicUsize::new(0);
        let difference = check(&ReplayEnvironment::new(move || match built.fetch_add(1, Ordering::Relaxed) {
            0 => Ok(stock_tools(&Arc::default(), &Arc::default())),
            _ => Err("the port is taken"),
        }));
        assert!(matches!(difference, Some(RebuildDifference::Restore(RestoreError::Environment { .. }))));
    }

    #[test]
    fn a_world_that_cannot_be_restored_at_all_is_an_error() {
        let environment = ReplayEnvironment::new(|| {
            Toolbox::builder().tool(FnTool::new("add", "", |_: NoArguments| Err::<&str, _>("closed")))
        });
        let error = pollster::block_on(check_rebuilds(&environment, &boundary())).unwrap_err();
        assert!(matches!(error, RestoreError::ReplayMismatch { position: 1, .. }));
    }

    #[test]
    fn a_world_is_let_go_before_the_next_is_restored() {
        struct OneAtATime {
            held: Arc<()>,
            n_calls: Arc<Mutex<usize>>,
        }
        impl Environment for OneAtATime {
            fn open(&self) -> futures_core::future::BoxFuture<'_, Result<Toolbox, RestoreError>> {
                assert_eq!(Arc::strong_count(&self.held), 1, "the last world is still held");
                let held = Arc::clone(&self.held);
                let tools =
                    stock_tools(&Arc::default(), &self.n_calls)
                        .tool(FnTool::new("hold", "", move |_: NoArguments| format!("{held:?}")));
                Box::pin(std::future::ready(tools.build().map_err(Into::into)))
            }
        }
        assert!(check(&OneAtATime { held: Arc::default(), n_calls: Arc::default() }).is_none());
    }
}
