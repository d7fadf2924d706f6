//! Paths: the workspace has another path in each rollout, and the same one for the agent.

use serde_json::Value;

/// Translates between the path of a workspace's copy and the path that the agent knows.
#[derive(Clone, Debug)]
pub(crate) struct ShownPath {
    /// Where the copy is.
    real: String,
    /// What the agent takes for it.
    shown: String,
}

impl ShownPath {
    pub(crate) fn new(real: &str, shown: &str) -> Self {
        Self { real: real.to_owned(), shown: shown.to_owned() }
    }

    /// A result's text, as the agent sees it.
    pub(crate) fn show(&self, text: &str) -> String {
        // Whatever stands before it, such as a colour of a terminal or a `\n` of JSON, nothing else is called so.
        replace_path(text, &self.real, &self.shown, |_| true)
    }

    /// A value whose texts are shown so.
    pub(crate) fn show_value(&self, value: &mut Value) {
        for_each_text(value, &|text| *text = self.show(text));
    }

    /// An argument, as the server needs it.
    pub(crate) fn resolve(&self, value: &mut Value) {
        for_each_text(value, &|text| *text = replace_path(text, &self.shown, &self.real, is_start));
    }
}

fn for_each_text(value: &mut Value, change: &impl Fn(&mut String)) {
    match value {
        Value::String(text) => change(text),
        Value::Array(items) => items.iter_mut().for_each(|item| for_each_text(item, change)),
        Value::Object(members) => members.values_mut().for_each(|value| for_each_text(value, change)),
        _ => {}
    }
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '~')
}

/// Whether a path may start behind a text: `/files` in `cd /files/a` and in `file:///files`, but not in `/home/files`.
fn is_start(before: &str) -> bool {
    // An address has an empty host before its path.
    before.ends_with("://") || !before.ends_with(|c| is_name(c) || matches!(c, '/' | '.'))
}

/// The text with `from` replaced where it starts and stands for a whole path or is the start of one: `/files` in `/files/a`,
/// but not in `/filesystem` and `/files-2`.
fn replace_path(text: &str, from: &str, to: &str, starts: impl Fn(&str) -> bool) -> String {
    let (mut replaced, mut done) = (String::new(), 0);
    for (start, _) in text.match_indices(from) {
        let (before, after) = (&text[..start], &text[start + from.len()..]);
        // A dot may end a sentence, or go on with the name.
        let mut next = after.chars();
        let ends = match next.next() {
            Some('.') => !next.next().is_some_and(is_name),
            Some(c) => !is_name(c),
            None => true,
        };
        if starts(before) && ends {
            replaced.push_str(&text[done..start]);
            replaced.push_str(to);
            done = start + from.len();
        }
    }
    replaced.push_str(&text[done..]);
    replaced
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_are_replaced_and_what_only_looks_like_them_is_not() {
        let path = ShownPath::new("/tmp/x/1", "/files");
        let mut value =
            json!({"a": "/files", "b": ["cd /files/a && ls '/files'", "/home/files", "/filesystem", "/files-2", 1]});
        path.resolve(&mut value);
        let expected = json!({"a": "/tmp/x/1", "b": ["cd /tmp/x/1/a && ls '/tmp/x/1'", "/home/files", "/filesystem", "/files-2", 1]});
        assert_eq!(value, expected);
        assert_eq!(
            path.show("in /tmp/x/1. not /tmp/x/1.txt, file:///tmp/x/1/a /tmp/x/12"),
            "in /files. not /tmp/x/1.txt, file:///files/a /tmp/x/12"
        );
        // As JSON spells a line feed, and a terminal a colour.
        assert_eq!(
            path.show("{\"out\":\"a\\n/tmp/x/1/b\\n\"} \u{1b}[34m/tmp/x/1\u{1b}[0m"),
            "{\"out\":\"a\\n/files/b\\n\"} \u{1b}[34m/files\u{1b}[0m"
        );
    }

    proptest! {
        #[test]
        fn what_the_agent_names_comes_back_as_it_was(words in prop::collection::vec("[a-z /.]{0,6}|/files(/[a-z]{1,3})?", 0..8)) {
            let (path, text) = (ShownPath::new("/tmp/x/1", "/files"), words.join(" "));
            let mut value = Value::from(text.clone());
            path.resolve(&mut value);
            prop_assert_eq!(path.show(value.as_str().unwrap()), text);
        }
    }
}
