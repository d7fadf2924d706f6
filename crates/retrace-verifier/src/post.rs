//! Whether an agent can be resumed from what a strategy kept.

use std::sync::Arc;

use retrace_events::{Event, History, Part};

/// What is wrong with a compacted history, if anything is: it must end with the boundary's `tool_results` event, the
/// same calls in the same order with the same outcomes. Its contents may be blanked, and requests of nothing but parts
/// with `scope: "request"` may follow.
pub(crate) fn flaw(before: &History, after: &History) -> Option<&'static str> {
    if after.is_empty() {
        return Some("nothing was kept");
    }
    let newest =
        |history: &History| history.iter().rev().find(|event| event.counts() && !event.is_request_scoped()).cloned();
    let (before, after) = (newest(before), newest(after));
    match (before.as_deref(), after.as_deref()) {
        (Some(Event::ToolResults(before)), Some(Event::ToolResults(after))) if before.tells_the_same(after) => None,
        _ => Some("the newest results are not kept at the end"),
    }
}

/// Whether the first thing the user asked for is gone, and no summary stands in for it.
pub(crate) fn loses_task(before: &History, after: &History) -> bool {
    fn turns(event: &Event) -> Vec<&Part> {
        let content = if let Event::Request(request) = event { &request.content[..] } else { &[] };
        content.iter().filter(|part| part.is_user_turn() || part.marks.pinned).collect()
    }
    let Some(task) = before.events().map(turns).find(|turns| !turns.is_empty()) else { return false };
    let holds_task =
        |event: &Event| matches!(event, Event::Summary(_)) || turns(event).iter().any(|part| task.contains(part));
    !after.events().any(holds_task)
}

/// A history whose clones share all its events.
pub(crate) fn shared(history: History) -> History {
    if history.own().is_empty() { history } else { History::new(history.iter().map(Arc::clone).collect::<Vec<_>>()) }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use retrace_events::{Extra, Outcome, Request, Summary, ToolCall, ToolResult, ToolSpec, Usage, UsageEvent};
    use retrace_model::{Prompt, Rules, ScriptedModel};
    use retrace_strategies::{
        AskModel, CompactContext, Compacted, Identity, Strategy as Compactor, Summarize, TailWindow,
    };

    use super::*;

    /// What may stand between two rounds.
    fn between() -> impl Strategy<Value = Event> {
        let summary = Summary { content: [Part::text("so far")].into(), replaced: 2, extra: Extra::default() };
        let usage =
            UsageEvent { kind: "chat".to_owned(), usage: Usage::default(), model: None, extra: Extra::default() };
        let pinned = Request { content: [Part::text("never push").pinned()].into(), ..Request::default() };
        prop_oneof![
            Just(Event::request("go on")),
            Just(Event::answer("well")),
            Just(Event::Request(pinned)),
            Just(Event::Request(Request { content: [Part::system("be brief")].into(), ..Request::default() })),
            Just(warning()),
            Just(Event::Summary(summary)),
            Just(Event::Usage(usage)),
        ]
    }

    /// A response with calls, whose ids those before it may have had, and their results in any order and in one event or
    /// more.
    fn round() -> impl Strategy<Value = Vec<Event>> {
        let ids = Just(vec!["c1", "c2", "c3"]).prop_shuffle();
        (ids, 1..4_usize, any::<bool>(), any::<bool>()).prop_map(|(ids, n_calls, in_order, at_once)| {
            let calls: Vec<_> = ids[..n_calls].iter().map(|id| ToolCall::new(*id, "read", "{}")).collect();
            let mut results: Vec<_> =
                calls.iter().map(|call| ToolResult::text_result(call, Outcome::Ok, "text")).collect();
            if !in_order {
                results.reverse();
            }
            let answers = if at_once {
                vec![Event::results(results)]
            } else {
                results.into_iter().map(|result| Event::results([result])).collect()
            };
            [Event::calls(calls)].into_iter().chain(answers).collect()
        })
    }

    proptest! {
        #[test]
        fn what_the_menu_keeps_of_a_sound_history_has_no_flaw(
            rounds in vec((vec(between(), 0..3), round()), 1..6),
            target in 0_usize..9,
            twice: bool,
        ) {
            let events = rounds.into_iter().flat_map(|(between, round)| between.into_iter().chain(round));
            let raw = History::from(events.collect::<Vec<_>>());
            let read = ToolSpec {
                name: "read".to_owned(),
                description: None,
                parameters: ToolSpec::any_arguments(),
                extra: Extra::default(),
            };
            let flaws = |history: &History| {
                let prompt = Prompt { instructions: None, history, tools: std::slice::from_ref(&read), seed: 0 };
                Rules::strict().flaws(&prompt, &raw)
            };
            prop_assert_eq!(flaws(&raw), []);
            let menu: [&dyn Compactor; 3] = [&Identity {}, &TailWindow::new(target), &Summarize::new(target)];
            for strategy in menu {
                let mut kept = raw.clone();
                for _ in 0..=usize::from(twice) {
                    let model = AskModel(ScriptedModel::new(["a summary"]));
                    let compacted = pollster::block_on(strategy.compact(&kept, &mut CompactContext::new(&model, 0)));
                    if let Compacted::Changed(after) = compacted.unwrap() {
                        kept = after;
                    }
                }
                prop_assert_eq!(flaws(&kept), [], "{}: {:?}", strategy.kind(), kept);
                prop_assert_eq!(flaw(&raw, &kept), None, "{}: {:?}", strategy.kind(), kept);
            }
        }
    }

    fn results(outcome: Outcome, text: &str) -> Event {
        Event::results([ToolResult::text_result(&ToolCall::new("c1", "read", "{}"), outcome, text)])
    }

    fn warning() -> Event {
        let mut part = Part::text("wrap up");
        part.marks.set_scope("request");
        Event::Request(Request { content: [part].into(), ..Request::default() })
    }

    #[test]
    fn the_task_is_kept_by_its_words_a_pin_or_a_summary() {
        let task = || Event::request("go");
        let pinned = Event::Request(Request { content: [Part::text("go").pinned()].into(), ..Request::default() });
        let summary = Event::Summary(retrace_events::Summary::default());
        let loses = |before: Vec<Event>, after: Vec<Event>| loses_task(&History::from(before), &History::from(after));
        let rest = || results(Outcome::Ok, "text");
        assert!(loses(vec![task(), rest()], vec![rest()]));
        assert!(!loses(vec![task(), rest()], vec![task(), rest()]));
        assert!(!loses(vec![task(), rest()], vec![summary, rest()]));
        assert!(!loses(vec![pinned.clone(), rest()], vec![pinned, rest()]));
        assert!(!loses(vec![rest()], vec![rest()]));
    }

    #[test]
    fn a_compacted_history_ends_with_the_newest_results() {
        let history = |events: Vec<Event>| History::from(events);
        let before = history(vec![Event::request("go"), results(Outcome::Ok, "text")]);
        let flaw = |events| flaw(&before, &history(events));
        assert_eq!(flaw(vec![results(Outcome::Ok, "text")]), None);
        assert_eq!(flaw(vec![results(Outcome::Ok, "blanked"), warning()]), None);
        assert!(flaw(vec![]).is_some());
        assert!(flaw(vec![results(Outcome::Error, "text")]).is_some());
        assert!(flaw(vec![results(Outcome::Ok, "text"), Event::request("and now?")]).is_some());
        assert!(flaw(vec![Event::results([])]).is_some());
        assert!(flaw(vec![warning()]).is_some());
    }
}
