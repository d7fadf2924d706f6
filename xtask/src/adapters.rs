//! Adapters: the programs of `examples/python/` and `examples/typescript/`, tried over the real libraries.
//!
//! The libraries are installed at the versions that are pinned there, in `adapters/` of the target folder. A second run
//! finds them there and needs no network.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::workspace::cargo;

/// The file that says for which pins a folder was filled.
const STAMP: &str = "installed-for";

/// Installs the libraries and runs the example `adapters` of `retrace-command`. Says whether all agreed.
///
/// # Errors
///
/// When a program is missing or too old, and when a library cannot be installed.
pub fn run(root: &Path) -> Result<bool> {
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let cache = env::current_dir()?.join(target).join("adapters");
    let python = install_python(&root.join("examples/python"), &cache.join("python"))?;
    let typescript = install_typescript(&root.join("examples/typescript"), &cache.join("typescript"))?;
    let mut example = cargo(root);
    example
        .args(["run", "--quiet", "--locked", "--package", "retrace-command", "--example", "adapters"])
        .env("RETRACE_PYTHON", python)
        .env("RETRACE_PYTHON_EXAMPLES", root.join("examples/python"))
        .env("RETRACE_TYPESCRIPT_EXAMPLES", typescript)
        .env("PYTHONDONTWRITEBYTECODE", "1");
    Ok(example.status().context("failed to start cargo")?.success())
}

/// A virtual environment with the packages of `requirements.txt`; gives its Python.
fn install_python(source: &Path, folder: &Path) -> Result<PathBuf> {
    let pins = read(&source.join("requirements.txt"))?;
    let python = folder.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" });
    if is_filled(folder, &pins) {
        return Ok(python);
    }
    need("python3", &["-c", "import sys; sys.exit(sys.version_info < (3, 11))"], "Python 3.11 or newer")?;
    empty(folder)?;
    let mut venv = Command::new("python3");
    step(venv.args(["-m", "venv"]).arg(folder), "make a virtual environment: Debian has it in `python3-venv`")?;
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--requirement"]);
    step(pip.arg(source.join("requirements.txt")), "install the pinned packages: is PyPI within reach?")?;
    fs::write(folder.join(STAMP), pins)?;
    Ok(python)
}

/// A copy of the programs with the packages of `package-lock.json`, compiled.
fn install_typescript(source: &Path, folder: &Path) -> Result<PathBuf> {
    let pins = read(&source.join("package-lock.json"))?;
    need("node", &["-e", "process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)"], "Node.js 20 or newer")?;
    let is_filled = is_filled(folder, &pins);
    if !is_filled {
        empty(folder)?;
    }
    for file in fs::read_dir(source).with_context(|| format!("failed to read `{}`", source.display()))? {
        let file = file?.path();
        let is_source = file.extension().is_some_and(|extension| extension == "ts" || extension == "json");
        if let Some(name) = file.file_name().filter(|_| is_source) {
            fs::copy(&file, folder.join(name)).with_context(|| format!("failed to copy `{}`", file.display()))?;
        }
    }
    // On Windows npm is a script.
    let npm = || {
        let mut npm = Command::new(if cfg!(windows) { "npm.cmd" } else { "npm" });
        npm.current_dir(folder);
        npm
    };
    if !is_filled {
        let install = ["ci", "--no-audit", "--no-fund", "--loglevel=error"];
        step(npm().args(install), "install the pinned packages: is the npm registry within reach?")?;
        fs::write(folder.join(STAMP), pins)?;
    }
    step(npm().args(["run", "--silent", "build"]), "compile `examples/typescript/`")?;
    Ok(folder.to_path_buf())
}

/// Whether a folder was filled for these pins.
fn is_filled(folder: &Path, pins: &str) -> bool {
    fs::read_to_string(folder.join(STAMP)).is_ok_and(|filled| filled == pins)
}

fn empty(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("failed to empty `{}`", folder.display()))?;
    }
    fs::create_dir_all(folder).with_context(|| format!("failed to make `{}`", folder.display()))
}

fn read(file: &Path) -> Result<String> {
    fs::read_to_string(file).with_context(|| format!("failed to read `{}`", file.display()))
}

/// A program that is there and new enough.
fn need(program: &str, check: &[&str], wanted: &str) -> Result<()> {
    match Command::new(program).args(check).stdin(Stdio::null()).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => bail!("`{program}` is too old: the adapters need {wanted}"),
        Err(error) => bail!("there is no `{program}` ({error}): the adapters need {wanted}"),
    }
}

/// Runs a step of the installation.
fn step(command: &mut Command, what: &str) -> Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let status = command.stdin(Stdio::null()).status().with_context(|| format!("failed to start `{program}`"))?;
    if !status.success() {
        bail!("`{program}` ended with {status}; it was to {what}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_missing_or_too_old_is_named_with_what_is_wanted() {
        let missing = need("no-such-program", &[], "Python 3.11 or newer").unwrap_err().to_string();
        assert!(missing.contains("there is no `no-such-program`") && missing.contains("Python 3.11"), "{missing}");
        let old = need("cargo", &["no-such-command", "--quiet"], "cargo 99").unwrap_err().to_string();
        assert_eq!(old, "`cargo` is too old: the adapters need cargo 99");
    }

    #[test]
    fn what_is_installed_is_known_by_its_pins() {
        let folder = tempfile::tempdir().unwrap();
        let cache = folder.path().join("python");
        assert!(!is_filled(&cache, "a==1"));
        empty(&cache).unwrap();
        fs::write(cache.join(STAMP), "a==1").unwrap();
        assert!(is_filled(&cache, "a==1") && !is_filled(&cache, "a==2"));
        empty(&cache).unwrap();
        assert!(!is_filled(&cache, "a==1"));
    }

    #[test]
    fn a_step_that_fails_says_what_it_was_for() {
        let error = step(Command::new("cargo").args(["no-such-command", "--quiet"]), "install a thing").unwrap_err();
        assert!(error.to_string().ends_with("it was to install a thing"), "{error}");
    }
}
