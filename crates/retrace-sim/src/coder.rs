//! The agent of the code base.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::json;

use crate::agent::{Knowledge, Move, SimulatedAgent};
use crate::draws::Draws;

/// An agent that renames a function in a [`CodeBase`](crate::CodeBase).
///
/// It reads up to three files at once. With the whole context and without a temperature it wastes nothing. It lists
/// and reads again what its context does not show, and when that does not show the task, it asks for it.
pub type Coder = SimulatedAgent<CodeKnowledge>;

/// How many files are read in one response.
const READS_AT_ONCE: usize = 3;

/// What can be known of a code base.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CodeKnowledge {
    /// The function to rename, and its new name.
    task: Option<(String, String)>,
    /// The paths of all files.
    listed: Option<Vec<String>>,
    files: BTreeMap<String, KnownFile>,
    tests_passed: Option<bool>,
}

/// What can be known of a file that was read.
#[derive(Clone, Debug, Default, PartialEq)]
struct KnownFile {
    version: String,
    /// The lines that matter: those that call the function.
    calls: BTreeMap<usize, String>,
}

static FACTS: LazyLock<Regex> = LazyLock::new(|| {
    // In a transcript a line break is spelled `\n`, so there are no word borders, and ` | ` ends a result.
    let facts = r"(?x)
        rename\ (?<from> [a-z_]+ )\ to\ (?<to> [a-z_]+ )
        | files:\ (?<files> [a-z_/.0-9]+ (?: ,\ [a-z_/.0-9]+ )* )
        | file\ (?<file> [a-z_/.0-9]+ )\ at\ version\ (?<version> v-[0-9a-f]+ )
        | (?: \n | \\n )(?<line> [0-9]+ ):\ (?<text> [^\n\\|]* )
        | edited\ (?<edited> [a-z_/.0-9]+ )\ line\ (?<edited_line> [0-9]+ ),\ now\ at\ version\ (?<now> v-[0-9a-f]+ )
        | of\ (?<stale> [a-z_/.0-9]+ )\ is\ not\ the\ current\ one
        | tests\ (?<tests> passed | failed )";
    Regex::new(facts).expect("the expression is a constant that tests use")
});

impl CodeKnowledge {
    /// Whether a line of code matters: before the task is known, each does.
    fn matters(&self, line: &str) -> bool {
        self.task.as_ref().is_none_or(|(from, _)| is_call(from, line))
    }

    fn edit(&self, (from, to): &(String, String)) -> Option<Move> {
        let (path, file) = self.files.iter().find(|(_, file)| !file.calls.is_empty())?;
        let (line, text) = file.calls.first_key_value()?;
        let text = text.replace(&format!("{from}("), &format!("{to}("));
        Some(call("edit_file", json!({"path": path, "version": file.version, "line": line, "text": text})))
    }
}

impl Knowledge for CodeKnowledge {
    const AGENT: &'static str = "sim:coder";

    fn read(&mut self, text: &str) {
        let mut current: Option<String> = None;
        for found in FACTS.captures_iter(text) {
            let group = |name| found.name(name).map(|found| found.as_str());
            let number = |name| group(name).and_then(|digits| digits.parse().ok());
            if let (Some(from), Some(to)) = (group("from"), group("to")) {
                self.files.values_mut().for_each(|file| file.calls.retain(|_, line| is_call(from, line)));
                self.task = Some((from.to_owned(), to.to_owned()));
            } else if let Some(files) = group("files") {
                self.listed = Some(files.split(", ").map(str::to_owned).collect());
            } else if let (Some(path), Some(version)) = (group("file"), group("version")) {
                current = Some(path.to_owned());
                let file = KnownFile { version: version.to_owned(), calls: BTreeMap::new() };
                self.files.insert(path.to_owned(), file);
            } else if let (Some(line), Some(text)) = (number("line"), group("text")) {
                let current = current.as_ref().filter(|_| self.matters(text));
                if let Some(file) = current.and_then(|path| self.files.get_mut(path)) {
                    file.calls.insert(line, text.trim_end().to_owned());
                }
            } else if let (Some(path), Some(line), Some(now)) = (group("edited"), number("edited_line"), group("now")) {
                self.tests_passed = None;
                // Of a file whose text is not known, nothing is known after an edit either.
                if let Some(file) = self.files.get_mut(path) {
                    now.clone_into(&mut file.version);
                    file.calls.remove(&line);
                }
            } else if let Some(path) = group("stale") {
                self.files.remove(path);
            } else if let Some(tests) = group("tests") {
                self.tests_passed = Some(tests == "passed");
            }
        }
    }

