//! Menus: which tools of a server are used, as the agent knows them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use futures_core::future::BoxFuture;
use retrace_env::{CallError, Tool, ToolOutput, Toolbox};
use retrace_events::{Extra, ToolSpec};
use serde_json::{Map, Value};

use crate::config::McpConfig;
use crate::error::{McpError, names};

/// The tools of a server that are used.
#[derive(Debug)]
pub(crate) struct Menu {
    /// As the agent sees them, in the order of the server.
    pub(crate) specs: Arc<[ToolSpec]>,
    /// What the stubs answer, by name.
    stubs: BTreeMap<String, String>,
    /// The others, by the name that the agent knows.
    by_shown_name: HashMap<String, Listed>,
    /// Those of the fixed arguments that the reset tool takes.
    reset_arguments: Vec<String>,
}

/// A tool as the server lists it.
#[derive(Debug)]
pub(crate) struct Listed {
    /// The server's name for it.
    pub(crate) name: String,
    /// Those of the fixed arguments that it takes.
    pub(crate) fixed: Vec<String>,
    /// Whether it changes nothing.
    is_read_only: bool,
}

impl Menu {
    /// What the configuration makes of the tools that a server lists.
    ///
    /// # Errors
    ///
    /// When there are none, one is no tool, or the configuration names one that there is not.
    pub(crate) fn new(config: &McpConfig, listed: &[rmcp::model::Tool]) -> Result<Self, McpError> {
        let known: BTreeSet<&str> = listed.iter().map(|tool| &*tool.name).collect();
        check_names(config, &known)?;
        let is_used = |name: &str| {
            (config.allow.is_empty() || config.allow.iter().any(|it| it == name))
                && !config.deny.iter().any(|it| it == name)
                && config.reset_tool.as_deref() != Some(name)
        };
        let (mut specs, mut by_shown_name) = (Vec::new(), HashMap::new());
        let mut unused: BTreeSet<&str> = config.arguments.keys().map(String::as_str).collect();
        for tool in listed.iter().filter(|tool| is_used(&tool.name)) {
            let mut parameters = Map::clone(&tool.input_schema);
            let fixed: Vec<_> = config.arguments.keys().filter(|key| hide(&mut parameters, key)).cloned().collect();
            for key in &fixed {
                unused.remove(key.as_str());
            }
            let says_so = tool.annotations.as_ref().and_then(|it| it.read_only_hint).unwrap_or(false);
            let is_read_only = says_so || config.read_only.iter().any(|name| *name == tool.name);
            let name = config.rename.get(&*tool.name).map_or(&*tool.name, String::as_str).to_owned();
            specs.push(ToolSpec {
                name: name.clone(),
                description: tool.description.as_deref().map(str::to_owned),
                parameters: parameters.into(),
                extra: Extra::default(),
            });
            by_shown_name.insert(name, Listed { name: tool.name.to_string(), fixed, is_read_only });
        }
        if specs.is_empty() {
            return Err(McpError::NoTools { listed: !listed.is_empty() });
        }
        if let Some(argument) = unused.pop_first() {
            return Err(McpError::UnknownArgument { argument: argument.to_owned() });
        }
        specs.extend(config.stubs.keys().map(|name| ToolSpec {
            name: name.clone(),
            description: None,
            parameters: ToolSpec::any_arguments(),
            extra: Extra::default(),
        }));
        // A toolbox of them is built once, so that all that it checks is checked.
        Toolbox::builder().tools(specs.iter().cloned().map(OnlySpec)).build()?;
        let reset = listed.iter().find(|tool| config.reset_tool.as_deref() == Some(&*tool.name));
        let takes = |key: &&String| reset.is_some_and(|tool| hide(&mut Map::clone(&tool.input_schema), key));
        let reset_arguments = config.arguments.keys().filter(takes).cloned().collect();
        Ok(Self { specs: specs.into(), stubs: config.stubs.clone(), by_shown_name, reset_arguments })
    }

    /// What a call of this name answers, if it is that of a stub.
    pub(crate) fn stub(&self, name: &str) -> Option<&str> {
        self.stubs.get(name).map(String::as_str)
    }

    /// Those of the fixed arguments that the reset tool takes.
    pub(crate) fn reset_arguments(&self) -> &[String] {
        &self.reset_arguments
    }

    /// The tool that the agent knows by this name.
    pub(crate) fn find(&self, shown_name: &str) -> Option<&Listed> {
        self.by_shown_name.get(shown_name)
    }

    /// The tools that may change something, by the names that the agent knows, in their order.
    pub(crate) fn writing(&self) -> Vec<&str> {
        let names = self.specs.iter().map(|spec| spec.name.as_str());
        names.filter(|name| self.find(name).is_some_and(|listed| !listed.is_read_only)).collect()
    }
}

