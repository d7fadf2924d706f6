//! Floors: which crate may use which, and what the lower floors never carry.
//!
//! The table is that of `docs/architecture.md`, row by row. A crate without a row is a finding, and so is a row without
//! a crate.

use std::fs;

use anyhow::{Context, Result, ensure};

use crate::Finding;
use crate::workspace::{Member, Workspace, cargo_output};

/// One crate's place in the house.
#[derive(Debug, Clone, Copy)]
pub struct Room {
    name: &'static str,
    floor: u8,
    arrows: Arrows,
}

#[derive(Debug, Clone, Copy)]
enum Arrows {
    Only(&'static [&'static str]),
    /// Any crate of a lower floor.
    Down,
}

const fn room(floor: u8, name: &'static str, uses: &'static [&'static str]) -> Room {
    Room { name, floor, arrows: Arrows::Only(uses) }
}

const fn roof(floor: u8, name: &'static str) -> Room {
    Room { name, floor, arrows: Arrows::Down }
}

/// Every crate, floor by floor, and those of ours that it may use.
#[rustfmt::skip]
pub const HOUSE: &[Room] = &[
    room(0, "retrace-events", &[]),
    room(0, "retrace-stats", &[]),
    room(0, "retrace-testing", &[]),
    room(1, "retrace-model", &["retrace-events"]),
    room(1, "retrace-env", &["retrace-events"]),
    room(1, "retrace-score", &["retrace-events", "retrace-stats"]),
    room(1, "retrace-formats", &["retrace-events"]),
    room(2, "retrace-strategies", &["retrace-events", "retrace-model"]),
    room(2, "retrace-journal", &["retrace-events", "retrace-score"]),
    room(2, "retrace-report", &["retrace-events", "retrace-stats", "retrace-score"]),
    room(3, "retrace-agent", &["retrace-events", "retrace-model", "retrace-env", "retrace-strategies"]),
    room(4, "retrace-sim", &["retrace-events", "retrace-model", "retrace-env", "retrace-agent"]),
    room(4, "retrace-process", &[]),
    room(4, "retrace-rig", &["retrace-events", "retrace-model"]),
    room(4, "retrace-verifier", &["retrace-events", "retrace-model", "retrace-env", "retrace-strategies",
                                  "retrace-agent", "retrace-score", "retrace-journal"]),
    room(5, "retrace-mcp", &["retrace-events", "retrace-env", "retrace-process"]),
    room(5, "retrace-command", &["retrace-events", "retrace-model", "retrace-env", "retrace-strategies",
                                 "retrace-agent", "retrace-process"]),
    roof(6, "retrace-cli"),
    room(7, "retrace-calibration", &["retrace-events", "retrace-stats", "retrace-score", "retrace-strategies",
                                     "retrace-sim", "retrace-verifier"]),
    room(7, "retrace-tests", &["retrace-cli"]),
    room(7, "xtask", &[]),
];

/// The highest floor whose async code is plain futures, with no runtime and no transport.
pub const LAST_PLAIN_FLOOR: u8 = 3;

/// What only tests use: it reads files, and panics.
pub const FOR_TESTS: &str = "retrace-testing";

/// The core crate whose business is a file: it must sync one.
pub const HOLDS_A_FILE: &str = "retrace-journal";

/// The file of the table.
const HERE: &str = "xtask/src/tidy/floors.rs";

/// Where the table stands for people.
const DOCUMENT: &str = "docs/architecture.md";

/// Async runtimes, HTTP clients, and what these stand on.
const TRANSPORTS: &[&str] = &[
    "actix-rt",
    "async-executor",
    "async-global-executor",
    "async-io",
    "async-std",
    "attohttpc",
    "awc",
    "compio",
    "curl",
    "futures-executor",
    "glommio",
    "h2",
    "hyper",
    "hyper-util",
    "isahc",
    "minreq",
    "mio",
    "monoio",
    "native-tls",
    "openssl",
    "pollster",
    "quinn",
    "reqwest",
    "rustls",
    "smol",
    "surf",
    "tokio",
    "tungstenite",
    "ureq",
];

impl Room {
    /// The room of the crate of this name.
    pub fn of(name: &str) -> Option<&'static Room> {
        HOUSE.iter().find(|room| room.name == name)
    }

    /// The crate's floor.
    pub fn floor(&self) -> u8 {
        self.floor
    }

    fn is_plain(&self) -> bool {
        self.floor <= LAST_PLAIN_FLOOR
    }

    fn may_use(&self, name: &str) -> bool {
        let goes_down = Room::of(name).is_some_and(|other| other.floor < self.floor);
        goes_down
            && match self.arrows {
                Arrows::Only(names) => names.contains(&name),
                Arrows::Down => name != FOR_TESTS,
            }
    }

    /// The row of the document, but for what the crate is.
    fn row(&self) -> String {
        let uses = match self.arrows {
            Arrows::Only([]) => "–".to_owned(),
            Arrows::Only(names) => names.join(", ").replace("retrace-", ""),
            Arrows::Down => "any".to_owned(),
        };
        format!("| {} | `{}` | … | {uses} |", self.floor, self.name)
    }
}

