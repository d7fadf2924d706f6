//! What a run has finished, and where it keeps what it finishes.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use retrace_events::{History, Rollout, RolloutKey, Spend};
use retrace_journal::{CompactionRecord, Journal, JournalError, Kept, Record, RolloutRecord, Run};
use retrace_score::Compaction;
use tokio::sync::{mpsc, oneshot};

use crate::cell::CompactionOutcome;
use crate::plan::Site;

/// The books of a run: those of a folder, or none.
pub(crate) struct Books(Option<InFolder>);

struct InFolder {
    /// What was finished before.
    run: Run,
    keeper: Keeper,
}

/// Why something could not be kept, or not be read again.
pub(crate) type Lost = Arc<JournalError>;

impl Books {
    /// Nothing was finished, and nothing is kept.
    pub(crate) fn none() -> Self {
        Self(None)
    }

    pub(crate) fn in_folder(run: Run, journal: Journal) -> io::Result<Self> {
        let keeper = Keeper::start(journal, run.folder().to_owned())?;
        Ok(Self(Some(InFolder { run, keeper })))
    }

    /// What was finished before, if anything is kept at all.
    pub(crate) fn run(&self) -> Option<&Run> {
        self.0.as_ref().map(|books| &books.run)
    }

    /// Whether something at the boundaries of a recording is not finished.
    pub(crate) fn lack(&self, sites: &[Site]) -> bool {
        let Some(run) = self.run() else { return true };
        sites.iter().any(|site| run.boundary(&site.key()).is_none() || run.lacks(site.boundary.trajectory().id()))
    }

    /// What was spent before.
    pub(crate) fn spent(&self) -> Spend {
        self.run().map(Run::spent).unwrap_or_default()
    }

    /// Keeps records: they are on the disk when this returns.
    pub(crate) async fn keep(&self, records: Vec<Record>) -> Result<(), Lost> {
        match &self.0 {
            Some(books) if !records.is_empty() => books.keeper.keep(records).await,
            _ => Ok(()),
        }
    }

    /// A compaction that was finished before, given what it was applied to.
    pub(crate) fn compaction(
        &self,
        site: &Site,
        strategy: &str,
        given: &History,
    ) -> Result<Option<CompactionOutcome>, Lost> {
        let Some(run) = self.run() else { return Ok(None) };
        let Some(record) = run.compaction(&site.key(), strategy)? else { return Ok(None) };
        let history = match &record.outcome {
            Compaction::Failed { .. } | Compaction::Flawed { .. } => None,
            Compaction::Unchanged => Some(site.boundary.history()),
            Compaction::Compacted { .. } => run.history(&record, &site.boundary.trajectory().recording().events)?,
        };
        let CompactionRecord { outcome: compaction, lost_task, spend, .. } = record;
        let left = Some(history.clone().unwrap_or_else(|| given.clone()));
        Ok(Some(CompactionOutcome { compaction, lost_task, spend, history, left }))
    }

    pub(crate) async fn keep_compaction(
        &self,
        site: &Site,
        strategy: &str,
        outcome: &CompactionOutcome,
    ) -> Result<(), Lost> {
        if self.0.is_none() {
            return Ok(());
        }
        let events = &site.boundary.trajectory().recording().events;
        let kept = match outcome.compaction {
            Compaction::Compacted { .. } => outcome.history.as_ref().map(|history| Kept::of(history, events)),
            _ => None,
        };
        let record = CompactionRecord {
            recording: site.boundary.trajectory().id().to_owned(),
            cut: site.boundary.cut(),
            strategy: strategy.to_owned(),
            outcome: outcome.compaction.clone(),
            lost_task: outcome.lost_task,
            spend: outcome.spend,
            kept,
        };
        self.keep(vec![Record::Compaction(record)]).await
    }

    /// Whether a rollout was finished before.
    pub(crate) fn has_rollout(&self, key: &RolloutKey) -> bool {
        self.run().is_some_and(|run| run.has_rollout(key))
    }

    /// A rollout that was finished before.
    pub(crate) fn rollout(&self, key: &RolloutKey) -> Result<Option<Rollout>, Lost> {
        let Some(run) = self.run() else { return Ok(None) };
        Ok(run.rollout(key)?.map(|record| record.rollout))
    }

    pub(crate) async fn keep_rollout(&self, key: &RolloutKey, rollout: &Rollout) -> Result<(), Lost> {
        if self.0.is_none() {
            return Ok(());
        }
        let record = RolloutRecord { key: key.clone(), rollout: rollout.clone() };
        self.keep(vec![Record::Rollout(record)]).await
    }
}

/// A thread that writes, so that nothing else waits for the disk, and what is finished together is synced together.
struct Keeper {
    folder: PathBuf,
    entries: Option<mpsc::UnboundedSender<Entry>>,
    thread: Option<JoinHandle<()>>,
}

struct Entry {
    records: Vec<Record>,
    written: oneshot::Sender<Result<(), Lost>>,
}

/// The most entries that are written at once.
const MOST: usize = 1000;

impl Keeper {
    fn start(mut journal: Journal, folder: PathBuf) -> io::Result<Self> {
        let (entries, mut coming) = mpsc::unbounded_channel::<Entry>();
        let thread = thread::Builder::new().name("journal".to_owned()).spawn(move || {
            while let Some(first) = coming.blocking_recv() {
                let more = std::iter::from_fn(|| coming.try_recv().ok()).take(MOST - 1);
                let (records, waiting): (Vec<_>, Vec<_>) =
                    std::iter::once(first).chain(more).map(|entry| (entry.records, entry.written)).unzip();
                let written = journal.append(&records.into_iter().flatten().collect::<Vec<_>>()).map_err(Arc::new);
                for one in waiting {
                    // Whoever does not wait any more has been stopped.
                    let _ = one.send(written.clone());
                }
            }
        })?;
        Ok(Self { folder, entries: Some(entries), thread: Some(thread) })
    }

    async fn keep(&self, records: Vec<Record>) -> Result<(), Lost> {
        let (written, answer) = oneshot::channel();
        let sent = self.entries.as_ref().map(|entries| entries.send(Entry { records, written }));
        match (sent, answer.await) {
            (Some(Ok(())), Ok(written)) => written,
            _ => {
                let source = io::Error::other("the thread that writes it has ended");
                Err(Arc::new(JournalError::Io { action: "write the journal in", path: self.folder.clone(), source }))
            }
        }
    }
}

impl Drop for Keeper {
    /// What was handed over is written before the journal is let go.
    fn drop(&mut self) {
        self.entries = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
