//! What docs/models.md says of the providers.

use retrace_rig::{ConfigError, RigConfig, RigModel, known_providers};

const PAGE: &str = include_str!("../../../../docs/models.md");

/// The page's row of a provider: its name, and the variable that holds its key.
fn row(name: &str) -> String {
    let mut config = RigConfig::new(format!("{name}:m"));
    if name == "azure" {
        config.base_url = Some("https://mine.openai.azure.com".to_owned());
    }
    let key = match RigModel::new(config, &|_| None) {
        Ok(_) => "none".to_owned(),
        Err(ConfigError::MissingKey { variable, .. }) => format!("`{variable}`"),
        Err(error) => panic!("{name}: {error}"),
    };
    format!("| `{name}` | {key} |")
}

#[test]
fn the_page_has_every_provider_with_its_key() {
    let rows = |of: &str| of.lines().filter(|line| line.starts_with("| `")).map(str::to_owned).collect::<Vec<_>>();
    let (_, table) = PAGE.split_once("| provider | key |").expect("a table of providers");
    let table = table.split("\n\n").next().unwrap_or_default();
    let expected: Vec<_> = known_providers().into_iter().map(row).collect();
    assert_eq!(rows(table), expected, "the table of docs/models.md should read:\n{}", expected.join("\n"));
}
