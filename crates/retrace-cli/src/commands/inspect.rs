//! `retrace inspect`: what recordings hold, where they can be cut, and what each strategy keeps there.

mod chain;
mod table;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use indexmap::IndexMap;
use retrace_events::cuts::Spacing;
use retrace_events::tokens::{TokenCounter, Tokens, count_sent};
use retrace_events::{Boundary, PairingFinding, Trajectory, with_causes};
use retrace_model::{Prompt, Rules};
use retrace_report::json;
use retrace_stats::{Exact, median, nearest_double};
use retrace_strategies::{
    CacheKept, Changes, ClearToolResults, CompactContext, CompactError, Compacted, SlidingWindow, Strategy, Summarize,
    TailWindow,
};
use retrace_verifier::{Settings, Timed};
use serde::Serialize;

use crate::args::InspectArgs;
use crate::config::Config;
use crate::exit::Exit;
use crate::{
    failure, files, output, runtime,
    setup::{Base, Compacting},
};

/// What is said of recordings.
#[derive(Serialize)]
struct Inspection {
    token_counter: String,
    recordings: Vec<Facts>,
    total: Total,
    /// What strategies keep at the boundaries, by name.
    strategies: IndexMap<String, Kept>,
}

/// What is said of one recording.
#[derive(Serialize)]
struct Facts {
    id: String,
    file: PathBuf,
    #[serde(flatten)]
    counts: Counts,
    /// Events before each boundary that a verification with this spacing takes.
    boundaries: Vec<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cuts: Option<Vec<Cut>>,
}

/// What is counted in a recording, or in all of them.
#[derive(Default, Serialize)]
struct Counts {
    events: usize,
    rounds: usize,
    actions: usize,
    blocked: usize,
    /// Actions whose call had been executed before.
    repeats: usize,
    /// Results of which nobody has said whether they are failures.
    undecided: usize,
    /// Boundaries that there would be without the limit per recording.
    left_out: usize,
    unanswered_calls: usize,
    orphan_results: usize,
}

/// A point at which a recording can be resumed.
#[derive(Serialize)]
struct Cut {
    cut: usize,
    executed: usize,
}

#[derive(Default, Serialize)]
struct Total {
    recordings: usize,
    #[serde(flatten)]
    counts: Counts,
    boundaries: usize,
}

/// What a strategy keeps.
#[derive(Serialize)]
struct Kept {
    kind: &'static str,
    boundaries: usize,
    unchanged: usize,
    /// Boundaries at which it would ask a model, and so cannot be told what it keeps.
    asks_a_model: usize,
    /// The median number of tokens of its questions.
    question_tokens: Option<f64>,
    /// The median share of the tokens that it keeps, where no boundary needs a model to tell; an unchanged history counts
    /// as 1.
    kept: Option<f64>,
    /// The median share of what it keeps that still starts as the raw history does, where no boundary needs a model to
    /// tell.
    cache_kept: Option<f64>,
    failed: usize,
    /// Boundaries at which any model would refuse what it keeps.
    flawed: usize,
    /// What becomes of the history at each boundary.
    at: Vec<KeptAt>,
    /// What becomes of it when the strategy ran at every earlier boundary, too, where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    chain: Option<Vec<chain::Link>>,
}

/// What becomes of the history at a boundary.
#[derive(Serialize)]
struct KeptAt {
    recording: String,
    cut: usize,
    #[serde(flatten)]
    fate: Fate,
}

/// What a strategy does there, in tokens.
#[derive(Serialize)]
#[serde(untagged)]
enum Fate {
    Changes {
        kept: Tokens,
        dropped: Tokens,
        blanked: Tokens,
        made: Tokens,
        /// The index of the first event that is another than before; nothing where none is.
        first_changed: Option<usize>,
    },
    Asks {
        question_tokens: Tokens,
    },
    Failed {
        failed: String,
    },
}

impl Fate {
    fn of(changes: Changes, first_changed: Option<usize>) -> Self {
        let Changes { kept, dropped, blanked, made } = changes;
        Self::Changes { kept, dropped, blanked, made, first_changed }
    }
}

