//! Coercion: arguments that do not fit a schema, taken for the ones they spell.
//!
//! The validator itself says where a value has the wrong type and which types would do, behind references and unions
//! too. So what it complains of is converted where the conversion is exact, and the result is checked again, until it
//! fits or nothing is left to try.

use std::cell::OnceCell;
use std::collections::HashMap;

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{JsonType, ValidationError, Validator};
use serde_json::value::RawValue;
use serde_json::{Number, Value};

use crate::fn_tool::as_integer;

/// How often arguments are checked again, whatever the schema.
const MAX_CHECKS: usize = 64;

/// A value at a place, a JSON pointer, that would have the right type there.
struct Fix {
    at: String,
    value: Value,
}

/// The arguments that `arguments` spell, if those fit. `text` is how they were written.
pub(crate) fn coerce(validator: &Validator, arguments: &Value, text: &str) -> Option<Value> {
    Search { validator, written: Written::new(text), n_checks: 0 }.from(arguments.clone())
}

struct Search<'s> {
    validator: &'s Validator,
    written: Written<'s>,
    n_checks: usize,
}

impl Search<'_> {
    fn from(&mut self, value: Value) -> Option<Value> {
        self.n_checks += 1;
        if self.n_checks > MAX_CHECKS {
            return None;
        }
        if self.validator.is_valid(&value) {
            return Some(value);
        }
        self.attempts(&value).into_iter().find_map(|fixes| self.from(apply(&value, fixes)))
    }

    /// What may help a value that does not fit, to be tried in order.
    fn attempts(&self, value: &Value) -> Vec<Vec<Fix>> {
        let errors: Vec<_> = self.validator.iter_errors(value).collect();
        let errors = in_order(&errors);
        let fixes = self.fixes(&errors);
        if !fixes.is_empty() {
            return vec![fixes];
        }
        // Only unions are left: the branches of the first one, in the order of the schema.
        let union = errors.into_iter().find(|error| branches(error).is_some());
        union.map(|union| self.candidates(union)).unwrap_or_default()
    }

    /// A conversion for every wrong type that has one.
    fn fixes(&self, errors: &[&ValidationError<'_>]) -> Vec<Fix> {
        errors.iter().filter_map(|error| self.fix(error)).collect()
    }

    fn fix(&self, error: &ValidationError<'_>) -> Option<Fix> {
        let ValidationErrorKind::Type { kind } = error.kind() else { return None };
        let at = error.instance_path().as_str();
        let value = convert(error.instance(), kind, || self.written.number_at(at))?;
        Some(Fix { at: at.to_owned(), value })
    }

    /// What would help each branch of a union, nested unions included.
    fn candidates(&self, union: &ValidationError<'_>) -> Vec<Vec<Fix>> {
        let branches = branches(union).into_iter().flatten();
        let candidates = branches.flat_map(|errors| {
            let errors = in_order(errors);
            let fixes = self.fixes(&errors);
            if fixes.is_empty() {
                errors.into_iter().flat_map(|error| self.candidates(error)).collect()
            } else {
                vec![fixes]
            }
        });
        candidates.collect()
    }
}

/// The complaints by their place in the arguments and then in the schema. The validator may find them in any order, and
/// the same arguments must always be taken for the same.
fn in_order<'e, 'v>(errors: &'e [ValidationError<'v>]) -> Vec<&'e ValidationError<'v>> {
    let mut errors: Vec<_> = errors.iter().collect();
    errors.sort_by(|a, b| place(a).cmp(&place(b)));
    errors
}

fn place<'e>(error: &'e ValidationError<'_>) -> (&'e str, &'e str) {
    (error.instance_path().as_str(), error.evaluation_path().as_str())
}

/// The complaints of each branch, of an error that a union made.
fn branches<'e>(error: &'e ValidationError<'_>) -> Option<&'e Vec<Vec<ValidationError<'static>>>> {
    match error.kind() {
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => Some(context),
        _ => None,
    }
}

