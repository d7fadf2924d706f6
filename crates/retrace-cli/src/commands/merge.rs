//! `retrace merge`: the shards of a verification, joined.

use anyhow::Result;
use retrace_journal::{Run, merge};
use retrace_report::counted;

use crate::args::MergeArgs;
use crate::exit::Exit;
use crate::output;

pub(crate) fn run(args: &MergeArgs) -> Result<Exit> {
    let shards = args.runs.iter().map(|folder| output::read_run(folder)).collect::<Result<Vec<Run>>>()?;
    let merged = merge(&shards, &args.output)?;
    let n_all = shards.first().and_then(|shard| shard.manifest().plan.shard).map_or(0, |shard| shard.of as usize);
    let folder = args.output.display();
    output::note(&format!("{folder}: {}", counted(merged.n_rollouts(), "rollout", "rollouts")));
    if shards.len() < n_all {
        output::warn(&format!(
            "{} of {n_all} shards are missing; `retrace verify --run {folder}` runs what they would have",
            n_all - shards.len()
        ));
    }
    Ok(Exit::Ok)
}
