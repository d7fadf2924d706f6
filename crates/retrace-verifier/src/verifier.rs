//! The main job.

use std::sync::Arc;

use indexmap::IndexMap;
use retrace_agent::{Agent, ToolLoop};
use retrace_model::{Model, Retry};
use retrace_score::{UnusableRecording, Verification};
use retrace_strategies::{Identity, Strategy};
use tracing::{Instrument, info_span};

use crate::cell::Setup;
use crate::error::{CONTROL, VerifyError};
use crate::limits::{Timed, TokioSleep};
use crate::plan::Plan;
use crate::progress::Progress;
use crate::settings::{Group, Settings};
use crate::{refusals, replays, schedule};

/// Puts something around a model.
type AroundModel = dyn Fn(Arc<dyn Model>) -> Arc<dyn Model> + Send + Sync;

/// A verification, ready to run.
#[derive(Clone)]
pub struct Verifier {
    settings: Settings,
    agent: Arc<dyn Agent>,
    model: Arc<dyn Model>,
    other_models: IndexMap<String, Arc<dyn Model>>,
    around_models: Arc<AroundModel>,
    strategies: Vec<(String, Arc<dyn Strategy>)>,
    control: bool,
    groups: Vec<Group>,
    unusable: Vec<UnusableRecording>,
}

impl Verifier {
    /// A verification with the tool loop as its agent, the control, and nothing yet to verify.
    pub fn new(model: Arc<dyn Model>, settings: Settings) -> Self {
        Self {
            settings,
            agent: Arc::new(ToolLoop::default()),
            model,
            other_models: IndexMap::new(),
            around_models: Arc::new(|model| model),
            strategies: Vec::new(),
            control: true,
            groups: Vec::new(),
            unusable: Vec::new(),
        }
    }

    /// Resumes this agent.
    #[must_use]
    pub fn agent(mut self, agent: Arc<dyn Agent>) -> Self {
        self.agent = agent;
        self
    }

    /// Adds a strategy under a name of the user's.
    #[must_use]
    pub fn strategy(mut self, name: impl Into<String>, strategy: Arc<dyn Strategy>) -> Self {
        self.strategies.push((name.into(), strategy));
        self
    }

    /// Adds a model that strategies may ask for by name.
    #[must_use]
    pub fn model(mut self, name: impl Into<String>, model: Arc<dyn Model>) -> Self {
        self.other_models.insert(name.into(), model);
        self
    }

    /// Puts something around each model, outside its time limit and its repetitions, such as a
    /// [`CassetteRecorder`](retrace_model::CassetteRecorder).
    #[must_use]
    pub fn around_models(mut self, around: impl Fn(Arc<dyn Model>) -> Arc<dyn Model> + Send + Sync + 'static) -> Self {
        self.around_models = Arc::new(around);
        self
    }

    /// Whether an identity is added where no strategy is one; without it the noise is unknown.
    #[must_use]
    pub fn control(mut self, control: bool) -> Self {
        self.control = control;
        self
    }

    /// Adds recordings and their environment.
    #[must_use]
    pub fn group(mut self, group: Group) -> Self {
        self.groups.push(group);
        self
    }

    /// Notes a recording that could not even be read, for the report.
    #[must_use]
    pub fn unusable(mut self, name: impl Into<String>, reason: impl Into<String>) -> Self {
        self.unusable.push(UnusableRecording { name: name.into(), reason: reason.into() });
        self
    }

