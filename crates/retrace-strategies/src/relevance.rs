//! `relevance`: each older step kept, reduced or dropped, as a judge ranks it. Cost: a model call for every few
//! new steps, and one for a summary. Known from pydantic-ai-harness.

mod judge;
mod judgements;
mod steps;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use futures_core::future::BoxFuture;
use retrace_events::tokens::{TokenCounter, Tokens, count_events};
use retrace_events::{Event, History, Part, Summary};
use serde::{Deserialize, Serialize};

use crate::anchors::bring_back;
use crate::bridge::notes;
use crate::briefing::{Show, rendered};
use crate::config::{BadSetting, at_least_one, one_of_two};
use crate::context::CompactContext;
use crate::strategy::{Business, CompactError, Compacted, Strategy};
use crate::summarizing::SummarizingCompaction;
use crate::trigger::{FALLBACK_WINDOW, Kept, Window, with_trigger};

use self::judge::Judgement;
#[cfg(test)]
pub(crate) use self::judge::answered;
pub use self::judgements::Judgements;
use self::steps::{Layout, Reduced, Step};

/// What is kept free for a summary, in tokens.
const SUMMARY_TOKENS: u64 = 2_000;

with_trigger! {
    /// Asks a judge of each older step whether its exact content will be needed, and whether it still matters. Steps are
    /// kept whole by the first answer, the most needed first, while they fit the target; the others are reduced by the
    /// second one, into a summary or by cutting their results, while they fit; what is left is dropped.
    ///
    /// A step is a response and what follows it up to the next one, or several such where a result answers an earlier
    /// call. All that comes before the first response stays, and so do the newest `keep_tokens`. A step with a turn of the
    /// user is never dropped, only reduced. A history that fits the target is left alone, and nothing is asked.
    ///
    /// All sizes are those of the run's counter: what a provider said of a request no longer holds once steps in the
    /// middle of it are gone.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct RelevanceCompaction {
        /// The judge; the run's own model if none is named.
        pub model: Option<String>,
        /// Reduces steps to a summary, by its settings of how one is asked for; its trigger, and what it would keep, play no
        /// part. Without one the results of reduced steps are cut.
        pub summarizer: Option<SummarizingCompaction>,
        /// The size to get to, in tokens; half the trigger if none is set.
        pub target_tokens: Option<u64>,
        /// As `target_tokens`, as a share of the context window.
        pub target_fraction: Option<f64>,
        /// How many tokens at the end stay at least, as whole steps.
        pub keep_tokens: u64,
        /// How many tokens of reduced steps a summarizer is shown. Steps with a turn of the user come first, and are all in it.
        pub summary_input_tokens: u64,
        /// How many tokens of a step the judge is shown, of four characters each; the middle of a longer one is cut out.
        pub judge_step_tokens: usize,
        /// How many tokens of the task, and of the newest events, the judge is shown with the steps.
        pub judge_context_tokens: usize,
        /// How many tokens of steps are in one question, at least one step.
        pub judge_input_tokens: u64,
        /// How many characters of a result stay where a step is reduced without a summarizer.
        pub truncated_result_chars: usize,
        /// What the judge said before.
        #[serde(skip)]
        pub judgements: Judgements,
    }
}

impl Default for RelevanceCompaction {
    fn default() -> Self {
        Self {
            max_messages: None,
            max_tokens: None,
            max_fraction: None,
            context_window: None,
            fallback_context_window: FALLBACK_WINDOW,
            model: None,
            summarizer: None,
            target_tokens: None,
            target_fraction: None,
            keep_tokens: 8_000,
            summary_input_tokens: 30_000,
            judge_step_tokens: 2_000,
            judge_context_tokens: 500,
            judge_input_tokens: 16_000,
            truncated_result_chars: 300,
            judgements: Judgements::default(),
        }
    }
}

