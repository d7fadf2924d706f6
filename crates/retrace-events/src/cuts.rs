//! Where a recording may be cut, and where it is cut by default.

use serde::Serialize;

use crate::event::Event;
use crate::pairing::{Pairing, pair};

/// A point at which a recording can be resumed: right after a `tool_results` event, with no call of the newest
/// response waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResumablePoint {
    /// Events before it.
    pub cut: usize,
    /// Actions before it.
    pub executed: usize,
}

/// How cuts are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Spacing {
    every: usize,
    min_prefix: usize,
    #[serde(rename = "max_boundaries_per_recording")]
    max_per_recording: Option<usize>,
}

impl Default for Spacing {
    /// The first cut after 3 actions, then one every 5, at most 4 a recording.
    fn default() -> Self {
        Self { every: 5, min_prefix: 3, max_per_recording: Some(4) }
    }
}

/// A spacing that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` is 0, and must be at least 1")]
pub struct BadSpacing {
    /// The setting that is 0.
    pub field: &'static str,
}

impl Spacing {
    /// The first cut after `min_prefix` actions, then one every `every` actions, with no limit on their number.
    ///
    /// # Errors
    /// When either is 0.
    pub fn new(every: usize, min_prefix: usize) -> Result<Self, BadSpacing> {
        Self::default().every(every)?.min_prefix(min_prefix).map(Self::without_limit)
    }

    /// The same with one cut every `every` actions.
    ///
    /// # Errors
    /// When it is 0.
    pub fn every(self, every: usize) -> Result<Self, BadSpacing> {
        if every == 0 { Err(BadSpacing { field: "every" }) } else { Ok(Self { every, ..self }) }
    }

    /// The same with the first cut after `min_prefix` actions.
    ///
    /// # Errors
    /// When it is 0.
    pub fn min_prefix(self, min_prefix: usize) -> Result<Self, BadSpacing> {
        if min_prefix == 0 { Err(BadSpacing { field: "min_prefix" }) } else { Ok(Self { min_prefix, ..self }) }
    }

    /// The same with no limit on the number of cuts.
    #[must_use]
    pub fn without_limit(self) -> Self {
        Self { max_per_recording: None, ..self }
    }

    /// Keeps at most `limit` of the chosen cuts of a recording, spread evenly.
    ///
    /// # Errors
    /// When `limit` is 0.
    pub fn at_most(self, limit: usize) -> Result<Self, BadSpacing> {
        if limit == 0 {
            return Err(BadSpacing { field: "max_boundaries_per_recording" });
        }
        Ok(Self { max_per_recording: Some(limit), ..self })
    }

    /// The points at which a recording is cut: the first with at least `min_prefix` actions before it, then the first
    /// with `every` more than at the cut before, never one at which all `total` actions have run; and how many of
    /// them the limit left out.
    pub fn choose(&self, points: &[ResumablePoint], total: usize) -> ChosenCuts {
        let mut due = self.min_prefix;
        let mut chosen = Vec::new();
        for point in points.iter().filter(|point| point.executed < total) {
            if point.executed >= due {
                chosen.push(*point);
                due = point.executed.saturating_add(self.every);
            }
        }
        let n_chosen = chosen.len();
        let cuts = match self.max_per_recording {
            Some(limit) if limit < n_chosen => spread(n_chosen, limit).map(|i| chosen[i]).collect(),
            _ => chosen,
        };
        ChosenCuts { n_left_out: n_chosen - cuts.len(), cuts }
    }
}

/// The cuts of one recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChosenCuts {
    /// Where it is cut, in order.
    pub cuts: Vec<ResumablePoint>,
    /// How many more there would be without the limit.
    pub n_left_out: usize,
}

/// The indices of `limit` of `n` things, spread evenly: ⌊i(n−1)/(limit−1)⌋, or the middle one.
fn spread(n: usize, limit: usize) -> impl Iterator<Item = usize> {
    (0..limit).map(move |i| if limit == 1 { (n - 1) / 2 } else { i * (n - 1) / (limit - 1) })
}

/// Every point at which a list of events can be resumed, in order.
///
/// ```
/// use retrace_events::{Event, Outcome, ToolCall, ToolResult, cuts::resumable_cuts};
///
/// let call = ToolCall::new("c1", "login", "{}");
/// let result = ToolResult::text_result(&call, Outcome::Ok, "s-4821");
/// let points = resumable_cuts(&[Event::request("go"), Event::calls([call]), Event::results([result])]);
/// assert_eq!((points[0].cut, points[0].executed), (3, 1));
/// ```
pub fn resumable_cuts<'a>(events: impl IntoIterator<Item = &'a Event> + Clone) -> Vec<ResumablePoint> {
    points(events.clone(), &pair(events))
}