    /// Runs it, telling what happens while it does. It runs on the tokio runtime that polls it, which needs its clock.
    ///
    /// A recording without a boundary is reported and costs nothing; where there is no boundary at all, no model is
    /// asked.
    ///
    /// # Errors
    /// When it cannot run as told. Whatever breaks while it runs is an outcome.
    pub async fn run(self, progress: &(dyn Fn(Progress) + Sync)) -> Result<Verification, VerifyError> {
        let Self { settings, agent, model, other_models, around_models, strategies, control, groups, mut unusable } =
            self;
        let (strategies, control) = named(strategies, control)?;
        settings.check()?;
        for (strategy, asks) in &strategies {
            let unknown = |name: &&str| *name != model.name() && !other_models.contains_key(*name);
            if let Some(name) = asks.models().into_iter().find(unknown) {
                return Err(VerifyError::UnknownModel { strategy: strategy.clone(), model: name.to_owned() });
            }
        }
        if groups.iter().any(|group| group.cuts.as_ref().is_some_and(Vec::is_empty)) {
            return Err(VerifyError::NoCuts);
        }
        let mut plan = Plan::new(groups, &settings)?;
        replays::check(&mut plan, &settings, progress).await;
        if let (0, Some(reason)) = (plan.n_usable(), plan.sites.iter().find_map(|site| site.unusable.clone())) {
            return Err(VerifyError::NothingReplays { n_boundaries: plan.sites.len(), reason });
        }
        let (limit, backoff) = (settings.limits.model, settings.backoff);
        // A time limit on each attempt, and another attempt after an error that is transient.
        let patient = |model| around_models(Arc::new(Retry::new(Timed::new(model, limit), TokioSleep, backoff)));
        let model = patient(model);
        let refused = refusals::check(&mut plan, &model, &settings).await;
        let n_boundaries = plan.n_usable();
        if let (0, Some((n_boundaries, reason))) = (n_boundaries, refused) {
            return Err(VerifyError::AllRefused { n_boundaries, reason });
        }
        let Plan { sites, mut recordings, unusable: twins, n_left_out } = plan;
        unusable.extend(twins);
        let (n_compactions, samples) = (n_boundaries * strategies.len(), settings.samples as usize);
        progress(Progress::Planned {
            n_boundaries,
            n_compactions,
            n_rollouts: (n_compactions + n_boundaries) * samples,
        });
        let setup = Arc::new(Setup {
            agent,
            model,
            other_models: other_models.into_iter().map(|(name, model)| (name, patient(model))).collect(),
            strategies,
            settings,
        });
        let outcome =
            schedule::run(&setup, &sites.into(), control.as_deref(), progress).instrument(info_span!("verify")).await;
        for (recording, difference) in outcome.shared_worlds {
            recordings[recording].worlds_differ = Some(difference);
        }
        Ok(Verification {
            horizon: setup.settings.horizon,
            samples,
            seed: setup.settings.seed,
            token_counter: setup.settings.counter.name().to_owned(),
            model: Some(setup.model.name().to_owned()),
            prices: setup.model.prices(),
            strategies: setup.strategies.keys().cloned().collect(),
            control,
            recordings,
            unusable,
            n_left_out,
            chain: setup.settings.chain,
            judging: setup.settings.judging,
            n_not_reached: outcome.n_not_reached,
            boundaries: outcome.boundaries,
        })
    }
}

type Named = (IndexMap<String, Arc<dyn Strategy>>, Option<String>);

/// The strategies by name, the control first among them if one is added, and which of them is the control.
fn named(strategies: Vec<(String, Arc<dyn Strategy>)>, add_control: bool) -> Result<Named, VerifyError> {
    if strategies.is_empty() {
        return Err(VerifyError::NoStrategies);
    }
    let is_identity = |strategy: &Arc<dyn Strategy>| strategy.kind() == Identity {}.kind();
    let identities = || strategies.iter().filter(|(_, strategy)| is_identity(strategy)).map(|(name, _)| name);
    let mut control = identities().find(|name| *name == CONTROL).or_else(|| identities().next()).cloned();
    let mut by_name: IndexMap<String, Arc<dyn Strategy>> = IndexMap::new();
    if control.is_none() && add_control {
        if strategies.iter().any(|(name, _)| name == CONTROL) {
            return Err(VerifyError::ControlNameTaken);
        }
        control = Some(CONTROL.to_owned());
        by_name.insert(CONTROL.to_owned(), Arc::new(Identity {}));
    }
    for (name, strategy) in strategies {
        if name.is_empty() || name.trim() != name {
            return Err(VerifyError::BadName { name });
        }
        if by_name.insert(name.clone(), strategy).is_some() {
            return Err(VerifyError::DuplicateStrategy { name });
        }
    }
    Ok((by_name, control))
}
