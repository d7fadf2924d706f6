//! Reading an object whose fields depend on its `type`, in one pass and in any order of its fields.

use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{self, Deserialize, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use crate::few::Few;
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

    /// Takes one field; what it holds leaves its `trail` if it is wrong.
    fn set<'de, D: Deserializer<'de>>(&mut self, key: &str, value: D, trail: &Trail) -> Result<(), D::Error>;

    /// The object, if no required field is missing.
    fn finish<E: de::Error>(self) -> Result<Self::Output, E>;
}

/// The path to the field that is wrong, written from its end while the error travels up.
#[derive(Default)]
pub(super) struct Trail(RefCell<String>);

impl Trail {
    /// The path, such as `content[0].text`; empty for the whole object.
    pub(super) fn into_path(self) -> String {
        self.0.into_inner()
    }

    /// Passes a result on, noting that an error came from `step`: a key, or an index in brackets.
    fn through<T, E>(&self, step: impl fmt::Display, result: Result<T, E>) -> Result<T, E> {
        result.inspect_err(|_| {
            let mut path = self.0.borrow_mut();
            let separator = if path.is_empty() || path.starts_with('[') { "" } else { "." };
            *path = format!("{step}{separator}{path}");
        })
    }
}

/// Reads an object of fields `F`.
pub(super) struct Object<'t, F: Fields> {
    context: F::Context,
    /// Whether a `type` says which fields it has.
    typed: bool,
    trail: &'t Trail,
}

impl<'t, F: Fields> Object<'t, F> {
    pub(super) fn typed(context: F::Context, trail: &'t Trail) -> Self {
        Self { context, typed: true, trail }
    }

    pub(super) fn untyped(context: F::Context, trail: &'t Trail) -> Self {
        Self { context, typed: false, trail }
    }
}

impl<F: Fields> Clone for Object<'_, F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<F: Fields> Copy for Object<'_, F> {}

impl<'de, F: Fields> DeserializeSeed<'de> for Object<'_, F> {
    type Value = F::Output;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<F::Output, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, F: Fields> Visitor<'de> for Object<'_, F> {
    type Value = F::Output;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} as an object", F::WHAT)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<F::Output, A::Error> {
        let Self { context, typed, trail } = self;
        let start = |kind: &str| F::start(kind, context).map_err(de::Error::custom);
        let mut fields: Option<F> = if typed { None } else { Some(start("")?) };
        // Fields that came before the `type` wait here.
        let mut early: Vec<(Cow<'de, str>, Raw)> = Vec::new();
        while let Some(Key(key)) = map.next_key()? {
            match &mut fields {
                None if key == "type" => {
                    let started = map.next_value().and_then(|Key(kind)| start(&kind));
                    let started = fields.insert(trail.through("type", started)?);
                    for (key, value) in early.drain(..) {
                        let mut value = serde_json::Deserializer::from_str(value.get());
                        let set = started.set(&key, &mut value, trail).map_err(de::Error::custom);
                        trail.through(&key, set)?;
                    }
                }
                None => {
                    let value = trail.through(&key, map.next_value())?;
                    early.push((key, value));
                }
                Some(_) if typed && key == "type" => return trail.through("type", Err(twice())),
                Some(fields) => {
                    trail.through(&key, map.next_value_seed(Field { fields, key: &key, trail }))?;
                }
            }
        }
        fields.ok_or_else(|| de::Error::missing_field("type"))?.finish()
    }
}

/// Hands the value of one field to its collector.
struct Field<'f, F> {
    fields: &'f mut F,
    key: &'f str,
    trail: &'f Trail,
}

impl<'de, F: Fields> DeserializeSeed<'de> for Field<'_, F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        self.fields.set(self.key, deserializer, self.trail)
    }
}

/// Reads a list of objects of fields `F`.
pub(super) struct List<'t, F: Fields>(pub(super) Object<'t, F>);

impl<'de, F: Fields> DeserializeSeed<'de> for List<'_, F> {
    type Value = Few<F::Output>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Few<F::Output>, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, F: Fields> Visitor<'de> for List<'_, F> {
    type Value = Few<F::Output>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Few<F::Output>, A::Error> {
        let mut items = Few::new();
        loop {
            let item = seq.next_element_seed(self.0);
            match self.0.trail.through(format_args!("[{}]", items.len()), item)? {
                Some(item) => items.push(item),
                None => return Ok(items),
            }
        }
    }
}

/// Reads what `S` does, or null.
pub(super) struct Nullable<S>(pub(super) S);

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Nullable<S> {
    type Value = Option<S::Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<S::Value>, D::Error> {
        deserializer.deserialize_option(self)
    }
}

impl<'de, S: DeserializeSeed<'de>> Visitor<'de> for Nullable<S> {
    type Value = Option<S::Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value or null")
    }

    fn visit_none<E: de::Error>(self) -> Result<Option<S::Value>, E> {
        Ok(None)
    }

    fn visit_unit<E: de::Error>(self) -> Result<Option<S::Value>, E> {
        Ok(None)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<S::Value>, D::Error> {
        self.0.deserialize(deserializer).map(Some)
    }
}

/// A key or a word, borrowed from the line where no escape stands in it.
#[derive(serde::Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

/// Reads a known field, which may come only once.
pub(super) fn once<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    slot: &mut Option<T>,
    value: D,
) -> Result<(), D::Error> {
    once_with(slot, PhantomData::<T>, value)
}

/// As [`once`], for a value that needs a seed.
pub(super) fn once_with<'de, S: DeserializeSeed<'de>, D: Deserializer<'de>>(
    slot: &mut Option<S::Value>,
    seed: S,
    value: D,
) -> Result<(), D::Error> {
    if slot.is_some() {
        return Err(twice());
    }
    *slot = Some(seed.deserialize(value)?);
    Ok(())
}

fn twice<E: de::Error>() -> E {
    E::custom("it stands there twice")
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
