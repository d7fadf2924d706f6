//! Reading an object whose fields depend on its `type`, in one pass and in any order of its fields.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{self, Deserialize, DeserializeSeed, Deserializer, MapAccess, Visitor};

use crate::raw::{Extra, Raw};

/// Collects the fields of one object; an unknown field goes to its extras.
pub(super) trait Fields: Sized {
    /// What stands in an error for the object.
    const WHAT: &'static str;
    /// The object once all its fields are there.
    type Output;
    /// What the reader knows before it reads.
    type Context: Copy;

    /// A collector for an object of this `type`, or none if there is no such type. An object without types is asked
    /// for the type `""`.
    fn start(kind: &str, context: Self::Context) -> Result<Self, String>;

    /// Takes one field.
    fn set<'de, D: Deserializer<'de>>(&mut self, key: &str, value: D) -> Result<(), D::Error>;

    /// The object, if no required field is missing.
    fn finish<E: de::Error>(self) -> Result<Self::Output, E>;
}

/// Reads an object of fields `F`.
pub(super) struct Object<F: Fields> {
    context: F::Context,
    /// Whether a `type` says which fields it has.
    typed: bool,
}

impl<F: Fields> Object<F> {
    pub(super) fn typed(context: F::Context) -> Self {
        Self { context, typed: true }
    }

    pub(super) fn untyped(context: F::Context) -> Self {
        Self { context, typed: false }
    }
}

impl<'de, F: Fields> DeserializeSeed<'de> for Object<F> {
    type Value = F::Output;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<F::Output, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, F: Fields> Visitor<'de> for Object<F> {
    type Value = F::Output;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} as an object", F::WHAT)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<F::Output, A::Error> {
        let start = |kind: &str| F::start(kind, self.context).map_err(de::Error::custom);
        let mut fields: Option<F> = if self.typed { None } else { Some(start("")?) };
        // Fields that came before the `type` wait here.
        let mut early: Vec<(String, Raw)> = Vec::new();
        while let Some(Key(key)) = map.next_key()? {
            match &mut fields {
                None if key == "type" => {
                    let Key(kind) = map.next_value()?;
                    let mut started = start(&kind)?;
                    for (key, value) in early.drain(..) {
                        let mut value = serde_json::Deserializer::from_str(value.get());
                        started
                            .set(&key, &mut value)
                            .map_err(|error| de::Error::custom(format!("`{key}`: {error}")))?;
                    }
                    fields = Some(started);
                }
                None => early.push((key.into_owned(), map.next_value()?)),
                Some(_) if self.typed && key == "type" => return Err(de::Error::duplicate_field("type")),
                Some(fields) => map.next_value_seed(Field { fields, key: &key })?,
            }
        }
        fields.ok_or_else(|| de::Error::missing_field("type"))?.finish()
    }
}

/// Hands the value of one field to its collector.
struct Field<'f, F> {
    fields: &'f mut F,
    key: &'f str,
}

impl<'de, F: Fields> DeserializeSeed<'de> for Field<'_, F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        self.fields.set(self.key, deserializer)
    }
}

/// A key or a word, borrowed from the line where no escape stands in it.
#[derive(serde::Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

/// Reads a known field, which may come only once.
pub(super) fn once<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    slot: &mut Option<T>,
    key: &str,
    value: D,
) -> Result<(), D::Error> {
    once_with(slot, key, PhantomData::<T>, value)
}

/// As [`once`], for a value that needs a seed.
pub(super) fn once_with<'de, S: DeserializeSeed<'de>, D: Deserializer<'de>>(
    slot: &mut Option<S::Value>,
    key: &str,
    seed: S,
    value: D,
) -> Result<(), D::Error> {
    if slot.is_some() {
        return Err(de::Error::custom(format_args!("field `{key}` stands there twice")));
    }
    *slot = Some(seed.deserialize(value)?);
    Ok(())
}

/// Keeps a field that is not known.
pub(super) fn keep<'de, D: Deserializer<'de>>(extra: &mut Extra, key: &str, value: D) -> Result<(), D::Error> {
    extra.push(key, Raw::deserialize(value)?);
    Ok(())
}

/// The value of a required field.
pub(super) fn required<T, E: de::Error>(value: Option<T>, key: &'static str) -> Result<T, E> {
    value.ok_or_else(|| E::missing_field(key))
}
