//! Recorded text in errors.

use std::fmt::{self, Write};

/// Recorded text as an error may quote it: control characters escaped, so that a terminal obeys none of them, and of a
/// long text the start and the end.
pub(crate) struct Quotable<'a>(pub(crate) &'a str);

/// So many bytes of a text that is longer than both together.
const HEAD: usize = 240;
const TAIL: usize = 120;

impl fmt::Display for Quotable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0;
        if text.len() <= HEAD + TAIL {
            return escape(text, f);
        }
        escape(&text[..text.floor_char_boundary(HEAD)], f)?;
        f.write_str(" … ")?;
        escape(&text[text.ceil_char_boundary(text.len() - TAIL)..], f)
    }
}

/// A message of which nobody wants to read more than its start and its end: as it is, unless it is longer than four thousand
/// bytes.
pub(crate) fn cut_short(message: String) -> String {
    const HEAD: usize = 3000;
    const TAIL: usize = 1000;
    if message.len() <= HEAD + TAIL {
        return message;
    }
    let (head, tail) = (message.floor_char_boundary(HEAD), message.ceil_char_boundary(message.len() - TAIL));
    format!("{} … {}", &message[..head], &message[tail..])
}

fn escape(text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    text.chars().try_for_each(|c| match c {
        '\'' | '"' | '\\' => f.write_char(c),
        c => write!(f, "{}", c.escape_debug()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_escaped_and_the_rest_stays() {
        let quoted = Quotable("a \"b\" c:\\d é 店\u{1b}[2J\u{9b}\r\n\u{202e}\0").to_string();
        assert_eq!(quoted, r#"a "b" c:\d é 店\u{1b}[2J\u{9b}\r\n\u{202e}\0"#);
    }

    #[test]
    fn a_long_text_keeps_its_start_and_its_end() {
        let quoted = Quotable(&format!("start{}end", "店".repeat(100_000))).to_string();
        assert!(quoted.starts_with("start店") && quoted.contains("店 … 店") && quoted.ends_with("店end"), "{quoted}");
        assert!(quoted.len() < 400, "{}", quoted.len());
    }

    #[test]
    fn a_message_is_cut_where_it_is_too_long_and_nowhere_else() {
        let message = "é".repeat(2000);
        assert_eq!(cut_short(message.clone()), message);
        let cut = cut_short(format!("start{}end", "店".repeat(1_000_000)));
        assert!(cut.starts_with("start店") && cut.contains("店 … 店") && cut.ends_with("店end"), "{cut}");
        assert!(cut.len() < 4010, "{}", cut.len());
    }
}
