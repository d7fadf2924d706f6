//! Which results are failures where their source does not say: an [`OutcomeRule`] looks at a result's text.

use std::fmt;
use std::str::FromStr;

use regex::Regex;
use serde::Deserialize;
use serde_json::Value;
use thiserror::Error;

use crate::signature::json::Json;

/// A test of a result's text that says whether the call failed.
///
/// Many sources hand a tool's failure to the model as plain text, such as `Error: no such user`, and keep no flag of
/// it. A rule tells such results from the others. It is written as one line, or as a table of a configuration:
///
/// | line | table | a result is a failure when |
/// |---|---|---|
/// | `prefix:Error` | `prefix = "Error"` | its text starts with these characters, white space and case included |
/// | `regex:^Error` | `regex = "^Error"` | the regular expression matches somewhere in its text |
/// | `pointer:/ok=false` | `pointer = "/ok"`, `value = false` | its text is a JSON value in which the pointer (RFC 6901) leads to this value |
///
/// In a line the value after the first `=` is JSON; what is not JSON is taken as a string, so that
/// `pointer:/status=error` does without quotes. TOML has no null: a comparison with null is written as a line.
///
/// Values are compared by what they mean. JSON has one kind of number, so `1`, `1.0` and `1e0` are equal here (other
/// than in a [`Signature`](crate::Signature), where a tool may read them differently); `"1"` is not equal to them. The
/// order of an object's members does not count. A result is read as arguments are: to any depth, the words `NaN` and
/// `Infinity` included, and the last of a key that stands twice counts. Text that is not JSON as a whole holds no value.
///
/// Two rules are equal when they are spelt the same.
///
/// ```
/// use retrace_events::OutcomeRule;
///
/// let rule: OutcomeRule = "pointer:/ok=false".parse()?;
/// assert!(rule.is_failure(r#"{"ok": false, "message": "no such user"}"#));
/// assert!(!rule.is_failure(r#"{"ok": true}"#));
/// assert!(!rule.is_failure("no such user"));
/// # Ok::<(), retrace_events::OutcomeRuleError>(())
/// ```
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "Table")]
#[non_exhaustive]
pub enum OutcomeRule {
    /// The text starts with this one, which is not empty.
    #[non_exhaustive]
    Prefix(String),
    /// The expression matches somewhere in the text.
    #[non_exhaustive]
    Regex(Regex),
    /// The text is JSON, and the pointer leads to the value there.
    #[non_exhaustive]
    Pointer {
        /// An RFC 6901 pointer without a `=`.
        pointer: String,
        /// The value of a failure.
        value: Value,
    },
}

/// Why a text or table is no [`OutcomeRule`].
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum OutcomeRuleError {
    /// The line starts with no kind of rule.
    #[error("`{line}` is no outcome rule: write `prefix:TEXT`, `regex:PATTERN` or `pointer:/KEY=VALUE`")]
    UnknownKind {
        /// The line as it was given.
        line: String,
    },
    /// The table has no kind of rule, or several.
    #[error(
        "an outcome rule has exactly one of `prefix`, `regex` and `pointer`, not {}",
        if given.is_empty() { "none".to_owned() } else { format!("`{}`", given.join("` and `")) }
    )]
    NotOneKind {
        /// The kinds that were given.
        given: Vec<&'static str>,
    },
    /// An empty prefix or expression, which every result has.
    #[error("an empty `{kind}` makes every result a failure: write `{kind}:` and what failures say")]
    Empty {
        /// `prefix` or `regex`.
        kind: &'static str,
    },
    /// The expression is none, or is too large.
    #[error("`{pattern}` is not a regular expression that can be used: {reason}")]
    Regex {
        /// The expression as it was given.
        pattern: String,
        /// What is wrong with it: in the text, not a source, so that a configuration's error has it too.
        reason: regex::Error,
    },
    /// The pointer is none by RFC 6901.
    #[error(
        "`{pointer}` is not a JSON pointer: write `/KEY` or `/KEY/INDEX`, with `~1` for `/` and `~0` for `~` in a key"
    )]
    Pointer {
        /// The pointer as it was given.
        pointer: String,
    },
    /// The pointer has a `=`, which ends the pointer in a line.
    #[error("the JSON pointer `{pointer}` goes through a key with a `=`, which a rule cannot name: use a `regex`")]
    PointerWithEquals {
        /// The pointer as it was given.
        pointer: String,
    },
    /// A pointer and no value.
    #[error(
        "the JSON pointer `{pointer}` is compared with no value: write `pointer:/KEY=VALUE`, or `value = VALUE` beside `pointer`"
    )]
    NoValue {
        /// The pointer as it was given.
        pointer: String,
    },
    /// A value and no pointer.
    #[error("a `value` stands only beside a `pointer`")]
    ValueAlone,
}

