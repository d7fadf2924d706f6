//! Adapters: the programs of `examples/python/` and `examples/typescript/`, tried over the real libraries.
//!
//! The libraries are installed at the versions that are pinned there, in `adapters/` of the target folder. A second run
//! finds them there and needs no network.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::install;
use crate::workspace::cargo;

/// Installs the libraries and runs the example `adapters` of `retrace-command`. Says whether all agreed.
///
/// # Errors
///
/// When a program is missing or too old, and when a library cannot be installed.
pub fn run(root: &Path) -> Result<bool> {
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let cache = env::current_dir()?.join(target).join("adapters");
    let python = install::python(&root.join("examples/python/requirements.txt"), &cache.join("python"))?;
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

/// A copy of the programs with the packages of `package-lock.json`, compiled.
fn install_typescript(source: &Path, folder: &Path) -> Result<PathBuf> {
    let pins = install::read(&source.join("package-lock.json"))?;
    install::need_node()?;
    let is_filled = install::is_filled(folder, &pins);
    if !is_filled {
        install::empty(folder)?;
    }
    for file in fs::read_dir(source).with_context(|| format!("failed to read `{}`", source.display()))? {
        let file = file?.path();
        let is_source = file.extension().is_some_and(|extension| extension == "ts" || extension == "json");
        if let Some(name) = file.file_name().filter(|_| is_source) {
            fs::copy(&file, folder.join(name)).with_context(|| format!("failed to copy `{}`", file.display()))?;
        }
    }
    if !is_filled {
        install::npm_packages(folder)?;
        install::fill(folder, &pins)?;
    }
    install::step(install::npm(folder).args(["run", "--silent", "build"]), "compile `examples/typescript/`")?;
    Ok(folder.to_path_buf())
}
