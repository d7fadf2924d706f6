//! The replay environment: executes the recorded calls again.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_core::future::BoxFuture;
use futures_util::FutureExt;
use retrace_events::Boundary;

use crate::environment::{Environment, RestoreError, Restored};
use crate::menu::MenuCache;
use crate::per_recording::PerRecording;
use crate::replay::Replay;
use crate::text::panic_text;
use crate::toolbox::{IntoToolbox, Toolbox};

/// At most so many snapshots of a recording are kept beside those of the boundaries that were asked for.
const MAX_WAYPOINTS: usize = 64;

/// Restores a boundary by executing the recorded calls again, in order and through the same checks as live ones.
///
/// What it restores is as good as its worlds: they must start in the state that the recording started from, and answer
/// the same calls alike. [`Replay`] says how far they did, and a call that worked and now fails, or the reverse, is
/// [`RestoreError::ReplayMismatch`].
pub struct ReplayEnvironment(Box<dyn Environment>);

impl ReplayEnvironment {
    /// Over a factory of toolboxes, each with a fresh world: every restore executes every call before the boundary.
    ///
    /// ```
    /// use retrace_env::{FnTool, NoArguments, ReplayEnvironment, Toolbox};
    /// use std::sync::{Arc, Mutex};
    ///
    /// let environment = ReplayEnvironment::new(|| {
    ///     let counter = Arc::new(Mutex::new(0));
    ///     Toolbox::builder().tool(FnTool::on(&counter, "count", "Counts.", |counter: &mut u32, _: NoArguments| {
    ///         *counter += 1;
    ///         counter.to_string()
    ///     }))
    /// });
    /// ```
    pub fn new<T: IntoToolbox>(factory: impl Fn() -> T + Send + Sync + 'static) -> Self {
        Self(Box::new(FreshWorlds { factory, menus: MenuCache::default() }))
    }

    /// Over a world that can be cloned, and the tools that act on it: the calls of a recording are executed once.
    ///
    /// It keeps a snapshot of the world at every boundary that was asked for, and up to 64 on the way, as long as the
    /// recording is alive. A restore clones the snapshot of its boundary; where there is none yet, it starts from the
    /// nearest earlier one. A clone must share no state with its original.
    pub fn cloned<W, T>(world: W, tools: impl Fn(&Arc<Mutex<W>>) -> T + Send + Sync + 'static) -> Self
    where
        W: Clone + Send + 'static,
        T: IntoToolbox,
    {
        let tracks = PerRecording::default();
        Self(Box::new(ClonedWorlds { world: Mutex::new(world), tools, menus: MenuCache::default(), tracks }))
    }
}

impl Environment for ReplayEnvironment {
    fn open(&self) -> BoxFuture<'_, Result<Toolbox, RestoreError>> {
        Box::pin(or_panic(self.0.open()))
    }

    fn restore<'a>(&'a self, boundary: &'a Boundary) -> BoxFuture<'a, Result<Restored, RestoreError>> {
        Box::pin(or_panic(self.0.restore(boundary)))
    }
}

/// A world that panics while it is built or cloned costs its recording, not the run.
async fn or_panic<T>(world: BoxFuture<'_, Result<T, RestoreError>>) -> Result<T, RestoreError> {
    AssertUnwindSafe(world).catch_unwind().await.unwrap_or_else(|panic| {
        let source = format!("it panicked: {}", panic_text(&*panic)).into();
        Err(RestoreError::Environment { source })
    })
}

struct FreshWorlds<F> {
    factory: F,
    menus: MenuCache,
}

impl<F: Fn() -> T + Send + Sync, T: IntoToolbox> Environment for FreshWorlds<F> {
    fn open(&self) -> BoxFuture<'_, Result<Toolbox, RestoreError>> {
        Box::pin(async move { (self.factory)().into_toolbox(&self.menus) })
    }
}

struct ClonedWorlds<W, F> {
    world: Mutex<W>,
    tools: F,
    menus: MenuCache,
    tracks: PerRecording<async_lock::Mutex<Track<W>>>,
}

/// What is kept of a recording. Its lock is held while calls are executed, so that restores that wait find the snapshots.
struct Track<W> {
    /// By how many actions were executed.
    snapshots: BTreeMap<usize, Snapshot<W>>,
    /// The replay of nothing: those that start from no snapshot start from it, so that all share one list of digests.
    start: Replay,
}

