//! Placeholders of a configuration: `{workspace}`, `{rollout}` and `${NAME}`.

use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;

use crate::error::McpError;

/// What stands for the placeholders of one rollout.
#[derive(Clone, Debug)]
pub(crate) struct Placeholders {
    /// The path of its workspace.
    pub(crate) workspace: Option<String>,
    /// Its id.
    pub(crate) rollout: String,
}

impl Placeholders {
    /// Those of a rollout that is about to start. Its id is no other's, in no run against the same server.
    pub(crate) fn next(workspace: Option<String>) -> Self {
        static N_ROLLOUTS: AtomicU64 = AtomicU64::new(0);
        let n = N_ROLLOUTS.fetch_add(1, Ordering::Relaxed) + 1;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        Self { workspace, rollout: format!("retrace-{now:x}-{:x}-{n}", process::id()) }
    }

    /// A text with its placeholders filled in.
    pub(crate) fn fill(&self, text: &str) -> String {
        let text = text.replace("{rollout}", &self.rollout);
        match &self.workspace {
            Some(workspace) => text.replace("{workspace}", workspace),
            None => text,
        }
    }

    /// A value with the placeholders of its texts filled in.
    pub(crate) fn fill_value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => self.fill(text).into(),
            Value::Array(items) => items.iter().map(|item| self.fill_value(item)).collect(),
            Value::Object(members) => {
                members.iter().map(|(key, value)| (key.clone(), self.fill_value(value))).collect()
            }
            other => other.clone(),
        }
    }
}

/// A text with its `${NAME}` replaced by what `variable` gives for them, which is added to `hidden`.
pub(crate) fn with_variables(
    text: &str,
    place: &str,
    variable: &dyn Fn(&str) -> Option<String>,
    hidden: &mut Vec<String>,
) -> Result<String, McpError> {
    let (mut filled, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once("${") {
        let Some((name, after)) = after.split_once('}') else { break };
        let value = variable(name)
            .filter(|value| !value.is_empty())
            .ok_or_else(|| McpError::NoVariable { name: name.to_owned(), place: place.to_owned() })?;
        filled.push_str(before);
        filled.push_str(&value);
        hidden.push(value);
        rest = after;
    }
    filled.push_str(rest);
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn placeholders_are_filled_in_at_any_depth_and_no_two_rollouts_share_an_id() {
        let first = Placeholders::next(Some("/tmp/w".to_owned()));
        let value = first.fill_value(&json!({"a": ["{workspace}/x", 1, {"{rollout}": "{rollout}"}]}));
        assert_eq!(value, json!({"a": ["/tmp/w/x", 1, {"{rollout}": first.rollout}]}));
        assert_ne!(Placeholders::next(None).rollout, first.rollout);
    }

    #[test]
    fn variables_are_filled_in_and_hidden_and_a_missing_one_is_named() {
        let variable = |name: &str| (name == "TOKEN").then(|| "s3cret".to_owned());
        let mut hidden = Vec::new();
        let filled = with_variables("Bearer ${TOKEN} $x {y} ${", "headers.auth", &variable, &mut hidden).unwrap();
        assert_eq!((filled.as_str(), &hidden[..]), ("Bearer s3cret $x {y} ${", &["s3cret".to_owned()][..]));
        let error = with_variables("${NOPE}", "env.A", &variable, &mut hidden).unwrap_err();
        assert_eq!(error.to_string(), "the environment has no variable `NOPE`, which `env.A` names: set it");
    }
}