/// Every forbidden arrow, and every transport on a floor that has none, with its default features.
///
/// # Errors
///
/// When `cargo tree` fails or its output cannot be read.
pub fn check(workspace: &Workspace) -> Result<Vec<Finding>> {
    let mut findings = arrows(&workspace.members);
    findings.extend(vacant(&workspace.members));
    let document = fs::read_to_string(workspace.root.join(DOCUMENT));
    findings.extend(documented(&document.with_context(|| format!("failed to read `{DOCUMENT}`"))?));
    for member in &workspace.members {
        if Room::of(&member.name).is_some_and(Room::is_plain) {
            let tree = normal_tree(workspace, &member.name)?;
            findings.extend(transports(member, &tree)?);
        }
    }
    Ok(findings)
}

/// The packages that a crate is built with, as `cargo tree` prints them, each behind its depth.
fn normal_tree(workspace: &Workspace, name: &str) -> Result<String> {
    // Asked crate by crate: the features that another crate switches on are not this one's.
    let args = [
        "tree",
        "--package",
        name,
        "--edges=normal",
        "--prefix=depth",
        "--format={p}",
        "--charset=ascii",
        "--color=never",
        "--locked",
    ];
    cargo_output(&workspace.root, &args)
}

/// Every arrow between crates of ours that the table does not allow.
pub fn arrows(members: &[Member]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for member in members {
        let manifest = format!("{}/Cargo.toml", member.folder);
        let Some(room) = Room::of(&member.name) else {
            let advice = format!("`{}` has no floor: add it to the table in `{HERE}` and to `{DOCUMENT}`", member.name);
            findings.push(Finding::new(manifest, advice));
            continue;
        };
        for used in member.uses.iter().filter(|used| !room.may_use(used)) {
            let advice = format!(
                "`{}` may not use `{used}`: remove the dependency; a new arrow is a decision, with its reason in `docs/decisions.md`",
                member.name
            );
            findings.push(Finding::new(&manifest, advice));
        }
    }
    findings
}

/// Every room without a crate.
pub fn vacant(members: &[Member]) -> Vec<Finding> {
    let vacant = HOUSE.iter().filter(|room| members.iter().all(|member| member.name != room.name));
    vacant.map(|room| Finding::new(HERE, format!("there is no `{}`: remove its row", room.name))).collect()
}

