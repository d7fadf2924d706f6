//! `retrace plan`: what a verification takes, and from the report of a pilot what the next one should be.

mod cost;
mod cost_text;
mod text;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use indexmap::IndexMap;
use retrace_report::json;
use retrace_score::{Components, Margins, Pilot, PilotChannel, PilotInference, Unit};
use retrace_stats::{
    Design, Goal, Level, Optimum, PlanError, Price, Rollouts, Split, best_split, blind_share, cheapest_design,
    nearest_double, optimum,
};
use serde::Serialize;

use crate::args::{ChannelArg, PlanArgs};
use crate::config::MarginConfig;
use crate::exit::Exit;
use crate::failure::hinted;
use crate::output;

use self::cost::Cost;

/// What a recording costs where nobody says, in rollouts.
const ROLLOUTS_A_RECORDING: f64 = 10.0;
/// What is looked for where nobody says and the pilot shows no harm.
const USUAL_WASTED: f64 = 0.5;
const USUAL_STOPPED: f64 = 0.1;
/// A harm in so few recordings should not be missed for want of any.
const RARE: f64 = 0.1;

/// A plan, and what it was made for.
#[derive(Serialize)]
struct Plan {
    pilot: PilotRun,
    channel: Channel,
    power: f64,
    /// One minus the level of the test.
    level: f64,
    /// How many strategies share the rollouts of the raw history.
    n_strategies: u32,
    prices: Prices,
    /// What is to be split.
    rollouts: Option<u32>,
    /// Over how many recordings at most.
    recordings: Option<u32>,
    margins: Margins,
    /// How many recordings it takes for a harm in a tenth of all to occur among them, in 95 of 100 runs.
    recordings_for_rare_harm: usize,
    strategies: IndexMap<String, Found<Planned>>,
}

#[derive(Serialize)]
struct PilotRun {
    horizon: usize,
    samples: usize,
    unit: Unit,
    n_units: usize,
    n_boundaries: u64,
    /// Whether a strategy was the control, which is not planned for.
    control: bool,
    /// Whether the control said that no number can be relied on.
    invalid: bool,
}

#[derive(Serialize)]
struct Prices {
    recording: f64,
    boundary: f64,
    rollout: f64,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Channel {
    Wasted,
    Stopped,
}

/// What was looked for, or why there is none.
#[derive(Serialize)]
#[serde(untagged)]
enum Found<T> {
    Found(T),
    None { none: String },
}

/// The plan for one strategy.
#[derive(Serialize)]
struct Planned {
    effect: Effect,
    n_units: usize,
    deterministic: bool,
    /// As they were estimated, below zero or not.
    components: Components,
    cheapest: Found<DesignFacts>,
    /// The numbers that are best by formula, for any number of recordings.
    by_formula: Option<OptimumFacts>,
    /// What the pilot itself would have found four times in five.
    pilot_detectable: Option<f64>,
    split: Option<SplitFacts>,
    within_margin: Vec<WithinMargin>,
}

/// The harm that should be found.
#[derive(Clone, Copy, Serialize)]
struct Effect {
    value: f64,
    source: EffectSource,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum EffectSource {
    Given,
    Pilot,
    Usual,
}

#[derive(Serialize)]
struct DesignFacts {
    recordings: u32,
    boundaries: u32,
    samples: u32,
    rollouts: u64,
    price: f64,
    power: f64,
    blind: f64,
}

#[derive(Serialize)]
struct OptimumFacts {
    boundaries: f64,
    samples: f64,
}

#[derive(Serialize)]
struct SplitFacts {
    recordings: u32,
    boundaries: u32,
    samples: u32,
    rollouts: u64,
    standard_error: f64,
    power: f64,
    /// The least effect that it finds with the wanted power.
    detectable: f64,
    blind: f64,
}

/// How many recordings it takes to show that a channel is within its margin.
#[derive(Serialize)]
struct WithinMargin {
    channel: Channel,
    margin: f64,
    /// `None` where no number that was looked at is enough.
    recordings: Option<u32>,
}

/// Without any noise every run finds everything, which no run does.
const NOTHING_VARIED: &str = "nothing varied in the pilot, so it does not tell what noise to expect";

/// What is asked of every strategy.
struct Question<'a> {
    args: &'a PlanArgs,
    pilot: &'a Pilot,
    channel: Channel,
    price: Price,
    margins: Margins,
}

pub(crate) fn run(args: &PlanArgs) -> Result<Exit> {
    let Some(file) = &args.pilot else {
        let cost = Cost::of(args.config.as_deref().unwrap_or(Path::new("retrace.toml")))?;
        output::print(&if args.json { json(&cost) } else { cost_text::text(&cost) })?;
        return Ok(Exit::Ok);
    };
    let text = fs::read_to_string(file).with_context(|| format!("failed to read `{}`", file.display()))?;
    let file = file.display();
    let pilot = Pilot::from_json(text.trim_start_matches('\u{feff}'))
        .with_context(|| format!("failed to read the report in `{file}`"))?;
    let plan = Question::new(args, &pilot)?.plan()?;
    output::print(&if args.json { json(&plan) } else { text::text(&plan) })?;
    Ok(Exit::Ok)
}

impl<'a> Question<'a> {
    fn new(args: &'a PlanArgs, pilot: &'a Pilot) -> Result<Self> {
        let channel = match args.channel {
            ChannelArg::Wasted => Channel::Wasted,
            ChannelArg::Stopped => Channel::Stopped,
        };
        let most = f64::from(channel.bound(pilot));
        if let Some(effect) = args.effect.filter(|effect| !(*effect > 0.0 && *effect <= most)) {
            let hint = format!("it is above 0 and at most {most}, the greatest difference that there can be");
            return Err(hinted(format!("`--effect` is {effect}"), hint));
        }
        let dollars = args.config.as_deref().map(|file| Cost::of(file)?.prices()).transpose()?;
        let rollout = args.price_rollout.or(dollars.map(|dollars| dollars.rollout)).unwrap_or(1.0);
        let price = Price {
            recording: args.price_recording.unwrap_or(ROLLOUTS_A_RECORDING * rollout),
            boundary: args.price_boundary.or(dollars.map(|dollars| dollars.boundary)).unwrap_or(rollout),
            rollout,
            strategies: args.strategies.unwrap_or_else(|| pilot.strategies.len().try_into().unwrap_or(u32::MAX)),
        };
        let margins = match args.margin.as_slice() {
            [] => pilot.judging.margins,
            given => MarginConfig::default().or_given(given).margins(pilot.horizon)?,
        };
        Ok(Self { args, pilot, channel, price, margins })
    }

