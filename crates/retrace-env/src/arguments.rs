//! Arguments checked against the schema of a tool.

use std::borrow::Cow;

use jsonschema::Validator;
use retrace_events::ToolSpec;
use serde_json::Value;

use crate::coercion::coerce;
use crate::text::{MAX_TEXT, shorten};
use crate::toolbox::ToolboxError;

/// How many flaws of one call are told.
const MAX_FLAWS: usize = 3;

/// The compiled schema of a tool's arguments.
pub(crate) struct ArgumentSchema(Validator);

impl ArgumentSchema {
    /// Compiles the schema of a tool; one that refers to a schema kept elsewhere is refused, not fetched.
    pub(crate) fn of(spec: &ToolSpec) -> Result<Self, ToolboxError> {
        jsonschema::options().offline().build(&spec.parameters).map(Self).map_err(|error| ToolboxError::InvalidSchema {
            tool: spec.name.clone(),
            message: shorten(&error.to_string(), MAX_TEXT),
        })
    }

    /// The arguments to call the tool with: as they came if they fit, else, in a lenient toolbox, what they spell; or
    /// what is wrong with them as they came.
    pub(crate) fn check<'a>(&self, arguments: &'a str, lenient: bool) -> Result<Cow<'a, str>, String> {
        let arguments = if arguments.trim().is_empty() { "{}" } else { arguments };
        let value: Value = serde_json::from_str(arguments).map_err(|error| format!("not valid JSON: {error}"))?;
        if !value.is_object() {
            return Err(format!("expected a JSON object, found {}", kind(&value)));
        }
        if self.0.is_valid(&value) {
            return Ok(Cow::Borrowed(arguments));
        }
        let coerced = if lenient { coerce(&self.0, &value, arguments) } else { None };
        coerced.map(|value| Cow::Owned(value.to_string())).ok_or_else(|| self.flaws(&value))
    }

    fn flaws(&self, value: &Value) -> String {
        let mut flaws: Vec<_> = self.0.iter_errors(value).map(|error| flaw(&error)).collect();
        // The validator may find them in any order, and an agent must be told the same whenever it asks the same.
        flaws.sort();
        flaws.dedup();
        let n_more = flaws.len().saturating_sub(MAX_FLAWS);
        flaws.truncate(MAX_FLAWS);
        if n_more > 0 {
            flaws.push(format!("{n_more} more"));
        }
        flaws.join("; ")
    }
}

fn flaw(error: &jsonschema::ValidationError<'_>) -> String {
    let text = shorten(&error.to_string(), MAX_TEXT);
    match error.instance_path().as_str() {
        "" => text,
        path => format!("at `{}`: {text}", shorten(path, MAX_TEXT)),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
