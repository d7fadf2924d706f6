//! `retrace replay`: how far recordings replay in an environment.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use futures_util::StreamExt;
use futures_util::stream;
use retrace_env::{Comparison, Environment, compare};
use retrace_events::{Recording, Trajectory, with_causes};
use retrace_report::{counted, json, printable};
use serde::Serialize;
use tokio::time::timeout;

use crate::args::ReplayArgs;
use crate::commands::verify::RECORDED;
use crate::config::Config;
use crate::exit::Exit;
use crate::failure::hinted;
use crate::setup::{Base, Environments};
use crate::{files, output, runtime};

/// What is said of one recording.
#[derive(Serialize)]
struct Facts {
    recording: String,
    environment: String,
    n_actions: usize,
    n_replayed: usize,
    n_same_outcome: usize,
    n_same_text: usize,
    first_other_outcome: Option<OtherOutcome>,
    first_other_text: Option<OtherText>,
    broke_off: Option<String>,
}

#[derive(Serialize)]
struct OtherOutcome {
    action: usize,
    difference: String,
}

#[derive(Serialize)]
struct OtherText {
    action: usize,
    call: String,
    recorded: String,
    replayed: String,
}

pub(crate) fn run(args: &ReplayArgs) -> Result<Exit> {
    let mut config = Config::read(&args.config)?;
    config.outcome = args.outcome.failed_if.clone().or(config.outcome);
    let base = Base::new(&config, &args.config);
    let settings = config.settings()?;
    let mut jobs = Vec::new();
    let mut files_by_id = HashMap::new();
    for (files, environment, world_seed) in groups(args, &config, base.folder())? {
        for file in files::recordings_in(&files)? {
            let recording = files::read_another(&file, config.outcome.as_ref(), &mut files_by_id)?;
            jobs.push((recording, environment.clone(), world_seed));
        }
    }
    let facts = runtime::run(async {
        let mut environments = Environments::new(config.environments, base, config.outcome, settings.limits.restore);
        let (mut ready, mut concurrency) = (Vec::new(), settings.concurrency);
        for (recording, name, world_seed) in jobs {
            let world = environments.get(&name, world_seed).await?;
            world.check_recording(&recording)?;
            concurrency = world.max_rollouts.unwrap_or(concurrency).min(concurrency);
            ready.push(replay(recording, name, world.environment, settings.limits.rollout));
        }
        let mut replays = stream::iter(ready).buffered(concurrency.max(1));
        let mut facts = Vec::new();
        while let Some(replayed) = replays.next().await {
            if !args.json {
                output::print(&text(&replayed))?;
            }
            facts.push(replayed);
        }
        Ok(facts)
    })?;
    if args.json {
        output::print(&json(&facts))?;
    } else if facts.len() > 1 {
        output::print(&total(&facts))?;
    }
    Ok(if facts.iter().any(|facts| facts.n_replayed > 0) { Exit::Ok } else { Exit::CouldNotRun })
}

/// Recordings, each group with the name and seed of its environment.
type Groups = Vec<(Vec<std::path::PathBuf>, String, Option<u64>)>;

/// The files of the arguments, or the recordings of the configuration.
fn groups(args: &ReplayArgs, config: &Config, folder: &Path) -> Result<Groups> {
    if args.recordings.is_empty() {
        let rebuilt = config.recordings.iter().filter(|group| group.environment != RECORDED);
        let groups: Groups = rebuilt
            .map(|group| {
                let files = group.files.iter().map(|file| folder.join(file)).collect();
                (files, args.environment.clone().unwrap_or(group.environment.clone()), group.world_seed)
            })
            .collect();
        if groups.is_empty() {
            return Err(hinted(
                "the configuration has no recordings with an environment that can be replayed in",
                "name files, and with `--environment` a table `[environments.NAME]` of the configuration",
            ));
        }
        return Ok(groups);
    }
    let named: Vec<_> = config.environments.keys().collect();
    let environment = match (&args.environment, &named[..]) {
        (Some(name), _) => name.clone(),
        (None, [name]) => (*name).clone(),
        (None, _) => {
            return Err(hinted(
                format!("the configuration has {}", counted(named.len(), "environment", "environments")),
                "say with `--environment` where to replay",
            ));
        }
    };
    Ok(vec![(args.recordings.clone(), environment, None)])
}

async fn replay(recording: Recording, name: String, environment: Arc<dyn Environment>, limit: Duration) -> Facts {
    let trajectory = Trajectory::new(recording);
    let replayed = timeout(limit, async {
        match environment.open().await {
            Ok(toolbox) => compare(&trajectory, &toolbox).await,
            Err(error) => broken(&trajectory, with_causes(&error)),
        }
    });
    let replayed = replayed.await;
    let comparison = replayed.unwrap_or_else(|_| broken(&trajectory, format!("no end within {limit:?}")));
    let other_text = comparison.first_difference.map(|difference| OtherText {
        action: difference.position,
        call: difference.call,
        recorded: difference.recorded,
        replayed: difference.replayed,
    });
    Facts {
        recording: trajectory.id().to_owned(),
        environment: name,
        n_actions: comparison.n_actions,
        n_replayed: comparison.n_calls,
        n_same_outcome: comparison.n_same_outcome,
        n_same_text: comparison.n_same_text,
        first_other_outcome: comparison
            .first_other_outcome
            .map(|(action, difference)| OtherOutcome { action, difference }),
        first_other_text: other_text,
        broke_off: comparison.broke_off,
    }
}

fn broken(trajectory: &Trajectory, reason: String) -> Comparison {
    Comparison { n_actions: trajectory.actions().len(), broke_off: Some(reason), ..Comparison::default() }
}

/// The facts as a reader sees them.
fn text(facts: &Facts) -> String {
    let mut lines = vec![counts(&facts.recording, std::slice::from_ref(facts))];
    if let Some(OtherOutcome { difference, .. }) = &facts.first_other_outcome {
        lines.push(format!("  the first other outcome: {difference}"));
    }
    if let Some(OtherText { action, call, recorded, replayed }) = &facts.first_other_text {
        lines.push(format!("  the first other text: action {action}, `{call}`"));
        lines.push(format!("    recorded {recorded}"));
        lines.push(format!("    replayed {replayed}"));
    }
    lines.extend(facts.broke_off.iter().map(|reason| format!("  it broke off: {reason}")));
    lines.iter().map(|line| printable(line).into_owned() + "\n").collect()
}

/// Those of all recordings together.
fn total(facts: &[Facts]) -> String {
    printable(&counts(&counted(facts.len(), "recording", "recordings"), facts)).into_owned()
}

/// How many calls were replayed, and how many of them alike.
fn counts(of_what: &str, facts: &[Facts]) -> String {
    let sum = |count: fn(&Facts) -> usize| facts.iter().map(count).sum::<usize>();
    let (n_actions, n_replayed) = (sum(|it| it.n_actions), sum(|it| it.n_replayed));
    let of = if n_replayed == n_actions { String::new() } else { format!(" of {n_actions}") };
    let (n_same_outcome, n_same_text) = (sum(|it| it.n_same_outcome), sum(|it| it.n_same_text));
    format!(
        "{of_what}: {n_replayed}{of} calls replayed, {n_same_outcome} with the same outcome, {n_same_text} with the same text"
    )
}
