//! Text of others, cut short before it stands in a message of ours.

use std::any::Any;

/// Characters that are shown of a tool's name.
pub(crate) const MAX_NAME: usize = 80;
/// Characters that are shown of a call or of a result.
pub(crate) const MAX_TEXT: usize = 200;

/// The first `max` characters, with a mark if there were more.
pub(crate) fn shorten(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// What a panic said; where it happened is a place on some machine and left out.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    shorten(retrace_events::panic_text(panic), MAX_TEXT)
}

/// What of two texts shows where they part, each cut short: a little of what they share, then what they do not.
pub(crate) fn where_they_part(a: &str, b: &str) -> (String, String) {
    const SHARED: usize = 20;
    let same: usize = a.chars().zip(b.chars()).take_while(|(a, b)| a == b).map(|(c, _)| c.len_utf8()).sum();
    let start = a[..same].char_indices().rev().nth(SHARED - 1).map_or(0, |(start, _)| start);
    let part = |text: &str| {
        let mark = if start > 0 { "…" } else { "" };
        format!("{mark}{}", shorten(&text[start..], MAX_TEXT))
    };
    (part(a), part(b))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn texts_that_part_late_are_shown_where_they_part() {
        let (a, b) = where_they_part(&format!("{}10 left", "é".repeat(500)), &format!("{}9 left", "é".repeat(500)));
        assert_eq!(a, format!("…{}10 left", "é".repeat(20)));
        assert_eq!(b, format!("…{}9 left", "é".repeat(20)));
        assert_eq!(where_they_part("a", "b"), ("a".to_owned(), "b".to_owned()));
    }

    proptest! {
        #[test]
        fn no_text_is_shown_at_length(a in any::<String>(), b in any::<String>(), shared in ".{0,300}") {
            let (a, b) = where_they_part(&format!("{shared}{a}"), &format!("{shared}{b}"));
            prop_assert!(a.chars().count() <= MAX_TEXT + 2 && b.chars().count() <= MAX_TEXT + 2);
        }
    }
}
