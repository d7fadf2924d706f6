//! A JSON value that keeps the spelling of its numbers and the halves of surrogate pairs, and may nest to any depth.

use std::borrow::Cow;
use std::collections::{BTreeMap, btree_map};
use std::slice;

use serde_json::Value;

use super::number;
use super::text::Text;

/// All the white space that JSON has.
pub(super) const WHITE_SPACE: [char; 4] = [' ', '\t', '\n', '\r'];

/// Every word that counts as a value; the last three are not of JSON itself.
const WORDS: [&str; 6] = ["null", "true", "false", "NaN", "Infinity", "-Infinity"];

/// One JSON value. Its nodes lie side by side and name each other by index, so that no depth of nesting can exhaust the
/// stack, not even when they are dropped.
pub(crate) struct Json<'a> {
    /// A value stands after all that it holds, and so the outermost value last.
    nodes: Vec<Node<'a>>,
}

enum Node<'a> {
    Word(&'static str),
    /// In its canonical spelling.
    Number(Cow<'a, str>),
    Text(Text<'a>),
    Array(Vec<usize>),
    Object(BTreeMap<Text<'a>, usize>),
}

/// An array or object whose end has not been read; an object with the key of the member that comes next.
enum Open<'a> {
    Array(Vec<usize>),
    Object(BTreeMap<Text<'a>, usize>, Text<'a>),
}

impl<'a> Json<'a> {
    /// `None` where `text` is not one JSON value.
    pub(crate) fn read(text: &'a str) -> Option<Self> {
        let mut reader = Reader { rest: text };
        let mut nodes = Vec::new();
        let mut open = Vec::new();
        loop {
            // A value begins here.
            reader.skip_white_space();
            let mut node = if reader.take(b'[') {
                if !reader.take_token(b']') {
                    open.push(Open::Array(Vec::new()));
                    continue;
                }
                Node::Array(Vec::new())
            } else if reader.take(b'{') {
                if !reader.take_token(b'}') {
                    open.push(Open::Object(BTreeMap::new(), reader.key()?));
                    continue;
                }
                Node::Object(BTreeMap::new())
            } else {
                reader.scalar()?
            };
            // A value has ended here, and with it perhaps some that it lies in.
            loop {
                let index = nodes.len();
                nodes.push(node);
                node = match open.pop() {
                    None => {
                        reader.skip_white_space();
                        return reader.rest.is_empty().then_some(Self { nodes });
                    }
                    Some(Open::Array(mut items)) => {
                        items.push(index);
                        if reader.take_token(b',') {
                            open.push(Open::Array(items));
                            break;
                        }
                        reader.take_token(b']').then_some(Node::Array(items))?
                    }
                    Some(Open::Object(mut members, key)) => {
                        members.insert(key, index);
                        if reader.take_token(b',') {
                            open.push(Open::Object(members, reader.key()?));
                            break;
                        }
                        reader.take_token(b'}').then_some(Node::Object(members))?
                    }
                };
            }
        }
    }

    /// The canonical text, as [`canonical_arguments`](super::canonical_arguments) describes it.
    pub(super) fn canonical(&self) -> String {
        enum Frame<'j, 'a> {
            Array(slice::Iter<'j, usize>),
            Object(btree_map::Iter<'j, Text<'a>, usize>),
        }

        let mut out = Vec::new();
        let mut frames = Vec::new();
        let mut next = self.nodes.last();
        while let Some(node) = next {
            match node {
                Node::Word(word) => out.extend_from_slice(word.as_bytes()),
                Node::Number(number) => out.extend_from_slice(number.as_bytes()),
                Node::Text(text) => text.write(&mut out),
                Node::Array(items) => {
                    out.push(b'[');
                    frames.push(Frame::Array(items.iter()));
                }
                Node::Object(members) => {
                    out.push(b'{');
                    frames.push(Frame::Object(members.iter()));
                }
            }
            next = loop {
                let (index, key, end) = match frames.last_mut() {
                    None => break None,
                    Some(Frame::Array(items)) => (items.next(), None, b']'),
                    Some(Frame::Object(members)) => match members.next() {
                        Some((key, index)) => (Some(index), Some(key), b'}'),
                        None => (None, None, b'}'),
                    },
                };
                let Some(&index) = index else {
                    out.push(end);
                    frames.pop();
                    continue;
                };
                // Only right after its start has an array or object no item before this one: a text ends in a quote.
                if !matches!(out.last(), Some(b'[' | b'{')) {
                    out.push(b',');
                }
                if let Some(key) = key {
                    key.write(&mut out);
                    out.push(b':');
                }
                break self.nodes.get(index);
            };
        }
        String::from_utf8(out).expect("words and numbers are ASCII, and a text writes UTF-8")
    }

    /// Whether the value that `pointer` (RFC 6901) leads to is there and means the same as `value`: numbers by their
    /// value, however they are spelt, and objects whatever the order of their members.
    pub(crate) fn holds(&self, pointer: &str, value: &Value) -> bool {
        let mut node = self.nodes.last();
        for token in pointer.split('/').skip(1) {
            let token = token.replace("~1", "/").replace("~0", "~");
            let index = match node {
                Some(Node::Array(items)) => array_index(&token).and_then(|index| items.get(index)),
                Some(Node::Object(members)) => members.get(&Text::from(token.as_str())),
                _ => None,
            };
            node = index.and_then(|&index| self.nodes.get(index));
        }
        node.is_some_and(|node| self.means(node, value))
    }

    /// Goes no deeper than `value` does.
    fn means(&self, node: &Node<'_>, value: &Value) -> bool {
        let item_means =
            |&index: &usize, value: &Value| self.nodes.get(index).is_some_and(|node| self.means(node, value));
        match (node, value) {
            (Node::Word(word), Value::Null) => *word == "null",
            (Node::Word(word), Value::Bool(flag)) => *word == if *flag { "true" } else { "false" },
            (Node::Number(token), Value::Number(number)) => number::equal(token, number),
            (Node::Text(text), Value::String(string)) => *text == Text::from(string.as_str()),
            (Node::Array(items), Value::Array(values)) => {
                items.len() == values.len() && items.iter().zip(values).all(|(index, value)| item_means(index, value))
            }
            (Node::Object(members), Value::Object(values)) => {
                members.len() == values.len()
                    && values.iter().all(|(key, value)| {
                        let member = members.get(&Text::from(key.as_str()));
                        member.is_some_and(|index| item_means(index, value))
                    })
            }
            _ => false,
        }
    }
}

/// The place in an array that a pointer's token names: digits alone, and no zero before them.
fn array_index(token: &str) -> Option<usize> {
    let canonical = token == "0" || !token.starts_with(['0', '+']);
    canonical.then(|| token.parse().ok()).flatten()
}

struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn skip_white_space(&mut self) {
        self.rest = self.rest.trim_start_matches(WHITE_SPACE);
    }

    /// Whether the rest starts with `byte`, which is ASCII and is then passed.
    fn take(&mut self, byte: u8) -> bool {
        match self.rest.strip_prefix(char::from(byte)) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn take_token(&mut self, byte: u8) -> bool {
        self.skip_white_space();
        self.take(byte)
    }

    fn key(&mut self) -> Option<Text<'a>> {
        self.take_token(b'"').then_some(())?;
        let key = self.text()?;
        self.take_token(b':').then_some(key)
    }

    fn scalar(&mut self) -> Option<Node<'a>> {
        if self.take(b'"') {
            return self.text().map(Node::Text);
        }
        for word in WORDS {
            if let Some(rest) = self.rest.strip_prefix(word) {
                self.rest = rest;
                return Some(Node::Word(word));
            }
        }
        self.number().map(|token| Node::Number(number::canonical(token)))
    }

    /// What follows an opening quote.
    fn text(&mut self) -> Option<Text<'a>> {
        let (text, rest) = Text::read(self.rest)?;
        self.rest = rest;
        Some(text)
    }

    fn number(&mut self) -> Option<&'a str> {
        let start = self.rest;
        self.take(b'-');
        if !self.take(b'0') {
            self.digits()?;
        }
        if self.take(b'.') {
            self.digits()?;
        }
        if self.take(b'e') || self.take(b'E') {
            let _signed = self.take(b'+') || self.take(b'-');
            self.digits()?;
        }
        start.get(..start.len() - self.rest.len())
    }

    /// Passes digits, of which there must be one.
    fn digits(&mut self) -> Option<()> {
        let rest = self.rest.trim_start_matches(|c: char| c.is_ascii_digit());
        let some = rest.len() < self.rest.len();
        self.rest = rest;
        some.then_some(())
    }
}
