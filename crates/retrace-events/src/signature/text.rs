//! A JSON string by what it says, whatever its escapes.

use std::borrow::Cow;

/// The text of a JSON string: UTF-8 in which half of a surrogate pair, which JSON can hold only as an escape, takes the
/// three bytes that its code point would have (WTF-8). So the order of texts is that of their code points, and a
/// half is equal to nothing but itself.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Text<'a>(Cow<'a, [u8]>);

impl<'a> From<&'a str> for Text<'a> {
    fn from(text: &'a str) -> Self {
        Self(Cow::Borrowed(text.as_bytes()))
    }
}

impl<'a> Text<'a> {
    /// Reads what follows an opening quote: the text, and the rest after the closing quote. `None` where it is no string.
    pub(super) fn read(source: &'a str) -> Option<(Self, &'a str)> {
        let (run, mut rest) = split_plain(source);
        if let Some(rest) = rest.strip_prefix('"') {
            return Some((run.into(), rest));
        }
        let mut bytes = run.as_bytes().to_vec();
        loop {
            // A raw control character or the end of the source would be neither.
            if let Some(rest) = rest.strip_prefix('"') {
                return Some((Self(Cow::Owned(bytes)), rest));
            }
            let (code_point, after) = read_escape(rest.strip_prefix('\\')?)?;
            push(code_point, &mut bytes);
            let (run, after) = split_plain(after);
            bytes.extend_from_slice(run.as_bytes());
            rest = after;
        }
    }

    /// Writes the string with its quotes and only the escapes that it needs.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.push(b'"');
        let mut rest: &[u8] = &self.0;
        while let Some((&byte, after)) = rest.split_first() {
            rest = match (byte, after) {
                (b'"' | b'\\', _) => escape(&char::from(byte).to_string(), after, out),
                (0x08, _) => escape("b", after, out),
                (b'\t', _) => escape("t", after, out),
                (b'\n', _) => escape("n", after, out),
                (0x0c, _) => escape("f", after, out),
                (b'\r', _) => escape("r", after, out),
                (0x00..0x20, _) => escape(&format!("u{byte:04x}"), after, out),
                (0xed, &[second @ 0xa0..=0xbf, third, ref after @ ..]) => {
                    let half = 0xd000 | (u32::from(second & 0x3f) << 6) | u32::from(third & 0x3f);
                    escape(&format!("u{half:04x}"), after, out)
                }
                _ => {
                    out.push(byte);
                    after
                }
            };
        }
        out.push(b'"');
    }
}

fn escape<'r>(letters: &str, rest: &'r [u8], out: &mut Vec<u8>) -> &'r [u8] {
    out.push(b'\\');
    out.extend_from_slice(letters.as_bytes());
    rest
}

/// Splits `source` before the first character that ends a string, starts an escape or may not stand in a string.
fn split_plain(source: &str) -> (&str, &str) {
    let end = source.bytes().position(|byte| matches!(byte, b'"' | b'\\' | 0x00..0x20));
    source.split_at(end.unwrap_or(source.len()))
}

/// Reads what follows a backslash: a code point, and the rest. Two escapes that are the halves of a pair are one.
fn read_escape(source: &str) -> Option<(u32, &str)> {
    let letter = source.chars().next()?;
    let rest = source.get(letter.len_utf8()..)?;
    let plain = match letter {
        '"' | '\\' | '/' => letter,
        'b' => '\u{8}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'u' => {
            let (unit, rest) = read_unit(rest)?;
            return Some(read_pair(unit, rest).unwrap_or((unit, rest)));
        }
        _ => return None,
    };
    Some((u32::from(plain), rest))
}

/// Reads the low half that makes a pair with `high`: the code point of the two, and the rest.
fn read_pair(high: u32, source: &str) -> Option<(u32, &str)> {
    if !matches!(high, 0xd800..0xdc00) {
        return None;
    }
    let (low, rest) = read_unit(source.strip_prefix("\\u")?)?;
    matches!(low, 0xdc00..0xe000).then(|| (0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00), rest))
}

/// Reads four hexadecimal digits.
fn read_unit(source: &str) -> Option<(u32, &str)> {
    let (digits, rest) = source.split_at_checked(4)?;
    // Checked, since `from_str_radix` would take a sign.
    let hexadecimal = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    hexadecimal.then(|| u32::from_str_radix(digits, 16).ok()).flatten().map(|unit| (unit, rest))
}

fn push(code_point: u32, bytes: &mut Vec<u8>) {
    match char::from_u32(code_point) {
        Some(c) => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        None => {
            let [second, third] = [code_point >> 6, code_point].map(|bits| 0x80 | (bits & 0x3f) as u8);
            bytes.extend([0xed, second, third]);
        }
    }
}
