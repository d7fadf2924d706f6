//! Live: retrace with real parts, and what came out kept in `docs/live/`.
//!
//! Each step is a module here: commands, whose inputs lie in `examples/live/` and whose outputs in `docs/live/`. What is
//! installed and built for them stays in a cache outside of the repository, so that a second run needs no network. None of
//! this is a check of ci.

mod airline;
mod bench;
mod files;
mod model;
mod server;
mod traces;

use std::path::Path;

use anyhow::{Context, Result, bail};

use bench::Bench;

/// A step: real parts, and what retrace does with them.
struct Step {
    name: &'static str,
    run: fn(&Bench) -> Result<()>,
}

const STEPS: &[Step] = &[
    Step { name: "airline", run: airline::run },
    Step { name: "files", run: files::run },
    Step { name: "model", run: model::run },
];

/// Runs the steps of these names, or all.
///
/// # Errors
///
/// For a name that no step has, and for the first step that fails.
pub fn run(root: &Path, names: &[&str]) -> Result<()> {
    if let Some(name) = names.iter().find(|name| !STEPS.iter().any(|step| step.name == **name)) {
        let known: Vec<_> = STEPS.iter().map(|step| step.name).collect();
        bail!("there is no step `{name}`: there are {}", known.join(", "));
    }
    let chosen: Vec<_> = STEPS.iter().filter(|step| names.is_empty() || names.contains(&step.name)).collect();
    for step in chosen {
        let bench = Bench::new(root, step.name)?;
        (step.run)(&bench).with_context(|| format!("the step `{}` failed", step.name))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_that_is_not_there_is_named_before_any_runs() {
        let error = run(Path::new("."), &["model", "modle"]).unwrap_err().to_string();
        assert!(error.starts_with("there is no step `modle`: there are ") && error.contains("model"), "{error}");
    }
}