impl OutcomeRule {
    /// The rule that a failure's text starts with `prefix`.
    ///
    /// # Errors
    ///
    /// [`Empty`](OutcomeRuleError::Empty).
    pub fn prefix(prefix: impl Into<String>) -> Result<Self, OutcomeRuleError> {
        let prefix = prefix.into();
        if prefix.is_empty() {
            return Err(OutcomeRuleError::Empty { kind: "prefix" });
        }
        Ok(Self::Prefix(prefix))
    }

    /// The rule that `pattern`, in the syntax of the `regex` crate, matches somewhere in a failure's text.
    ///
    /// # Errors
    ///
    /// [`Empty`](OutcomeRuleError::Empty), and [`Regex`](OutcomeRuleError::Regex) for what does not compile within the
    /// default size limit.
    pub fn regex(pattern: &str) -> Result<Self, OutcomeRuleError> {
        if pattern.is_empty() {
            return Err(OutcomeRuleError::Empty { kind: "regex" });
        }
        let regex =
            Regex::new(pattern).map_err(|reason| OutcomeRuleError::Regex { pattern: pattern.to_owned(), reason })?;
        Ok(Self::Regex(regex))
    }

    /// The rule that `pointer` leads to `value` in a failure's text. The empty pointer leads to the whole text.
    ///
    /// # Errors
    ///
    /// [`Pointer`](OutcomeRuleError::Pointer) and [`PointerWithEquals`](OutcomeRuleError::PointerWithEquals).
    pub fn pointer(pointer: impl Into<String>, value: Value) -> Result<Self, OutcomeRuleError> {
        let pointer = pointer.into();
        let stray_tilde = pointer.split('~').skip(1).any(|after| !after.starts_with(['0', '1']));
        if stray_tilde || !(pointer.is_empty() || pointer.starts_with('/')) {
            return Err(OutcomeRuleError::Pointer { pointer });
        }
        if pointer.contains('=') {
            return Err(OutcomeRuleError::PointerWithEquals { pointer });
        }
        Ok(Self::Pointer { pointer, value })
    }

    /// Whether a result with this text, its text parts joined, is a failure.
    pub fn is_failure(&self, text: &str) -> bool {
        match self {
            Self::Prefix(prefix) => text.starts_with(prefix),
            Self::Regex(regex) => regex.is_match(text),
            Self::Pointer { pointer, value } => Json::read(text).is_some_and(|json| json.holds(pointer, value)),
        }
    }
}

impl FromStr for OutcomeRule {
    type Err = OutcomeRuleError;

    fn from_str(line: &str) -> Result<Self, Self::Err> {
        match line.split_once(':') {
            Some(("prefix", prefix)) => Self::prefix(prefix),
            Some(("regex", pattern)) => Self::regex(pattern),
            Some(("pointer", test)) => match test.split_once('=') {
                Some((pointer, value)) if !value.is_empty() => {
                    let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
                    Self::pointer(pointer, value)
                }
                _ => Err(OutcomeRuleError::NoValue { pointer: test.trim_end_matches('=').to_owned() }),
            },
            _ => Err(OutcomeRuleError::UnknownKind { line: line.to_owned() }),
        }
    }
}

/// The line that gives the rule back.
impl fmt::Display for OutcomeRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Prefix(prefix) => write!(f, "prefix:{prefix}"),
            Self::Regex(regex) => write!(f, "regex:{regex}"),
            Self::Pointer { pointer, value } => write!(f, "pointer:{pointer}={value}"),
        }
    }
}

impl PartialEq for OutcomeRule {
    fn eq(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}

impl Eq for OutcomeRule {}

/// A rule as a configuration has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    prefix: Option<String>,
    regex: Option<String>,
    pointer: Option<String>,
    value: Option<Value>,
}

impl TryFrom<Table> for OutcomeRule {
    type Error = OutcomeRuleError;

