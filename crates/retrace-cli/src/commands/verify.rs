//! `retrace verify`: the main job.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use anyhow::Result;
use retrace_events::{Event, OutcomeRule, Recording};
use retrace_score::{ReplayFidelity, Verification};
use retrace_verifier::{Group, Progress, Settings, Verifier};

use crate::args::VerifyArgs;
use crate::config::{Config, RecordingsConfig};
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
    let settings = config.settings()?;
    args.output.check(settings.horizon)?;
    let base = Base::new(&config, &args.run.config);
    let groups = recordings(&config, base.folder())?;
    let models = Models::new(std::mem::take(&mut config.models), &args.run.model)?;
    let (verification, played) = runtime::run(async {
        let (verifier, cassettes) = verifier(config, settings, groups, models, base).await?;
        let verification = verify(verifier).await;
        let played = cassettes.finish();
        Ok((verification?, played))
    })?;
    // A verification that is to be repeated exactly, and was not, must not pass for one that was.
    Ok(output::report(verification, &args.output)?.max(played))
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
            Group::recorded(read)
        } else {
            let world = environments.get(&config.environment, config.world_seed).await?;
            actor.check_tools(&world)?;
            read.iter().try_for_each(|recording| world.check_recording(recording))?;
            settings.concurrency = world.max_rollouts.unwrap_or(settings.concurrency).min(settings.concurrency);
            Group::new(read, world.environment)
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
    let verification = verifier
        .run(&|progress| {
            bar.draw(&progress);
            if let Progress::Replayed { recording, replay, n_boundaries, n_unusable, reason } = progress {
                bar.above(|| tell_replay(&recording, replay.as_ref(), n_boundaries, n_unusable, reason));
            }
        })
        .await?;
    bar.finish();
    Ok(verification)
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
