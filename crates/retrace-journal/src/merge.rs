//! Joining the shards of a verification.

use std::collections::HashMap;
use std::fs;
use std::io::ErrorKind;
use std::mem;
use std::path::Path;

use indexmap::IndexMap;

use crate::error::JournalError;
use crate::journal::{Journal, Opened};
use crate::record::{Record, RecordingRecord};
use crate::run::Run;

/// Joins runs that are shards of one verification into a new run in a folder that is not there yet, or empty. A shard
/// may be missing: the new run then lacks its cells, and can go on to run them.
///
/// # Errors
/// When they are not different shards of one plan, or cannot be read, or the new run cannot be written.
pub fn merge(shards: &[Run], folder: &Path) -> Result<Run, JournalError> {
    let Some(first) = shards.first() else { return Err(JournalError::NoRun { folder: folder.to_owned() }) };
    let mut by_index = HashMap::new();
    for shard in shards {
        let plan = &shard.manifest().plan;
        first.manifest().plan.is_of_one_with(plan).map_err(|difference| JournalError::NotOfOnePlan {
            one: first.folder().to_owned(),
            other: shard.folder().to_owned(),
            difference,
        })?;
        let not_shards =
            |other: &Run| JournalError::NotShards { one: other.folder().to_owned(), other: shard.folder().to_owned() };
        let index = plan.shard.ok_or_else(|| not_shards(first))?.index;
        if let Some(other) = by_index.insert(index, shard) {
            return Err(not_shards(other));
        }
    }
    let mut manifest = first.manifest().clone();
    manifest.plan.shard = None;
    // Beside the new run, and in its place once it is whole.
    let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(parent).map_err(JournalError::io("create", parent))?;
    let partial = tempfile::Builder::new().prefix(".merge").tempdir_in(parent);
    let partial = partial.map_err(JournalError::io("create a folder in", parent))?;
    let Opened { mut journal, .. } = Journal::open(partial.path(), manifest)?;
    let records = recordings(shards).map(Record::Recording).collect::<Vec<_>>();
    journal.append(&records)?;
    for shard in shards {
        let mut batch = Vec::new();
        shard.for_each(|record| {
            match record {
                // The recordings are there, and why a shard stopped is not why the whole did.
                Record::Recording(_) | Record::Stopped(_) => {}
                record => batch.push(record),
            }
            if batch.len() == BATCH { journal.append(&mem::take(&mut batch)) } else { Ok(()) }
        })?;
        journal.append(&batch)?;
    }
    drop(journal);
    Run::read(partial.path())?;
    // It may be there and empty.
    match fs::remove_dir(folder) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(_) => return Err(JournalError::NotARun { folder: folder.to_owned() }),
    }
    fs::rename(partial.keep(), folder).map_err(JournalError::io("create", folder))?;
    Run::read(folder)
}

/// What is known of the recordings: by the shard that replayed most of them.
fn recordings(shards: &[Run]) -> impl Iterator<Item = RecordingRecord> {
    let mut recordings: IndexMap<String, RecordingRecord> = IndexMap::new();
    for record in shards.iter().flat_map(Run::recordings) {
        match recordings.get_mut(&record.facts.id) {
            None => drop(recordings.insert(record.facts.id.clone(), record.clone())),
            Some(known) if n_replayed(record) > n_replayed(known) => *known = record.clone(),
            Some(_) => {}
        }
    }
    recordings.into_values()
}

fn n_replayed(record: &RecordingRecord) -> Option<u64> {
    record.facts.replay.as_ref().map(|replay| replay.n_replayed)
}

/// How many records are written at once.
const BATCH: usize = 1000;
