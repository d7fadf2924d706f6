//! `retrace record`: the agent at its tasks, uncompacted, each run a recording.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, anyhow};
use futures_util::StreamExt;
use futures_util::stream;
use retrace_agent::{Budget, Run};
use retrace_events::codec::RecordingWriter;
use retrace_events::{Event, Header, History, Rollout};
use retrace_model::{Model, mix};
use retrace_report::counted;
use retrace_strategies::CompactContext;
use retrace_verifier::{Patience, Settings, Timed};
use tokio::time::{sleep, timeout};

use crate::args::RecordArgs;
use crate::config::{Config, TaskConfig};
use crate::exit::Exit;
use crate::failure::hinted;
use crate::setup::{Actor, Base, Environments, Models, OwnCompaction, World};
use crate::{files, output, runtime};

/// A run that is to be recorded.
struct Job {
    id: String,
    task: String,
    file: PathBuf,
    request: String,
    instructions: Option<String>,
    world: World,
    seed: u64,
}

pub(crate) fn run(args: &RecordArgs) -> Result<Exit> {
    let mut config = Config::read(&args.run.config)?;
    config.record.runs = args.runs.unwrap_or(config.record.runs);
    config.concurrency = args.run.concurrency.or(config.concurrency);
    config.seed = args.run.seed.or(config.seed);
    // A run of a task is one sample.
    let settings = Settings { samples: 1, ..config.settings()? };
    settings.check()?;
    let base = Base::new(&config, &args.run.config);
    let output = args.output.clone().unwrap_or_else(|| base.folder().join(&config.record.output));
    let planned = plan(&config, &output, settings.seed)?;
    let models = Models::new(std::mem::take(&mut config.models), &args.run.model)?;
    runtime::run(record(config, settings, planned, models, base, &output))
}

/// A run before anything is started.
struct Planned {
    task: TaskConfig,
    id: String,
    file: PathBuf,
    seed: u64,
}

/// The runs whose recordings are not there yet.
fn plan(config: &Config, output: &Path, seed: u64) -> Result<Vec<Planned>> {
    if config.tasks.is_empty() {
        return Err(hinted(
            "the configuration has no tasks",
            "add a table `[[tasks]]` with an `id`, a `request` and an `environment`",
        ));
    }
    if config.record.runs == 0 || config.record.max_actions == 0 {
        return Err(hinted("`record.runs` or `record.max_actions` is 0", "give both a number above 0"));
    }
    let (mut planned, mut taken, mut n_there) = (Vec::new(), HashSet::new(), 0);
    for (task, number) in config.tasks.iter().zip(0..) {
        for run in 1..=config.record.runs {
            let id = format!("{}-{run}", task.id);
            let file = output.join(format!("{}.jsonl", files::name_for(&id)));
            if !taken.insert(file.clone()) {
                let message = format!("two runs would be written to `{}`", file.display());
                return Err(hinted(message, "give each task an `id` of its own"));
            }
            if file.exists() {
                n_there += 1;
                continue;
            }
            planned.push(Planned { task: task.clone(), id, file, seed: mix(mix(seed, number), run.into()) });
        }
    }
    if planned.is_empty() {
        return Err(hinted(
            format!("all {} are there already, in `{}`", counted(n_there, "recording", "recordings"), output.display()),
            "recordings are never overwritten: move them away, or name another folder with `--output`",
        ));
    }
    if n_there > 0 {
        output::note(&format!(
            "{} there already, left as they are",
            counted(n_there, "recording is", "recordings are")
        ));
    }
    Ok(planned)
}

