//! The laws that every strategy obeys, to put a strategy of one's own through.
//!
//! 1. No result without its call, unless the input already had it.
//! 2. The newest event is there, and last; a warning may follow it.
//! 3. Every pinned part is there exactly as often as before.
//! 4. The leading system prompts are there, in order, and lead.
//! 5. Kept events keep their order and all their fields.
//! 6. Nothing to do means that the input comes back unchanged, and is said to.
//! 7. A second pass over the output changes nothing and asks nothing, for a strategy that [settles](Strategy::settles).
//! 8. Every event is kept, or was shown to the model, or was dropped by a strategy whose business is dropping.
//!    Notes and copies that a strategy made are not meant.
//! 9. A strategy that does not summarize never asks a model.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures_core::future::BoxFuture;
use retrace_events::pairing::pair;
use retrace_events::{Event, History, Part, Response};
use retrace_model::Prompt;

use crate::anchors::{leading_prompts, pins};
use crate::bridge::is_bridge;
use crate::context::{Ask, CompactContext};
use crate::strategy::{Business, CompactError, Compacted, Strategy};

/// A law that a strategy broke.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("law {law} is broken: {how}")]
pub struct BrokenLaw {
    /// Its number in the [list](self).
    pub law: u8,
    /// What was seen.
    pub how: String,
}

/// Applies a strategy to a history and holds the outcome against the laws. A question to a model is answered with what
/// `answer` makes of it; the same question is to get the same answer.
///
/// What the strategy returned is given back, for a test that wants to know more of it.
///
/// # Errors
/// With the first law that is broken. An error of the strategy breaks none: it leaves the history as it was.
pub async fn check(
    strategy: &dyn Strategy,
    history: &History,
    answer: &(dyn Fn(&str) -> String + Sync),
) -> Result<Result<Compacted, CompactError>, BrokenLaw> {
    let (compacted, questions) = apply(strategy, history, answer).await;
    if !strategy.business().may_ask() && !questions.is_empty() {
        return broken(9, "a model was asked".to_owned());
    }
    let Ok(Compacted::Changed(after)) = &compacted else { return Ok(compacted) };
    if after == history {
        return broken(6, "the output equals the input and is called changed".to_owned());
    }
    no_new_orphans(history, after)?;
    newest_is_last(history, after)?;
    anchors_are_kept(history, after)?;
    order_is_kept(history, after)?;
    nothing_vanishes(strategy.business(), history, after, &questions)?;
    if strategy.settles() {
        let (again, questions) = apply(strategy, after, answer).await;
        if !questions.is_empty() || again != Ok(Compacted::Unchanged) {
            return broken(7, format!("a second pass gives {again:?}"));
        }
    }
    Ok(compacted)
}

async fn apply(
    strategy: &dyn Strategy,
    history: &History,
    answer: &(dyn Fn(&str) -> String + Sync),
) -> (Result<Compacted, CompactError>, Vec<String>) {
    let notes = Notes { answer, questions: Mutex::default() };
    let mut cx = CompactContext::new(&notes, 0);
    cx.model = Some("agent");
    let compacted = strategy.compact(history, &mut cx).await;
    (compacted, notes.questions.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// Answers every question, and notes it.
struct Notes<'n> {
    answer: &'n (dyn Fn(&str) -> String + Sync),
    questions: Mutex<Vec<String>>,
}

impl Ask for Notes<'_> {
    fn ask<'a>(
        &'a self,
        prompt: &'a Prompt<'a>,
        _model: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Response, CompactError>> {
        let question: String = prompt.history.events().flat_map(Event::content).filter_map(Part::as_text).collect();
        let answer = Response { content: [Part::text((self.answer)(&question))].into(), ..Response::default() };
        self.questions.lock().unwrap_or_else(PoisonError::into_inner).push(question);
        Box::pin(std::future::ready(Ok(answer)))
    }
}

fn no_new_orphans(before: &History, after: &History) -> Result<(), BrokenLaw> {
    let (before, after) = (pair(before.events()), pair(after.events()));
    let mut known: Vec<_> = before.orphans.iter().map(|orphan| (&orphan.result.call_id, &orphan.result.name)).collect();
    for orphan in &after.orphans {
        let id = (&orphan.result.call_id, &orphan.result.name);
        match known.iter().position(|known| *known == id) {
            Some(index) => drop(known.swap_remove(index)),
            None => return broken(1, format!("the result of `{}` at event {} has no call", id.1, orphan.event)),
        }
    }
    Ok(())
}

