//! Messages and their lines.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use retrace_command::protocol::*;
use retrace_events::{History, Outcome, Raw};
use serde_json::{Value, json};

/// JSON as a program may write it, number spellings included.
fn any_raw() -> impl Strategy<Value = Raw> {
    let text = any::<String>().prop_map(|text| Value::from(text).to_string());
    let leaf = prop_oneof![text, Just("1e2".to_owned()), Just("340282366920938463463374607431768211457".to_owned())];
    let json = leaf.prop_recursive(3, 8, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(|items| format!("[{}]", items.join(", "))),
            vec((any::<String>(), inner), 0..3).prop_map(|fields| {
                let fields = fields.iter().enumerate();
                let fields = fields.map(|(n, (key, value))| format!("{}: {value}", json!(format!("{n}{key}"))));
                format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
            }),
        ]
    });
    json.prop_map(|json| serde_json::from_str(&json).unwrap())
}

fn any_to_program() -> impl Strategy<Value = ToProgram> {
    let (number, id) = (any::<u64>(), any::<u64>());
    let events = || vec(any_raw(), 0..4);
    let limits = (option::of(any::<u64>()), option::of(any::<u64>()), option::of(any::<u64>()))
        .prop_map(|(actions, answers, total_tokens)| Limits { actions, answers, total_tokens, requests: None });
    prop_oneof![
        (any_raw(), 0..3_usize).prop_map(|(config, role)| {
            let role = [Role::Strategy, Role::Agent, Role::Environment][role];
            Hello { retrace: 1, role, config }.into()
        }),
        (number, events(), option::of(any::<u64>()), option::of(any::<String>()))
            .prop_map(|(r#use, events, window, focus)| Compact { r#use, events, window, focus }.into()),
        (number, option::of(any::<String>()), events(), events(), any::<bool>(), limits, any::<u64>()).prop_map(
            |(r#use, instructions, events, tools, independent, budget, seed)| {
                Resume { r#use, instructions, events, tools, independent, budget, seed }.into()
            }
        ),
        (number, id, any::<String>(), any::<String>()).prop_map(|(r#use, id, name, arguments)| Call {
            r#use,
            id,
            name,
            arguments
        }
        .into()),
        (number, id, any_raw()).prop_map(|(r#use, id, response)| Answer { r#use, id, response }.into()),
        (number, id, any::<String>()).prop_map(|(r#use, id, message)| NoAnswer { r#use, id, message }.into()),
        (number, any::<String>()).prop_map(|(r#use, reason)| Over { r#use, reason }.into()),
        number.prop_map(|r#use| Open { r#use }.into()),
    ]
}

fn any_from_program() -> impl Strategy<Value = FromProgram> {
    let (number, id) = (any::<u64>(), any::<u64>());
    let outcome = prop_oneof![Just(Outcome::Ok), Just(Outcome::Error), Just(Outcome::NotFound)];
    let serves = prop_oneof![Just(Serves::One), Just(Serves::OneByOne), Just(Serves::Many)];
    prop_oneof![
        (any::<String>(), serves, any::<bool>(), vec(any::<String>(), 0..3)).prop_map(|(name, serves, asks, tools)| {
            Greeting { retrace: 1, role: Role::Agent, name, serves, asks, tools }.into()
        }),
        (number, vec(any_raw(), 0..4)).prop_map(|(r#use, events)| Compacted { r#use, events }.into()),
        (number, id, any::<String>(), any::<String>(), option::of(any::<String>())).prop_map(
            |(r#use, id, instructions, question, model)| Ask { r#use, id, instructions, question, model }.into()
        ),
        (number, any::<u64>(), any_raw())
            .prop_map(|(r#use, model_calls, usage)| Spent { r#use, model_calls, usage }.into()),
        (number, id, option::of(vec(any_raw(), 0..3)))
            .prop_map(|(r#use, id, events)| Respond { r#use, id, events }.into()),
        (number, any_raw(), any::<bool>()).prop_map(|(r#use, response, hashed)| {
            let sent = hashed.then(|| History::from(Vec::new()).sent_hash());
            Report { r#use, response, sent }.into()
        }),
        (number, id, any::<String>(), any::<String>(), any::<String>())
            .prop_map(|(r#use, id, call_id, name, arguments)| AgentCall { r#use, id, call_id, name, arguments }.into()),
        (number, any_raw()).prop_map(|(r#use, result)| OwnResult { r#use, result }.into()),
        (number, any_raw()).prop_map(|(r#use, event)| Note { r#use, event }.into()),
        (number, vec(any_raw(), 0..3), any::<bool>()).prop_map(|(r#use, tools, independent)| Opened {
            r#use,
            tools,
            independent
        }
        .into()),
        (number, id, any_raw(), outcome, option::of(any::<String>()))
            .prop_map(|(r#use, id, content, outcome, error)| CallResult { r#use, id, content, outcome, error }.into()),
        (number, any::<String>()).prop_map(|(r#use, message)| Failed { r#use, message }.into()),
        number.prop_map(|r#use| Unchanged { r#use }.into()),
        number.prop_map(|r#use| Ended { r#use }.into()),
    ]
}

proptest! {
    #[test]
    fn a_message_is_read_back_as_it_was_written(to in any_to_program(), from in any_from_program()) {
        let line = serde_json::to_string(&to).unwrap();
        prop_assert!(!line.contains('\n'));
        prop_assert_eq!(ToProgram::parse(&line).unwrap(), to);
        let line = serde_json::to_string(&from).unwrap();
        prop_assert!(!line.contains('\n'));
        prop_assert_eq!(FromProgram::parse(&line).unwrap(), from);
    }

    #[test]
    fn no_line_is_a_reason_to_panic(line: String, kind in "[a-z_]{1,12}", raw in any_raw()) {
        _ = FromProgram::parse(&line);
        _ = FromProgram::parse(&format!("{{\"type\":\"{kind}\",\"use\":{}}}", raw.get()));
    }
}

#[track_caller]
fn check(line: &str, error: &str) {
    assert_eq!(FromProgram::parse(line).unwrap_err().to_string(), error);
}

#[test]
fn a_line_that_is_no_message_is_told_why() {
    check("hello", "no JSON object with a `type`");
    check("[1]", "no JSON object with a `type`");
    check(r#"{"use":1}"#, "no JSON object with a `type`");
    check(r#"{"type":"halt"}"#, "a message of type `halt`, which the protocol does not have");
    check(r#"{"type":"ended"}"#, "a `ended` that is wrong: missing field `use`");
    check(
        r#"{"type":"ended","use":"1"}"#,
        r#"a `ended` that is wrong: field `use`: invalid type: string "1", expected u64"#,
    );
    check(
        r#"{"type":"spent","use":1,"model_calls":1,"usge":{}}"#,
        "a `spent` that is wrong: field `usge`: unknown field `usge`, expected one of `use`, `model_calls`, `usage`",
    );
}
