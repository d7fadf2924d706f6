//! `deduplicate_file_reads`: reads that a newer read replaces, blanked in place. Cost: none. Known from
//! pydantic-ai-harness.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use futures_core::future::BoxFuture;
use retrace_events::pairing::{PlacedResult, pair};
use retrace_events::tokens::{TokenCounter, Tokens};
use retrace_events::{History, Outcome, ToolCall};
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer as _, Serialize};
use serde_json::Value;

use crate::config::BadSetting;
use crate::context::CompactContext;
use crate::edits::{Edits, is_blank};
use crate::strategy::{Business, CompactError, Compacted, Strategy};
use crate::trigger::{FALLBACK_WINDOW, with_trigger};

with_trigger! {
    /// Blanks the result of each read of a file that a newer read of the same file replaces. What is a read, and of which
    /// file, is said by `file_key`. A read that failed replaces nothing and is not blanked. Contents are not compared.
    ///
    /// Without a trigger it is due at every request.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct DeduplicateFileReads {
        /// Which calls read which file.
        pub file_key: FileKey,
        /// What stands in for a result.
        pub placeholder: String,
    }
}

/// Which calls read a file, and which arguments say which file it is.
#[derive(Clone, Deserialize)]
#[serde(from = "Vec<ReadTool>")]
pub enum FileKey {
    /// By tool and arguments. **The path alone loses data where tools read ranges**: list offset and limit, too.
    Tools(Vec<ReadTool>),
    /// By a function: calls with equal keys read the same; a call without one is no read.
    Function(Arc<FileKeyFn>),
}

/// Gives the key of a call.
pub type FileKeyFn = dyn Fn(&ToolCall) -> Option<String> + Send + Sync;

/// A tool that reads files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadTool {
    /// Its name.
    pub tool: String,
    /// The arguments that tell one read from another, the first of which must be a string for a call to be a read. The
    /// same values through two tools are the same file.
    pub args: Vec<String>,
}

impl FileKey {
    /// Puts the key of a call in the place of what `key` held; none if the call is no read.
    fn of<'a>(&self, call: &ToolCall, key: &'a mut Vec<u8>) -> Option<&'a [u8]> {
        key.clear();
        match self {
            Self::Tools(tools) => {
                tools.iter().find(|tool| tool.tool == call.name)?.write_key(&call.arguments, key)?;
            }
            Self::Function(function) => key.extend(function(call)?.bytes()),
        }
        Some(key)
    }
}

impl ReadTool {
    /// Writes the JSON of the values of the arguments; a missing one is null.
    fn write_key(&self, arguments: &str, key: &mut Vec<u8>) -> Option<()> {
        let mut json = serde_json::Deserializer::from_str(arguments);
        let values = json.deserialize_map(Values(&self.args)).ok()?;
        json.end().ok()?;
        values.first()?.is_string().then(|| serde_json::to_writer(key, &values).ok()).flatten()
    }
}

/// Reads the values of these keys of an object, null where there is none, and nothing else of it.
struct Values<'a>(&'a [String]);

impl<'de> Visitor<'de> for Values<'_> {
    type Value = Vec<Value>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vec<Value>, A::Error> {
        let mut values = vec![Value::Null; self.0.len()];
        while let Some(Key(key)) = map.next_key()? {
            if !self.0.iter().any(|name| *name == key) {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            let value: Value = map.next_value()?;
            let named = self.0.iter().zip(&mut values).filter(|(name, _)| **name == key);
            named.for_each(|(_, place)| place.clone_from(&value));
        }
        Ok(values)
    }
}

/// The key of a value, borrowed where it has no escapes.
#[derive(Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

/// A function has no form in a configuration, and is written as null.
impl Serialize for FileKey {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Tools(tools) => tools.serialize(serializer),
            Self::Function(_) => serializer.serialize_none(),
        }
    }
}

impl From<Vec<ReadTool>> for FileKey {
    fn from(tools: Vec<ReadTool>) -> Self {
        Self::Tools(tools)
    }
}

impl std::fmt::Debug for FileKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tools(tools) => tools.fmt(f),
            Self::Function(_) => f.write_str("a function"),
        }
    }
}

