//! Looking into JSON one level at a time: what is not asked for is never parsed, however deep.

use indexmap::IndexMap;
use retrace_events::{Extra, Raw};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::error::ImportError;
use crate::place::{Place, shown};

/// The type of a JSON value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Null,
    Bool,
    Number,
    String,
    List,
    Object,
}

impl Kind {
    /// The type of a value.
    pub(crate) fn of(value: &RawValue) -> Self {
        match value.get().as_bytes().first() {
            Some(b'{') => Self::Object,
            Some(b'[') => Self::List,
            Some(b'"') => Self::String,
            Some(b't' | b'f') => Self::Bool,
            Some(b'n') => Self::Null,
            _ => Self::Number,
        }
    }

    /// Its name, as a message says it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool => "true or false",
            Self::Number => "a number",
            Self::String => "a string",
            Self::List => "a list",
            Self::Object => "an object",
        }
    }
}

/// The error that a value is of another type than can be read there.
pub(crate) fn unexpected(value: &RawValue, place: Place, expected: &'static str) -> ImportError {
    ImportError::Unexpected { place, found: Kind::of(value).as_str(), expected }
}

/// Reads a value as a `T`, which says no more of its type than the caller has checked.
pub(crate) fn read<'a, T: Deserialize<'a>>(
    value: &'a RawValue,
    place: impl FnOnce() -> Place,
) -> Result<T, ImportError> {
    serde_json::from_str(value.get())
        .map_err(|error| ImportError::Unreadable { place: place(), message: without_position(&error) })
}

/// Reads a string.
pub(crate) fn text(value: &RawValue, place: impl FnOnce() -> Place) -> Result<String, ImportError> {
    match Kind::of(value) {
        Kind::String => read(value, place),
        _ => Err(unexpected(value, place(), "a string")),
    }
}

/// Reads the elements of a list.
pub(crate) fn list(value: &RawValue, place: impl FnOnce() -> Place) -> Result<Vec<&RawValue>, ImportError> {
    match Kind::of(value) {
        Kind::List => read(value, place),
        _ => Err(unexpected(value, place(), "a list")),
    }
}

/// JSON without the white space between its tokens; nothing else changes.
pub(crate) fn compact(json: &str) -> String {
    let (mut in_string, mut escaped) = (false, false);
    let keep = |c: &char| {
        if in_string {
            in_string = escaped || *c != '"';
            escaped = !escaped && *c == '\\';
            return true;
        }
        in_string = *c == '"';
        !matches!(c, ' ' | '\t' | '\n' | '\r')
    };
    json.chars().filter(keep).collect()
}

/// An error of `serde_json` without the position, which counts from the start of a part of the source.
pub(crate) fn without_position(error: &serde_json::Error) -> String {
    let message = error.to_string();
    match message.rfind(" at line ") {
        Some(end) => message[..end].to_owned(),
        None => message,
    }
}

/// An object whose fields are taken one by one.
pub(crate) struct Object<'a> {
    pub(crate) place: Place,
    fields: IndexMap<String, &'a RawValue>,
}

impl<'a> Object<'a> {
    /// Reads an object; of a key that stands twice the last value counts.
    pub(crate) fn read(value: &'a RawValue, place: Place) -> Result<Self, ImportError> {
        match Kind::of(value) {
            Kind::Object => {
                let fields = read(value, || place.clone())?;
                Ok(Self { place, fields })
            }
            _ => Err(unexpected(value, place, "an object")),
        }
    }

    /// An object without fields.
    pub(crate) fn empty(place: Place) -> Self {
        Self { place, fields: IndexMap::new() }
    }

    /// The place of a field.
    pub(crate) fn at(&self, key: &str) -> Place {
        self.place.key(key)
    }

