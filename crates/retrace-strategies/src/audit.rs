//! An audit: what a recorded run's later calls needed, and a strategy did not keep. It asks no model, and is a hint and
//! not a verdict: an agent that misses a value may look it up again, and one that has it may still go wrong.

mod finder;
mod values;

use std::collections::HashMap;
use std::sync::Arc;

use retrace_events::{Event, History, Trajectory};
use serde::Serialize;

use self::finder::{Finder, texts, texts_of};
use self::values::{Candidate, candidates};

/// A recording read once for what its calls needed, to be asked about any boundary and anything kept there.
///
/// A call needs the strings and numbers of its arguments that stood in an earlier event, where a user or a model would
/// not say them by chance: of two digits, with a mark or a digit, or of four letters and no common word. A text that
/// stood nowhere before is looked at piece by piece. What the instructions or the tools of the agent say is never lost.
///
/// ```
/// use std::sync::Arc;
/// use retrace_events::{Event, Header, History, Outcome, Recording, ToolCall, ToolResult, Trajectory};
/// use retrace_strategies::audit::Audit;
///
/// let login = ToolCall::new("c1", "login", "{}");
/// let trajectory = Arc::new(Trajectory::new(Recording::new(Header::new("shop-1"), [
///     Event::request("Keep every item in stock."),
///     Event::calls([login.clone()]),
///     Event::results([ToolResult::text_result(&login, Outcome::Ok, r#"{"session": "sess_42"}"#)]),
///     Event::calls([ToolCall::new("c2", "stock", r#"{"session": "sess_42"}"#)]),
/// ])));
/// let audit = Audit::new(&trajectory)?;
/// let kept = History::from(vec![Event::request("Keep every item in stock.")]);
/// let lost = audit.at(3, &kept).lost;
/// assert_eq!((&*lost[0].value, lost[0].stood_in.event, lost[0].needed_by.event), ("sess_42", 2, 3));
/// # Ok::<(), retrace_strategies::audit::CannotAudit>(())
/// ```
pub struct Audit {
    /// Kept alive, since its events are known by their addresses.
    trajectory: Arc<Trajectory>,
    index_of: HashMap<usize, usize>,
    finder: Finder,
    values: Vec<String>,
    /// The values in each event, in order, each with the index of the first result that holds it.
    values_in: Vec<Vec<(usize, usize)>>,
    /// The events that each value stands in, and those of them that the model did not write.
    stands_in: Vec<Vec<usize>>,
    told_in: Vec<Vec<usize>>,
    needs: Vec<Need>,
}

/// A call that needed a value.
struct Need {
    value: usize,
    by: NeededBy,
}

/// More values than can be looked for at once.
#[derive(Debug, thiserror::Error)]
#[error("the arguments of recording `{recording}` hold more values than an audit can look for")]
pub struct CannotAudit {
    /// The id of the recording.
    recording: String,
    #[source]
    cause: aho_corasick::BuildError,
}

/// What was needed after a boundary, and what of it was not kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Audited {
    /// Values that stood in the raw history and that a later call used before anyone told them again.
    pub needed: usize,
    /// Those that can no longer be found, in the order in which they were needed.
    pub lost: Vec<LostValue>,
}

/// A value that was needed and not kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LostValue {
    /// The value.
    pub value: String,
    /// Where it stood last in the raw history.
    pub stood_in: Place,
    /// The first call after the boundary that used it.
    pub needed_by: NeededBy,
}

/// An event of a recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Place {
    /// Its index; the first event is 0.
    pub event: usize,
    /// Its type.
    pub kind: &'static str,
    /// The tool whose result it was, of a `tool_results` event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
}

/// A call that used a value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NeededBy {
    /// The index of its response.
    pub event: usize,
    /// The tool.
    pub tool: String,
    /// Where in the arguments the value stood, as a JSON pointer.
    pub argument: String,
}

