//! The arguments of the program.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use retrace_events::{Dollars, OutcomeRule};
use retrace_journal::Shard;
use retrace_stats::Level;

/// Measures what compaction of an AI agent's history does to its next tool calls.
///
/// The agent is resumed several times from the raw history of a recorded run and from what a compaction strategy keeps
/// of it, in an environment rebuilt to the same state. Compared is how often its next calls fail or repeat work.
#[derive(Parser)]
#[command(name = "retrace", version, max_term_width = 100)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Verifies three strategies in a simulated shop: no key, no network, seconds
    Demo(DemoArgs),
    /// Writes a commented retrace.toml to start from
    Init(InitArgs),
    /// Turns transcripts of other programs into recordings
    Import(ImportArgs),
    /// Shows what recordings hold and where they can be cut; asks no model
    Inspect(InspectArgs),
    /// Lists what later calls of recordings needed and strategies do not keep; asks no model
    Audit(AuditArgs),
    /// Applies one strategy to the history of a recording
    Compact(CompactArgs),
    /// Runs the agent at its tasks and keeps the recordings
    Record(RecordArgs),
    /// Executes recorded calls again and says how far the environment answers alike; asks no model
    Replay(ReplayArgs),
    /// Resumes the agent from raw and compacted histories, and compares; goes on where it was stopped
    Verify(VerifyArgs),
    /// Shows what a run has found so far, by other margins or rules if they are given; asks no model
    Report(ReportArgs),
    /// Joins the shards of a verification into one run
    Merge(MergeArgs),
    /// Lists the strategies: what each costs and does, and its settings
    Strategies(StrategiesArgs),
    /// Scores rollouts that were collected elsewhere
    Score(ScoreArgs),
    /// Says what a verification will take, in rollouts, tokens and dollars, or, from the report of a pilot, what it takes to
    /// find a harm; asks no model
    Plan(PlanArgs),
}

#[derive(ClapArgs)]
pub(crate) struct DemoArgs {
    /// What all randomness is drawn from
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Also writes the recordings and the configuration to this folder, to go on from
    #[arg(long, value_name = "FOLDER")]
    pub(crate) save: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(ClapArgs)]
pub(crate) struct InitArgs {
    /// Where to write it
    #[arg(default_value = "retrace.toml")]
    pub(crate) file: PathBuf,
}

