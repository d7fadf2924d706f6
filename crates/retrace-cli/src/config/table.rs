//! Tables of which a key says what the others mean.

use serde::de::{DeserializeOwned, Error};

/// The text of a key, taken out of its table.
pub(super) fn take_text<E: Error>(table: &mut toml::Table, key: &'static str) -> Result<String, E> {
    take_optional_text(table, key)?.ok_or_else(|| E::missing_field(key))
}

/// As [`take_text`], where the key may be missing.
pub(super) fn take_optional_text<E: Error>(table: &mut toml::Table, key: &str) -> Result<Option<String>, E> {
    match table.remove(key) {
        None => Ok(None),
        Some(toml::Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(E::custom(format_args!("`{key}` is not a string"))),
    }
}

/// A number from 1 on, taken out of a table that may have it.
pub(super) fn take_count<E: Error>(table: &mut toml::Table, key: &str) -> Result<Option<u64>, E> {
    let Some(value) = table.remove(key) else { return Ok(None) };
    let count = value.as_integer().and_then(|count| u64::try_from(count).ok()).filter(|count| *count > 0);
    count.map(Some).ok_or_else(|| E::custom(format_args!("`{key}` is not a whole number of 1 or more")))
}

/// What the rest of a table describes. Errors name the field.
pub(super) fn read<T: DeserializeOwned, E: Error>(table: toml::Table) -> Result<T, E> {
    read_with(table, |table| T::deserialize(table))
}

/// As [`read`], in a way of its own.
pub(super) fn read_with<T, E: Error>(
    table: toml::Table,
    read: impl FnOnce(serde_path_to_error::Deserializer<'_, '_, toml::Table>) -> Result<T, toml::de::Error>,
) -> Result<T, E> {
    let mut path = serde_path_to_error::Track::new();
    let value = read(serde_path_to_error::Deserializer::new(table, &mut path));
    value.map_err(|error| {
        let (path, error) = (path.path().to_string(), error.to_string());
        let place = if path == "." { String::new() } else { format!("`{path}`: ") };
        E::custom(format!("{place}{}", error.trim_end()))
    })
}