    fn try_from(table: Table) -> Result<Self, Self::Error> {
        // A NaN of TOML arrives as null, and would silently be compared as that.
        let value = table.value.filter(|value| !value.is_null());
        match (table.prefix, table.regex, table.pointer, value) {
            (Some(prefix), None, None, None) => Self::prefix(prefix),
            (None, Some(pattern), None, None) => Self::regex(&pattern),
            (None, None, Some(pointer), Some(value)) => Self::pointer(pointer, value),
            (None, None, Some(pointer), None) => Err(OutcomeRuleError::NoValue { pointer }),
            (Some(_), None, None, Some(_)) | (None, Some(_), None, Some(_)) => Err(OutcomeRuleError::ValueAlone),
            (prefix, regex, pointer, _) => {
                let kinds = [prefix.map(|_| "prefix"), regex.map(|_| "regex"), pointer.map(|_| "pointer")];
                Err(OutcomeRuleError::NotOneKind { given: kinds.into_iter().flatten().collect() })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn rule(line: &str) -> OutcomeRule {
        line.parse().unwrap()
    }

    #[track_caller]
    fn check(line: &str, failures: &[&str], successes: &[&str]) {
        let rule = rule(line);
        for text in failures {
            assert!(rule.is_failure(text), "{line} on {text}");
        }
        for text in successes {
            assert!(!rule.is_failure(text), "{line} on {text}");
        }
    }

    fn table(table: Value) -> Result<OutcomeRule, String> {
        serde_json::from_value(table).map_err(|error| error.to_string())
    }

    fn message(line: &str) -> String {
        line.parse::<OutcomeRule>().unwrap_err().to_string()
    }

    #[test]
    fn a_prefix_is_compared_as_it_is() {
        check(
            "prefix:Error: ",
            &["Error: ", "Error: no such user"],
            &["", "Error", "error: no", " Error: no", "An Error: no"],
        );
    }

    #[test]
    fn an_expression_matches_anywhere_unless_it_is_anchored() {
        check("regex:failed|denied", &["access denied", "failed"], &["", "FAILED"]);
        check(r"regex:^\s*Error\b", &["\n Error: x"], &["no Error", "Errors"]);
        check("regex:(?im)^traceback:", &["a\nTraceback: b"], &["a traceback: b"]);
    }

    #[test]
    fn a_pointer_finds_its_value_in_json_only() {
        check(
            "pointer:/ok=false",
            &[r#"{"ok":false}"#, " {\"a\": [1], \"ok\": false}\n", r#"{"ok":true,"ok":false}"#],
            &[
                "",
                "false",
                r#"{"ok":"false"}"#,
                r#"{"ok":null}"#,
                r#"{"a":{"ok":false}}"#,
                r#"{"ok":false} done"#,
                r#"{"ok":false"#,
            ],
        );
        check(
            "pointer:/errors/0/code=404",
            &[r#"{"errors":[{"code":404}]}"#],
            &[r#"{"errors":[]}"#, r#"{"errors":{"code":404}}"#],
        );
        check("pointer:=null", &["null", " null "], &["", "{}", "\"null\""]);
        check("pointer:/=1", &[r#"{"":1}"#], &["1", "[1]"]);
    }

    #[test]
    fn a_pointer_names_an_index_in_one_way_and_any_key() {
        check("pointer:/1=true", &["[0,true]", r#"{"1":true}"#], &["[true]", "true"]);
        check("pointer:/01=true", &[r#"{"01":true}"#], &["[0,true]"]);
        check("pointer:/+1=true", &[r#"{"+1":true}"#], &["[0,true]"]);
        check("pointer:/-=true", &[r#"{"-":true}"#], &["[0,true]"]);
        check("pointer:/99999999999999999999999=true", &[], &["[0,true]"]);
        check("pointer:/a~1b~01=true", &[r#"{"a/b~1":true}"#], &[r#"{"a/b/":true}"#]);
    }

    #[test]
    fn values_are_compared_by_what_they_mean() {
        check(
            "pointer:/code=1",
            &[r#"{"code":1}"#, r#"{"code":1.0}"#, r#"{"code":10e-1}"#],
            &[r#"{"code":"1"}"#, r#"{"code":1.5}"#, r#"{"code":true}"#],
        );
        check("pointer:/code=1.0", &[r#"{"code":1}"#], &[]);
        check("pointer:/n=9007199254740993", &[r#"{"n":9007199254740993}"#], &[r#"{"n":9007199254740992}"#]);
        check(
            r#"pointer:/e={"a":[1,{"b":2}],"c":null}"#,
            &[r#"{"e":{"c":null,"a":[1.0,{"b":2}]}}"#],
            &[r#"{"e":{"a":[1,{"b":2}]}}"#, r#"{"e":{"a":[1,{"b":2},3],"c":null}}"#],
        );
    }

    #[test]
    fn a_value_that_is_not_json_is_a_string() {
        assert_eq!(rule("pointer:/status=error"), rule(r#"pointer:/status="error""#));
        check("pointer:/status=a=b", &[r#"{"status":"a=b"}"#], &[]);
        check("pointer:/status=\"\"", &[r#"{"status":""}"#], &["{}"]);
    }

    #[test]
    fn json_that_serde_json_does_not_read_is_read() {
        let rule = rule("pointer:/ok=false");
        assert!(rule.is_failure(r#"{"mean": NaN, "cut": "\ud83d", "large": 1e400, "ok": false}"#));
        let depth = 100_000;
        assert!(rule.is_failure(&format!(r#"{{"deep":{}{},"ok":false}}"#, "[".repeat(depth), "]".repeat(depth))));
    }

    #[test]
    fn a_table_is_one_rule() {
        assert_eq!(table(json!({"prefix": "Error"})).unwrap(), rule("prefix:Error"));
        assert_eq!(table(json!({"regex": "^Error"})).unwrap(), rule("regex:^Error"));
        assert_eq!(table(json!({"pointer": "/ok", "value": false})).unwrap(), rule("pointer:/ok=false"));
    }

    #[test]
    fn a_table_that_is_no_rule_says_why() {
        let why = |fields| table(fields).unwrap_err();
        for fields in [json!({}), json!({"value": 1})] {
            assert_eq!(why(fields), "an outcome rule has exactly one of `prefix`, `regex` and `pointer`, not none");
        }
        assert_eq!(
            why(json!({"prefix": "a", "pointer": "/a", "value": 1})),
            "an outcome rule has exactly one of `prefix`, `regex` and `pointer`, not `prefix` and `pointer`"
        );
        assert_eq!(why(json!({"regex": "a", "value": 1})), "a `value` stands only beside a `pointer`");
        assert_eq!(
            why(json!({"pointer": "/a"})),
            "the JSON pointer `/a` is compared with no value: write `pointer:/KEY=VALUE`, or `value = VALUE` beside `pointer`"
        );
        assert!(why(json!({"prefx": "a"})).starts_with("unknown field `prefx`"));
        assert!(why(json!({"regex": "("})).contains("unclosed group"));
        assert!(table(json!("prefix:Error")).is_err());
    }

    #[test]
    fn a_line_that_is_no_rule_says_what_is_accepted() {
        for line in ["", "Error", "prefx:Error", "Prefix:Error", " prefix:Error", ":"] {
            assert_eq!(
                message(line),
                format!("`{line}` is no outcome rule: write `prefix:TEXT`, `regex:PATTERN` or `pointer:/KEY=VALUE`")
            );
        }
        assert_eq!(
            message("prefix:"),
            "an empty `prefix` makes every result a failure: write `prefix:` and what failures say"
        );
        assert_eq!(
            message("regex:"),
            "an empty `regex` makes every result a failure: write `regex:` and what failures say"
        );
        assert!(message("regex:a(b").starts_with("`a(b` is not a regular expression that can be used: "));
        assert!(message("regex:(\\w{1000}){1000}").contains("size limit"));
        for line in ["pointer:/ok", "pointer:/ok="] {
            assert_eq!(
                message(line),
                "the JSON pointer `/ok` is compared with no value: write `pointer:/KEY=VALUE`, or `value = VALUE` beside `pointer`"
            );
        }
        for pointer in ["ok", "/a~", "/a~2b", "#/ok"] {
            assert_eq!(
                message(&format!("pointer:{pointer}=1")),
                format!(
                    "`{pointer}` is not a JSON pointer: write `/KEY` or `/KEY/INDEX`, with `~1` for `/` and `~0` for `~` in a key"
                )
            );
        }
    }

    #[test]
    fn a_pointer_that_no_line_can_spell_is_refused() {
        assert_eq!(
            table(json!({"pointer": "/a=b", "value": 1})).unwrap_err(),
            "the JSON pointer `/a=b` goes through a key with a `=`, which a rule cannot name: use a `regex`"
        );
    }

    #[test]
    fn rules_are_equal_when_they_are_spelt_the_same() {
        assert_eq!(rule("regex:a|b"), rule("regex:a|b"));
        assert_ne!(rule("regex:a|b"), rule("regex:b|a"));
        assert_ne!(rule("prefix:a"), rule("regex:a"));
        assert_ne!(rule("pointer:/a=1"), rule("pointer:/a=1.0"));
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            (0..3_u64).prop_map(Value::from),
            prop::num::f64::NORMAL.prop_map(Value::from),
            (0..3_u8).prop_map(|n| Value::from(f64::from(n))),
            key().prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 20, 4, |inner| {
            prop_oneof![
                vec(inner.clone(), 0..4).prop_map(Value::from),
                vec((key(), inner), 0..4).prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    fn key() -> impl Strategy<Value = String> {
        prop_oneof!["[0-3]", "[ab/~1\"]{0,2}", any::<String>()]
    }

    fn pointer() -> impl Strategy<Value = String> {
        vec(key(), 0..4).prop_map(|keys| {
            let tokens =
                keys.iter().map(|key| format!("/{}", key.replace('=', "").replace('~', "~0").replace('/', "~1")));
            tokens.collect()
        })
    }

    /// Every value in `value` and the pointer to it.
    fn places(value: &Value, pointer: &str, out: &mut Vec<(String, Value)>) {
        out.push((pointer.to_owned(), value.clone()));
        match value {
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    places(item, &format!("{pointer}/{index}"), out);
                }
            }
            Value::Object(members) => {
                for (key, member) in members {
                    places(member, &format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1")), out);
                }
            }
            _ => {}
        }
    }

    proptest! {
        #[test]
        fn a_rule_is_read_back_from_its_line(prefix in any::<String>(), pointer in pointer(), value in value()) {
            let rules = [
                OutcomeRule::prefix(format!("a{prefix}")).unwrap(),
                OutcomeRule::prefix(format!("{prefix}:=")).unwrap(),
                OutcomeRule::regex(&format!("^{}|b:=", regex::escape(&prefix))).unwrap(),
                OutcomeRule::pointer(pointer, value).unwrap(),
            ];
            for rule in rules {
                let read: OutcomeRule = rule.to_string().parse().unwrap();
                prop_assert_eq!(read.to_string(), rule.to_string());
                prop_assert_eq!(read, rule);
            }
        }

        #[test]
        fn any_line_is_a_rule_or_an_error(kind in "(prefix|regex|pointer|x)?:?", rest in any::<String>(), text in any::<String>()) {
            if let Ok(rule) = format!("{kind}{rest}").parse::<OutcomeRule>() {
                rule.is_failure(&text);
                prop_assert_eq!(rule.to_string().parse::<OutcomeRule>().unwrap(), rule);
            }
        }

        #[test]
        fn every_value_is_found_where_it_stands(document in value()) {
            let mut all = Vec::new();
            places(&document, "", &mut all);
            for (pointer, value) in all.into_iter().filter(|(pointer, _)| !pointer.contains('=')) {
                let rule = OutcomeRule::pointer(pointer, value).unwrap();
                prop_assert!(rule.is_failure(&document.to_string()), "{}", rule);
            }
        }

        #[test]
        fn a_pointer_leads_where_serde_json_says(document in value(), pointer in pointer(), value in value()) {
            let found = document.pointer(&pointer).cloned();
            let rule = |value| OutcomeRule::pointer(pointer.clone(), value).unwrap();
            let text = document.to_string();
            match found {
                None => prop_assert!(!rule(value).is_failure(&text)),
                Some(found) => {
                    // As JSON spells them, `1` and `1.0` are two values, and by meaning one.
                    let numbers = |value: &Value| value.to_string().replace(".0", "");
                    prop_assert_eq!(rule(value.clone()).is_failure(&text), numbers(&value) == numbers(&found));
                    prop_assert!(rule(found).is_failure(&text));
                }
            }
        }
    }
}
