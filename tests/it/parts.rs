//! Recording, replaying, verifying with parts of the user's own, and what is said when a part is not right.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::program::{Ended, retrace_in};

/// A shop that is simulated, a task in it, and what was recorded of it.
const SHOP: &str = r#"
samples = 2
horizon = 3

[agent]
model = "sim:shopkeeper"
temperature = 0.2
instructions = "You keep a shop in stock."

[record]
runs = 2
max_actions = 14

[[tasks]]
id = "round"
request = "Do the stock round."
environment = "sim:shop"
world_seed = 5

[[recordings]]
files = ["recordings"]
environment = "sim:shop"
world_seed = 5

[strategies.tail]
kind = "tail_window"
target = 4

[strategies.summary]
kind = "summarize"
target = 4
"#;

fn folder(config: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("retrace.toml"), config).unwrap();
    folder
}

/// A folder in which two runs were recorded.
fn recorded() -> tempfile::TempDir {
    let folder = folder(SHOP);
    let ended = retrace_in(folder.path(), &["record"]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(ended.stderr.contains("recordings/round-1.jsonl: 14 actions"), "{}", ended.stderr);
    folder
}

#[test]
fn what_is_recorded_replays_and_is_verified() {
    let folder = recorded();
    let header = fs::read_to_string(folder.path().join("recordings/round-2.jsonl")).unwrap();
    let header: Value = serde_json::from_str(header.lines().next().unwrap()).unwrap();
    assert_eq!(header["id"], "round-2");
    assert_eq!(header["instructions"], "You keep a shop in stock.");

    let replays = retrace_in(folder.path(), &["replay", "--json"]).json();
    for replay in replays.as_array().unwrap() {
        let counts =
            ["n_actions", "n_replayed", "n_same_outcome", "n_same_text"].map(|key| replay[key].as_u64().unwrap());
        assert_eq!(counts, [14; 4]);
    }
    let ended = retrace_in(folder.path(), &["verify", "--model", "sim:wander"]);
    assert!(ended.stderr.contains("round-1: 13 calls replayed with the same outcome, 13 of them"), "{}", ended.stderr);
    assert!(ended.ok().contains("tail"));

    // A second run does not touch what is there.
    let before = fs::read(folder.path().join("recordings/round-1.jsonl")).unwrap();
    let error = retrace_in(folder.path(), &["record"]).failed();
    assert!(error.contains("all 2 recordings are there already") && error.contains("never overwritten"), "{error}");
    // A run that is missing is made again, as it was.
    let second = folder.path().join("recordings/round-2.jsonl");
    let (missing, _) = (fs::read(&second).unwrap(), fs::remove_file(&second).unwrap());
    let ended = retrace_in(folder.path(), &["record"]);
    assert!(ended.stderr.contains("1 recording is there already, left as they are"), "{}", ended.stderr);
    assert_eq!(ended.code, 0);
    assert_eq!(fs::read(&second).unwrap(), missing);
    assert_eq!(fs::read(folder.path().join("recordings/round-1.jsonl")).unwrap(), before);
}

#[test]
fn a_run_of_which_nothing_came_leaves_its_name_free() {
    let folder = folder(&SHOP.replacen(
        "model = \"sim:shopkeeper\"\ntemperature = 0.2",
        "program = { command = [\"false\"] }",
        1,
    ));
    let error = retrace_in(folder.path(), &["record"]).failed();
    assert!(error.contains("the agent cannot be used"), "{error}");
    let program = "echo '{\"type\":\"greeting\",\"retrace\":1,\"role\":\"agent\",\"name\":\"idle\",\"serves\":\"one\"}'; read hello; read resume; exit 1";
    fs::write(folder.path().join("idle.sh"), program).unwrap();
    let config = SHOP.replacen(
        "model = \"sim:shopkeeper\"\ntemperature = 0.2",
        "program = { command = [\"sh\", \"idle.sh\"] }",
        1,
    );
    fs::write(folder.path().join("retrace.toml"), config).unwrap();
    let ended = retrace_in(folder.path(), &["record"]);
    assert_eq!(ended.code, 2);
    assert!(ended.stderr.contains("2 of 2 runs failed"), "{}", ended.stderr);
    assert_eq!(fs::read_dir(folder.path().join("recordings")).unwrap().count(), 0);
    let error = retrace_in(folder.path(), &["record", "--concurrency", "0"]).failed();
    assert!(error.contains("`concurrency` is 0"), "{error}");
}

#[test]
fn a_replay_that_goes_another_way_shows_where() {
    let folder = recorded();
    let file = folder.path().join("recordings/round-1.jsonl");
    let told = fs::read_to_string(&file).unwrap();
    let wrong = told.replacen("\"outcome\":\"ok\"", "\"outcome\":\"error\"", 1);
    fs::write(&file, &wrong).unwrap();
    let said = retrace_in(folder.path(), &["replay"]).ok();
    assert!(said.contains("round-1: 14 calls replayed, 13 with the same outcome, 13 with the same text"), "{said}");
    assert!(
        said.ends_with("2 recordings: 28 calls replayed, 27 with the same outcome, 27 with the same text\n"),
        "{said}"
    );
    assert!(said.contains("the first other outcome: replay of recording `round-1` diverged at action 1"), "{said}");

    // Nothing runs there; the other recording does.
    let ended = retrace_in(folder.path(), &["verify", "--json"]);
    assert!(ended.stderr.contains("nothing can run at 3 of its 3 boundaries"), "{}", ended.stderr);
    let report = ended.json();
    let unusable = |boundary: &&Value| boundary["unusable"].is_string();
    assert_eq!(report["boundaries"].as_array().unwrap().iter().filter(unusable).count(), 3);

    fs::remove_file(folder.path().join("recordings/round-2.jsonl")).unwrap();
    let error = retrace_in(folder.path(), &["verify"]).failed();
    assert!(error.contains("has another plan: `recordings.round-2`"), "{error}");
    let error = retrace_in(folder.path(), &["verify", "--run", "of-one"]).failed();
    assert!(error.contains("no boundary can be reached by replay") && error.contains("`retrace replay`"), "{error}");
}

#[test]
fn a_cassette_repeats_a_verification_exactly() {
    let folder = recorded();
    let verify = |args: &[&str]| retrace_in(folder.path(), &[&["verify", "--json"], args].concat());
    let recorded = verify(&["--record-cassette", "a.cassette"]).json();
    let ended = verify(&["--cassette", "a.cassette"]);
    assert!(!ended.stderr.contains("cassette"), "{}", ended.stderr);
    assert_eq!(ended.json(), recorded);

    let error = verify(&["--record-cassette", "a.cassette"]).failed();
    assert!(error.contains("is there already"), "{error}");
    // Another seed asks other questions.
    let ended = verify(&["--cassette", "a.cassette", "--seed", "9"]);
    assert!(ended.stderr.contains("not on the cassette, the first: "), "{}", ended.stderr);
    assert_eq!(ended.code, 2);

    fs::write(folder.path().join("b.cassette"), "{}\n").unwrap();
    let error = verify(&["--cassette", "b.cassette"]).failed();
    assert!(error.contains("b.cassette:1") && error.contains("hint"), "{error}");
}

/// A strategy in shell that keeps the last results, and the calls that they answer.
const LAST_ROUND: &str = r#"
[strategies.own]
kind = "program"
command = ["sh", "last_round.sh"]
"#;

#[cfg(unix)]
#[test]
fn a_program_is_verified_like_any_strategy_and_works_in_the_folder_of_the_configuration() {
    let folder = recorded();
    let script = r#"
echo '{"type":"greeting","retrace":1,"role":"strategy","name":"last-round","serves":"one"}'
read hello; read compact
n=$(printf '%s' "$compact" | grep -o '"type":"\(request\|response\|tool_results\)"' | wc -l)
echo "{\"type\":\"compacted\",\"use\":1,\"events\":[0,$((n-2)),$((n-1))]}"
read over"#;
    fs::write(folder.path().join("last_round.sh"), script).unwrap();
    fs::write(folder.path().join("retrace.toml"), format!("{SHOP}{LAST_ROUND}")).unwrap();
    let ended = Command::new(env!("CARGO_BIN_EXE_retrace-under-test"))
        .args(["verify", "--json", "-c"])
        .arg(folder.path().join("retrace.toml"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let report = Ended::from(ended).json();
    for boundary in report["boundaries"].as_array().unwrap() {
        assert_eq!(boundary["strategies"]["own"]["compaction"]["compacted"]["size"]["events"], 3);
    }
}

#[cfg(unix)]
#[test]
fn a_strategy_whose_output_no_model_would_take_is_flawed_and_never_sent() {
    let folder = recorded();
    let script = r#"
echo '{"type":"greeting","retrace":1,"role":"strategy","name":"orphan","serves":"one"}'
read hello; read compact
n=$(printf '%s' "$compact" | grep -o '"type":"\(request\|response\|tool_results\)"' | wc -l)
echo "{\"type\":\"compacted\",\"use\":1,\"events\":[0,$((n-1))]}"
read over"#;
    fs::write(folder.path().join("last_round.sh"), script).unwrap();
    fs::write(folder.path().join("retrace.toml"), format!("{SHOP}{LAST_ROUND}")).unwrap();
    let inspected = retrace_in(folder.path(), &["inspect", "recordings", "-c", "retrace.toml", "--json"]).json();
    let own = &inspected["strategies"]["own"];
    assert!(own["flawed"].as_u64() > Some(0) && own["flawed"] == own["boundaries"], "{own}");
    let said = retrace_in(folder.path(), &["inspect", "recordings", "-c", "retrace.toml"]).ok();
    assert!(said.contains("any model would refuse what it keeps at"), "{said}");
    let report = retrace_in(folder.path(), &["verify", "--json"]).json();
    for boundary in report["boundaries"].as_array().unwrap() {
        let own = &boundary["strategies"]["own"];
        assert!(own["compaction"]["flawed"].is_object() && own["post"].as_array().unwrap().is_empty(), "{own}");
    }
}

#[cfg(unix)]
#[test]
fn a_program_may_ask_a_model_of_a_table_and_any_word_stands_in_for_it() {
    let folder = recorded();
    let script = r#"
echo '{"type":"greeting","retrace":1,"role":"strategy","name":"asks","serves":"one","asks":true}'
read hello; read compact
echo '{"type":"ask","use":1,"id":1,"instructions":"Be brief.","question":"What now?","model":"cheap"}'
read answer
case "$answer" in *'"type":"answer"'*) echo '{"type":"unchanged","use":1}';; *) echo '{"type":"failed","use":1,"message":"no answer"}';; esac
read over"#;
    fs::write(folder.path().join("last_round.sh"), script).unwrap();
    let unchanged = |config: String, args: &[&str]| {
        fs::write(folder.path().join("retrace.toml"), config).unwrap();
        let run = args.concat();
        let report =
            retrace_in(folder.path(), &[&["verify", "--json", "--run", &format!("run{run}")], args].concat()).json();
        report["strategies"]["own"]["n_unchanged"].clone()
    };
    let table = "[models.cheap]\nmodel = \"sim:coder\"\n";
    assert_eq!(unchanged(format!("{SHOP}{LAST_ROUND}{table}"), &[]), 6);
    let keyless = table.replace("sim:coder", "anthropic:none");
    assert_eq!(unchanged(format!("{SHOP}{LAST_ROUND}{keyless}"), &["--model", "sim:shopkeeper"]), 6);
}

#[track_caller]
fn refuses(config: &str, args: &[&str], words: &[&str]) {
    let folder = recorded();
    fs::write(folder.path().join("retrace.toml"), config).unwrap();
    let error = retrace_in(folder.path(), &[&["verify"], args].concat()).failed();
    for word in words {
        assert!(error.contains(word), "{word} is not in: {error}");
    }
}

#[test]
fn a_part_that_cannot_be_used_is_named_with_what_to_do_before_anything_runs() {
    let with = |from: &str, to: &str| SHOP.replacen(from, to, 1);
    let model = |name: &str| with("model = \"sim:shopkeeper\"\ntemperature = 0.2", &format!("model = {name}"));
    refuses(&model("\"opnai:gpt\""), &[], &["unknown provider `opnai`", "anthropic", "openai"]);
    refuses(&model("\"gpt-4.1\""), &[], &["there is no model `gpt-4.1`", "provider:model", "[models.NAME]"]);
    refuses(&model("\"openai:x\"\napi_key_env = \"RETRACE_NO_SUCH_KEY\""), &[], &["RETRACE_NO_SUCH_KEY"]);
    // Nobody listens there.
    refuses(
        &model("\"openai:x\"\nbase_url = \"http://127.0.0.1:9/v1\""),
        &[],
        &["`openai:x` cannot be used", "--model sim:wander"],
    );
    refuses(SHOP, &["--model", "nope"], &["there is no model `nope`"]);
    refuses(&with("temperature = 0.2", "temperature = 2"), &[], &["`temperature` of `sim:shopkeeper` is 2"]);

    let environment = |table: &str| {
        let recordings = "[[recordings]]\nfiles = [\"recordings\"]\nenvironment = ";
        with(&format!("{recordings}\"sim:shop\"\nworld_seed = 5"), &format!("{table}\n{recordings}\"own\""))
    };
    refuses(&environment(""), &[], &["there is no environment `own`", "[environments.own]", "sim:shop"]);
    let table = |rest: &str| environment(&format!("[environments.own]\n{rest}"));
    refuses(&table("kind = \"mpc\""), &[], &["unknown kind `mpc`", "mcp"]);
    refuses(&table("kind = \"mcp\"\ncomand = \"x\""), &[], &["comand"]);
    refuses(&table("kind = \"mcp\"\ncommand = \"no-such-program\""), &[], &["`own` cannot be used", "no-such-program"]);
    refuses(
        &table("kind = \"mcp\"\nurl = \"http://127.0.0.1:9/mcp\""),
        &[],
        &["`own` cannot be used", "127.0.0.1:9", "is `url` right"],
    );
    refuses(
        &table("kind = \"program\"\ncommand = [\"cat\"]\nstart_timeout = 5"),
        &[],
        &["`own` cannot be used", "cat"],
    );
    let code_base = with(
        "environment = \"sim:shop\"\nworld_seed = 5\n\n[strategies",
        "environment = \"sim:code_base\"\n\n[strategies",
    );
    refuses(
        &code_base,
        &[],
        &["recording `round-1` calls tools that its environment does not have", "check_stock", "rename"],
    );
}

#[cfg(unix)]
#[test]
fn no_program_sees_the_variable_that_holds_a_key_whatever_its_name() {
    let models = "[models.paid]\nmodel = \"openai:x\"\napi_key_env = \"PLAIN\"\n";
    let strategy =
        "[strategies.own]\nkind = \"program\"\ncommand = [\"sh\", \"-c\", \"echo saw:$PLAIN:$OTHER: >&2; exit 1\"]\n";
    let folder = folder(&format!("{SHOP}{models}{strategy}"));
    let verify = || {
        Command::new(env!("CARGO_BIN_EXE_retrace-under-test"))
            .args(["inspect", "-c", "retrace.toml", "recordings"])
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .envs([("PLAIN", "sk-fake-0123456789"), ("OTHER", "seen")])
            .output()
            .unwrap()
    };
    fs::create_dir(folder.path().join("recordings")).unwrap();
    fs::write(folder.path().join("recordings/a.jsonl"), "{\"type\":\"recording\",\"version\":1,\"id\":\"a\"}\n")
        .unwrap();
    let error = Ended::from(verify()).failed();
    assert!(error.contains("saw::seen:") && !error.contains("sk-fake"), "{error}");
}

#[cfg(target_os = "linux")]
#[test]
fn an_interrupted_run_keeps_what_it_had_and_leaves_no_process() {
    interrupt("-INT");
    interrupt("-TERM");
}

#[cfg(target_os = "linux")]
fn interrupt(signal: &str) {
    use std::os::unix::process::CommandExt;

    let stuck = r#"
[environments.stuck]
kind = "program"
command = ["sh", "stuck.sh"]
"#;
    let config = SHOP.replacen("environment = \"sim:shop\"\nworld_seed = 5", "environment = \"stuck\"", 1);
    let folder = folder(&format!("{config}{stuck}"));
    // It lists a tool, and never answers its call.
    let script = r#"
echo '{"type":"greeting","retrace":1,"role":"environment","name":"stuck","serves":"one"}'
read hello; read open
echo '{"type":"opened","use":1,"tools":[{"name":"list_items","parameters":{"type":"object"}},{"name":"login","parameters":{"type":"object"}}]}'
read next
case "$next" in *'"type":"call"'*) echo $$ >> called; sleep 1000;; esac"#;
    fs::write(folder.path().join("stuck.sh"), script).unwrap();
    let child = Command::new(env!("CARGO_BIN_EXE_retrace-under-test"))
        .args(["record", "--runs", "1"])
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .unwrap();
    let called = folder.path().join("called");
    wait(|| fs::read_to_string(&called).is_ok_and(|pid| pid.ends_with('\n')));
    let pid: u32 = fs::read_to_string(&called).unwrap().lines().next().unwrap().parse().unwrap();
    assert!(Path::new(&format!("/proc/{pid}")).exists());
    assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
    let ended = Ended::from(child.wait_with_output().unwrap());
    assert_eq!(ended.code, 130, "{}", ended.stderr);
    wait(|| !Path::new(&format!("/proc/{pid}")).exists());
    let kept = fs::read_to_string(folder.path().join("recordings/round-1.jsonl")).unwrap();
    assert_eq!(kept.lines().count(), 3, "the header, the request and the response: {kept}");
}

/// Looks until it is so, for at most a minute.
#[cfg(target_os = "linux")]
#[track_caller]
fn wait(mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(60), "it never came");
        std::thread::sleep(Duration::from_millis(20));
    }
}