    fn plan(&self) -> Result<Plan> {
        let mut strategies = IndexMap::new();
        for (name, strategy) in self.pilot.candidates() {
            let planned = match &strategy.inference {
                Some(inference) => self.planned(inference)?,
                None => Found::None { none: "nothing is scored".to_owned() },
            };
            strategies.insert(name.to_owned(), planned);
        }
        if !strategies.values().any(|planned| matches!(planned, Found::Found(_))) {
            return Err(no_plan(&strategies));
        }
        let scored = || self.pilot.strategies.values().filter_map(|strategy| strategy.inference.as_ref());
        let Price { recording, boundary, rollout, strategies: n_strategies } = self.price;
        Ok(Plan {
            pilot: PilotRun {
                horizon: self.pilot.horizon,
                samples: self.pilot.samples,
                unit: self.pilot.judging.unit,
                n_units: scored().map(|inference| inference.n_units).max().unwrap_or_default(),
                n_boundaries: scored().map(|inference| inference.wasted.n_boundaries()).max().unwrap_or_default(),
                control: self.pilot.control.is_some(),
                invalid: scored().any(|inference| inference.verdict == "INVALID"),
            },
            channel: self.channel,
            power: nearest_double(&self.args.power.0.exact()),
            level: nearest_double(&Level::PERCENT_95.exact()),
            n_strategies,
            prices: Prices { recording, boundary, rollout },
            rollouts: self.args.rollouts,
            recordings: self.args.recordings,
            margins: self.margins,
            recordings_for_rare_harm: (1..).find(|&recordings| blind(recordings) <= RARE).expect("29"),
            strategies,
        })
    }

