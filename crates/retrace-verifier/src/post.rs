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
    use retrace_events::{Outcome, Request, ToolCall, ToolResult};

    use super::*;

    fn results(outcome: Outcome, text: &str) -> Event {
        Event::results([ToolResult::text_result(&ToolCall::new("c1", "read", "{}"), outcome, text)])
    }

    fn warning() -> Event {
        let mut part = Part::text("wrap up");
        part.marks.scope = Some("request".to_owned());
        Event::Request(Request { content: vec![part], ..Request::default() })
    }

    #[test]
    fn the_task_is_kept_by_its_words_a_pin_or_a_summary() {
        let task = || Event::request("go");
        let pinned = Event::Request(Request { content: vec![Part::text("go").pinned()], ..Request::default() });
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