pub(crate) fn run(args: &InspectArgs) -> Result<Exit> {
    let config = args.config.as_deref().map(Config::read).transpose()?;
    let rule = args.outcome.failed_if.clone().or_else(|| config.as_ref().and_then(|config| config.outcome.clone()));
    let settings = config.as_ref().map_or_else(|| Ok(Settings::default()), Config::settings)?;
    let (mut recordings, mut boundaries) = (Vec::new(), Vec::new());
    let files = files::recordings_in(&args.recordings)?;
    let (n_files, mut files_by_id) = (files.len(), HashMap::new());
    for file in files {
        let recording = match files::read_another(&file, rule.as_ref(), &mut files_by_id) {
            Ok(recording) => recording,
            Err(error) if n_files > 1 => {
                failure::warn(&error);
                continue;
            }
            Err(error) => return Err(error),
        };
        let trajectory = Arc::new(Trajectory::new(recording));
        let (facts, cuts) = Facts::new(file, &trajectory, &settings.spacing, args.cuts);
        for cut in cuts {
            boundaries.push(Boundary::new(&trajectory, cut)?);
        }
        recordings.push(facts);
    }
    let chains = args.chain || config.as_ref().is_some_and(|config| config.chain);
    let strategies = runtime::run(async {
        let mut kept = IndexMap::new();
        for (name, strategy) in strategies(config, args.config.as_deref(), settings.limits.strategy).await? {
            let mut found = Kept::new(&*strategy, &boundaries, &*settings.counter).await;
            if chains {
                found.chain = Some(chain::links(&*strategy, &boundaries, &*settings.counter).await);
            }
            kept.insert(name, found);
        }
        Ok(kept)
    })?;
    let inspection = Inspection {
        token_counter: settings.counter.name().to_owned(),
        total: Total::new(&recordings),
        strategies,
        recordings,
    };
    if args.json {
        output::print(&json(&inspection))?;
    } else {
        output::print(&table::text(&inspection, args.strategies))?;
    }
    Ok(if inspection.recordings.is_empty() { Exit::CouldNotRun } else { Exit::Ok })
}

/// The strategies of a configuration, each with this much time for a compaction, or those to look at where there is none.
pub(super) async fn strategies(
    config: Option<Config>,
    file: Option<&Path>,
    limit: Duration,
) -> Result<IndexMap<String, Arc<dyn Strategy>>> {
    let Some(config) = config else { return Ok(default_strategies()) };
    let base = Base::new(&config, file.unwrap_or(Path::new("")));
    let mut strategies = IndexMap::new();
    for (name, table) in config.strategies {
        let strategy = Compacting::start(&name, table, &base).await?.strategy;
        strategies.insert(name, Arc::new(Timed::new(strategy, limit)) as Arc<dyn Strategy>);
    }
    Ok(strategies)
}

/// One of each sort: what drops, what blanks, what asks a model.
fn default_strategies() -> IndexMap<String, Arc<dyn Strategy>> {
    let strategies: [(&str, Arc<dyn Strategy>); 4] = [
        ("tail", Arc::new(TailWindow::new(10))),
        ("window", Arc::new(SlidingWindow { keep_messages: 10, ..SlidingWindow::default() })),
        ("clear", Arc::new(ClearToolResults::default())),
        ("summary", Arc::new(Summarize::new(10))),
    ];
    strategies.into_iter().map(|(name, strategy)| (name.to_owned(), strategy)).collect()
}

impl Facts {
    /// The facts of a recording, and where a verification would cut it.
    fn new(file: PathBuf, trajectory: &Trajectory, spacing: &Spacing, lists_cuts: bool) -> (Self, Vec<usize>) {
        let recording = trajectory.recording();
        let actions = trajectory.actions();
        let chosen = trajectory.choose_cuts(spacing);
        let boundaries: Vec<_> = chosen.cuts.iter().map(|point| point.cut).collect();
        let mut seen = HashSet::new();
        let undecided = |action: &&retrace_events::RecordedAction| {
            action.result().outcome_from == Some(retrace_events::OutcomeSource::Unknown)
        };
        let cuts = || {
            let points = trajectory.resumable_points().iter();
            points.map(|point| Cut { cut: point.cut, executed: point.executed }).collect()
        };
        let is_call = |finding: &&PairingFinding| matches!(finding, PairingFinding::UnansweredCall { .. });
        let unanswered_calls = trajectory.findings().iter().filter(is_call).count();
        let counts = Counts {
            events: recording.events.len(),
            rounds: trajectory.n_rounds(),
            actions: actions.len(),
            blocked: actions.iter().filter(|action| action.action.is_blocked()).count(),
            repeats: actions.iter().filter(|action| !seen.insert(action.action.signature())).count(),
            undecided: actions.iter().filter(undecided).count(),
            left_out: chosen.n_left_out,
            unanswered_calls,
            orphan_results: trajectory.findings().len() - unanswered_calls,
        };
        let facts = Self {
            id: recording.header.id.clone(),
            file,
            counts,
            boundaries: boundaries.clone(),
            cuts: lists_cuts.then(cuts),
        };
        (facts, boundaries)
    }
}

impl Total {
    fn new(recordings: &[Facts]) -> Self {
        recordings.iter().fold(Self::default(), |mut total, facts| {
            total.recordings += 1;
            total.boundaries += facts.boundaries.len();
            total.counts.add(&facts.counts);
            total
        })
    }
}

