//! `retrace verify`: the main job.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use anyhow::Result;
use retrace_events::{Event, OutcomeRule, Recording};
use retrace_report::counted;
use retrace_score::{ReplayFidelity, Verification};
use retrace_verifier::{Group, Progress, RunFolder, Settings, SpendLimit, Stop, StopSignal, Verifier};
use serde_json::json;

use crate::args::{DollarsArg, JudgingArgs, ModelArgs, ShardArg, VerifyArgs};
use crate::config::{Config, Description, RecordingsConfig};
use crate::exit::Exit;
use crate::failure::hinted;
use crate::progress::Bar;
use crate::setup::{Actor, Base, Cassettes, Compacting, Environments, Models};
use crate::{failure, files, output, runtime};

pub(crate) fn run(args: &VerifyArgs) -> Result<Exit> {
    let mut config = Config::read(&args.run.config)?;
    config.horizon = args.horizon.or(config.horizon);
    config.samples = args.samples.or(config.samples);
    config.concurrency = args.run.concurrency.or(config.concurrency);
    config.seed = args.run.seed.or(config.seed);
    config.outcome = args.outcome.failed_if.clone().or(config.outcome);
    config.margin = config.margin.or_given(&args.output.margin);
    let mut settings = config.settings()?;
    settings.spend_limit =
        SpendLimit { tokens: args.budget_tokens, dollars: args.budget.map(|DollarsArg(dollars)| dollars) };
    args.output.check(settings.horizon)?;
    let base = Base::new(&config, &args.run.config);
    let groups = recordings(&config, base.folder())?;
    let folder = run_folder(args, &config, base.folder())?;
    let models = Models::new(std::mem::take(&mut config.models), &args.run.model)?;
    let signal = StopSignal::default();
    let (outcome, played) = runtime::run_until_asked(&signal, async {
        let (verifier, cassettes) = verifier(config, settings, groups, models, base).await?;
        let verifier = verifier.stopped_by(&signal);
        let outcome = match &folder {
            Some(folder) => verify_in(verifier, folder).await.map(Outcome::Kept),
            None => verify(verifier).await.map(|verification| Outcome::InMemory(Box::new(verification))),
        };
        Ok((outcome?, cassettes.finish()))
    })?;
    // A verification that is to be repeated exactly, and was not, must not pass for one that was.
    Ok(outcome.report(args, folder.as_ref(), signal.is_given())?.max(played))
}

/// What came of a verification.
enum Outcome {
    InMemory(Box<Verification>),
    /// It is in its folder, and may have stopped before its end.
    Kept(Option<Stop>),
}

impl Outcome {
    fn report(self, args: &VerifyArgs, folder: Option<&RunFolder>, was_asked: bool) -> Result<Exit> {
        let (stop, RunFolder { path, .. }) = match (self, folder) {
            (Self::InMemory(verification), _) => return report_in_memory(*verification, args, was_asked),
            (Self::Kept(stop), Some(folder)) => (stop, folder),
            (Self::Kept(_), None) => return Ok(Exit::CouldNotRun),
        };
        let again = "the same command goes on where it was";
        match &stop {
            Some(Stop::Asked) => {
                output::note(&format!("stopped; {again}, and `retrace report {}` shows what there is", path.display()));
                return Ok(Exit::Interrupted);
            }
            Some(Stop::NotKept { reason }) => {
                let message = format!("the run stopped, since nothing more could be kept: {reason}");
                return Err(hinted(
                    message,
                    format!("what was finished before is there: once that is mended, {again}"),
                ));
            }
            _ => {}
        }
        let run = output::read_run(path)?;
        let shown = output::report_run(&run, &JudgingArgs::default(), &args.output)?;
        Ok(match stop {
            // A share of the whole passes no gate of its own.
            None if args.shard.is_some() => Exit::Ok,
            None => shown,
            Some(stop) => {
                output::warn(&format!("the run stopped before its end: {stop}; {again}"));
                if matches!(stop, Stop::Spent { .. }) { shown } else { Exit::CouldNotRun }
            }
        })
    }
}

/// Reports a run that nothing keeps; one that was asked to stop has nothing to go on with, so that it reports nothing.
fn report_in_memory(verification: Verification, args: &VerifyArgs, was_asked: bool) -> Result<Exit> {
    let Some(unfinished) = verification.unfinished.clone() else { return output::report(verification, &args.output) };
    if was_asked {
        output::warn("stopped; the run is kept nowhere, and a cassette that was recorded holds a part of it");
        return Ok(Exit::Interrupted);
    }
    let shown = output::report(verification, &args.output)?;
    output::warn(&format!("the run stopped before its end: {}", unfinished.reason.unwrap_or_default()));
    Ok(shown.max(Exit::CouldNotRun))
}