fn apply(value: &Value, fixes: Vec<Fix>) -> Value {
    let mut value = value.clone();
    for fix in fixes {
        if let Some(place) = value.pointer_mut(&fix.at) {
            *place = fix.value;
        }
    }
    value
}

/// The value as one of the wanted types, if it spells one exactly. `written` is the text of a number.
fn convert<'t>(value: &Value, wanted: &TypeKind, written: impl Fn() -> Option<&'t str>) -> Option<Value> {
    let wants = |json_type| match wanted {
        TypeKind::Single(single) => *single == json_type,
        TypeKind::Multiple(several) => several.contains(json_type),
    };
    let wants_text = wants(JsonType::String);
    match value {
        Value::String(text) => {
            // JSON allows white space around a value; a string with some does not spell the value exactly.
            let spelled: Value = serde_json::from_str(text).ok().filter(|_| text.trim() == text)?;
            let fits = match &spelled {
                Value::Number(number) => {
                    wants(JsonType::Number) || (wants(JsonType::Integer) && (number.is_i64() || number.is_u64()))
                }
                Value::Bool(_) => wants(JsonType::Boolean),
                Value::Array(_) => wants(JsonType::Array),
                Value::Object(_) => wants(JsonType::Object),
                Value::Null | Value::String(_) => false,
            };
            fits.then_some(spelled)
        }
        Value::Number(number) => {
            let integer = if wants(JsonType::Integer) { number.as_f64().and_then(as_integer) } else { None };
            integer.map(Value::from).or_else(|| if wants_text { number_text(number, written) } else { None })
        }
        Value::Bool(spoken) if wants_text => Some(Value::String(spoken.to_string())),
        _ => None,
    }
}

/// A number as it was written: as a double, `1.10` would be `1.1`, and a long integer another one.
fn number_text<'t>(number: &Number, written: impl Fn() -> Option<&'t str>) -> Option<Value> {
    if number.is_f64() { written().map(Value::from) } else { Some(Value::String(number.to_string())) }
}

/// JSON text, taken apart where a value in it was asked for, and nowhere twice.
struct Written<'t> {
    text: &'t str,
    parts: OnceCell<Parts<'t>>,
}

