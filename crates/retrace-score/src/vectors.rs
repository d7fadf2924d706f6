//! The vectors: rollouts with the deltas and aggregates that another program, and a second method, found for them.

use std::collections::HashSet;

use indexmap::IndexMap;
use num_traits::One;
use retrace_events::tokens::Tokens;
use retrace_events::{Action, EndReason, Outcome, Rollout, Signature, Spend, Stage};
use retrace_stats::{Exact, nearest_double};
use serde::Deserialize;
use serde_json::Value;

use crate::*;

fn read<T: for<'de> Deserialize<'de>>(file: &str) -> impl Iterator<Item = T> {
    retrace_testing::vectors::rows(file).into_iter().map(|row| serde_json::from_value(row).unwrap())
}

#[derive(Deserialize)]
struct ActionRow {
    name: String,
    arguments: String,
    signature: String,
    blocked: bool,
}

#[derive(Deserialize)]
struct DeltaRow {
    horizon: usize,
    blocked: String,
    refetch: String,
    wasted: String,
    stopped: String,
    harm: String,
}

#[derive(Deserialize)]
struct ScoreRow {
    name: String,
    pre: Vec<Vec<ActionRow>>,
    post: Vec<Vec<ActionRow>>,
    history: Vec<String>,
    key: String,
    horizons: Vec<usize>,
    #[serde(default)]
    deltas: Vec<DeltaRow>,
    error: Option<String>,
}

#[derive(Deserialize)]
struct ReportRow {
    name: String,
    horizon: usize,
    boundaries: Vec<BoundaryRow>,
    expect: IndexMap<String, ExpectRow>,
    ag2: IndexMap<String, Ag2Row>,
    report: SaidOnceRow,
}

/// What ag2 itself made of it.
#[derive(Debug, Deserialize)]
struct Ag2Row {
    /// Missing where it scored nothing.
    #[serde(default)]
    intervals_at_full_horizon: IndexMap<String, [f64; 2]>,
    #[serde(default)]
    starred: IndexMap<String, bool>,
}