impl Audit {
    /// Reads a recording, in time linear in its length.
    ///
    /// # Errors
    /// When its arguments are too large to look for.
    pub fn new(trajectory: &Arc<Trajectory>) -> Result<Self, CannotAudit> {
        let recording = trajectory.recording();
        let calls = recording.events.iter().enumerate();
        let calls = calls.flat_map(|(index, event)| event.tool_calls().map(move |(_, call)| (index, call)));
        let calls: Vec<_> = calls.map(|(index, call)| (index, call, candidates(&call.arguments))).collect();
        let mut known = Values::default();
        calls.iter().flat_map(|(_, _, candidates)| candidates).for_each(|candidate| known.add(candidate));
        let Values { ids, values } = known;
        let finder =
            Finder::new(&values).map_err(|cause| CannotAudit { recording: recording.header.id.clone(), cause })?;

        let values_in: Vec<_> = recording.events.iter().map(|event| values_in(event, &finder)).collect();
        let (mut stands_in, mut told_in) = (vec![Vec::new(); values.len()], vec![Vec::new(); values.len()]);
        for (index, (event, found)) in recording.events.iter().zip(&values_in).enumerate() {
            for &(value, _) in found {
                stands_in[value].push(index);
                if !matches!(**event, Event::Response(_)) {
                    told_in[value].push(index);
                }
            }
        }
        let tools = recording.header.tools.iter();
        let tools: Vec<_> = tools
            .map(|tool| format!("{} {} {}", tool.name, tool.description.as_deref().unwrap_or(""), tool.parameters))
            .collect();
        let mut is_given = vec![false; values.len()];
        let given = recording.header.instructions.iter().chain(&tools).map(String::as_str);
        finder.find(given).into_iter().for_each(|value| is_given[value] = true);

        let mut needs = Vec::new();
        for (event, call, candidates) in &calls {
            let stood = |value: usize| stands_in[value].first().is_some_and(|first| first < event);
            let mut waiting: Vec<_> = candidates.iter().rev().collect();
            while let Some(candidate) = waiting.pop() {
                match ids.get(&*candidate.value) {
                    Some(&value) if is_given[value] => {}
                    Some(&value) if stood(value) => {
                        let (tool, argument) = (call.name.to_string(), candidate.argument.clone());
                        needs.push(Need { value, by: NeededBy { event: *event, tool, argument } });
                    }
                    _ => waiting.extend(candidate.pieces.iter().rev()),
                }
            }
        }
        let addresses = recording.events.iter().enumerate();
        let index_of = addresses.map(|(index, event)| (Arc::as_ptr(event).addr(), index)).collect();
        Ok(Self { trajectory: Arc::clone(trajectory), index_of, finder, values, values_in, stands_in, told_in, needs })
    }

    /// What the calls after the first `cut` events needed of these, and what of it is not in `kept`. Events that are shared
    /// with the recording are not read again.
    pub fn at(&self, cut: usize, kept: &History) -> Audited {
        let mut is_kept = vec![false; self.values.len()];
        for event in kept.iter() {
            match self.index_of.get(&Arc::as_ptr(event).addr()) {
                Some(&index) => self.values_in[index].iter().for_each(|&(value, _)| is_kept[value] = true),
                None => self.finder.find(texts(event)).into_iter().for_each(|value| is_kept[value] = true),
            }
        }
        let mut audited = Audited::default();
        let mut is_settled = vec![false; self.values.len()];
        let after = self.needs.partition_point(|need| need.by.event < cut);
        for Need { value, by } in &self.needs[after..] {
            if std::mem::replace(&mut is_settled[*value], true) {
                continue;
            }
            let Some(stood) = last_before(&self.stands_in[*value], cut) else { continue };
            if last_before(&self.told_in[*value], by.event).is_some_and(|told| told >= cut) {
                continue;
            }
            audited.needed += 1;
            if !is_kept[*value] {
                let (value, stood_in) = (self.values[*value].clone(), self.place(stood, *value));
                audited.lost.push(LostValue { value, stood_in, needed_by: by.clone() });
            }
        }
        audited
    }

    fn place(&self, event: usize, value: usize) -> Place {
        let place = &self.trajectory.recording().events[event];
        let tool = match &**place {
            Event::ToolResults(round) => {
                let values = &self.values_in[event];
                let found = values.binary_search_by_key(&value, |(value, _)| *value).ok();
                found.and_then(|found| round.results.get(values[found].1)).map(|result| result.name.to_string())
            }
            _ => None,
        };
        Place { event, kind: place.kind(), tool }
    }
}

/// The values in an event, each with the index of the first result that holds it; 0 where there are no results.
fn values_in(event: &Event, finder: &Finder) -> Vec<(usize, usize)> {
    let Event::ToolResults(round) = event else {
        return finder.find(texts(event)).into_iter().map(|value| (value, 0)).collect();
    };
    let each = round.results.iter().enumerate();
    let each =
        each.flat_map(|(index, result)| finder.find(texts_of(&result.content)).into_iter().map(move |v| (v, index)));
    let mut found: Vec<_> = each.collect();
    found.sort_unstable();
    found.dedup_by_key(|(value, _)| *value);
    found
}

