//! The two things that run: a compaction, and a rollout.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use indexmap::IndexMap;
use retrace_agent::{Agent, Budget, Run};
use retrace_env::Environment;
use retrace_events::{EndReason, Failure, History, Rollout, RolloutKey, Spend, Stage, panic_text, with_causes};
use retrace_model::{Model, Prices, Prompt};
use retrace_score::{Compaction, Size};
use retrace_strategies::{Ask, BoxFuture, CacheKept, CompactContext, CompactError, Compacted, Strategy};
use tracing::{Instrument, info_span};

use crate::limits::{Bounded, Timed};
use crate::plan::Site;
use crate::settings::Settings;
use crate::warm::{Warm, WarmingModel, WarmingTools};
use crate::{post, refusals, seeds};

/// All that rollouts and compactions share.
pub(crate) struct Setup {
    pub(crate) settings: Settings,
    pub(crate) agent: Arc<dyn Agent>,
    pub(crate) model: Arc<dyn Model>,
    pub(crate) other_models: IndexMap<String, Arc<dyn Model>>,
    pub(crate) strategies: IndexMap<String, Arc<dyn Strategy>>,
}

/// What came of applying a strategy at a boundary.
pub(crate) struct CompactionOutcome {
    pub(crate) compaction: Compaction,
    pub(crate) lost_task: bool,
    pub(crate) spend: Spend,
    /// The history to resume from; none where the compaction failed or is flawed.
    pub(crate) history: Option<History>,
    /// What a chain goes on from: what the strategy left, or where it left nothing, what it was given. None where nobody
    /// asks any more.
    pub(crate) left: Option<History>,
}

/// Questions of strategies go to the model they name, or to the run's own.
impl Ask for Setup {
    fn ask<'a>(
        &'a self,
        prompt: &'a Prompt<'a>,
        model: Option<&'a str>,
    ) -> BoxFuture<'a, Result<retrace_events::Response, CompactError>> {
        Box::pin(async move {
            let unknown = || CompactError::UnknownModel { name: model.unwrap_or_default().to_owned() };
            Ok(self.model_asked(model).ok_or_else(unknown)?.respond(prompt).await?.response)
        })
    }

    fn prices(&self, model: Option<&str>) -> Option<Prices> {
        self.model_asked(model)?.prices()
    }
}

impl Setup {
    fn model_asked(&self, name: Option<&str>) -> Option<&Arc<dyn Model>> {
        match name.filter(|name| *name != self.model.name()) {
            None => Some(&self.model),
            Some(name) => self.other_models.get(name),
        }
    }

    /// Applies a strategy at a boundary, to the raw history or to what a chain has come to. A panic is a failure like any
    /// other.
    pub(crate) async fn compact(&self, site: &Site, name: &str, given: History) -> CompactionOutcome {
        let boundary = &site.boundary;
        let (raw, recording) = (boundary.history(), boundary.trajectory().id());
        let seed = seeds::of_compaction(self.settings.seed, recording, boundary.cut(), name);
        let mut cx = CompactContext::new(self, seed);
        cx.counter = &*self.settings.counter;
        cx.window = self.model.rules().window;
        cx.model = Some(self.model.name());
        cx.run = site.run_so_far;
        let strategy = &self.strategies[name];
        // A strategy may panic before it returns a future, and before it is asked for one.
        let compacted = async {
            let fresh = strategy.fresh();
            let strategy = Timed::new(&**fresh.as_ref().unwrap_or(strategy), self.settings.limits.strategy);
            strategy.compact(&given, &mut cx).await
        };
        let span = info_span!("compact", recording, cut = boundary.cut() as i64, strategy = name);
        let compacted = AssertUnwindSafe(compacted).catch_unwind().instrument(span).await;
        let compacted = compacted.unwrap_or_else(|panic| {
            Err(CompactError::Other { message: format!("the strategy panicked: {}", panic_text(&*panic)) })
        });
        let spend = cx.spend();
        let (compaction, history) = match compacted {
            Err(error) => (Compaction::Failed { error: with_causes(&error) }, None),
            Ok(compacted) => {
                let after = match compacted {
                    Compacted::Unchanged => given.clone(),
                    Compacted::Changed(after) => post::shared(after),
                };
                self.judge(site, &raw, &given, after)
            }
        };
        let lost_task = match (&compaction, &history) {
            (Compaction::Compacted { .. }, Some(after)) => post::loses_task(&raw, after),
            _ => false,
        };
        let left = Some(history.clone().unwrap_or(given));
        CompactionOutcome { compaction, lost_task, spend, history, left }
    }

