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
        for piece in pieces(word, columns) {
            let line = lines.last_mut().expect("there is always a line");
            if !line.is_empty() && width(&format!("{line}{piece}")) > columns {
                lines.push(piece.to_owned());
            } else {
                line.push_str(piece);
            }
        }
    }
    lines
}

/// The parts of a word that no line end may break: escapes that fit into a line, as
/// [`printable`](crate::printable) writes them, and characters with those of no width behind them, which belong to them.
fn pieces(word: &str, columns: usize) -> impl Iterator<Item = &str> {
    let mut rest = word;
    std::iter::from_fn(move || {
        let (piece, after) = rest.split_at(escape(rest).filter(|&n| n <= columns).or_else(|| cluster(rest))?);
        rest = after;
        Some(piece)
    })
}

/// The length of the escape that a text begins with.
fn escape(text: &str) -> Option<usize> {
    if [r"\n", r"\r", r"\t"].iter().any(|escape| text.starts_with(escape)) {
        return Some(2);
    }
    let (digits, _) = text.strip_prefix(r"\u{")?.split_once('}')?;
    let is_code = (1..=6).contains(&digits.len()) && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_code.then_some(r"\u{}".len() + digits.len())
}

/// The length of the character that a text begins with, and of what has no width behind it.
fn cluster(text: &str) -> Option<usize> {
    let mut behind = text.char_indices().skip(1);
    (!text.is_empty()).then(|| behind.find(|(_, next)| next.width() != Some(0)).map_or(text.len(), |(at, _)| at))
}

/// At most `n` lines, the last one with an ellipsis if there were more.
pub fn elide(mut lines: Vec<String>, n: usize, columns: usize) -> Vec<String> {
    if lines.len() > n {
        lines.truncate(n);
        let last = lines.last_mut().expect("at least one line is kept");
        let pieces: Vec<_> = pieces(last, columns).collect();
        let fits = |&n: &usize| width(&pieces[..n].concat()) < columns;
        let n_pieces = (0..=pieces.len()).rev().find(fits).unwrap_or(0);
        *last = format!("{}…", pieces[..n_pieces].concat());
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
    fn an_escape_stays_whole() {
        assert_eq!(wrap(r"abcd\u{ad}ef\n", 8), [r"abcd", r"\u{ad}ef", r"\n"]);
        assert_eq!(wrap(r"abc\t\r", 4), ["abc", r"\t\r"]);
        assert_eq!(elide(wrap(r"ab\u{ad}cdefghijklm", 8), 1, 8), ["ab…"]);
        // Unless it has no room on any line, and what only begins like one is none.
        assert_eq!(wrap(r"\u{e0041}", 8), [r"\u{e0041", "}"]);
        assert_eq!(wrap(r"abc\u{x}", 4), [r"abc\", "u{x}"]);
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

        #[test]
        fn no_escape_is_broken_by_a_line_end(text in "(a|[\u{ad}\u{202e}\n\t]| ){0,40}", columns in 10..40usize) {
            let text = printable(&text);
            let n_escapes = |text: &str| text.matches(r"\u{ad}").count() + text.matches(r"\u{202e}").count()
                + text.matches(r"\n").count() + text.matches(r"\t").count();
            let lines = wrap(&text, columns);
            prop_assert_eq!(lines.iter().map(|line| n_escapes(line)).sum::<usize>(), n_escapes(&text));
        }
    }
}