impl RelevanceCompaction {
    pub(crate) fn check(&self) -> Result<(), BadSetting> {
        self.trigger().check_set()?;
        at_least_one("target_tokens", self.target_tokens)?;
        one_of_two("target_tokens", self.target_tokens.is_some(), "target_fraction", self.target_fraction.is_some())?;
        if let Some(fraction) = self.target_fraction {
            Window::check_share("target_fraction", fraction)?;
        }
        if self.target(None).is_none() {
            let problem = "is missing: set it or `target_fraction`, since `max_messages` gives no size";
            return Err(BadSetting::new("target_tokens", problem));
        }
        at_least_one("keep_tokens", Some(self.keep_tokens))?;
        at_least_one("summary_input_tokens", Some(self.summary_input_tokens))?;
        at_least_one("judge_step_tokens", Some(self.judge_step_tokens))?;
        at_least_one("judge_context_tokens", Some(self.judge_context_tokens))?;
        at_least_one("judge_input_tokens", Some(self.judge_input_tokens))?;
        self.summarizer.as_ref().map_or(Ok(()), SummarizingCompaction::check_writing)
    }

    /// The size to get to, if there is any.
    fn target(&self, window: Option<Tokens>) -> Option<Tokens> {
        let trigger = self.trigger();
        let share = || Some(trigger.window.share(self.target_fraction?, window));
        let half = || Some(Tokens((trigger.most_tokens(window)?.0 / 2).max(1)));
        self.target_tokens.map(Tokens).or_else(share).or_else(half)
    }

    async fn run(&self, history: &History, cx: &mut CompactContext<'_>) -> Result<Compacted, CompactError> {
        let Some(target) = self.target(cx.window) else { return Ok(Compacted::Unchanged) };
        if count_events(cx.counter, history.events()) <= target {
            return Ok(Compacted::Unchanged);
        }
        let layout = Layout::of(history, self.keep_tokens, cx.counter);
        let steps: Vec<_> = layout.middle.iter().map(|events| self.step(events, cx.counter)).collect();
        let room = self.room(target, &layout, &steps, cx.counter);
        let whole = steps.iter().map(|step| step.cost).fold(0, u64::saturating_add);
        if whole <= room {
            return Ok(Compacted::Unchanged);
        }
        let judgements = self.judge(history, &layout, cx).await?;
        let fates = self.fates(&steps, &judgements, room);
        self.rebuild(history, &layout, &steps, &fates, cx).await
    }

    /// A step, and what it can be reduced to.
    fn step(&self, events: &[Arc<Event>], counter: &dyn TokenCounter) -> Step {
        let reduced = match &self.summarizer {
            Some(summarizer) => {
                let show = Show { result_chars: summarizer.tool_return_max_chars, summaries: true };
                Reduced::Told(rendered(events.iter().map(|event| &**event), show))
            }
            None => Reduced::Cut(
                events.iter().map(|event| steps::cut_results(event, self.truncated_result_chars)).collect(),
            ),
        };
        Step::new(events, reduced, counter)
    }

    /// What is left of the target for whole steps. What stays whatever the judge says is taken off: the head, the tail, the
    /// pinned parts between them, and what steps with a turn of the user, or a summary of them, have at the least.
    fn room(&self, target: Tokens, layout: &Layout, steps: &[Step], counter: &dyn TokenCounter) -> u64 {
        let least = match &self.summarizer {
            Some(_) => SUMMARY_TOKENS,
            None => {
                steps.iter().filter(|step| step.has_turn).map(|step| step.reduced_size).fold(0, u64::saturating_add)
            }
        };
        // A new summary takes the place of an earlier one.
        let head = layout.head.iter().filter(|event| self.summarizer.is_none() || !is_summary(event));
        target.0.saturating_sub(layout.size_of_rest(head, counter)).saturating_sub(least)
    }

    /// What becomes of each step. Ranks decide, not the numbers: those of a judge shift together from question to question.
    fn fates(&self, steps: &[Step], judgements: &[Judgement], mut room: u64) -> Vec<Fate> {
        let mut fates = vec![Fate::Dropped; steps.len()];
        for index in ranked(judgements, |judgement| judgement.exact) {
            if steps[index].cost <= room {
                room -= steps[index].cost;
                fates[index] = Fate::Kept;
            }
        }
        let mut of_turns = 0_u64;
        for (fate, step) in fates.iter_mut().zip(steps).filter(|(fate, step)| step.has_turn && **fate == Fate::Dropped)
        {
            *fate = Fate::Reduced;
            of_turns = of_turns.saturating_add(step.reduced_size);
        }
        if self.summarizer.is_some() {
            room = self.summary_input_tokens.saturating_sub(of_turns);
        }
        for index in ranked(judgements, |judgement| judgement.matters) {
            if fates[index] == Fate::Dropped && steps[index].reduced_size <= room {
                room -= steps[index].reduced_size;
                fates[index] = Fate::Reduced;
            }
        }
        fates
    }

