//! What a program may do wrong, and what it costs.

use std::time::{Duration, Instant};

use futures_util::FutureExt;
use retrace_command::{CommandAgent, CommandEnvironment, CommandStrategy, ProgramConfig};
use retrace_env::Environment;
use retrace_strategies::{CompactContext, Compacted, Strategy};

use crate::{block_on, history};

const GREETING: &str =
    r#"echo '{"type":"greeting","retrace":1,"role":"strategy","name":"x","serves":"many"}'; read hello"#;

fn shell(script: &str) -> ProgramConfig {
    ProgramConfig { answer_timeout: Duration::from_secs(20), ..ProgramConfig::new(["sh", "-c", script]) }
}

/// What is said of a program that does not greet as it should.
#[track_caller]
fn check_start(config: &ProgramConfig, error: &str) {
    let started = block_on(CommandStrategy::start(config));
    let text = started.err().unwrap().to_string();
    assert!(text.contains(error), "{text}");
}

/// What is said of a program that greets and then runs a line of shell when it is asked to compact.
#[track_caller]
fn check(script: &str, error: &str) {
    let text = block_on(async {
        let strategy = CommandStrategy::start(&shell(&format!("{GREETING}; read compact; {script}"))).await.unwrap();
        strategy.compact(&history(2), &mut CompactContext::without_model()).await.unwrap_err().to_string()
    });
    assert!(text.contains(error), "{text}");
}

