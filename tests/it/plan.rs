//! A plan of the next run: from the report of a pilot, and of what a configuration takes.

use std::fs;
use std::path::Path;

use crate::program::retrace_in;

/// Wasted actions of PRE and of POST rollouts, boundary by boundary.
type Recording<'a> = &'a [[&'a [usize]; 2]];

/// The report of rollouts at some boundaries of each recording, of five actions each.
fn pilot(folder: &Path, recordings: &[Recording<'_>]) {
    let arm = |counts: &[usize]| {
        let rollouts = counts.iter().enumerate().map(|(number, &wasted)| {
            let actions = (0..5).map(|i| {
                format!(r#"{{"name": "f", "arguments": {{"n": {i}, "of": {number}}}, "blocked": {}}}"#, i < wasted)
            });
            format!(r#"{{"actions": [{}]}}"#, actions.collect::<Vec<_>>().join(","))
        });
        rollouts.collect::<Vec<_>>().join(",")
    };
    let boundaries = recordings.iter().enumerate().flat_map(|(recording, boundaries)| {
        boundaries.iter().enumerate().map(move |(cut, [pre, post])| {
            format!(
                r#"{{"recording": "r{recording}", "cut": {cut}, "history": [], "pre": [{}],
                    "strategies": {{"tail": {{"post": [{}]}}}}}}"#,
                arm(pre),
                arm(post)
            )
        })
    });
    let input = format!(r#"{{"horizon": 5, "boundaries": [{}]}}"#, boundaries.collect::<Vec<_>>().join(","));
    fs::write(folder.join("rollouts.json"), input).unwrap();
    let report = retrace_in(folder, &["score", "rollouts.json", "--json"]).ok();
    fs::write(folder.join("pilot.json"), report).unwrap();
}

const NOISY: &[Recording<'_>] = &[
    &[[&[0, 1, 0], &[1, 2, 0]], [&[1, 0, 0], &[0, 3, 1]]],
    &[[&[0, 0, 0], &[4, 3, 5]], [&[0, 1, 1], &[2, 1, 1]]],
    &[[&[2, 0, 1], &[1, 1, 0]], [&[0, 0, 0], &[0, 2, 0]]],
    &[[&[0, 0, 1], &[3, 1, 2]], [&[1, 1, 0], &[1, 4, 2]]],
    &[[&[0, 0, 0], &[0, 1, 0]], [&[0, 2, 0], &[2, 2, 1]]],
    &[[&[1, 0, 0], &[2, 0, 1]], [&[0, 0, 0], &[0, 0, 1]]],
];

#[test]
fn a_pilot_says_what_the_next_run_takes() {
    let folder = tempfile::tempdir().unwrap();
    let report = retrace_in(folder.path(), &["demo", "--json"]).ok();
    fs::write(folder.path().join("pilot.json"), report).unwrap();
    let args = ["--rollouts", "600", "--recordings", "12", "--margin", "wasted=1.5,stopped=0.2"];
    let text = retrace_in(folder.path(), &[&["plan", "pilot.json"], &args[..]].concat()).ok();
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn all_numbers_are_in_the_json() {
    let folder = tempfile::tempdir().unwrap();
    pilot(folder.path(), NOISY);
    let plan = |args: &[&str]| retrace_in(folder.path(), &[&["plan", "pilot.json", "--json"], args].concat()).json();
    let found = plan(&["--effect", "0.8", "--rollouts", "200", "--recordings", "10"]);
    let tail = &found["strategies"]["tail"];
    let number = |group: &str, name: &str| tail[group][name].as_f64().unwrap();
    // The pilot has one strategy and no control: two arms.
    let size = |group: &str| 2.0 * number(group, "recordings") * number(group, "boundaries") * number(group, "samples");
    assert_eq!((size("cheapest"), size("split")), (number("cheapest", "rollouts"), number("split", "rollouts")));
    assert!(number("cheapest", "power") >= 0.8 && number("cheapest", "recordings") >= 6.0);
    assert!(size("split") <= 200.0 && number("split", "recordings") <= 10.0);
    let price = number("cheapest", "recordings") * (10.0 + number("cheapest", "boundaries")) + size("cheapest");
    assert_eq!(number("cheapest", "price"), price);
    assert!(tail["components"]["rollout_post"].as_f64() > Some(0.0));
    assert!(tail["pilot_detectable"].as_f64() > Some(0.8), "six recordings find a large harm only: {tail}");
    assert_eq!((&found["recordings_for_rare_harm"], &tail["effect"]["source"]), (&29.into(), &"given".into()));

    let price = |args: &[&str]| plan(args)["strategies"]["tail"]["cheapest"]["price"].as_f64().unwrap();
    let usual = price(&["--effect", "0.8"]);
    assert!(price(&["--effect", "0.8", "--power", "0.9"]) > usual);
    assert!(price(&["--effect", "0.8", "--strategies", "4"]) > usual);
    assert!(price(&["--effect", "1.2"]) < usual);
    let cheap = ["--effect", "0.8", "--price-rollout", "0.01"];
    assert!((price(&cheap) - usual / 100.0).abs() < 1e-9, "other prices go with that of a rollout");
    let dear = plan(&["--effect", "0.8", "--price-recording", "1000"]);
    assert!(dear["strategies"]["tail"]["cheapest"]["boundaries"].as_u64() > tail["cheapest"]["boundaries"].as_u64());
}

#[test]
fn an_effect_out_of_reach_is_said_to_be() {
    let folder = tempfile::tempdir().unwrap();
    pilot(folder.path(), NOISY);
    let text = retrace_in(folder.path(), &["plan", "pilot.json", "--effect", "0.0001"]).ok();
    assert!(text.contains("+0.0001 of 5 actions") && text.contains("ask for a greater one"), "{text}");
    let within = retrace_in(folder.path(), &["plan", "pilot.json", "--margin", "wasted=0.1"]).ok();
    assert!(within.contains("do not show that wasted is less than 0.1 worse"), "{within}");
}

#[test]
fn without_any_noise_nothing_is_promised() {
    let folder = tempfile::tempdir().unwrap();
    let quiet: Recording<'_> = &[[&[0, 0], &[0, 0]], [&[0, 0], &[0, 0]]];
    pilot(folder.path(), &[quiet; 3]);
    let text = retrace_in(folder.path(), &["plan", "pilot.json", "--rollouts", "100", "--margin", "wasted=1"]).ok();
    assert!(text.contains("nothing varied in the pilot") && text.contains("shows no harm"), "{text}");
    // The rule of three: 1 - 0.025^(1/18) is below a fifth of the horizon.
    assert!(text.contains("about 18 recordings") && !text.contains("of such runs"), "{text}");
}

#[test]
fn a_pilot_that_is_too_small_is_refused_with_what_it_takes() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |recordings: &[Recording<'_>], expected: &str| {
        pilot(folder.path(), recordings);
        let error = retrace_in(folder.path(), &["plan", "pilot.json"]).failed();
        assert!(error.contains(expected) && error.contains("hint: run it with two recordings or more"), "{error}");
    };
    refused(&[&[[&[0, 1], &[1, 2]], [&[0, 0], &[1, 0]]]], "`1` recordings with scored boundaries");
    refused(&[&[[&[0, 1], &[1, 2]]], &[[&[0, 0], &[1, 0]]]], "no recording has two scored boundaries");
    // One sample each: the noise of rollouts is among that of boundaries.
    pilot(folder.path(), &[&[[&[0], &[1]], [&[0], &[3]]], &[[&[1], &[1]], [&[0], &[2]]]]);
    let text = retrace_in(folder.path(), &["plan", "pilot.json"]).ok();
    assert!(text.contains("chance included, since no arm has two") && text.contains("unknown PRE"), "{text}");
}

#[test]
fn what_is_no_pilot_or_no_question_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    pilot(folder.path(), NOISY);
    let report = fs::read_to_string(folder.path().join("pilot.json")).unwrap();
    fs::write(folder.path().join("later.json"), report.replacen("\"version\": 1", "\"version\": 2", 1)).unwrap();
    fs::write(folder.path().join("broken.json"), report.replace("\"completed\"", "\"complete\"")).unwrap();
    let check = |args: &[&str], expected: &[&str]| {
        let error = retrace_in(folder.path(), &[&["plan"], args].concat()).failed();
        assert!(expected.iter().all(|expected| error.contains(expected)), "{error}");
    };
    check(&["none.json"], &["failed to read `none.json`", "hint: check the path"]);
    check(&["rollouts.json"], &["missing field", "hint: give it the JSON report of a pilot"]);
    check(&["later.json"], &["`version` is 2", "hint: run the pilot again"]);
    check(&["broken.json"], &["`strategies.tail.inference.wasted`: missing field `completed`"]);
    check(&["pilot.json", "--effect", "9"], &["`--effect` is 9", "at most 5"]);
    check(&["pilot.json", "--channel", "stopped", "--effect", "2"], &["at most 1"]);
    check(&["pilot.json", "--power", "0.3"], &["expected a number from 0.5"]);
    check(&["pilot.json", "--price-boundary=-1"], &["a price of `-1`"]);
    check(&["pilot.json", "--rollouts", "9"], &["`9` rollouts are too few: `12` are the least"]);
    check(&["pilot.json", "--rollouts", "99", "--recordings", "5"], &["`5` recordings are too few"]);
    check(&["pilot.json", "--margin", "wasted=5"], &["the margin of `wasted` is 5"]);
}

#[test]
fn a_name_cannot_act_on_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    pilot(folder.path(), NOISY);
    let report = fs::read_to_string(folder.path().join("pilot.json")).unwrap();
    fs::write(folder.path().join("pilot.json"), report.replace("\"tail\"", r#""\u001b[2Jtail\u202e""#)).unwrap();
    for args in [&["plan", "pilot.json"][..], &["plan", "pilot.json", "--json"]] {
        let said = retrace_in(folder.path(), args).ok();
        assert!(said.contains("tail"));
        assert_eq!(said.chars().find(|c| (c.is_control() && *c != '\n') || *c == '\u{202e}'), None, "{said:?}");
    }
}

/// A recording of three rounds of 102 tokens each behind a request of 100, and a configuration that cuts it after two.
fn configured(folder: &Path, model: &str, strategies: &str) {
    let mut lines = vec![
        r#"{"type":"recording","version":1,"id":"a"}"#.to_owned(),
        format!(r#"{{"type":"request","content":"{}"}}"#, "x".repeat(400)),
    ];
    for n in 1..=3 {
        let input = 40 + 110 * n;
        lines.push(format!(
            r#"{{"type":"response","content":[{{"type":"tool_call","id":"c{n}","name":"reader","arguments":"{{}}"}}],"usage":{{"input_tokens":{input},"output_tokens":10}}}}"#
        ));
        lines.push(format!(
            r#"{{"type":"tool_results","results":[{{"call_id":"c{n}","name":"reader","outcome":"ok","content":"{}"}}]}}"#,
            "y".repeat(400)
        ));
    }
    fs::write(folder.join("a.jsonl"), lines.join("\n") + "\n").unwrap();
    let config = format!(
        "horizon = 2\nsamples = 2\nmin_prefix = 2\n[agent]\n{model}\n[[recordings]]\nfiles = [\"a.jsonl\"]\n\
         environment = \"recorded\"\n{strategies}\n"
    );
    fs::write(folder.join("retrace.toml"), config).unwrap();
}

const PRICED: &str = "model = \"sim:wander\"\nprices = { input = 1.0, output = 10.0, cache_read = 0.1 }";
const TAIL: &str = "[strategies.tail]\nkind = \"tail_window\"\ntarget = 2";
const SUMMARY: &str = "[strategies.summary]\nkind = \"summarize\"\ntarget = 2";

#[test]
fn a_configuration_says_what_it_takes_before_anything_is_spent() {
    let folder = tempfile::tempdir().unwrap();
    configured(folder.path(), PRICED, TAIL);
    let cost = retrace_in(folder.path(), &["plan", "--json"]).json();
    assert_eq!((&cost["boundaries"], &cost["left_out"], &cost["recordings"]), (&1.into(), &0.into(), &1.into()));
    assert_eq!(cost["recorded"], serde_json::json!({"output_tokens": 10.0, "growth_tokens": 110.0}));
    let spent = |share: &serde_json::Value| {
        let end = |end: &str| {
            let number = |field: &str| share[end][field].as_f64().unwrap();
            let tokens = ["n_model_calls", "input_tokens", "cache_read_tokens", "output_tokens"].map(number);
            (tokens, (number("dollars") * 1e9).round())
        };
        (share["rollouts"]["low"].as_u64(), share["rollouts"]["high"].as_u64(), end("low"), end("high"))
    };
    // The provider counted 260 + 10, and a result of 100 follows: 370. Two rollouts: 740 from the cache and 20, or
    // 2 · (370 + 480) and 40, at $1, $0.10 and $10 for a million.
    let pre = (Some(2), Some(2), ([2.0, 740.0, 740.0, 20.0], 274_000.0), ([4.0, 1700.0, 0.0, 40.0], 2_100_000.0));
    assert_eq!((spent(&cost["pre"]), spent(&cost["strategies"]["control"])), (pre, pre));
    // Of 304 counted tokens 102 are left, and the 66 that the provider counted beside them stay: 168.
    let tail = (Some(2), Some(2), ([2.0, 336.0, 336.0, 20.0], 233_600.0), ([4.0, 892.0, 0.0, 40.0], 1_292_000.0));
    assert_eq!(spent(&cost["strategies"]["tail"]), tail);
    let total = ([6.0, 1816.0, 1816.0, 60.0], 781_600.0);
    assert_eq!(spent(&cost["total"]), (Some(6), Some(6), total, ([12.0, 4292.0, 0.0, 120.0], 5_492_000.0)));
    insta::assert_snapshot!(retrace_in(folder.path(), &["plan", "--config", "retrace.toml"]).ok());

    pilot(folder.path(), NOISY);
    let plan = |args: &[&str]| retrace_in(folder.path(), &[&["plan", "pilot.json", "--json"], args].concat()).json();
    let dollars = plan(&["--config", "retrace.toml"])["prices"].clone();
    assert_eq!((dollars["rollout"].as_f64(), dollars["boundary"].as_f64()), (Some(0.005_492 / 6.0), Some(0.0)));
    assert_eq!(plan(&["--config", "retrace.toml", "--price-rollout", "2"])["prices"]["rollout"].as_f64(), Some(2.0));
}

#[test]
fn what_a_strategy_may_leave_unchanged_makes_a_range() {
    let folder = tempfile::tempdir().unwrap();
    configured(folder.path(), PRICED, SUMMARY);
    let plan = || retrace_in(folder.path(), &["plan", "--json"]).json();
    let rollouts = |cost: &serde_json::Value| {
        let shares = [&cost["pre"], &cost["strategies"]["control"], &cost["strategies"]["summary"]];
        shares.map(|share| (share["rollouts"]["low"].as_u64().unwrap(), share["rollouts"]["high"].as_u64().unwrap()))
    };
    let cost = plan();
    assert_eq!(rollouts(&cost), [(0, 2); 3], "where the only summary fails, nothing runs");
    let compacting = &cost["strategies"]["summary"]["compacting"];
    assert_eq!((&compacting["n_model_calls"], &compacting["output_tokens"]), (&1.into(), &500.into()));
    assert!(compacting["input_tokens"].as_u64() > Some(202), "it reads the request and the first round: {compacting}");

    configured(folder.path(), PRICED, &format!("{TAIL}\n{SUMMARY}"));
    assert_eq!(rollouts(&plan()), [(2, 2), (2, 2), (0, 2)]);
    let window = "[strategies.summary]\nkind = \"tail_window\"\ntarget = 99";
    configured(folder.path(), PRICED, window);
    assert_eq!(rollouts(&plan()), [(2, 2), (2, 2), (0, 0)], "it keeps all there is");
}

#[test]
fn nothing_is_started_and_no_key_is_wanted() {
    let folder = tempfile::tempdir().unwrap();
    let program = "[strategies.mine]\nkind = \"program\"\ncommand = [\"no-such-program\"]";
    configured(folder.path(), "model = \"anthropic:claude-haiku-4-5\"\napi_key_env = \"NO_SUCH_KEY\"", program);
    let text = retrace_in(folder.path(), &["plan"]).ok();
    assert!(text.contains("$1 in and $5 out for a million tokens") && text.contains("which was not started"), "{text}");
    let cost = retrace_in(folder.path(), &["plan", "--json"]).json();
    // Nothing is read from the cache, and all is written to it: 2 · 850 at $1.25, four answers of 10 at $5.
    let dollars = cost["strategies"]["mine"]["high"]["dollars"].as_f64();
    assert_eq!((dollars, &cost["strategies"]["mine"]["is_program"]), (Some(0.002_325), &true.into()));

    configured(folder.path(), "model = \"openai:gpt-of-tomorrow\"", TAIL);
    let text = retrace_in(folder.path(), &["plan"]).ok();
    assert!(text.contains("prices unknown") && !text.contains('$'), "{text}");
    pilot(folder.path(), NOISY);
    let failed = retrace_in(folder.path(), &["plan", "pilot.json", "--config", "retrace.toml"]).failed();
    assert!(failed.contains("cost is not known") && failed.contains("hint: set `prices`"), "{failed}");
    for option in
        ["--effect=1", "--power=0.9", "--channel=stopped", "--strategies=2", "--price-boundary=1", "--margin=wasted=1"]
    {
        let failed = retrace_in(folder.path(), &["plan", option]).failed();
        assert!(failed.contains("[PILOT]") || failed.contains("<PILOT>"), "{failed}");
    }
    let failed = retrace_in(folder.path(), &["plan", "--config", "none.toml"]).failed();
    assert!(failed.contains("there is no configuration `none.toml`"), "{failed}");
}