/// The folder that holds the run, unless its answers come from a cassette, or go to one: then all of it is to run.
fn run_folder(args: &VerifyArgs, config: &Config, base: &Path) -> Result<Option<RunFolder>> {
    let named = args.folder.clone().or_else(|| config.run.as_ref().map(|folder| base.join(folder)));
    let ModelArgs { model, record_cassette, cassette } = &args.run.model;
    let path = match named {
        Some(path) => path,
        None if record_cassette.is_some() || cassette.is_some() => {
            if args.shard.is_some() {
                return Err(hinted("a shard is asked for, and no folder to keep it in", "name one with `--run`"));
            }
            return Ok(None);
        }
        None => base.join("runs").join(args.run.config.file_stem().unwrap_or("retrace".as_ref())),
    };
    if record_cassette.is_some() && path.join("manifest.json").exists() {
        return Err(hinted(
            format!("the run in `{}` has begun, and a cassette of its rest would not be whole", path.display()),
            "name another folder with `--run`, or leave out `--record-cassette`",
        ));
    }
    let Description { mut setup, strategies } = config.description.clone();
    if let Some(model) = model {
        setup.insert("every_model".to_owned(), model.clone().into());
    }
    if let Some(outcome) = &args.outcome.failed_if {
        setup.insert("outcome".to_owned(), outcome.to_string().into());
    }
    if let Some(file) = cassette {
        setup.insert("cassette".to_owned(), file.display().to_string().into());
    }
    let shard = args.shard.map(|ShardArg(shard)| shard);
    Ok(Some(RunFolder { path, setup: setup.into(), strategies, shard }))
}

/// The recordings of a group, and those that could not be read, each with the reason.
pub(super) struct Recordings {
    pub(super) config: RecordingsConfig,
    pub(super) read: Vec<Recording>,
    unusable: Vec<(String, String)>,
}

/// Reads what the configuration names.
pub(super) fn recordings(config: &Config, folder: &Path) -> Result<Vec<Recordings>> {
    if config.recordings.is_empty() {
        return Err(hinted("the configuration names no recordings", "add a table `[[recordings]]` with `files`"));
    }
    let mut files_by_id = HashMap::new();
    let groups = config.recordings.iter().cloned();
    groups.map(|group| read_group(group, config.outcome.as_ref(), folder, &mut files_by_id)).collect()
}

fn read_group(
    config: RecordingsConfig,
    outcome: Option<&OutcomeRule>,
    folder: &Path,
    files_by_id: &mut HashMap<String, PathBuf>,
) -> Result<Recordings> {
    let paths: Vec<_> = config.files.iter().map(|file| folder.join(file)).collect();
    let (mut read, mut unusable) = (Vec::new(), Vec::new());
    for file in files::recordings_in(&paths)? {
        match files::read_another(&file, outcome, files_by_id) {
            Ok(mut recording) => {
                recording.header.task = config.task.clone().or(recording.header.task);
                read.push(recording);
            }
            // It costs itself, and nobody has paid for anything yet: the user hears of it now.
            Err(error) => {
                failure::warn(&error);
                unusable.push((file.display().to_string(), failure::text(&error)));
            }
        }
    }
    Ok(Recordings { config, read, unusable })
}