#[derive(ClapArgs)]
pub(crate) struct ImportArgs {
    /// Transcripts: OpenAI Chat Completions messages, as a list, an object with `messages`, a JSON Lines file of either,
    /// or a list of runs
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// The folder to write recordings to
    #[arg(short, long, value_name = "FOLDER")]
    pub(crate) output: PathBuf,
    /// The key under which each run has its messages, where it is not found by itself
    #[arg(long, value_name = "KEY")]
    pub(crate) messages_key: Option<String>,
    /// Replaces recordings that are there and differ
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(ClapArgs)]
pub(crate) struct InspectArgs {
    /// Recordings, or folders of them
    #[arg(required = true)]
    pub(crate) recordings: Vec<PathBuf>,
    /// Takes strategies, spacing and outcome rule from this configuration
    #[arg(short, long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) outcome: OutcomeArgs,
    /// Lists what each strategy keeps, drops and blanks at each boundary, in tokens
    #[arg(long, visible_alias = "boundaries")]
    pub(crate) strategies: bool,
    /// Lists what remains, in tokens, when each strategy runs at one boundary after the other on what it last left
    #[arg(long)]
    pub(crate) chain: bool,
    /// Lists every point at which a recording can be resumed
    #[arg(long)]
    pub(crate) cuts: bool,
    /// Prints JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(ClapArgs)]
pub(crate) struct AuditArgs {
    /// Recordings, or folders of them
    #[arg(required = true)]
    pub(crate) recordings: Vec<PathBuf>,
    /// Takes strategies, spacing and outcome rule from this configuration
    #[arg(short, long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) outcome: OutcomeArgs,
    /// Prints JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(ClapArgs)]
pub(crate) struct CompactArgs {
    /// The recording
    pub(crate) recording: PathBuf,
    /// A strategy: its name in the configuration, its kind, or a table such as `{"kind": "tail_window", "target": 8}`, in
    /// JSON or TOML
    #[arg(short, long)]
    pub(crate) strategy: String,
    /// Takes strategies, models and the token counter from this configuration; a strategy that asks a model asks the agent's
    #[arg(short, long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// What a summary is to keep in view
    #[arg(long, value_name = "TEXT")]
    pub(crate) focus: Option<String>,
    /// Shows what became of each event, in place of the compacted recording
    #[arg(long)]
    pub(crate) diff: bool,
    /// Writes the compacted recording to this new file instead of printing it
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
}

#[derive(ClapArgs)]
pub(crate) struct RecordArgs {
    /// The folder to write recordings to, instead of what the configuration says
    #[arg(short, long, value_name = "FOLDER")]
    pub(crate) output: Option<PathBuf>,
    /// Runs of each task, instead of what the configuration says
    #[arg(long)]
    pub(crate) runs: Option<u32>,
    #[command(flatten)]
    pub(crate) run: RunArgs,
}

#[derive(ClapArgs)]
pub(crate) struct ReplayArgs {
    /// Recordings, or folders of them, instead of those of the configuration
    pub(crate) recordings: Vec<PathBuf>,
    /// The configuration
    #[arg(short, long, value_name = "FILE", default_value = "retrace.toml")]
    pub(crate) config: PathBuf,
    /// The environment to replay in: the name of a table `[environments.NAME]`
    #[arg(short, long, value_name = "NAME")]
    pub(crate) environment: Option<String>,
    #[command(flatten)]
    pub(crate) outcome: OutcomeArgs,
    /// Prints JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// What runs an agent.
#[derive(ClapArgs)]
pub(crate) struct RunArgs {
    /// The configuration
    #[arg(short, long, value_name = "FILE", default_value = "retrace.toml")]
    pub(crate) config: PathBuf,
    /// How many runs of the agent go on at once
    #[arg(long)]
    pub(crate) concurrency: Option<usize>,
    /// What all randomness is drawn from
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
}

#[derive(ClapArgs)]
pub(crate) struct ModelArgs {
    /// Asks this model in place of every one of the configuration; `sim:wander` acts in any tools without a key
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// Keeps every answer of a model in this new file
    #[arg(long, value_name = "FILE", conflicts_with = "cassette")]
    pub(crate) record_cassette: Option<PathBuf>,
    /// Takes every answer from this file, and asks no model
    #[arg(long, value_name = "FILE")]
    pub(crate) cassette: Option<PathBuf>,
}

#[derive(ClapArgs)]
pub(crate) struct VerifyArgs {
    /// How many actions of a rollout are looked at, instead of what the configuration says
    #[arg(long)]
    pub(crate) horizon: Option<usize>,
    /// How many rollouts each arm of a boundary is given
    #[arg(long)]
    pub(crate) samples: Option<u32>,
    /// The folder that holds the run: what is finished there does not run again; else `runs` and the configuration's name,
    /// beside it
    #[arg(long = "run", value_name = "FOLDER")]
    pub(crate) folder: Option<PathBuf>,
    /// Runs one share of the boundaries, such as `2/8`; `retrace merge` joins them
    #[arg(long, value_name = "I/N")]
    pub(crate) shard: Option<ShardArg>,
    /// Starts nothing new once the run has cost so many dollars
    #[arg(long, value_name = "USD")]
    pub(crate) budget: Option<DollarsArg>,
    /// Starts nothing new once the run has taken so many tokens, of requests and answers together
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) budget_tokens: Option<u64>,
    #[command(flatten)]
    pub(crate) run: RunArgs,
    #[command(flatten)]
    pub(crate) outcome: OutcomeArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// A share of the boundaries.
#[derive(Clone, Copy)]
pub(crate) struct ShardArg(pub(crate) Shard);

impl FromStr for ShardArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let numbers = text.split_once('/').and_then(|(index, of)| Some((index.parse().ok()?, of.parse().ok()?)));
        match numbers {
            Some((index, of)) if (1..=of).contains(&index) => Ok(Self(Shard { index, of })),
            _ => Err("expected a share and how many there are, such as `1/4`".to_owned()),
        }
    }
}

/// An amount of money.
#[derive(Clone, Copy)]
pub(crate) struct DollarsArg(pub(crate) Dollars);

impl FromStr for DollarsArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let dollars = text.trim().trim_start_matches('$').parse().ok().and_then(Dollars::new);
        let dollars = dollars.filter(|dollars| dollars.nanos() > 0);
        dollars.map(Self).ok_or_else(|| "expected a number of dollars above 0".to_owned())
    }
}