    async fn rebuild(
        &self,
        history: &History,
        layout: &Layout,
        steps: &[Step],
        fates: &[Fate],
        cx: &mut CompactContext<'_>,
    ) -> Result<Compacted, CompactError> {
        let (mut head, mut rest) = (layout.head.clone(), Vec::new());
        let (mut told, mut n_told) = (String::new(), 0);
        for ((events, step), fate) in layout.middle.iter().zip(steps).zip(fates) {
            match (fate, &step.reduced) {
                (Fate::Kept, _) => rest.extend(events.iter().cloned()),
                (Fate::Reduced, Reduced::Cut(events)) => rest.extend(events.iter().cloned()),
                (Fate::Reduced, Reduced::Told(transcript)) => {
                    told.push_str(transcript);
                    n_told += events.iter().filter(|event| event.counts()).count();
                }
                (Fate::Dropped, _) => {}
            }
        }
        if let Some(summarizer) = self.summarizer.as_ref().filter(|_| !told.trim().is_empty()) {
            let (earlier, mut others): (Vec<_>, Vec<_>) = head.into_iter().partition(|event| is_summary(event));
            let content = summary(summarizer, &earlier, told, cx).await?;
            let replaced = (n_told + earlier.len()) as u64;
            others.push(Arc::new(Event::Summary(Summary { content: content.into(), replaced, ..Summary::default() })));
            head = others;
        }
        rest.extend(layout.tail.iter().cloned());
        Ok(Compacted::of(history, History::new(bring_back(history, head, rest))))
    }
}

/// What a summary of a transcript is to hold, in which earlier ones are updated or told anew.
async fn summary(
    summarizer: &SummarizingCompaction,
    earlier: &[Arc<Event>],
    mut transcript: String,
    cx: &mut CompactContext<'_>,
) -> Result<Vec<Part>, CompactError> {
    let previous = earlier.last().filter(|_| summarizer.incremental).and_then(|event| match &**event {
        Event::Summary(summary) => Some(notes(summary)),
        _ => None,
    });
    if previous.is_none() {
        let show = Show { result_chars: None, summaries: true };
        transcript.insert_str(0, &rendered(earlier.iter().map(|event| &**event), show));
    }
    summarizer.write(&transcript, previous.as_deref(), cx).await
}

/// What becomes of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Kept,
    Reduced,
    Dropped,
}

/// The indices of steps, the one with the highest number first; of equal ones the newest.
fn ranked(judgements: &[Judgement], number: impl Fn(&Judgement) -> f64) -> Vec<usize> {
    let mut newest_first: Vec<_> = (0..judgements.len()).rev().collect();
    newest_first.sort_by(|&a, &b| number(&judgements[b]).total_cmp(&number(&judgements[a])));
    newest_first
}

fn is_summary(event: &Event) -> bool {
    matches!(event, Event::Summary(_))
}

impl Strategy for RelevanceCompaction {
    fn kind(&self) -> &'static str {
        "relevance"
    }

    fn business(&self) -> Business {
        Business::DropsAndSummarizes
    }

    fn is_due(&self, history: &History, window: Option<Tokens>, counter: &dyn TokenCounter) -> bool {
        self.trigger().fires(history, window, counter)
    }

    fn fresh(&self) -> Option<Arc<dyn Strategy>> {
        Some(Arc::new(Self { judgements: Judgements::default(), ..self.clone() }))
    }

    fn models(&self) -> Vec<&str> {
        let summarizer = self.summarizer.as_ref().and_then(|summarizer| summarizer.model.as_deref());
        self.model.as_deref().into_iter().chain(summarizer).collect()
    }

    fn warnings(&self) -> Vec<BadSetting> {
        let kept = Kept::Tokens { n: self.keep_tokens, by: "keep_tokens" };
        self.trigger().set_off_by(kept).into_iter().collect()
    }

    fn compact<'a>(
        &'a self,
        history: &'a History,
        cx: &'a mut CompactContext<'_>,
    ) -> BoxFuture<'a, Result<Compacted, CompactError>> {
        Box::pin(self.run(history, cx))
    }
}
