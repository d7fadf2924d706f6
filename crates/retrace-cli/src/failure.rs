//! Errors as the user sees them: what failed, why, and what to do next.

use std::error::Error;
use std::io;

use retrace_events::codec::ReadError;
use retrace_events::cuts::BadSpacing;
use retrace_formats::ImportError;
use retrace_journal::JournalError;
use retrace_mcp::McpError;
use retrace_model::CassetteError;
use retrace_report::{NoSuchHorizon, printable};
use retrace_score::{PilotError, ReportError, ScoreInputError};
use retrace_verifier::VerifyError;

use crate::output::tell;

/// An error with a hint, for what goes wrong in the program itself.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Hinted {
    pub(crate) message: String,
    pub(crate) hint: String,
}

/// An error that says what to do next.
pub(crate) fn hinted(message: impl Into<String>, hint: impl Into<String>) -> anyhow::Error {
    Hinted { message: message.into(), hint: hint.into() }.into()
}

/// Prints an error that ends the program.
pub(crate) fn print(error: &anyhow::Error) {
    print_as("error", error);
}

/// Prints an error that the program goes on without.
pub(crate) fn warn(error: &anyhow::Error) {
    print_as("warning", error);
}

/// An error with its causes, in one line.
pub(crate) fn text(error: &anyhow::Error) -> String {
    causes(error).join(": ")
}

/// Prints an error with its causes, and then what to do next.
fn print_as(label: &str, error: &anyhow::Error) {
    for (number, text) in causes(error).iter().enumerate() {
        let label = if number == 0 { label } else { "  caused by" };
        tell(&format!("{label}: {}", text.trim_end().lines().map(printable).collect::<Vec<_>>().join("\n    ")));
    }
    for hint in error.chain().filter_map(hint) {
        tell(&format!("hint: {}", printable(&hint)));
    }
}

/// The texts of an error and its causes; one that the text before it repeats is left out.
fn causes(error: &anyhow::Error) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    for cause in error.chain().map(ToString::to_string) {
        if texts.last().is_none_or(|said| !said.contains(&cause)) {
            texts.push(cause);
        }
    }
    texts
}

/// Prints lines that may quote what the user typed.
pub(crate) fn print_lines(text: &str) {
    text.trim_end().lines().for_each(|line| tell(&printable(line)));
}

/// Whether whoever read our output has stopped reading.
pub(crate) fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
    kind == Some(io::ErrorKind::BrokenPipe)
}

fn hint(error: &(dyn Error + 'static)) -> Option<String> {
    if let Some(error) = error.downcast_ref::<Hinted>() {
        return Some(error.hint.clone());
    }
    if let Some(error) = error.downcast_ref::<ReadError>() {
        return error.hint().map(str::to_owned);
    }
    if let Some(error) = error.downcast_ref::<ImportError>() {
        return error.hint().map(str::to_owned);
    }
    if let Some(error) = error.downcast_ref::<CassetteError>() {
        return error.hint().map(str::to_owned);
    }
    if let Some(error) = error.downcast_ref::<McpError>() {
        return error.hint().map(str::to_owned);
    }
    if let Some(error) = error.downcast_ref::<VerifyError>() {
        return error.hint();
    }
    if let Some(error) = error.downcast_ref::<JournalError>() {
        return error.hint().map(str::to_owned);
    }
    if error.is::<BadSpacing>() {
        return Some("give it a number of actions".to_owned());
    }
    if let Some(error) = error.downcast_ref::<NoSuchHorizon>() {
        return error.hint().map(str::to_owned);
    }
    if let Some(error) = error.downcast_ref::<ScoreInputError>() {
        return error.hint().map(str::to_owned);
    }
    if let Some(error) = error.downcast_ref::<PilotError>() {
        return error.hint().map(str::to_owned);
    }
    if let Some(error) = error.downcast_ref::<ReportError>() {
        return error.hint().map(str::to_owned);
    }
    let hint = match error.downcast_ref::<io::Error>()?.kind() {
        io::ErrorKind::NotFound => "check the path: there is nothing there",
        io::ErrorKind::IsADirectory => "name a file, not a folder",
        io::ErrorKind::PermissionDenied => "check who may read and write there",
        _ => "check that it can be read and written",
    };
    Some(hint.to_owned())
}
