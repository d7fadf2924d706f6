//! What is read as input of `retrace score`, and what is refused with which words.

use retrace_stats::Exact;

use super::*;
use crate::Report;

/// A file with one boundary, whose fields after `cut` are given.
fn file(rest: &str) -> String {
    format!(r#"{{"horizon": 2, "boundaries": [{{"recording": "r", "cut": 3, {rest}}}]}}"#)
}

fn read(rest: &str) -> Verification {
    ScoreInput::from_json(&file(rest)).unwrap().into_verification()
}

#[track_caller]
fn refused(text: &str, expected: &str) {
    let error = ScoreInput::from_json(text).unwrap_err();
    assert!(error.to_string().starts_with(expected), "{error}");
    assert!(std::error::Error::source(&error).is_none(), "all is said in one text");
}

#[test]
fn the_example_of_the_documentation_is_scored() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/formats.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (_, section) = page.split_once("## Input of `retrace score`").unwrap();
    let (_, example) = section.split_once("```json\n").unwrap();
    let (example, _) = example.split_once("```").unwrap();

    let report = Report::new(ScoreInput::from_json(example).unwrap().into_verification()).unwrap();
    let [tail, summary, clear] = ["tail", "summary", "clear"].map(|name| &report.strategies[name]);
    let at_2 = tail.at(2).unwrap();
    let deltas = at_2.deltas.as_ref().unwrap().as_ref().map(|estimate| estimate.mean.to_string());
    // One of two rollouts failed a call and logged in again, the other did nothing; one PRE rollout is not scored.
    let expected = ["1/2", "1/2", "1", "1/2", "1"];
    assert_eq!([deltas.blocked, deltas.refetch, deltas.wasted, deltas.stopped, deltas.harm], expected);
    assert_eq!(tail.kept, Some("1/4".parse().unwrap()));
    assert_eq!((report.pre.n_rollouts, report.pre.n_failed[1]), (2, 1));
    assert_eq!((summary.n_failed_compactions, summary.spend.n_model_calls), (1, 3));
    assert_eq!((clear.n_noop, clear.at(2).unwrap().n_scored), (1, 1));
}

