//! Peers: other programs for the same work, installed at pinned versions and timed beside our own on the same data, in one
//! run. Only ratios are worth keeping: a machine has its moods.

#![expect(clippy::print_stdout, reason = "what peers prints is a table for the one who runs it")]

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::install;
use crate::workspace::cargo;

/// What a program took for a case.
#[derive(Deserialize)]
struct Told {
    name: String,
    program: String,
    seconds: f64,
    answer: Option<f64>,
    #[serde(default)]
    method: Option<String>,
}

/// A case, as both sides read it.
#[derive(Serialize)]
struct Case {
    name: String,
    #[serde(flatten)]
    work: Value,
    /// Whether both have one exact answer.
    #[serde(skip)]
    agrees: bool,
}

/// Times statistics beside ag2's verifier and scipy, and prints the table. Answers whether all exact answers agree.
///
/// # Errors
///
/// When Python or a package is missing, and when a program gives no answer.
pub fn stats(root: &Path) -> Result<bool> {
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let folder = root.join("xtask/src/peers");
    let python = install::python(&folder.join("requirements.txt"), &env::current_dir()?.join(target).join("peers"))?;
    let cases = cases(root)?;
    let input = serde_json::to_string(&cases)?;
    let mut ours = cargo(root);
    ours.args(["run", "--quiet", "--release", "--locked", "--package", "retrace-score", "--example", "peers"]);
    let ours = answers(&mut ours, &input).context("our own side gave no answer")?;
    let theirs =
        answers(Command::new(python).arg(folder.join("stats.py")), &input).context("the peers gave no answer")?;
    if !ours.iter().map(|told| &told.name).eq(cases.iter().map(|case| &case.name)) {
        bail!("our own side did not answer all cases, in their order");
    }
    let answered = |case: &Case| theirs.iter().any(|told| told.program == "ag2" && told.name == case.name);
    if let Some(case) = cases.iter().find(|case| case.agrees && !answered(case)) {
        bail!("ag2 neither answered nor refused `{}`", case.name);
    }
    let mut by_case: BTreeMap<&str, Vec<&Told>> = BTreeMap::new();
    theirs.iter().for_each(|told| by_case.entry(&told.name).or_default().push(told));
    println!("{:34} {:>10} {:>9}  {:>22}  {:>22}", "", "retrace", "", "ag2 1.2.1", "scipy 1.17");
    let mut agree = true;
    for (ours, case) in ours.iter().zip(&cases) {
        let of = |program: &str| by_case.get(&*ours.name)?.iter().copied().find(|told| told.program == program);
        let cell = |told: Option<&Told>| match told {
            None => "-".to_owned(),
            Some(Told { answer: None, .. }) => "refused".to_owned(),
            Some(told) => format!("{} {:>7.0}x", seconds(told.seconds), told.seconds / ours.seconds),
        };
        let (ag2, scipy) = (of("ag2"), of("scipy"));
        let differs =
            ag2.and_then(|told| told.answer).zip(ours.answer).filter(|(a, b)| case.agrees && (a - b).abs() > 1e-12);
        let method = ours.method.as_deref().unwrap_or_default();
        println!("{:34} {:>10} {method:>9}  {:>22}  {:>22}", ours.name, seconds(ours.seconds), cell(ag2), cell(scipy));
        if let Some((theirs, ours)) = differs {
            println!("    {theirs} there, {ours} here");
            agree = false;
        }
    }
    Ok(agree)
}

/// What a program says to these cases.
fn answers(command: &mut Command, input: &str) -> Result<Vec<Told>> {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let Some(mut stdin) = child.stdin.take() else { bail!("the program has no standard input") };
    let written = stdin.write_all(input.as_bytes());
    drop(stdin);
    // Who ends early reads no further: its status says more than a broken pipe.
    let output = child.wait_with_output()?;
    if !output.status.success() {
        bail!("it ended with {}", output.status);
    }
    written?;
    let lines = std::str::from_utf8(&output.stdout)?.lines();
    lines.map(|line| serde_json::from_str(line).with_context(|| format!("it says `{line}`"))).collect()
}

