//! What docs/tools.md says of the settings.

use std::collections::BTreeSet;

use retrace_mcp::McpConfig;

const PAGE: &str = include_str!("../../../../docs/tools.md");

#[test]
fn the_page_has_every_setting_and_no_other() {
    let refusal = toml::from_str::<McpConfig>("no_such_key = 1").unwrap_err().to_string();
    let (_, expected) = refusal.split_once("expected one of ").unwrap();
    let settings: BTreeSet<&str> = expected.split('`').skip(1).step_by(2).collect();
    let (_, section) = PAGE.split_once("## All settings").unwrap();
    let (table, _) = section.split_once("\n\n`folder`").unwrap();
    let keys = table.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`')).map(|(key, _)| key);
    assert_eq!(keys.collect::<BTreeSet<_>>(), settings);
}

#[test]
fn the_configurations_of_the_page_are_right() {
    let tables = PAGE.split("\n\n").filter(|block| block.starts_with("    [environments.")).flat_map(|block| {
        let lines: Vec<_> = block.lines().map(|line| line.strip_prefix("    ").unwrap_or(line)).collect();
        let table: toml::Table = toml::from_str(&lines.join("\n")).unwrap();
        table["environments"].as_table().unwrap().values().cloned().collect::<Vec<_>>()
    });
    let mut n_mcp = 0;
    for table in tables {
        let mut table = table.as_table().unwrap().clone();
        if table.remove("kind").unwrap().as_str() == Some("mcp") {
            let _: McpConfig = table.try_into().unwrap();
            n_mcp += 1;
        }
    }
    assert_eq!(n_mcp, 3);
}
