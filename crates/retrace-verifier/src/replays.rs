//! Whether recordings replay in their environments, seen before anything is spent.

use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream;
use retrace_env::{Environment, Replay, RestoreError};
use retrace_events::with_causes;
use retrace_score::{EnvironmentKind, ReplayDifference, ReplayFidelity};

use crate::books::Books;
use crate::limits::Bounded;
use crate::plan::{Plan, Site};
use crate::progress::Progress;
use crate::settings::Settings;

/// Replays each recording up to its last boundary, and notes how faithful that was. A boundary before which a call
/// worked when it was recorded and now fails, or the reverse, or has no result, is unusable.
///
/// An environment that cannot be built is not the recording's fault, and is left to the rollouts.
pub(crate) async fn check(plan: &mut Plan, settings: &Settings, books: &Books, progress: &(dyn Fn(Progress) + Sync)) {
    let recordings = &mut plan.recordings;
    let sites = plan.sites.chunk_by_mut(|one, next| one.recording == next.recording);
    // Where nothing is left to run, nothing is replayed either.
    let rebuilt = sites.filter(|sites| {
        let facts = &recordings[sites[0].recording];
        facts.environment == EnvironmentKind::Rebuilt && books.lack(sites)
    });
    let checks: Vec<_> = rebuilt.map(|sites| check_recording(sites, settings)).collect();
    let mut checks = stream::iter(checks).buffered(settings.concurrency);
    while let Some((sites, replay)) = checks.next().await {
        let facts = &mut recordings[sites[0].recording];
        if books.run().is_none_or(|run| run.recording(&facts.id).is_none()) {
            facts.replay = replay.map(|replay| fidelity(&replay));
        }
        progress(Progress::Replayed {
            recording: facts.id.clone(),
            replay: facts.replay.clone(),
            n_boundaries: sites.len(),
            n_unusable: sites.iter().filter(|site| site.unusable.is_some()).count(),
            reason: sites.iter().find_map(|site| site.unusable.clone()),
        });
    }
}

/// Replays up to the last boundary that can be reached, and says why the others cannot.
async fn check_recording<'a>(sites: &'a mut [Site], settings: &Settings) -> (&'a [Site], Option<Replay>) {
    let mut n_left = sites.len();
    let mut replay = None;
    while let Some(site) = n_left.checked_sub(1).map(|last| &sites[last]) {
        let environment = Bounded { environment: &*site.environment, limits: settings.limits };
        let error = match environment.restore(&site.boundary).await {
            Ok(restored) => {
                let tools = restored.toolbox.specs();
                sites.iter_mut().for_each(|site| site.tools = Some(Arc::clone(tools)));
                replay = Some(restored.replay);
                break;
            }
            Err(error) => error,
        };
        let (RestoreError::ReplayMismatch { position, .. } | RestoreError::Call { position, .. }) = error else {
            break;
        };
        let reason = with_causes(&error);
        // At least the one that was tried, whatever position an environment names.
        n_left = sites.partition_point(|site| site.boundary.executed() < position).min(n_left - 1);
        sites[n_left..]
            .iter_mut()
            .filter(|site| site.unusable.is_none())
            .for_each(|site| site.unusable = Some(reason.clone()));
    }
    (sites, replay)
}

fn fidelity(replay: &Replay) -> ReplayFidelity {
    ReplayFidelity {
        n_replayed: replay.n_calls as u64,
        n_different: (replay.n_calls - replay.n_same_text) as u64,
        first_difference: replay.first_difference.as_ref().map(|difference| ReplayDifference {
            action: difference.position,
            call: difference.call.clone(),
            recorded: difference.recorded.clone(),
            replayed: difference.replayed.clone(),
        }),
    }
}