/// Records all runs.
async fn record(
    config: Config,
    mut settings: Settings,
    planned: Vec<Planned>,
    mut models: Models,
    base: Base,
    output: &Path,
) -> Result<Exit> {
    let mut actor = Actor::new(&config.agent, &mut models, &base).await?;
    let compaction = match config.agent.compaction {
        None => None,
        Some(_) if config.agent.program.is_some() => {
            return Err(hinted(
                "`[agent.compaction]` has no effect on an agent that is a program",
                "leave it out: a program compacts its history itself",
            ));
        }
        Some(compaction) => {
            let (own, limit) = (actor.model.name(), settings.limits.strategy);
            Some(OwnCompaction::start(compaction, &config.strategies, &mut models, &base, own, limit).await?)
        }
    };
    let mut environments = Environments::new(config.environments, base, config.outcome, settings.limits.restore);
    let mut jobs = Vec::new();
    for Planned { task, id, file, seed } in planned {
        let world = environments.get(&task.environment, task.world_seed).await?;
        actor.check_tools(&world)?;
        settings.concurrency = world.max_rollouts.unwrap_or(settings.concurrency).min(settings.concurrency);
        let instructions = task.instructions.or(config.agent.instructions.clone());
        if let Some(compaction) = &compaction {
            compaction.check_tools(&world)?;
            let mut cx = CompactContext::without_model();
            (cx.counter, cx.window) = (&*settings.counter, actor.model.rules().window);
            compaction.check_trigger(&id, instructions.as_deref(), &task.request, &world, &cx);
        }
        jobs.push(Job { id, task: task.id, file, request: task.request, instructions, world, seed });
    }
    let cassettes = models.check(&settings).await?;
    fs::create_dir_all(output).with_context(|| format!("failed to create `{}`", output.display()))?;
    let patience = Patience::new(&settings);
    let patient = |model| cassettes.around(Arc::new(patience.around(model)));
    let model = patient(Arc::clone(&actor.model));
    if let Some(compaction) = compaction {
        actor.agent = compaction.into_agent(Arc::clone(&settings.counter), patient);
    }
    let max_actions = config.record.max_actions;
    let runs = jobs.iter().map(|job| job.record(&actor, &*model, max_actions, &settings)).collect::<Vec<_>>();
    let mut runs = stream::iter(runs).buffer_unordered(settings.concurrency);
    let (mut n_failed, mut n_told) = (0, 0);
    while let Some((job, recorded)) = runs.next().await {
        n_told += 1;
        let place = format!("{n_told} of {}, {}", jobs.len(), files::shown(&job.file));
        match recorded {
            Ok(rollout) => {
                let n_blocked = rollout.actions.iter().filter(|action| action.is_blocked()).count();
                let actions = counted(rollout.actions.len(), "action", "actions");
                output::note(&format!("{place}: {actions}, {n_blocked} blocked, {}", rollout.end));
                // What it had is there, and can be used.
                n_failed += usize::from(rollout.end.is_failure());
            }
            Err(error) => {
                n_failed += 1;
                crate::failure::warn(&error.context(place));
            }
        }
    }
    if n_failed > 0 {
        output::warn(&format!("{n_failed} of {} failed", counted(jobs.len(), "run", "runs")));
    }
    let played = cassettes.finish();
    Ok(if n_failed == 0 { played } else { Exit::CouldNotRun })
}

impl Job {
    async fn record(
        &self,
        actor: &Actor,
        model: &dyn Model,
        max_actions: usize,
        settings: &Settings,
    ) -> (&Self, Result<Rollout>) {
        (self, self.try_record(actor, model, max_actions, settings).await)
    }

    /// Runs the agent from the task alone, and writes down what happens as it happens.
    async fn try_record(
        &self,
        actor: &Actor,
        model: &dyn Model,
        max_actions: usize,
        settings: &Settings,
    ) -> Result<Rollout> {
        let limits = settings.limits;
        let toolbox = timeout(limits.restore, self.world.environment.open()).await;
        let toolbox = toolbox.map_err(|_| anyhow!("the environment did not open within {:?}", limits.restore))??;
        let toolbox = toolbox.wrapped(|toolbox| Timed::new(toolbox, limits.tool));
        let request = Event::request(&*self.request);
        let file = OpenOptions::new().write(true).create_new(true).open(&self.file);
        let header = Header {
            task: Some(self.task.clone()),
            instructions: self.instructions.clone(),
            model: Some(model.name().to_owned()),
            tools: toolbox.specs().to_vec(),
            ..Header::new(&*self.id)
        };
        let written = Written::start(file.context("failed to create the recording")?, &header)?;
        written.write(&request);
        let observer = |event: &Event| written.write(event);
        let run = Run {
            history: History::from(vec![request]),
            instructions: self.instructions.as_deref(),
            model,
            toolbox: &toolbox,
            budget: Budget { max_actions: Some(max_actions), ..Budget::default() },
            seed: self.seed,
            observer: Some(&observer),
        };
        let deadline = async {
            sleep(limits.rollout).await;
            format!("no end within {:?}", limits.rollout)
        };
        let (rollout, _) = run.execute_until(&*actor.agent, deadline).await;
        written.finish().context("failed to write the recording")?;
        if rollout.end.is_failure() && rollout.n_answers == 0 {
            // Nothing came of it, and the next attempt is to have its name.
            fs::remove_file(&self.file).context("failed to remove a recording of nothing")?;
        }
        Ok(rollout)
    }
}

/// A recording that is being written, and what went wrong with it.
struct Written(Mutex<(RecordingWriter<File>, std::io::Result<()>)>);

impl Written {
    fn start(file: File, header: &Header) -> Result<Self> {
        Ok(Self(Mutex::new((RecordingWriter::new(file, header)?, Ok(())))))
    }

    fn write(&self, event: &Event) {
        let (writer, outcome) = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if outcome.is_ok() {
            *outcome = writer.write(event);
        }
    }

    fn finish(self) -> std::io::Result<()> {
        let (writer, outcome) = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        outcome?;
        writer.finish()?.sync_all()
    }
}
