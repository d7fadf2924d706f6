//! Where a step works: its inputs, its outputs, its cache, and the program that it runs.

#![expect(clippy::print_stdout, reason = "a run takes long, and says what it is at")]

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::install;
use crate::workspace::cargo;

/// A step's places.
pub(super) struct Bench {
    root: PathBuf,
    step: &'static str,
    /// Of all steps: each has folders of its own in it.
    cache: PathBuf,
}

impl Bench {
    pub(super) fn new(root: &Path, step: &'static str) -> Result<Self> {
        let cache = cache(env::var_os)?;
        fs::create_dir_all(&cache).with_context(|| format!("failed to make `{}`", cache.display()))?;
        Ok(Self { root: root.to_owned(), step, cache })
    }

    /// Says what the step is at.
    pub(super) fn say(&self, what: &str) {
        println!("live {}: {what}", self.step);
    }

    /// A path of the repository.
    pub(super) fn root(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// A path of the cache.
    pub(super) fn cached(&self, name: &str) -> PathBuf {
        self.cache.join(name)
    }

    /// The Python of a virtual environment in the cache, with the packages that a file of the repository pins.
    pub(super) fn python(&self, requirements: &str, name: &str) -> Result<PathBuf> {
        self.say(&format!(
            "installing the packages of `{requirements}`, unless they are in `{}`",
            self.cache.display()
        ));
        install::python(&self.root(requirements), &self.cached(name))
    }

    /// Builds the program, and what cargo's arguments name beside it.
    pub(super) fn build(&self, more: &[&str]) -> Result<()> {
        self.say("building retrace");
        let mut build = cargo(&self.root);
        build.args(["build", "--quiet", "--locked", "--package", "retrace-cli", "--bin", "retrace"]).args(more);
        // Configurations name what is built by where it is.
        build.arg("--target-dir").arg(self.root("target"));
        install::step(&mut build, "build what the step runs")
    }

    /// Retrace, to be run in the root of the repository, where paths among the arguments start, too.
    pub(super) fn command(&self, args: &[&str], variables: &[(&str, &str)]) -> Command {
        let program = self.root("target/debug").join(format!("retrace{}", env::consts::EXE_SUFFIX));
        let mut retrace = Command::new(program);
        retrace.current_dir(&self.root).args(args).envs(variables.iter().copied()).stdin(Stdio::null());
        retrace
    }

    /// Runs retrace as [`command`](Self::command) has it. Gives what it printed; what it says beside that is shown as it
    /// comes.
    pub(super) fn retrace(&self, args: &[&str], variables: &[(&str, &str)]) -> Result<String> {
        let shown = args.join(" ");
        self.say(&format!("retrace {shown}"));
        let mut retrace = self.command(args, variables);
        let output = retrace.stderr(Stdio::inherit()).output().context("failed to start retrace")?;
        let printed = String::from_utf8(output.stdout).context("retrace printed other than UTF-8")?;
        print!("{printed}");
        if !output.status.success() {
            bail!("`retrace {shown}` ended with {}", output.status);
        }
        Ok(printed)
    }

    /// Removes what an earlier run left at a path of the repository.
    pub(super) fn remove(&self, path: &str) -> Result<()> {
        let path = self.root(path);
        let removed = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        match removed {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(error).with_context(|| format!("failed to remove `{}`", path.display()))
            }
            _ => Ok(()),
        }
    }

    /// Writes a file of the repository.
    pub(super) fn write(&self, path: &str, text: &str) -> Result<()> {
        let path = self.root(path);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).with_context(|| format!("failed to make `{}`", folder.display()))?;
        }
        fs::write(&path, text).with_context(|| format!("failed to write `{}`", path.display()))
    }
}

/// `retrace-live` where caches of this user are.
fn cache(variable: impl Fn(&'static str) -> Option<OsString>) -> Result<PathBuf> {
    let set = |name| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let caches = set("XDG_CACHE_HOME").filter(|path| path.is_absolute());
    let caches = caches.or_else(|| set("HOME").map(|home| home.join(".cache"))).or_else(|| set("LOCALAPPDATA"));
    let caches = caches.context("nobody says where caches are: set XDG_CACHE_HOME to a folder")?;
    Ok(caches.join("retrace-live"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_is_where_caches_are() {
        let cache = |variables: &[(&str, &str)]| {
            let set = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| OsString::from(value));
            cache(set).ok()
        };
        assert_eq!(cache(&[("HOME", "/h")]), Some(PathBuf::from("/h/.cache/retrace-live")));
        assert_eq!(cache(&[("HOME", "/h"), ("XDG_CACHE_HOME", "/c")]), Some(PathBuf::from("/c/retrace-live")));
        assert_eq!(cache(&[("HOME", "/h"), ("XDG_CACHE_HOME", "")]), Some(PathBuf::from("/h/.cache/retrace-live")));
        assert_eq!(cache(&[]), None);
    }
}
