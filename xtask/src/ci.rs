//! Ci: every check but the tests, all of them run and the failed ones listed at the end.

#![expect(clippy::print_stdout, reason = "what ci prints is for the one who runs it, in one order with cargo's own")]

use std::fmt;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::workspace::cargo;
use crate::{Finding, copies, fixtures, tidy};

/// A check and its name.
struct Step {
    name: &'static str,
    run: Run,
}

enum Run {
    /// Cargo, with these arguments and a variable of its own.
    Cargo(&'static [&'static str], Option<(&'static str, &'static str)>),
    /// A function of ours.
    Check(fn(&Path) -> Result<Vec<Finding>>),
}

/// In the order of how soon they answer. Benches are linked, but not in release mode: twice the build for no more proof.
const STEPS: &[Step] = &[
    Step { name: "tidy", run: Run::Check(tidy::check) },
    Step { name: "vectors", run: Run::Check(copies::check) },
    Step { name: "fixtures", run: Run::Check(fixtures::check) },
    Step { name: "format", run: Run::Cargo(&["fmt", "--all", "--", "--check"], None) },
    Step {
        name: "clippy",
        run: Run::Cargo(&["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"], None),
    },
    Step {
        name: "docs",
        run: Run::Cargo(&["doc", "--workspace", "--no-deps", "--locked"], Some(("RUSTDOCFLAGS", "-D warnings"))),
    },
    Step {
        name: "examples and benches",
        run: Run::Cargo(&["build", "--workspace", "--examples", "--benches", "--locked"], None),
    },
];

/// Runs every step over the workspace at `root`, prints each with its time, and answers with the names of those that
/// failed.
pub fn run(root: &Path) -> Vec<&'static str> {
    let mut failed = Vec::new();
    for step in STEPS {
        println!("\n== {}: {}", step.name, step.run);
        let start = Instant::now();
        let outcome = step.run.run(root);
        let seconds = seconds(start.elapsed());
        match outcome {
            Ok(()) => println!("== {}: ok, {seconds}", step.name),
            Err(error) => {
                println!("== {}: FAILED, {seconds}: {error:#}", step.name);
                failed.push(step.name);
            }
        }
    }
    match failed.as_slice() {
        [] => println!("\n== all {} checks passed", STEPS.len()),
        names => println!("\n== {} of {} checks FAILED: {}", names.len(), STEPS.len(), names.join(", ")),
    }
    failed
}

impl Run {
    fn run(&self, root: &Path) -> Result<()> {
        match self {
            Run::Cargo(args, variable) => {
                let status = cargo(root).args(*args).envs(*variable).status()?;
                if !status.success() {
                    bail!("{status}");
                }
            }
            Run::Check(check) => {
                let findings = check(root)?;
                for finding in &findings {
                    println!("{finding}");
                }
                if !findings.is_empty() {
                    bail!("findings: {}", findings.len());
                }
            }
        }
        Ok(())
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Run::Cargo(args, variable) => {
                if let Some((name, value)) = variable {
                    write!(f, "{name}='{value}' ")?;
                }
                write!(f, "cargo {}", args.join(" "))
            }
            Run::Check(_) => f.write_str("in this process"),
        }
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_shows_what_to_type() {
        let docs = STEPS.iter().find(|step| step.name == "docs").unwrap();
        assert_eq!(docs.run.to_string(), "RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps --locked");
    }

    #[test]
    fn a_finding_an_error_and_a_failing_cargo_fail_a_step() {
        let root = Path::new(".");
        let fails = |run: Run| run.run(root).is_err();
        assert!(fails(Run::Check(|_| Ok(vec![Finding::new("a.rs", "mend it")]))));
        assert!(fails(Run::Check(|_| bail!("no answer"))));
        assert!(fails(Run::Cargo(&["no-such-command"], None)));
        assert!(!fails(Run::Check(|_| Ok(Vec::new()))));
        assert!(!fails(Run::Cargo(&["--version"], None)));
    }
}
