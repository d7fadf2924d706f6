//! JSON kept as it came: values and fields that retrace does not look into.

use std::fmt;
use std::hash::{Hash, Hasher};

use serde::de::{self, Deserialize, Deserializer};
use serde::ser::{Serialize, Serializer};
use serde_json::value::RawValue;

/// One JSON value, kept as its text.
///
/// Numbers keep their spelling and objects their order, so writing it back changes nothing. It has no line break, since
/// it is written into a line: those of a laid-out text are made spaces. Two are equal when their texts are.
#[derive(Clone)]
pub struct Raw(Box<RawValue>);

impl Raw {
    /// The JSON of any serializable value.
    ///
    /// # Errors
    /// As `serde_json`: a map whose keys are no strings, or a failing `Serialize`.
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Result<Self, serde_json::Error> {
        serde_json::value::to_raw_value(value).and_then(Self::on_one_line)
    }

    /// A line break in JSON is space between its tokens: in a string it would be escaped.
    fn on_one_line(json: Box<RawValue>) -> Result<Self, serde_json::Error> {
        if !json.get().contains('\n') {
            return Ok(Self(json));
        }
        RawValue::from_string(json.get().replace('\n', " ")).map(Self)
    }

    /// The JSON text.
    pub fn get(&self) -> &str {
        self.0.get()
    }

    /// Reads the value as a `T`.
    ///
    /// # Errors
    /// When the text does not fit `T`.
    pub fn read<'a, T: Deserialize<'a>>(&'a self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.0.get())
    }
}

impl PartialEq for Raw {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl Eq for Raw {}

impl Hash for Raw {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.get().hash(state);
    }
}

impl fmt::Debug for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.get())
    }
}

impl Serialize for Raw {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::on_one_line(Box::<RawValue>::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

/// The fields of an object that retrace does not know, in the order they came.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Extra(Option<Fields>);

// Nearly nothing has fields that retrace does not know, and everything has room for them: that of a pointer.
type Fields = Box<Vec<(Box<str>, Raw)>>;

impl Extra {
    /// Adds a field at the end. Not one that retrace knows in its place: the object would be written with it twice, and
    /// could not be read back.
    pub fn push(&mut self, key: impl Into<Box<str>>, value: Raw) {
        self.0.get_or_insert_default().push((key.into(), value));
    }

    /// The value of a field; of a field that came twice, the last.
    pub fn get(&self, key: &str) -> Option<&Raw> {
        self.fields().rev().find(|(k, _)| &**k == key).map(|(_, value)| value)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Name and value of each field, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Raw)> {
        self.fields().map(|(key, value)| (&**key, value))
    }

    fn fields(&self) -> std::slice::Iter<'_, (Box<str>, Raw)> {
        self.0.as_ref().map_or(&[][..], |fields| fields).iter()
    }
}
