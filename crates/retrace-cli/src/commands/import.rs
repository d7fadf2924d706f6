//! `retrace import`: transcripts of other programs become recordings.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use retrace_events::codec::{RecordingReader, write_recording};
use retrace_events::{Recording, actions_from_events};
use retrace_formats::{ImportOptions, Imported, openai_chat};
use retrace_report::{counted, printable};

use crate::args::ImportArgs;
use crate::exit::Exit;
use crate::failure::hinted;
use crate::files::{self, There};
use crate::output::{print, warn};

/// A recording as it will be written.
struct Output {
    file: PathBuf,
    bytes: Vec<u8>,
    n_actions: usize,
    there: There,
}

pub(crate) fn run(args: &ImportArgs) -> Result<Exit> {
    // Everything is read and compared before anything is written, so that a failure leaves no half of an import.
    let mut outputs = Vec::new();
    for file in &args.files {
        let Imported { recordings, findings } = import(file, args)?;
        for finding in findings {
            warn(&format!("{}: {finding}", file.display()));
        }
        for recording in recordings {
            outputs.push(Output::new(&recording, &args.output)?);
        }
    }
    check(&outputs, args.force)?;
    fs::create_dir_all(&args.output).with_context(|| format!("failed to create `{}`", args.output.display()))?;
    let (as_before, new): (Vec<_>, Vec<_>) = outputs.iter().partition(|output| output.there == There::TheSame);
    for output in &new {
        files::write(&output.file, &output.bytes)?;
    }
    if outputs.iter().all(|output| output.n_actions == 0) {
        warn("no tool was called in any of it, so there is nothing to verify: is it what you meant to import?");
    }
    let written = counted(new.len(), "recording", "recordings");
    let actions = counted(new.iter().map(|output| output.n_actions).sum(), "action", "actions");
    let as_before = match as_before.len() {
        0 => String::new(),
        n => format!("; {} there already", counted(n, "recording was", "recordings were")),
    };
    print(&format!("{written} with {actions} written to {}{as_before}", printable(&args.output.to_string_lossy())))?;
    Ok(Exit::Ok)
}

impl Output {
    fn new(recording: &Recording, folder: &Path) -> Result<Self> {
        let mut bytes = Vec::new();
        write_recording(&mut bytes, recording)?;
        let file = folder.join(format!("{}.jsonl", files::name_for(&recording.header.id)));
        let n_actions = actions_from_events(recording.events.iter().map(|event| &**event)).len();
        Ok(Self { there: files::there(&file, &bytes)?, file, bytes, n_actions })
    }
}

/// Whether all of it can be written without losing anything.
fn check(outputs: &[Output], force: bool) -> Result<()> {
    let mut names = BTreeSet::new();
    for Output { file, there, .. } in outputs {
        let name = file.display();
        if !names.insert(file) {
            return Err(hinted(
                format!("two recordings would both be written to `{name}`"),
                "import the files into folders of their own",
            ));
        }
        if *there == There::SomethingElse && !force {
            return Err(hinted(
                format!("`{name}` is there already and holds something else"),
                "move it away, or replace it with `--force`",
            ));
        }
    }
    Ok(())
}

fn import(file: &Path, args: &ImportArgs) -> Result<Imported> {
    let stem = file.file_stem().map_or_else(|| "recording".into(), |stem| stem.to_string_lossy());
    let mut options = ImportOptions::new(stem);
    options.messages_key.clone_from(&args.messages_key);
    let open = || File::open(file).map(BufReader::new).with_context(|| format!("failed to open `{}`", file.display()));
    openai_chat::import(&mut open()?, &options).or_else(|error| {
        if RecordingReader::new(open()?, "").is_ok() {
            return Err(hinted(format!("`{}` is a recording already", file.display()), "use it as it is"));
        }
        Err(error).with_context(|| format!("failed to import `{}`", file.display()))
    })
}