fn cases(root: &Path) -> Result<Vec<Case>> {
    let mut draws = Draws(1);
    let mut cases = Vec::new();
    let mut add = |name: String, agrees: bool, work: Value| cases.push(Case { name, work, agrees });
    for n in [12, 400, 1_000] {
        let differences = draws.differences(n, &[3]);
        add(
            format!("sign flip, {n} boundaries"),
            true,
            json!({"work": "sign_flip", "differences": differences, "scipy": true}),
        );
    }
    for (n, arms, scipy) in [(400, &[1, 2, 3, 4, 5][..], true), (200, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10], false)] {
        let differences = draws.differences(n, arms);
        let name = format!("sign flip, {n}, arms up to {}", arms.len());
        add(name, true, json!({"work": "sign_flip", "differences": differences, "scipy": scipy}));
    }
    for n in [12, 400] {
        let differences = draws.differences(n, &[3]);
        add(format!("bootstrap interval, {n}"), false, json!({"work": "interval", "differences": differences}));
    }
    for (n, samples) in [(400, 3), (1_000, 5)] {
        let name = format!("rollouts permuted, {n}, {samples} + {samples}");
        add(name, false, json!({"work": "permutation", "boundaries": draws.boundaries(n, n, samples)}));
    }
    for (n, recordings) in [(12, 3), (400, 100), (1_000, 250), (1_000, 20)] {
        let name = format!("report, {n} boundaries of {recordings}");
        let boundaries = draws.boundaries(n, recordings, 3);
        add(name, true, json!({"work": "report", "horizon": 5, "boundaries": boundaries}));
    }
    let file = root.join("tests/vectors/verifier/permutation.jsonl");
    let rows = fs::read_to_string(&file).with_context(|| format!("failed to read `{}`", file.display()))?;
    for (number, row) in rows.lines().enumerate() {
        let row: Value = serde_json::from_str(row)?;
        if row["p"].is_number() && row["ag2"] == "too_large" {
            let name = format!("vector {}: {}", number + 1, row["name"].as_str().unwrap_or_default());
            add(
                name.chars().take(34).collect(),
                true,
                json!({"work": "sign_flip", "differences": row["diffs"], "scipy": false}),
            );
        }
    }
    Ok(cases)
}

/// Counts that are the same in every run.
struct Draws(u64);

impl Draws {
    /// A whole number below `n`.
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }

    /// What a rollout wasted of five actions: mostly nothing.
    fn wasted(&mut self, harmed: bool) -> u64 {
        if harmed && self.below(3) > 0 { self.below(6) } else { self.below(10) / 9 }
    }

    fn boundaries(&mut self, n: usize, recordings: usize, samples: usize) -> Vec<Value> {
        let boundary = |number: usize| {
            let harmed = self.below(3) == 0;
            let pre: Vec<_> = (0..samples).map(|_| self.wasted(false)).collect();
            let post: Vec<_> = (0..samples).map(|_| self.wasted(harmed)).collect();
            json!({"recording": number * recordings / n, "pre": pre, "post": post})
        };
        (0..n).map(boundary).collect()
    }

    /// Differences of means of arms of these sizes, taken in turn, as fractions.
    fn differences(&mut self, n: usize, arms: &[u64]) -> Vec<String> {
        let difference = |number: usize| {
            let (pre, post) = (arms[number % arms.len()], arms[self.below(arms.len() as u64) as usize]);
            let harmed = self.below(3) == 0;
            let sum = |draws: &mut Self, of, harmed| (0..of).map(|_| draws.wasted(harmed)).sum::<u64>() as i64;
            let (before, after) = (sum(self, pre, false), sum(self, post, harmed));
            format!("{}/{}", after * pre as i64 - before * post as i64, pre * post)
        };
        (0..n).map(difference).collect()
    }
}

/// `1.23 ms`
fn seconds(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 1e-3 => format!("{:.1} µs", seconds * 1e6),
        seconds if seconds < 1.0 => format!("{:.2} ms", seconds * 1e3),
        seconds => format!("{seconds:.2} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_the_same_in_every_run_and_within_their_bounds() {
        let boundaries = |_| Draws(1).boundaries(30, 10, 3);
        assert_eq!(boundaries(0), boundaries(1));
        let counts = boundaries(0).into_iter().flat_map(|at| at["post"].as_array().cloned()).flatten();
        let counts: Vec<_> = counts.filter_map(|count| count.as_u64()).collect();
        assert!(counts.len() == 90 && counts.iter().all(|&count| count <= 5) && counts.iter().any(|&count| count > 0));
        assert_eq!(Draws(1).differences(3, &[2]).len(), 3);
    }

    #[test]
    fn times_are_told_in_a_unit_of_their_size() {
        assert_eq!([2e-6, 2e-3, 2.0].map(seconds), ["2.0 µs", "2.00 ms", "2.00 s"]);
    }
}
