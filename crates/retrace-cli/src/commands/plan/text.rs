//! A plan as text, in words that need no statistics.

use retrace_report::layout::{left, wrap};
use retrace_report::{COLUMNS, counted, printable};
use retrace_score::{Components, Unit};

use super::{Channel, DesignFacts, Effect, EffectSource, Found, OptimumFacts, Plan, Planned, SplitFacts, WithinMargin};

/// The columns of a label and the spaces around it.
const LABEL: usize = 13;

/// Fewer recordings can show no harm on new ones, and tell little of how these vary.
const FEWEST_UNITS: usize = 6;

/// Fewer show it only if nearly each of them does: 6 of 6, or 7 of 7 with a little less.
const FEW_RECORDINGS: u32 = 8;

pub(super) fn text(plan: &Plan) -> String {
    let words = Words { plan };
    let mut lines = words.heading();
    for (name, planned) in &plan.strategies {
        lines.push(String::new());
        match planned {
            Found::Found(planned) => lines.extend(words.strategy(name, planned)),
            Found::None { none } => lines.extend(wrap(&format!("{}: no plan: {none}", printable(name)), COLUMNS)),
        }
    }
    lines.push(String::new());
    lines.extend(words.notes().iter().flat_map(|note| hanging("* ", note)));
    lines.join("\n")
}

struct Words<'a> {
    plan: &'a Plan,
}

