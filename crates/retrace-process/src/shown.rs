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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_escaped_and_the_rest_stays() {
        assert_eq!(escaped("a \"b\" c:\\d é 店\u{1b}[2J\r\n\u{202e}"), r#"a "b" c:\d é 店\u{1b}[2J\r\n\u{202e}"#);
    }

    proptest! {
        #[test]
        fn no_text_is_shown_at_length_or_obeyed(text in any::<String>(), n in 0..500_usize) {
            let shown = escaped(&text.repeat(n));
            prop_assert!(shown.len() < MAX * 12 && !shown.chars().any(char::is_control));
        }
    }
}
