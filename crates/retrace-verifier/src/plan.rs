//! What is run: the boundaries of the recordings, checked before anything is spent.

use std::collections::HashSet;
use std::sync::Arc;

use retrace_env::Environment;
use retrace_events::tokens::{SentCount, TokenCounter, Tokens};
use retrace_events::{Boundary, Event, NotResumable, ToolSpec, Trajectory};
use retrace_score::{EnvironmentKind, RecordingFacts, RecordingLength, Size, UnusableRecording};
use retrace_strategies::RunSoFar;

use crate::settings::{Group, Settings};

/// What is run, recording by recording.
pub(crate) struct Plan {
    pub(crate) sites: Vec<Site>,
    pub(crate) recordings: Vec<RecordingFacts>,
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

impl Plan {
    /// Reads the recordings and cuts them.
    ///
    /// # Errors
    /// When a cut that was asked for cannot be.
    pub(crate) fn new(groups: Vec<Group>, settings: &Settings) -> Result<Self, NotResumable> {
        let mut plan = Self { sites: Vec::new(), recordings: Vec::new(), unusable: Vec::new(), n_left_out: 0 };
        let mut ids = HashSet::new();
        for Group { recordings, environment, kind, cuts } in groups {
            for recording in recordings {
                if !ids.insert(recording.header.id.clone()) {
                    let reason = "another recording has the same id; give each its own `id` in its first line";
                    plan.unusable.push(UnusableRecording { name: recording.header.id, reason: reason.to_owned() });
                    continue;
                }
                let trajectory = Arc::new(Trajectory::new(recording));
                let boundaries = plan.boundaries(&trajectory, cuts.as_deref(), settings)?;
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
            }
        }
        Ok(plan)
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
