//! Tools of a recording that does not say what tools there were.

use std::collections::BTreeMap;

use retrace_events::{Extra, Outcome, ToolSpec, Trajectory};
use serde_json::{Map, Value, json};

/// The tools of a recording as far as its executed calls show them, in the order of their first use.
///
/// The properties of a tool are the keys that were seen, of the types that were seen; those present in every call are
/// required, and others are allowed. No value is shown. A tool whose every call said that it does not exist is left out.
///
/// The whole recording is read, also what comes after a boundary: an agent had the tools that it came to use all along.
pub fn derived_tools(trajectory: &Trajectory) -> Vec<ToolSpec> {
    let mut shapes: Vec<(&str, Shape)> = Vec::new();
    let mut index_of = BTreeMap::new();
    for recorded in trajectory.actions().iter().filter(|recorded| recorded.action.outcome() != Outcome::NotFound) {
        let action = &recorded.action;
        let index = *index_of.entry(action.name()).or_insert_with(|| {
            shapes.push((action.name(), Shape::default()));
            shapes.len() - 1
        });
        // The signature's arguments, since they are `{}` where the model sent nothing.
        if let Ok(Value::Object(arguments)) = serde_json::from_str(action.signature().arguments()) {
            shapes[index].1.see(&Value::Object(arguments));
        }
    }
    shapes.into_iter().map(|(name, shape)| spec(name, &shape)).collect()
}

fn spec(name: &str, shape: &Shape) -> ToolSpec {
    let parameters = if shape.types.is_empty() { ToolSpec::any_arguments() } else { shape.schema() };
    ToolSpec {
        name: name.to_owned(),
        description: Some(
            "Derived from the recorded calls of this tool: the recording does not describe it.".to_owned(),
        ),
        parameters,
        extra: Extra::default(),
    }
}

/// What the values seen at one place have in common.
#[derive(Default)]
struct Shape {
    types: Vec<&'static str>,
    n_objects: usize,
    properties: BTreeMap<String, Property>,
    items: Option<Box<Shape>>,
}

#[derive(Default)]
struct Property {
    n_seen: usize,
    shape: Shape,
}

impl Shape {
    fn see(&mut self, value: &Value) {
        let type_name = match value {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number(number) if number.is_f64() => "number",
            Value::Number(_) => "integer",
            Value::String(_) => "string",
            Value::Array(items) => {
                let shape = self.items.get_or_insert_default();
                items.iter().for_each(|item| shape.see(item));
                "array"
            }
            Value::Object(members) => {
                self.n_objects += 1;
                for (key, member) in members {
                    let property = self.properties.entry(key.clone()).or_default();
                    property.n_seen += 1;
                    property.shape.see(member);
                }
                "object"
            }
        };
        if !self.types.contains(&type_name) {
            self.types.push(type_name);
        }
    }

    /// The schema that every value seen fits.
    fn schema(&self) -> Value {
        let mut schema = Map::new();
        let is_number = self.types.contains(&"number");
        let types: Vec<_> = self.types.iter().filter(|name| !(is_number && **name == "integer")).collect();
        match &types[..] {
            [] => {}
            [single] => drop(schema.insert("type".to_owned(), json!(single))),
            several => drop(schema.insert("type".to_owned(), json!(several))),
        }
        if self.n_objects > 0 {
            let properties: Map<_, _> =
                self.properties.iter().map(|(key, property)| (key.clone(), property.shape.schema())).collect();
            let required = self.properties.iter().filter(|(_, property)| property.n_seen == self.n_objects);
            let required: Vec<_> = required.map(|(key, _)| key).collect();
            schema.insert("properties".to_owned(), properties.into());
            schema.insert("required".to_owned(), json!(required));
        }
        if let Some(items) = &self.items {
            schema.insert("items".to_owned(), items.schema());
        }
        schema.into()
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{Recorded, calls};

    fn derive(recorded: &[Recorded<'_>]) -> Vec<ToolSpec> {
        derived_tools(&calls(recorded))
    }

    #[test]
    fn keys_and_types_are_those_that_were_seen() {
        let call = |arguments| ("book", arguments, Outcome::Ok, "");
        let tools = derive(&[
            call(r#"{"from":"a","days":[1,2.5],"party":{"adults":2,"note":"x"},"window":null}"#),
            call(r#"{"from":"b","days":[],"party":{"adults":1},"window":true,"price":1}"#),
        ]);
        assert_eq!(
            tools[0].parameters,
            json!({
                "type": "object",
                "properties": {
                    "days": {"type": "array", "items": {"type": "number"}},
                    "from": {"type": "string"},
                    "party": {
                        "type": "object",
                        "properties": {"adults": {"type": "integer"}, "note": {"type": "string"}},
                        "required": ["adults"],
                    },
                    "price": {"type": "integer"},
                    "window": {"type": ["null", "boolean"]},
                },
                "required": ["days", "from", "party", "window"],
            })
        );
        assert!(tools[0].description.as_ref().unwrap().starts_with("Derived"));
    }

    #[test]
    fn a_call_without_arguments_makes_every_key_optional() {
        let tools = derive(&[("list", r#"{"page":1}"#, Outcome::Ok, ""), ("list", "", Outcome::Ok, "")]);
        assert_eq!(tools[0].parameters["required"], json!([]));
    }

    #[test]
    fn tools_stand_in_the_order_of_their_first_use_without_those_that_do_not_exist() {
        let (ok, missing) = (Outcome::Ok, Outcome::NotFound);
        let tools = derive(&[
            ("b", "{}", Outcome::Error, ""),
            ("x", "{}", missing, ""),
            ("c", "not json", ok, ""),
            ("a", "{}", ok, ""),
            ("b", "{}", missing, ""),
        ]);
        assert_eq!(tools.iter().map(|tool| &*tool.name).collect::<Vec<_>>(), ["b", "c", "a"]);
        assert_eq!(tools[1].parameters, ToolSpec::any_arguments());
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            prop::num::f64::NORMAL.prop_map(Value::from),
            "[a-z]{0,3}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 16, 4, |inner| {
            prop_oneof![vec(inner.clone(), 0..4).prop_map(Value::from), members(inner)]
        })
    }

    fn members(value: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
        vec(("[a-c]", value), 0..4).prop_map(|members| members.into_iter().collect())
    }

    proptest! {
        #[test]
        fn every_recorded_call_fits_the_schema_derived_from_them(arguments in vec(members(value()), 1..6)) {
            let texts: Vec<_> = arguments.iter().map(Value::to_string).collect();
            let recorded: Vec<_> = texts.iter().map(|text| ("f", text.as_str(), Outcome::Ok, "")).collect();
            let validator = jsonschema::options().offline().build(&derive(&recorded)[0].parameters).unwrap();
            for value in &arguments {
                prop_assert!(validator.is_valid(value), "{value}");
            }
        }
    }
}