fn newest_is_last(before: &History, after: &History) -> Result<(), BrokenLaw> {
    let newest =
        |history: &History| history.iter().rev().find(|event| event.counts() && !event.is_request_scoped()).cloned();
    let (Some(wanted), Some(found)) = (newest(before), newest(after)) else {
        return if newest(before).is_some() { broken(2, "nothing is left".to_owned()) } else { Ok(()) };
    };
    let same = match (&*wanted, &*found) {
        (Event::ToolResults(a), Event::ToolResults(b)) => a.tells_the_same(b),
        // The strategies that rewrite in place may shorten a response.
        (Event::Response(_), Event::Response(_)) => true,
        (a, b) => a == b,
    };
    if same { Ok(()) } else { broken(2, format!("the newest event was {wanted:?} and is {found:?}")) }
}

fn anchors_are_kept(before: &History, after: &History) -> Result<(), BrokenLaw> {
    let all = |history: &History| history.events().flat_map(pins).cloned().collect::<Vec<_>>();
    let (mut left, found) = (all(before), all(after));
    for pin in &found {
        match left.iter().position(|part| part == pin) {
            Some(index) => drop(left.swap_remove(index)),
            None => return broken(3, format!("{pin:?} is there more often than before")),
        }
    }
    if let Some(pin) = left.first() {
        return broken(3, format!("{pin:?} is there less often than before"));
    }
    let prompts =
        |history: &History| leading_prompts(history).flat_map(|(_, parts)| parts).cloned().collect::<Vec<_>>();
    let (wanted, found) = (prompts(before), prompts(after));
    if !found.starts_with(&wanted) {
        return broken(4, format!("the leading prompts were {wanted:?} and are {found:?}"));
    }
    Ok(())
}

fn order_is_kept(before: &History, after: &History) -> Result<(), BrokenLaw> {
    let mut places: HashMap<*const Event, Vec<usize>> = HashMap::new();
    for (index, event) in before.iter().enumerate() {
        places.entry(Arc::as_ptr(event)).or_default().push(index);
    }
    let mut next = 0;
    for event in after.iter() {
        let Some(indices) = places.get(&Arc::as_ptr(event)) else { continue };
        match indices.iter().find(|&&index| index >= next) {
            Some(index) => next = index + 1,
            None => return broken(5, format!("{event:?} stands behind an event that came after it")),
        }
    }
    Ok(())
}

/// Looks for the text of each event that is gone: the model must have been shown it.
fn nothing_vanishes(
    business: Business,
    before: &History,
    after: &History,
    questions: &[String],
) -> Result<(), BrokenLaw> {
    if business.may_drop() {
        return Ok(());
    }
    let kept: Vec<_> = after.iter().map(Arc::as_ptr).collect();
    let squeeze = |text: &str| text.replace("\\n", " ").split_whitespace().collect::<Vec<_>>().join(" ");
    let shown: Vec<_> = questions.iter().map(|question| squeeze(question)).collect();
    // A summary that a newer one updated is in that one.
    let newest_summary = before.events().rev().position(is_summary).map_or(0, |back| before.len() - 1 - back);
    let gone = before.iter().enumerate().filter(|(index, event)| {
        event.counts() && !kept.contains(&Arc::as_ptr(event)) && !(is_summary(event) && *index < newest_summary)
    });
    for (_, event) in gone {
        let results = if let Event::ToolResults(round) = &**event { &round.results[..] } else { &[] };
        let parts = event.content().iter().chain(results.iter().flat_map(|result| &result.content));
        for text in parts.filter(|part| !is_note(part)).filter_map(Part::as_text).map(squeeze) {
            if !shown.iter().any(|question| question.contains(&text))
                && !after.events().any(|event| holds(event, &text))
            {
                return broken(8, format!("{text:?} was neither kept nor shown to a model"));
            }
        }
    }
    Ok(())
}

/// Whether a strategy put it there: a receipt, a warning, a line in front of a summary, or a copy of what an earlier pass
/// showed to the model.
fn is_note(part: &Part) -> bool {
    part.marks.receipt().is_some() || part.marks.kept || part.is_request_scoped() || is_bridge(part)
}

