//! What is run: the boundaries of the recordings, checked before anything is spent.

use std::collections::HashSet;
use std::io::{self, Write};
use std::sync::Arc;

use retrace_env::Environment;
use retrace_events::codec::write_recording;
use retrace_events::tokens::{SentCount, TokenCounter, Tokens};
use retrace_events::{Boundary, Event, NotResumable, Recording, ToolSpec, Trajectory};
use retrace_journal::{PlannedRecording, Shard, Site as SiteKey};
use retrace_score::{EnvironmentKind, RecordingFacts, RecordingLength, Size, UnusableRecording};
use retrace_strategies::RunSoFar;
use sha2::{Digest, Sha256};

use crate::settings::{Group, Settings};

/// What is run, recording by recording.
#[derive(Default)]
pub(crate) struct Plan {
    pub(crate) sites: Vec<Site>,
    pub(crate) recordings: Vec<RecordingFacts>,
    /// The recordings themselves, and what a journal knows them by, in the same order.
    pub(crate) trajectories: Vec<Arc<Trajectory>>,
    pub(crate) planned: Vec<PlannedRecording>,
    /// Where each is cut, also where another shard runs.
    pub(crate) cuts: Vec<Vec<usize>>,
    pub(crate) unusable: Vec<UnusableRecording>,
    pub(crate) n_left_out: usize,
}

/// A boundary and what its rollouts run in.
pub(crate) struct Site {
    pub(crate) boundary: Boundary,
    pub(crate) environment: Arc<dyn Environment>,
    pub(crate) size: Size,
    pub(crate) run_so_far: RunSoFar,
    /// The index of its recording among the facts.
    pub(crate) recording: usize,
    /// Whether it is the first boundary of a recording whose environment rebuilds state.
    pub(crate) checks_rebuilds: bool,
    /// The tools that an agent is offered here, once they are known.
    pub(crate) tools: Option<Arc<[ToolSpec]>>,
    /// Why nothing can run here, if nothing can.
    pub(crate) unusable: Option<String>,
}

impl Site {
    /// What a journal knows it by.
    pub(crate) fn key(&self) -> SiteKey {
        SiteKey { recording: self.boundary.trajectory().id().to_owned(), cut: self.boundary.cut() }
    }
}

impl Plan {
    /// Reads the recordings and cuts them.
    ///
    /// # Errors
    /// When a cut that was asked for cannot be.
    pub(crate) fn new(groups: Vec<Group>, settings: &Settings) -> Result<Self, NotResumable> {
        let mut plan = Self::default();
        let mut ids = HashSet::new();
        for Group { recordings, environment, kind, cuts, description } in groups {
            for recording in recordings {
                if !ids.insert(recording.header.id.clone()) {
                    let reason = "another recording has the same id; give each its own `id` in its first line";
                    plan.unusable.push(UnusableRecording { name: recording.header.id, reason: reason.to_owned() });
                    continue;
                }
                plan.planned.push(PlannedRecording {
                    id: recording.header.id.clone(),
                    sha256: sha256(&recording),
                    cuts: cuts.clone(),
                    environment: description.clone(),
                });
                let trajectory = Arc::new(Trajectory::new(recording));
                let boundaries = plan.boundaries(&trajectory, cuts.as_deref(), settings)?;
                plan.cuts.push(boundaries.iter().map(Boundary::cut).collect());
                let before = Before::at(&boundaries, &trajectory, &*settings.counter);
                plan.sites.extend(boundaries.into_iter().zip(before).enumerate().map(|(index, (boundary, before))| {
                    Site {
                        size: before.size,
                        run_so_far: before.run_so_far,
                        boundary,
                        environment: Arc::clone(&environment),
                        recording: plan.recordings.len(),
                        checks_rebuilds: index == 0 && kind == EnvironmentKind::Rebuilt,
                        tools: None,
                        unusable: None,
                    }
                }));
                plan.recordings.push(RecordingFacts {
                    id: trajectory.id().to_owned(),
                    task: trajectory.task().map(str::to_owned),
                    length: Some(RecordingLength {
                        n_actions: trajectory.actions().len(),
                        n_rounds: trajectory.n_rounds(),
                    }),
                    environment: kind,
                    replay: None,
                    worlds_differ: None,
                });
                plan.trajectories.push(trajectory);
            }
        }
        Ok(plan)
    }

    /// Leaves a share of the boundaries: every so many-th, or of a chain the recordings.
    pub(crate) fn keep_shard(&mut self, shard: Shard, chain: bool) {
        let mut number = 0;
        self.sites.retain(|site| {
            let index = if chain { site.recording } else { number };
            number += 1;
            index % shard.of as usize == shard.index as usize - 1
        });
    }

    /// At how many boundaries something can run.
    pub(crate) fn n_usable(&self) -> usize {
        self.sites.iter().filter(|site| site.unusable.is_none()).count()
    }

    fn boundaries(
        &mut self,
        trajectory: &Arc<Trajectory>,
        cuts: Option<&[usize]>,
        settings: &Settings,
    ) -> Result<Vec<Boundary>, NotResumable> {
        let cuts = match cuts {
            Some(cuts) => {
                let mut cuts = cuts.to_vec();
                cuts.sort_unstable();
                cuts.dedup();
                cuts
            }
            None => {
                let chosen = trajectory.choose_cuts(&settings.spacing);
                self.n_left_out += chosen.n_left_out;
                chosen.cuts.iter().map(|point| point.cut).collect()
            }
        };
        cuts.into_iter().map(|cut| Boundary::new(trajectory, cut)).collect()
    }
}

/// The SHA-256 of a recording as it is written, in hexadecimal digits.
fn sha256(recording: &Recording) -> String {
    struct Hash(Sha256);
    impl Write for Hash {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.update(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut hash = Hash(Sha256::new());
    write_recording(&mut hash, recording).expect("hashing does not fail");
    hash.0.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What lies before a boundary.
#[derive(Clone, Copy, Default)]
struct Before {
    size: Size,
    run_so_far: RunSoFar,
}

impl Before {
    /// What lies before each boundary, in one pass over the recording.
    fn at(boundaries: &[Boundary], trajectory: &Trajectory, counter: &dyn TokenCounter) -> Vec<Self> {
        let (mut before, mut sent) = (Self::default(), SentCount::new(counter));
        let mut events = trajectory.recording().events.iter();
        let mut n_read = 0;
        let at = boundaries.iter().map(|boundary| {
            for event in events.by_ref().take(boundary.cut() - n_read) {
                sent.push(event);
                before.add(event);
            }
            n_read = boundary.cut();
            before.size.tokens = sent.tokens();
            before
        });
        at.collect()
    }

    fn add(&mut self, event: &Event) {
        self.size.events += usize::from(event.counts());
        let spent = match event {
            Event::Response(response) => response.usage.as_ref().map_or(0, |usage| usage.total_tokens()),
            // A response already tells its own tokens; what is left is what compactions of the recorded run spent.
            Event::Usage(event) if event.kind == "compaction" => event.usage.total_tokens(),
            _ => return,
        };
        self.run_so_far.n_requests += 1;
        self.run_so_far.total_tokens += Tokens(spent);
    }
}