#[test]
fn a_program_that_does_not_greet_as_it_should() {
    check_start(&ProgramConfig::new(Vec::<String>::new()), "`command` is an empty list");
    check_start(&ProgramConfig::new(["no-such-program"]), "there is no program `no-such-program`");
    let greet = |greeting: &str| shell(&format!("echo '{greeting}'; read over; read over"));
    check_start(
        &greet("Loading…"),
        "no message: `Loading…`; only messages may go there, so let it print to standard error",
    );
    check_start(
        &greet(r#"{"type":"greeting","retrace":2,"mood":"new"}"#),
        "speaks version 2 of the protocol, and this retrace version 1",
    );
    check_start(
        &greet(r#"{"type":"greeting","retrace":1,"role":"agent","name":"x"}"#),
        "is of role `agent`, and a program of role `strategy` is wanted here",
    );
    check_start(&greet(r#"{"type":"greeting","retrace":1,"role":"strategy"}"#), "missing field `name`");
    check_start(&greet(r#"{"type":"unchanged","use":1}"#), "sent `unchanged` before its `greeting`");
    check_start(
        &shell("echo 'no module named x' >&2; exit 3"),
        "exit status: 3; the last it wrote to stderr: `no module named x`",
    );
    let silent =
        ProgramConfig { start_timeout: Duration::from_millis(200), ..shell("echo waiting >&2; read hello; read over") };
    check_start(&silent, "did not greet within 0.2 s");
}

#[test]
fn a_program_that_does_not_keep_to_the_protocol() {
    check("echo 'a print'; read over", "no message: `a print`");
    check("printf '\\377\\n'; read over", "no message");
    check(r#"echo '{"type":"halt","use":1}'; read over"#, "a message of type `halt`");
    check(r#"echo '{"type":"unchanged","use":1,"why":"x"}'; read over"#, "unknown field `why`");
    check(r#"echo '{"type":"unchanged","use":7}'; read over"#, "sent `unchanged` of use 7, which never began");
    check(r#"echo '{"type":"ended","use":1}'; read over"#, "sent `ended` where what a strategy kept is wanted");
    check(
        r#"echo '{"type":"greeting","retrace":1,"role":"strategy","name":"x","serves":"many"}'; read over"#,
        "greets a second time",
    );
    check(
        r#"echo '{"type":"compacted","use":1,"events":[0,5]}'; read over"#,
        "names event 5 of a history that has 5 (`events[1]`)",
    );
    check(
        r#"echo '{"type":"compacted","use":1,"events":[{"type":"request","contents":"x"}]}'; read over"#,
        "sent an event that cannot be read: missing field `content` (`events[0]`)",
    );
    check(
        r#"echo '{"type":"ask","use":1,"id":1,"instructions":"","question":""}'; read over"#,
        "asks a model, which its greeting does not announce",
    );
    check(r#"echo '{"type":"failed","use":1,"message":"no idea"}'; read over"#, "the program `sh` failed: no idea");
    check("echo 'out of luck' >&2; exit 4", "exit status: 4; the last it wrote to stderr: `out of luck`");
    check("printf '{\"type\":'; exit 0", "ended with exit status: 0");
    check("exec 1>&-; read over; read over", "closed its standard output");
    check("head -c 67109000 /dev/zero | tr '\\0' x; read over", "wrote a line of more than 64 MB: `xxx");
}

#[test]
fn what_a_program_says_is_told_without_its_secrets() {
    let said = |script: &str| {
        let mut config = shell(&format!("{GREETING}; read compact; {script}; read over"));
        config.env.insert("SHOP_TOKEN".to_owned(), "tk-1234567".to_owned());
        block_on(async {
            let strategy = CommandStrategy::start(&config).await.unwrap();
            strategy.compact(&history(2), &mut CompactContext::without_model()).await.unwrap_err().to_string()
        })
    };
    let failed = said(r#"echo "{\"type\":\"failed\",\"use\":1,\"message\":\"401 for $SHOP_TOKEN\"}""#);
    assert!(failed.ends_with("failed: 401 for ***"), "{failed}");
    let printed = said("echo key: $SHOP_TOKEN");
    assert!(printed.contains("no message: `key: ***`"), "{printed}");
}

#[test]
fn a_program_that_is_silent_is_given_up_and_the_next_use_has_another() {
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let script = format!(
            "{GREETING}; read compact; if [ -e second ]; then echo '{{\"type\":\"unchanged\",\"use\":1}}'; else touch second; fi; read over; read over"
        );
        let mut config = shell(&script);
        config.folder = Some(folder.path().to_owned());
        config.answer_timeout = Duration::from_secs(2);
        let strategy = CommandStrategy::start(&config).await.unwrap();
        let mut cx = CompactContext::without_model();
        let error = strategy.compact(&history(2), &mut cx).await.unwrap_err();
        assert!(error.to_string().contains("did not compact a history within 2 s"), "{error}");
        assert_eq!(strategy.compact(&history(2), &mut cx).await.unwrap(), Compacted::Unchanged);
    });
}

#[test]
fn a_shared_process_that_dies_costs_its_uses_and_no_more() {
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let script = format!(
            "{GREETING}; read compact; [ -e second ] || {{ touch second; exit 1; }}; echo '{{\"type\":\"unchanged\",\"use\":1}}'; read over"
        );
        let mut config = shell(&script);
        config.folder = Some(folder.path().to_owned());
        let strategy = CommandStrategy::start(&config).await.unwrap();
        let mut cx = CompactContext::without_model();
        assert!(strategy.compact(&history(2), &mut cx).await.is_err());
        assert_eq!(strategy.compact(&history(2), &mut cx).await.unwrap(), Compacted::Unchanged);
    });
}

#[test]
fn a_use_that_is_dropped_is_over_and_the_process_serves_the_next() {
    block_on(async {
        let script = format!(
            r#"{GREETING}; read first; read over; case "$over" in *over*) ;; *) exit 5;; esac
            echo '{{"type":"unchanged","use":1}}'; read second; echo '{{"type":"unchanged","use":2}}'; read over"#
        );
        let strategy = CommandStrategy::start(&shell(&script)).await.unwrap();
        let history = history(2);
        let mut cx = CompactContext::without_model();
        assert!(strategy.compact(&history, &mut cx).now_or_never().is_none());
        assert_eq!(strategy.compact(&history, &mut cx).await.unwrap(), Compacted::Unchanged);
    });
}

#[test]
fn nothing_is_left_of_a_process_whose_one_use_is_dropped() {
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let script = r#"echo $$ > pid
            echo '{"type":"greeting","retrace":1,"role":"strategy","name":"x"}'; read hello; read compact; sleep 600"#;
        let config = ProgramConfig { folder: Some(folder.path().to_owned()), ..shell(script) };
        let strategy = CommandStrategy::start(&config).await.unwrap();
        let pid = std::fs::read_to_string(folder.path().join("pid")).unwrap();
        assert!(runs(pid.trim()));
        let history = history(2);
        let mut cx = CompactContext::without_model();
        assert!(strategy.compact(&history, &mut cx).now_or_never().is_none());
        let start = Instant::now();
        while runs(pid.trim()) {
            assert!(start.elapsed() < Duration::from_secs(30), "the process {pid} goes on");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
}

/// Whether a process of this id runs.
fn runs(pid: &str) -> bool {
    let signal = std::process::Command::new("kill").args(["-0", pid]).stderr(std::process::Stdio::null()).status();
    signal.unwrap().success()
}

#[test]
fn a_world_that_breaks_is_no_blocked_call() {
    block_on(async {
        let greeting = r#"echo '{"type":"greeting","retrace":1,"role":"environment","name":"x","serves":"many"}'; read hello; read open"#;
        let opened = r#"echo '{"type":"opened","use":1,"tools":[{"name":"a"}]}'; read call"#;
        let cases = [
            ("echo 'disk full' >&2; exit 1", "disk full"),
            (r#"echo '{"type":"failed","use":1,"message":"no disk"}'; read over"#, "failed: no disk"),
            (
                r#"echo '{"type":"result","use":1,"id":9,"content":"","outcome":"ok"}'; read over"#,
                "of call 9, which was never made",
            ),
            (
                r#"echo '{"type":"result","use":1,"id":1,"content":{},"outcome":"ok"}'; read over"#,
                "field `results[0].content`",
            ),
        ];
        for (script, message) in cases {
            let environment =
                CommandEnvironment::start(&shell(&format!("{greeting}; {opened}; {script}"))).await.unwrap();
            let toolbox = environment.open().await.unwrap();
            let error = toolbox.call("a", "{}").await.unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
            assert!(toolbox.call("a", "{}").await.is_err(), "a broken world stays broken");
        }
        let tools = r#"echo '{"type":"opened","use":1,"tools":[{"name":"a"},{"name":"a"}]}'; read over"#;
        let environment = CommandEnvironment::start(&shell(&format!("{greeting}; {tools}"))).await.unwrap();
        let error = environment.open().await.unwrap_err();
        assert!(retrace_events::with_causes(&error).contains("two tools are called `a`"), "{error}");
    });
}

#[test]
fn an_agents_wrong_words_end_its_run() {
    use retrace_agent::{Budget, Run};
    use retrace_env::Toolbox;
    use retrace_model::{ScriptedModel, Step};
    let greeting =
        r#"echo '{"type":"greeting","retrace":1,"role":"agent","name":"x","tools":["plan"]}'; read hello; read resume"#;
    let own = r#"{"type":"own_result","use":1,"result":{"call_id":"c","name":"other","content":"","outcome":"ok"}}"#;
    let refused = own.replace(r#""outcome":"ok""#, r#""outcome":"not_found""#);
    let cases = [
        (
            r#"{"type":"report","use":1,"response":{"type":"request","content":"x"}}"#,
            "a `request` event where a `response` is wanted",
        ),
        (r#"{"type":"note","use":1,"event":{"type":"response","content":"x"}}"#, "noted a `response` event"),
        (&refused, "refused a call of `other` that its newest response does not hold"),
        (own, "answered a call of `other` itself: only tools that its greeting lists are its own"),
        (r#"{"type":"unchanged","use":1}"#, "sent `unchanged` where what an agent does is wanted"),
        (
            r#"{"type":"call","use":1,"id":1,"call_id":"c","name":"a","arguments":""}"#,
            "called `a` with the id `c`, which no call of its newest response has",
        ),
    ];
    for (line, message) in cases {
        block_on(async {
            let agent = CommandAgent::start(&shell(&format!("{greeting}; echo '{line}'; read over"))).await.unwrap();
            let (model, toolbox) = (ScriptedModel::new(Vec::<Step>::new()), Toolbox::builder().build().unwrap());
            let (history, budget) = (history(1), Budget::default());
            let run =
                Run { history, instructions: None, model: &model, toolbox: &toolbox, budget, seed: 0, observer: None };
            let (rollout, _) = run.execute(&agent).await;
            assert!(rollout.end.to_string().contains(message), "{}", rollout.end);
        });
    }
}

/// It must not fill the memory while a model takes its time.
#[test]
fn an_agent_that_asks_without_end_is_cut_off() {
    use retrace_agent::{Budget, Run};
    use retrace_env::Toolbox;
    use retrace_model::{Answer, BoxFuture, Model, ModelError, Prompt};

    struct Never;
    impl Model for Never {
        fn name(&self) -> &str {
            "never"
        }

        fn respond<'a>(&'a self, _: &'a Prompt<'a>) -> BoxFuture<'a, Result<Answer, ModelError>> {
            Box::pin(std::future::pending())
        }
    }
    let script = r#"echo '{"type":"greeting","retrace":1,"role":"agent","name":"x"}'; read hello; read resume
        i=0; while [ $i -lt 1100 ]; do i=$((i + 1))
        echo '{"type":"respond","use":1,"id":1}'; done; read over"#;
    let end = block_on(async {
        let agent = CommandAgent::start(&shell(script)).await.unwrap();
        let (model, toolbox) = (Never, Toolbox::builder().build().unwrap());
        let (history, budget) = (history(1), Budget::default());
        let run =
            Run { history, instructions: None, model: &model, toolbox: &toolbox, budget, seed: 0, observer: None };
        tokio::time::timeout(Duration::from_secs(20), run.execute(&agent)).await.expect("it goes on").0.end.to_string()
    });
    // Or retrace was slower to look at them than the program to write them.
    assert!(end.contains("asked for more than 1024") || end.contains("sent more than 1024"), "{end}");
}
