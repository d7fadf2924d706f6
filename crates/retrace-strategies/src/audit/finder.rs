//! Which of many values stand in a text, in one pass.

use aho_corasick::{AhoCorasick, BuildError};
use retrace_events::{Event, Part, PartBody};

/// Finds values in texts, as they are or as JSON spells them, and not inside longer words.
pub(super) struct Finder {
    automaton: AhoCorasick,
    /// The value that each pattern spells.
    value_of: Vec<usize>,
}

impl Finder {
    pub(super) fn new(values: &[String]) -> Result<Self, BuildError> {
        let mut patterns = Vec::with_capacity(values.len());
        let mut value_of = Vec::with_capacity(values.len());
        for (index, value) in values.iter().enumerate() {
            let [json, ascii] = escaped(value);
            let spellings =
                [Some(value.clone()), (json != *value).then(|| json.clone()), (ascii != json).then_some(ascii)];
            for spelling in spellings.into_iter().flatten() {
                patterns.push(spelling);
                value_of.push(index);
            }
        }
        Ok(Self { automaton: AhoCorasick::new(patterns)?, value_of })
    }

    /// The values in these texts, by index, each once and in order.
    pub(super) fn find<'t>(&self, texts: impl IntoIterator<Item = &'t str>) -> Vec<usize> {
        let mut found = Vec::new();
        for text in texts {
            let matches = self.automaton.find_overlapping_iter(text);
            let whole = matches.filter(|found| !(joins_before(text, found.start()) || joins_after(text, found.end())));
            found.extend(whole.map(|found| self.value_of[found.pattern()]));
        }
        found.sort_unstable();
        found.dedup();
        found
    }
}

/// What of an event a model reads.
pub(super) fn texts(event: &Event) -> impl Iterator<Item = &str> {
    let results = if let Event::ToolResults(round) = event { &round.results[..] } else { &[] };
    texts_of(event.content()).chain(results.iter().flat_map(|result| texts_of(&result.content)))
}

/// What of parts a model reads.
pub(super) fn texts_of(parts: &[Part]) -> impl Iterator<Item = &str> {
    parts.iter().filter_map(text)
}

fn text(part: &Part) -> Option<&str> {
    match &part.body {
        PartBody::Text(text) | PartBody::System(text) => Some(text),
        PartBody::Thinking(thinking) => Some(&thinking.text),
        PartBody::ToolCall(call) => Some(&call.arguments),
        PartBody::Media(_) => None,
    }
}

/// A value inside a JSON string, and inside one that is all ASCII.
fn escaped(value: &str) -> [String; 2] {
    let quoted = serde_json::Value::from(value).to_string();
    let json = quoted[1..quoted.len() - 1].to_owned();
    let mut ascii = String::with_capacity(json.len());
    for c in json.chars() {
        if c.is_ascii() {
            ascii.push(c);
        } else {
            let mut units = [0; 2];
            ascii.extend(c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")));
        }
    }
    [json, ascii]
}

/// Whether what starts here goes on a word or a number.
fn joins_before(text: &str, start: usize) -> bool {
    let mut before = text[..start].chars().rev();
    let (Some(first), Some(last)) = (text[start..].chars().next(), before.next()) else { return false };
    let (second, is_escape) = (before.clone().next(), "nrt".contains(last) && before.next() == Some('\\'));
    is_word(first) && is_word(last) && !is_escape || is_number(second, last, first)
}

/// Whether what ends here goes on.
fn joins_after(text: &str, end: usize) -> bool {
    let mut after = text[end..].chars();
    let (Some(last), Some(next)) = (text[..end].chars().next_back(), after.next()) else { return false };
    is_word(last) && is_word(next) || is_number(Some(last), next, after.next().unwrap_or(' '))
}

fn is_number(before: Option<char>, point: char, after: char) -> bool {
    point == '.' && after.is_ascii_digit() && before.is_some_and(|c| c.is_ascii_digit())
}

/// Scripts without capitals put no space between words, so there a word may end anywhere.
fn is_word(c: char) -> bool {
    c == '_' || c.is_ascii_alphanumeric() || c.is_lowercase() || c.is_uppercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_in(value: &str, text: &str) -> bool {
        !Finder::new(&[value.to_owned()]).unwrap().find([text]).is_empty()
    }

    #[test]
    fn a_value_stands_by_itself() {
        for (value, text) in [
            ("sess_42", "sess_42"),
            ("sess_42", r#"{"id":"sess_42"}"#),
            ("42", "[41,42,43]"),
            ("42", "That is 42."),
            ("a.rs", "src/a.rs:7"),
            ("/etc/hosts", "cat /etc/hosts; ls"),
            ("店42", "在店42号"),
            ("sess_42", r"one\nsess_42\ttwo"),
            ("C:\\new\\x1", r#"{"path": "C:\\new\\x1"}"#),
            ("Zoë 7", r#"{"name": "Zo\u00eb 7"}"#),
        ] {
            assert!(is_in(value, text), "{value} in {text}");
        }
        for (value, text) in [
            ("sess_42", "sess_421"),
            ("sess_42", "old_sess_42"),
            ("42", "3.42"),
            ("42", "42.5"),
            ("42", "x42"),
            ("Mia", "Miaé"),
            ("sess_42", "SESS_42"),
        ] {
            assert!(!is_in(value, text), "{value} in {text}");
        }
    }

    #[test]
    fn values_inside_values_are_all_found() {
        let values = ["/etc/hosts", "hosts", "/etc", "host"].map(str::to_owned);
        assert_eq!(Finder::new(&values).unwrap().find(["see /etc/hosts", "hosts"]), [0, 1, 2]);
    }
}
