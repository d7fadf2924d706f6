//! When two tool calls are the same: a [`Signature`] is a tool's name and the canonical text of the arguments.

pub(crate) mod json;
mod number;
mod text;

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use self::json::Json;

/// What makes two calls the same: the name of the tool and the [canonical arguments](canonical_arguments).
///
/// The two parts are compared apart, since the joined text that is displayed can be the same for two different
/// calls: `f()(x)` is both `f` called with `)(x` and `f()` called with `x`. A clone shares its text.
///
/// ```
/// use retrace_events::Signature;
///
/// let signature = Signature::of("check", r#"{"room": 7, "days": [1.50, 2]}"#);
/// assert_eq!(signature, Signature::of("check", r#"{"days":[1.5,2],"room":7}"#));
/// assert_ne!(signature, Signature::of("check", r#"{"days":[1.5,2],"room":"7"}"#));
/// assert_eq!(signature.to_string(), r#"check({"days":[1.5,2],"room":7})"#);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "Parts")]
pub struct Signature {
    name: Arc<str>,
    arguments: Arc<str>,
}

impl Signature {
    /// The signature of a call of the tool `name` with `arguments`, the text that the model sent.
    pub fn of(name: &str, arguments: &str) -> Self {
        Self { name: name.into(), arguments: canonical_arguments(arguments).into() }
    }

    /// The tool's name, as it was called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The canonical arguments.
    pub fn arguments(&self) -> &str {
        &self.arguments
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.name, self.arguments)
    }
}

/// A signature as it is read back: nothing says that its arguments are still canonical.
#[derive(Deserialize)]
struct Parts {
    name: Arc<str>,
    arguments: String,
}

impl From<Parts> for Signature {
    fn from(parts: Parts) -> Self {
        Self {
            name: parts.name,
            // Not `canonical_arguments`: an empty text was blank when it was written, and `{}` is another call.
            arguments: canonical_text(&parts.arguments).into(),
        }
    }
}

/// The one text for all spellings of the same arguments.
///
/// * An object's keys are sorted by code point; of a key that stands twice the last one counts.
/// * There is no white space between tokens, and strings have only the escapes that they need. Half of a surrogate
///   pair stays an escape, in lower case.
/// * Integers stay digit for digit, with `-0` as `0`. Other numbers are the shortest decimal that reads back to the same
///   double, so that `1.0`, `1.00` and `1e0` are one, and none of them is `1`. A number too large for a double is kept
///   by its exact value: `10e399` is `1e400`, and `1e500` another.
/// * The words `NaN`, `Infinity` and `-Infinity` are read too, since many programs write them.
/// * The empty text stands for no arguments, which is `{}`.
/// * Text that is not JSON stays as it is, less the space, tab, line feed and carriage return at its ends.
///
/// Nesting may be of any depth. A canonical text is its own canonical text, except for that of blank arguments: it is
/// empty.
///
/// ```
/// use retrace_events::canonical_arguments;
///
/// assert_eq!(canonical_arguments(r#" { "b" : 1E2, "a" : "\u00e9" } "#), r#"{"a":"é","b":100.0}"#);
/// assert_eq!(canonical_arguments(""), "{}");
/// assert_eq!(canonical_arguments("page 3\n"), "page 3");
/// ```
pub fn canonical_arguments(arguments: &str) -> String {
    if arguments.is_empty() {
        return "{}".to_owned();
    }
    canonical_text(arguments)
}

