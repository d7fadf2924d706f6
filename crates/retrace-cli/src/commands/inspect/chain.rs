//! What remains when a strategy runs again and again, as it does in production.

use std::sync::Arc;

use retrace_events::tokens::{TokenCounter, Tokens, count_sent};
use retrace_events::{Boundary, Event, History, Part, Response, with_causes};
use retrace_model::Prompt;
use retrace_strategies::{Ask, BoxFuture, CompactContext, CompactError, Compacted, Strategy, go_on};
use serde::Serialize;

/// How long a summary is taken to be, since no model is asked: 500 tokens of four characters.
pub(super) const SUMMARY_CHARS: usize = 2_000;

/// Answers every question with so many characters.
struct StandIn;

impl Ask for StandIn {
    fn ask<'a>(&'a self, _: &'a Prompt<'a>, _: Option<&'a str>) -> BoxFuture<'a, Result<Response, CompactError>> {
        let content = [Part::text("note".repeat(SUMMARY_CHARS / 4))].into();
        Box::pin(std::future::ready(Ok(Response { content, ..Response::default() })))
    }
}

/// One pass of a strategy over what its last pass left and what the run added since.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Link {
    pub(super) recording: String,
    pub(super) cut: usize,
    /// The tokens of the raw history.
    pub(super) raw: Tokens,
    /// The tokens before the pass.
    pub(super) before: Tokens,
    /// How often it would ask a model.
    pub(super) questions: u64,
    /// Whether a model would be paid for a summary that replaces one of its own.
    pub(super) summarizes_summary: bool,
    /// The tokens after it.
    #[serde(flatten)]
    pub(super) pass: Pass,
}

/// How a pass ended.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Pass {
    /// What it left, in tokens.
    After(Tokens),
    /// Why the chain of this recording ends here.
    Failed(String),
}

/// Applies a strategy at every boundary of a recording in turn, each time to what the last one left.
pub(super) async fn links(strategy: &dyn Strategy, boundaries: &[Boundary], counter: &dyn TokenCounter) -> Vec<Link> {
    let mut links = Vec::new();
    for of_recording in boundaries.chunk_by(|a, b| Arc::ptr_eq(a.trajectory(), b.trajectory())) {
        let (mut history, mut raw, mut cut) = (History::new([]), History::new([]), 0);
        for boundary in of_recording {
            let added = &boundary.trajectory().recording().events[cut..boundary.cut()];
            history = go_on(&raw, &history, added, counter);
            (raw, cut) = (boundary.history(), boundary.cut());
            let before = count_sent(counter, &history);
            let mut cx = CompactContext::new(&StandIn, 0);
            cx.counter = counter;
            let compacted = strategy.compact(&history, &mut cx).await;
            let questions = cx.spend().n_model_calls;
            let mut summarizes_summary = false;
            let pass = match compacted {
                Ok(Compacted::Unchanged) => Pass::After(before),
                Ok(Compacted::Changed(after)) => {
                    summarizes_summary = questions > 0 && !keeps_summaries(&history, &after);
                    history = after;
                    Pass::After(count_sent(counter, &history))
                }
                Err(CompactError::UnusableJudgement { .. }) => {
                    Pass::Failed("it asks a judge, whose answers nothing can stand in for".to_owned())
                }
                Err(error) => Pass::Failed(with_causes(&error)),
            };
            let (recording, raw_tokens) = (boundary.trajectory().id().to_owned(), count_sent(counter, &raw));
            let has_failed = matches!(pass, Pass::Failed(_));
            links.push(Link { recording, cut, raw: raw_tokens, before, questions, summarizes_summary, pass });
            if has_failed {
                break;
            }
        }
    }
    links
}

/// Whether every summary is still there.
fn keeps_summaries(before: &History, after: &History) -> bool {
    let mut summaries = before.iter().filter(|event| matches!(***event, Event::Summary(_)));
    summaries.all(|summary| after.iter().any(|kept| Arc::ptr_eq(kept, summary)))
}

#[cfg(test)]
mod tests {
    use retrace_events::tokens::FourCharacters;
    use retrace_events::{Event, Header, Outcome, Recording, ToolCall, ToolResult, Trajectory};
    use retrace_strategies::{Business, Identity, Summarize, TailWindow};

    use super::*;

    /// Boundaries after 2, 4 and 6 rounds of 100 tokens each, behind a request of 100.
    fn boundaries() -> [Boundary; 3] {
        let rounds = (0..6).flat_map(|n| {
            let call = ToolCall::new(n.to_string(), "read", "{}");
            let result = ToolResult::text_result(&call, Outcome::Ok, "x".repeat(394));
            [Event::calls([call]), Event::results([result])]
        });
        let events: Vec<_> = [Event::request("y".repeat(400))].into_iter().chain(rounds).collect();
        let trajectory = Arc::new(Trajectory::new(Recording::new(Header::new("a"), events)));
        [5, 9, 13].map(|cut| Boundary::new(&trajectory, cut).unwrap())
    }

    #[test]
    fn each_pass_starts_from_what_the_last_one_left() {
        let boundaries = boundaries();
        let told = |strategy: &dyn Strategy| {
            let links = pollster::block_on(links(strategy, &boundaries, &FourCharacters));
            links.into_iter().map(|link| (link.cut, link.raw.0, link.before.0, link.pass)).collect::<Vec<_>>()
        };
        let after = |n| Pass::After(Tokens(n));
        // A window of two events keeps one round.
        assert_eq!(
            told(&TailWindow::new(2)),
            [(5, 300, 300, after(100)), (9, 500, 300, after(100)), (13, 700, 300, after(100))]
        );
        assert_eq!(
            told(&Identity::default()),
            [(5, 300, 300, after(300)), (9, 500, 500, after(500)), (13, 700, 700, after(700))]
        );
        // A summary of 500 tokens, which the next pass summarizes again with the round after it.
        assert_eq!(
            told(&Summarize::new(2)),
            [(5, 300, 300, after(600)), (9, 500, 800, after(600)), (13, 700, 800, after(600))]
        );
        let again = pollster::block_on(links(&Summarize::new(2), &boundaries, &FourCharacters));
        let again: Vec<_> = again.iter().map(|link| (link.questions, link.summarizes_summary)).collect();
        assert_eq!(again, [(1, false), (1, true), (1, true)]);
    }

    /// Fails when it is given more than five events.
    struct Fails;

    impl Strategy for Fails {
        fn kind(&self) -> &'static str {
            "fails"
        }

        fn business(&self) -> Business {
            Business::Keeps
        }

        fn compact<'a>(
            &'a self,
            history: &'a History,
            _: &'a mut CompactContext<'_>,
        ) -> BoxFuture<'a, Result<Compacted, CompactError>> {
            let failed = Err(CompactError::EmptySummary);
            Box::pin(std::future::ready(if history.len() > 5 { failed } else { Ok(Compacted::Unchanged) }))
        }
    }

    #[test]
    fn a_chain_ends_where_a_pass_fails() {
        let links = pollster::block_on(links(&Fails, &boundaries(), &FourCharacters));
        let passes: Vec<_> = links.into_iter().map(|link| link.pass).collect();
        assert_eq!(passes, [Pass::After(Tokens(300)), Pass::Failed("the summary is empty".to_owned())]);
    }
}
