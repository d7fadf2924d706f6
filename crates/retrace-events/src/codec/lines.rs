//! The lines of a JSON Lines source, as they come.

use std::io::{self, BufRead};
use std::str::Utf8Error;

use serde::de::IgnoredAny;

/// The lines of a source that hold something, one at a time and counted. Blank ones are passed over, a byte order mark
/// is taken off.
///
/// ```
/// use retrace_events::codec::Lines;
///
/// let mut lines = Lines::new("\n[1]\n[2".as_bytes());
/// assert!(lines.advance()?);
/// assert_eq!((lines.number(), lines.text()), (2, Ok("[1]\n")));
/// assert!(lines.advance()?);
/// assert!(lines.is_torn());
/// assert!(!lines.advance()?);
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Lines<R> {
    source: R,
    number: usize,
    line: Vec<u8>,
}

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

impl<R: BufRead> Lines<R> {
    /// Stands before the first line.
    pub fn new(source: R) -> Self {
        Self { source, number: 0, line: Vec::new() }
    }

    /// Goes to the next line that is not blank; false if there is none.
    ///
    /// # Errors
    /// When the source cannot be read, in the line after [`number`](Self::number).
    pub fn advance(&mut self) -> io::Result<bool> {
        loop {
            self.line.clear();
            if self.source.read_until(b'\n', &mut self.line)? == 0 {
                return Ok(false);
            }
            self.number += 1;
            if self.number == 1 && self.line.starts_with(BYTE_ORDER_MARK) {
                self.line.drain(..BYTE_ORDER_MARK.len());
            }
            if !self.line.trim_ascii().is_empty() {
                self.complete_character();
                return Ok(true);
            }
        }
    }

    /// Puts a whole character in the place of one that the source ends in the middle of: the line is no less cut off.
    fn complete_character(&mut self) {
        if !self.line.ends_with(b"\n")
            && let Err(flaw) = str::from_utf8(&self.line)
            && flaw.error_len().is_none()
        {
            self.line.truncate(flaw.valid_up_to());
            self.line.extend("\u{fffd}".bytes());
        }
    }

    /// The number of the line, counted from 1.
    pub fn number(&self) -> usize {
        self.number
    }

    /// The line, with what ends it. For a character that the source ends in the middle of stands U+FFFD.
    ///
    /// # Errors
    /// When it is not UTF-8, with the bytes before the flaw.
    pub fn text(&self) -> Result<&str, Utf8Error> {
        str::from_utf8(&self.line)
    }

    /// Whether the line, which cannot be read, was cut off in writing: the source ends in the middle of a value.
    pub fn is_torn(&self) -> bool {
        let ends_early = |text: &str| serde_json::from_str::<IgnoredAny>(text).is_err_and(|error| error.is_eof());
        // To `serde_json` a number that ends in a sign, a point or an `e` is wrong, not cut off; one more digit helps.
        !self.line.ends_with(b"\n") && self.text().is_ok_and(|text| ends_early(text) || ends_early(&format!("{text}0")))
    }

    /// Whether nothing comes after the line.
    ///
    /// # Errors
    /// When the source cannot be read.
    pub fn is_last(&mut self) -> io::Result<bool> {
        Ok(self.source.fill_buf()?.is_empty())
    }

    /// The line and all that comes after it.
    ///
    /// # Errors
    /// When the source cannot be read.
    pub fn rest(mut self) -> io::Result<Vec<u8>> {
        self.source.read_to_end(&mut self.line)?;
        Ok(self.line)
    }
}
