//! All of tidy over the real workspace.

use std::path::Path;

use anyhow::Result;

use super::{floors, manifests, sources};
use crate::Finding;
use crate::workspace::Workspace;

/// Every finding of tidy in the workspace at `root`, sorted by place.
///
/// Cargo is asked with `--locked`; it reads what is on the disk, and fetches a package only where a build would.
///
/// # Errors
///
/// When cargo fails or a file cannot be read.
pub fn check(root: &Path) -> Result<Vec<Finding>> {
    let workspace = Workspace::load(root)?;
    let mut findings = floors::check(&workspace)?;
    findings.extend(manifests::check(&workspace)?);
    findings.extend(sources::check(&workspace)?);
    findings.sort();
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::root;

    #[test]
    fn the_workspace_is_tidy() {
        let findings = check(&root()).unwrap();
        let lines: Vec<_> = findings.iter().map(Finding::to_string).collect();
        assert!(lines.is_empty(), "\n{}\n", lines.join("\n"));
    }
}
