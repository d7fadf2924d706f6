//! The recording format, version 1: JSON Lines, a header and then one event a line.
//!
//! Fields that retrace does not know are kept and written back. A last line that was cut off in writing is left out
//! and reported; every other flaw is an error that names file, line and field.

mod decode;
mod encode;
mod fields;
mod lines;

#[cfg(test)]
mod any_recording;
#[cfg(test)]
mod tests;

use std::io::{self, BufRead, Write};
use std::sync::Arc;

use serde::de::DeserializeSeed;

use self::decode::{EventFields, HeaderFields};
use self::fields::{Fields, Object, Trail};
pub use self::lines::Lines;
use crate::event::Event;
use crate::quote::Quotable;
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
    file: String,
    header: Header,
    torn_line: Option<usize>,
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
    #[error("not UTF-8 from byte {0} of the line on")]
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
        match &self.reason {
            ReadReason::Field { field, .. } if self.line == Some(1) && field == "version" => {
                Some("read it with a newer retrace, which knows that version")
            }
            ReadReason::NoHeader { .. } => Some(
                "a recording starts with a line such as {\"type\":\"recording\",\"version\":1,\"id\":\"run-1\"}; \
                 turn a transcript of another format into one with `retrace import`",
            ),
            ReadReason::Empty => Some("leave the file out, or record the run again"),
            ReadReason::NotUtf8(_) | ReadReason::Field { .. } => {
                Some("fix the line or remove it; docs/formats.md has the fields of every event")
            }
            ReadReason::Io(_) => None,
        }
    }
}

impl ReadReason {
    /// What is wrong at, or in reading beyond, the line of this number.
    fn at(self, number: usize, file: String) -> ReadError {
        let line = match self {
            Self::Empty => None,
            Self::Io(_) => Some(number + 1),
            _ => Some(number),
        };
        ReadError { file, line, reason: self }
    }
}

impl<R: BufRead> RecordingReader<R> {
    /// Reads the header. `file` is what errors call the source.
    ///
    /// # Errors
    /// When the source cannot be read or does not start with a header of a version this crate knows.
    pub fn new(source: R, file: impl Into<String>) -> Result<Self, ReadError> {
        let (mut lines, file) = (Lines::new(source), file.into());
        match read_header(&mut lines) {
            Ok(header) => Ok(Self { lines, file, header, torn_line: None, failed: false }),
            Err(reason) => Err(reason.at(lines.number(), file)),
        }
    }

    /// The header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The number of the last line, if it turned out to be cut off; known once all events have been read.
    pub fn torn_line(&self) -> Option<usize> {
        self.torn_line
    }

    /// The next event, or none at the end.
    fn next_event(&mut self) -> Result<Option<Event>, ReadReason> {
        if !self.lines.advance()? {
            return Ok(None);
        }
        match parse::<EventFields>(&self.lines) {
            Ok(event) => Ok(Some(event)),
            Err(_) if self.lines.is_torn() => {
                self.torn_line = Some(self.lines.number());
                Ok(None)
            }
            Err(reason) => Err(reason),
        }
    }
}

impl<R: BufRead> Iterator for RecordingReader<R> {
    type Item = Result<Event, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed || self.torn_line.is_some() {
            return None;
        }
        let next = self.next_event().map_err(|reason| reason.at(self.lines.number(), self.file.clone()));
        self.failed = next.is_err();
        next.transpose()
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

fn read_header(lines: &mut Lines<impl BufRead>) -> Result<Header, ReadReason> {
    if !lines.advance()? {
        return Err(ReadReason::Empty);
    }
    parse::<HeaderFields>(lines).map_err(|reason| match reason {
        _ if lines.is_torn() => ReadReason::NoHeader { message: "the first line is cut off".to_owned() },
        ReadReason::Field { field, message } if field == "." || field == "type" => ReadReason::NoHeader { message },
        reason => reason,
    })
}

/// Reads the object of a line.
fn parse<F: Fields<Context = ()>>(lines: &Lines<impl BufRead>) -> Result<F::Output, ReadReason> {
    let line = lines.text().map_err(|flaw| ReadReason::NotUtf8(flaw.valid_up_to() + 1))?;
    let trail = Trail::default();
    let mut json = serde_json::Deserializer::from_str(line.trim_ascii_end());
    let object = Object::<F>::typed((), &trail).deserialize(&mut json);
    object.and_then(|object| json.end().map(|()| object)).map_err(|error| {
        let message = error.to_string();
        // A wrong value is told by its path; where in the line the text itself breaks, only the column can say.
        let message = match message.rsplit_once(" at line 1 column ") {
            Some((what, _)) if error.is_data() => what.to_owned(),
            Some((what, column)) => format!("{what} at column {column}"),
            None => message,
        };
        let path = trail.into_path();
        let field = if path.is_empty() { ".".to_owned() } else { Quotable(&path).to_string() };
        ReadReason::Field { field, message: Quotable(&message).to_string() }
    })
}
