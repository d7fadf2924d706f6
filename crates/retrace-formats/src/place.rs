//! Places in a source, as errors and findings name them.

use std::fmt;

/// A place in a source.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The line on which the JSON value starts, counted from 1; none where the source is one value.
    pub line: Option<usize>,
    /// The path from there, such as `[3].messages[7].content`; empty for the value itself.
    pub path: String,
}

impl Place {
    /// The value that starts on a line.
    pub(crate) fn at_line(number: usize) -> Self {
        Self { line: Some(number), path: String::new() }
    }

    /// A field of the object at this place.
    pub(crate) fn key(&self, key: &str) -> Self {
        let plain = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
        let dot = if self.path.is_empty() { "" } else { "." };
        let path = &self.path;
        let path = if plain { format!("{path}{dot}{}", shown(key)) } else { format!("{path}[\"{}\"]", shown(key)) };
        Self { line: self.line, path }
    }

    /// An element of the list at this place.
    pub(crate) fn index(&self, index: usize) -> Self {
        Self { line: self.line, path: format!("{}[{index}]", self.path) }
    }
}

/// As a message names it: `line 3, [0].role`.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.line, &*self.path) {
            (None, "") => f.write_str("the whole of it"),
            (None, path) => f.write_str(path),
            (Some(line), "") => write!(f, "line {line}"),
            (Some(line), path) => write!(f, "line {line}, {path}"),
        }
    }
}

/// Text of a source as a message may show it: cut short, and without control characters.
pub(crate) fn shown(text: &str) -> String {
    const LIMIT: usize = 60;
    let cut = text.char_indices().nth(LIMIT).map(|(at, _)| at);
    let mut shown = text[..cut.unwrap_or(text.len())].escape_debug().to_string();
    if cut.is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_no_control_characters_and_an_end() {
        let place = Place::default().index(3).key("traj").key("a\u{1b}[31m.b").key(&"x".repeat(1000));
        assert_eq!(place.to_string(), format!("[3].traj[\"a\\u{{1b}}[31m.b\"].{}…", "x".repeat(60)));
    }

    #[test]
    fn a_place_names_its_line_where_there_are_several() {
        assert_eq!(Place::default().to_string(), "the whole of it");
        assert_eq!(Place::at_line(7).to_string(), "line 7");
        assert_eq!(Place::at_line(7).key("messages").index(0).to_string(), "line 7, messages[0]");
    }
}
