//! What a verification takes: rollouts, model calls, tokens and dollars, before any of it is spent.
//!
//! Strategies that ask no model are run at every boundary, since that is free. The questions of the others are counted while
//! a text of a given length stands in for each answer. Nothing is started and no key is read.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use indexmap::IndexMap;
use retrace_events::tokens::{TokenCounter, Tokens, count_events, count_sent};
use retrace_events::{Boundary, Dollars, Event, History, Part, Prices, Recording, Response, Spend, Trajectory, Usage};
use retrace_model::{Prompt, Rules};
use retrace_rig::Listed;
use retrace_strategies::{Ask, BoxFuture, CompactContext, CompactError, Compacted, Identity, RunSoFar, Strategy};
use retrace_verifier::Settings;
use serde::Serialize;

use crate::commands::verify::{Recordings, recordings};
use crate::config::{Config, ModelConfig};
use crate::failure::hinted;
use crate::setup::{Base, Compacting, listed};

/// How long an answer to a strategy is taken to be: 500 tokens of four characters.
pub(super) const ANSWER_CHARS: usize = 2_000;

/// The name of the control that is added.
const CONTROL: &str = "control";

/// What a verification takes.
#[derive(Serialize)]
pub(super) struct Cost {
    pub(super) config: String,
    pub(super) model: Option<String>,
    pub(super) prices: Option<Prices>,
    pub(super) token_counter: String,
    pub(super) horizon: usize,
    pub(super) samples: u32,
    pub(super) recordings: usize,
    pub(super) boundaries: usize,
    /// Boundaries that the limit per recording leaves out.
    pub(super) left_out: usize,
    pub(super) chain: bool,
    pub(super) stop_early: bool,
    pub(super) recorded: Recorded,
    pub(super) pre: Share,
    pub(super) strategies: IndexMap<String, Share>,
    pub(super) total: Share,
}

/// The means of what recordings hold.
#[derive(Clone, Copy, Default, Serialize)]
pub(super) struct Recorded {
    /// Tokens of a response.
    pub(super) output_tokens: f64,
    /// Tokens by which a response with one call and its result make a context longer.
    pub(super) growth_tokens: f64,
}

/// What one arm, or one strategy with its compactions, takes.
#[derive(Clone, Copy, Default, Serialize)]
pub(super) struct Share {
    pub(super) compactions: u64,
    pub(super) rollouts: Range,
    /// What the compactions spend, which `low` and `high` hold too.
    pub(super) compacting: Spend,
    /// Each rollout ends after one answer, and all it reads comes from a cache.
    pub(super) low: Spend,
    /// Each rollout has as many answers as the horizon, and nothing comes from a cache.
    pub(super) high: Spend,
    /// Whether it is a program, whose own questions only it knows.
    #[serde(skip_serializing_if = "is_false")]
    pub(super) is_program: bool,
    /// Whether it asks a judge, of whose questions only the first ones are known.
    #[serde(skip_serializing_if = "is_false")]
    pub(super) asks_more: bool,
}

fn is_false(value: &bool) -> bool {
    !value
}

#[derive(Clone, Copy, Default, Serialize)]
pub(super) struct Range {
    pub(super) low: u64,
    pub(super) high: u64,
}

/// Dollars for a unit of a plan.
#[derive(Clone, Copy)]
pub(super) struct UnitPrices {
    pub(super) boundary: f64,
    pub(super) rollout: f64,
}

/// What a strategy does at a boundary, in tokens of what it leaves.
#[derive(Clone, Copy)]
enum Fate {
    Changes(u64),
    Unchanged,
    /// It cannot be told before it runs: it leaves so many tokens, or nothing to resume from.
    Perhaps {
        low: u64,
        high: u64,
    },
    Fails,
}

/// Answers each question of a strategy, and knows what that would cost.
struct StandIn<'a> {
    own: Listed,
    own_name: Option<&'a str>,
    named: IndexMap<String, Listed>,
    counter: &'a dyn TokenCounter,
}

impl Ask for StandIn<'_> {
    fn ask<'a>(&'a self, prompt: &'a Prompt<'a>, _: Option<&'a str>) -> BoxFuture<'a, Result<Response, CompactError>> {
        let text = "note".repeat(ANSWER_CHARS / 4);
        let tokens = |text: &str| self.counter.tokens(self.counter.units(text)).0;
        let input_tokens = tokens(prompt.instructions.unwrap_or_default()) + count_sent(self.counter, prompt.history).0;
        let usage = Some(Usage { input_tokens, output_tokens: tokens(&text), ..Usage::default() });
        let response = Response { content: [Part::text(text)].into_iter().collect(), usage, ..Response::default() };
        Box::pin(std::future::ready(Ok(response)))
    }

    fn prices(&self, model: Option<&str>) -> Option<Prices> {
        match model.filter(|name| Some(*name) != self.own_name) {
            None => self.own.prices,
            Some(name) => self.named.get(name)?.prices,
        }
    }
}