#[derive(ClapArgs)]
pub(crate) struct ReportArgs {
    /// The folder of a run
    pub(crate) run: PathBuf,
    #[command(flatten)]
    pub(crate) judging: JudgingArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// How finished rollouts are judged again.
#[derive(Default, ClapArgs)]
pub(crate) struct JudgingArgs {
    /// What makes a call a refetch, instead of what was said when it ran
    #[arg(long, value_enum, value_name = "RULE")]
    pub(crate) refetch_by: Option<RefetchArg>,
    /// Looks at fewer actions of each rollout than were run
    #[arg(long, value_name = "K")]
    pub(crate) horizon: Option<usize>,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum RefetchArg {
    /// The tool and its arguments were called before
    Call,
    /// The tool was called before, with whatever arguments
    Tool,
}

#[derive(ClapArgs)]
pub(crate) struct MergeArgs {
    /// The folders of the shards
    #[arg(required = true)]
    pub(crate) runs: Vec<PathBuf>,
    /// The folder of the whole run, not there yet or empty
    #[arg(short, long, value_name = "FOLDER")]
    pub(crate) output: PathBuf,
}

#[derive(ClapArgs)]
pub(crate) struct StrategiesArgs {
    /// Prints JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(ClapArgs)]
pub(crate) struct ScoreArgs {
    /// Rollouts, as docs/formats.md describes, or the folder of a run
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) judging: JudgingArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(ClapArgs)]
pub(crate) struct PlanArgs {
    /// The JSON report of a pilot, as of `retrace verify --json > pilot.json`; without one the configuration is planned
    pub(crate) pilot: Option<PathBuf>,
    /// The configuration, `retrace.toml` unless there is a pilot; with one its prices are those of the plan
    #[arg(short, long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// The least harm that should be found, in wasted actions over the horizon or in shares of rollouts that stop; else the
    /// pilot's own mean where that is a harm
    #[arg(long, value_name = "X", requires = "pilot")]
    pub(crate) effect: Option<f64>,
    /// What the harm is looked for in
    #[arg(long, value_enum, default_value_t, requires = "pilot")]
    pub(crate) channel: ChannelArg,
    /// The share of such runs that should find it, from 0.5 on
    #[arg(long, value_name = "SHARE", default_value = "0.8", requires = "pilot")]
    pub(crate) power: PowerArg,
    /// How many strategies run, the control included; else as many as in the pilot
    #[arg(long, value_name = "J", value_parser = clap::value_parser!(u32).range(1..), requires = "pilot")]
    pub(crate) strategies: Option<u32>,
    /// What it costs to make a recording; else as much as ten rollouts
    #[arg(long, value_name = "PRICE", requires = "pilot")]
    pub(crate) price_recording: Option<f64>,
    /// What it costs to prepare a boundary, such as to compact there; else as much as a rollout
    #[arg(long, value_name = "PRICE", requires = "pilot")]
    pub(crate) price_boundary: Option<f64>,
    /// What a rollout costs, in any currency; 1 where neither this nor a configuration says
    #[arg(long, value_name = "PRICE", requires = "pilot")]
    pub(crate) price_rollout: Option<f64>,
    /// Also splits so many rollouts, those of the raw history and of all strategies together, in the best way
    #[arg(long, value_name = "N", requires = "pilot")]
    pub(crate) rollouts: Option<u32>,
    /// The most recordings that these can be split over, such as those there are
    #[arg(long, value_name = "G", requires = "rollouts")]
    pub(crate) recordings: Option<u32>,
    /// Also says how many recordings it takes to be within these margins, instead of those of the pilot
    #[arg(long, value_name = "CHANNEL=NUMBER", value_delimiter = ',', requires = "pilot")]
    pub(crate) margin: Vec<MarginArg>,
    /// Prints JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Copy, Default, ValueEnum)]
pub(crate) enum ChannelArg {
    /// Actions that failed or were executed before
    #[default]
    Wasted,
    /// Rollouts whose agent ended its turn before the horizon
    Stopped,
}

/// A share of runs.
#[derive(Clone, Copy)]
pub(crate) struct PowerArg(pub(crate) Level);

impl FromStr for PowerArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const PARTS: u32 = 10_000;
        let share: Option<f64> = text.trim().parse().ok().filter(|share| (0.5..1.0).contains(share));
        let level = share.and_then(|share| Level::new((share * f64::from(PARTS)).round() as u32, PARTS));
        level.map(Self).ok_or_else(|| "expected a number from 0.5 to 0.9999".to_owned())
    }
}

#[derive(ClapArgs)]
pub(crate) struct OutcomeArgs {
    /// Which results are failures, where the source does not say: `prefix:Error`, `regex:^Error` or `pointer:/ok=false`
    #[arg(long, value_name = "RULE")]
    pub(crate) failed_if: Option<OutcomeRule>,
}

#[derive(ClapArgs)]
pub(crate) struct OutputArgs {
    /// Prints JSON: every horizon, and every rollout's actions
    #[arg(long)]
    pub(crate) json: bool,
    /// Shows the report at this horizon instead of the full one
    #[arg(long, value_name = "K", conflicts_with = "json")]
    pub(crate) at: Option<usize>,
    /// What the intervals speak of
    #[arg(long, value_enum, default_value_t, conflicts_with = "json")]
    pub(crate) scope: ScopeArg,
    /// Which numbers are shown
    #[arg(long, value_enum, default_value_t, conflicts_with = "json")]
    pub(crate) style: StyleArg,
    /// The greatest acceptable difference of `wasted`, in actions over the horizon, or of `stopped`, in shares of rollouts, such
    /// as `wasted=0.5,stopped=0.1`; makes the exit code a gate, which takes both to be passed
    #[arg(long, value_name = "CHANNEL=NUMBER", value_delimiter = ',')]
    pub(crate) margin: Vec<MarginArg>,
}

#[derive(Clone, Copy, Default, ValueEnum)]
pub(crate) enum ScopeArg {
    /// Recordings like these that are not yet made
    #[default]
    New,
    /// The boundaries that were run
    Here,
}

#[derive(Clone, Copy, Default, ValueEnum)]
pub(crate) enum StyleArg {
    /// What is shown, with a verdict for each strategy
    #[default]
    Verdict,
    /// The table of ag2's verifier: bootstrap intervals and tests over boundaries
    Reference,
}

/// The margin of one channel.
#[derive(Clone, Copy)]
pub(crate) enum MarginArg {
    Wasted(f64),
    Stopped(f64),
}

impl FromStr for MarginArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = |number: &str| number.trim().parse().map_err(|_| format!("`{number}` is no number"));
        match text.split_once('=').map(|(channel, margin)| (channel.trim(), margin)) {
            Some(("wasted", margin)) => number(margin).map(Self::Wasted),
            Some(("stopped", margin)) => number(margin).map(Self::Stopped),
            _ => Err("expected `wasted=NUMBER` or `stopped=NUMBER`".to_owned()),
        }
    }
}