    /// A field; null is as good as none.
    pub(crate) fn get(&self, key: &str) -> Option<&'a RawValue> {
        self.fields.get(key).copied().filter(|value| Kind::of(value) != Kind::Null)
    }

    /// Takes a field out if it is of this type; another type stays.
    pub(crate) fn take_if(&mut self, key: &str, kind: Kind) -> Option<&'a RawValue> {
        let value = self.get(key).filter(|value| Kind::of(value) == kind)?;
        self.fields.shift_remove(key);
        Some(value)
    }

    /// Takes a field out; null is as good as none.
    pub(crate) fn take(&mut self, key: &str) -> Option<&'a RawValue> {
        let value = self.get(key);
        self.fields.shift_remove(key);
        value
    }

    /// Takes a text out.
    pub(crate) fn take_text(&mut self, key: &str) -> Result<Option<String>, ImportError> {
        self.take(key).map(|value| text(value, || self.at(key))).transpose()
    }

    /// Takes a list out.
    pub(crate) fn take_list(&mut self, key: &str) -> Result<Option<Vec<&'a RawValue>>, ImportError> {
        self.take(key).map(|value| list(value, || self.at(key))).transpose()
    }

    /// Takes a text out that must be there.
    pub(crate) fn need_text(&mut self, key: &'static str) -> Result<String, ImportError> {
        self.take_text(key)?.ok_or_else(|| self.missing(key))
    }

    /// The error that a field is not there.
    pub(crate) fn missing(&self, field: &'static str) -> ImportError {
        ImportError::MissingField { place: self.place.clone(), field }
    }

    /// The fields that are left, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &'a RawValue)> {
        self.fields.iter().map(|(key, value)| (&**key, *value))
    }

    /// The first of its keys, as a message may show them.
    pub(crate) fn shown_keys(&self) -> Vec<String> {
        const LIMIT: usize = 12;
        let mut keys: Vec<_> = self.fields.keys().take(LIMIT).map(|key| shown(key)).collect();
        if self.fields.len() > LIMIT {
            keys.push("…".to_owned());
        }
        keys
    }

    /// The fields that are left and say something, to be kept.
    pub(crate) fn rest(self) -> Extra {
        let says_nothing = |value: &str| matches!(value, "null" | "[]" | "{}" | "\"\"");
        let fields = self.fields.iter().map(|(key, value)| (&**key, compact(value.get())));
        under_source(fields.filter(|(_, value)| !says_nothing(value)))
    }
}

/// The key under which fields of a source are kept, so that none is taken for a field of the recording format.
pub(crate) const SOURCE: &str = "source";

/// Fields of a source, each with its JSON text, as they are kept; nothing if there are none.
pub(crate) fn under_source<'k>(fields: impl Iterator<Item = (&'k str, String)>) -> Extra {
    let raw = |text| RawValue::from_string(text).expect("the text of a JSON value is JSON");
    let fields: IndexMap<_, _> = fields.map(|(key, text)| (key, raw(text))).collect();
    let mut extra = Extra::default();
    if !fields.is_empty() {
        extra.push(SOURCE, Raw::of(&fields).expect("the keys of a JSON object are strings"));
    }
    extra
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    #[test]
    fn only_white_space_between_tokens_goes() {
        assert_eq!(compact("{ \"a b\" :\n[1.0,\t\"\\\" ]\\\\\" , 1E2 ] }\r"), "{\"a b\":[1.0,\"\\\" ]\\\\\",1E2]}");
    }

    fn value() -> impl Strategy<Value = Value> {
        let scalar = prop_oneof![any::<i64>().prop_map(Value::from), any::<String>().prop_map(Value::from)];
        scalar.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec((any::<String>(), inner), 0..4).prop_map(|fields| fields.into_iter().collect()),
            ]
        })
    }

    proptest! {
        #[test]
        fn compact_json_is_what_serde_json_writes(value in value()) {
            prop_assert_eq!(compact(&serde_json::to_string_pretty(&value).unwrap()), value.to_string());
        }
    }
}