    /// What a strategy made of the history it was given, and whether an agent can be resumed from it.
    fn judge(&self, site: &Site, raw: &History, given: &History, after: History) -> (Compaction, Option<History>) {
        if after == *raw {
            return (Compaction::Unchanged, Some(after));
        }
        if let Some(flaw) = self.flaw(site, raw, &after) {
            return (Compaction::Flawed { flaw }, None);
        }
        let cache = CacheKept::of(&*self.settings.counter, given, &after);
        let size = Size { events: after.n_counting(), tokens: cache.whole };
        (Compaction::Compacted { size: Some(size), cached: Some(cache.start) }, Some(after))
    }

    /// Resumes the agent from a history in an environment restored to the boundary, and tells when it has its first answer.
    pub(crate) async fn roll_out(
        &self,
        site: &Site,
        key: &RolloutKey,
        history: History,
        warm: Option<Warm>,
    ) -> Rollout {
        let span = info_span!("rollout", boundary = key.cut as i64, arm = %key.arm, sample = i64::from(key.sample));
        self.resume(site, key, history, warm).instrument(span).await
    }

    async fn resume(&self, site: &Site, key: &RolloutKey, history: History, warm: Option<Warm>) -> Rollout {
        let limits = self.settings.limits;
        let environment = Bounded { environment: &*site.environment, limits };
        let mut toolbox = match environment.restore(&site.boundary).await {
            Ok(restored) => restored.toolbox,
            Err(error) => return Rollout::failed(Stage::Restore, with_causes(&error)),
        };
        let warming = warm.map(|warm| WarmingModel { model: &self.model, warm });
        if let Some(WarmingModel { warm, .. }) = &warming {
            toolbox = toolbox.wrapped(|toolbox| WarmingTools { toolbox, warm: warm.clone() });
        }
        let resumed_from = history.sent_hash();
        let run = Run {
            history,
            instructions: site.boundary.trajectory().recording().header.instructions.as_deref(),
            model: warming.as_ref().map_or(&self.model as &dyn Model, |warming| warming),
            toolbox: &toolbox,
            budget: Budget::actions(self.settings.horizon),
            seed: seeds::of_rollout(self.settings.seed, key),
            observer: None,
        };
        let deadline = async {
            tokio::time::sleep(limits.rollout).await;
            format!("no end within {:?}", limits.rollout)
        };
        let (mut rollout, _) = run.execute_until(&*self.agent, deadline).await;
        if rollout.sent.is_some_and(|sent| sent != resumed_from) {
            // Whatever it did, it did not do it knowing what the arm knows.
            let message = "the model was not sent the history that the agent was to resume from";
            rollout = Rollout { actions: Vec::new(), ..rollout };
            rollout.end = EndReason::Failed(Failure { stage: Stage::Agent, message: message.to_owned() });
        }
        rollout
    }

    /// Why no agent can be resumed from what a strategy kept, if none can.
    fn flaw(&self, site: &Site, before: &History, after: &History) -> Option<String> {
        let refused = || refusals::first_flaw(&self.model, site, after, before).map(|flaw| flaw.to_string());
        post::flaw(before, after).map(str::to_owned).or_else(refused)
    }
}
