//! What in the arguments of a call counts as a value that it needed.

use serde_json::Value;

/// A value that a call may have needed, or else the pieces it may have been put together from.
pub(super) struct Candidate {
    pub(super) value: String,
    /// Where in the arguments it stands, as a JSON pointer; empty where they are no JSON object or list.
    pub(super) argument: String,
    pub(super) pieces: Vec<Candidate>,
}

/// Longer texts are written by the model, not taken from anywhere; their pieces may be.
const MAX_BYTES: usize = 200;
const MAX_WORDS: usize = 6;

/// Words that say nothing of their own, of four letters and more.
const COMMON: [&str; 56] = [
    "about", "after", "again", "also", "auto", "been", "before", "content", "current", "data", "default", "each",
    "error", "false", "file", "from", "have", "here", "info", "into", "item", "items", "list", "more", "most", "name",
    "next", "none", "normal", "null", "only", "other", "over", "path", "result", "some", "start", "test", "text",
    "than", "that", "them", "then", "there", "they", "this", "true", "type", "value", "what", "when", "where", "which",
    "will", "with", "your",
];

/// What the arguments of a call hold: strings and numbers, keys left out. Arguments that are no JSON are one string.
pub(super) fn candidates(arguments: &str) -> Vec<Candidate> {
    let mut found = Vec::new();
    match serde_json::from_str(arguments) {
        Ok(value) => walk(&value, &mut String::new(), &mut found),
        Err(_) => found.push(of_text(arguments, "")),
    }
    found
}

fn walk(value: &Value, pointer: &mut String, found: &mut Vec<Candidate>) {
    let length = pointer.len();
    match value {
        Value::Null | Value::Bool(_) => {}
        Value::Number(number) => {
            let value = number.to_string();
            if value.bytes().filter(u8::is_ascii_digit).count() > 1 {
                found.push(Candidate { value, argument: pointer.clone(), pieces: Vec::new() });
            }
        }
        Value::String(text) => found.push(of_text(text, pointer)),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                pointer.push_str(&format!("/{index}"));
                walk(item, pointer, found);
                pointer.truncate(length);
            }
        }
        Value::Object(members) => {
            for (key, member) in members {
                pointer.push_str(&format!("/{}", key.replace('~', "~0").replace('/', "~1")));
                walk(member, pointer, found);
                pointer.truncate(length);
            }
        }
    }
}

fn of_text(text: &str, argument: &str) -> Candidate {
    let candidate = |value: &str, pieces| Candidate { value: value.to_owned(), argument: argument.to_owned(), pieces };
    let of_piece = |piece: &str| {
        let smaller = piece.split(|c| is_between_words(c) || "/:@#\\".contains(c)).map(trimmed);
        let smaller = smaller.filter(|smaller| *smaller != piece && is_name(smaller));
        candidate(piece, smaller.map(|smaller| candidate(smaller, Vec::new())).collect())
    };
    let quoted = quoted(text).filter(|quoted| *quoted != text && says_something(quoted));
    let words = text.split(is_between_words).map(trimmed).filter(|word| is_name(word));
    let pieces = quoted.chain(words).map(of_piece).collect();
    candidate(if says_something(text.trim()) { text.trim() } else { "" }, pieces)
}

/// Whether a text can be a value by itself: one short line that is more than a common word.
fn says_something(text: &str) -> bool {
    if text.len() > MAX_BYTES || text.contains('\n') || text.split_whitespace().count() > MAX_WORDS {
        return false;
    }
    let n_letters = text.chars().filter(|c| c.is_alphanumeric()).count();
    let is_marked = is_marked(text);
    let enough = if is_marked || !text.is_ascii() { 2 } else { 4 };
    let is_common = |word: &str| COMMON.contains(&&*word.to_ascii_lowercase());
    n_letters > 0 && text.chars().count() >= enough && (is_marked || !text.split_whitespace().all(is_common))
}

/// Whether a word of a longer text is a name of something: an identifier, a path, a number.
fn is_name(word: &str) -> bool {
    is_marked(word) && says_something(word)
}

/// Whether a text holds a digit or a mark.
fn is_marked(text: &str) -> bool {
    text.chars().any(|c| c.is_numeric() || !(c.is_alphanumeric() || c.is_whitespace()))
}

fn is_between_words(c: char) -> bool {
    c.is_whitespace() || "\"'`()[]{}<>,;|&?=!*$".contains(c)
}

/// A word without what the sentence or the command around it put at its ends.
fn trimmed(word: &str) -> &str {
    word.trim_start_matches('-').trim_end_matches(['.', ':', '-'])
}

/// What stands between two quotation marks of a kind, on one line.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    let of = |mark| text.lines().flat_map(move |line| line.split(mark).skip(1).step_by(2));
    of('"').chain(of('\'')).chain(of('`'))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every value and piece that arguments may give, with where it stands.
    fn all(arguments: &str) -> Vec<String> {
        fn flatten(found: Vec<Candidate>, all: &mut Vec<String>) {
            for Candidate { value, pieces, .. } in found {
                all.extend((!value.is_empty()).then_some(value));
                flatten(pieces, all);
            }
        }
        let mut values = Vec::new();
        flatten(candidates(arguments), &mut values);
        values.dedup();
        values
    }

    #[test]
    fn values_are_what_a_model_cannot_guess() {
        assert_eq!(
            all(r#"{"id": "A7", "n": 5, "amount": -12.5, "deep": [true, null, {"x": "sess_42"}]}"#),
            ["A7", "-12.5", "sess_42"]
        );
        assert_eq!(all(r#"{"a": "name", "b": "on", "c": "", "d": "--", "e": "Mia Li", "f": "this list"}"#), ["Mia Li"]);
        assert_eq!(all("no JSON: /etc/x1"), ["no JSON: /etc/x1", "/etc/x1", "x1"]);
    }

    #[test]
    fn a_long_text_gives_its_names_and_quotations() {
        let found =
            all(r#"{"sql": "SELECT * FROM orders WHERE owner = 'Mia Li' AND id = 'ord_17' AND total > 99 LIMIT 5"}"#);
        assert_eq!(found, ["Mia Li", "ord_17", "99"]);
        assert_eq!(all(r#"{"cmd": "cat --n src/main.rs"}"#), ["cat --n src/main.rs", "src/main.rs", "main.rs"]);
    }

    #[test]
    fn where_a_value_stands_is_a_pointer() {
        let found = candidates(r#"{"a/b": [{"c~": "sess_42"}]}"#);
        assert_eq!(found[0].argument, "/a~1b/0/c~0");
    }
}
