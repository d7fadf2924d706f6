//! Keys, and how they are kept out of every text.

use std::fmt;

/// The secrets of a model. It cleans texts of them, and shows none itself.
#[derive(Clone, Default)]
pub(crate) struct Secrets(Vec<String>);

/// What stands where a secret stood.
const HIDDEN: &str = "[secret]";

/// So many bytes of a secret in a row are as good as the secret. It is also how much a text may have by chance.
const TELLING: usize = 8;

/// More of a text than this is neither searched nor shown.
const LONGEST: usize = 64 << 10;

impl Secrets {
    /// The secrets, each also as an address and as JSON spells it.
    pub(crate) fn new<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Self {
        let mut all = Vec::new();
        for secret in secrets.into_iter().filter(|secret| !secret.is_empty()) {
            let escaped = secret.replace('\\', r"\\").replace('"', r#"\""#);
            all.extend([escaped, secret.to_owned(), percent_encoded(secret)]);
        }
        all.dedup();
        Self(all)
    }

    /// The text without any secret, and without any telling piece of one: a provider may quote a key cut short.
    pub(crate) fn clean(&self, text: &str) -> String {
        let (short, long): (Vec<_>, Vec<_>) = self.0.iter().partition(|secret| secret.len() < TELLING);
        let text = without(&text[..text.floor_char_boundary(LONGEST)], &long);
        short.into_iter().fold(text, |text, secret| text.replace(secret, HIDDEN))
    }

    /// Whether a text holds a whole secret. One that is short, as the keys of local servers are, is not looked for:
    /// it stands in texts by chance.
    pub(crate) fn stand_in(&self, text: &str) -> bool {
        self.0.iter().any(|secret| secret.len() >= TELLING && text.contains(secret.as_str()))
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({})", self.0.len())
    }
}

/// The text with each run of at least [`TELLING`] bytes that also stands in a secret hidden.
fn without(text: &str, secrets: &[&String]) -> String {
    let bytes = text.as_bytes();
    let run = |at: usize, secret: &str| {
        let from = |from: usize| bytes[at..].iter().zip(&secret.as_bytes()[from..]).take_while(|(a, b)| a == b).count();
        (0..=secret.len() - TELLING).map(from).max().unwrap_or(0)
    };
    let (mut out, mut at) = (String::with_capacity(text.len()), 0);
    while at < bytes.len() {
        let end = at + secrets.iter().map(|secret| run(at, secret)).max().unwrap_or(0);
        if end >= at + TELLING && text.is_char_boundary(end) {
            out.push_str(HIDDEN);
            at = end;
        } else {
            let next = text.ceil_char_boundary(at + 1);
            out.push_str(&text[at..next]);
            at = next;
        }
    }
    out
}

fn percent_encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~');
    text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

/// A text of a provider as a message may quote it: on one line, without what a terminal would obey, and cut short.
pub(crate) fn shown(text: &str) -> String {
    const MOST: usize = 300;
    let mut out = String::new();
    for c in text.trim().chars() {
        if out.len() >= MOST {
            out.push('…');
            break;
        }
        match c {
            '\n' | '\r' | '\t' => out.push(' '),
            '"' | '\'' | '\\' => out.push(c),
            c => out.extend(c.escape_debug()),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const KEY: &str = "sk-proj-4f9d/8c+21aa";

    #[test]
    fn a_key_is_hidden_whole_cut_short_and_as_an_address_spells_it() {
        let secrets = Secrets::new([KEY, "ab"]);
        let check = |text: &str, clean: &str| assert_eq!(secrets.clean(text), clean, "{text}");
        check("Bearer sk-proj-4f9d/8c+21aa.", "Bearer [secret].");
        check("key=sk-proj-4f9d%2F8c%2B21aa&alt=json", "key=[secret]&alt=json");
        check("got sk-proj-4f9…", "got [secret]…");
        check("ends in d/8c+21aa", "ends in [secret]");
        check("a cab", "a c[secret]");
        check("sk-proj", "sk-proj");
        assert!(secrets.stand_in(r#"{"echo":"sk-proj-4f9d/8c+21aa"}"#) && !secrets.stand_in("a cab"));
        assert_eq!(format!("{secrets:?}"), "Secrets(3)");
        let quoted = Secrets::new([r#"pass"word\s"#]);
        assert!(quoted.stand_in(r#"{"echo":"pass\"word\\s"}"#));
    }

    proptest! {
        #[test]
        fn no_telling_piece_of_a_key_is_left(key in "[a-c]{8,20}", text in "[a-cé]{0,60}") {
            let clean = Secrets::new([&*key]).clean(&text);
            for at in 0..=key.len() - TELLING {
                prop_assert!(!clean.contains(&key[at..at + TELLING]), "{}", clean);
            }
        }
    }
}
