//! OpenAI Chat Completions: lists of messages, as a request to `/v1/chat/completions` has them, and files that hold such
//! lists.
//!
//! Read are a list of messages, an object that has one under `messages` or another key, a list of either, any of these
//! on each line, and logged exchanges (a request and its `response`). `docs/formats.md` says what becomes of each field.

mod conversation;
mod exchange;
mod message;
mod part;
mod request;
mod run;
#[cfg(test)]
mod tests;

use std::io::BufRead;

use retrace_events::Recording;

use crate::error::ImportError;
use crate::finding::{Finding, FindingKind, Imported};
use crate::options::ImportOptions;
use crate::place::Place;
use crate::run_ids::run_ids;
use crate::source::each_value;

use self::exchange::fold_exchanges;
use self::run::{Run, Runs};

/// Imports every run of a source.
///
/// A source of one value a line is read line by line. A last line that was cut off is left out and reported; any other
/// flaw is an error, since a run read in part would be measured as if it were whole.
///
/// # Errors
/// When the source is no JSON, when something in it is not of this format, and when it holds no run.
///
/// ```
/// use retrace_events::OutcomeSource::Unknown;
/// use retrace_formats::{ImportOptions, openai_chat};
///
/// let runs = r#"[
///     {"task_id": 2, "trial": 0, "traj": [{"role": "user", "content": "Hi."}]},
///     {"task_id": 2, "trial": 1, "traj": [{"role": "user", "content": "Hello."}]}
/// ]"#;
/// let imported = openai_chat::import(&mut runs.as_bytes(), &ImportOptions::new("airline"))?;
/// assert_eq!(imported.recordings[1].header.id, "airline-task2-trial1");
/// # Ok::<(), retrace_formats::ImportError>(())
/// ```
pub fn import(source: &mut dyn BufRead, options: &ImportOptions) -> Result<Imported, ImportError> {
    let mut runs = Runs::new(options.messages_key.as_deref());
    let torn_line = each_value(source, |value, place| runs.read(value, place))?;
    let Runs { runs, left_out, .. } = runs;
    let (runs, continued) = fold_exchanges(runs);
    if runs.is_empty() {
        return Err(ImportError::NoRuns { first: left_out.first().map(Finding::to_string) });
    }

    let mut findings = [left_out, continued].concat();
    let labels: Vec<_> = runs.iter().map(|run| run.label.clone()).collect();
    let recordings = runs.into_iter().zip(run_ids(&options.id_stem, &labels)).map(|(mut run, id)| {
        findings.append(&mut run.findings);
        let Run { mut header, events, .. } = run;
        header.id = id;
        Recording::new(header, events)
    });
    let recordings = recordings.collect();
    findings.extend(torn_line.map(|line| Finding::new(Place::at_line(line), FindingKind::TornLine)));
    Ok(Imported { recordings, findings })
}