fn is_summary(event: &Event) -> bool {
    matches!(event, Event::Summary(_))
}

fn holds(event: &Event, text: &str) -> bool {
    event.content().iter().filter_map(Part::as_text).any(|part| part == text)
}

fn broken<T>(law: u8, how: String) -> Result<T, BrokenLaw> {
    Err(BrokenLaw { law, how })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{ProptestConfig, prop_assert, proptest};
    use retrace_events::{Outcome, Request, ToolCall, ToolResult};

    use super::*;
    use crate::histories::history;
    use crate::{
        ClampOversizedMessages, ClearToolResults, DeduplicateFileReads, FallbackCompaction, FileKey, Identity,
        LimitWarner, RelevanceCompaction, SlidingWindow, Summarize, SummarizingCompaction, TailWindow,
        TieredCompaction,
    };

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(retrace_testing::cases(500, 50_000)))]

        #[test]
        fn the_menu_obeys_the_laws(history in history(), target in 0_usize..10, flags: [bool; 4]) {
            for strategy in &menu(target, flags) {
                let compacted = pollster::block_on(check(&**strategy, &history, &answer));
                prop_assert!(matches!(compacted, Ok(Ok(_))), "{}: {compacted:?}", strategy.kind());
            }
        }

        #[test]
        fn random_tiers_and_chains_obey_the_laws(
            history in history(),
            target in 0_usize..10,
            flags: [bool; 4],
            picks in proptest::collection::vec(0_usize..10, 1..4),
            target_tokens in 1_u64..12,
        ) {
            let menu = menu(target, flags);
            let tiers: Vec<_> = picks.into_iter().map(|pick| Arc::clone(&menu[pick])).collect();
            let tiered = TieredCompaction::new(tiers.clone(), target_tokens);
            let compacted = pollster::block_on(check(&tiered, &history, &answer));
            prop_assert!(matches!(compacted, Ok(Ok(_))), "{:?}: {compacted:?}", kinds(&tiers));
            let compacted = pollster::block_on(check(&FallbackCompaction::new(tiers.clone()), &history, &answer));
            prop_assert!(matches!(compacted, Ok(Ok(_))), "{:?}: {compacted:?}", kinds(&tiers));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(retrace_testing::cases(200, 20_000)))]

        #[test]
        fn extreme_settings_and_answers_break_no_law(
            history in history(),
            target in proptest::sample::select(vec![0, 1, usize::MAX]),
            flags: [bool; 4],
            answer in proptest::sample::select(vec!["", " \n", "much more than it was given; it goes on and on, and nobody asked"]),
        ) {
            let menu = menu(target, flags);
            let tiered: Arc<dyn Strategy> = Arc::new(TieredCompaction::new(menu.clone(), target as u64));
            let fallback: Arc<dyn Strategy> = Arc::new(FallbackCompaction::new(menu.clone()));
            for strategy in menu.iter().chain([&tiered, &fallback]) {
                let compacted = pollster::block_on(check(&**strategy, &history, &|_| answer.to_owned()));
                let is_empty = matches!(compacted, Ok(Err(CompactError::EmptySummary))) && answer.trim().is_empty();
                let is_no_judgement = matches!(compacted, Ok(Err(CompactError::UnusableJudgement { .. })));
                prop_assert!(is_empty || is_no_judgement || matches!(compacted, Ok(Ok(_))), "{}: {compacted:?}", strategy.kind());
            }
        }
    }

    /// A summary, or ratings by the words of each step, the same for the same.
    fn answer(question: &str) -> String {
        let rate = |step: &str| {
            let sum = step.bytes().fold(7_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
            (sum % 101, sum / 101 % 101)
        };
        crate::relevance::answered(question, rate).unwrap_or_else(|| "a summary".to_owned())
    }

    fn kinds(strategies: &[Arc<dyn Strategy>]) -> Vec<&'static str> {
        strategies.iter().map(|strategy| strategy.kind()).collect()
    }

    /// Every strategy that stands alone, with settings that matter in small histories.
    fn menu(target: usize, [flag, other, tokens, third]: [bool; 4]) -> [Arc<dyn Strategy>; 10] {
        let keep_tokens = tokens.then_some(target as u64);
        [
            Arc::new(Identity {}),
            Arc::new(TailWindow::new(target)),
            Arc::new(Summarize::new(target)),
            Arc::new(SlidingWindow {
                keep_messages: target,
                keep_tokens,
                preserve_first_user_message: flag,
                receipts: other,
                ..SlidingWindow::default()
            }),
            Arc::new(SummarizingCompaction {
                keep_messages: target,
                keep_tokens,
                preserve_first_user_message: flag,
                incremental: third,
                model: Some("other".to_owned()),
                bridge_prefix: other,
                keep_user_messages: tokens && other,
                receipts: other,
                tool_return_max_chars: None,
                ..SummarizingCompaction::default()
            }),
            Arc::new(ClearToolResults {
                keep_pairs: target / 3,
                clear_tool_inputs: flag,
                min_clear_tokens: keep_tokens,
                ..ClearToolResults::default()
            }),
            Arc::new(DeduplicateFileReads::new(FileKey::Function(Arc::new(|call| Some(call.name.to_string()))))),
            Arc::new(ClampOversizedMessages {
                max_part_chars: Some(target.saturating_add(1)),
                keep_head_chars: target / 2,
                keep_tail_chars: 1,
                ..ClampOversizedMessages::default()
            }),
            Arc::new(LimitWarner {
                max_context_tokens: Some((target as u64).saturating_add(1)),
                ..LimitWarner::default()
            }),
            Arc::new(RelevanceCompaction {
                // A summarizer wants 2000 tokens to be kept free.
                target_tokens: Some((target as u64).saturating_add(if flag { 2_000 } else { 0 })),
                summarizer: flag
                    .then(|| SummarizingCompaction { incremental: third, ..SummarizingCompaction::default() }),
                keep_tokens: if tokens { 1 } else { target as u64 / 2 },
                summary_input_tokens: if other { 1 } else { 30 },
                judge_input_tokens: if third { 1 } else { 10 },
                truncated_result_chars: target / 2,
                ..RelevanceCompaction::default()
            }),
        ]
    }

    /// A strategy that is a plain function.
    struct Rogue(Business, fn(&History) -> History);

    impl Strategy for Rogue {
        fn kind(&self) -> &'static str {
            "rogue"
        }

        fn business(&self) -> Business {
            self.0
        }

        fn compact<'a>(
            &'a self,
            history: &'a History,
            _cx: &'a mut CompactContext<'_>,
        ) -> BoxFuture<'a, Result<Compacted, CompactError>> {
            Box::pin(std::future::ready(Ok(Compacted::Changed(self.1(history)))))
        }
    }

    #[test]
    fn a_broken_law_is_named() {
        let call = ToolCall::new("c1", "read", "{}");
        let head = Request {
            content: vec![Part::system("be brief"), Part::text("pin").pinned()].into(),
            ..Request::default()
        };
        let history = History::from(vec![
            Event::Request(head),
            Event::calls([call.clone()]),
            Event::results([ToolResult::text_result(&call, Outcome::Ok, "text")]),
            Event::request("and now?"),
        ]);
        let law = |business, function: fn(&History) -> History| {
            pollster::block_on(check(&Rogue(business, function), &history, &answer)).map_err(|broken| broken.law)
        };
        macro_rules! keeping {
            ($($index:literal)*) => { |history| {
                History::new([$($index),*].iter().filter_map(|&i: &usize| history.get(i).cloned()).collect::<Vec<_>>())
            } };
        }
        assert_eq!(law(Business::Drops, keeping!(0 2 3)), Err(1));
        assert_eq!(law(Business::Drops, keeping!(0 1 2)), Err(2));
        assert_eq!(law(Business::Drops, keeping!(3)), Err(3));
        assert_eq!(law(Business::Drops, keeping!(0 0 3)), Err(3));
        assert_eq!(law(Business::Drops, keeping!(1 0 3)), Err(4));
        assert_eq!(law(Business::Drops, keeping!(0 3 3)), Err(5));
        assert_eq!(law(Business::Drops, |history| history.clone()), Err(6));
        assert_eq!(law(Business::Keeps, keeping!(0 3)), Err(8));
        assert_eq!(law(Business::Drops, keeping!(0 3)), Err(7), "this one calls its second pass a change too");
    }
}