#[test]
fn the_hint_names_a_section_that_is_there() {
    let hint = ScoreInput::from_json("{}").unwrap_err().hint().unwrap();
    let (page, section) = (hint.split(' ').next().unwrap(), hint.split('"').nth(1).unwrap());
    let page = std::fs::read_to_string(format!("{}/../../{page}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    assert!(page.lines().any(|line| line == format!("## {section}")), "{section}");
}

#[test]
fn arguments_are_the_text_of_the_model_or_stand_for_their_own() {
    let verification = read(
        r#""history": [], "strategies": {}, "pre": [{"actions": [
            {"name": "f", "arguments": "{\"n\": 1.50}", "blocked": false},
            {"name": "f", "arguments": {"n": 1.50, "big": 123456789012345678901234567890}, "outcome": "not_found"},
            {"name": "f", "arguments": "page 3", "blocked": true, "error": "BadRequest"}
        ]}]"#,
    );
    let actions = &verification.boundaries[0].pre[0].actions;
    let arguments: Vec<_> = actions.iter().map(Action::arguments).collect();
    let big = r#"{"n": 1.50, "big": 123456789012345678901234567890}"#;
    assert_eq!(arguments, [r#"{"n": 1.50}"#, big, "page 3"]);
    let outcomes: Vec<_> = actions.iter().map(Action::outcome).collect();
    assert_eq!(outcomes, [Outcome::Ok, Outcome::NotFound, Outcome::Error]);
    assert_eq!(actions[2].error(), Some("BadRequest"));
}

#[test]
fn what_was_executed_is_calls_or_events() {
    let calls = r#""history": [{"name": "login", "arguments": "", "blocked": true}], "strategies": {}, "pre": []"#;
    let events = r#""events": [
        {"type": "request", "content": "go"},
        {"type": "response", "content": [{"type": "tool_call", "id": "1", "name": "login", "arguments": "{}"}]},
        {"type": "tool_results", "results": [{"call_id": "1", "name": "login", "outcome": "error", "content": "no"}]}
    ], "strategies": {}, "pre": []"#;
    for text in [calls, events] {
        let boundary = &read(text).boundaries[0];
        assert_eq!(boundary.executed, 1);
        assert!(boundary.executed_calls.has_executed(&Signature::of("login", "{}")));
        assert!(!boundary.executed_calls.has_used("logout"));
    }
    let neither = r#""strategies": {}, "pre": []"#;
    refused(&file(neither), "`boundaries[0]`: needs either `history`");
    refused(&file(r#""events": [{"type": "tool_results", "results": [{}]}]"#), "`boundaries[0].events[0]`: missing");
    refused(&file(&format!("{calls}, \"events\": []")), "`boundaries[0]`: needs either `history`");
}

#[test]
fn a_rollout_says_how_it_ended() {
    let verification = read(
        r#""history": [], "strategies": {}, "pre": [
            {"actions": []},
            {"actions": [], "end": "budget", "n_answers": 2, "input_tokens": 9, "output_tokens": 4},
            {"error": "TimeoutError: 30 s"},
            {"actions": [], "off_the_record": "f({})"}
        ]"#,
    );
    let ends: Vec<_> = verification.boundaries[0].pre.iter().map(|rollout| rollout.end.clone()).collect();
    let message = "TimeoutError: 30 s".to_owned();
    assert_eq!(
        ends,
        [
            EndReason::Answer,
            EndReason::Budget,
            EndReason::Failed(Failure { stage: Stage::Agent, message }),
            EndReason::OffTheRecord { call: "f({})".to_owned() }
        ]
    );
    assert_eq!(verification.boundaries[0].pre[1].spend.input_tokens, 9);
    assert_eq!(verification.samples, 4);
}

#[test]
fn what_was_spent_may_be_said_and_cached_tokens_are_part_of_the_input() {
    let rollout = r#""n_answers": 2, "input_tokens": 9, "output_tokens": 4"#;
    let verification = read(&format!(
        r#""history": [], "pre": [
            {{"actions": [], {rollout}, "n_model_calls": 3, "cache_read_tokens": 5, "cache_write_tokens": 4, "dollars": 0.25}},
            {{"actions": [], {rollout}}}
        ], "strategies": {{
            "a": {{"unchanged": true}},
            "b": {{"unchanged": true, "spend": {{"n_model_calls": 1, "dollars": 0.5}}}}
        }}"#
    ));
    let boundary = &verification.boundaries[0];
    let [told, silent] = [0, 1].map(|sample| boundary.pre[sample].spend);
    let least = Spend { n_model_calls: 2, input_tokens: 9, output_tokens: 4, dollars: None, ..Spend::default() };
    assert_eq!(silent, least);
    let (cache_read_tokens, cache_write_tokens, dollars) = (Some(5), Some(4), Dollars::new(0.25));
    assert_eq!(told, Spend { n_model_calls: 3, cache_read_tokens, cache_write_tokens, dollars, ..least });
    let dollars = ["a", "b"].map(|name| boundary.strategies[name].spend.dollars);
    assert_eq!(dollars, [Dollars::new(0.0), Dollars::new(0.5)]);

    let pre =
        |fields: &str| file(&format!(r#""history": [], "strategies": {{}}, "pre": [{{"actions": [], {fields}}}]"#));
    let more = "`boundaries[0].pre[0]`: has more cached tokens than `input_tokens`, of which they are a part";
    refused(&pre(r#""input_tokens": 9, "cache_read_tokens": 5, "cache_write_tokens": 5"#), more);
    refused(&pre(r#""dollars": -0.5"#), "`boundaries[0].pre[0].dollars`: `-0.5` is no number of dollars");
}

#[test]
fn a_strategy_compacted_failed_or_changed_nothing() {
    let verification = read(
        r#""history": [], "pre": [], "pre_size": {"events": 9, "tokens": 100}, "strategies": {
            "tail": {"size": {"events": 4, "tokens": 40}, "cached_tokens": 10, "post": [{"actions": []}]},
            "summary": {"error": "429", "spend": {"n_model_calls": 3}},
            "control": {"unchanged": true}
        }"#,
    );
    let compactions: Vec<_> =
        verification.boundaries[0].strategies.values().map(|strategy| strategy.compaction.clone()).collect();
    let size = Some(Size { events: 4, tokens: Tokens(40) });
    let error = "429".to_owned();
    assert_eq!(
        compactions,
        [Compaction::Compacted { size, cached: Some(Tokens(10)) }, Compaction::Failed { error }, Compaction::Unchanged]
    );
    assert_eq!(verification.strategies, ["tail", "summary", "control"]);
    assert_eq!(verification.control.as_deref(), Some("control"));
    let report = Report::new(verification).unwrap();
    assert_eq!(report.strategies["tail"].cache_kept, Some(Exact::new(1.into(), 4.into())));
    assert_eq!(report.strategies["control"].cache_kept, Some(Exact::from_integer(1.into())));
    assert_eq!(report.strategies["summary"].cache_kept, None);
}

#[test]
fn a_control_that_compacted_is_refused() {
    let with = |fields: &str, name: &str, second: &str| {
        let boundary = |cut: usize, outcome: &str| {
            let fields = r#""recording": "r", "history": [], "pre": []"#;
            format!(r#"{{{fields}, "cut": {cut}, "strategies": {{"{name}": {outcome}}}}}"#)
        };
        let first = boundary(1, r#"{"unchanged": true, "post": [{"actions": []}]}"#);
        format!(r#"{{{fields}"horizon": 1, "boundaries": [{first}, {}]}}"#, boundary(2, second))
    };
    let compacted = r#"{"post": [{"actions": []}]}"#;
    let named = "`boundaries[1].strategies.tail` compacted, and `tail` is the control";
    refused(&with(r#""control": "tail", "#, "tail", compacted), named);
    let implied = with("", "control", compacted);
    refused(&implied, "`boundaries[1].strategies.control` compacted, and `control` is the control");
    assert!(ScoreInput::from_json(&implied).unwrap_err().to_string().ends_with("or give the strategy another name"));
    ScoreInput::from_json(&with("", "tail", compacted)).unwrap();
    ScoreInput::from_json(&with("", "control", r#"{"error": "429"}"#)).unwrap();
}

#[test]
fn only_an_object_stands_for_an_object_and_no_words_of_code_are_said() {
    let rollouts = |rollout: &str| file(&format!(r#""history": [], "strategies": {{}}, "pre": [{rollout}]"#));
    let strategy = |text: &str| file(&format!(r#""history": [], "pre": [], "strategies": {{"tail": {text}}}"#));
    let array = "invalid type: an array, expected an object at line 1 column ";
    refused("[1]", array);
    refused(r#"[1, 2, 0, "x", null, []]"#, array);
    refused(
        r#"{"horizon": 1, "boundaries": [["r", 3, [], null, null, [], {}]]}"#,
        &format!("`boundaries[0]`: {array}"),
    );
    refused(&rollouts("[[]]"), &format!("`boundaries[0].pre[0]`: {array}"));
    let action = r#"{"actions": [["f", "{}", true, null, null]]}"#;
    refused(&rollouts(action), &format!("`boundaries[0].pre[0].actions[0]`: {array}"));
    refused(&file(r#""history": [["f", "{}"]]"#), &format!("`boundaries[0].history[0]`: {array}"));
    refused(&file(r#""events": [["request", "go"]]"#), &format!("`boundaries[0].events[0]`: {array}"));
    refused(&file(r#""pre_size": [1, 2]"#), &format!("`boundaries[0].pre_size`: {array}"));
    refused(&strategy(r#"{"size": [1, 2]}"#), &format!("`boundaries[0].strategies.tail.size`: {array}"));
    refused(&strategy(r#"{"spend": [1, 2, 3]}"#), &format!("`boundaries[0].strategies.tail.spend`: {array}"));
    refused(&strategy("[]"), &format!("`boundaries[0].strategies.tail`: {array}"));
    refused(r#"{"horizon": {}}"#, "`horizon`: invalid type: an object, expected a whole number at line 1");
    refused(r#"{"horizon": 1.5}"#, "`horizon`: invalid type: the number `1.5`, expected a whole number at line 1");
    refused(r#"{"boundaries": {}}"#, "`boundaries`: invalid type: an object, expected an array at line 1");
    let map = file(r#""strategies": []"#);
    refused(&map, "`boundaries[0].strategies`: invalid type: an array, expected an object at line 1");
    let end = rollouts(r#"{"actions": [], "end": 1}"#);
    refused(&end, "`boundaries[0].pre[0].end`: invalid type: integer `1`, expected a string at line 1");
    let outcome = rollouts(r#"{"actions": [{"name": "f", "arguments": "", "outcome": {"ok": null}}]}"#);
    let place = "`boundaries[0].pre[0].actions[0].outcome`";
    refused(&outcome, &format!("{place}: invalid type: an object, expected a string at line 1"));
    let end = rollouts(r#"{"actions": [], "end": "done"}"#);
    refused(&end, "`boundaries[0].pre[0].end`: unknown variant `done`, expected `budget` or `answer`");
    // What the file says is not reworded.
    let said = r#"{"horizon": "map, expected usize"}"#;
    refused(said, "`horizon`: invalid type: string \"map, expected usize\", expected a whole number at line 1");
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    let rollouts = |rollout: &str| file(&format!(r#""history": [], "strategies": {{}}, "pre": [{rollout}]"#));
    let strategy = |text: &str| file(&format!(r#""history": [], "pre": [], "strategies": {{"tail": {text}}}"#));
    refused(r#"{"horizon": 2}"#, "missing field `boundaries`");
    refused(r#"{"horizon": 2"#, "EOF while parsing");
    refused("\"x\"", "invalid type: string");
    refused(r#"{"horizon": 0, "boundaries": []}"#, "`horizon` is 0");
    refused(r#"{"version": 2, "horizon": 1, "boundaries": []}"#, "`version` is 2");
    refused(r#"{"control": "c", "horizon": 1, "boundaries": []}"#, "`control` is `c`");
    refused(r#"{"horizon": 1, "boundaries": []} x"#, "trailing characters");
    refused(r#"{"horizon": -1, "boundaries": []}"#, "`horizon`: invalid value");
    refused(&file(r#""hystory": []"#), "`boundaries[0].hystory`: unknown field `hystory`");
    refused(&rollouts("{}"), "`boundaries[0].pre[0]`: needs `actions`");
    refused(&rollouts(r#"{"error": "x", "end": "answer"}"#), "`boundaries[0].pre[0]`: has more than one");
    refused(
        &rollouts(r#"{"actions": [{"name": "f", "arguments": "{}"}]}"#),
        "`boundaries[0].pre[0].actions[0]`: needs `blocked`",
    );
    refused(
        &rollouts(r#"{"actions": [{"name": "f", "arguments": "{}", "blocked": true, "outcome": "ok"}]}"#),
        "`boundaries[0].pre[0].actions[0]`: has both",
    );
    refused(
        &rollouts(r#"{"actions": [{"name": "f", "arguments": "{}", "blocked": 1}]}"#),
        "`boundaries[0].pre[0].actions[0].blocked`: invalid type",
    );
    refused(&strategy(r#"{"error": "x", "unchanged": true}"#), "`boundaries[0].strategies.tail`: has an `error`");
    refused(&strategy(r#"{"flaw": "x", "unchanged": true}"#), "`boundaries[0].strategies.tail`: has a `flaw`");
    refused(&strategy(r#"{"flaw": "x", "error": "y"}"#), "`boundaries[0].strategies.tail`: has both");
    refused(
        &strategy(r#"{"flaw": "x", "size": {"events": 1, "tokens": 1}}"#),
        "`boundaries[0].strategies.tail`: has a `flaw`, so that nothing can run",
    );
    refused(
        &strategy(r#"{"error": "x", "post": [{"actions": []}]}"#),
        "`boundaries[0].strategies.tail`: has an `error`",
    );
    refused(
        &strategy(r#"{"unchanged": true, "size": {"events": 1, "tokens": 1}}"#),
        "`boundaries[0].strategies.tail`: is `unchanged`",
    );
}