fn check_names(config: &McpConfig, known: &BTreeSet<&str>) -> Result<(), McpError> {
    let named = [
        ("allow", config.allow.iter().collect::<Vec<_>>()),
        ("deny", config.deny.iter().collect()),
        ("rename", config.rename.keys().collect()),
        ("read_only", config.read_only.iter().collect()),
        ("reset_tool", config.reset_tool.iter().collect()),
    ];
    // Without tools, that is what is wrong.
    if known.is_empty() {
        return Err(McpError::NoTools { listed: false });
    }
    for (key, tools) in named {
        if let Some(tool) = tools.into_iter().find(|tool| !known.contains(tool.as_str())) {
            return Err(McpError::UnknownTool { key, tool: tool.clone(), listed: names(known.iter().copied()) });
        }
    }
    Ok(())
}

/// Takes a property out of a schema, if it has it.
fn hide(schema: &mut Map<String, Value>, property: &str) -> bool {
    let Some(Value::Object(properties)) = schema.get_mut("properties") else { return false };
    let is_there = properties.shift_remove(property).is_some();
    if is_there && let Some(Value::Array(required)) = schema.get_mut("required") {
        required.retain(|name| name != property);
    }
    is_there
}

/// A tool that is never called.
struct OnlySpec(ToolSpec);

impl Tool for OnlySpec {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn call<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<ToolOutput, CallError>> {
        Box::pin(async { Ok(ToolOutput::not_found(&self.0.name)) })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn menu(config: Value, tools: Value) -> Result<Menu, McpError> {
        let config: McpConfig = serde_json::from_value(config).unwrap();
        let tools: Vec<rmcp::model::Tool> = serde_json::from_value(tools).unwrap();
        Menu::new(&config, &tools)
    }

    fn tools() -> Value {
        let schema = json!({"type": "object", "properties": {"id": {}, "key": {}}, "required": ["key", "id"]});
        json!([
            {"name": "look", "description": "Looks.", "inputSchema": schema, "annotations": {"readOnlyHint": true}},
            {"name": "buy", "inputSchema": {"type": "object"}},
            {"name": "count", "inputSchema": {"type": "object"}},
            {"name": "reset", "inputSchema": {"type": "object"}},
        ])
    }

    #[test]
    fn tools_are_chosen_renamed_and_lose_what_is_fixed() {
        let config =
            json!({"deny": ["count"], "rename": {"look": "see"}, "reset_tool": "reset", "arguments": {"key": 1}});
        let menu = menu(config, tools()).unwrap();
        let names: Vec<_> = menu.specs.iter().map(|spec| spec.name.as_str()).collect();
        assert_eq!(names, ["see", "buy"]);
        let schema = json!({"type": "object", "properties": {"id": {}}, "required": ["id"]});
        assert_eq!((&menu.specs[0].parameters, menu.specs[0].description.as_deref()), (&schema, Some("Looks.")));
        let see = menu.find("see").unwrap();
        assert_eq!((see.name.as_str(), &see.fixed[..]), ("look", &["key".to_owned()][..]));
        assert!(menu.find("look").is_none() && menu.find("count").is_none() && menu.find("reset").is_none());
        assert_eq!(menu.writing(), ["buy"]);
    }

    #[test]
    fn the_configuration_says_more_about_what_only_reads() {
        let menu = menu(json!({"read_only": ["count"]}), tools()).unwrap();
        assert_eq!(menu.writing(), ["buy", "reset"]);
    }

    #[test]
    fn stubs_are_shown_and_change_nothing() {
        let menu = menu(json!({"allow": ["look"], "stubs": {"think": "done"}}), tools()).unwrap();
        let names: Vec<_> = menu.specs.iter().map(|spec| spec.name.as_str()).collect();
        assert_eq!((&names[..], menu.stub("think"), menu.stub("look")), (&["look", "think"][..], Some("done"), None));
        assert!(menu.writing().is_empty());
        let twice = self::menu(json!({"stubs": {"buy": ""}}), tools()).unwrap_err();
        assert!(twice.to_string().contains("two tools are called `buy`"), "{twice}");
    }

    #[test]
    fn what_cannot_be_is_one_clear_message() {
        let message = |config, tools| menu(config, tools).unwrap_err().to_string();
        assert_eq!(message(json!({}), json!([])), "the MCP server lists no tools");
        assert_eq!(
            message(json!({"allow": ["buy"], "deny": ["buy"]}), tools()),
            "the MCP server lists no tools but those that the configuration leaves out: look at `allow` and `deny`"
        );
        assert_eq!(
            message(json!({"read_only": ["lok"]}), tools()),
            "`read_only` names the tool `lok`, which the MCP server does not list; it lists `buy`, `count`, `look`, `reset`"
        );
        assert_eq!(
            message(json!({"arguments": {"state": 1}}), tools()),
            "`arguments` fixes `state`, which no tool of the MCP server takes"
        );
        assert_eq!(
            message(json!({"rename": {"look": "buy"}}), tools()),
            "the tools of the MCP server cannot be used: two tools are called `buy`"
        );
        let flawed = json!([{"name": "bad", "inputSchema": {"type": "objekt"}}]);
        let text = message(json!({}), flawed);
        assert!(text.contains("the parameters of tool `bad` are not a valid JSON Schema"), "{text}");
    }
}
