//! What an importer is told beside the source.

/// How recordings are named, and where a run has its messages.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImportOptions {
    /// The id of the recording, or the start of the ids where a source holds several: the name of the file, say.
    pub id_stem: String,
    /// The key under which a run has its messages; found by itself where there is none.
    pub messages_key: Option<String>,
}

impl ImportOptions {
    /// Options with this start of the ids.
    pub fn new(id_stem: impl Into<String>) -> Self {
        Self { id_stem: id_stem.into(), messages_key: None }
    }

    /// Takes the messages from under this key, and from no other.
    #[must_use]
    pub fn messages_key(mut self, key: impl Into<String>) -> Self {
        self.messages_key = Some(key.into());
        self
    }
}