/// Every row that only the table here has, or only that of the document.
pub fn documented(document: &str) -> Vec<Finding> {
    let row = |line: &str| match line.strip_prefix("| ")?.strip_suffix(" |")?.split(" | ").collect::<Vec<_>>()[..] {
        [floor, name, _, uses] if name.starts_with('`') => Some(format!("| {floor} | {name} | … | {uses} |")),
        _ => None,
    };
    let written: Vec<_> = document.lines().filter_map(row).collect();
    let rows: Vec<_> = HOUSE.iter().map(Room::row).collect();
    let missing = rows.iter().filter(|row| !written.contains(row)).map(|row| format!("lacks the row `{row}`"));
    let foreign = written.iter().filter(|row| !rows.contains(row));
    let foreign = foreign.map(|row| format!("has the row `{row}`, which the table in `{HERE}` lacks"));
    missing.chain(foreign).map(|advice| Finding::new(DOCUMENT, advice)).collect()
}

/// Every transport in `tree`, the output of `cargo tree --edges=normal --prefix=depth` for `member`, with the chain of
/// packages that brings it.
///
/// # Errors
///
/// When a line has not the shape `<depth><name> …`, or the tree is not that of `member`.
pub fn transports(member: &Member, tree: &str) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    let mut chain: Vec<&str> = Vec::new();
    for line in tree.lines() {
        let (depth, package) = node(line).with_context(|| format!("`cargo tree` printed `{line}`"))?;
        ensure!(depth <= chain.len(), "`cargo tree` skipped a depth at `{line}`");
        chain.truncate(depth);
        chain.push(package);
        if TRANSPORTS.contains(&package) {
            let advice = format!(
                "`{}` may carry no runtime and no transport, but brings `{package}`: switch off the feature that needs it ({})",
                member.name,
                chain.join(" > ")
            );
            findings.push(Finding::new(format!("{}/Cargo.toml", member.folder), advice));
        }
    }
    ensure!(
        tree.lines().next().and_then(node) == Some((0, member.name.as_str())),
        "`cargo tree` did not answer for `{}`",
        member.name
    );
    Ok(findings)
}

