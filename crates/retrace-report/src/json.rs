//! A report as JSON.

use std::cell::{Cell, RefCell};
use std::io::{self, Write};

use retrace_score::{BoundaryFacts, BoundaryReport, Report};
use serde::ser::{Error, SerializeSeq};
use serde::{Serialize, Serializer};
use serde_json::ser::{Formatter, PrettyFormatter};

use crate::printable::is_unprintable;

/// Indented JSON; of a [`Report`] all but its boundaries, which [`write_report`] adds.
///
/// Characters that could act on a terminal are written as escapes, so that it can be looked at; a reader of JSON gets
/// the text as it was.
///
/// # Panics
/// When the value has a map whose keys are no strings.
pub fn json(value: &impl Serialize) -> String {
    let mut written = Vec::new();
    write(&mut written, value).expect("keys are strings, and memory takes all that is written");
    String::from_utf8(written).expect("JSON is written as UTF-8")
}

/// Writes a whole report as [`json`] does, boundary after boundary with the actions of every rollout, without holding them.
/// Each is written in many small pieces, so that the writer is better a buffered one.
///
/// The boundaries are those that the report was made of, in their order: as [`Reporter::add`](retrace_score::Reporter::add)
/// handed them back, or scored again by [`Report::score`].
///
/// # Errors
/// What a boundary could not be had for, or the writer's own; and [`io::ErrorKind::InvalidData`] for boundaries that are not
/// those of the report. What was written before is then no whole JSON.
pub fn write_report<E: From<io::Error>>(
    writer: impl Write,
    report: &Report,
    boundaries: impl IntoIterator<Item = Result<BoundaryReport, E>>,
) -> Result<(), E> {
    let source = RefCell::new(boundaries.into_iter());
    let boundaries = Boundaries { facts: &report.boundaries, source, failure: Cell::new(None) };
    let whole = Whole { report, boundaries: &boundaries };
    write(writer, &whole).map_err(|error| boundaries.failure.take().unwrap_or_else(|| io::Error::from(error).into()))
}

fn write(writer: impl Write, value: &impl Serialize) -> serde_json::Result<()> {
    value.serialize(&mut serde_json::Serializer::with_formatter(writer, Escaping(PrettyFormatter::new())))
}

/// A report and its boundaries.
#[derive(Serialize)]
struct Whole<'a, B> {
    #[serde(flatten)]
    report: &'a Report,
    boundaries: B,
}

/// Boundaries that are taken from their source as they are written.
struct Boundaries<'a, I, E> {
    facts: &'a [BoundaryFacts],
    source: RefCell<I>,
    /// Why the source had no more of them.
    failure: Cell<Option<E>>,
}

impl<I: Iterator<Item = Result<BoundaryReport, E>>, E> Serialize for Boundaries<'_, I, E> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut written = serializer.serialize_seq(None)?;
        let mut facts = self.facts.iter();
        for boundary in &mut *self.source.borrow_mut() {
            let boundary = boundary.map_err(|failure| {
                self.failure.set(Some(failure));
                S::Error::custom("a boundary could not be had")
            })?;
            if !facts.next().is_some_and(|facts| facts.is_of(&boundary)) {
                let BoundaryReport { recording, cut, .. } = boundary;
                return Err(S::Error::custom(format!(
                    "the boundary at {cut} of `{recording}` is not the one that the report has in this place"
                )));
            }
            written.serialize_element(&boundary)?;
        }
        match facts.next() {
            Some(BoundaryFacts { recording, cut, .. }) => Err(S::Error::custom(format!(
                "the report has a boundary at {cut} of `{recording}`, which is not among those to be written"
            ))),
            None => written.end(),
        }
    }
}

/// Indents, and escapes what is unprintable.
struct Escaping<'a>(PrettyFormatter<'a>);

impl Formatter for Escaping<'_> {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        let mut rest = fragment;
        while let Some((start, character)) = rest.char_indices().find(|&(_, character)| is_unprintable(character)) {
            writer.write_all(&rest.as_bytes()[..start])?;
            for unit in character.encode_utf16(&mut [0; 2]) {
                write!(writer, "\\u{unit:04x}")?;
            }
            rest = &rest[start + character.len_utf8()..];
        }
        writer.write_all(rest.as_bytes())
    }

    fn begin_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_array(writer)
    }

    fn end_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_array(writer)
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_array_value(writer, first)
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_array_value(writer)
    }

    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_object(writer)
    }

    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_object(writer)
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_object_key(writer, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_object_value(writer)
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_object_value(writer)
    }
}
