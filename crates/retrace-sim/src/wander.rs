//! Wander: a model for any tools.

mod schema;
mod values;

use futures_core::future::BoxFuture;
use retrace_events::{Part, ToolSpec};
use retrace_model::{Answer, Model, ModelError, Prompt};
use serde_json::{Map, Value};

use crate::agent::calls_of;
use crate::draws::Draws;
use crate::shown::{Shown, respond, shown};
use schema::Schema;
use values::Search;

/// A model that wanders about in any tools, so that a whole verification can be tried without a key.
///
/// It makes one call an answer. With a probability of 1/2, if its prompt shows any call, it repeats one of them, spelled
/// as it was; with 1/64 it ends its turn. Otherwise it picks a tool, and fills the arguments with values that the prompt
/// shows under the names of the parameters: as JSON keys in earlier calls and results, or as `name: value` or
/// `name=value` in a text. Values that stand together are preferred. What the prompt does not show is made up after the
/// schema; a `pattern` is beyond it. Asked without tools, it answers with the beginnings of the last lines it was shown.
///
/// It knows nothing of what it does. Its rollouts say that a set-up works, and nothing about any strategy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wander;

const NAME: &str = "sim:wander";

/// What a summary keeps: so many lines, and so many characters of each.
const MAX_LINES: usize = 24;
const MAX_LINE: usize = 160;

impl Model for Wander {
    fn name(&self) -> &str {
        NAME
    }

    fn respond<'a>(&'a self, prompt: &'a Prompt<'a>) -> BoxFuture<'a, Result<Answer, ModelError>> {
        Box::pin(async move { Ok(respond(NAME, prompt, answer(prompt))) })
    }
}

fn answer(prompt: &Prompt<'_>) -> Vec<Part> {
    let mut draws = Draws::new(prompt.seed);
    let Some(tool) = draws.pick(prompt.tools) else { return vec![Part::text(extract(prompt))] };
    let choice = draws.below(64);
    if choice == 63 {
        return vec![Part::text("That is all.")];
    }
    let calls = || {
        shown(prompt).filter_map(|thing| match thing {
            Shown::Call(call) => Some(call),
            Shown::Text(_) => None,
        })
    };
    if choice < 32
        && let Some(call) = calls().nth(draws.below(calls().count()))
    {
        return calls_of([(&*call.name, call.arguments.to_string())], &mut draws);
    }
    let arguments = arguments(tool, prompt, &mut draws);
    calls_of([(&*tool.name, Value::Object(arguments).to_string())], &mut draws)
}

/// Arguments for a tool, as far as possible out of what the prompt shows.
fn arguments(tool: &ToolSpec, prompt: &Prompt<'_>, draws: &mut Draws) -> Map<String, Value> {
    let schema = Schema::root(&tool.parameters);
    let parameters = schema.parameters();
    if parameters.is_empty() {
        return match schema.sample(draws) {
            Value::Object(arguments) => arguments,
            _ => Map::new(),
        };
    }
    let mut search = Search::new(&parameters);
    for thing in shown(prompt) {
        match thing {
            Shown::Text(text) => search.look_into(text, draws),
            Shown::Call(call) => search.look_into(&call.arguments, draws),
        }
    }
    let mut found = search.together(draws);
    let mut arguments = Map::new();
    for parameter in &parameters {
        let together = found.remove(parameter.name);
        let value = if parameter.required {
            let anywhere = || search.anywhere(parameter.name);
            Some(together.or_else(anywhere).unwrap_or_else(|| parameter.schema.sample(draws)))
        } else {
            together
        };
        arguments.extend(value.map(|value| (parameter.name.to_owned(), value)));
    }
    arguments
}

