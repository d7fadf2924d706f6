//! What stands around the messages: the tools of a request, and the tokens of a response.

use retrace_events::{ToolSpec, Usage};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use crate::error::ImportError;
use crate::finding::{Finding, FindingKind};
use crate::json::{Kind, Object, read};

/// Takes the tools out of a request: `tools`, or `functions` as they were called at first.
pub(super) fn tools(run: &mut Object<'_>, findings: &mut Vec<Finding>) -> Result<Vec<ToolSpec>, ImportError> {
    let mut specs = Vec::new();
    for key in ["tools", "functions"] {
        let Some(tools) = run.take_if(key, Kind::List) else { continue };
        let place = run.at(key);
        let tools: Vec<&RawValue> = read(tools, || place.clone())?;
        for (index, tool) in tools.into_iter().enumerate() {
            let mut tool = Object::read(tool, place.index(index))?;
            let is_text = tool.get("custom").is_some();
            for inner in ["function", "custom"] {
                if let Some(value) = tool.take_if(inner, Kind::Object) {
                    tool = Object::read(value, tool.at(inner))?;
                }
            }
            let Some(name) = tool.take_if("name", Kind::String) else {
                findings.push(Finding::new(tool.place, FindingKind::UnnamedTool));
                continue;
            };
            let name = read(name, || tool.at("name"))?;
            let description = tool.take_text("description")?;
            let parameters = match tool.take("parameters") {
                Some(parameters) => read(parameters, || tool.at("parameters"))?,
                None if is_text => json!({"type": "string"}),
                None => ToolSpec::any_arguments(),
            };
            specs.push(ToolSpec { name, description, parameters, extra: tool.rest() });
        }
    }
    Ok(specs)
}

/// The tokens of a response, if these are numbers of tokens.
pub(super) fn usage(value: &RawValue) -> Option<Usage> {
    let usage: ChatUsage = serde_json::from_str(value.get()).ok()?;
    Some(Usage {
        input_tokens: usage.prompt_tokens,
        output_tokens: usage.completion_tokens,
        cache_read_tokens: usage
            .prompt_tokens_details
            .and_then(|details| details.cached_tokens)
            .or(usage.cache_read_input_tokens),
        cache_write_tokens: usage.cache_creation_input_tokens,
        extra: Default::default(),
    })
}

/// `usage` as the service writes it; the last two fields are LiteLLM's.
#[derive(Deserialize)]
struct ChatUsage {
    prompt_tokens: u64,
    #[serde(default)]
    completion_tokens: u64,
    prompt_tokens_details: Option<PromptTokensDetails>,
    cache_read_input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct PromptTokensDetails {
    cached_tokens: Option<u64>,
}
