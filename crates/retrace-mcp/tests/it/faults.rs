//! Servers that die, hang, babble or list nothing of use.

use std::time::Duration;

use retrace_env::{CallError, Environment, Toolbox};
use retrace_mcp::McpConfig;

use crate::support::{call, config, connect, open, reason, refusal, shop};

async fn broken(toolbox: &Toolbox) -> String {
    let error = toolbox.call("login", "{}").await.unwrap_err();
    let CallError::Environment { message } = error else { panic!("{error}") };
    message
}

fn quick(config: McpConfig) -> McpConfig {
    McpConfig { start_timeout: Some(1.5), call_timeout: Some(1.5), ..config }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_dies_costs_its_rollout_and_says_why() {
    let environment = connect(shop("--die-after 1")).await;
    for _ in 0..2 {
        let toolbox = open(&environment).await;
        call(&toolbox, "login", "{}").await;
        let message = broken(&toolbox).await;
        let expected = "the MCP server cannot be used: the program `shop_server` ended with exit status: 3; \
                        the last it wrote to stderr: `the shop is on fire | it has burnt down`";
        assert!(message.starts_with(expected), "{message}");
        assert!(broken(&toolbox).await.starts_with(expected), "and it stays dead");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_hangs_is_not_waited_for() {
    let environment = connect(McpConfig { call_timeout: Some(1.5), ..shop("--hang-after 0") }).await;
    let message = broken(&open(&environment).await).await;
    let expected = "the MCP server cannot be used: the program `shop_server` did not answer a call of `login` within 1.5 s; \
                    the last it wrote to stderr: `the shopkeeper sleeps`";
    assert_eq!(message, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_babbles_is_told_with_what_it_wrote() {
    let message = refusal(quick(shop("--babble"))).await;
    let expected = "the MCP server cannot be used: \
                    the program `shop_server` did not answer `initialize`, but wrote `What?`, within 1.5 s";
    assert_eq!(message, expected);
    let message = refusal(config("command = 'sh'\nargs = ['-c', 'echo usage: no; echo broken >&2']")).await;
    let expected = "the MCP server cannot be used: \
                    the program `sh` ended with exit status: 0; the last it wrote to stderr: `broken`";
    assert!(message.starts_with(expected), "{message}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_server_says_is_told_without_its_secrets() {
    let shell = |script: &str| {
        let mut config = config("command = 'sh'\nenv = { DOOR_TOKEN = 'tk-1234567' }");
        config.args = ["-c", script].map(str::to_owned).to_vec();
        refusal(quick(config))
    };
    let message = shell("echo I am $DOOR_TOKEN; exec sleep 1000").await;
    assert!(message.contains("wrote `I am ***`"), "{message}");
    let refuses = r#"{"jsonrpc":"2.0","id":0,"error":{"code":-32000,"message":"no tk-1234567"}}"#;
    let message = shell(&format!("read -r hello; echo '{refuses}'; exec sleep 1000")).await;
    assert!(message.contains("refused `initialize`: no ***"), "{message}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_writes_a_line_without_end_is_not_waited_for() {
    let mut config = config("command = 'sh'");
    config.args = ["-c", "tr '\\0' x < /dev/zero"].map(str::to_owned).to_vec();
    let message = refusal(config).await;
    assert!(message.contains("the program `sh` wrote a line of more than 16 MB: `xxx"), "{message}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_starts_too_slowly_is_told() {
    let message = refusal(quick(shop("--slow-start 60000"))).await;
    assert!(message.contains("did not answer `initialize` within 1.5 s"), "{message}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_without_tools_that_can_be_used_is_told() {
    assert_eq!(refusal(shop("--mute")).await, "the MCP server lists no tools");
    let message = refusal(shop("--flawed")).await;
    assert!(
        message.contains("lists the tool `crooked`, which is none: its `inputSchema` is no JSON Schema but `\"none\"`"),
        "{message}"
    );
    let message = refusal(shop("--endless")).await;
    assert!(message.ends_with("lists tools without end: there is more after 100 pages"), "{message}");
    let message = refusal(config("command = 'no-such-server'")).await;
    assert!(message.ends_with("it is in no folder of PATH; install it, or give its whole path"), "{message}");
}

/// The first start works and no later one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_fails_to_start_later_costs_its_rollout_only() {
    let folder = tempfile::tempdir().unwrap();
    let script = "mkdir \"$0\" 2>/dev/null || { echo second start >&2; exit 9; }; exec \"$1\"";
    let mut config = config("command = 'sh'\npool = 0");
    config.args = vec![
        "-c".into(),
        script.into(),
        folder.path().join("x").to_str().unwrap().into(),
        crate::support::shop_server(),
    ];
    let environment = connect(config).await;
    let toolbox = open(&environment).await;
    let message = reason(environment.open().await.unwrap_err());
    assert!(message.contains("ended with exit status: 9; the last it wrote to stderr: `second start`"), "{message}");
    assert!(!call(&toolbox, "login", "{}").await.outcome.is_blocked());
}

/// One that was started ahead may have ended before it is needed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_ended_while_it_waited_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let count = folder.path().join("count");
    let environment = connect(shop(&format!("--count {}", count.display()))).await;
    let first = std::fs::read_to_string(&count).unwrap();
    let kill = std::process::Command::new("kill").args(["-9", first.trim()]).status().unwrap();
    assert!(kill.success());
    // It was reaped then, which is known a moment later.
    let entry = std::path::Path::new("/proc").join(first.trim());
    crate::support::eventually("its end", || !crate::support::runs(first.trim()) && !entry.exists());
    tokio::time::sleep(Duration::from_millis(200)).await;
    call(&open(&environment).await, "login", "{}").await;
}
