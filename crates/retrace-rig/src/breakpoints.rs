//! Where a request of Anthropic's format says that a cache is to end.
//!
//! rig marks the last tool, the system prompt and the end of the newest message. A cache looks back only some blocks from a
//! mark for what it has, and one response may have more results than that. So the end of the message of the user before is
//! marked too: it is where the request before this one ended, be it the agent's last one or, for the first of a rollout, what
//! all rollouts from its history share.

use bytes::Bytes;
use serde_json::{Value, json};

/// The most marks that Anthropic takes in one request.
const MOST: usize = 4;

/// A request with the end of the user's message before the newest marked, if there is one and a mark is left for it.
pub(crate) fn mark_the_request_before(body: Bytes) -> Bytes {
    let Ok(mut request) = serde_json::from_slice::<Value>(&body) else { return body };
    if n_marks(&request) >= MOST {
        return body;
    }
    let Some(messages) = request.get_mut("messages").and_then(Value::as_array_mut) else { return body };
    let before = messages.iter_mut().rev().filter(|message| message["role"] == "user").nth(1);
    let block = before.and_then(|message| message.get_mut("content")?.as_array_mut()?.last_mut()?.as_object_mut());
    // An empty text takes no mark.
    let Some(block) = block.filter(|block| block.get("text").is_none_or(|text| text != "")) else { return body };
    block.entry("cache_control").or_insert_with(|| json!({"type": "ephemeral"}));
    serde_json::to_vec(&request).map_or(body, Bytes::from)
}

fn n_marks(request: &Value) -> usize {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let messages = list(&request["messages"]).into_iter().flat_map(|message| list(&message["content"]));
    let blocks = list(&request["tools"]).into_iter().chain(list(&request["system"])).chain(messages);
    let is_marked = |block: &Value| block.get("cache_control").is_some_and(|mark| !mark.is_null());
    blocks.filter(is_marked).count() + usize::from(is_marked(request))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(request: &Value) -> Value {
        let body = mark_the_request_before(Bytes::from(request.to_string()));
        serde_json::from_slice(&body).unwrap()
    }

    #[test]
    fn a_mark_is_added_only_where_one_is_left_and_something_takes_it() {
        let text = |text: &str| json!({"type": "text", "text": text});
        let said = |role: &str, blocks: Vec<Value>| json!({"role": role, "content": blocks});
        let (go, done) = (said("user", vec![text("Go."), text("Now.")]), said("assistant", vec![text("Done.")]));
        let request = json!({"system": [], "messages": [go, done, said("user", vec![text("And?")])]});
        let mut expected = request.clone();
        expected["messages"][0]["content"][1]["cache_control"] = json!({"type": "ephemeral"});
        assert_eq!(marked(&request), expected);
        assert_eq!(marked(&expected), expected);

        let first = json!({"messages": [go]});
        assert_eq!(marked(&first), first);
        let empty = json!({"messages": [said("user", vec![text("")]), done, go]});
        assert_eq!(marked(&empty), empty);
        let mark = json!({"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}});
        let mut full = request;
        (full["system"], full["tools"]) = (json!([mark, mark]), json!([mark, mark]));
        assert_eq!(marked(&full), full);
        assert_eq!(mark_the_request_before(Bytes::from("no JSON")), "no JSON");
    }
}
