//! The recording format, version 1: JSON Lines, a header and then one event a line.
//!
//! Fields that retrace does not know are kept and written back. A last line that was cut off in writing is left out
//! and reported; every other flaw is an error that names file, line and field.

mod decode;
mod encode;
mod fields;

use std::io::{self, BufRead, Write};
use std::sync::Arc;

use serde::Deserialize;

use crate::event::Event;
use crate::recording::{Header, Recording};

/// Reads a recording event by event.
///
/// ```
/// use retrace_events::codec::RecordingReader;
///
/// let lines = "{\"type\":\"recording\",\"version\":1,\"id\":\"shop-1\"}\n{\"type\":\"request\",\"content\":\"go\"}\n{\"type\":\"resp";
/// let mut reader = RecordingReader::new(lines.as_bytes(), "shop-1.jsonl")?;
/// assert_eq!(reader.header().id, "shop-1");
/// assert_eq!(reader.by_ref().count(), 1);
/// assert_eq!(reader.torn_line(), Some(3));
/// # Ok::<(), retrace_events::codec::ReadError>(())
/// ```
pub struct RecordingReader<R> {
    lines: Lines<R>,
    header: Header,
    failed: bool,
}

/// A recording and what was noticed when it was read.
#[derive(Clone, Debug)]
pub struct Read {
    /// The recording.
    pub recording: Recording,
    /// The number of the last line, if it was cut off and left out.
    pub torn_line: Option<usize>,
}

/// Why a recording could not be read.
#[derive(Debug, thiserror::Error)]
#[error("{file}{}: {reason}", .line.map(|line| format!(":{line}")).unwrap_or_default())]
pub struct ReadError {
    /// The file, as the caller named it.
    pub file: String,
    /// The line, counted from 1.
    pub line: Option<usize>,
    /// What is wrong there.
    pub reason: ReadReason,
}

/// What is wrong with a line of a recording.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadReason {
    /// The file could not be read.
    #[error("failed to read: {0}")]
    Io(#[from] io::Error),
    /// The file holds nothing.
    #[error("no recording: the file is empty")]
    Empty,
    /// The line is not UTF-8.
    #[error("no UTF-8 text from byte {0} of the line")]
    NotUtf8(usize),
    /// The first line is no header.
    #[error("no recording header: {message}")]
    NoHeader {
        /// Why the line is none.
        message: String,
    },
    /// A field of the line is wrong.
    #[error("{}{message}", if field == "." { String::new() } else { format!("field `{field}`: ") })]
    Field {
        /// The path to it, such as `content[0].text`, or `.` for the line itself.
        field: String,
        /// What is wrong with it.
        message: String,
    },
}

impl ReadError {
    /// What to do next.
    pub fn hint(&self) -> Option<&'static str> {
        match self.reason {
            ReadReason::NoHeader { .. } => Some(
                "a recording starts with a line such as {\"type\":\"recording\",\"version\":1,\"id\":\"run-1\"}; \
                 turn a transcript of another format into one with `retrace import`",
            ),
            ReadReason::Empty => Some("leave the file out, or record the run again"),
            ReadReason::NotUtf8(_) | ReadReason::Field { .. } => {
                Some("mend the line or remove it; docs/formats.md has the fields of every event")
            }
            ReadReason::Io(_) => None,
        }
    }
}

impl<R: BufRead> RecordingReader<R> {
    /// Reads the header. `file` is what errors call the source.
    ///
    /// # Errors
    /// When the source cannot be read or does not start with a header of a version this crate knows.
    pub fn new(source: R, file: impl Into<String>) -> Result<Self, ReadError> {
        let mut lines = Lines { source, file: file.into(), number: 0, line: Vec::new(), torn: None };
        let header = match lines.next_line()? {
            None => return Err(lines.error(None, ReadReason::Empty)),
            Some(text) => parse::<Header>(text).map_err(|reason| match reason {
                ReadReason::Field { field, message } if field == "." => ReadReason::NoHeader { message },
                reason => reason,
            }),
        };
        let header = header.map_err(|reason| lines.error(Some(lines.number), reason))?;
        Ok(Self { lines, header, failed: false })
    }

    /// The header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The number of the last line, if it turned out to be cut off; known once all events have been read.
    pub fn torn_line(&self) -> Option<usize> {
        self.lines.torn
    }

    /// The next event, or none at the end.
    fn next_event(&mut self) -> Result<Option<Event>, ReadError> {
        let Some(text) = self.lines.next_line()? else { return Ok(None) };
        match parse(text) {
            Ok(event) => Ok(Some(event)),
            // Whatever stops in the middle of a last line that has no line break was cut off there.
            Err(_) if !self.lines.line.ends_with(b"\n") => {
                self.lines.torn = Some(self.lines.number);
                Ok(None)
            }
            Err(reason) => Err(self.lines.error(Some(self.lines.number), reason)),
        }
    }
}