impl Words<'_> {
    fn heading(&self) -> Vec<String> {
        let Plan { pilot, prices, .. } = self.plan;
        let boundaries = counted(pilot.n_boundaries as usize, "boundary", "boundaries");
        let rollouts = counted(pilot.samples, "rollout", "rollouts");
        let units = self.units(pilot.n_units);
        let strategies = counted(self.plan.n_strategies as usize, "strategy", "strategies");
        let control = if pilot.control { ", the control included," } else { "" };
        let power = percent(self.plan.power);
        [
            format!("Pilot: {boundaries} of {units}, {rollouts} per arm, horizon {}", pilot.horizon),
            format!(
                "Wanted: a run of {strategies}{control} that shows a harm on new recordings with a probability of {power}"
            ),
            format!(
                "Prices: {} a recording, {} a boundary, {} a rollout",
                short(prices.recording),
                short(prices.boundary),
                short(prices.rollout)
            ),
        ]
        .iter()
        .flat_map(|line| wrap(line, COLUMNS))
        .collect()
    }

    fn strategy(&self, name: &str, planned: &Planned) -> Vec<String> {
        let Planned { effect, components, cheapest, by_formula, pilot_detectable, split, within_margin, .. } = planned;
        let mut lines = wrap(&format!("{}: {}", printable(name), self.effect(effect)), COLUMNS);
        let mut entry = |label: &str, words: &str| lines.extend(hanging(&left(&format!("  {label}"), LABEL), words));
        entry("noise", &self.noise(planned));
        entry("", &variances(components));
        match cheapest {
            Found::Found(design) => entry("cheapest", &self.design(design)),
            Found::None { none } => entry("cheapest", &format!("none: {none}")),
        }
        if let Some(OptimumFacts { boundaries, samples }) = by_formula {
            let [boundaries, samples] = [boundaries, samples].map(|number| short(*number));
            let counts =
                format!("boundaries of each: {boundaries}; samples: {samples}; however many recordings there are");
            entry("by formula", &counts);
        }
        entry("pilot", &self.pilot(planned.n_units, *pilot_detectable));
        if let Some(split) = split {
            entry("split", &self.split(split));
        }
        within_margin.iter().for_each(|margin| entry("margin", &self.margin(margin)));
        lines
    }

    fn effect(&self, Effect { value, source }: &Effect) -> String {
        let harm = self.harm(*value);
        match source {
            EffectSource::Given => format!("to find {harm}"),
            EffectSource::Pilot => format!("to find {harm}, what the pilot itself shows"),
            EffectSource::Usual => format!("to find {harm}, since the pilot shows no harm"),
        }
    }

    /// So much of the channel.
    fn harm(&self, value: f64) -> String {
        match self.plan.channel {
            Channel::Wasted => {
                let actions = counted(self.plan.pilot.horizon, "action", "actions");
                format!("{} of {actions} wasted", signed(value))
            }
            Channel::Stopped => format!("{} of rollouts stopped", signed(value)),
        }
    }

    fn design(&self, design: &DesignFacts) -> String {
        let DesignFacts { recordings, boundaries, samples, rollouts, price, power, .. } = *design;
        format!(
            "{}: {} in all, at a price of {}; about {} of such runs find it",
            self.shape(recordings, boundaries, samples),
            counted(rollouts as usize, "rollout", "rollouts"),
            short(price),
            percent(power),
        )
    }

    fn pilot(&self, n_units: usize, detectable: Option<f64>) -> String {
        match detectable {
            Some(least) => format!("a run like it finds {} or more four times in five", self.harm(least)),
            None if n_units < FEWEST_UNITS => format!(
                "{} can show no harm on new ones, however great; {} are the least",
                self.units(n_units),
                self.units(FEWEST_UNITS)
            ),
            None => "it shows no spread between recordings, so what a run like it finds cannot be told".to_owned(),
        }
    }

    fn split(&self, split: &SplitFacts) -> String {
        let SplitFacts { recordings, boundaries, samples, rollouts, power, detectable, .. } = *split;
        let given = self.plan.rollouts.unwrap_or_default() as usize;
        let limit = match self.plan.recordings {
            Some(most) => format!("over at most {}", self.units(most as usize)),
            None => "over any number of recordings".to_owned(),
        };
        format!(
            "{} {limit} are best as {}, {rollouts} in all; about {} of such runs find it, and {} would find {}",
            counted(given, "rollout", "rollouts"),
            self.shape(recordings, boundaries, samples),
            percent(power),
            percent(self.plan.power),
            self.harm(detectable),
        )
    }

    fn margin(&self, WithinMargin { channel, margin, recordings }: &WithinMargin) -> String {
        let channel = match channel {
            Channel::Wasted => "wasted",
            Channel::Stopped => "stopped",
        };
        let margin = short(*margin);
        match recordings {
            Some(recordings) => {
                let units = self.units(*recordings as usize);
                format!("about {units} like the pilot's show that {channel} is less than {margin} worse")
            }
            None => format!(
                "2,000 recordings like the pilot's do not show that {channel} is less than {margin} worse: it may well be more"
            ),
        }
    }

    /// Recordings, boundaries and samples.
    fn shape(&self, recordings: u32, boundaries: u32, samples: u32) -> String {
        let boundaries = counted(boundaries as usize, "boundary", "boundaries");
        let samples = counted(samples as usize, "sample", "samples");
        format!("{} of {boundaries} with {samples}", self.units(recordings as usize))
    }

    fn units(&self, count: usize) -> String {
        match self.plan.pilot.unit {
            Unit::Recording => counted(count, "recording", "recordings"),
            Unit::Task => counted(count, "task", "tasks"),
        }
    }

    /// Where the noise comes from, and what helps.
    fn noise(&self, planned: &Planned) -> String {
        let parts = planned.noise();
        let total: f64 = parts.iter().sum();
        let many = match self.plan.pilot.unit {
            Unit::Recording => "recordings",
            Unit::Task => "tasks",
        };
        if total <= 0.0 {
            return "none was seen".to_owned();
        }
        let [rollout, boundary, recording] = parts.map(|part| percent(part / total));
        let Components { rollout_pre, rollout_post, .. } = planned.components;
        if rollout_pre.is_none() && rollout_post.is_none() {
            let why =
                if planned.deterministic { "all rollouts of an arm are alike" } else { "no arm has two rollouts" };
            let help = if parts[1] >= parts[2] { "boundaries" } else { many };
            return format!(
                "{recording} between {many}, {boundary} between boundaries, chance included, since {why}: more {help} help"
            );
        }
        let what = if parts[0] >= parts[1].max(parts[2]) {
            "mostly chance, so more samples help, and more of anything does".to_owned()
        } else if parts[1] >= parts[2] {
            "mostly where a run is cut, so more boundaries help, and more samples little".to_owned()
        } else {
            format!("mostly which run it is, so only more {many} help")
        };
        format!(
            "{rollout} between rollouts of one boundary, {boundary} between boundaries, {recording} between {many}: {what}"
        )
    }

    fn notes(&self) -> Vec<String> {
        let Plan { pilot, recordings_for_rare_harm, strategies, rollouts, recordings, .. } = self.plan;
        let planned = || {
            strategies.values().filter_map(|found| match found {
                Found::Found(planned) => Some(planned),
                Found::None { .. } => None,
            })
        };
        let mut notes = Vec::new();
        if pilot.invalid {
            notes.push(
                "The pilot's control differs from itself (INVALID), so its noise is not that of the agent alone. Find out \
                 why before you plan."
                    .to_owned(),
            );
        }
        notes.push(
            "Probabilities are approximate: within about 2 points for a mild harm everywhere, 15 points or more too high \
             for a rare heavy one with few recordings or single samples. They are of one strategy and channel; verdicts are adjusted for all, \
             which takes somewhat more."
                .to_owned(),
        );
        notes.push(format!(
            "A harm in one of ten recordings may be missed for want of any: it takes {} for it to occur among them 95 times \
             in 100.",
            self.units(*recordings_for_rare_harm),
        ));
        let is_few = |planned: &Planned| match &planned.cheapest {
            Found::Found(design) => design.recordings < FEW_RECORDINGS,
            Found::None { .. } => false,
        };
        if planned().any(is_few) {
            notes.push(format!(
                "Fewer than {} show a harm only if nearly each of them does, so that they promise far too much: simulated \
                 runs of 6 that were to find it 80 times in 100 found it 40 to 55 times, and of 7, 50 to 75. Take 10 or \
                 more.",
                self.units(FEW_RECORDINGS as usize)
            ));
        }
        if pilot.n_units < FEWEST_UNITS {
            notes.push(format!(
                "Variances from {} are rough guesses. Plan again from the next run.",
                self.units(pilot.n_units)
            ));
        }
        if planned().any(|planned| planned.effect.source != EffectSource::Given) {
            notes.push(
                "What a pilot shows is no measure of what matters: give the least harm that you would want to know of by \
                 `--effect`."
                    .to_owned(),
            );
        }
        if rollouts.is_some() && recordings.is_none() {
            notes.push(
                "Rollouts over ever more recordings tell most. `--recordings` limits a split to those that there are."
                    .to_owned(),
            );
        }
        if planned().any(|planned| !planned.within_margin.is_empty()) {
            notes.push(
                "A margin counts on recordings like the pilot's, with as many boundaries and samples; WITHIN MARGIN takes it \
                 in both channels."
                    .to_owned(),
            );
        }
        notes
    }
}

