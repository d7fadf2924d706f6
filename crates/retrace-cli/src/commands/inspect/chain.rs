//! What remains when a strategy runs again and again, as it does in production.

use std::sync::Arc;

use retrace_events::tokens::{TokenCounter, Tokens, count_sent};
use retrace_events::{Boundary, History, with_causes};
use retrace_strategies::{CompactContext, Compacted, Strategy};
use serde::Serialize;

/// One pass of a strategy over what its last pass left and what the run added since.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Link {
    pub(super) recording: String,
    pub(super) cut: usize,
    /// The tokens of the raw history.
    pub(super) raw: Tokens,
    /// The tokens before the pass.
    pub(super) before: Tokens,
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
    /// Why the chain of this recording ends here: it fails, or would ask a model.
    Stopped(String),
}

/// Applies a strategy at every boundary of a recording in turn, each time to what the last one left.
pub(super) async fn links(strategy: &dyn Strategy, boundaries: &[Boundary], counter: &dyn TokenCounter) -> Vec<Link> {
    let mut links = Vec::new();
    for of_recording in boundaries.chunk_by(|a, b| Arc::ptr_eq(a.trajectory(), b.trajectory())) {
        let (mut history, mut cut) = (History::new([]), 0);
        for boundary in of_recording {
            let events = &boundary.trajectory().recording().events;
            events[cut..boundary.cut()].iter().for_each(|event| history.push(Arc::clone(event)));
            cut = boundary.cut();
            let before = count_sent(counter, &history);
            let mut cx = CompactContext::without_model();
            cx.counter = counter;
            let pass = match strategy.compact(&history, &mut cx).await {
                Ok(Compacted::Unchanged) => Pass::After(before),
                Ok(Compacted::Changed(after)) => {
                    history = after;
                    Pass::After(count_sent(counter, &history))
                }
                Err(error) => Pass::Stopped(with_causes(&error)),
            };
            let is_stopped = matches!(pass, Pass::Stopped(_));
            let raw = count_sent(counter, &boundary.history());
            links.push(Link { recording: boundary.trajectory().id().to_owned(), cut, raw, before, pass });
            if is_stopped {
                break;
            }
        }
    }
    links
}

#[cfg(test)]
mod tests {
    use retrace_events::tokens::FourCharacters;
    use retrace_events::{Event, Header, Outcome, Recording, ToolCall, ToolResult, Trajectory};
    use retrace_strategies::{Identity, Summarize, TailWindow};

    use super::*;

    #[test]
    fn each_pass_starts_from_what_the_last_one_left() {
        let rounds = (0..6).flat_map(|n| {
            let call = ToolCall::new(n.to_string(), "read", "{}");
            let result = ToolResult::text_result(&call, Outcome::Ok, "x".repeat(394));
            [Event::calls([call]), Event::results([result])]
        });
        let events: Vec<_> = [Event::request("y".repeat(400))].into_iter().chain(rounds).collect();
        let trajectory = Arc::new(Trajectory::new(Recording::new(Header::new("a"), events)));
        let boundaries = [5, 9, 13].map(|cut| Boundary::new(&trajectory, cut).unwrap());
        let told = |strategy: &dyn Strategy| {
            let links = pollster::block_on(links(strategy, &boundaries, &FourCharacters));
            links.into_iter().map(|link| (link.cut, link.raw.0, link.before.0, link.pass)).collect::<Vec<_>>()
        };
        let after = |n| Pass::After(Tokens(n));
        // A round is 100 tokens, as is the request; a window of two events keeps one round.
        assert_eq!(
            told(&TailWindow::new(2)),
            [(5, 300, 300, after(100)), (9, 500, 300, after(100)), (13, 700, 300, after(100))]
        );
        assert_eq!(
            told(&Identity::default()),
            [(5, 300, 300, after(300)), (9, 500, 500, after(500)), (13, 700, 700, after(700))]
        );
        // What a model would leave is not known, so nothing is known of the passes after it.
        let summary = told(&Summarize::new(2));
        assert!(matches!(&summary[..], [(5, 300, 300, Pass::Stopped(why))] if why.contains("no model is asked")));
    }
}
