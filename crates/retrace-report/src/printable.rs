//! Recorded text made safe to look at.

use std::borrow::Cow;
use std::fmt::Write;

/// The text with every character that could act on a terminal, or on a reader's eye, spelt out.
///
/// Spelt out are control characters, so that no escape sequence is one any more, line ends, marks that turn the
/// direction of writing or break lines, and characters without a glyph, which would make two names look the same. The
/// joiners that scripts need inside of words stay.
///
/// ```
/// use retrace_report::printable;
///
/// assert_eq!(printable("naïve 文 🚀"), "naïve 文 🚀");
/// assert_eq!(printable("\u{1b}[2J\r\n"), r"\u{1b}[2J\r\n");
/// assert_eq!(printable("a\u{202e}b"), r"a\u{202e}b");
/// ```
pub fn printable(text: &str) -> Cow<'_, str> {
    let Some(first) = text.find(is_unprintable) else { return Cow::Borrowed(text) };
    let mut visible = String::with_capacity(text.len() + 16);
    visible.push_str(&text[..first]);
    for character in text[first..].chars() {
        if is_unprintable(character) {
            write!(visible, "{}", character.escape_default()).expect("a string takes all that is written");
        } else {
            visible.push(character);
        }
    }
    Cow::Owned(visible)
}

/// Whether a character is one of those that [`printable`] spells out.
pub(crate) fn is_unprintable(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            // Soft hyphen, grapheme joiner, direction marks, Hangul fillers, Mongolian separators.
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
            // Zero-width space, direction marks and overrides, line and paragraph ends, invisible operators, isolates.
            | '\u{200b}' | '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            // Filler, byte order mark, annotations, musical format marks, tags.
            | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
        )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sequences_for_a_terminal_are_spelt_out() {
        let check = |text: &str, expected: &str| assert_eq!(printable(text), expected);
        check("\u{1b}]0;title\u{7}", r"\u{1b}]0;title\u{7}");
        check("\u{9b}31m", r"\u{9b}31m");
        check("a\u{8}b\u{7f}\0", r"a\u{8}b\u{7f}\u{0}");
        check("\u{2066}x\u{2069}\u{200f}\u{2028}", r"\u{2066}x\u{2069}\u{200f}\u{2028}");
        check("tail\u{200b}", r"tail\u{200b}");
        check("\t", r"\t");
    }

    #[test]
    fn joiners_and_marks_of_a_script_stay() {
        for text in ["e\u{301}", "می\u{200c}خواهم", "👩\u{200d}💻", "❤\u{fe0f}", "עברית"] {
            assert!(matches!(printable(text), Cow::Borrowed(_)), "{text}");
        }
    }

    proptest! {
        #[test]
        fn nothing_unprintable_is_left_and_the_rest_is_kept(text in any::<String>()) {
            let visible = printable(&text);
            prop_assert!(!visible.contains(is_unprintable));
            prop_assert_eq!(printable(&visible), visible.as_ref());
            if !text.contains(is_unprintable) {
                prop_assert_eq!(visible.as_ref(), text.as_str());
            }
        }
    }
}
