//! Manifests: what each member inherits from the root, and that it has an example.

use std::fs;

use anyhow::{Context, Result};
use toml::{Table, Value};

use super::floors::FOR_TESTS;
use crate::Finding;
use crate::workspace::{Member, Workspace};

/// What `[package]` takes from `[workspace.package]`.
const INHERITED: &[&str] = &["version", "edition", "rust-version", "license", "repository", "publish"];

/// What would make a dependency other than the one of `[workspace.dependencies]`.
const OWN_SOURCE: &[&str] = &["version", "path", "git", "registry", "package"];

/// The program shows its use by its commands, and what only tests use is shown by them.
const NO_EXAMPLE_NEEDED: &[&str] = &["retrace-cli", FOR_TESTS];

/// Every finding in the manifests of the members.
///
/// # Errors
///
/// When a manifest cannot be read.
pub fn check(workspace: &Workspace) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for member in &workspace.members {
        let place = format!("{}/Cargo.toml", member.folder);
        let text =
            fs::read_to_string(workspace.root.join(&place)).with_context(|| format!("failed to read `{place}`"))?;
        let manifest: Table = text.parse().with_context(|| format!("failed to read `{place}`"))?;
        findings.extend(inheritance(&place, &manifest));
        findings.extend(example(member));
    }
    Ok(findings)
}

/// What the manifest says itself, and should take from the root.
pub fn inheritance(place: &str, manifest: &Table) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !manifest.get("lints").is_some_and(inherits) {
        findings.push(Finding::new(place, "write `[lints]` with `workspace = true`"));
    }
    let package = manifest.get("package").and_then(Value::as_table);
    for key in INHERITED {
        if !package.and_then(|it| it.get(*key)).is_some_and(inherits) {
            findings.push(Finding::new(place, format!("write `{key}.workspace = true` in `[package]`")));
        }
    }
    for (name, dependency) in dependencies(manifest) {
        let own = OWN_SOURCE.iter().any(|key| dependency.get(key).is_some());
        if own || !inherits(dependency) {
            let advice = format!(
                "name `{name}` in `[workspace.dependencies]` of the root, and write `{name}.workspace = true` here"
            );
            findings.push(Finding::new(place, advice));
        }
    }
    findings
}

/// A crate of the house without an example of its use.
fn example(member: &Member) -> Option<Finding> {
    let needs_one = member.folder.starts_with("crates/") && !NO_EXAMPLE_NEEDED.contains(&member.name.as_str());
    (needs_one && !member.has_example).then(|| {
        Finding::new(
            format!("{}/examples", member.folder),
            format!("write an example that uses `{}` alone", member.name),
        )
    })
}

fn inherits(value: &Value) -> bool {
    value.get("workspace").and_then(Value::as_bool) == Some(true)
}

/// The dependencies of every kind, those for one platform included.
fn dependencies(manifest: &Table) -> impl Iterator<Item = (&String, &Value)> {
    let platforms = manifest
        .get("target")
        .and_then(Value::as_table)
        .into_iter()
        .flat_map(|targets| targets.values().filter_map(Value::as_table));
    [manifest].into_iter().chain(platforms).flat_map(|table| {
        ["dependencies", "dev-dependencies", "build-dependencies"]
            .into_iter()
            .filter_map(|kind| table.get(kind).and_then(Value::as_table))
            .flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
        [package]
        name = "a"
        version.workspace = true
        edition.workspace = true
        rust-version.workspace = true
        license.workspace = true
        repository.workspace = true
        publish.workspace = true
        [dependencies]
        serde.workspace = true
        tokio = { workspace = true, features = ["fs"] }
        [lints]
        workspace = true
    "#;

    fn check(text: &str) -> Vec<String> {
        let findings = inheritance("Cargo.toml", &text.parse().unwrap());
        findings.into_iter().map(|it| it.advice).collect()
    }

    #[test]
    fn a_manifest_that_inherits_all_has_no_finding() {
        assert_eq!(check(GOOD), [""; 0]);
    }

    #[test]
    fn a_manifest_without_the_lint_table_is_found() {
        let own = GOOD.replace("[lints]\n        workspace = true", "[lints]\n        rust.unsafe_code = \"allow\"");
        for text in [own.as_str(), &GOOD.replace("[lints]", "[badges]")] {
            assert_eq!(check(text), ["write `[lints]` with `workspace = true`"]);
        }
    }

    #[test]
    fn an_edition_of_its_own_is_found() {
        let text = GOOD.replace("edition.workspace = true", "edition = \"2021\"");
        assert_eq!(check(&text), ["write `edition.workspace = true` in `[package]`"]);
        let text = GOOD.replace("rust-version.workspace = true", "");
        assert_eq!(check(&text), ["write `rust-version.workspace = true` in `[package]`"]);
    }

    #[test]
    fn a_version_outside_of_the_root_is_found_in_every_kind_of_dependency() {
        for table in ["dependencies", "dev-dependencies", "build-dependencies", "target.'cfg(unix)'.dependencies"] {
            for dependency in [
                r#"libc = "0.2""#,
                r#"libc = { version = "0.2" }"#,
                r#"libc = { path = "../libc" }"#,
                r#"libc = { workspace = true, version = "0.2" }"#,
            ] {
                let text = GOOD.replace("[dependencies]", "[unused]") + &format!("\n[{table}]\n{dependency}\n");
                let found = check(&text);
                assert_eq!(found.len(), 1, "{table} {dependency}");
                assert!(found[0].starts_with("name `libc` in"), "{found:?}");
            }
        }
    }

    #[test]
    fn a_crate_without_an_example_is_found_the_excepted_ones_aside() {
        let member = |name: &str, folder: &str, has_example| Member {
            name: name.into(),
            folder: folder.into(),
            uses: Vec::new(),
            has_example,
        };
        assert!(example(&member("retrace-env", "crates/retrace-env", false)).is_some());
        assert!(example(&member("retrace-env", "crates/retrace-env", true)).is_none());
        assert!(example(&member("retrace-cli", "crates/retrace-cli", false)).is_none());
        assert!(example(&member(FOR_TESTS, "crates/retrace-testing", false)).is_none());
        assert!(example(&member("xtask", "xtask", false)).is_none());
    }
}
