//! Text of others in messages of ours: cut short, and such that no terminal obeys it.

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

/// What of two texts shows where they part, each [quoted]: a little of what they share, then what they do not.
pub(crate) fn parted(a: &str, b: &str) -> (String, String) {
    const SHARED: usize = 20;
    let same: usize = a.chars().zip(b.chars()).take_while(|(a, b)| a == b).map(|(c, _)| c.len_utf8()).sum();
    let start = a[..same].char_indices().rev().nth(SHARED - 1).map_or(0, |(start, _)| start);
    let part = |text: &str| quoted(&format!("{}{}", if start > 0 { "…" } else { "" }, &text[start..]));
    (part(a), part(b))
}