fn canonical_text(text: &str) -> String {
    match Json::read(text) {
        Some(json) => json.canonical(),
        None => text.trim_matches(json::WHITE_SPACE).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::collection::vec;
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    #[test]
    fn vectors_give_the_recommended_text_and_the_same_classes() {
        let rows = retrace_testing::vectors::rows("verifier/signature.jsonl");
        let text = |row: &Value, field: &str| row[field].as_str().unwrap().to_owned();
        let signatures: Vec<Signature> =
            rows.iter().map(|row| Signature::of(&text(row, "name"), &text(row, "arguments"))).collect();
        for (row, signature) in rows.iter().zip(&signatures) {
            if row["exact_text"].as_bool().unwrap() {
                assert_eq!(signature.to_string(), text(row, "recommended"), "{}", row["case"]);
            }
            for (other_row, other) in rows.iter().zip(&signatures) {
                assert_eq!(
                    signature == other,
                    row["class"] == other_row["class"],
                    "{} and {}",
                    row["case"],
                    other_row["case"]
                );
            }
        }
    }

    #[track_caller]
    fn check(arguments: &str, canonical: &str) {
        assert_eq!(canonical_arguments(arguments), canonical, "{arguments}");
    }

    #[test]
    fn the_last_of_a_key_counts_wherever_it_stands() {
        check(r#"{"a":{"x":1},"b":2,"a":3,"\u0061":[4]}"#, r#"{"a":[4],"b":2}"#);
    }

    #[test]
    fn keys_are_sorted_by_what_they_say_not_by_how_it_is_escaped() {
        check(
            r#"{"\\":1,"A":2,"\n":3,"\ue000":4,"\udfff":5,"\ud7ff":6}"#,
            "{\"\\n\":3,\"A\":2,\"\\\\\":1,\"\u{d7ff}\":6,\"\\udfff\":5,\"\u{e000}\":4}",
        );
    }

    #[test]
    fn text_that_is_almost_json_is_kept() {
        for text in [
            "{",
            "[1",
            "[1,",
            "[1,]",
            "[,1]",
            "{1:2}",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\":1,",
            "1 2",
            "truely",
            "nul",
            "-NaN",
            "+Infinity",
            "- 1",
            "1e",
            "1e+",
            "1.e5",
            "00",
            "-",
            "\"",
            "\"\\",
            "\"\\u12",
            "\"\\u+123\"",
            "\"\t\"",
            "[}",
            "{]",
            "é",
        ] {
            check(&format!(" \t{text}\r\n"), text);
        }
    }

    #[test]
    fn blank_arguments_survive_being_written_and_read() {
        let blank = Signature::of("f", " ");
        assert_ne!(blank, Signature::of("f", ""));
        let written = serde_json::to_string(&blank).unwrap();
        assert_eq!(written, r#"{"name":"f","arguments":""}"#);
        assert_eq!(serde_json::from_str::<Signature>(&written).unwrap(), blank);
    }

    #[test]
    fn a_signature_written_by_another_hand_is_canonical_once_read() {
        let read: Signature = serde_json::from_str(r#"{"name":"f","arguments":"{ \"b\": 1, \"a\": 2 }"}"#).unwrap();
        assert_eq!(read, Signature::of("f", r#"{"a":2,"b":1}"#));
    }

    #[test]
    fn deep_nesting_needs_no_stack_and_no_copy_a_level() {
        let depth = 100_000;
        let deep = format!("{}1.50{}", r#"{"b": 0, "a": [ "#.repeat(depth), "]}".repeat(depth));
        let canonical = format!("{}1.5{}", r#"{"a":["#.repeat(depth), r#"],"b":0}"#.repeat(depth));
        let unclosed = "[".repeat(depth);
        std::thread::Builder::new()
            .stack_size(128 * 1024)
            .spawn(move || {
                check(&deep, &canonical);
                check(&unclosed, &unclosed);
            })
            .unwrap()
            .join()
            .unwrap();
    }

    #[test]
    fn a_hundred_thousand_signatures_fit_in_a_set() {
        let signatures: HashSet<Signature> =
            (0..100_000).map(|page| Signature::of("read", &format!(r#"{{"page": {page}}}"#))).collect();
        assert_eq!(signatures.len(), 100_000);
        assert!(signatures.contains(&Signature::of("read", r#"{"page":99999}"#)));
    }

    /// A JSON value whose numbers serde_json holds exactly, and whose keys repeat often.
    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            prop::num::f64::NORMAL.prop_map(Value::from),
            (-1000..1000_i32).prop_map(|n| Value::from(f64::from(n) / 8.0)),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| {
            prop_oneof![
                vec(inner.clone(), 0..6).prop_map(Value::from),
                vec((key(), inner), 0..6).prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    fn key() -> impl Strategy<Value = String> {
        prop_oneof!["[ab\n\"\\\\\u{ff61}\u{1f600}]{0,2}", any::<String>()]
    }

    /// Text that is JSON about half of the time: its tokens in any order.
    fn tokens() -> impl Strategy<Value = String> {
        let token = prop::sample::select(vec![
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            " ",
            "\n",
            "\u{a0}",
            "\"",
            "\\",
            "\"a\"",
            "\"\\u0061\"",
            "\"\\ud800\"",
            "\\ude00",
            "\"\\uD83D\\uDE00\"",
            "é",
            "0",
            "-0",
            "1",
            "-1.0",
            "1e5",
            "1E+400",
            "1e-400",
            "0.1",
            "12345678901234567890123",
            ".",
            "e",
            "-",
            "+",
            "null",
            "true",
            "false",
            "NaN",
            "Infinity",
            "-Infinity",
            "[]",
            "{}",
            "{\"b\":1,\"a\":2}",
        ]);
        vec(token, 0..12).prop_map(|tokens| tokens.concat())
    }

    /// Spells `value` with other white space and other escapes, and its keys in reverse.
    fn respell(value: &Value, out: &mut String) {
        match value {
            Value::Array(items) => {
                out.push_str(" [\t");
                for (index, item) in items.iter().enumerate() {
                    out.push_str(if index > 0 { " ,\r\n" } else { "" });
                    respell(item, out);
                }
                out.push_str("\n] ");
            }
            Value::Object(members) => {
                out.push_str("\n{ ");
                for (index, (key, member)) in members.iter().rev().enumerate() {
                    out.push_str(if index > 0 { " , " } else { "" });
                    escape(key, out);
                    out.push_str("\t: ");
                    respell(member, out);
                }
                out.push_str(" }\r");
            }
            Value::String(text) => escape(text, out),
            scalar => out.push_str(&format!(" {scalar} ")),
        }
    }

    fn escape(text: &str, out: &mut String) {
        out.push('"');
        out.extend(text.encode_utf16().map(|unit| format!("\\u{unit:04X}")));
        out.push('"');
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(retrace_testing::cases(256, 10_000)))]

        #[test]
        fn a_canonical_text_is_its_own(text in tokens()) {
            let canonical = canonical_text(&text);
            prop_assert_eq!(canonical_text(&canonical), canonical);
        }

        #[test]
        fn any_text_has_a_canonical_text(text in any::<String>()) {
            let canonical = canonical_text(&text);
            prop_assert_eq!(canonical_text(&canonical), canonical);
        }

        #[test]
        fn text_that_serde_json_refuses_too_is_only_trimmed(text in tokens()) {
            let Err(error) = serde_json::from_str::<Value>(&text) else { return Ok(()) };
            let read_here = ["NaN", "Infinity", "\\u"].iter().any(|extra| text.contains(extra))
                || error.to_string().starts_with("number out of range");
            if !read_here {
                prop_assert_eq!(canonical_text(&text), text.trim_matches([' ', '\t', '\n', '\r']));
            }
        }

        #[test]
        fn a_canonical_text_says_what_serde_json_reads(value in value()) {
            let canonical = canonical_arguments(&value.to_string());
            prop_assert_eq!(serde_json::from_str::<Value>(&canonical).unwrap(), value);
        }

        #[test]
        fn white_space_escapes_and_the_order_of_keys_do_not_count(value in value()) {
            let mut respelled = String::new();
            respell(&value, &mut respelled);
            prop_assert_eq!(canonical_arguments(&respelled), canonical_arguments(&value.to_string()));
        }

        #[test]
        fn values_that_differ_have_texts_that_differ(one in value(), other in value()) {
            let same = canonical_arguments(&one.to_string()) == canonical_arguments(&other.to_string());
            prop_assert_eq!(same, one == other);
        }

        #[test]
        fn a_signature_is_read_back_as_it_was_written(name in any::<String>(), arguments in tokens()) {
            let signature = Signature::of(&name, &arguments);
            let written = serde_json::to_string(&signature).unwrap();
            prop_assert_eq!(serde_json::from_str::<Signature>(&written).unwrap(), signature);
        }
    }
}