fn last_before(events: &[usize], end: usize) -> Option<usize> {
    events[..events.partition_point(|event| *event < end)].last().copied()
}

/// Every value that is looked for, once.
#[derive(Default)]
struct Values {
    ids: HashMap<String, usize>,
    values: Vec<String>,
}

impl Values {
    fn add(&mut self, candidate: &Candidate) {
        if !candidate.value.is_empty() && !self.ids.contains_key(&candidate.value) {
            self.ids.insert(candidate.value.clone(), self.values.len());
            self.values.push(candidate.value.clone());
        }
        candidate.pieces.iter().for_each(|piece| self.add(piece));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use retrace_events::{Header, Outcome, Recording, Summary, ToolCall, ToolResult, ToolSpec};

    use super::*;
    use crate::{CompactContext, Compacted, Strategy as _, TailWindow};

    /// A call and its result.
    fn round(tool: &str, arguments: &str, result: &str) -> [Event; 2] {
        let call = ToolCall::new("c", tool, arguments);
        [Event::calls([call.clone()]), Event::results([ToolResult::text_result(&call, Outcome::Ok, result)])]
    }

    fn trajectory(header: Header, rounds: impl IntoIterator<Item = [Event; 2]>) -> Arc<Trajectory> {
        let events = [Event::request("Keep the shop of Mia Li in stock.")].into_iter();
        Arc::new(Trajectory::new(Recording::new(header, events.chain(rounds.into_iter().flatten()))))
    }

    /// A session that the first call brings, and the third needs.
    fn shop() -> Arc<Trajectory> {
        trajectory(
            Header::new("shop"),
            [
                round("login", r#"{"user": "Mia Li"}"#, r#"{"session":"sess_42"}"#),
                round("list", "{}", "apples, pears, plums"),
                round("stock", r#"{"session": "sess_42", "item": "apples", "note": "new_1"}"#, "3"),
                round("stock", r#"{"session": "sess_42", "item": "pears"}"#, "sess_42: 4"),
            ],
        )
    }

    fn raw(trajectory: &Trajectory, cut: usize) -> History {
        History::prefix(&trajectory.recording().events, cut)
    }

    #[test]
    fn a_value_that_a_window_drops_is_named_with_its_event_and_its_call() {
        let (trajectory, mut cx) = (shop(), CompactContext::without_model());
        let before = raw(&trajectory, 5);
        let Ok(Compacted::Changed(after)) = pollster::block_on(TailWindow::new(2).compact(&before, &mut cx)) else {
            panic!("the window drops three events");
        };
        let audit = Audit::new(&trajectory).unwrap();
        let stood_in = Place { event: 2, kind: "tool_results", tool: Some("login".to_owned()) };
        let needed_by = NeededBy { event: 5, tool: "stock".to_owned(), argument: "/session".to_owned() };
        let lost = LostValue { value: "sess_42".to_owned(), stood_in, needed_by };
        assert_eq!(audit.at(5, &after), Audited { needed: 3, lost: vec![lost] });
        assert_eq!(audit.at(5, &before), Audited { needed: 3, lost: vec![] });
        // Said by a summary, it can be found.
        let summary = Event::Summary(Summary {
            content: [retrace_events::Part::text("Use sess_42.")].into(),
            ..Summary::default()
        });
        let told: Vec<_> = [Arc::new(summary)].into_iter().chain(after.iter().map(Arc::clone)).collect();
        assert_eq!(audit.at(5, &History::new(told)).lost, []);
        // After the last use nothing is needed.
        assert_eq!(audit.at(9, &History::from(vec![])), Audited::default());
    }

    #[test]
    fn what_the_run_is_told_again_or_always_knows_is_not_lost() {
        let rounds = || {
            [
                round("login", "{}", "sess_42"),
                round("list", "{}", "sess_42"),
                round("stock", r#"{"session": "sess_42"}"#, "3"),
            ]
        };
        let lost = |trajectory: Arc<Trajectory>| Audit::new(&trajectory).unwrap().at(3, &History::from(vec![])).lost;
        assert_eq!(lost(trajectory(Header::new("r"), rounds())), []);
        let without_telling = || rounds().into_iter().enumerate().filter(|(i, _)| *i != 1).map(|(_, round)| round);
        assert_eq!(lost(trajectory(Header::new("r"), without_telling())).len(), 1);
        let told = Header { instructions: Some("Sessions: sess_42.".to_owned()), ..Header::new("r") };
        assert_eq!(lost(trajectory(told, without_telling())), []);
        let tool = ToolSpec {
            name: "stock".to_owned(),
            description: None,
            parameters: serde_json::json!({"enum": ["sess_42"]}),
            extra: Default::default(),
        };
        assert_eq!(lost(trajectory(Header { tools: vec![tool], ..Header::new("r") }, without_telling())), []);
    }

    #[test]
    fn of_a_round_of_many_results_the_one_that_holds_the_value_is_named() {
        let calls: Vec<_> = (0..2000).map(|n| ToolCall::new("c", format!("f{n}"), "{}")).collect();
        let result = |(n, call)| ToolResult::text_result(call, Outcome::Ok, format!("id_{n}"));
        let results = Event::results(calls.iter().enumerate().map(result));
        let needs = (0..2000).map(|n| ToolCall::new("c", "g", format!("[\"id_{n}\"]")));
        let trajectory = trajectory(
            Header::new("r"),
            [[Event::calls(calls.clone()), results], round("h", "{}", "")]
                .into_iter()
                .chain([[Event::calls(needs), Event::request("go on")]]),
        );
        let lost = Audit::new(&trajectory).unwrap().at(5, &History::from(vec![])).lost;
        assert_eq!(lost.len(), 2000);
        for (n, lost) in lost.iter().enumerate() {
            assert_eq!((&lost.value, &lost.stood_in.tool), (&format!("id_{n}"), &Some(format!("f{n}"))));
        }
    }

    #[test]
    fn a_text_that_stood_nowhere_is_looked_at_piece_by_piece() {
        let trajectory = trajectory(
            Header::new("r"),
            [round("list", "{}", "main.rs util.rs"), round("read", r#"{"path": "/app/src/main.rs"}"#, "fn main() {}")],
        );
        let lost = Audit::new(&trajectory).unwrap().at(3, &History::from(vec![])).lost;
        assert_eq!(lost.iter().map(|lost| &*lost.value).collect::<Vec<_>>(), ["main.rs"]);
    }

    /// Rounds over a few values, so that calls need what stood before.
    fn rounds() -> impl Strategy<Value = Vec<[Event; 2]>> {
        let text = || "(sess_1|sess_12|/a/b1|b1|17|1.7|Mia|é9|店7|\\\\n|\"|,| ){0,5}";
        let arguments =
            prop_oneof![text().prop_map(|text| serde_json::json!({"a": text, "b": [17, 1.7]}).to_string()), text(),];
        prop::collection::vec((arguments, text()), 0..8)
            .prop_map(|rounds| rounds.iter().map(|(arguments, result)| round("f", arguments, result)).collect())
    }

    proptest! {
        #[test]
        fn the_raw_history_loses_nothing_and_nothing_loses_more_than_was_there(rounds in rounds(), n in 0..4_usize) {
            let trajectory = trajectory(Header::new("r"), rounds);
            let audit = Audit::new(&trajectory).unwrap();
            for cut in 0..=trajectory.recording().events.len() {
                let before = raw(&trajectory, cut);
                let all = audit.at(cut, &before);
                prop_assert_eq!(&all.lost, &[]);
                // Copied events are read anew, and come to the same.
                let copied = History::from(before.events().cloned().collect::<Vec<_>>());
                prop_assert_eq!(&audit.at(cut, &copied), &all);
                let none = audit.at(cut, &History::from(vec![]));
                prop_assert_eq!((none.needed, none.lost.len()), (all.needed, all.needed));
                for lost in &none.lost {
                    let place = &trajectory.recording().events[lost.stood_in.event];
                    prop_assert!(lost.stood_in.event < cut && cut <= lost.needed_by.event);
                    prop_assert!(texts(place).any(|text| text.contains(&lost.value) || text.contains('\\')));
                }
                let tail: Vec<_> = before.iter().skip(n).map(Arc::clone).collect();
                let tail = audit.at(cut, &History::new(tail));
                prop_assert!(tail.lost.iter().all(|lost| none.lost.contains(lost)));
            }
        }
    }
}
