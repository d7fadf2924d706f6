//! Text of others in messages of ours.

/// The most characters of a text that are quoted.
const MOST: usize = 60;

/// A text in backticks, cut short, with what a terminal would obey escaped.
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::from("`");
    for c in text.chars().take(MOST) {
        match c {
            '\'' | '"' | '\\' => quoted.push(c),
            c => quoted.extend(c.escape_debug()),
        }
    }
    if text.chars().nth(MOST).is_some() {
        quoted.push('…');
    }
    quoted.push('`');
    quoted
}
