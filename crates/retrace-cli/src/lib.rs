//! The `retrace` program: what a compaction strategy does to an agent's next tool calls, from the command line.
//!
//! The program reads arguments, a configuration and files, hands them to the other crates, and prints what they say.

mod args;
mod commands;
mod config;
mod exit;
mod failure;
mod files;
mod output;
mod progress;
mod runtime;
mod setup;
mod simulated;

use std::process::ExitCode;

use clap::Parser;
use retrace_verifier::VerifyError;

use crate::args::{Args, Command};
use crate::exit::Exit;
use crate::runtime::Interrupted;

/// Runs the program with the arguments of the process.
pub fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            if error.use_stderr() {
                failure::print_lines(&error.render().to_string());
                return Exit::CouldNotRun.into();
            }
            // A failure to print leaves nobody to tell.
            drop(error.print());
            return Exit::Ok.into();
        }
    };
    let ended = match args.command {
        Command::Demo(args) => commands::demo::run(&args),
        Command::Init(args) => commands::init::run(&args),
        Command::Import(args) => commands::import::run(&args),
        Command::Inspect(args) => commands::inspect::run(&args),
        Command::Audit(args) => commands::audit::run(&args),
        Command::Compact(args) => commands::compact::run(&args),
        Command::Record(args) => commands::record::run(&args),
        Command::Replay(args) => commands::replay::run(&args),
        Command::Strategies(args) => commands::strategies::run(&args),
        Command::Verify(args) => commands::verify::run(&args),
        Command::Report(args) => commands::report::run(&args),
        Command::Merge(args) => commands::merge::run(&args),
        Command::Score(args) => commands::score::run(&args),
        Command::Plan(args) => commands::plan::run(&args),
    };
    match ended {
        Ok(exit) => exit,
        Err(error) if failure::is_closed_pipe(&error) => Exit::Ok,
        Err(error) if error.is::<Interrupted>() || matches!(error.downcast_ref(), Some(VerifyError::Stopped)) => {
            failure::print(&error);
            Exit::Interrupted
        }
        Err(error) => {
            failure::print(&error);
            Exit::CouldNotRun
        }
    }
    .into()
}
