//! Calibrate: our own procedures put through simulated verifications, and how often they err kept in `docs/methods.md`.
//!
//! The simulation is a package of its own, `retrace-calibration`: it is built in release mode, and what it needs is not
//! what the other chores wait for. It takes minutes, so it is no check of ci. What ci has of it are its tests, which make a
//! few runs, and with `RETRACE_SLOW` all of them.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::Finding;
use crate::generated::Section;
use crate::workspace::cargo;

/// Where the tables are kept.
const TABLES: Section = Section {
    command: "cargo xtask calibrate",
    place: "docs/methods.md",
    begin: "<!-- cargo xtask calibrate -->",
    end: "<!-- end of cargo xtask calibrate -->",
};

/// How the tables say with what they were made: in this, before the first `` ` `` after it.
const MADE_BY: &str = "`cargo xtask calibrate ";

/// Runs the simulation with these options of its own and writes its tables. Answers whether every promise was kept.
///
/// # Errors
///
/// When the simulation gives no answer, or the tables cannot be written.
pub fn write(root: &Path, options: &[String]) -> Result<bool> {
    let (tables, kept) = simulate(root, options)?;
    TABLES.write(root, &tables)?;
    Ok(kept)
}

/// Runs the simulation with the options that the tables were made with, and finds whether they still come out.
///
/// # Errors
///
/// When the simulation gives no answer, or there are no tables.
pub fn check(root: &Path) -> Result<Vec<Finding>> {
    let options = options_of(&TABLES.read(root)?)?;
    let (tables, _) = simulate(root, &options)?;
    Ok(TABLES.drift(root, &tables)?.into_iter().collect())
}

/// The tables, and whether every promise was kept; those that were not are told as the simulation runs.
fn simulate(root: &Path, options: &[String]) -> Result<(String, bool)> {
    let mut command = cargo(root);
    command.args(["run", "--quiet", "--release", "--locked", "--package", "retrace-calibration", "--"]).args(options);
    let (tables, code) = output(&mut command)?;
    match code {
        Some(0) => Ok((tables, true)),
        Some(1) if tables.contains(MADE_BY) => Ok((tables, false)),
        _ => bail!("the simulation gave no answer"),
    }
}

fn output(command: &mut Command) -> Result<(String, Option<i32>)> {
    let output = command.stderr(Stdio::inherit()).output().context("failed to start cargo")?;
    let printed = String::from_utf8(output.stdout).context("the simulation printed other than UTF-8")?;
    Ok((printed, output.status.code()))
}

/// The options that tables were made with.
fn options_of(tables: &str) -> Result<Vec<String>> {
    let options = tables.split_once(MADE_BY).and_then(|(_, rest)| Some(rest.split_once('`')?.0));
    let options = options.with_context(|| format!("`{}` does not say how its tables were made", TABLES.place))?;
    Ok(options.split_whitespace().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::root;

    #[test]
    fn the_tables_say_how_they_were_made() {
        let options = options_of(&TABLES.read(&root()).unwrap()).unwrap();
        let [runs, n_runs, seed, number] = &options[..] else { panic!("{options:?}") };
        assert_eq!([&**runs, &**seed], ["--runs", "--seed"]);
        assert!(n_runs.parse::<u32>().unwrap() >= 1_000 && number.parse::<u64>().is_ok());
    }
}
