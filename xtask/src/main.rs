//! `cargo xtask`: the workspace's own chores.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program speaks on its streams")]

use std::process::ExitCode;

use anyhow::Result;
use xtask::workspace::root;
use xtask::{Finding, adapters, calibrate, ci, copies, fixtures, live, peers, tidy};

const HELP: &str = "\
Usage: cargo xtask COMMAND

Commands:
  tidy                 proves the arrows between crates, that the lower floors carry no
                       runtime and no transport, and the habits of manifests and sources
  vectors [--check]    copies vectors and real transcripts from a folder beside the checkout
                       to `tests/vectors/` and `tests/samples/`
  fixtures [--check]   writes everything under `tests/fixtures/` from builders
  ci                   every check but the tests: tidy, vectors, fixtures, format, clippy,
                       docs, examples and benches
  adapters             installs the libraries that the programs in `examples/` are over, and
                       holds each program against its library; needs Python, Node.js and,
                       once, a network
  live [STEP...]       runs retrace with real parts, and keeps what comes out in `docs/live/`;
                       needs what its steps are over, and once a network. Steps: airline, files,
                       model
  peers stats          times our statistics beside ag2's verifier and scipy, on the same data in
                       one run; needs Python and, once, a network
  calibrate [--runs N] [--seed N] [--threads N] [--check]
                       puts our own procedures through simulated verifications, and writes how
                       often they err to `docs/methods.md`; takes minutes. Finds fault where an
                       error is more common than promised

With --check nothing is written: what has drifted, is missing or does not belong is listed.

Exit code: 0 when all is well, 1 with findings, 2 when there is no answer.";

const FINDINGS: u8 = 1;
const NO_ANSWER: u8 = 2;

enum Command {
    Tidy,
    Vectors { check: bool },
    Fixtures { check: bool },
    Ci,
    Adapters,
    Live { steps: Vec<String> },
    PeersOfStats,
    Calibrate { options: Vec<String> },
    CheckCalibration,
    Help,
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let Some(command) = parse(&args) else {
        eprintln!("{HELP}");
        return ExitCode::from(NO_ANSWER);
    };
    match run(command) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(FINDINGS),
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::from(NO_ANSWER)
        }
    }
}

fn parse(args: &[&str]) -> Option<Command> {
    match args {
        ["tidy"] => Some(Command::Tidy),
        ["vectors"] => Some(Command::Vectors { check: false }),
        ["vectors", "--check"] => Some(Command::Vectors { check: true }),
        ["fixtures"] => Some(Command::Fixtures { check: false }),
        ["fixtures", "--check"] => Some(Command::Fixtures { check: true }),
        ["ci"] => Some(Command::Ci),
        ["adapters"] => Some(Command::Adapters),
        ["live", steps @ ..] if !steps.iter().any(|step| step.starts_with('-')) => {
            Some(Command::Live { steps: steps.iter().map(ToString::to_string).collect() })
        }
        ["peers", "stats"] => Some(Command::PeersOfStats),
        ["calibrate", "--check"] => Some(Command::CheckCalibration),
        ["calibrate", options @ ..] if !options.contains(&"--check") => {
            Some(Command::Calibrate { options: options.iter().map(ToString::to_string).collect() })
        }
        ["help" | "--help" | "-h"] => Some(Command::Help),
        _ => None,
    }
}

/// Whether all is well.
fn run(command: Command) -> Result<bool> {
    let root = root();
    Ok(match command {
        Command::Tidy => all_is_well("tidy", &tidy::check(&root)?),
        Command::Vectors { check: true } => all_is_well("vectors", &copies::check(&root)?),
        Command::Vectors { check: false } => wrote("vectors", copies::write(&root)?),
        Command::Fixtures { check: true } => all_is_well("fixtures", &fixtures::check(&root)?),
        Command::Fixtures { check: false } => wrote("fixtures", fixtures::write(&root)?),
        Command::Ci => ci::run(&root).is_empty(),
        Command::Adapters => adapters::run(&root)?,
        Command::Live { steps } => {
            live::run(&root, &steps.iter().map(String::as_str).collect::<Vec<_>>())?;
            true
        }
        Command::PeersOfStats => peers::stats(&root)?,
        Command::Calibrate { options } => calibrate::write(&root, &options)?,
        Command::CheckCalibration => all_is_well("calibrate", &calibrate::check(&root)?),
        Command::Help => {
            println!("{HELP}");
            true
        }
    })
}

fn wrote(name: &str, (written, findings): (Vec<String>, Vec<Finding>)) -> bool {
    for place in written {
        println!("wrote {place}");
    }
    all_is_well(name, &findings)
}

fn all_is_well(name: &str, findings: &[Finding]) -> bool {
    for finding in findings {
        println!("{finding}");
    }
    match findings.len() {
        0 => println!("{name}: all is well"),
        1 => println!("{name}: 1 finding"),
        n => println!("{name}: {n} findings"),
    }
    findings.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_that_name_no_command_are_no_command() {
        for args in [
            &[][..],
            &["tidy", "--check"],
            &["vectors", "--chek"],
            &["calibrate", "--check", "--runs"],
            &["tydi"],
            &["ci", "ci"],
        ] {
            assert!(parse(args).is_none(), "{args:?}");
        }
    }

    #[test]
    fn live_takes_the_names_of_steps() {
        let steps = |args: &[&str]| match parse(args) {
            Some(Command::Live { steps }) => Some(steps),
            _ => None,
        };
        assert_eq!(steps(&["live"]), Some(vec![]));
        assert_eq!(steps(&["live", "model"]), Some(vec!["model".to_owned()]));
        assert_eq!(steps(&["live", "--model"]), None);
    }

    #[test]
    fn check_is_told_from_writing() {
        assert!(matches!(parse(&["vectors"]), Some(Command::Vectors { check: false })));
        assert!(matches!(parse(&["vectors", "--check"]), Some(Command::Vectors { check: true })));
        assert!(matches!(parse(&["fixtures", "--check"]), Some(Command::Fixtures { check: true })));
        assert!(matches!(parse(&["calibrate", "--check"]), Some(Command::CheckCalibration)));
        assert!(matches!(parse(&["calibrate", "--runs", "9"]), Some(Command::Calibrate { .. })));
    }
}