impl Cost {
    /// What the verification of a configuration takes.
    pub(super) fn of(file: &Path) -> Result<Self> {
        let config = Config::read(file)?;
        let settings = config.settings()?;
        let base = Base::new(&config, file);
        let (mut boundaries, mut left_out, mut n_recordings) = (Vec::new(), 0, 0);
        let mut tally = Tally::default();
        for Recordings { config, read, .. } in recordings(&config, base.folder())? {
            for recording in read {
                n_recordings += 1;
                tally.add(&recording, &*settings.counter);
                let trajectory = Arc::new(Trajectory::new(recording));
                let cuts = match &config.cuts {
                    Some(cuts) => std::collections::BTreeSet::from_iter(cuts.iter().copied()).into_iter().collect(),
                    None => {
                        let chosen = trajectory.choose_cuts(&settings.spacing);
                        left_out += chosen.n_left_out;
                        chosen.cuts.iter().map(|point| point.cut).collect::<Vec<_>>()
                    }
                };
                for cut in cuts {
                    boundaries.push(Boundary::new(&trajectory, cut)?);
                }
            }
        }
        let unknown = Listed { context_window: None, prices: None };
        let own = config.agent.model.as_ref().map_or(Ok(unknown), |model| listed(model, &config.models))?;
        let mut ask =
            StandIn { own, own_name: config.agent_model(), named: IndexMap::new(), counter: &*settings.counter };
        let mut strategies = IndexMap::new();
        for (name, table) in &config.strategies {
            let strategy = Compacting::unstarted(name, table.clone(), &base)?;
            for model in strategy.iter().flat_map(|strategy| strategy.models()) {
                ask.named.insert(model.to_owned(), listed(&ModelConfig::new(model), &config.models)?);
            }
            strategies.insert(name.clone(), strategy);
        }
        if strategies.is_empty() {
            return Err(hinted(
                "the configuration has no strategies",
                "add a table `[strategies.NAME]` with its `kind`",
            ));
        }
        let control = with_control(&mut strategies, config.control);
        let mut cost = Self {
            config: file.display().to_string(),
            model: config.agent_model().map(str::to_owned),
            prices: own.prices,
            token_counter: settings.counter.name().to_owned(),
            horizon: settings.horizon,
            samples: settings.samples,
            recordings: n_recordings,
            boundaries: boundaries.len(),
            left_out,
            chain: settings.chain,
            stop_early: settings.judging.stop_early,
            recorded: tally.means(),
            pre: Share::default(),
            strategies: strategies.keys().map(|name| (name.clone(), Share::default())).collect(),
            total: Share::default(),
        };
        for boundary in &boundaries {
            cost.add(boundary, &strategies, control.as_deref(), &ask, &settings);
        }
        for share in std::iter::once(&cost.pre).chain(cost.strategies.values()) {
            cost.total.add(share);
        }
        Ok(cost)
    }

    /// What a boundary and a rollout cost at most.
    pub(super) fn prices(&self) -> Result<UnitPrices> {
        let Share { high, compacting, rollouts, .. } = &self.total;
        let unknown = || {
            let hint = "set `prices` of its models, or leave `--config` out and give `--price-rollout`";
            hinted(format!("what the calls of `{}` cost is not known", self.config), hint)
        };
        let (all, compacting) = high.dollars.zip(compacting.dollars).ok_or_else(unknown)?;
        if rollouts.high == 0 {
            return Err(hinted(format!("no rollout would run of `{}`", self.config), "`retrace plan` says why"));
        }
        Ok(UnitPrices {
            boundary: compacting.to_f64() / self.boundaries as f64,
            rollout: (all.to_f64() - compacting.to_f64()) / rollouts.high as f64,
        })
    }