    fn planned(&self, inference: &PilotInference) -> Result<Found<Planned>> {
        let channel = self.channel.of(inference);
        let components = match inference.components(channel) {
            Ok(components) => components,
            Err(error) => return Ok(Found::None { none: error.to_string() }),
        };
        let effect = self.effect(channel);
        let goal = Goal { effect: effect.value, power: self.args.power.0, level: Level::PERCENT_95 };
        let mut planned = Planned {
            effect,
            n_units: inference.n_units,
            deterministic: inference.deterministic,
            components: components.into(),
            cheapest: Found::None { none: NOTHING_VARIED.to_owned() },
            by_formula: None,
            pilot_detectable: channel.detectable,
            split: None,
            within_margin: self.within_margin(inference)?,
        };
        let cheapest = cheapest_design(&components, &self.price, &goal);
        let split = self.args.rollouts.map(|total| {
            let recordings = self.args.recordings.unwrap_or(u32::MAX);
            best_split(&components, &Rollouts { total, strategies: self.price.strategies, recordings }, &goal)
        });
        let split = split.transpose()?;
        if planned.noise().iter().sum::<f64>() > 0.0 {
            planned.cheapest = match cheapest {
                Ok(design) => Found::Found(DesignFacts::new(design, 1 + u64::from(self.price.strategies))),
                Err(error @ PlanError::OutOfReach { .. }) => Found::None { none: error.to_string() },
                Err(error) => return Err(error.into()),
            };
            let Optimum { boundaries, samples } = optimum(&components, &self.price)?;
            planned.by_formula = Some(OptimumFacts { boundaries, samples });
            planned.split = split.map(SplitFacts::new);
        }
        Ok(Found::Found(planned))
    }

    /// What was given; else what the pilot shows; else what is usual.
    fn effect(&self, channel: &PilotChannel) -> Effect {
        let mean = nearest_double(&channel.mean);
        let (value, source) = match (self.args.effect, self.channel) {
            (Some(given), _) => (given, EffectSource::Given),
            (None, _) if mean > 0.0 => (mean, EffectSource::Pilot),
            (None, Channel::Wasted) => (USUAL_WASTED, EffectSource::Usual),
            (None, Channel::Stopped) => (USUAL_STOPPED, EffectSource::Usual),
        };
        Effect { value, source }
    }

    fn within_margin(&self, inference: &PilotInference) -> Result<Vec<WithinMargin>> {
        let margins = [(Channel::Wasted, self.margins.wasted), (Channel::Stopped, self.margins.stopped)];
        let given = margins.into_iter().filter_map(|(channel, margin)| Some((channel, margin?)));
        let planned = given.map(|(channel, margin)| {
            let bound = channel.bound(self.pilot);
            let recordings = channel.of(inference).recordings_for_margin(bound, margin, self.pilot.safety())?;
            Ok(WithinMargin { channel, margin, recordings })
        });
        planned.collect()
    }
}

impl Planned {
    /// How much rollouts, boundaries and recordings vary, none below zero.
    fn noise(&self) -> [f64; 3] {
        let Components { recording, boundary, rollout_pre, rollout_post } = self.components;
        let rollout = [rollout_pre, rollout_post].into_iter().flatten().map(|variance| variance.max(0.0)).sum();
        [rollout, boundary.max(0.0), recording.max(0.0)]
    }
}

impl Channel {
    fn of(self, inference: &PilotInference) -> &PilotChannel {
        match self {
            Self::Wasted => &inference.wasted,
            Self::Stopped => &inference.stopped,
        }
    }

    /// The greatest difference that there can be.
    fn bound(self, pilot: &Pilot) -> u32 {
        match self {
            Self::Wasted => pilot.horizon as u32,
            Self::Stopped => 1,
        }
    }
}

impl DesignFacts {
    fn new(design: Design, arms: u64) -> Self {
        let Design { recordings, boundaries, samples, total, power } = design;
        let rollouts = u64::from(recordings * boundaries * samples) * arms;
        Self { recordings, boundaries, samples, rollouts, price: total, power, blind: blind(recordings as usize) }
    }
}

impl SplitFacts {
    fn new(split: Split) -> Self {
        let Split { recordings, boundaries, samples, rollouts, standard_error, power, detectable } = split;
        let blind = blind(recordings as usize);
        Self { recordings, boundaries, samples, rollouts, standard_error, power, detectable, blind }
    }
}

/// A harm in a smaller share of recordings may not occur in any of so many.
fn blind(recordings: usize) -> f64 {
    blind_share(recordings, Level::PERCENT_95)
}

/// Why there is no plan for any strategy.
fn no_plan(strategies: &IndexMap<String, Found<Planned>>) -> anyhow::Error {
    let reasons = strategies.iter().filter_map(|(name, planned)| match planned {
        Found::None { none } => Some(format!("`{name}`: {none}")),
        Found::Found(_) => None,
    });
    let reasons: Vec<_> = reasons.collect();
    let message = match reasons.as_slice() {
        [] => "the pilot has no strategy but its control".to_owned(),
        reasons => format!("the pilot is too small to plan from; {}", reasons.join("; ")),
    };
    hinted(message, "run it with two recordings or more, two boundaries of each and two samples, and some strategy")
}
