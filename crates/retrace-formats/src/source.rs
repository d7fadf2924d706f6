//! The JSON values of a source: one on each line, or one over all of it.

use std::io::BufRead;

use retrace_events::codec::Lines;
use serde_json::value::RawValue;

use crate::error::ImportError;
use crate::json::without_position;
use crate::place::Place;

/// Hands each JSON value of a source to `read`. A source whose first line is a whole value is read line by line; any
/// other is read as a whole, as one value or several after one another.
///
/// Returns the line at which a value starts that was cut off at the end of the source, if values came before it.
///
/// # Errors
/// Those of `read`, and when the source cannot be read, is empty, or is no JSON.
pub(crate) fn each_value(
    source: &mut dyn BufRead,
    mut read: impl FnMut(&RawValue, Place) -> Result<(), ImportError>,
) -> Result<Option<usize>, ImportError> {
    let mut lines = Lines::new(source);
    if !lines.advance()? {
        return Err(ImportError::Empty);
    }
    let is_all = lines.is_last()?;
    let first = lines.text().ok().and_then(|text| serde_json::from_str::<&RawValue>(text).ok());
    let Some(first) = first else { return each_of_text(lines, read) };
    read(first, if is_all { Place::default() } else { Place::at_line(lines.number()) })?;
    while lines.advance()? {
        let line = lines.number();
        let text = lines.text().map_err(|flaw| ImportError::NotUtf8 { line, byte: flaw.valid_up_to() + 1 })?;
        match serde_json::from_str(text.trim_ascii_end()) {
            Ok(value) => read(value, Place::at_line(line))?,
            Err(_) if lines.is_torn() => return Ok(Some(line)),
            Err(error) => return Err(syntax(&error, line)),
        }
    }
    Ok(None)
}

/// The values of a source that does not have one on each line.
fn each_of_text(
    lines: Lines<&mut dyn BufRead>,
    mut read: impl FnMut(&RawValue, Place) -> Result<(), ImportError>,
) -> Result<Option<usize>, ImportError> {
    let first_line = lines.number();
    let bytes = lines.rest()?;
    let text = str::from_utf8(&bytes).map_err(|error| {
        let (line, start) = line_of(&bytes[..error.valid_up_to()]);
        ImportError::NotUtf8 { line: first_line + line, byte: error.valid_up_to() - start + 1 }
    })?;
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
    let (mut place, mut line, mut start) = (Place::default(), first_line, 0);
    while let Some(value) = values.next() {
        match value {
            Ok(value) => read(value, place)?,
            Err(error) if error.is_eof() && start > 0 => return Ok(Some(line)),
            Err(error) => return Err(syntax(&error, first_line + error.line() - 1)),
        }
        let end = values.byte_offset();
        let next = end + (text.len() - end - text[end..].trim_start().len());
        line += line_of(&bytes[start..next]).0;
        (place, start) = (Place::at_line(line), next);
    }
    Ok(None)
}

fn syntax(error: &serde_json::Error, line: usize) -> ImportError {
    ImportError::Syntax { line, column: error.column(), message: without_position(error) }
}

/// How many lines end in these bytes, and where the one after them starts.
fn line_of(bytes: &[u8]) -> (usize, usize) {
    let start = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    (bytes.iter().filter(|&&byte| byte == b'\n').count(), start)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Values = Vec<(Option<usize>, String)>;

    /// The values of a source with their lines, and the line of a cut-off one.
    fn values(source: &[u8]) -> Result<(Values, Option<usize>), ImportError> {
        let mut values = Vec::new();
        let torn = each_value(&mut &*source, |value, place| {
            values.push((place.line, value.get().to_owned()));
            Ok(())
        })?;
        Ok((values, torn))
    }

    #[track_caller]
    fn check(source: &str, expected: &[(Option<usize>, &str)], torn: Option<usize>) {
        let expected = expected.iter().map(|&(line, text)| (line, text.to_owned())).collect();
        assert_eq!(values(source.as_bytes()).unwrap(), (expected, torn), "{source:?}");
    }

    #[track_caller]
    fn check_error(source: &[u8], expected: &str) {
        assert_eq!(values(source).unwrap_err().to_string(), expected);
    }

    #[test]
    fn a_value_a_line() {
        check("[1]\n\n{}\n", &[(Some(1), "[1]"), (Some(3), "{}")], None);
        check("\u{feff}\r\n [1] \r\n[2]", &[(Some(2), "[1]"), (Some(3), "[2]")], None);
    }

    #[test]
    fn one_value_alone() {
        check("[1]\n", &[(None, "[1]")], None);
        check("[1]", &[(None, "[1]")], None);
        check("\n[\n1\n]\n", &[(None, "[\n1\n]")], None);
    }

    #[test]
    fn values_after_one_another() {
        check("\n[\n1]\n{\n} [2]", &[(None, "[\n1]"), (Some(4), "{\n}"), (Some(5), "[2]")], None);
    }

    #[test]
    fn a_cut_off_value_at_the_end_is_left_out() {
        check("[1]\n[2", &[(Some(1), "[1]")], Some(2));
        check("[\n1]\n[\n2", &[(None, "[\n1]")], Some(3));
        check("[1]\n{\"a\":1.", &[(Some(1), "[1]")], Some(2));
        let (read, torn) = values(b"[1]\n[\"\xc3").unwrap();
        assert_eq!((read.len(), torn), (1, Some(2)));
    }

    #[test]
    fn anything_else_that_is_no_json_is_an_error_with_its_line() {
        check_error(b"", "no transcript: the file is empty");
        check_error(b" \n\n", "no transcript: the file is empty");
        check_error(b"[\"\xc3", "line 1, column 5: no JSON: EOF while parsing a string");
        check_error(b"[1]\n[2\n[3]\n", "line 2, column 2: no JSON: EOF while parsing a list");
        check_error(b"[1]\n[2}", "line 2, column 3: no JSON: expected `,` or `]`");
        check_error(b"\n[1", "line 2, column 2: no JSON: EOF while parsing a list");
        check_error(b"\n[\n1 2]", "line 3, column 3: no JSON: expected `,` or `]`");
        check_error(b"[1]\n[\"a\xff\"]\n", "line 2: not UTF-8 from byte 4 of the line on");
        check_error(b"\n[\n\"a\xff\"]\n", "line 3: not UTF-8 from byte 3 of the line on");
    }
}
