//! A run as it is found in its folder.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use retrace_events::{Arm, Event, History, RolloutKey, Signature, Spend};
use retrace_score::{
    BoundaryOutcome, Compaction, Executed, Left, RecordingFacts, StrategyOutcome, Unfinished, Verification, arms_to_run,
};

use crate::error::JournalError;
use crate::index::{Index, Lines, Place, SiteIndex};
use crate::manifest::Manifest;
use crate::plan::{Plan, PlannedRecording};
use crate::record::{CompactionKey, CompactionRecord, ExecutedCall, Record, RecordingRecord, RolloutRecord, Site};

/// The names of the files in a run's folder.
pub(crate) const MANIFEST: &str = "manifest.json";
pub(crate) const JOURNAL: &str = "journal.jsonl";
pub(crate) const LOCK: &str = "lock";

/// What a run has finished, as its folder holds it. Rollouts and compacted histories stay there until they are asked for.
///
/// It may be read while another program writes to it: what is finished later is not in it.
#[derive(Debug)]
pub struct Run {
    folder: PathBuf,
    manifest: Manifest,
    index: Index,
    journal: Mutex<File>,
}

impl Run {
    /// Reads a run.
    ///
    /// # Errors
    /// When the folder holds none, or what it holds is not as it was written.
    pub fn read(folder: &Path) -> Result<Self, JournalError> {
        let manifest = Manifest::read(&folder.join(MANIFEST))?;
        let manifest = manifest.ok_or_else(|| JournalError::NoRun { folder: folder.to_owned() })?;
        Self::of(folder, manifest)
    }

