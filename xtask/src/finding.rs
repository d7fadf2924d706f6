//! A finding: a place in the workspace, and what to do there.

use std::fmt;

/// Something that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// A path from the root of the workspace, with `:line` where there is one.
    pub place: String,
    /// What is wrong, and what to do about it.
    pub advice: String,
}

impl Finding {
    /// A finding at `place`.
    pub fn new(place: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { place: place.into(), advice: advice.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.advice)
    }
}