impl Counts {
    fn add(&mut self, other: &Self) {
        let Self { events, rounds, actions, blocked, repeats, undecided, left_out, unanswered_calls, orphan_results } =
            other;
        self.events += events;
        self.rounds += rounds;
        self.actions += actions;
        self.blocked += blocked;
        self.repeats += repeats;
        self.undecided += undecided;
        self.left_out += left_out;
        self.unanswered_calls += unanswered_calls;
        self.orphan_results += orphan_results;
    }
}

impl Kept {
    /// Applies a strategy at every boundary, with no model to ask.
    async fn new(strategy: &dyn Strategy, boundaries: &[Boundary], counter: &dyn TokenCounter) -> Self {
        let (mut unchanged, mut failed, mut flawed) = (0, 0, 0);
        let (mut questions, mut shares, mut cached) = (Vec::new(), Vec::new(), Vec::new());
        let mut at = Vec::with_capacity(boundaries.len());
        for boundary in boundaries {
            let before = boundary.history();
            let mut cx = CompactContext::without_model();
            cx.counter = counter;
            let fate = match strategy.compact(&before, &mut cx).await {
                Ok(Compacted::Unchanged) => {
                    unchanged += 1;
                    shares.push(Exact::from_integer(1.into()));
                    cached.push(Exact::from_integer(1.into()));
                    Fate::of(Changes::of(counter, &before, &before), None)
                }
                Ok(Compacted::Changed(after)) => {
                    let prompt = Prompt { instructions: None, history: &after, tools: &[], seed: 0 };
                    flawed += usize::from(!Rules::default().flaws(&prompt, &before).is_empty());
                    let (cache, size) = (CacheKept::of(counter, &before, &after), count_sent(counter, &before));
                    if size.0 > 0 {
                        shares.push(Exact::new(cache.whole.0.into(), size.0.into()));
                    }
                    if cache.whole.0 > 0 {
                        cached.push(Exact::new(cache.start.0.into(), cache.whole.0.into()));
                    }
                    Fate::of(Changes::of(counter, &before, &after), cache.first_changed)
                }
                Err(CompactError::NotAsked { question }) => {
                    questions.push(Exact::from_integer(question.0.into()));
                    Fate::Asks { question_tokens: question }
                }
                Err(error) => {
                    failed += 1;
                    Fate::Failed { failed: with_causes(&error) }
                }
            };
            at.push(KeptAt { recording: boundary.trajectory().id().to_owned(), cut: boundary.cut(), fate });
        }
        let share =
            |shares: &[Exact]| median(shares).filter(|_| questions.is_empty()).map(|median| nearest_double(&median));
        Self {
            kind: strategy.kind(),
            boundaries: boundaries.len(),
            unchanged,
            asks_a_model: questions.len(),
            question_tokens: median(&questions).map(|median| nearest_double(&median)),
            kept: share(&shares),
            cache_kept: share(&cached),
            failed,
            flawed,
            at,
            chain: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use retrace_events::tokens::FourCharacters;
    use retrace_events::{Event, Header, Outcome, Recording, ToolCall, ToolResult};

    use super::*;

    /// One token for every character.
    struct Characters;

    impl TokenCounter for Characters {
        fn name(&self) -> &str {
            "characters"
        }

        fn units(&self, text: &str) -> u64 {
            FourCharacters.units(text)
        }

        fn tokens(&self, units: u64) -> Tokens {
            Tokens(units)
        }
    }

    #[test]
    fn a_strategy_counts_as_the_inspection_does() {
        let rounds = (0..20).flat_map(|n| {
            let call = ToolCall::new(n.to_string(), "read", "{}");
            let result = ToolResult::text_result(&call, Outcome::Ok, "x".repeat(94));
            [Event::calls([call]), Event::results([result])]
        });
        let events: Vec<_> = [Event::request("Read.")].into_iter().chain(rounds).collect();
        let n_events = events.len();
        let trajectory = Arc::new(Trajectory::new(Recording::new(Header::new("a"), events)));
        let boundaries = [Boundary::new(&trajectory, n_events).unwrap()];
        let strategy =
            SlidingWindow { keep_tokens: Some(200), preserve_first_user_message: false, ..Default::default() };
        let kept =
            |counter: &dyn TokenCounter| pollster::block_on(Kept::new(&strategy, &boundaries, counter)).kept.unwrap();
        // Of 20 rounds of 100 characters two have 200 tokens, or eight if a token is four characters.
        let (characters, four) = (kept(&Characters), kept(&FourCharacters));
        assert!((0.09..=0.16).contains(&characters) && (0.39..=0.46).contains(&four), "{characters} {four}");
    }
}