/// The resumable points of events that are paired already.
pub(crate) fn points<'a>(events: impl IntoIterator<Item = &'a Event>, pairing: &Pairing<'_>) -> Vec<ResumablePoint> {
    let mut answers: Vec<_> =
        pairing.answered().map(|(call, answer)| (answer.event, call.event, !answer.result.own)).collect();
    answers.sort_unstable();
    let mut answers = answers.into_iter().peekable();
    let (mut newest_response, mut n_waiting, mut executed) = (0, 0, 0);
    let mut points = Vec::new();
    for (index, event) in events.into_iter().enumerate() {
        match event {
            Event::Response(response) => (newest_response, n_waiting) = (index, response.tool_calls().count()),
            Event::ToolResults(_) => {
                while let Some((_, response, is_action)) = answers.next_if(|(answered_at, ..)| *answered_at == index) {
                    executed += usize::from(is_action);
                    n_waiting -= usize::from(response == newest_response);
                }
                if n_waiting == 0 {
                    points.push(ResumablePoint { cut: index + 1, executed });
                }
            }
            Event::Request(_) | Event::Summary(_) | Event::Usage(_) => {}
        }
    }
    points
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::any_events::any_events;

    /// The definition, word for word.
    fn by_the_definition(events: &[Event]) -> Vec<ResumablePoint> {
        let pairing = pair(events);
        let answered_before = |cut: usize| move |answer: &crate::pairing::PlacedResult<'_>| answer.event < cut;
        let is_point = |&cut: &usize| {
            let newest = events[..cut].iter().rposition(|event| matches!(event, Event::Response(_)));
            let mut calls = pairing.calls.iter().filter(|call| Some(call.event) == newest);
            matches!(events[cut - 1], Event::ToolResults(_))
                && calls.all(|call| call.answer.as_ref().is_some_and(answered_before(cut)))
        };
        let answers = || pairing.calls.iter().filter_map(|call| call.answer.as_ref());
        let executed = |cut| answers().filter(|answer| answer.event < cut && !answer.result.own).count();
        (1..=events.len()).filter(is_point).map(|cut| ResumablePoint { cut, executed: executed(cut) }).collect()
    }

    proptest! {
        #[test]
        fn the_resumable_points_are_those_of_the_definition(events in any_events()) {
            prop_assert_eq!(resumable_cuts(&events), by_the_definition(&events));
        }

        #[test]
        fn chosen_cuts_are_the_earliest_that_are_due(
            events in any_events(),
            every in 1..4_usize,
            min_prefix in 1..4_usize,
        ) {
            let (points, total) = (resumable_cuts(&events), pair(&events).executed().count());
            let chosen = Spacing::new(every, min_prefix).unwrap().choose(&points, total);
            prop_assert_eq!(chosen.n_left_out, 0);
            // A point is due or not by the chosen cut before it, whatever comes after it.
            for point in &points {
                let before = chosen.cuts.iter().rev().find(|cut| cut.cut < point.cut);
                let due = before.map_or(min_prefix, |cut| cut.executed + every);
                prop_assert_eq!(chosen.cuts.contains(point), point.executed >= due && point.executed < total);
            }
        }
    }

    fn numbers(value: &serde_json::Value) -> Vec<usize> {
        serde_json::from_value(value.clone()).unwrap()
    }

    #[test]
    fn cuts_agree_with_the_vectors() {
        for row in retrace_testing::vectors::rows("verifier/cuts.jsonl") {
            let name = &row["name"];
            let events: Vec<Event> = serde_json::from_value(row["events"].clone()).unwrap();
            // What is below 0 does not even fit the type, and a reader of a configuration refuses it.
            let setting = |key: &str| usize::try_from(row[key].as_i64().unwrap()).unwrap_or(0);
            let spacing = match Spacing::new(setting("every"), setting("min_prefix")) {
                Ok(spacing) => spacing,
                Err(_) => {
                    assert_eq!(row["error"], "bad_spacing", "{name}");
                    continue;
                }
            };
            let points = resumable_cuts(&events);
            let total = pair(&events).answered().count();
            let chosen = spacing.choose(&points, total).cuts;
            let cuts = |points: &[ResumablePoint]| points.iter().map(|point| point.cut).collect::<Vec<_>>();
            assert_eq!(cuts(&points), numbers(&row["resumable"]), "{name}");
            assert_eq!(cuts(&chosen), numbers(&row["cuts"]), "{name}");
            let executed: Vec<_> = chosen.iter().map(|point| point.executed).collect();
            assert_eq!(executed, numbers(&row["executed"]), "{name}");
        }
    }

    #[test]
    fn a_limit_keeps_cuts_spread_evenly() {
        let points: Vec<_> = (1..=11).map(|i| ResumablePoint { cut: 2 * i, executed: i }).collect();
        let kept = |limit| {
            let chosen = Spacing::new(1, 1).unwrap().at_most(limit).unwrap().choose(&points, 11);
            assert_eq!(chosen.cuts.len() + chosen.n_left_out, 10);
            chosen.cuts.iter().map(|point| point.executed).collect::<Vec<_>>()
        };
        assert_eq!(kept(1), [5]);
        assert_eq!(kept(2), [1, 10]);
        assert_eq!(kept(4), [1, 4, 7, 10]);
        assert_eq!(kept(10), (1..=10).collect::<Vec<_>>());
        assert_eq!(kept(99), (1..=10).collect::<Vec<_>>());
        assert!(Spacing::new(1, 1).unwrap().at_most(0).is_err());
    }
}
