//! The code base: a world where a change needs what only a read of the current text shows.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use retrace_env::{FnTool, NoArguments, Toolbox, ToolboxBuilder};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::draws::Draws;
use crate::world::World;

const MODULES: [&str; 16] = [
    "atlas", "border", "circle", "compass", "contour", "grid", "layer", "legend", "marker", "parcel", "plan", "region",
    "scale", "survey", "tile", "zone",
];

const FUNCTIONS: [&str; 8] = ["area", "bounds", "center", "extent", "length", "outline", "radius", "width"];

/// A code base in which a function is to be renamed wherever it is called.
///
/// | tool | arguments | answers |
/// |---|---|---|
/// | `list_files` | – | the paths of all files |
/// | `read_file` | `path` | the version and the lines of a file |
/// | `edit_file` | `path`, `version`, `line`, `text` | the new version, once the line was replaced |
/// | `run_tests` | – | whether every file is as it should be |
///
/// An edit fails unless it names the current version, which depends on the text alone. Failing tests are a call that
/// worked. The tools are declared independent, so the reads of one response run side by side; each call takes the world for
/// itself while it works, and the agent never edits beside anything else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeBase {
    files: BTreeMap<String, Vec<String>>,
    from: String,
    to: String,
    /// The files as they should be.
    right: BTreeMap<String, Vec<String>>,
}

/// Why the code base refuses a call.
#[derive(Debug, thiserror::Error)]
enum CodeRefusal {
    #[error("there is no file `{path}`")]
    UnknownFile { path: String },
    #[error("version `{version}` of {path} is not the current one, read it again")]
    Stale { path: String, version: String },
    #[error("{path} has {n_lines} lines, there is no line {line}")]
    UnknownLine { path: String, n_lines: usize, line: usize },
    #[error("one line is needed, not several")]
    SeveralLines,
}

#[derive(Deserialize, JsonSchema)]
struct ReadFile {
    /// The path, as `list_files` gives it.
    path: String,
}

#[derive(Deserialize, JsonSchema)]
struct EditFile {
    /// The path, as `list_files` gives it.
    path: String,
    /// The version that was read.
    version: String,
    /// Which line to replace, from 1.
    line: usize,
    /// What the line shall be.
    text: String,
}

impl CodeBase {
    /// A code base of ten files, about half of which call the function.
    pub fn new(seed: u64) -> Self {
        Self::with_files(seed, 10)
    }

    /// A code base of so many files, at least one. The first of them calls the function, and about half of the others.
    pub fn with_files(seed: u64, n_files: usize) -> Self {
        let mut draws = Draws::new(seed);
        let (mut modules, mut functions) = (MODULES, FUNCTIONS);
        draws.shuffle(&mut modules);
        draws.shuffle(&mut functions);
        let [from, to, other, ..] = functions;
        let files: BTreeMap<_, _> = (0..n_files.max(1))
            .map(|index| {
                let module = modules[index % modules.len()];
                let number = index / modules.len();
                let path = if number == 0 { format!("src/{module}.rs") } else { format!("src/{module}_{number}.rs") };
                (path, lines(&mut draws, module, from, other, index == 0))
            })
            .collect();
        let (old, new) = (format!("{from}("), format!("{to}("));
        let right = files
            .iter()
            .map(|(path, lines)| (path.clone(), lines.iter().map(|line| line.replace(&old, &new)).collect()));
        Self { right: right.collect(), files, from: from.to_owned(), to: to.to_owned() }
    }

    /// The paths of the files that are not yet as they should be.
    pub fn to_change(&self) -> Vec<&str> {
        let wrong = self.files.iter().filter(|(path, lines)| self.right.get(*path) != Some(lines));
        wrong.map(|(path, _)| &**path).collect()
    }

    /// The lines of a file.
    pub fn lines(&self, path: &str) -> Option<&[String]> {
        self.files.get(path).map(Vec::as_slice)
    }

    fn list_files(&self) -> String {
        let paths: Vec<_> = self.files.keys().map(String::as_str).collect();
        format!("files: {}", paths.join(", "))
    }

    fn read_file(&self, path: String) -> Result<String, CodeRefusal> {
        let Some(lines) = self.files.get(&path) else { return Err(CodeRefusal::UnknownFile { path }) };
        let numbered = lines.iter().enumerate().map(|(index, line)| format!("\n{}: {line}", index + 1));
        Ok(format!("file {path} at version {}{}", version(lines), numbered.collect::<String>()))
    }

    fn edit_file(&mut self, edit: EditFile) -> Result<String, CodeRefusal> {
        let EditFile { path, version: read, line, text } = edit;
        let Some(lines) = self.files.get_mut(&path) else { return Err(CodeRefusal::UnknownFile { path }) };
        if read != version(lines) {
            return Err(CodeRefusal::Stale { path, version: read });
        }
        if text.contains(['\n', '\r']) {
            return Err(CodeRefusal::SeveralLines);
        }
        let n_lines = lines.len();
        match line.checked_sub(1).and_then(|index| lines.get_mut(index)) {
            Some(old) => *old = text,
            None => return Err(CodeRefusal::UnknownLine { path, n_lines, line }),
        }
        Ok(format!("edited {path} line {line}, now at version {}", version(lines)))
    }

    fn run_tests(&self) -> String {
        match self.to_change().len() {
            0 => "tests passed".to_owned(),
            n_wrong => format!("tests failed: {n_wrong} of {} files are not right", self.files.len()),
        }
    }
}

/// Some lines of code, with one or two calls of the function or none.
fn lines(draws: &mut Draws, module: &str, from: &str, other: &str, is_called: bool) -> Vec<String> {
    let mut number = || draws.below(90) + 10;
    let mut lines = vec![
        format!("//! The {module}."),
        format!("pub fn {module}_size() -> u32 {{ {} }}", number()),
        format!("let edge = {other}({}, {});", number(), number()),
    ];
    let call = format!("let {module} = {from}({}, {});", number(), number());
    let second = format!("check({from}({}) < {});", number(), number());
    if is_called || draws.chance(0.5) {
        lines.insert(1 + draws.below(3), call);
        if draws.chance(0.3) {
            lines.push(second);
        }
    }
    lines
}

/// The version of a text: the FNV-1a hash of its lines, with 64 bits.
fn version(lines: &[String]) -> String {
    let bytes = lines.iter().flat_map(|line| line.bytes().chain([b'\n']));
    let hash =
        bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    format!("v-{hash:016x}")
}

impl World for CodeBase {
    fn tools(world: &Arc<Mutex<Self>>) -> ToolboxBuilder {
        Toolbox::builder()
            .independent(true)
            .tool(FnTool::on(world, "list_files", "Lists all files.", |code: &mut Self, _: NoArguments| {
                code.list_files()
            }))
            .tool(FnTool::on(world, "read_file", "Reads a file.", |code: &mut Self, call: ReadFile| {
                code.read_file(call.path)
            }))
            .tool(FnTool::on(world, "edit_file", "Replaces a line of a file.", |code: &mut Self, call: EditFile| {
                code.edit_file(call)
            }))
            .tool(FnTool::on(world, "run_tests", "Runs the tests.", |code: &mut Self, _: NoArguments| code.run_tests()))
    }

    fn instructions(&self) -> String {
        "You work on a code base. Read a file before you edit it; an edit needs the version that you read.".to_owned()
    }

    fn request(&self) -> String {
        format!("Please rename {} to {} wherever it is called, then run the tests.", self.from, self.to)
    }
}