impl<W> Default for Track<W> {
    fn default() -> Self {
        Self { snapshots: BTreeMap::new(), start: Replay::default() }
    }
}

#[derive(Clone)]
struct Snapshot<W> {
    world: W,
    replay: Replay,
}

impl<W, F, T> Environment for ClonedWorlds<W, F>
where
    W: Clone + Send + 'static,
    F: Fn(&Arc<Mutex<W>>) -> T + Send + Sync,
    T: IntoToolbox,
{
    fn open(&self) -> BoxFuture<'_, Result<Toolbox, RestoreError>> {
        Box::pin(async move {
            let world = lock(&self.world).clone();
            Ok(self.toolbox(world)?.1)
        })
    }

    fn restore<'a>(&'a self, boundary: &'a Boundary) -> BoxFuture<'a, Result<Restored, RestoreError>> {
        Box::pin(async move {
            let Snapshot { world, replay } = self.snapshot(boundary).await?;
            let (_, toolbox) = self.toolbox(world)?;
            Ok(Restored { toolbox, replay })
        })
    }
}

impl<W, F, T> ClonedWorlds<W, F>
where
    W: Clone + Send + 'static,
    F: Fn(&Arc<Mutex<W>>) -> T + Send + Sync,
    T: IntoToolbox,
{
    async fn snapshot(&self, boundary: &Boundary) -> Result<Snapshot<W>, RestoreError> {
        let trajectory = boundary.trajectory();
        let track = self.tracks.of(trajectory, Default::default);
        let mut track = track.lock().await;
        let nearest = track.snapshots.range(..=boundary.executed()).next_back();
        let (start, Snapshot { world, mut replay }) = match nearest {
            Some((&executed, snapshot)) => (executed, snapshot.clone()),
            None => (0, Snapshot { world: lock(&self.world).clone(), replay: track.start.clone() }),
        };
        if start == boundary.executed() {
            return Ok(Snapshot { world, replay });
        }
        let spacing = trajectory.actions().len().div_ceil(MAX_WAYPOINTS);
        let (world, toolbox) = self.toolbox(world)?;
        for recorded in &boundary.actions()[start..] {
            replay.execute(trajectory.id(), recorded, &toolbox).await?;
            let executed = replay.n_calls;
            if executed == boundary.executed() || executed.is_multiple_of(spacing) {
                track.snapshots.insert(executed, Snapshot { world: lock(&world).clone(), replay: replay.clone() });
            }
        }
        let world = lock(&world).clone();
        Ok(Snapshot { world, replay })
    }

    fn toolbox(&self, world: W) -> Result<(Arc<Mutex<W>>, Toolbox), RestoreError> {
        let world = Arc::new(Mutex::new(world));
        let toolbox = (self.tools)(&world).into_toolbox(&self.menus)?;
        Ok((world, toolbox))
    }
}

