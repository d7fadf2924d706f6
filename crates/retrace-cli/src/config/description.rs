//! What a configuration says, for the journal of a run: all that decides its results, and no secret.

use indexmap::IndexMap;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// What decides the results of a run beside its numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Description {
    /// The settings of agent, models and environments.
    pub(crate) setup: Map<String, Value>,
    /// The tables of the strategies.
    pub(crate) strategies: IndexMap<String, Value>,
}

/// The tables that decide what comes out.
const SETUP: [&str; 5] = ["agent", "models", "environments", "outcome", "token_counter"];

/// Settings of these tables that decide only how long it takes, what it costs, or what a recorded run was like.
const NO_MATTER: [&str; 7] = [
    "api_key_env",
    "compaction",
    "prices",
    "prompt_cache",
    "requests_per_minute",
    "timeout_seconds",
    "tokens_per_minute",
];

/// Variables and headers: of these only the names are kept.
const SECRET: [&str; 2] = ["env", "headers"];

/// Programs and their arguments, in which people put keys: of these only a hash is kept; the program itself comes first.
const COMMAND: &str = "command";
const ARGUMENTS: &str = "args";

impl Description {
    /// Describes a configuration, given its text, which is known to be one.
    pub(crate) fn of(text: &str) -> Self {
        let Ok(Value::Object(mut tables)) = toml::from_str(text) else { return Self::default() };
        let strategies = match tables.shift_remove("strategies") {
            Some(Value::Object(strategies)) => {
                strategies.into_iter().map(|(name, table)| (name, clean(table))).collect()
            }
            _ => IndexMap::new(),
        };
        let setup = tables.into_iter().filter(|(name, _)| SETUP.contains(&&**name));
        Self { setup: setup.map(|(name, table)| (name, clean(table))).collect(), strategies }
    }
}

fn clean(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.into_iter().filter(|(name, _)| !NO_MATTER.contains(&&**name));
            let fields = fields.map(|(name, value)| {
                let value = match (&*name, value) {
                    (name, Value::Object(secrets)) if SECRET.contains(&name) => {
                        secrets.into_iter().map(|(name, _)| name).collect()
                    }
                    (COMMAND, value) => hashed(value, 1),
                    (ARGUMENTS, value) => hashed(value, 0),
                    (_, value) => clean(value),
                };
                (name, value)
            });
            Value::Object(fields.collect())
        }
        Value::Array(values) => values.into_iter().map(clean).collect(),
        Value::String(text) => Value::String(without_credentials(text)),
        other => other,
    }
}

/// A list with a hash of each text but the first `n_plain`.
fn hashed(value: Value, n_plain: usize) -> Value {
    let hash = |value: Value| match value {
        Value::String(text) => {
            let hash = Sha256::digest(text.as_bytes());
            Value::String(format!("sha256:{}", hash[..8].iter().map(|byte| format!("{byte:02x}")).collect::<String>()))
        }
        other => clean(other),
    };
    match value {
        Value::Array(values) => values
            .into_iter()
            .enumerate()
            .map(|(index, value)| if index < n_plain { value } else { hash(value) })
            .collect(),
        other => other,
    }
}

/// An address without a user, a password and a query.
fn without_credentials(text: String) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text };
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let (host, path) = rest.split_once('/').map_or((rest, None), |(host, path)| (host, Some(path)));
    let host = host.rsplit('@').next().unwrap_or_default();
    match path {
        Some(path) => format!("{scheme}://{host}/{path}"),
        None => format!("{scheme}://{host}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn no_secret_is_described() {
        let text = r#"
            horizon = 3
            [agent]
            model = "big"
            instructions = "be brief"
            [models.big]
            model = "openai:gpt"
            base_url = "https://me:s3cret@host/v1?key=s3cret"
            api_key_env = "MY_KEY"
            timeout_seconds = 9
            [environments.files]
            kind = "mcp"
            command = "npx"
            args = ["--token=s3cret", "folder"]
            env = { TOKEN = "s3cret", A = "b" }
            headers = { authorization = "Bearer s3cret" }
            [strategies.own]
            kind = "program"
            command = ["python", "s3cret"]
            [strategies.tail]
            kind = "tail_window"
            target = 4
        "#;
        let Description { setup, strategies } = Description::of(text);
        let written = format!("{} {}", json!(setup), json!(strategies));
        assert!(!written.contains("s3cret") && !written.contains("MY_KEY"), "{written}");
        assert_eq!(setup["models"]["big"], json!({"model": "openai:gpt", "base_url": "https://host/v1"}));
        let files = &setup["environments"]["files"];
        assert_eq!(files["env"], json!(["TOKEN", "A"]));
        assert_eq!(files["headers"], json!(["authorization"]));
        assert_eq!(files["command"], "npx");
        assert_eq!(strategies["tail"], json!({"kind": "tail_window", "target": 4}));
        assert_eq!(strategies["own"]["command"][0], "python");
        // Another argument is another set-up.
        let other = Description::of(&text.replace("folder", "other"));
        assert_ne!(other.setup["environments"]["files"]["args"], files["args"]);
    }
}