/// `3serde v1.0.0` is `serde` at depth 3.
fn node(line: &str) -> Option<(usize, &str)> {
    let name_at = line.find(|c: char| !c.is_ascii_digit())?;
    let (depth, rest) = line.split_at(name_at);
    let name = rest.split(' ').next().filter(|name| !name.is_empty())?;
    Some((depth.parse().ok()?, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(name: &str, uses: &[&str]) -> Member {
        Member {
            name: name.into(),
            folder: format!("crates/{name}"),
            uses: uses.iter().map(|it| it.to_string()).collect(),
            has_example: true,
        }
    }

    #[test]
    fn every_arrow_of_the_table_goes_to_a_lower_floor() {
        for room in HOUSE {
            if let Arrows::Only(names) = room.arrows {
                for name in names {
                    let used = Room::of(name).unwrap_or_else(|| panic!("{name} has no room"));
                    assert!(used.floor < room.floor, "{} to {name}", room.name);
                }
            }
        }
    }

    #[test]
    fn every_crate_has_one_room() {
        let mut names: Vec<_> = HOUSE.iter().map(|room| room.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), HOUSE.len());
    }

    #[test]
    fn an_allowed_arrow_is_no_finding() {
        let members =
            [member("retrace-model", &["retrace-events"]), member("retrace-cli", &["retrace-sim", "retrace-verifier"])];
        assert_eq!(arrows(&members), []);
    }

    #[test]
    fn an_arrow_that_goes_up_is_found() {
        let found = arrows(&[member("retrace-events", &["retrace-model"])]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].place, "crates/retrace-events/Cargo.toml");
        assert!(found[0].advice.starts_with("`retrace-events` may not use `retrace-model`"), "{}", found[0]);
    }

    #[test]
    fn an_arrow_that_goes_down_but_is_not_in_the_table_is_found() {
        assert_eq!(arrows(&[member("retrace-formats", &["retrace-stats"])]).len(), 1);
        assert_eq!(arrows(&[member("retrace-sim", &["retrace-strategies"])]).len(), 1);
    }

    #[test]
    fn the_program_may_not_use_what_stands_above_it() {
        assert_eq!(arrows(&[member("retrace-cli", &["xtask"])]).len(), 1);
    }

    #[test]
    fn a_crate_without_a_floor_is_found() {
        let found = arrows(&[member("retrace-shiny", &[])]);
        assert_eq!(found.len(), 1);
        assert!(found[0].advice.contains("`retrace-shiny` has no floor"), "{}", found[0]);
    }

    #[test]
    fn a_use_of_a_crate_without_a_floor_is_found() {
        assert_eq!(arrows(&[member("retrace-cli", &["retrace-shiny"])]).len(), 1);
    }

    #[test]
    fn what_only_tests_use_is_found_in_the_code_of_any_crate() {
        for name in ["retrace-stats", "retrace-cli"] {
            assert_eq!(arrows(&[member(name, &[FOR_TESTS])]).len(), 1, "{name}");
        }
    }

    #[test]
    fn a_room_without_a_crate_is_found() {
        let mut members: Vec<_> = HOUSE.iter().map(|room| member(room.name, &[])).collect();
        assert_eq!(vacant(&members), []);
        members.retain(|member| member.name != "retrace-sim");
        let advice = "there is no `retrace-sim`: remove its row";
        assert_eq!(vacant(&members), [Finding::new(HERE, advice)]);
    }

    #[test]
    fn a_row_that_the_document_lacks_or_has_otherwise_is_found() {
        let rows: Vec<_> = HOUSE.iter().map(|room| room.row().replace("…", "what it is")).collect();
        let document = rows.join("\n");
        assert_eq!(documented(&document), []);
        let other = document.replace("| `retrace-sim` |", "| `retrace-simulator` |");
        let [lacks, has] = &documented(&other)[..] else { panic!("{other}") };
        assert!(lacks.advice.starts_with("lacks the row `| 4 | `retrace-sim` | … | events, "), "{lacks}");
        assert!(has.advice.starts_with("has the row `| 4 | `retrace-simulator` | … | events, "), "{has}");
        assert_eq!(documented("").len(), HOUSE.len());
    }

    const TREE: &str = "\
0retrace-env v0.1.0 (/ws/crates/retrace-env)
1jsonschema v0.61.2
2reqwest v0.12.0
3hyper v1.0.0
1async-lock v3.5.0
1serde v1.0.229 (*)
";

    #[test]
    fn a_transport_on_a_low_floor_is_found_with_the_chain_that_brings_it() {
        let found = transports(&member("retrace-env", &[]), TREE).unwrap();
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].advice.contains("(retrace-env > jsonschema > reqwest)"), "{}", found[0]);
        assert!(found[1].advice.contains("brings `hyper`"), "{}", found[1]);
    }

    #[test]
    fn a_runtime_on_a_low_floor_is_found() {
        let tree = "0retrace-agent v0.1.0 (/ws)\n1futures-core v0.3.34\n1tokio v1.54.0\n";
        let found = transports(&member("retrace-agent", &[]), tree).unwrap();
        assert_eq!(found.len(), 1);
        assert!(found[0].advice.contains("retrace-agent > tokio"), "{}", found[0]);
    }

    #[test]
    fn a_package_whose_name_only_begins_like_a_transport_is_none() {
        let tree = "0retrace-env v0.1.0 (/ws)\n1tokio-free v1.0.0\n1async-lock v3.5.0\n";
        assert_eq!(transports(&member("retrace-env", &[]), tree).unwrap(), []);
    }

    #[test]
    fn a_tree_that_cannot_be_read_is_no_proof() {
        let env = member("retrace-env", &[]);
        for tree in ["", "tokio v1.0.0\n", "0retrace-env v0.1.0\n2tokio v1.0.0\n", "0serde v1.0.0\n", "0\n"] {
            assert!(transports(&env, tree).is_err(), "{tree:?}");
        }
    }

    #[test]
    fn floors_0_to_3_are_plain() {
        let plain = |name| Room::of(name).unwrap().is_plain();
        assert!(plain("retrace-events") && plain("retrace-agent"));
        assert!(!plain("retrace-verifier") && !plain("retrace-cli"));
    }
}
