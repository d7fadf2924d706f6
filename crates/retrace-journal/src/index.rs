//! What is in a journal, and where.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::path::Path;

use indexmap::IndexMap;
use retrace_events::{Arm, Spend};
use retrace_score::Left;

use crate::error::JournalError;
use crate::record::{BoundaryRecord, Record, RecordingRecord, Site, Stopped};

/// What is in a journal: small things whole, rollouts and compactions by the place of their line.
#[derive(Debug, Default)]
pub(crate) struct Index {
    pub(crate) recordings: IndexMap<String, RecordingRecord>,
    /// What two restored environments showed, by recording.
    pub(crate) worlds: IndexMap<String, Option<String>>,
    pub(crate) sites: IndexMap<Site, SiteIndex>,
    /// The recordings that a run which stopped early did not reach.
    pub(crate) not_reached: Vec<String>,
    /// Why the run stopped, if that is the last thing it did.
    pub(crate) stopped: Option<Stopped>,
    /// What everything cost, also what was withdrawn.
    pub(crate) spent: Spend,
    /// Where the whole lines end.
    pub(crate) end: u64,
    /// The number of the last line, where it was cut off.
    pub(crate) torn_line: Option<usize>,
}

/// What is there of a boundary.
#[derive(Debug)]
pub(crate) struct SiteIndex {
    pub(crate) boundary: BoundaryRecord,
    pub(crate) compactions: IndexMap<String, CompactionPlace>,
    pub(crate) rollouts: BTreeMap<Arm, BTreeMap<u32, Place>>,
}

/// Where a compaction lies, and what of it decides which arms run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CompactionPlace {
    pub(crate) left: Left,
    pub(crate) place: Place,
}

/// Where a line lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) line: usize,
    pub(crate) offset: u64,
    pub(crate) length: usize,
}

impl Index {
    /// Reads a journal. A last line that was cut off is no record.
    pub(crate) fn read(source: impl BufRead, path: &Path) -> Result<Self, JournalError> {
        let mut index = Self::default();
        let mut lines = Lines::new(source, path);
        while let Some((record, place)) = lines.next()? {
            let misplaced = |what| JournalError::Misplaced { path: path.to_owned(), line: place.line, what };
            index.add(record, place).map_err(misplaced)?;
        }
        (index.end, index.torn_line) = (lines.end, lines.torn_line);
        Ok(index)
    }

    fn add(&mut self, record: Record, place: Place) -> Result<(), String> {
        self.stopped = None;
        match record {
            Record::Recording(record) => {
                let id = record.facts.id.clone();
                if self.recordings.insert(id.clone(), record).is_some() {
                    return Err(format!("the recording `{id}` is there twice"));
                }
            }
            Record::Boundary(boundary) => {
                let site = Site { recording: boundary.recording.clone(), cut: boundary.cut };
                let executed = self.recordings.get(&site.recording).map(|recording| recording.executed.len());
                match executed {
                    None => return Err(format!("the recording `{}` is not there", site.recording)),
                    Some(n) if n < boundary.executed => {
                        return Err(format!("{} actions before a boundary of a recording of {n}", boundary.executed));
                    }
                    Some(_) => {}
                }
                let entry = SiteIndex { boundary, compactions: IndexMap::new(), rollouts: BTreeMap::new() };
                if let Some(entry) = self.sites.insert(site, entry) {
                    let BoundaryRecord { recording, cut, .. } = entry.boundary;
                    return Err(format!("the boundary at {cut} of `{recording}` is there twice"));
                }
            }
            Record::World(world) => {
                self.worlds.insert(world.recording, world.difference);
            }
            Record::Compaction(compaction) => {
                self.spent.add(compaction.spend);
                self.not_reached.retain(|id| *id != compaction.recording);
                let site = self.site(compaction.recording, compaction.cut)?;
                let entry = CompactionPlace { left: compaction.outcome.left(), place };
                if site.compactions.insert(compaction.strategy, entry).is_some() {
                    return Err("a compaction that is there already".to_owned());
                }
            }
            Record::Rollout(record) => {
                self.spent.add(record.rollout.spend);
                self.not_reached.retain(|id| *id != record.key.recording);
                let site = self.site(record.key.recording, record.key.cut)?;
                let arm = site.rollouts.entry(record.key.arm).or_default();
                if arm.insert(record.key.sample, place).is_some() {
                    return Err("a rollout that is there already".to_owned());
                }
            }
            Record::Withdrawn(withdrawn) => {
                for key in withdrawn.rollouts {
                    let site = self.site(key.recording, key.cut)?;
                    let there = site.rollouts.get_mut(&key.arm).and_then(|arm| arm.remove(&key.sample));
                    there.ok_or("it withdraws a rollout that is not there")?;
                }
                for key in withdrawn.compactions {
                    let site = self.site(key.recording, key.cut)?;
                    let there = site.compactions.shift_remove(&key.strategy);
                    there.ok_or("it withdraws a compaction that is not there")?;
                }
            }
            Record::NotReached(not_reached) => self.not_reached = not_reached.recordings,
            Record::Stopped(stopped) => self.stopped = Some(stopped),
        }
        Ok(())
    }

    fn site(&mut self, recording: String, cut: usize) -> Result<&mut SiteIndex, String> {
        let site = Site { recording, cut };
        match self.sites.get_mut(&site) {
            Some(entry) => Ok(entry),
            None => Err(format!("the boundary at {cut} of `{}` is not there", site.recording)),
        }
    }
}

/// The records of a journal, one after the other.
pub(crate) struct Lines<'a, R> {
    source: R,
    path: &'a Path,
    line: Vec<u8>,
    n: usize,
    end: u64,
    torn_line: Option<usize>,
}

impl<'a, R: BufRead> Lines<'a, R> {
    pub(crate) fn new(source: R, path: &'a Path) -> Self {
        Self { source, path, line: Vec::new(), n: 0, end: 0, torn_line: None }
    }

    /// The next whole line, if there is one.
    pub(crate) fn next(&mut self) -> Result<Option<(Record, Place)>, JournalError> {
        self.line.clear();
        let length = self.source.read_until(b'\n', &mut self.line).map_err(JournalError::io("read", self.path))?;
        if length == 0 {
            return Ok(None);
        }
        self.n += 1;
        if !self.line.ends_with(b"\n") {
            self.torn_line = Some(self.n);
            return Ok(None);
        }
        let bad = |source| JournalError::BadLine { path: self.path.to_owned(), line: self.n, source };
        let record = serde_json::from_slice(&self.line).map_err(bad)?;
        let place = Place { line: self.n, offset: self.end, length };
        self.end += length as u64;
        Ok(Some((record, place)))
    }
}