    fn add(
        &mut self,
        boundary: &Boundary,
        strategies: &IndexMap<String, Option<Arc<dyn Strategy>>>,
        control: Option<&str>,
        ask: &StandIn<'_>,
        settings: &Settings,
    ) {
        let raw = boundary.history();
        let counted = count_sent(ask.counter, &raw).0;
        let fixed = fixed(boundary, counted, ask.counter);
        let fates: Vec<_> = strategies
            .iter()
            .map(|(name, strategy)| {
                let share = &mut self.strategies[name];
                share.compactions += 1;
                let Some(strategy) = strategy else {
                    share.is_program = true;
                    return Fate::Perhaps { low: 0, high: counted };
                };
                let (fate, spend, asks_more) = fate(&**strategy, boundary, &raw, counted, ask);
                share.asks_more |= asks_more;
                share.compacting.add(spend);
                share.low.add(spend);
                share.high.add(spend);
                fate
            })
            .collect();
        let is_control = |name: &String| control == Some(&**name);
        let others = || strategies.keys().zip(&fates).filter(|(name, _)| !is_control(name)).map(|(_, fate)| fate);
        let only_control = others().next().is_none();
        let works = only_control || others().any(|fate| matches!(fate, Fate::Changes(_) | Fate::Unchanged));
        let may_work = works || others().any(|fate| matches!(fate, Fate::Perhaps { .. }));
        let (mut runs, mut may_run) = (false, false);
        for ((name, share), fate) in self.strategies.iter_mut().zip(&fates) {
            let (sure, perhaps, low, high) = match *fate {
                _ if is_control(name) => (works, may_work, counted, counted),
                Fate::Changes(tokens) => (true, true, tokens, tokens),
                Fate::Perhaps { low, high } => (false, true, low, high),
                Fate::Unchanged | Fate::Fails => continue,
            };
            (runs, may_run) = (runs || sure, may_run || perhaps);
            share.run(sure, perhaps, low + fixed, high + fixed, &self.recorded, ask.own.prices, settings);
        }
        let context = counted + fixed;
        self.pre.run(runs, may_run, context, context, &self.recorded, ask.own.prices, settings);
    }
}

impl Share {
    /// Adds the rollouts of an arm of a boundary that run, or may, from contexts of so many tokens.
    #[expect(clippy::too_many_arguments, reason = "an arm's two ends, and what they are worked out from")]
    fn run(
        &mut self,
        sure: bool,
        perhaps: bool,
        low: u64,
        high: u64,
        recorded: &Recorded,
        prices: Option<Prices>,
        settings: &Settings,
    ) {
        let samples = u64::from(settings.samples);
        if sure {
            self.rollouts.low += samples;
            self.low.add(recorded.rollouts(samples, 1, low, prices, true));
        }
        if perhaps {
            self.rollouts.high += samples;
            self.high.add(recorded.rollouts(samples, settings.horizon as u64, high, prices, false));
        }
    }

    fn add(&mut self, other: &Self) {
        self.compactions += other.compactions;
        self.rollouts.low += other.rollouts.low;
        self.rollouts.high += other.rollouts.high;
        self.compacting.add(other.compacting);
        self.low.add(other.low);
        self.high.add(other.high);
        self.is_program |= other.is_program;
        self.asks_more |= other.asks_more;
    }
}

impl Recorded {
    /// What rollouts spend that answer so often from a context of so many tokens, each answer with one call:
    /// Σ over i < answers of (context + i · growth), and as many answers.
    fn rollouts(&self, n: u64, answers: u64, context: u64, prices: Option<Prices>, cached: bool) -> Spend {
        let (n, times) = (n as f64, answers as f64);
        let input = n * (times * context as f64 + self.growth_tokens * times * (times - 1.0) / 2.0);
        let input_tokens = input.round() as u64;
        // The cheapest and the dearest way in which the same tokens can be billed.
        let price = |of: fn(&Prices) -> Option<f64>| prices.map_or(0.0, |prices| of(&prices).unwrap_or(prices.input));
        let (plain, read, written) =
            (price(|_| None), price(|prices| prices.cache_read), price(|prices| prices.cache_write));
        let is_read = if cached { read <= plain } else { read > plain.max(written) };
        let is_written = !cached && !is_read && written > plain;
        let usage = Usage {
            input_tokens,
            output_tokens: (n * times * self.output_tokens).round() as u64,
            cache_read_tokens: Some(if is_read { input_tokens } else { 0 }),
            cache_write_tokens: is_written.then_some(input_tokens),
            ..Usage::default()
        };
        let dollars: Option<Dollars> = prices.and_then(|prices| prices.cost(&usage));
        Spend::of_calls(n as u64 * answers, &usage, dollars)
    }
}