enum Parts<'t> {
    Items(Vec<Written<'t>>),
    Members(HashMap<String, Written<'t>>),
    None,
}

impl<'t> Written<'t> {
    fn new(text: &'t str) -> Self {
        Self { text: text.trim_ascii_start(), parts: OnceCell::new() }
    }

    /// The text of the number that a JSON pointer leads to.
    fn number_at(&self, pointer: &str) -> Option<&'t str> {
        let mut value = self;
        for token in pointer.split('/').skip(1) {
            let key = token.replace("~1", "/").replace("~0", "~");
            value = match value.parts() {
                Parts::Items(items) => items.get(key.parse::<usize>().ok()?)?,
                Parts::Members(members) => members.get(&key)?,
                Parts::None => return None,
            };
        }
        serde_json::from_str::<Number>(value.text).is_ok().then_some(value.text)
    }

    fn parts(&self) -> &Parts<'t> {
        self.parts.get_or_init(|| {
            let parts = match self.text.as_bytes().first() {
                Some(b'[') => serde_json::from_str(self.text).map(|items: Vec<&RawValue>| {
                    Parts::Items(items.into_iter().map(|item| Self::new(item.get())).collect())
                }),
                Some(b'{') => serde_json::from_str(self.text).map(|members: HashMap<String, &RawValue>| {
                    Parts::Members(members.into_iter().map(|(key, value)| (key, Self::new(value.get()))).collect())
                }),
                _ => return Parts::None,
            };
            parts.unwrap_or(Parts::None)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

    use proptest::collection::vec;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn validator(schema: &Value) -> Validator {
        jsonschema::options().offline().build(schema).unwrap()
    }

    #[track_caller]
    fn check(property: Value, given: &str, taken_for: Option<&str>) {
        let schema = json!({
            "properties": {"v": property},
            "$defs": {
                "Page": {"type": "integer"},
                "Range": {"type": "object", "properties": {"from": {"type": "integer"}}, "required": ["from"]},
                "Flag": {"type": "object", "properties": {"on": {"type": "boolean"}}, "required": ["on"]},
            },
        });
        let text = format!(r#"{{"v":{given}}}"#);
        let arguments = serde_json::from_str(&text).unwrap();
        let coerced = coerce(&validator(&schema), &arguments, &text).map(|value| value["v"].to_string());
        assert_eq!(coerced.as_deref(), taken_for, "{given}");
    }

    #[test]
    fn a_string_is_the_scalar_that_it_spells() {
        check(json!({"type": "integer"}), r#""2""#, Some("2"));
        check(json!({"type": "integer"}), r#""-18446744073709551615""#, None);
        check(json!({"type": "integer"}), r#""18446744073709551615""#, Some("18446744073709551615"));
        check(json!({"type": "number"}), r#""1.5""#, Some("1.5"));
        check(json!({"type": "boolean"}), r#""true""#, Some("true"));
    }

    #[test]
    fn a_string_that_does_not_spell_it_exactly_is_not_taken_for_it() {
        for text in ["2.5", " 2", "2 ", "+2", "02", "2.0", "two", "", "true", "null", "[2]", "0x2", "２"] {
            check(json!({"type": "integer"}), &json!(text).to_string(), None);
        }
        for text in ["True", "1", "yes", "on"] {
            check(json!({"type": "boolean"}), &json!(text).to_string(), None);
        }
        check(json!({"type": "integer"}), "2.5", None);
        check(json!({"type": "integer"}), "true", None);
    }

    #[test]
    fn a_number_or_boolean_is_the_string_that_was_written() {
        check(json!({"type": "string"}), "7", Some(r#""7""#));
        check(json!({"type": "string"}), "true", Some(r#""true""#));
        check(json!({"type": "string"}), "1.10", Some(r#""1.10""#));
        check(json!({"type": "string"}), "12345678901234567890123", Some(r#""12345678901234567890123""#));
        check(json!({"type": "array", "items": {"type": "string"}}), "[1, 2.50]", Some(r#"["1","2.50"]"#));
        check(json!({"type": "string"}), "null", None);
        check(json!({"type": "string"}), "[1]", None);
    }

    #[test]
    fn a_number_without_a_fraction_is_an_integer_where_a_draft_says_otherwise() {
        let schema = json!({
            "$schema": "http://json-schema.org/draft-04/schema#",
            "properties": {"v": {"type": "integer"}},
        });
        let coerced = coerce(&validator(&schema), &json!({"v": 2.0}), r#"{"v":2.0}"#);
        assert_eq!(coerced, Some(json!({"v": 2})));
        assert_eq!(coerce(&validator(&schema), &json!({"v": 2.5}), r#"{"v":2.5}"#), None);
    }

    #[test]
    fn json_text_is_the_object_or_array_that_it_says() {
        check(json!({"type": "array", "items": {"type": "integer"}}), r#""[1,\"2\"]""#, Some("[1,2]"));
        check(json!({"$ref": "#/$defs/Range"}), r#""{\"from\":\"3\"}""#, Some(r#"{"from":3}"#));
        check(json!({"type": "array"}), r#""{}""#, None);
        check(json!({"type": "object"}), r#""{\"from\"""#, None);
    }

    #[test]
    fn unions_and_references_are_followed() {
        check(json!({"type": ["integer", "null"]}), r#""2""#, Some("2"));
        check(json!({"anyOf": [{"$ref": "#/$defs/Page"}, {"type": "null"}]}), r#""2""#, Some("2"));
        check(json!({"oneOf": [{"type": "null"}, {"type": "boolean"}]}), r#""false""#, Some("false"));
        let ranges = json!({"anyOf": [{"$ref": "#/$defs/Flag"}, {"$ref": "#/$defs/Range"}]});
        check(ranges.clone(), r#"{"from":"3"}"#, Some(r#"{"from":3}"#));
        check(json!({"anyOf": [{"type": "null"}, ranges]}), r#"{"on":"true"}"#, Some(r#"{"on":true}"#));
    }

    #[test]
    fn a_union_that_a_value_fits_leaves_it_alone() {
        check(json!({"anyOf": [{"type": "integer"}, {"type": "string"}]}), r#""2""#, Some(r#""2""#));
    }

    #[test]
    fn one_value_that_cannot_be_read_spoils_all() {
        let schema = json!({"properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}});
        let arguments = json!({"a": "1", "b": "x"});
        assert_eq!(coerce(&validator(&schema), &arguments, &arguments.to_string()), None);
    }

    #[test]
    fn a_schema_of_many_unions_comes_to_an_end() {
        let union = (0..30).fold(
            json!({"type": "integer", "minimum": 9}),
            |inner, _| json!({"anyOf": [{"type": "integer", "minimum": 5}, {"type": "number", "minimum": 5}, inner]}),
        );
        check(union, r#""3""#, None);
    }

    #[test]
    fn of_a_key_that_stands_twice_the_last_one_is_what_was_written() {
        let schema = json!({"properties": {"v": {"properties": {"n": {"type": "string"}}}}});
        let text = r#" {"v": {"n": 1.10}, "v": {"n": 2.20, "n": 3.30}}"#;
        let coerced = coerce(&validator(&schema), &serde_json::from_str(text).unwrap(), text);
        assert_eq!(coerced, Some(json!({"v": {"n": "3.30"}})));
        // What stands in a string was not written as a number there, whatever the first `v` says.
        let schema = json!({"properties": {"v": {"type": "object", "properties": {"n": {"type": "string"}}}}});
        let text = r#"{"v": {"n": 1.10}, "v": "{\"n\":2.20}"}"#;
        assert_eq!(coerce(&validator(&schema), &serde_json::from_str(text).unwrap(), text), None);
    }

    #[test]
    fn no_part_of_the_text_is_taken_apart_twice() {
        let written = Written::new(r#"{"a":[1.50,{"b":2.50}]}"#);
        assert_eq!((written.number_at("/a/0"), written.number_at("/a/1/b")), (Some("1.50"), Some("2.50")));
        let Parts::Members(members) = written.parts() else { panic!() };
        let before = std::ptr::from_ref(&members["a"]);
        assert_eq!((written.number_at("/a/0"), written.number_at("/a/2")), (Some("1.50"), None));
        let Parts::Members(members) = written.parts() else { panic!() };
        assert!(std::ptr::eq(before, &raw const members["a"]));
    }

    #[test]
    fn of_two_unions_at_one_place_that_of_the_first_place_in_the_schema_is_tried_first() {
        let (a, b) =
            (json!({"properties": {"a": {"type": "integer"}}}), json!({"properties": {"b": {"type": "boolean"}}}));
        let schema = json!({"allOf": [{"anyOf": [a, b]}, {"anyOf": [b, a]}]});
        check(schema, r#"{"a":"1","b":"true"}"#, Some(r#"{"a":1,"b":"true"}"#));
    }

    /// A schema, a value that fits it, and another spelling of the value.
    type Spelling = (Value, Value, Value);

    fn spelling() -> impl Strategy<Value = Spelling> {
        let text = |value: &Value| Value::String(value.to_string());
        let leaf = prop_oneof![
            any::<i64>().prop_map(move |n| (json!({"type": "integer"}), json!(n), text(&json!(n)))),
            prop::num::f64::NORMAL.prop_map(move |n| (json!({"type": "number"}), json!(n), text(&json!(n)))),
            any::<bool>().prop_map(move |b| (json!({"type": "boolean"}), json!(b), text(&json!(b)))),
            any::<i64>().prop_map(move |n| (json!({"type": "string"}), text(&json!(n)), json!(n))),
            prop::num::f64::NORMAL.prop_map(move |n| (json!({"type": "string"}), text(&json!(n)), json!(n))),
            any::<String>().prop_map(|s| (json!({"type": "string"}), json!(s), json!(s))),
        ];
        leaf.prop_recursive(3, 12, 4, move |inner| {
            let list = vec(inner.clone(), 0..4).prop_map(|items: Vec<Spelling>| {
                let schemas: Vec<_> = items.iter().map(|(schema, ..)| schema).collect();
                let of = |pick: fn(&Spelling) -> &Value| items.iter().map(|i| pick(i).clone()).collect::<Vec<_>>();
                let schema = if schemas.is_empty() {
                    json!({"type": "array"})
                } else {
                    json!({"type": "array", "prefixItems": schemas})
                };
                (schema, json!(of(|i| &i.1)), json!(of(|i| &i.2)))
            });
            prop_oneof![
                list,
                object(inner.clone()),
                inner.prop_map(|(schema, value, spelled)| {
                    (json!({"anyOf": [{"type": "null"}, schema]}), value, spelled)
                }),
            ]
        })
    }

    fn object(member: impl Strategy<Value = Spelling>) -> impl Strategy<Value = Spelling> {
        vec(("[a-c/~\"é]{0,3}", member), 0..4).prop_map(|members| {
            let members: HashMap<String, Spelling> = members.into_iter().collect();
            let of = |pick: fn(&Spelling) -> &Value| {
                members.iter().map(|(key, member)| (key.clone(), pick(member).clone())).collect::<Value>()
            };
            (json!({"type": "object", "properties": of(|m| &m.0)}), of(|m| &m.1), of(|m| &m.2))
        })
    }

    proptest! {
        #[test]
        fn arguments_that_fit_never_change((schema, arguments, _) in object(spelling())) {
            let coerced = coerce(&validator(&schema), &arguments, &arguments.to_string());
            prop_assert_eq!(coerced, Some(arguments));
        }

        #[test]
        fn another_spelling_is_taken_for_what_it_spells((schema, arguments, spelled) in object(spelling())) {
            let coerced = coerce(&validator(&schema), &spelled, &spelled.to_string());
            prop_assert_eq!(coerced, Some(arguments));
        }

        #[test]
        fn the_order_in_which_complaints_are_found_decides_nothing(
            (schema, ..) in object(spelling()),
            arguments in vec(object(spelling()), 1..4),
            seed in any::<u64>(),
        ) {
            let validator = validator(&json!({"allOf": [schema.clone(), {"anyOf": [schema, false]}]}));
            for (_, _, spelled) in arguments {
                let places = |errors: &[ValidationError<'_>]| {
                    in_order(errors).into_iter().map(|e| (e.instance_path().to_string(), e.to_string())).collect::<Vec<_>>()
                };
                let mut errors: Vec<_> = validator.iter_errors(&spelled).collect();
                let before = places(&errors);
                errors.sort_by_key(|error| BuildHasherDefault::<DefaultHasher>::new().hash_one((seed, error.to_string())));
                prop_assert_eq!(places(&errors), before);
            }
        }

        #[test]
        fn whatever_is_taken_for_something_fits(
            (schema, ..) in object(spelling()),
            (_, arguments, spelled) in object(spelling()),
        ) {
            let validator = validator(&schema);
            for given in [arguments, spelled] {
                if let Some(coerced) = coerce(&validator, &given, &given.to_string()) {
                    prop_assert!(validator.is_valid(&coerced));
                }
            }
        }
    }
}
