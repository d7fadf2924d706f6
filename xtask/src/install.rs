//! Packages of other languages, installed at pinned versions into folders of their own.
//!
//! A folder says for which pins it was filled, so that a second run needs no network.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// The file that says for which pins a folder was filled.
const STAMP: &str = "installed-for";

/// A virtual environment with the packages of a `requirements.txt`, which names all of them; gives its Python.
pub(crate) fn python(requirements: &Path, folder: &Path) -> Result<PathBuf> {
    let pins = read(requirements)?;
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
    step(pip.arg(requirements), "install the pinned packages: is PyPI within reach?")?;
    fill(folder, &pins)?;
    Ok(python)
}

/// The packages that a folder's `package.json` and `package-lock.json` name; gives where their programs are.
pub(crate) fn node(source: &Path, folder: &Path) -> Result<PathBuf> {
    let pins = read(&source.join("package-lock.json"))?;
    let programs = folder.join("node_modules/.bin");
    if is_filled(folder, &pins) {
        return Ok(programs);
    }
    need_node()?;
    empty(folder)?;
    for name in ["package.json", "package-lock.json"] {
        let file = source.join(name);
        fs::copy(&file, folder.join(name)).with_context(|| format!("failed to copy `{}`", file.display()))?;
    }
    npm_packages(folder)?;
    fill(folder, &pins)?;
    Ok(programs)
}

/// The variable `PATH` with a folder before all that is in it.
pub(crate) fn path_with(folder: &Path) -> Result<String> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::join_paths([folder.to_owned()].into_iter().chain(env::split_paths(&path)));
    let folders = folders.with_context(|| format!("`{}` cannot be put on the PATH", folder.display()))?;
    folders.into_string().ok().context("the variable PATH is not UTF-8")
}

/// Npm, working in a folder. On Windows it is a script.
pub(crate) fn npm(folder: &Path) -> Command {
    let mut npm = Command::new(if cfg!(windows) { "npm.cmd" } else { "npm" });
    npm.current_dir(folder);
    npm
}

/// Node.js that is new enough for what is used here.
pub(crate) fn need_node() -> Result<()> {
    need("node", &["-e", "process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)"], "Node.js 20 or newer")
}

/// Installs what a folder's `package-lock.json` pins.
pub(crate) fn npm_packages(folder: &Path) -> Result<()> {
    let install = ["ci", "--no-audit", "--no-fund", "--loglevel=error"];
    step(npm(folder).args(install), "install the pinned packages: is the npm registry within reach?")
}

/// Whether a folder was filled for these pins.
pub(crate) fn is_filled(folder: &Path, pins: &str) -> bool {
    fs::read_to_string(folder.join(STAMP)).is_ok_and(|filled| filled == pins)
}

/// Says that a folder is filled for these pins.
pub(crate) fn fill(folder: &Path, pins: &str) -> Result<()> {
    fs::write(folder.join(STAMP), pins).with_context(|| format!("failed to write into `{}`", folder.display()))
}

/// Makes a folder, or empties it.
pub(crate) fn empty(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("failed to empty `{}`", folder.display()))?;
    }
    fs::create_dir_all(folder).with_context(|| format!("failed to make `{}`", folder.display()))
}

pub(crate) fn read(file: &Path) -> Result<String> {
    fs::read_to_string(file).with_context(|| format!("failed to read `{}`", file.display()))
}

/// A program that is there and new enough.
pub(crate) fn need(program: &str, check: &[&str], wanted: &str) -> Result<()> {
    match Command::new(program).args(check).stdin(Stdio::null()).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => bail!("`{program}` is too old: this needs {wanted}"),
        Err(error) => bail!("there is no `{program}` ({error}): this needs {wanted}"),
    }
}

/// Runs a step of the installation.
pub(crate) fn step(command: &mut Command, what: &str) -> Result<()> {
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
        let missing = need("no-such-program", &[], "Python 3.10 or newer").unwrap_err().to_string();
        assert!(missing.contains("there is no `no-such-program`") && missing.contains("Python 3.10"), "{missing}");
        let old = need("cargo", &["no-such-command", "--quiet"], "cargo 99").unwrap_err().to_string();
        assert_eq!(old, "`cargo` is too old: this needs cargo 99");
    }

    #[test]
    fn what_is_installed_is_known_by_its_pins() {
        let folder = tempfile::tempdir().unwrap();
        let cache = folder.path().join("python");
        assert!(!is_filled(&cache, "a==1"));
        empty(&cache).unwrap();
        fill(&cache, "a==1").unwrap();
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