impl<R: BufRead> Iterator for RecordingReader<R> {
    type Item = Result<Event, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed || self.lines.torn.is_some() {
            return None;
        }
        let next = self.next_event().transpose();
        self.failed = matches!(next, Some(Err(_)));
        next
    }
}

/// Reads a whole recording. `file` is what errors call the source.
///
/// # Errors
/// At the first flaw that is not a cut-off last line.
pub fn read_recording(source: impl BufRead, file: impl Into<String>) -> Result<Read, ReadError> {
    let mut reader = RecordingReader::new(source, file)?;
    let events = reader.by_ref().map(|event| event.map(Arc::new)).collect::<Result<Vec<_>, _>>()?;
    let torn_line = reader.torn_line();
    Ok(Read { recording: Recording { header: reader.header, events: events.into() }, torn_line })
}

/// Writes a recording event by event, each line in one write.
pub struct RecordingWriter<W> {
    sink: W,
    line: Vec<u8>,
}

impl<W: Write> RecordingWriter<W> {
    /// Writes the header.
    ///
    /// # Errors
    /// When the sink does.
    pub fn new(sink: W, header: &Header) -> io::Result<Self> {
        let mut writer = Self { sink, line: Vec::new() };
        writer.write_line(header)?;
        Ok(writer)
    }

    /// Appends an event.
    ///
    /// # Errors
    /// When the sink does.
    pub fn write(&mut self, event: &Event) -> io::Result<()> {
        self.write_line(event)
    }

    /// The sink, flushed.
    ///
    /// # Errors
    /// When the sink does.
    pub fn finish(mut self) -> io::Result<W> {
        self.sink.flush()?;
        Ok(self.sink)
    }

    fn write_line(&mut self, value: &impl serde::Serialize) -> io::Result<()> {
        self.line.clear();
        serde_json::to_writer(&mut self.line, value)?;
        self.line.push(b'\n');
        self.sink.write_all(&self.line)
    }
}

/// Writes a whole recording.
///
/// # Errors
/// When the sink does.
pub fn write_recording(sink: impl Write, recording: &Recording) -> io::Result<()> {
    let mut writer = RecordingWriter::new(sink, &recording.header)?;
    for event in recording.events.iter() {
        writer.write(event)?;
    }
    writer.finish().map(drop)
}

/// The lines of a source that hold something, counted.
struct Lines<R> {
    source: R,
    file: String,
    number: usize,
    line: Vec<u8>,
    torn: Option<usize>,
}

impl<R: BufRead> Lines<R> {
    /// The next line that is not blank.
    fn next_line(&mut self) -> Result<Option<&str>, ReadError> {
        loop {
            self.line.clear();
            let read = self.source.read_until(b'\n', &mut self.line);
            if read.map_err(|error| self.error(Some(self.number + 1), error.into()))? == 0 {
                return Ok(None);
            }
            self.number += 1;
            if self.number == 1 && self.line.starts_with(BYTE_ORDER_MARK) {
                self.line.drain(..BYTE_ORDER_MARK.len());
            }
            if !self.line.trim_ascii().is_empty() {
                break;
            }
        }
        let valid_up_to = match str::from_utf8(&self.line) {
            Ok(_) => None,
            // The end of a line that was cut off may stand in the middle of a character.
            Err(error) if !self.line.ends_with(b"\n") && error.error_len().is_none() => {
                self.line.truncate(error.valid_up_to());
                None
            }
            Err(error) => Some(error.valid_up_to()),
        };
        if let Some(at) = valid_up_to {
            return Err(self.error(Some(self.number), ReadReason::NotUtf8(at + 1)));
        }
        Ok(Some(str::from_utf8(&self.line).expect("the line was just checked")))
    }

    fn error(&self, line: Option<usize>, reason: ReadReason) -> ReadError {
        ReadError { file: self.file.clone(), line, reason }
    }
}

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Reads one line, and only when it is wrong once more, to find the field that is.
fn parse<'a, T: Deserialize<'a>>(line: &'a str) -> Result<T, ReadReason> {
    serde_json::from_str(line).map_err(|first| {
        let mut json = serde_json::Deserializer::from_str(line);
        match serde_path_to_error::deserialize::<_, T>(&mut json) {
            Err(error) => ReadReason::Field {
                field: error.path().to_string(),
                message: without_position(&error.inner().to_string()),
            },
            // The object itself is sound, so what follows it is not.
            Ok(_) => ReadReason::Field { field: ".".to_owned(), message: without_position(&first.to_string()) },
        }
    })
}

/// An error of `serde_json` with its `at line 1 column N` made into `at column N`, since the line is known.
fn without_position(message: &str) -> String {
    message.replace(" at line 1 column ", " at column ")
}
