//! `retrace import`: transcripts of other programs become recordings.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::BufReader;
use std::path::Path;

use anyhow::{Context, Result};
use retrace_events::codec::write_recording;
use retrace_formats::{ImportOptions, Imported, openai_chat};
use retrace_report::counted;

use crate::args::ImportArgs;
use crate::exit::Exit;
use crate::failure::hinted;
use crate::files::{self, Written};
use crate::output::{print, warn};

pub(crate) fn run(args: &ImportArgs) -> Result<Exit> {
    // Everything is read before anything is written, so that a file that cannot be read leaves no half of an import.
    let imported = args.files.iter().map(|file| import(file, args)).collect::<Result<Vec<_>>>()?;
    fs::create_dir_all(&args.output).with_context(|| format!("failed to create `{}`", args.output.display()))?;
    let mut names = BTreeSet::new();
    let (mut n_written, mut n_as_before, mut n_actions) = (0, 0, 0);
    for (file, Imported { recordings, findings }) in args.files.iter().zip(imported) {
        for finding in findings {
            warn(&format!("{}: {finding}", file.display()));
        }
        for recording in recordings {
            let name = files::name_for(&recording.header.id);
            if !names.insert(name.clone()) {
                return Err(hinted(
                    format!("two recordings would both be written to `{name}.jsonl`"),
                    "import the files into folders of their own",
                ));
            }
            let mut bytes = Vec::new();
            write_recording(&mut bytes, &recording)?;
            match files::write(&args.output.join(format!("{name}.jsonl")), &bytes, args.force)? {
                Written::AsBefore => n_as_before += 1,
                Written::New | Written::Replaced => {
                    n_written += 1;
                    n_actions +=
                        retrace_events::actions_from_events(recording.events.iter().map(|event| &**event)).len();
                }
            }
        }
    }
    let written = counted(n_written, "recording", "recordings");
    let actions = counted(n_actions, "action", "actions");
    let as_before = match n_as_before {
        0 => String::new(),
        n => format!("; {} there already", counted(n, "recording was", "recordings were")),
    };
    print(&format!("{written} with {actions} written to {}{as_before}", args.output.display()))?;
    Ok(Exit::Ok)
}

fn import(file: &Path, args: &ImportArgs) -> Result<Imported> {
    let stem = file.file_stem().map_or_else(|| "recording".into(), |stem| stem.to_string_lossy());
    let mut options = ImportOptions::new(stem);
    options.messages_key.clone_from(&args.messages_key);
    let source = File::open(file).with_context(|| format!("failed to open `{}`", file.display()))?;
    openai_chat::import(&mut BufReader::new(source), &options)
        .with_context(|| format!("failed to import `{}`", file.display()))
}