/// A call that panicked has ended what it was part of, so the lock it poisoned protects nobody.
fn lock<W>(world: &Mutex<W>) -> MutexGuard<'_, W> {
    world.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use futures_util::future::join_all;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use retrace_events::{Event, Header, Outcome, OutcomeSource, Recording, ToolResult, Trajectory};

    use super::*;
    use crate::replay::{Difference, compare};
    use crate::testing::{Recorded, Stock, after, calls, rounds, stock_tools};
    use crate::toolbox::ToolboxError;

    const OK: Outcome = Outcome::Ok;
    const ERROR: Outcome = Outcome::Error;

    fn shop() -> Vec<Recorded<'static>> {
        vec![
            ("add", r#"{"n":5}"#, OK, "5 left"),
            ("take", r#"{"n":2}"#, OK, "3 left"),
            ("take", r#"{"n":9}"#, ERROR, "not enough"),
            ("take", r#"{"n":"1"}"#, OK, "2 left"),
            ("sell", "{}", Outcome::NotFound, "no such tool"),
            ("take", "{", ERROR, "bad JSON"),
            ("add", r#"{"n":1}"#, OK, "3 left"),
        ]
    }

    /// An environment and the count of the calls that reached its tools.
    fn cloned() -> (ReplayEnvironment, Arc<Mutex<usize>>) {
        let n_calls = Arc::new(Mutex::new(0));
        let counter = Arc::clone(&n_calls);
        (ReplayEnvironment::cloned(Stock::default(), move |stock| stock_tools(stock, &counter)), n_calls)
    }

    fn fresh() -> (ReplayEnvironment, Arc<Mutex<usize>>) {
        let n_calls = Arc::new(Mutex::new(0));
        let counter = Arc::clone(&n_calls);
        (ReplayEnvironment::new(move || stock_tools(&Arc::default(), &counter)), n_calls)
    }

    fn restore(environment: &ReplayEnvironment, boundary: &Boundary) -> Result<Restored, RestoreError> {
        pollster::block_on(environment.restore(boundary))
    }

    fn ask(toolbox: &Toolbox, name: &str, arguments: &str) -> String {
        pollster::block_on(toolbox.call(name, arguments)).unwrap().text()
    }

    #[track_caller]
    fn check_mismatch(recorded: &[Recorded<'_>], n_rounds: usize, text: &str) {
        let trajectory = calls(recorded);
        for environment in [fresh().0, cloned().0] {
            let error = restore(&environment, &after(&trajectory, n_rounds)).unwrap_err();
            assert!(matches!(error, RestoreError::ReplayMismatch { .. }));
            assert_eq!(error.to_string(), text);
        }
    }

    #[test]
    fn the_state_of_the_boundary_is_rebuilt() {
        let trajectory = calls(&shop());
        for environment in [fresh().0, cloned().0] {
            let restored = restore(&environment, &after(&trajectory, 6)).unwrap();
            assert_eq!(ask(&restored.toolbox, "add", r#"{"n":0}"#), "2 left");
            // The two failures that were recorded in other words are other texts, and no mismatch.
            assert_eq!((restored.replay.n_calls, restored.replay.n_same_text), (6, 4));
            let difference = restored.replay.first_difference.unwrap();
            assert_eq!((difference.position, &*difference.call), (5, "sell({})"));
        }
    }

    #[test]
    fn a_call_that_worked_and_now_fails_is_named() {
        let mut recorded = shop();
        recorded[2] = ("take", r#"{"n":9}"#, OK, "0 left");
        check_mismatch(
            &recorded,
            4,
            "replay of recording `shop-1` diverged at action 3: `take({\"n\":9})` was recorded as a success and \
             now fails with `not enough`",
        );
        recorded[1] = ("sell", "{}", OK, "sold");
        check_mismatch(
            &recorded,
            4,
            "replay of recording `shop-1` diverged at action 2: `sell({})` was recorded as a success and now \
             fails with `there is no tool `sell``",
        );
    }

    #[test]
    fn a_call_that_failed_and_now_works_is_named() {
        let mut recorded = shop();
        recorded[1] = ("take", r#"{"n":2}"#, ERROR, "closed");
        check_mismatch(
            &recorded,
            3,
            "replay of recording `shop-1` diverged at action 2: `take({\"n\":2})` was recorded as a failure and \
             now succeeds with `3 left`",
        );
    }

    #[test]
    fn a_comparison_goes_on_where_a_replay_stops() {
        let mut recorded = shop();
        recorded[1] = ("take", r#"{"n":2}"#, ERROR, "closed");
        recorded[3] = ("take", r#"{"n":"1"}"#, OK, "4 left");
        let toolbox = pollster::block_on(fresh().0.open()).unwrap();
        let comparison = pollster::block_on(compare(&calls(&recorded), &toolbox));
        assert_eq!((comparison.n_actions, comparison.n_calls, comparison.broke_off), (7, 7, None));
        assert_eq!((comparison.n_same_outcome, comparison.n_same_text), (6, 3));
        let (position, text) = comparison.first_other_outcome.unwrap();
        assert!(position == 2 && text.contains("now succeeds with `3 left`"), "{text}");
        assert_eq!(comparison.first_difference.unwrap().position, 4);

        let burns = Toolbox::builder()
            .tool(crate::FnTool::new("add", "Adds.", |_: serde_json::Map<String, serde_json::Value>| -> String {
                panic!("fire")
            }))
            .build()
            .unwrap();
        let comparison = pollster::block_on(compare(&calls(&shop()), &burns));
        assert_eq!((comparison.n_calls, comparison.n_same_outcome), (0, 0));
        assert!(comparison.broke_off.unwrap().contains("fire"));
    }

    #[test]
    fn a_mismatch_after_the_boundary_is_none() {
        let mut recorded = shop();
        recorded[2] = ("take", r#"{"n":9}"#, OK, "0 left");
        let trajectory = calls(&recorded);
        for environment in [fresh().0, cloned().0] {
            assert!(restore(&environment, &after(&trajectory, 2)).is_ok());
        }
    }

    #[test]
    fn another_text_is_counted_and_the_first_is_shown() {
        let mut recorded = shop();
        recorded[1] = ("take", r#"{"n":2}"#, OK, "4 left");
        let trajectory = calls(&recorded);
        for environment in [fresh().0, cloned().0] {
            let replay = restore(&environment, &after(&trajectory, 3)).unwrap().replay;
            assert_eq!((replay.n_calls, replay.n_same_text), (3, 2));
            let expected = Difference {
                call: r#"take({"n":2})"#.to_owned(),
                position: 2,
                recorded: "4 left".to_owned(),
                replayed: "3 left".to_owned(),
            };
            assert_eq!(replay.first_difference, Some(expected));
        }
    }

    #[test]
    fn the_same_text_is_the_same_outcome_where_the_recording_could_not_tell() {
        let trajectory = |text: &str| {
            let trajectory = calls(&[("take", r#"{"n":9}"#, OK, text), ("add", r#"{"n":9}"#, OK, "9 left")]);
            let events = trajectory.recording().events.iter().map(|event| match Event::clone(event) {
                Event::ToolResults(round) => Event::results(
                    round.results.into_iter().map(|r| ToolResult { outcome_from: Some(OutcomeSource::Unknown), ..r }),
                ),
                other => other,
            });
            Arc::new(Trajectory::new(Recording::new(Header::new("shop-1"), events)))
        };
        assert!(restore(&fresh().0, &after(&trajectory("not enough"), 1)).is_ok());
        assert!(restore(&fresh().0, &after(&trajectory("9 taken"), 1)).is_err());
    }

    #[test]
    fn calls_of_one_round_are_executed_in_the_order_issued() {
        let trajectory = rounds(&[
            &[
                ("add", r#"{"n":2}"#, OK, "2 left"),
                ("take", r#"{"n":2}"#, OK, "0 left"),
                ("take", r#"{"n":1}"#, ERROR, ""),
            ],
            &[("add", r#"{"n":2}"#, OK, "2 left")],
        ]);
        for environment in [fresh().0, cloned().0] {
            assert_eq!(restore(&environment, &after(&trajectory, 1)).unwrap().replay.n_calls, 3);
        }
    }

    #[test]
    fn rollouts_share_no_state() {
        let trajectory = calls(&shop());
        for environment in [fresh().0, cloned().0] {
            let boundary = after(&trajectory, 2);
            let first = restore(&environment, &boundary).unwrap().toolbox;
            assert_eq!(ask(&first, "add", r#"{"n":10}"#), "13 left");
            let second = restore(&environment, &boundary).unwrap().toolbox;
            assert_eq!(ask(&second, "add", r#"{"n":10}"#), "13 left");
            assert_eq!(ask(&first, "take", r#"{"n":3}"#), "10 left");
        }
    }

    #[test]
    fn a_cloned_world_replays_each_call_once_in_whatever_order_boundaries_come() {
        let trajectory = calls(&shop());
        let (environment, n_calls) = cloned();
        for n_rounds in [6, 2, 4, 6, 1, 5, 2, 3] {
            let replay = restore(&environment, &after(&trajectory, n_rounds)).unwrap().replay;
            assert_eq!(replay.n_calls, n_rounds);
        }
        // Of the six, `sell` is no tool and `{` is no JSON, so four reach a tool.
        assert_eq!(*n_calls.lock().unwrap(), 4);
        let (environment, n_calls) = fresh();
        for _ in 0..3 {
            restore(&environment, &after(&trajectory, 4)).unwrap();
        }
        assert_eq!(*n_calls.lock().unwrap(), 12);
    }

    #[test]
    fn restores_at_the_same_time_replay_once() {
        let trajectory = calls(&shop());
        let (environment, n_calls) = cloned();
        let boundary = after(&trajectory, 4);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| pollster::block_on(join_all((0..8).map(|_| environment.restore(&boundary)))));
            }
        });
        assert_eq!(*n_calls.lock().unwrap(), 4);
    }

    #[test]
    fn recordings_of_one_id_have_snapshots_of_their_own() {
        let (environment, _) = cloned();
        for n in [3, 4, 5] {
            let (arguments, text) = (format!(r#"{{"n":{n}}}"#), format!("{n} left"));
            let trajectory = calls(&[("add", &arguments, OK, &text), ("add", "{}", ERROR, "")]);
            let restored = restore(&environment, &after(&trajectory, 1)).unwrap();
            assert_eq!(restored.replay.n_same_text, 1);
            assert_eq!(ask(&restored.toolbox, "add", r#"{"n":0}"#), text);
        }
    }

    #[test]
    fn a_long_recording_keeps_few_snapshots_and_those_asked_for() {
        struct Counted(Arc<Mutex<usize>>);
        impl Clone for Counted {
            fn clone(&self) -> Self {
                *self.0.lock().unwrap() += 1;
                Self(Arc::clone(&self.0))
            }
        }
        let trajectory = calls(&vec![("add", r#"{"n":0}"#, OK, "0 left"); 1_000]);
        let (n_clones, n_calls) = (Arc::new(Mutex::new(0)), Arc::new(Mutex::new(0)));
        let counter = Arc::clone(&n_calls);
        let environment =
            ReplayEnvironment::cloned(Counted(Arc::clone(&n_clones)), move |_| stock_tools(&Arc::default(), &counter));
        restore(&environment, &after(&trajectory, 999)).unwrap();
        assert!(*n_clones.lock().unwrap() <= MAX_WAYPOINTS + 3);
        restore(&environment, &after(&trajectory, 999)).unwrap();
        assert_eq!(*n_calls.lock().unwrap(), 999);
        // An earlier boundary starts from a snapshot that was made on the way.
        restore(&environment, &after(&trajectory, 500)).unwrap();
        assert!(*n_calls.lock().unwrap() < 999 + 1_000 / MAX_WAYPOINTS + 1);
    }

    #[test]
    fn the_snapshots_of_a_recording_share_what_was_answered() {
        let trajectory = calls(&vec![("add", r#"{"n":1}"#, OK, "1 left"); 500]);
        let environment = cloned().0;
        let replay = |n_rounds| restore(&environment, &after(&trajectory, n_rounds)).unwrap().replay;
        let whole = replay(499);
        // Forwards and backwards, at waypoints and between them.
        for n_rounds in [1, 250, 7, 8, 498, 497, 499] {
            let part = replay(n_rounds);
            assert!(part.digests.shares_list_with(&whole.digests), "{n_rounds}");
            assert_eq!(part == whole, n_rounds == 499);
        }
    }

    #[test]
    fn a_factory_that_fails_is_told_with_its_reason() {
        let trajectory = calls(&shop());
        let boundary = after(&trajectory, 1);
        let environment = ReplayEnvironment::new(|| Err::<Toolbox, _>("no database"));
        let error = restore(&environment, &boundary).unwrap_err();
        assert!(matches!(&error, RestoreError::Environment { source } if source.to_string() == "no database"));
        let environment = ReplayEnvironment::new(|| {
            let twice = || crate::testing::EchoTool::new("a", serde_json::json!({}));
            Toolbox::builder().tool(twice()).tool(twice())
        });
        let error = restore(&environment, &boundary).unwrap_err();
        assert!(matches!(error, RestoreError::Toolbox(ToolboxError::DuplicateTool { .. })));
    }

    #[test]
    fn a_factory_that_panics_breaks_the_restore_only() {
        let environment = ReplayEnvironment::new(|| -> Toolbox { panic!("no database") });
        let error = restore(&environment, &after(&calls(&shop()), 1)).unwrap_err();
        assert!(
            matches!(&error, RestoreError::Environment { source } if source.to_string() == "it panicked: no database")
        );
    }

    #[test]
    fn a_restore_that_was_dropped_halfway_leaves_what_it_had_done() {
        let n_calls = Arc::new(Mutex::new(0));
        let counter = Arc::clone(&n_calls);
        let environment = ReplayEnvironment::cloned((), move |_| {
            let counter = Arc::clone(&counter);
            Toolbox::builder().tool(crate::FnTool::new_async("wait", "", move |_: crate::NoArguments| {
                *counter.lock().unwrap() += 1;
                let hangs = *counter.lock().unwrap() == 3;
                async move {
                    if hangs {
                        std::future::pending::<()>().await;
                    }
                    ""
                }
            }))
        });
        let trajectory = calls(&[("wait", "{}", OK, ""); 5]);
        let boundary = after(&trajectory, 4);
        assert!(environment.restore(&boundary).now_or_never().is_none());
        assert!(environment.restore(&boundary).now_or_never().unwrap().is_ok());
        // Three calls, the last of which hung, then the third again and the fourth.
        assert_eq!(*n_calls.lock().unwrap(), 5);
    }

    #[test]
    fn a_tool_that_panics_in_replay_breaks_the_restore_only() {
        let trajectory = calls(&[("burn", "{}", OK, ""), ("burn", "{}", OK, "")]);
        let environment = ReplayEnvironment::cloned(0, |world: &Arc<Mutex<i32>>| {
            Toolbox::builder().tool(crate::FnTool::on(
                world,
                "burn",
                "",
                |_: &mut i32, _: crate::NoArguments| -> &str { panic!("fire") },
            ))
        });
        for _ in 0..2 {
            let error = restore(&environment, &after(&trajectory, 1)).unwrap_err();
            assert!(matches!(error, RestoreError::Call { position: 1, .. }), "{error}");
        }
    }

    /// Calls of the stock's tools, some of which fail.
    fn operations() -> impl Strategy<Value = Vec<(String, String)>> {
        let name = prop::sample::select(vec!["add", "take", "sell"]).prop_map(str::to_owned);
        let arguments = prop_oneof![
            (0..6_u32).prop_map(|n| format!(r#"{{"n":{n}}}"#)),
            (0..6_u32).prop_map(|n| format!(r#"{{"n":"{n}"}}"#)),
            Just(String::new()),
            Just("[".to_owned()),
        ];
        vec((name, arguments), 2..40)
    }

    /// The recording of a run of these calls.
    fn record(operations: &[(String, String)]) -> Arc<Trajectory> {
        let toolbox = stock_tools(&Arc::default(), &Arc::default()).build().unwrap();
        let outputs: Vec<_> = operations
            .iter()
            .map(|(name, arguments)| pollster::block_on(toolbox.call(name, arguments)).unwrap())
            .collect();
        let texts: Vec<_> = outputs.iter().map(|output| (output.outcome, output.text())).collect();
        let recorded = operations
            .iter()
            .zip(&texts)
            .map(|((name, arguments), (outcome, text))| (name.as_str(), arguments.as_str(), *outcome, text.as_str()));
        calls(&recorded.collect::<Vec<_>>())
    }

    proptest! {
        #[test]
        fn a_recording_made_in_the_same_world_always_restores_alike(
            operations in operations(),
            asked in vec(any::<prop::sample::Index>(), 1..6),
        ) {
            let trajectory = record(&operations);
            let ((cloned, n_calls), (fresh, _)) = (cloned(), fresh());
            for n_rounds in asked.into_iter().map(|index| index.index(operations.len() - 1) + 1) {
                let boundary = after(&trajectory, n_rounds);
                let (a, b) = (restore(&cloned, &boundary).unwrap(), restore(&fresh, &boundary).unwrap());
                prop_assert_eq!(a.replay.n_same_text, n_rounds);
                prop_assert_eq!(a.replay.n_calls, n_rounds);
                prop_assert_eq!(&a.replay, &b.replay);
                let before = *n_calls.lock().unwrap();
                restore(&cloned, &boundary).unwrap();
                prop_assert_eq!(*n_calls.lock().unwrap(), before);
                let (a, b) = (ask(&a.toolbox, "add", r#"{"n":1}"#), ask(&b.toolbox, "add", r#"{"n":1}"#));
                prop_assert_eq!(a, b);
            }
        }
    }
}