/// The verification that a configuration describes, everything in it started and seen to work.
async fn verifier(
    config: Config,
    mut settings: Settings,
    groups: Vec<Recordings>,
    mut models: Models,
    base: Base,
) -> Result<(Verifier, Cassettes)> {
    let actor = Actor::new(&config.agent, &mut models, &base).await?;
    if config.agent.compaction.is_some() {
        output::note("`[agent.compaction]` is for `retrace record` and not used here: the raw arm stays raw");
    }
    let mut environments =
        Environments::new(config.environments, base.clone(), config.outcome, settings.limits.restore);
    let mut ready = Vec::new();
    for Recordings { config, read, unusable } in groups {
        read.iter().for_each(tell_own);
        let group = if config.environment == RECORDED {
            if config.world_seed.is_some() {
                return Err(hinted("`world_seed` has no effect on the environment `recorded`", "leave it out"));
            }
            Group::recorded(read).described(RECORDED.into())
        } else {
            let world = environments.get(&config.environment, config.world_seed).await?;
            actor.check_tools(&world)?;
            read.iter().try_for_each(|recording| world.check_recording(recording))?;
            settings.concurrency = world.max_rollouts.unwrap_or(settings.concurrency).min(settings.concurrency);
            let description = json!({ "name": config.environment, "world_seed": config.world_seed });
            Group::new(read, world.environment).described(description)
        };
        ready.push((group, config.cuts, unusable));
    }
    let mut strategies = Vec::new();
    for (name, table) in config.strategies {
        let strategy = Compacting::start(&name, table, &base).await?;
        strategies.push((name, strategy));
    }

    let own_model = actor.model.name().to_owned();
    let mut verifier = Verifier::new(actor.model, settings.clone()).agent(actor.agent).control(config.control);
    for (group, cuts, unusable) in ready {
        verifier = verifier.group(cuts.into_iter().fold(group, Group::cuts));
        verifier = unusable.into_iter().fold(verifier, |verifier, (name, reason)| verifier.unusable(name, reason));
    }
    for (name, strategy) in strategies {
        for (model, asked) in strategy.models(&mut models, &own_model)? {
            verifier = verifier.model(model, asked);
        }
        verifier = verifier.strategy(name, strategy.strategy);
    }
    let cassettes = models.check(&settings).await?;
    let around = cassettes.clone();
    Ok((verifier.around_models(move |model| around.around(model)), cassettes))
}

/// Says where the recorded agent had tools of its own that those who are resumed do not have.
fn tell_own(recording: &Recording) {
    let results = recording.events.iter().flat_map(|event| match &**event {
        Event::ToolResults(round) => &round.results[..],
        _ => &[],
    });
    let own: BTreeSet<_> = results.filter(|result| result.own).map(|result| format!("`{}`", result.name)).collect();
    if !own.is_empty() {
        output::note(&format!(
            "{}: calls of {}, tools of the recorded agent's own, are no actions; an agent that does not bring them and calls \
             them as it sees it done is told that there is no such tool, which counts as blocked",
            recording.header.id,
            own.into_iter().collect::<Vec<_>>().join(", ")
        ));
    }
}

/// The environment that answers from the recordings themselves.
pub(crate) const RECORDED: &str = "recorded";

/// Runs a verification under a progress bar.
pub(crate) async fn verify(verifier: Verifier) -> Result<Verification> {
    let bar = Bar::new();
    let verification = verifier.run(&|progress| tell(&bar, progress)).await?;
    bar.finish();
    Ok(verification)
}

/// As [`verify`], in a folder.
async fn verify_in(verifier: Verifier, folder: &RunFolder) -> Result<Option<Stop>> {
    let bar = Bar::new();
    let stop = verifier.run_in(folder, &|progress| tell(&bar, progress)).await?;
    bar.finish();
    Ok(stop)
}

fn tell(bar: &Bar, progress: Progress) {
    bar.draw(&progress);
    match progress {
        Progress::Replayed { recording, replay, n_boundaries, n_unusable, reason } => {
            bar.above(|| tell_replay(&recording, replay.as_ref(), n_boundaries, n_unusable, reason));
        }
        Progress::GoesOn { n_rollouts, torn_line, n_withdrawn, .. } => bar.above(|| {
            if let Some(line) = torn_line {
                output::note(&format!("line {line} of the journal was cut off, and is left out"));
            }
            if n_withdrawn > 0 {
                output::note(&format!(
                    "{} had all failed alike: run again",
                    counted(n_withdrawn, "rollout", "rollouts")
                ));
            }
            output::note(&format!("goes on with {} that are finished", counted(n_rollouts, "rollout", "rollouts")));
        }),
        _ => {}
    }
}

/// Says how faithful a replay was.
fn tell_replay(
    recording: &str,
    replay: Option<&ReplayFidelity>,
    n_boundaries: usize,
    n_unusable: usize,
    reason: Option<String>,
) {
    if let Some(ReplayFidelity { n_replayed, n_different, .. }) = replay {
        let n_same = n_replayed - n_different;
        output::note(&format!(
            "{recording}: {n_replayed} calls replayed with the same outcome, {n_same} of them with the same text"
        ));
    }
    if let Some(reason) = reason {
        output::warn(&format!("nothing can run at {n_unusable} of its {n_boundaries} boundaries: {reason}"));
    }
}