impl PartialEq for FileKey {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Tools(a), Self::Tools(b)) => a == b,
            (Self::Function(a), Self::Function(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}

impl Default for DeduplicateFileReads {
    /// Without a `file_key`, which has no default.
    fn default() -> Self {
        Self {
            max_messages: None,
            max_tokens: None,
            max_fraction: None,
            context_window: None,
            fallback_context_window: FALLBACK_WINDOW,
            file_key: FileKey::Tools(Vec::new()),
            placeholder: "[superseded file read]".to_owned(),
        }
    }
}

impl DeduplicateFileReads {
    /// By these tools, whatever the history.
    pub fn new(file_key: FileKey) -> Self {
        Self { file_key, ..Self::default() }
    }

    pub(crate) fn check(&self) -> Result<(), BadSetting> {
        if let FileKey::Tools(tools) = &self.file_key {
            if tools.is_empty() {
                return Err(BadSetting::new(
                    "file_key",
                    "is missing or empty: list tools and the arguments that name a file, such as \
                     `[{ tool = \"read_file\", args = [\"path\"] }]`",
                ));
            }
            if tools.iter().any(|tool| tool.args.is_empty()) {
                return Err(BadSetting::new(
                    "file_key",
                    "has a tool without `args`, so that all its calls would be one file",
                ));
            }
        }
        self.trigger().check()
    }

    fn deduplicate(&self, history: &History) -> Compacted {
        let pairing = pair(history.events());
        let place = |answer: &PlacedResult<'_>| (answer.event, answer.index);
        // The number of each key, and the newest read of each number.
        let mut numbers: HashMap<Box<[u8]>, usize, foldhash::fast::RandomState> = HashMap::default();
        let mut newest = Vec::new();
        let mut key = Vec::new();
        let mut reads = Vec::with_capacity(pairing.calls.len());
        for (call, answer) in pairing.answered().filter(|(_, answer)| answer.result.outcome == Outcome::Ok) {
            let Some(key) = self.file_key.of(call.call, &mut key) else { continue };
            let number = numbers.get(key).copied().unwrap_or_else(|| {
                numbers.insert(key.into(), newest.len());
                newest.push(place(&answer));
                newest.len() - 1
            });
            newest[number] = newest[number].max(place(&answer));
            reads.push((answer, number));
        }
        let mut edits = Edits::of(history, &self.placeholder);
        for (answer, number) in reads {
            if newest[number] != place(&answer) && !is_blank(answer.result, &self.placeholder) {
                edits.blank(answer.event, answer.index);
            }
        }
        edits.finish().map_or(Compacted::Unchanged, Compacted::Changed)
    }
}

impl Strategy for DeduplicateFileReads {
    fn kind(&self) -> &'static str {
        "deduplicate_file_reads"
    }

    fn business(&self) -> Business {
        Business::Blanks
    }

    fn is_due(&self, history: &History, window: Option<Tokens>, counter: &dyn TokenCounter) -> bool {
        let trigger = self.trigger();
        !trigger.is_set() || trigger.fires(history, window, counter)
    }

    fn compact<'a>(
        &'a self,
        history: &'a History,
        _cx: &'a mut CompactContext<'_>,
    ) -> BoxFuture<'a, Result<Compacted, CompactError>> {
        Box::pin(std::future::ready(Ok(self.deduplicate(history))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deduplications_agree_with_the_vectors() {
        crate::vectors::check_free::<DeduplicateFileReads>("strategies/deduplicate_file_reads.jsonl");
    }

    #[test]
    fn a_key_is_read_from_an_object_and_from_nothing_else() {
        let read = ReadTool { tool: "read".to_owned(), args: ["path", "limit", "path"].map(str::to_owned).to_vec() };
        let key = |arguments: &str| {
            let mut key = Vec::new();
            read.write_key(arguments, &mut key)?;
            String::from_utf8(key).ok()
        };
        let long = key(r#"{"x": [{}], "p\u0061th": "a", "path": "b", "limit": {"n": 1.0}} "#);
        assert_eq!(long.as_deref(), Some(r#"["b",{"n":1.0},"b"]"#));
        assert_eq!(key(r#"{"path":"b"}"#).as_deref(), Some(r#"["b",null,"b"]"#));
        for arguments in ["", "null", "[]", r#"["path"]"#, "{", r#"{"path":7}"#, r#"{"path":"b"} x"#, "not JSON"] {
            assert_eq!(key(arguments), None, "{arguments}");
        }
    }
}