    pub(crate) fn of(folder: &Path, manifest: Manifest) -> Result<Self, JournalError> {
        let path = folder.join(JOURNAL);
        let file = File::open(&path).map_err(JournalError::io("open", &path))?;
        let index = Index::read(BufReader::with_capacity(1 << 16, &file), &path)?;
        Ok(Self { folder: folder.to_owned(), manifest, index, journal: Mutex::new(file) })
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What the run is.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The number of the journal's last line, if it was cut off; it is left out.
    pub fn torn_line(&self) -> Option<usize> {
        self.index.torn_line
    }

    pub(crate) fn end(&self) -> u64 {
        self.index.end
    }

    /// What everything in it cost, also what was withdrawn.
    pub fn spent(&self) -> Spend {
        self.index.spent
    }

    /// The recordings that it did not need when it stopped early.
    pub fn not_reached(&self) -> &[String] {
        &self.index.not_reached
    }

    /// Its plan without what was planned and never began: samples that no arm has, strategies without a compaction.
    pub(crate) fn begun_plan(&self) -> Plan {
        let mut plan = self.manifest.plan.clone();
        let arms = || self.index.sites.values().flat_map(|site| site.rollouts.values());
        plan.samples = arms().filter_map(|arm| arm.keys().next_back()).map(|last| last + 1).max().unwrap_or(0);
        let has_begun = |name: &str| self.index.sites.values().any(|site| site.compactions.contains_key(name));
        plan.strategies.retain(|name, _| has_begun(name));
        plan
    }

    /// Whether neither a rollout nor a compaction is in it.
    pub(crate) fn has_nothing_finished(&self) -> bool {
        self.index.sites.values().all(|site| site.compactions.is_empty() && site.rollouts.is_empty())
    }

    /// How many rollouts are in it.
    pub fn n_rollouts(&self) -> usize {
        self.index.sites.values().flat_map(|site| site.rollouts.values()).map(|arm| arm.len()).sum()
    }

    pub(crate) fn recordings(&self) -> impl Iterator<Item = &RecordingRecord> {
        self.index.recordings.values()
    }

    /// Calls with each record, in the order written.
    pub(crate) fn for_each(
        &self,
        mut take: impl FnMut(Record) -> Result<(), JournalError>,
    ) -> Result<(), JournalError> {
        let path = self.folder.join(JOURNAL);
        let file = File::open(&path).map_err(JournalError::io("open", &path))?;
        let mut lines = Lines::new(BufReader::with_capacity(1 << 16, file).take(self.index.end), &path);
        while let Some((record, _)) = lines.next()? {
            take(record)?;
        }
        Ok(())
    }

    /// What is known of a recording, if it is.
    pub fn recording(&self, id: &str) -> Option<&RecordingFacts> {
        self.index.recordings.get(id).map(|recording| &recording.facts)
    }

    /// Whether two restored environments were compared at a recording, and what the difference was.
    pub fn world(&self, recording: &str) -> Option<Option<&str>> {
        self.index.worlds.get(recording).map(|difference| difference.as_deref())
    }

    /// Whether a boundary is there, and why nothing can run at it.
    pub fn boundary(&self, site: &Site) -> Option<Option<&str>> {
        self.index.sites.get(site).map(|site| site.boundary.unusable.as_deref())
    }

    /// Whether a compaction is finished.
    pub fn has_compaction(&self, site: &Site, strategy: &str) -> bool {
        self.index.sites.get(site).is_some_and(|site| site.compactions.contains_key(strategy))
    }

    /// Whether a rollout is finished.
    pub fn has_rollout(&self, key: &RolloutKey) -> bool {
        self.place(key).is_some()
    }

    /// A finished compaction, if it is there.
    ///
    /// # Errors
    /// When its line cannot be read again.
    pub fn compaction(&self, site: &Site, strategy: &str) -> Result<Option<CompactionRecord>, JournalError> {
        let place = self.index.sites.get(site).and_then(|site| site.compactions.get(strategy));
        place.map(|entry| self.compaction_at(entry.place)).transpose()
    }

    /// The history that a compaction kept, put together with the events of its recording.
    ///
    /// # Errors
    /// When the recording does not have the events.
    pub fn history(&self, record: &CompactionRecord, events: &[Arc<Event>]) -> Result<Option<History>, JournalError> {
        let history = record.kept.as_ref().map(|kept| kept.history(events)).transpose();
        history.map_err(|source| JournalError::BadHistory {
            path: self.folder.join(JOURNAL),
            recording: record.recording.clone(),
            cut: record.cut,
            strategy: record.strategy.clone(),
            source,
        })
    }

    /// A finished rollout, if it is there.
    ///
    /// # Errors
    /// When its line cannot be read again.
    pub fn rollout(&self, key: &RolloutKey) -> Result<Option<RolloutRecord>, JournalError> {
        self.place(key).map(|place| self.rollout_at(place)).transpose()
    }

    /// The finished rollouts, boundary by boundary.
    pub fn rollouts(&self) -> impl Iterator<Item = Result<RolloutRecord, JournalError>> {
        self.places().map(|place| self.rollout_at(place))
    }

    fn places(&self) -> impl Iterator<Item = Place> {
        let arms = self.index.sites.values().flat_map(|site| site.rollouts.values());
        arms.flat_map(|arm| arm.values().copied())
    }

    fn place(&self, key: &RolloutKey) -> Option<Place> {
        let site = Site { recording: key.recording.clone(), cut: key.cut };
        self.index.sites.get(&site)?.rollouts.get(&key.arm)?.get(&key.sample).copied()
    }

    /// The first of the rollouts that all failed alike, if the run gave up for them.
    ///
    /// # Errors
    /// When its line cannot be read again.
    pub fn gave_up_at(&self) -> Result<Option<RolloutRecord>, JournalError> {
        let since = self.index.stopped.as_ref().and_then(|stopped| stopped.since.as_ref());
        since.map_or(Ok(None), |key| self.rollout(key))
    }

    /// The rollouts from the one on for which the run gave up, if it did, in the order of their boundaries.
    pub fn rollouts_since_giving_up(&self) -> impl Iterator<Item = Result<RolloutRecord, JournalError>> {
        let since = self.index.stopped.as_ref().and_then(|stopped| self.place(stopped.since.as_ref()?));
        self.places()
            .filter(move |place| since.is_some_and(|since| place.line >= since.line))
            .map(|place| self.rollout_at(place))
    }

    /// The compactions that failed.
    ///
    /// # Errors
    /// When a line cannot be read again.
    pub fn failed_compactions(&self) -> Result<Vec<CompactionKey>, JournalError> {
        let places = self.index.sites.values().flat_map(|site| site.compactions.values());
        let mut failed = Vec::new();
        for entry in places.filter(|entry| entry.left == Left::Nothing) {
            let CompactionRecord { recording, cut, strategy, outcome, .. } = self.compaction_at(entry.place)?;
            if matches!(outcome, Compaction::Failed { .. }) {
                failed.push(CompactionKey { recording, cut, strategy });
            }
        }
        Ok(failed)
    }

    /// Whether everything that is planned is finished.
    pub fn is_finished(&self) -> bool {
        self.unfinished().is_none()
    }

    /// Whether something of a recording is not finished, or nothing is known of it.
    pub fn lacks(&self, recording: &str) -> bool {
        let of_it = || self.index.sites.iter().filter(|(site, _)| site.recording == recording);
        !self.index.recordings.contains_key(recording) || of_it().any(|(_, entry)| self.n_missing(entry) > 0)
    }

    /// All that is said once of the run's verification; its boundaries are read one by one, by
    /// [`boundaries`](Self::boundaries).
    pub fn verification(&self) -> Verification {
        let Manifest { plan, judging, prices, unusable, n_left_out, .. } = &self.manifest;
        let facts = plan.recordings.iter().filter_map(|recording| {
            let facts = self.recording(&recording.id)?.clone();
            let worlds_differ = self.world(&recording.id).flatten().map(str::to_owned);
            Some(RecordingFacts { worlds_differ, ..facts })
        });
        Verification {
            horizon: plan.horizon,
            samples: plan.samples as usize,
            seed: plan.seed,
            model: Some(plan.model.clone()),
            prices: *prices,
            token_counter: plan.token_counter.clone(),
            strategies: plan.strategies.keys().cloned().collect(),
            control: plan.control.clone(),
            recordings: facts.collect(),
            unusable: unusable.clone(),
            n_left_out: *n_left_out,
            chain: plan.chain,
            judging: *judging,
            n_not_reached: self.index.not_reached.len(),
            unfinished: self.unfinished(),
            boundaries: Vec::new(),
        }
    }

    /// What came out at the boundaries so far, in the order of the plan.
    pub fn boundaries(&self) -> impl Iterator<Item = Result<BoundaryOutcome, JournalError>> {
        let by_recording = self.sites_by_recording();
        let recordings = self.manifest.plan.recordings.iter().filter_map(move |planned| {
            let executed = Arc::new(FirstExecuted::of(&self.index.recordings.get(&planned.id)?.executed));
            Some((by_recording.get(&*planned.id)?.clone(), executed))
        });
        recordings.flat_map(move |(sites, executed)| {
            sites.into_iter().map(move |site| self.outcome(site, Arc::clone(&executed)))
        })
    }

    /// The boundaries that are reported, by recording and in the order of their cuts.
    fn sites_by_recording(&self) -> HashMap<&str, Vec<&SiteIndex>> {
        let not_reached: HashSet<_> = self.index.not_reached.iter().map(String::as_str).collect();
        let mut by_recording: HashMap<&str, Vec<&SiteIndex>> = HashMap::new();
        for (site, entry) in &self.index.sites {
            if !not_reached.contains(&*site.recording) {
                by_recording.entry(&site.recording).or_default().push(entry);
            }
        }
        by_recording.values_mut().for_each(|sites| sites.sort_by_key(|site| site.boundary.cut));
        by_recording
    }

    fn outcome(&self, entry: &SiteIndex, executed: Arc<FirstExecuted>) -> Result<BoundaryOutcome, JournalError> {
        let boundary = &entry.boundary;
        let arm = |arm: &Arm| {
            let places = entry.rollouts.get(arm).into_iter().flat_map(|samples| samples.values());
            places.map(|place| Ok(self.rollout_at(*place)?.rollout)).collect::<Result<Vec<_>, JournalError>>()
        };
        let names = self.manifest.plan.strategies.keys();
        let strategies =
            names.filter_map(|name| Some((name, entry.compactions.get(name)?.place))).map(|(name, place)| {
                let CompactionRecord { outcome, lost_task, spend, .. } = self.compaction_at(place)?;
                let post = arm(&Arm::Post(name.clone()))?;
                Ok((name.clone(), StrategyOutcome { compaction: outcome, lost_task, spend, post }))
            });
        Ok(BoundaryOutcome {
            recording: boundary.recording.clone(),
            cut: boundary.cut,
            executed: boundary.executed,
            executed_calls: Box::new(ExecutedBefore { calls: executed, n: boundary.executed }),
            pre_size: Some(boundary.size),
            unusable: boundary.unusable.clone(),
            strategies: strategies.collect::<Result<_, JournalError>>()?,
            pre: arm(&Arm::Pre)?,
        })
    }

    /// What of the plan is not finished, if anything is.
    fn unfinished(&self) -> Option<Unfinished> {
        let plan = &self.manifest.plan;
        let (mut n_boundaries, mut n_rollouts) = (0, 0);
        let is_there = |recording: &&PlannedRecording| self.index.recordings.contains_key(&recording.id);
        let n_recordings = plan.recordings.iter().filter(|recording| !is_there(recording)).count();
        let at_most = plan.samples as usize * (1 + plan.strategies.len());
        for missing in self.sites_that_are_missing() {
            n_boundaries += missing;
            n_rollouts += missing * at_most;
        }
        for entry in self.sites_by_recording().into_values().flatten() {
            let missing = self.n_missing(entry);
            n_boundaries += usize::from(missing > 0);
            n_rollouts += missing;
        }
        let reason = self.index.stopped.as_ref().map(|stopped| stopped.reason.clone());
        (n_recordings + n_boundaries > 0).then_some(Unfinished { n_recordings, n_boundaries, n_rollouts, reason })
    }

    /// How many boundaries of each recording are not even known; of a shard others run some, and nobody can say.
    fn sites_that_are_missing(&self) -> impl Iterator<Item = usize> {
        let is_whole = self.manifest.plan.shard.is_none();
        let recordings = self.index.recordings.iter().filter(move |_| is_whole);
        let reached = recordings.filter(|(id, _)| !self.index.not_reached.contains(id));
        reached.map(|(id, recording)| {
            let site = |&cut: &usize| Site { recording: id.clone(), cut };
            recording.cuts.iter().filter(|cut| !self.index.sites.contains_key(&site(cut))).count()
        })
    }

    /// How many rollouts a boundary lacks, at most: where a compaction is not finished, every arm may run.
    fn n_missing(&self, entry: &SiteIndex) -> usize {
        let plan = &self.manifest.plan;
        if entry.boundary.unusable.is_some() {
            return 0;
        }
        let samples = plan.samples as usize;
        let outcomes = plan.strategies.keys().map(|name| Some((&**name, entry.compactions.get(name)?.left)));
        let Some(outcomes) = outcomes.collect::<Option<Vec<_>>>() else {
            let n_there: usize = entry.rollouts.values().map(|arm| arm.len()).sum();
            return (samples * (1 + plan.strategies.len())).saturating_sub(n_there);
        };
        let arms = arms_to_run(outcomes, plan.control.as_deref());
        let n_there = |arm: &Arm| entry.rollouts.get(arm).map_or(0, |samples| samples.len());
        arms.iter().map(|arm| samples.saturating_sub(n_there(arm))).sum()
    }

    fn compaction_at(&self, place: Place) -> Result<CompactionRecord, JournalError> {
        match self.record_at(place)? {
            Record::Compaction(record) => Ok(record),
            _ => Err(self.changed(place)),
        }
    }

    fn rollout_at(&self, place: Place) -> Result<RolloutRecord, JournalError> {
        match self.record_at(place)? {
            Record::Rollout(record) => Ok(record),
            _ => Err(self.changed(place)),
        }
    }

    fn record_at(&self, place: Place) -> Result<Record, JournalError> {
        let path = self.folder.join(JOURNAL);
        let read = || -> io::Result<Vec<u8>> {
            let mut file = self.journal.lock().unwrap_or_else(PoisonError::into_inner);
            let mut line = vec![0; place.length];
            file.seek(SeekFrom::Start(place.offset))?;
            file.read_exact(&mut line)?;
            Ok(line)
        };
        let line = read().map_err(JournalError::io("read", &path))?;
        serde_json::from_slice(&line).map_err(|source| JournalError::BadLine { path, line: place.line, source })
    }

    fn changed(&self, place: Place) -> JournalError {
        let what = "it is not what it was a moment ago".to_owned();
        JournalError::Misplaced { path: self.folder.join(JOURNAL), line: place.line, what }
    }
}

/// When each call of a recording, and each tool, was executed first.
#[derive(Debug, Default)]
struct FirstExecuted {
    calls: HashMap<Signature, usize>,
    tools: HashMap<String, usize>,
}

impl FirstExecuted {
    fn of(executed: &[ExecutedCall]) -> Self {
        let mut first = Self::default();
        for (index, call) in executed.iter().enumerate() {
            first.calls.entry(call.signature()).or_insert(index);
            if !first.tools.contains_key(&call.name) {
                first.tools.insert(call.name.clone(), index);
            }
        }
        first
    }
}

/// The first `n` calls of a recording.
struct ExecutedBefore {
    calls: Arc<FirstExecuted>,
    n: usize,
}

impl Executed for ExecutedBefore {
    fn has_executed(&self, call: &Signature) -> bool {
        self.calls.calls.get(call).is_some_and(|&first| first < self.n)
    }

    fn has_used(&self, tool: &str) -> bool {
        self.calls.tools.get(tool).is_some_and(|&first| first < self.n)
    }
}
