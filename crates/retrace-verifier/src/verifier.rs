//! The main job.

use std::mem;
use std::sync::Arc;

use indexmap::IndexMap;
use retrace_agent::{Agent, ToolLoop};
use retrace_model::Model;
use retrace_score::{UnusableRecording, Verification};
use retrace_strategies::{Identity, Strategy};
use tracing::{Instrument, info_span};

use crate::books::Books;
use crate::cell::Setup;
use crate::error::{CONTROL, VerifyError};
use crate::patience::Patience;
use crate::plan::Plan;
use crate::progress::Progress;
use crate::run_folder::{RunFolder, keep_end, keep_plan, open};
use crate::schedule::{Outcome, Task};
use crate::settings::{Group, Settings};
use crate::stop::{Stop, StopSignal};
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
    signal: StopSignal,
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
            signal: StopSignal::default(),
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

    /// Puts something around each model, outside its time limit, its pace and its repetitions, such as a
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

    /// Stops when this signal is given.
    #[must_use]
    pub fn stopped_by(mut self, signal: &StopSignal) -> Self {
        self.signal = signal.clone();
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
        let Ran { setup, plan, control, outcome } = self.go(None, progress).await?;
        let Plan { mut recordings, unusable, n_left_out, .. } = plan;
        for (recording, difference) in outcome.shared_worlds {
            recordings[recording].worlds_differ = Some(difference);
        }
        Ok(Verification {
            horizon: setup.settings.horizon,
            samples: setup.settings.samples as usize,
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
            n_not_reached: outcome.not_reached.len(),
            unfinished: outcome.unfinished,
            boundaries: outcome.boundaries,
        })
    }

    /// Runs it, or goes on with it, in a folder: every finished rollout and compaction is on the disk before its result is
    /// used, and what is there already does not run again. What came out is [read](retrace_journal::Run::read) from the
    /// folder. Says why it stopped before its end, if it did.
    ///
    /// # Errors
    /// When it cannot run as told, or the folder holds another run, or one that another program is at work on.
    pub async fn run_in(
        self,
        folder: &RunFolder,
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<Option<Stop>, VerifyError> {
        Ok(self.go(Some(folder), progress).await?.outcome.stopped)
    }

    async fn go(self, folder: Option<&RunFolder>, progress: &(dyn Fn(Progress) + Sync)) -> Result<Ran, VerifyError> {
        let (strategies, control) = named(self.strategies, self.control)?;
        let settings = self.settings;
        settings.check()?;
        for (strategy, asks) in &strategies {
            let unknown = |name: &&str| *name != self.model.name() && !self.other_models.contains_key(*name);
            if let Some(name) = asks.models().into_iter().find(unknown) {
                return Err(VerifyError::UnknownModel { strategy: strategy.clone(), model: name.to_owned() });
            }
        }
        if settings.spend_limit.dollars.is_some() {
            let asked = strategies
                .values()
                .flat_map(|strategy| strategy.models())
                .filter_map(|name| self.other_models.get(name));
            let unpriced = std::iter::once(&self.model).chain(asked).find(|model| model.prices().is_none());
            if let Some(model) = unpriced {
                return Err(VerifyError::PriceUnknown { model: model.name().to_owned() });
            }
        }
        if self.groups.iter().any(|group| group.cuts.as_ref().is_some_and(Vec::is_empty)) {
            return Err(VerifyError::NoCuts);
        }
        let (patience, around_models) = (Patience::new(&settings), self.around_models);
        let patient = |model| around_models(Arc::new(patience.around(model)));
        let mut plan = Plan::new(self.groups, &settings)?;
        plan.unusable.splice(0..0, self.unusable);
        let setup = Arc::new(Setup {
            agent: self.agent,
            model: patient(self.model),
            other_models: self.other_models.into_iter().map(|(name, model)| (name, patient(model))).collect(),
            strategies,
            settings,
        });
        let books = match folder {
            None => Books::none(),
            Some(folder) => open(folder, &mut plan, &setup, control.as_deref(), progress)?,
        };
        let settings = &setup.settings;
        let is_shard = folder.is_some_and(|folder| folder.shard.is_some());
        tokio::select! {
            () = replays::check(&mut plan, settings, &books, progress) => {}
            () = self.signal.given() => return Err(VerifyError::Stopped),
        }
        if let (0, Some(reason), false) =
            (plan.n_usable(), plan.sites.iter().find_map(|site| site.unusable.clone()), is_shard)
        {
            return Err(VerifyError::NothingReplays { n_boundaries: plan.sites.len(), reason });
        }
        let refused = refusals::check(&mut plan, &setup.model, settings, &books).await;
        let n_boundaries = plan.n_usable();
        // A share of the boundaries may have nothing to run; that is for the whole to say.
        if let (0, Some((n_boundaries, reason)), false) = (n_boundaries, refused, is_shard) {
            return Err(VerifyError::AllRefused { n_boundaries, reason });
        }
        keep_plan(&books, &plan).await?;
        let (n_compactions, samples) = (n_boundaries * setup.strategies.len(), settings.samples as usize);
        progress(Progress::Planned {
            n_boundaries,
            n_compactions,
            n_rollouts: (n_compactions + n_boundaries) * samples,
        });
        let books = Arc::new(books);
        let task = Task {
            setup: Arc::clone(&setup),
            sites: mem::take(&mut plan.sites).into(),
            control: control.as_deref(),
            books: Arc::clone(&books),
            signal: &self.signal,
            progress,
        };
        let outcome = schedule::run(task).instrument(info_span!("verify")).await;
        keep_end(&books, &outcome).await;
        Ok(Ran { setup, plan, control, outcome })
    }
}

/// A verification that ran.
struct Ran {
    setup: Arc<Setup>,
    plan: Plan,
    control: Option<String>,
    outcome: Outcome,
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