    fn next(&self) -> Move {
        let Some(task) = &self.task else { return Move::Say("What shall I change?".to_owned()) };
        let Some(listed) = &self.listed else { return call("list_files", json!({})) };
        if let Some(edit) = self.edit(task) {
            return edit;
        }
        let unread = listed.iter().filter(|path| !self.files.contains_key(*path)).take(READS_AT_ONCE);
        let reads: Vec<_> = unread.map(|path| ("read_file", json!({"path": path}))).collect();
        if !reads.is_empty() {
            return Move::Call(reads);
        }
        match self.tests_passed {
            None => call("run_tests", json!({})),
            Some(true) => Move::Say("It is renamed, and the tests pass.".to_owned()),
            Some(false) => Move::Say("The tests fail, and I do not see why.".to_owned()),
        }
    }

    fn other(&self, draws: &mut Draws) -> Option<Move> {
        // One run of the tests for every three reads.
        if draws.chance(0.25) {
            return Some(call("run_tests", json!({})));
        }
        let paths = self.listed.as_ref()?;
        draws.pick(paths).map(|path| call("read_file", json!({"path": path})))
    }

    fn facts(&self) -> Vec<String> {
        let mut facts = Vec::new();
        facts.extend(self.task.iter().map(|(from, to)| format!("The task is to rename {from} to {to}.")));
        facts.extend(self.listed.iter().map(|paths| format!("files: {}", paths.join(", "))));
        facts.extend(self.files.iter().map(|(path, KnownFile { version, calls })| {
            let calls = calls.iter().map(|(line, text)| format!("\n{line}: {text}"));
            format!("file {path} at version {version}{}", calls.collect::<String>())
        }));
        facts.extend(self.tests_passed.map(|passed| format!("tests {}", if passed { "passed" } else { "failed" })));
        facts
    }
}

fn is_call(function: &str, line: &str) -> bool {
    line.contains(&format!("{function}("))
}

fn call(name: &'static str, arguments: serde_json::Value) -> Move {
    Move::Call(vec![(name, arguments)])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn knowledge(text: &str) -> CodeKnowledge {
        let mut knowledge = CodeKnowledge::default();
        knowledge.read(text);
        knowledge
    }

    fn phrase() -> impl Strategy<Value = String> {
        prop_oneof![
            Just("Please rename area to extent wherever it is called".to_owned()),
            "files: src/a\\.rs(, src/[b-d]\\.rs)?",
            "file src/[a-c]\\.rs at version v-[0-9a-f]{4}(\n[1-9]: (let x = area\\(2\\);|let y = length\\(3\\);)){0,3}",
            "edited src/[a-c]\\.rs line [1-9], now at version v-[0-9a-f]{4}",
            "version `v-7` of src/[a-c]\\.rs is not the current one, read it again",
            "tests (passed|failed: 2 of 3 files are not right)",
        ]
    }

    proptest! {
        #[test]
        fn whoever_reads_all_facts_knows_the_same(phrases in prop::collection::vec(phrase(), 0..20)) {
            let known = knowledge(&phrases.join("\n"));
            let told = knowledge(&known.facts().join("\n"));
            prop_assert_eq!(told.next(), known.next());
            prop_assert_eq!(told, known);
        }

        #[test]
        fn a_transcript_tells_as_much_as_the_texts(phrases in prop::collection::vec(phrase(), 0..20)) {
            let mut known = CodeKnowledge::default();
            phrases.iter().for_each(|phrase| known.read(phrase));
            let lines = phrases.iter().map(|phrase| phrase.replace('\n', "\\n"));
            let transcript: Vec<_> = lines.map(|line| format!("tool: f ok: {line} | f ok: ")).collect();
            prop_assert_eq!(&knowledge(&transcript.join("\n")), &known);
            let summary = known.facts().join("\n").replace('\n', "\\n");
            prop_assert_eq!(&knowledge(&format!("earlier summary: {summary}")), &known);
        }
    }
}
