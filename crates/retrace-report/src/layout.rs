//! Text put into columns: measured, wrapped and padded.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// How many columns a text takes.
pub fn width(text: &str) -> usize {
    text.width()
}

/// Wraps text to lines of at most `columns`, between words where there are any; a longer word is broken. Never no line.
pub fn wrap(text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let line = lines.last_mut().expect("there is always a line");
        if !line.is_empty() {
            let longer = format!("{line} {word}");
            if width(&longer) <= columns {
                *line = longer;
                continue;
            }
            lines.push(String::new());
        }
        for character in word.chars() {
            let line = lines.last_mut().expect("there is always a line");
            line.push(character);
            if width(line) > columns && line.chars().count() > 1 {
                let last = line.pop().expect("it was just pushed");
                // What has no width of its own belongs to the character before it.
                let from = line.char_indices().rev().find(|(_, before)| before.width() != Some(0));
                let broken = if last.width() == Some(0) { from.map_or(0, |(at, _)| at) } else { line.len() };
                let mut next = line.split_off(broken);
                next.push(last);
                if line.is_empty() {
                    *line = next;
                } else {
                    lines.push(next);
                }
            }
        }
    }
    lines
}

/// At most `n` lines, the last one with an ellipsis if there were more.
pub fn elide(mut lines: Vec<String>, n: usize, columns: usize) -> Vec<String> {
    if lines.len() > n {
        lines.truncate(n);
        let last = lines.last_mut().expect("at least one line is kept");
        while width(last) >= columns && last.pop().is_some() {}
        last.push('…');
    }
    lines
}

/// Padded on the right.
pub fn left(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(width(text))))
}

/// Padded on the left.
pub fn right(text: &str, columns: usize) -> String {
    format!("{}{text}", " ".repeat(columns.saturating_sub(width(text))))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::printable;

    #[test]
    fn lines_break_between_words_and_a_long_word_breaks_anywhere() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("a verylongword b", 6), ["a", "verylo", "ngword", "b"]);
        assert_eq!(wrap("文字文字", 5), ["文字", "文字"]);
        assert_eq!(wrap("", 5), [""]);
    }

    #[test]
    fn what_does_not_fit_is_marked() {
        assert_eq!(elide(wrap("aaaa bbbb cccc", 4), 2, 4), ["aaaa", "bbb…"]);
        assert_eq!(elide(wrap("aaaa bbbb", 4), 2, 4), ["aaaa", "bbbb"]);
    }

    proptest! {
        #[test]
        fn no_line_is_too_wide_and_nothing_is_lost(text in any::<String>(), columns in 2..40usize) {
            let text = printable(&text);
            let lines = wrap(&text, columns);
            prop_assert!(lines.iter().all(|line| width(line) <= columns), "{lines:?}");
            let bare = |text: &str| text.replace(' ', "");
            prop_assert_eq!(bare(&lines.concat()), bare(&text));
        }
    }
}
