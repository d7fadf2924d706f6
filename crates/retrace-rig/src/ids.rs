//! Ids of calls that are each there once.

use std::collections::HashSet;

use rig_core::completion::message::{AssistantContent, CallId, ToolCall};

/// The id of every call of a history, by the call's number.
///
/// A call keeps its id if no call before it has the same and if it is short and of printable ASCII; how a provider
/// wants such an id spelled is rig's business. Every other call gets a new one.
#[derive(Debug)]
pub(crate) struct Ids(Vec<Option<String>>);

/// The longest id that is kept.
const LONGEST: usize = 64;

impl Ids {
    /// The ids for calls that have these.
    pub(crate) fn of<'a>(ids: impl Iterator<Item = &'a str> + Clone) -> Self {
        let mut taken: HashSet<String> = ids.clone().map(str::to_owned).collect();
        let mut seen = HashSet::new();
        let mut next = 0;
        let new = ids.map(|id| {
            let is_good = (1..=LONGEST).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic());
            if is_good && seen.insert(id) {
                return None;
            }
            loop {
                next += 1;
                let id = format!("call_{next}");
                if taken.insert(id.clone()) {
                    return Some(id);
                }
            }
        });
        Self(new.collect())
    }

    /// Gives a call its new id, if it gets one. An id that rig made, since the provider has none, stays.
    pub(crate) fn give(&self, number: usize, call: &mut ToolCall) {
        let Some(Some(id)) = self.0.get(number) else { return };
        if matches!((&call.id, &call.native), (CallId::Local(_), Some(_))) {
            return;
        }
        let block = AssistantContent::ToolCall(call.clone());
        let item = block.native_item().cloned();
        call.id = CallId::from_wire(id);
        // The item belongs to the call whatever its id: rig writes the new one into it.
        if let (Some(item), AssistantContent::ToolCall(renamed)) =
            (item, AssistantContent::ToolCall(call.clone()).canonical())
            && let AssistantContent::ToolCall(renamed) = AssistantContent::ToolCall(renamed).with_native(item)
        {
            *call = renamed;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_id_is_kept_once_and_only_if_a_provider_can_take_it() {
        let long = "x".repeat(65);
        let ids = ["a", "", "a", "call_1", "ü", "b c", &long, "call.2:0"];
        let new = Ids::of(ids.into_iter()).0;
        let new: Vec<_> = new.iter().map(Option::as_deref).collect();
        let expected =
            [None, Some("call_2"), Some("call_3"), None, Some("call_4"), Some("call_5"), Some("call_6"), None];
        assert_eq!(new, expected);
    }

    proptest! {
        #[test]
        fn no_two_calls_have_one_id(ids in prop::collection::vec("(call_)?[0-3]?", 0..12)) {
            let new = Ids::of(ids.iter().map(String::as_str)).0;
            let all: HashSet<_> = ids.iter().zip(&new).map(|(old, new)| new.as_ref().unwrap_or(old)).collect();
            prop_assert_eq!(all.len(), ids.len());
        }
    }
}