#[derive(Deserialize)]
struct BoundaryRow {
    recording: usize,
    cut: usize,
    history: Vec<String>,
    pre_events: usize,
    pre_tokens: u64,
    pre: Vec<RolloutRow>,
    strategies: IndexMap<String, StrategyRow>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum StrategyRow {
    Failed { compaction_error: String },
    Ran { post_events: usize, post_tokens: u64, unchanged: bool, compaction_tokens: u64, post: Vec<RolloutRow> },
}

#[derive(Deserialize)]
#[serde(untagged)]
enum RolloutRow {
    Failed { error: String },
    Ran { actions: Vec<ActionRow> },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExpectRow {
    tested: usize,
    scored: usize,
    unscored: usize,
    means: Vec<DeltaRow>,
    wasted: Vec<String>,
    median_token_ratio: String,
    unchanged: usize,
    grown: usize,
    post_rollouts: usize,
    failed: usize,
    pre_rollouts: usize,
    failed_pre: usize,
    failure_asymmetry: Option<String>,
    post_errors: Vec<(String, usize)>,
    failed_compactions: usize,
    compaction_errors: Vec<(String, usize)>,
    sign_test_p: f64,
    permutation_p: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SaidOnceRow {
    boundaries: usize,
    recordings: usize,
    pre_rollouts: usize,
    failed_pre_rollouts: usize,
    pre_errors: Vec<(String, usize)>,
}

/// The marks of what was executed, as the rows write them: what a signature is displayed as, or a tool.
struct Marks(HashSet<String>);

impl Executed for Marks {
    fn has_executed(&self, call: &Signature) -> bool {
        self.0.contains(&call.to_string())
    }

    fn has_used(&self, tool: &str) -> bool {
        self.0.contains(tool)
    }
}

fn rollout(actions: Vec<ActionRow>) -> Rollout {
    let action = |row: ActionRow| {
        let outcome = if row.blocked { Outcome::Error } else { Outcome::Ok };
        let action = Action::new(row.name, row.arguments, outcome, None);
        assert_eq!(action.signature().to_string(), row.signature);
        action
    };
    let actions = actions.into_iter().map(action).collect();
    Rollout { actions, end: EndReason::Answer, n_answers: 1, spend: Spend::default(), sent: None }
}

fn rollouts(rows: Vec<RolloutRow>) -> Vec<Rollout> {
    let rollouts = rows.into_iter().map(|row| match row {
        RolloutRow::Failed { error } => Rollout::failed(Stage::Agent, error),
        RolloutRow::Ran { actions } => rollout(actions),
    });
    rollouts.collect()
}

impl DeltaRow {
    fn channels(&self) -> Channels<Exact> {
        Channels {
            blocked: self.blocked.parse().unwrap(),
            refetch: self.refetch.parse().unwrap(),
            wasted: self.wasted.parse().unwrap(),
            stopped: self.stopped.parse().unwrap(),
            harm: self.harm.parse().unwrap(),
        }
    }
}

#[test]
fn vectors_of_one_boundary() {
    for row in read::<ScoreRow>("verifier/score.jsonl") {
        let [pre, post] = [row.pre, row.post].map(|arm| arm.into_iter().map(rollout).collect::<Vec<_>>());
        let key = match &*row.key {
            "call" => Key::Call,
            "tool" => Key::Tool,
            key => panic!("{}: key {key}", row.name),
        };
        let executed = Marks(row.history.into_iter().collect());
        let scores = match score_boundary_by(key, &pre, &post, &executed, &row.horizons) {
            Err(ScoreError::EmptyArm { .. }) => {
                assert_eq!(row.error.as_deref(), Some("empty_arm"), "{}", row.name);
                continue;
            }
            Ok(scores) => scores,
        };
        assert_eq!(row.error, None, "{}", row.name);
        let found: Vec<_> = scores.into_iter().map(|at| (at.horizon, at.score.delta().unwrap())).collect();
        let expected: Vec<_> = row.deltas.iter().map(|at| (at.horizon, at.channels())).collect();
        assert_eq!(found, expected, "{}", row.name);
    }
}

#[test]
fn vectors_of_whole_verifications() {
    for row in read::<ReportRow>("verifier/report.jsonl") {
        let name = row.name.clone();
        let (expect, once) = (row.expect, row.report);
        let strategies: Vec<String> = expect.keys().cloned().collect();
        let boundaries: Vec<_> = row.boundaries.into_iter().map(BoundaryRow::outcome).collect();
        let ids: indexmap::IndexSet<_> = boundaries.iter().map(|boundary| boundary.recording.clone()).collect();
        let facts = |id| RecordingFacts::new(id, EnvironmentKind::Rebuilt);
        let report = Report::new(Verification {
            horizon: row.horizon,
            samples: 3,
            seed: 0,
            token_counter: "characters / 4".to_owned(),
            prices: None,
            model: None,
            control: strategies.iter().find(|name| *name == "control").cloned(),
            strategies,
            recordings: ids.into_iter().map(facts).collect(),
            unusable: Vec::new(),
            n_left_out: 0,
            chain: false,
            judging: crate::Judging::default(),
            n_not_reached: 0,
            unfinished: None,
            boundaries,
        })
        .unwrap();

        assert_eq!(report.boundaries.len(), once.boundaries, "{name}");
        assert_eq!(report.recordings.len(), once.recordings, "{name}");
        let failed = Failed { failed: once.failed_pre_rollouts, n_rollouts: once.pre_rollouts };
        assert_eq!(report.pre.failed_at(row.horizon), Some(failed), "{name}");
        assert_eq!(counts(&report.pre.errors), once.pre_errors, "{name}");
        assert_eq!(report.strategies.len(), expect.len(), "{name}");
        for (strategy, expect) in expect {
            let case = format!("{name}, {strategy}");
            check(&case, &report, &strategy, &expect);
            if let Some(deltas) = &report.strategies[&strategy].horizons[row.horizon - 1].deltas {
                row.ag2[&strategy].check(
                    &case,
                    deltas,
                    report.strategies[&strategy].horizons[row.horizon - 1].n_scored,
                );
            }
        }
    }
}

impl Ag2Row {
    /// Its intervals are of 10,000 draws and ours of all, so they agree to the noise of its draws; its stars are those of
    /// intervals from ten boundaries on.
    fn check(&self, case: &str, deltas: &Channels<Estimate>, n_scored: usize) {
        let channels = [
            ("blocked", &deltas.blocked),
            ("refetch", &deltas.refetch),
            ("wasted", &deltas.wasted),
            ("stopped", &deltas.stopped),
        ];
        for (name, estimate) in channels {
            let Some(interval) = &estimate.interval else { continue };
            let (low, high) = (nearest_double(&interval.low), nearest_double(&interval.high));
            let [its_low, its_high] = self.intervals_at_full_horizon[name];
            // A step of the grid of three rollouts an arm, and what is left on finer ones.
            let noise = 0.06 * (high - low) + 1.01 / (3 * n_scored) as f64;
            assert!(
                (low - its_low).abs() <= noise && (high - its_high).abs() <= noise,
                "{case} {name}: {interval:?} {self:?}"
            );
            assert_eq!(n_scored >= 10 && interval.excludes_zero(), self.starred[name], "{case} {name}: {interval:?}");
        }
    }
}

impl BoundaryRow {
    fn outcome(self) -> BoundaryOutcome {
        let strategies = self.strategies.into_iter().map(|(name, row)| (name, row.outcome()));
        BoundaryOutcome {
            recording: self.recording.to_string(),
            cut: self.cut,
            executed: self.history.len(),
            executed_calls: Box::new(Marks(self.history.into_iter().collect())),
            pre_size: Some(Size { events: self.pre_events, tokens: Tokens(self.pre_tokens) }),
            unusable: None,
            pre: rollouts(self.pre),
            strategies: strategies.collect(),
        }
    }
}

impl StrategyRow {
    fn outcome(self) -> StrategyOutcome {
        match self {
            Self::Failed { compaction_error: error } => StrategyOutcome {
                compaction: Compaction::Failed { error },
                lost_task: false,
                spend: Spend::default(),
                post: Vec::new(),
            },
            Self::Ran { post_events, post_tokens, unchanged, compaction_tokens, post } => {
                let size = Size { events: post_events, tokens: Tokens(post_tokens) };
                StrategyOutcome {
                    lost_task: false,
                    compaction: if unchanged {
                        Compaction::Unchanged
                    } else {
                        Compaction::Compacted { size: Some(size), cached: None }
                    },
                    spend: Spend { input_tokens: compaction_tokens, ..Spend::default() },
                    post: rollouts(post),
                }
            }
        }
    }
}

fn counts(errors: &[ErrorCount]) -> Vec<(String, usize)> {
    errors.iter().map(|error| (error.text.clone(), error.count)).collect()
}

fn check(case: &str, report: &Report, name: &str, expect: &ExpectRow) {
    let strategy = &report.strategies[name];
    let full = strategy.at(report.horizon).unwrap();
    assert_eq!(strategy.n_tested, expect.tested, "{case}");
    assert_eq!(full.n_scored, expect.scored, "{case}");
    assert_eq!(full.unscored.iter().map(|unscored| unscored.count).sum::<usize>(), expect.unscored, "{case}");
    assert_eq!(strategy.n_unchanged, expect.unchanged, "{case}");
    assert_eq!(strategy.n_noop, 0, "{case}: every unchanged boundary of the vectors has rollouts");
    assert_eq!(strategy.n_grown, expect.grown, "{case}");
    assert_eq!(strategy.n_failed_compactions, expect.failed_compactions, "{case}");
    assert_eq!(counts(&strategy.compaction_errors), expect.compaction_errors, "{case}");
    assert_eq!(counts(&strategy.post.errors), expect.post_errors, "{case}");

    let means: Vec<_> = strategy.horizons.iter().filter_map(|at| Some((at.horizon, at.deltas.as_ref()?))).collect();
    assert_eq!(means.len(), expect.means.len(), "{case}");
    for ((horizon, estimates), expect) in means.iter().zip(&expect.means) {
        assert_eq!(*horizon, expect.horizon, "{case}");
        assert_eq!(estimates.as_ref().map(|estimate| estimate.mean.clone()), expect.channels(), "{case}");
        for Estimate { mean, interval, .. } in [&estimates.wasted, &estimates.stopped] {
            let Some(interval) = interval else { continue };
            assert!(interval.low <= *mean && *mean <= interval.high, "{case}");
        }
    }
    let at_boundaries = report.boundaries.iter().filter_map(|boundary| boundary.strategies.get(name));
    let wasted: Vec<_> =
        at_boundaries.filter_map(|here| here.scores[report.horizon - 1].score.delta()).map(|d| d.wasted).collect();
    assert_eq!(wasted, expect.wasted.iter().map(|d| d.parse().unwrap()).collect::<Vec<Exact>>(), "{case}");

    // The rows say 1 where there is nothing to divide.
    let kept = strategy.kept.clone().unwrap_or_else(Exact::one);
    assert_eq!(kept, expect.median_token_ratio.parse().unwrap(), "{case}");

    let failures = &full.failures;
    assert_eq!((failures.post.failed, failures.post.n_rollouts), (expect.failed, expect.post_rollouts), "{case}");
    assert_eq!((failures.pre.failed, failures.pre.n_rollouts), (expect.failed_pre, expect.pre_rollouts), "{case}");
    let more = failures.more.map(|side| serde_json::to_value(side).unwrap());
    assert_eq!(more.as_ref().and_then(Value::as_str), expect.failure_asymmetry.as_deref(), "{case}");

    assert_eq!(nearest_double(&full.sign_test_p), expect.sign_test_p, "{case}");
    assert_eq!(full.permutation_p.to_f64(), expect.permutation_p, "{case}");
}