/// Adds the control, if one is added, and says which strategy it is.
fn with_control(strategies: &mut IndexMap<String, Option<Arc<dyn Strategy>>>, add: bool) -> Option<String> {
    let is_identity = |strategy: &Option<Arc<dyn Strategy>>| {
        strategy.as_ref().is_some_and(|strategy| strategy.kind() == Identity::default().kind())
    };
    let identities = || strategies.iter().filter(|(_, strategy)| is_identity(strategy)).map(|(name, _)| name);
    let control = identities().find(|name| *name == CONTROL).or_else(|| identities().next()).cloned();
    if control.is_none() && add {
        strategies.shift_insert(0, CONTROL.to_owned(), Some(Arc::new(Identity::default())));
        return Some(CONTROL.to_owned());
    }
    control
}

/// The tokens that are sent beside the history: what the provider counted more, where the recording tells, else the
/// instructions and the tools.
fn fixed(boundary: &Boundary, counted: u64, counter: &dyn TokenCounter) -> u64 {
    let history = boundary.history();
    let told = history.events().rev().enumerate().find_map(|(back, event)| match event {
        Event::Response(Response { usage: Some(usage), .. }) if usage.input_tokens > 0 => {
            Some((back, usage.total_tokens()))
        }
        _ => None,
    });
    if let Some((back, tokens)) = told {
        let since = count_events(counter, history.events().rev().take(back)).0;
        return (tokens + since).saturating_sub(counted);
    }
    let header = &boundary.trajectory().recording().header;
    let tools = header.tools.iter().filter_map(|tool| serde_json::to_string(tool).ok());
    let texts = header.instructions.iter().cloned().chain(tools);
    counter.tokens(texts.map(|text| counter.units(&text)).sum()).0
}

/// What a strategy does at a boundary, what its questions cost, and whether it has more than could be counted.
fn fate(
    strategy: &dyn Strategy,
    boundary: &Boundary,
    raw: &History,
    counted: u64,
    ask: &StandIn<'_>,
) -> (Fate, Spend, bool) {
    let mut cx = CompactContext::new(ask, 0);
    cx.counter = ask.counter;
    cx.window = ask.own.context_window.map(Tokens);
    cx.model = ask.own_name;
    cx.run = run_so_far(boundary);
    let fresh = strategy.fresh();
    let compacted = pollster::block_on(fresh.as_deref().unwrap_or(strategy).compact(raw, &mut cx));
    let spend = cx.spend();
    let asked = spend.n_model_calls > 0;
    let fate = match compacted {
        Ok(Compacted::Unchanged) if !asked => Fate::Unchanged,
        Ok(Compacted::Changed(after)) => {
            let prompt = Prompt { instructions: None, history: &after, tools: &[], seed: 0 };
            let tokens = count_sent(ask.counter, &after).0;
            if asked || !Rules::default().flaws(&prompt, raw).is_empty() {
                Fate::Perhaps { low: tokens, high: tokens }
            } else {
                Fate::Changes(tokens)
            }
        }
        Err(_) if !asked => Fate::Fails,
        Ok(Compacted::Unchanged) | Err(_) => {
            return (Fate::Perhaps { low: 0, high: counted }, spend, true);
        }
    };
    (fate, spend, false)
}

/// What the recorded run had used before a boundary.
fn run_so_far(boundary: &Boundary) -> RunSoFar {
    let mut run = RunSoFar::default();
    for event in boundary.history().events() {
        if let Event::Response(response) = event {
            run.n_requests += 1;
            run.total_tokens += Tokens(response.usage.as_ref().map_or(0, Usage::total_tokens));
        }
    }
    run
}

/// What recordings hold in all.
#[derive(Default)]
struct Tally {
    n_responses: u64,
    output: u64,
    n_actions: u64,
    results: u64,
}

impl Tally {
    fn add(&mut self, recording: &Recording, counter: &dyn TokenCounter) {
        for event in recording.events.iter() {
            match &**event {
                Event::Response(response) => {
                    let told = response.usage.as_ref().map(|usage| usage.output_tokens).filter(|tokens| *tokens > 0);
                    self.n_responses += 1;
                    self.output += told.unwrap_or_else(|| count_events(counter, [&**event]).0);
                }
                Event::ToolResults(round) => {
                    self.n_actions += round.results.len() as u64;
                    self.results += count_events(counter, [&**event]).0;
                }
                _ => {}
            }
        }
    }

    fn means(&self) -> Recorded {
        let mean = |sum: u64, n: u64| sum as f64 / n.max(1) as f64;
        let output_tokens = mean(self.output, self.n_responses);
        Recorded { output_tokens, growth_tokens: output_tokens + mean(self.results, self.n_actions) }
    }
}
