//! The workspace as cargo sees it: its members, and which of them each one uses.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

/// The workspace and its members.
#[derive(Debug)]
pub struct Workspace {
    /// The folder of the root manifest.
    pub root: PathBuf,
    /// In the order of cargo.
    pub members: Vec<Member>,
}

/// One package of the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// The package's name.
    pub name: String,
    /// Its folder, from the root, with `/` between the parts.
    pub folder: String,
    /// The packages of ours that its code needs: normal and build dependencies, those behind a feature or for
    /// another platform included. What only tests need is left out.
    pub uses: Vec<String>,
    /// Whether it has an example.
    pub has_example: bool,
}

/// The root of the workspace that this program was built from.
pub fn root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own).to_path_buf()
}

/// The cargo that runs this program, or else the one on the path.
pub fn cargo(root: &Path) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root).stdin(Stdio::null());
    command
}

/// What cargo prints for these arguments.
///
/// # Errors
///
/// When cargo cannot be started or fails, with what it said.
pub fn cargo_output(root: &Path, args: &[&str]) -> Result<String> {
    let shown = args.join(" ");
    let output = cargo(root).args(args).output().with_context(|| format!("failed to start `cargo {shown}`"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("`cargo {shown}` failed: {}", said.trim());
    }
    String::from_utf8(output.stdout).with_context(|| format!("`cargo {shown}` printed other than UTF-8"))
}

impl Workspace {
    /// Asks cargo about the workspace at `root`. Nothing is resolved, so nothing is downloaded.
    ///
    /// # Errors
    ///
    /// When cargo fails or its answer cannot be read.
    pub fn load(root: &Path) -> Result<Self> {
        let args = ["metadata", "--no-deps", "--format-version=1", "--locked", "--color=never"];
        Self::from_metadata(&cargo_output(root, &args)?)
    }

    /// Reads the JSON of `cargo metadata --no-deps`.
    ///
    /// # Errors
    ///
    /// When the text is not such JSON, or a member lies outside of the root.
    pub fn from_metadata(json: &str) -> Result<Self> {
        let metadata: Metadata = serde_json::from_str(json).context("failed to read the output of `cargo metadata`")?;
        let root = metadata.workspace_root;
        let members = metadata.packages.into_iter().map(|package| package.into_member(&root)).collect::<Result<_>>()?;
        Ok(Self { root, members })
    }
}

#[derive(Deserialize)]
struct Metadata {
    workspace_root: PathBuf,
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    manifest_path: PathBuf,
    dependencies: Vec<Dependency>,
    targets: Vec<Target>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    kind: Option<String>,
    path: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Target {
    kind: Vec<String>,
}

impl Package {
    fn into_member(self, root: &Path) -> Result<Member> {
        let folder = self
            .manifest_path
            .parent()
            .and_then(|folder| folder.strip_prefix(root).ok())
            .with_context(|| format!("`{}` lies outside of the workspace", self.name))?;
        Ok(Member {
            folder: slashed(folder),
            uses: self
                .dependencies
                .into_iter()
                // A path says that a package is ours, and the kind of a normal dependency is null.
                .filter(|it| it.path.is_some() && it.kind.as_deref() != Some("dev"))
                .map(|it| it.name)
                .collect(),
            has_example: self.targets.iter().any(|target| target.kind.iter().any(|kind| kind == "example")),
            name: self.name,
        })
    }
}

/// A path with `/` between its parts, whatever the platform writes.
pub fn slashed(path: &Path) -> String {
    let parts: Vec<_> = path.iter().map(|part| part.to_string_lossy()).collect();
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_uses_what_its_code_needs_and_not_what_its_tests_need() {
        let json = r#"{"workspace_root":"/ws","packages":[{
            "name":"a","manifest_path":"/ws/crates/a/Cargo.toml",
            "dependencies":[
                {"name":"b","kind":null,"path":"/ws/crates/b"},
                {"name":"c","kind":"build","path":"/ws/crates/c"},
                {"name":"d","kind":"dev","path":"/ws/crates/d"},
                {"name":"serde","kind":null}],
            "targets":[{"kind":["lib"]},{"kind":["example"]}]}]}"#;
        let workspace = Workspace::from_metadata(json).unwrap();
        let a = Member {
            name: "a".into(),
            folder: "crates/a".into(),
            uses: vec!["b".into(), "c".into()],
            has_example: true,
        };
        assert_eq!(workspace.members, [a]);
    }

    #[test]
    fn a_member_outside_of_the_root_is_no_answer() {
        let json = r#"{"workspace_root":"/ws","packages":[{
            "name":"a","manifest_path":"/other/Cargo.toml","dependencies":[],"targets":[]}]}"#;
        let error = Workspace::from_metadata(json).unwrap_err();
        assert!(error.to_string().contains("`a` lies outside"), "{error}");
    }

    #[test]
    fn a_failing_cargo_is_an_error_with_what_it_said() {
        let error = cargo_output(&root(), &["no-such-command"]).unwrap_err();
        assert!(error.to_string().contains("no such command"), "{error}");
    }
}