/// The beginnings of the last lines that a prompt shows.
fn extract(prompt: &Prompt<'_>) -> String {
    let texts = shown(&Prompt { instructions: None, ..*prompt }).filter_map(|thing| match thing {
        Shown::Text(text) => Some(text),
        Shown::Call(_) => None,
    });
    let lines: Vec<_> = texts.flat_map(str::lines).filter(|line| !line.trim().is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(MAX_LINES)..];
    let last: Vec<String> = last.iter().map(|line| line.chars().take(MAX_LINE).collect()).collect();
    // A summary of nothing still has to say so: an empty one would be taken for no answer.
    if last.is_empty() { "Nothing was shown.".to_owned() } else { last.join("\n") }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use retrace_env::{BoxFuture, CallError, Tool, ToolOutput, Toolbox};
    use retrace_events::{Event, Extra, History, Outcome, Response, ToolCall, ToolResult};
    use serde_json::json;

    use super::*;

    fn spec(parameters: Value) -> ToolSpec {
        ToolSpec { name: "do".to_owned(), description: None, parameters, extra: Extra::default() }
    }

    struct Nothing(ToolSpec);

    impl Tool for Nothing {
        fn spec(&self) -> &ToolSpec {
            &self.0
        }

        fn call<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<ToolOutput, CallError>> {
            Box::pin(async { Ok(ToolOutput::ok("done")) })
        }
    }

    fn ask(tools: &[ToolSpec], history: &History, seed: u64) -> Response {
        let prompt = Prompt { instructions: None, history, tools, seed };
        pollster::block_on(Wander.respond(&prompt)).unwrap().response
    }

    fn calls(tools: &[ToolSpec], history: &History, seeds: u64) -> Vec<(String, String)> {
        let responses = (0..seeds).map(|seed| ask(tools, history, seed));
        let calls = responses.flat_map(|response| response.tool_calls().cloned().collect::<Vec<_>>());
        calls.map(|call| (call.name.into(), call.arguments.into())).collect()
    }

    fn round(name: &str, arguments: &str, text: &str) -> Vec<Event> {
        let call = ToolCall::new("c", name, arguments);
        let result = ToolResult::text_result(&call, Outcome::Ok, text);
        vec![Event::calls([call]), Event::results([result])]
    }

    /// Schemas that some value fits, with that of the document among them under `$defs/it`.
    fn schema() -> impl Strategy<Value = Value> {
        let texts = ("[a-z]{0,3}", 0_u64..9, 0_u64..9).prop_map(|(word, shortest, more)| {
            let longest = (shortest + more).max(word.len() as u64);
            json!({"type": "string", "minLength": shortest, "maxLength": longest, "examples": [word, "fits"]})
        });
        let integers = (-50_i64..50, 0_i64..50, 1_i64..7, any::<bool>()).prop_map(|(low, more, step, open)| {
            let high = low + more + 2 * step;
            if open {
                json!({"type": "integer", "exclusiveMinimum": low, "exclusiveMaximum": high, "multipleOf": step})
            } else {
                json!({"minimum": low, "maximum": high, "type": "integer", "default": high + 1})
            }
        });
        let numbers = (-50.0..50.0, 0.01..3.0)
            .prop_map(|(low, more)| json!({"type": "number", "exclusiveMinimum": low, "exclusiveMaximum": low + more}));
        let leaf = prop_oneof![
            texts,
            integers,
            numbers,
            Just(json!({"type": "boolean"})),
            Just(json!({"type": ["null", "string"]})),
            Just(json!({"type": "null"})),
            Just(json!({"const": {"a": [1]}})),
            Just(json!({"enum": ["x", 7, null]})),
            Just(json!({"$ref": "#/$defs/it"})),
            Just(json!({"type": "string", "format": "date"})),
            Just(json!(true)),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                (inner.clone(), 0_u64..4, 0_u64..3).prop_map(|(items, fewest, more)| {
                    json!({"type": "array", "items": items, "minItems": fewest, "maxItems": fewest + more})
                }),
                (inner.clone(), inner.clone())
                    .prop_map(|(first, second)| { json!({"prefixItems": [first], "items": second, "minItems": 2}) }),
                Just(json!({"items": {"type": "integer"}, "minItems": 3, "uniqueItems": true})),
                object(inner.clone()),
                (object(inner.clone()), object(inner.clone())).prop_map(|(mut first, second)| {
                    // Both hold for the value, so the first must say the same of what both describe.
                    first["properties"] = second["properties"].clone();
                    json!({"allOf": [first, second]})
                }),
                prop::collection::vec(inner, 1..4).prop_map(|branches| json!({"anyOf": branches})),
                Just(json!({"oneOf": [{"type": "string"}, {"type": "integer", "minimum": 3}]})),
            ]
        })
    }

    fn object(values: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
        (prop::collection::btree_map("[a-c]", values, 0..4), any::<prop::sample::Selector>()).prop_map(
            |(properties, chosen)| {
                let required: Vec<_> =
                    properties.keys().filter(|name| **name != chosen.select(["a", "b", "c"])).collect();
                json!({"type": "object", "properties": properties, "required": required})
            },
        )
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let words = "type|object|array|string|integer|number|null|#|#/a|#/properties/a|a|é\"|minimum";
        let leaf = prop_oneof![
            any::<f64>().prop_map(|number| json!(number)),
            any::<i64>().prop_map(|number| json!(number)),
            any::<u64>().prop_map(|number| json!(number)),
            any::<bool>().prop_map(|flag| json!(flag)),
            words.prop_map(|word| json!(word)),
            Just(Value::Null),
        ];
        let keys = "type|properties|required|items|prefixItems|minItems|maxItems|uniqueItems|enum|const|default|\
            examples|anyOf|oneOf|allOf|\\$ref|minimum|maximum|exclusiveMinimum|exclusiveMaximum|multipleOf|minLength|\
            maxLength|format|a|é\"|";
        leaf.prop_recursive(5, 40, 6, move |inner| {
            prop_oneof![
                1 => prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                3 => prop::collection::btree_map(keys, inner, 0..6).prop_map(|map| json!(map)),
            ]
        })
    }

    proptest! {
        #[test]
        fn made_up_arguments_fit_the_schema(parameters in object(schema()), it in "integer|string", seed: u64) {
            let mut parameters = parameters;
            parameters["$defs"] = json!({"it": {"type": it}});
            let toolbox = Toolbox::builder().tool(Nothing(spec(parameters))).lenient(false).build().unwrap();
            let response = ask(toolbox.specs(), &History::from(vec![]), seed);
            for call in response.tool_calls() {
                let output = pollster::block_on(toolbox.call(&call.name, &call.arguments)).unwrap();
                prop_assert_eq!(output.text(), "done", "{}", call.arguments);
            }
        }

        #[test]
        fn nothing_that_it_is_shown_breaks_it(
            parameters in any_json(),
            texts in prop::collection::vec("([a-z]|é|a|\"a\"|\\$ref|[:= {}\\[\\],\\\\\"]|[0-9]{1,30}|\\PC){0,40}", 0..4),
            shown in any_json(),
            seed: u64,
        ) {
            let mut events = round("do", &texts.join(" "), &shown.to_string());
            events.extend(texts.into_iter().map(Event::request));
            let history = History::from(events);
            let response = ask(&[spec(parameters.clone())], &history, seed);
            prop_assert_eq!(&response, &ask(&[spec(parameters)], &history, seed));
            for call in response.tool_calls() {
                prop_assert_eq!(&call.name, "do");
            }
            prop_assert!(!ask(&[], &history, seed).text().trim().is_empty());
        }
    }

    #[test]
    fn schemas_without_end_come_to_an_end() {
        let unions: Vec<_> = (0..30).map(|_| json!({"$ref": "#"})).collect();
        let properties: Map<String, Value> = (0..30).map(|i| (format!("p{i}"), json!({"$ref": "#"}))).collect();
        let required: Vec<_> = properties.keys().cloned().collect();
        for parameters in [
            json!({"$ref": "#"}),
            json!({"anyOf": unions}),
            json!({"allOf": unions, "anyOf": unions, "properties": {"a": {"anyOf": unions}}, "required": ["a"]}),
            json!({"type": "object", "properties": properties, "required": required}),
            json!({"properties": {"a": {"items": {"$ref": "#"}, "minItems": u64::MAX}}, "required": ["a"]}),
            json!({"properties": {"a": {"type": "string", "minLength": u64::MAX}}, "required": ["a"]}),
        ] {
            let history = History::from(round("do", "{}", r#"{"a": {"a": [1, "a: 2"]}, "p1": 3}"#));
            assert!(!calls(&[spec(parameters)], &history, 20).is_empty());
        }
    }

    #[test]
    fn half_of_the_time_it_repeats_a_call_as_it_was_spelled() {
        let spelled = "{ \"n\" :1e0 }";
        let history = History::from(round("other", spelled, ""));
        let made = calls(&[spec(json!({"properties": {"n": {"type": "integer"}}, "required": ["n"]}))], &history, 4000);
        let repeated = made.iter().filter(|(name, arguments)| name == "other" && arguments == spelled).count();
        // Four standard deviations are 126.
        assert!(repeated.abs_diff(2000) < 126, "{repeated}");
        // It ends its turn in one of 64 answers.
        assert!((4000 - made.len()).abs_diff(62) < 32, "{}", made.len());
        assert!(made.iter().all(|(name, _)| name == "other" || name == "do"));
        assert!(calls(&[spec(json!({}))], &History::from(vec![]), 100).iter().all(|(name, _)| name == "do"));
    }

    #[test]
    fn arguments_come_from_what_is_shown_under_their_names() {
        let parameters = json!({
            "properties": {"user": {"type": "string"}, "page": {"type": "integer"}, "note": {"type": "string"}},
            "required": ["user", "page"],
        });
        let mut events = vec![Event::request("I am user: ann_7, see page=4.")];
        events.extend(round("find", "{}", r#"{"user": "bob_3", "page": 9, "note": "late"}"#));
        let made = calls(&[spec(parameters)], &History::from(events), 300);
        let made: std::collections::BTreeSet<_> =
            made.into_iter().filter(|(name, _)| name == "do").map(|(_, a)| a).collect();
        let wanted = [r#"{"user":"ann_7","page":4}"#, r#"{"user":"bob_3","page":9,"note":"late"}"#];
        assert_eq!(made.into_iter().collect::<Vec<_>>(), wanted);
    }

    #[test]
    fn a_summary_is_an_extract_of_the_question() {
        let lines: Vec<_> = (0..100).map(|i| format!("line {i}: {}", "é".repeat(400))).collect();
        let text = ask(&[], &History::from(vec![Event::request(lines.join("\n"))]), 1).text();
        assert_eq!(text.lines().count(), 24);
        assert!(text.starts_with("line 76: é") && text.lines().all(|line| line.chars().count() == 160));
        assert_eq!(ask(&[], &History::from(vec![]), 1).text(), "Nothing was shown.");
    }
}
