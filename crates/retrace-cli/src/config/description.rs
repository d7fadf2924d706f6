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

/// Those of them that hold tables by names of the user's.
const NAMED: [&str; 2] = ["models", "environments"];

/// Settings of the agent that only a recorded run has.
const OF_RECORDING: [&str; 2] = ["compaction", "instructions"];

/// Settings that decide only how long something takes, or what it costs.
const NO_MATTER: [&str; 10] = [
    "answer_timeout",
    "api_key_env",
    "call_timeout",
    "pool",
    "prices",
    "prompt_cache",
    "requests_per_minute",
    "start_timeout",
    "timeout_seconds",
    "tokens_per_minute",
];

impl Description {
    /// Describes a configuration, given its text, which is known to be one.
    pub(crate) fn of(text: &str) -> Self {
        let Ok(Value::Object(mut tables)) = toml::from_str(text) else { return Self::default() };
        let by_name = |tables: Value| match tables {
            Value::Object(tables) => tables.into_iter().map(|(name, table)| (name, clean(table))).collect(),
            _ => Map::new(),
        };
        if let Some(Value::Object(agent)) = tables.get_mut("agent") {
            agent.retain(|name, _| !OF_RECORDING.contains(&&**name));
        }
        let strategies = tables.shift_remove("strategies").map(by_name).unwrap_or_default().into_iter().collect();
        let setup = tables.into_iter().filter(|(name, _)| SETUP.contains(&&**name));
        let setup = setup.map(|(name, table)| {
            let table = if NAMED.contains(&&*name) { by_name(table).into() } else { clean(table) };
            (name, table)
        });
        Self { setup: setup.collect(), strategies }
    }
}

/// A table of settings without what does not matter, and without what may be secret: of variables and headers only the names
/// stay; of arguments, of settings of the user's own parts and of what follows the host of an address, a hash.
fn clean(value: Value) -> Value {
    let Value::Object(fields) = value else { return value };
    let fields = fields.into_iter().filter(|(name, _)| !NO_MATTER.contains(&&**name));
    let fields = fields.map(|(name, value)| {
        let value = match (&*name, value) {
            ("env" | "headers", Value::Object(secrets)) => secrets.into_iter().map(|(name, _)| name).collect(),
            ("command", Value::Array(command)) => {
                let hashed = command.into_iter().enumerate();
                hashed.map(|(index, part)| if index == 0 { part } else { hashed_all(part) }).collect()
            }
            ("args" | "arguments" | "config" | "extra", value) => hashed_all(value),
            ("base_url" | "url", Value::String(address)) => Value::String(without_credentials(&address)),
            (_, value) => clean(value),
        };
        (name, value)
    });
    Value::Object(fields.collect())
}

/// The same with a hash in place of each value.
fn hashed_all(value: Value) -> Value {
    match value {
        Value::Object(fields) => fields.into_iter().map(|(name, value)| (name, hashed_all(value))).collect(),
        Value::Array(values) => values.into_iter().map(hashed_all).collect(),
        value => Value::String(hash(&value.to_string())),
    }
}

fn hash(text: &str) -> String {
    let hash = Sha256::digest(text.as_bytes());
    format!("sha256:{}", hash[..8].iter().map(|byte| format!("{byte:02x}")).collect::<String>())
}

/// The host of an address, and a hash of the whole.
fn without_credentials(address: &str) -> String {
    let (scheme, rest) = address.split_once("://").unwrap_or(("", address));
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    format!("{scheme}://{} {}", host.rsplit('@').next().unwrap_or_default(), hash(address))
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
            instructions = "only of recordings"
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
            arguments = { read = { api_key = "s3cret" } }
            url = "http://host/s3cret"
            [environments.env]
            kind = "program"
            command = ["python", "a.py"]
            [strategies.own]
            kind = "program"
            command = ["python", "s3cret"]
            config = { token = "s3cret" }
            [strategies.summary]
            kind = "summarize"
            prompt = "See https://host/doc?x=1 and keep all"
            [strategies.tail]
            kind = "tail_window"
            target = 4
        "#;
        let Description { setup, strategies } = Description::of(text);
        let written = format!("{} {}", json!(setup), json!(strategies));
        assert!(!written.contains("s3cret") && !written.contains("MY_KEY"), "{written}");
        assert_eq!(setup["agent"], json!({"model": "big"}));
        assert_eq!(setup["models"]["big"]["model"], "openai:gpt");
        assert!(setup["models"]["big"]["base_url"].as_str().unwrap().starts_with("https://host sha256:"));
        let files = &setup["environments"]["files"];
        assert_eq!(files["env"], json!(["TOKEN", "A"]));
        assert_eq!(files["headers"], json!(["authorization"]));
        assert_eq!(files["command"], "npx");
        assert_eq!(strategies["tail"], json!({"kind": "tail_window", "target": 4}));
        assert_eq!(strategies["own"]["command"][0], "python");
        assert_eq!(strategies["summary"]["prompt"], "See https://host/doc?x=1 and keep all");
        assert_eq!(setup["environments"]["env"]["command"][0], "python");
        // Another argument, address or program is another set-up.
        for change in [("folder", "other"), ("http://host/s3cret", "http://host/s3crets"), ("a.py", "b.py")] {
            assert_ne!(Description::of(&text.replace(change.0, change.1)).setup, setup);
        }
    }
}
