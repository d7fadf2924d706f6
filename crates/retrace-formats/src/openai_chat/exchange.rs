//! Logged exchanges: an agent's every request repeats the conversation so far, and only the last has all of it.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use retrace_events::{Event, MediaSource, Part, PartBody, ToolResult};

use super::run::Run;
use crate::finding::{Finding, FindingKind};

/// Leaves out the exchanges whose conversation goes on in a later one, and says which.
///
/// What they have in common is taken from the earlier: there the answer stands as the model gave it, with its tokens.
/// Runs that are no exchanges are left alone, since two of them may be equal up to the end of one. So are exchanges that
/// are equal to the end: the same may have been asked twice.
pub(super) fn fold_exchanges(runs: Vec<Run>) -> (Vec<Run>, Vec<Finding>) {
    let mut findings = Vec::new();
    let mut kept: Vec<Option<Run>> = Vec::with_capacity(runs.len());
    // The kept exchanges by the hash of their whole conversation.
    let mut by_hash: HashMap<u64, Vec<usize>> = HashMap::new();
    for mut run in runs {
        if run.is_exchange {
            let mut hashes = prefix_hashes(&run);
            let own = hashes.pop();
            let hits: Vec<_> = hashes.iter().filter_map(|hash| by_hash.remove(hash)).flatten().collect();
            for index in hits {
                let Some(earlier) = kept[index].take_if(|earlier| goes_on(earlier, &run)) else { continue };
                findings.push(Finding::new(earlier.place, FindingKind::Continued { by: run.place.clone() }));
                run.events.splice(..earlier.events.len(), earlier.events);
            }
            if let Some(own) = own {
                by_hash.entry(own).or_default().push(kept.len());
            }
        }
        kept.push(Some(run));
    }
    (kept.into_iter().flatten().collect(), findings)
}

/// Whether two events say the same to a model: thinking, marks and telemetry do not count, since they are often not sent
/// back.
pub(super) fn same_event(a: &Event, b: &Event) -> bool {
    match (a, b) {
        (Event::ToolResults(a), Event::ToolResults(b)) => {
            let mut pairs = a.results.iter().zip(&b.results);
            let same = |(a, b): (&ToolResult, &ToolResult)| {
                a.call_id == b.call_id && a.name == b.name && said(&a.content).eq(said(&b.content))
            };
            a.results.len() == b.results.len() && pairs.all(same)
        }
        _ => a.kind() == b.kind() && said(a.content()).eq(said(b.content())),
    }
}

fn goes_on(earlier: &Run, later: &Run) -> bool {
    earlier.header.instructions == later.header.instructions
        && earlier.events.iter().zip(&later.events).all(|(a, b)| same_event(a, b))
}

fn said(content: &[Part]) -> impl Iterator<Item = &PartBody> {
    content.iter().map(|part| &part.body).filter(|body| !matches!(body, PartBody::Thinking(_)))
}

/// The hash of what is said up to each event.
fn prefix_hashes(run: &Run) -> Vec<u64> {
    let mut hasher = DefaultHasher::new();
    run.header.instructions.hash(&mut hasher);
    let hashes = run.events.iter().map(|event| {
        event.kind().hash(&mut hasher);
        said(event.content()).for_each(|body| hash_body(body, &mut hasher));
        if let Event::ToolResults(round) = event {
            for result in &round.results {
                (&result.call_id, &result.name).hash(&mut hasher);
                said(&result.content).for_each(|body| hash_body(body, &mut hasher));
            }
        }
        hasher.finish()
    });
    hashes.collect()
}

fn hash_body(body: &PartBody, hasher: &mut DefaultHasher) {
    match body {
        PartBody::Text(text) | PartBody::System(text) => text.hash(hasher),
        PartBody::ToolCall(call) => (&call.id, &call.name, &call.arguments).hash(hasher),
        PartBody::Media(media) => match &media.source {
            MediaSource::Data(text) | MediaSource::Url(text) => text.hash(hasher),
        },
        PartBody::Thinking(_) => {}
    }
}