fn variances(components: &Components) -> String {
    let Components { recording, boundary, rollout_pre, rollout_post } = *components;
    let known = |variance: Option<f64>| variance.map_or("unknown".to_owned(), |variance| format!("{variance:.3}"));
    let below = if recording < 0.0 || boundary < 0.0 { "; below zero counts as zero" } else { "" };
    format!(
        "(variances: recordings {recording:.3}, boundaries {boundary:.3}, rollouts {} PRE and {} POST{below})",
        known(rollout_pre),
        known(rollout_post)
    )
}

/// Text behind a label, its further lines indented as far.
fn hanging(label: &str, text: &str) -> Vec<String> {
    let indent = label.len();
    let lines = wrap(text, COLUMNS - indent).into_iter().enumerate();
    lines.map(|(i, line)| format!("{}{line}", if i == 0 { label.to_owned() } else { " ".repeat(indent) })).collect()
}

/// A share in percent; one that is not all is not said to be.
fn percent(share: f64) -> String {
    match (share * 100.0).round() {
        100.0 if share < 1.0 => "99%".to_owned(),
        0.0 if share > 0.0 => "<1%".to_owned(),
        rounded => format!("{rounded}%"),
    }
}

/// With a sign, and as many decimals as it takes.
fn signed(value: f64) -> String {
    if value > 0.0 && value < 0.0005 { format!("{value:+}") } else { format!("{value:+.3}") }
}

/// A number without decimals that say nothing.
fn short(number: f64) -> String {
    let decimals = if number.abs() < 1.0 { 4 } else { 2 };
    let digits = format!("{number:.decimals$}");
    if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.').to_owned() } else { digits }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_no_idle_decimals() {
        let check = |number, expected: &str| assert_eq!(short(number), expected);
        check(296.0, "296");
        check(1.5, "1.5");
        check(0.0023, "0.0023");
        check(0.0, "0");
        check(10.004, "10");
        assert_eq!([0.999, 1.0, 0.001, 0.0, 0.805].map(percent), ["99%", "100%", "<1%", "0%", "81%"]);
        assert_eq!([0.9166, 0.0001].map(signed), ["+0.917", "+0.0001"]);
    }
}
