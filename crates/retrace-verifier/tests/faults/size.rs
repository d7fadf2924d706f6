//! Whatever is far too much costs a bounded amount.

use std::fs;
use std::sync::Arc;

use retrace_env::{CallError, Dispatch, Environment, RestoreError, Toolbox};
use retrace_events::EndReason;
use retrace_model::BoxFuture;
use retrace_sim::{EnvironmentFault, FaultyEnvironment, ModelFault, Rates, Shop, World};
use retrace_strategies::TailWindow;
use retrace_verifier::{Group, Settings, Verifier};

use super::{Ran, ends, recordings, run, settings, try_run, verifier};

#[test]
fn of_ten_thousand_calls_in_one_answer_none_is_made() {
    let report = run(verifier(Rates::none().with(ModelFault::ManyCalls, 1.0), Rates::none(), settings()));
    let rollouts = report.boundaries.iter().flat_map(|boundary| &boundary.pre);
    for rollout in rollouts {
        assert!(rollout.rollout.actions.is_empty() && rollout.rollout.spend.output_tokens > 1000);
    }
}

/// The most memory that this process has had, in bytes, where the system says so.
fn peak() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

#[test]
fn megabytes_of_output_are_gone_with_their_rollout_and_in_no_report() {
    const MEGABYTE: usize = 1 << 20;
    const MOST: usize = 60;
    let faults = Rates::none().with(EnvironmentFault::Megabytes, 1.0);
    let environment = FaultyEnvironment::new(Shop::new(1).environment(), faults, 0).n_bytes(MEGABYTE);
    let settings = Settings { samples: 4, horizon: 3, concurrency: 2, ..settings() };
    let before = peak();
    let verification = try_run(
        Verifier::new(Arc::new(Shop::demo_agent()), settings)
            .strategy("tail", Arc::new(TailWindow::new(4)))
            .group(Group::new(recordings(), Arc::new(environment))),
    );
    let report = Ran::of(verification.unwrap());
    let n_calls: usize = report.boundaries.iter().flat_map(|it| &it.pre).map(|pre| pre.rollout.actions.len()).sum();
    assert!(n_calls * 3 > 2 * MOST, "three arms with {n_calls} megabytes each are more than what is allowed");
    assert!(report.json().len() < MEGABYTE);
    if let (Some(before), Some(after)) = (before, peak()) {
        let grown = (after - before) as usize / MEGABYTE;
        assert!(grown < MOST, "{grown} MB");
    }
}

/// An environment whose errors are megabytes long.
struct Talkative;

impl Environment for Talkative {
    fn open(&self) -> BoxFuture<'_, Result<Toolbox, RestoreError>> {
        struct Fails;

        impl Dispatch for Fails {
            fn dispatch<'a>(
                &'a self,
                _: &'a str,
                _: &'a str,
            ) -> BoxFuture<'a, Result<retrace_env::ToolOutput, CallError>> {
                let message = "é".repeat(3 << 20);
                Box::pin(std::future::ready(Err(CallError::Environment { message })))
            }
        }

        Box::pin(async { Ok(Shop::new(1).environment().open().await?.wrapped(|_| Fails)) })
    }

    fn restore<'a>(
        &'a self,
        boundary: &'a retrace_events::Boundary,
    ) -> BoxFuture<'a, Result<retrace_env::Restored, RestoreError>> {
        Box::pin(async {
            let restored = Shop::new(1).environment().restore(boundary).await?;
            Ok(retrace_env::Restored { toolbox: self.open().await?, ..restored })
        })
    }
}

#[test]
fn an_error_of_megabytes_is_cut_short() {
    let report = run(Verifier::new(Arc::new(Shop::demo_agent()), settings())
        .strategy("tail", Arc::new(TailWindow::new(4)))
        .group(Group::new(recordings(), Arc::new(Talkative))));
    for end in ends(&report) {
        let EndReason::Failed(failure) = end else { continue };
        assert!(failure.message.starts_with("éé") && failure.message.len() < 4100);
    }
    assert!(report.pre.errors[0].count > 0);
}

/// An environment that panics where it should return a future.
struct NoFuture;

impl Environment for NoFuture {
    fn open(&self) -> BoxFuture<'_, Result<Toolbox, RestoreError>> {
        panic!("no future")
    }

    fn restore<'a>(
        &'a self,
        _: &'a retrace_events::Boundary,
    ) -> BoxFuture<'a, Result<retrace_env::Restored, RestoreError>> {
        panic!("no future")
    }
}

#[test]
fn an_environment_that_panics_before_it_returns_a_future_costs_its_rollouts() {
    let report = run(Verifier::new(Arc::new(Shop::demo_agent()), settings())
        .strategy("tail", Arc::new(TailWindow::new(4)))
        .group(Group::new(recordings(), Arc::new(NoFuture))));
    assert_eq!(report.pre.errors[0].text, "the environment could not be built: it panicked: no future");
}
