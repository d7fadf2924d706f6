//! Text of others, as messages show it.

use std::fmt::Write;

/// Characters that are shown of a text.
const MAX: usize = 400;

/// Text of a program as an error may quote it: on one line, control characters escaped, so that a terminal obeys none of
/// them, and of a long text the start and the end.
pub fn escaped(text: &str) -> String {
    let n_chars = text.chars().count();
    let mut shown = String::new();
    for (index, c) in text.chars().enumerate() {
        if n_chars > MAX && index == MAX * 2 / 3 {
            shown.push_str(" … ");
        }
        if n_chars > MAX && (MAX * 2 / 3..n_chars - MAX / 3).contains(&index) {
            continue;
        }
        match c {
            '\'' | '"' | '\\' => shown.push(c),
            // Writing to a string cannot fail.
            c => _ = write!(shown, "{}", c.escape_debug()),
        }
    }
    shown
}

/// A value shorter than this is no secret worth the name, and hiding it would garble messages.
const MIN_SECRET: usize = 6;

/// Values that no message shows, such as keys.
#[derive(Clone, Default)]
pub struct Hidden {
    /// The longest first, since one may hold another.
    values: Vec<String>,
}

impl Hidden {
    /// These, but for those of less than six bytes.
    pub fn new(values: impl IntoIterator<Item = String>) -> Self {
        let mut values: Vec<_> = values.into_iter().filter(|value| value.len() >= MIN_SECRET).collect();
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        Self { values }
    }

    /// The text without them.
    pub(crate) fn strip(&self, text: &str) -> String {
        self.values.iter().fold(text.to_owned(), |text, value| text.replace(value, "***"))
    }

    /// The text without them, as [`escaped`] gives it.
    pub fn escaped(&self, text: &str) -> String {
        escaped(&self.strip(text))
    }

    /// The start of a text that was cut, without them and without what may be the start of one.
    pub(crate) fn strip_start(&self, text: &str) -> String {
        let mut text = self.strip(text);
        text.truncate(text.floor_char_boundary(text.len().saturating_sub(self.longest())));
        text
    }

    /// The end of a text that was cut, without them and without what may be the end of one.
    pub(crate) fn strip_end(&self, text: &str) -> String {
        let text = self.strip(text);
        text[text.ceil_char_boundary(self.longest())..].to_owned()
    }

    /// The length of the longest in bytes.
    fn longest(&self) -> usize {
        self.values.first().map_or(0, String::len)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_escaped_and_the_rest_stays() {
        assert_eq!(escaped("a \"b\" c:\\d é 店\u{1b}[2J\r\n\u{202e}"), r#"a "b" c:\d é 店\u{1b}[2J\r\n\u{202e}"#);
    }

    #[test]
    fn hidden_values_are_hidden_whole_and_before_a_text_is_cut() {
        let hidden = Hidden::new(["sk-12345", "sk-12345-extra", "short"].map(str::to_owned));
        assert_eq!(hidden.escaped("a sk-12345-extra, sk-12345 and short\n"), r"a ***, *** and short\n");
        let key = "k".repeat(MAX);
        let hidden = Hidden::new([key.clone()]);
        assert!(!hidden.escaped(&format!("{}{key}", "x".repeat(MAX))).contains("kk"));
    }

    #[test]
    fn no_part_of_a_hidden_value_is_shown_of_a_text_that_was_cut() {
        let hidden = Hidden::new(["0123456789".to_owned()]);
        let text = format!("{}0123456789{}", "é".repeat(20), "ü".repeat(20));
        for cut in (0..=text.len()).filter(|cut| text.is_char_boundary(*cut)) {
            let shown = [hidden.strip_start(&text[..cut]), hidden.strip_end(&text[cut..])];
            assert!(!shown.iter().any(|text| text.contains(char::is_numeric)), "{cut}: {shown:?}");
        }
    }

    proptest! {
        #[test]
        fn no_text_is_shown_at_length_or_obeyed(text in any::<String>(), n in 0..500_usize) {
            let shown = escaped(&text.repeat(n));
            prop_assert!(shown.len() < MAX * 12 && !shown.chars().any(char::is_control));
        }
    }
}
