//! What was spent, and what a strategy saves.

use retrace_events::Spend;
use retrace_score::Report;

use super::quoted;
use crate::number::{grouped, percent_of};

/// The tokens of each arm and of the compactions, as the model reported them, what of them a cache held, and, where it is
/// known, what they cost.
pub(super) fn spent(report: &Report) -> Option<String> {
    let pre = ("PRE".to_owned(), report.pre.spend);
    let post = report.strategies.iter().map(|(name, strategy)| (quoted(name), strategy.post.spend));
    let arms: Vec<_> = std::iter::once(pre).chain(post).collect();
    let compactions = report.strategies.iter().filter(|(_, strategy)| strategy.spend.n_model_calls > 0);
    let compactions: Vec<_> = compactions
        .map(|(name, strategy)| {
            let calls = strategy.spend.n_model_calls;
            let calls = format!("{} model call{}", grouped(calls), if calls == 1 { "" } else { "s" });
            format!("{} {} in {calls}{}", quoted(name), grouped(strategy.spend.total_tokens()), cost(strategy.spend))
        })
        .collect();
    let reported = arms.iter().any(|(_, spend)| spend.total_tokens() > 0);
    if !reported && compactions.is_empty() {
        return None;
    }
    let mut note = if reported {
        let arms = arms.iter().map(|(name, spend)| format!("{name} {}{}", grouped(spend.total_tokens()), cost(*spend)));
        format!("Tokens of the rollouts, as the model reported them: {}.", arms.collect::<Vec<_>>().join(", "))
    } else {
        "The model did not report the tokens of the rollouts.".to_owned()
    };
    if !compactions.is_empty() {
        note += &format!(" Tokens of the compactions: {}.", compactions.join(", "));
    }
    if let Some(read) = report.spend.cache_read_tokens {
        let shares = arms
            .iter()
            .filter(|(_, spend)| spend.input_tokens > 0)
            .map(|(name, spend)| format!("{name} {}", share(spend.cache_read_tokens.unwrap_or(0), spend.input_tokens)));
        let shares = shares.collect::<Vec<_>>().join(", ");
        note +=
            &format!(" Read from a cache: {} of all input tokens ({shares}).", share(read, report.spend.input_tokens));
    }
    match report.spend.dollars {
        Some(dollars) => note += &format!(" In all {dollars}."),
        None if report.prices.is_some() => note += " What all of it cost is not known.",
        None => {}
    }
    Some(note)
}

/// What each strategy saves of each further model call, where prices are known.
pub(super) fn saved(report: &Report) -> Option<String> {
    let control = report.control.as_ref();
    let strategies = report.strategies.iter().filter(|(name, _)| Some(*name) != control);
    let saved = strategies.filter_map(|(name, strategy)| {
        let saved = strategy.saved.as_ref()?;
        Some(format!("{} {} ({} if cached)", quoted(name), amount(saved.dollars?), amount(saved.dollars_cached?)))
    });
    let saved: Vec<_> = saved.collect();
    (!saved.is_empty()).then(|| {
        format!(
            "Saved with each model call after a compaction, by the input tokens that are no longer sent: {}.",
            saved.join(", ")
        )
    })
}

/// What it cost, in brackets; nothing where nobody knows.
fn cost(spend: Spend) -> String {
    spend.dollars.filter(|_| spend.total_tokens() > 0).map_or(String::new(), |dollars| format!(" ({dollars})"))
}

fn share(part: u64, whole: u64) -> String {
    let [part, whole] = [part, whole].map(|tokens| usize::try_from(tokens).unwrap_or(usize::MAX));
    percent_of(part, whole)
}

/// Dollars, with two digits that say something.
fn amount(dollars: f64) -> String {
    let sign = if dollars < 0.0 { "-" } else { "" };
    let digits = if dollars == 0.0 { 0.0 } else { dollars.abs().log10().floor() };
    let decimals = (1.0 - digits).clamp(2.0, 8.0) as usize;
    format!("{sign}${:.decimals$}", dollars.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_has_two_digits_that_say_something() {
        let texts = [0.0045, 0.000_222, 12.5, 0.0, -0.03, 1e-12].map(amount);
        assert_eq!(texts, ["$0.0045", "$0.00022", "$12.50", "$0.00", "-$0.030", "$0.00000000"]);
    }
}
