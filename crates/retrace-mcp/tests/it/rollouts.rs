//! Each rollout has a world of its own, in the state that its boundary had.

use std::fs;

use retrace_env::{Environment, check_rebuilds};
use retrace_events::Outcome;

use crate::support::{boundary, call, config, connect, login, open, refusal, shop, shop_server};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn worlds_are_apart_and_start_alike() {
    let environment = connect(shop("")).await;
    let (a, b) = tokio::join!(open(&environment), open(&environment));
    let first = login(&a).await;
    assert_ne!(login(&a).await, first);
    assert_eq!(login(&b).await, first);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replay_is_faithful_and_can_be_repeated() {
    let environment = connect(shop("--banner")).await;
    let boundary = boundary().await;
    let restored = environment.restore(&boundary).await.unwrap();
    assert!(restored.replay.n_calls > 3);
    assert_eq!((restored.replay.n_same_text, &restored.replay.first_difference), (restored.replay.n_calls, &None));
    assert!(check_rebuilds(&environment, &boundary).await.unwrap().is_none());

    let other = connect(shop("--seed 8")).await;
    assert!(other.restore(&boundary).await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failures_are_results() {
    let toolbox = open(&connect(shop("")).await).await;
    let output = call(&toolbox, "list_items", r#"{"session":"none","page":1}"#).await;
    assert_eq!((output.outcome, output.error.as_deref()), (Outcome::Error, Some("ToolError")));
    assert_eq!(output.text(), "`none` is no session of this shop");
    assert_eq!(call(&toolbox, "teleport", "{}").await.outcome, Outcome::NotFound);
    let output = call(&toolbox, "login", "[1]").await;
    assert_eq!(
        (output.outcome, output.text().as_str()),
        (Outcome::Error, "invalid arguments: expected a JSON object, found an array")
    );
    assert_eq!(call(&toolbox, "login", "{").await.outcome, Outcome::Error);
    assert_eq!(call(&toolbox, "login", " ").await.outcome, Outcome::Ok);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_asks_and_tells_the_client_things_is_answered() {
    let toolbox = open(&connect(shop("--nosy")).await).await;
    assert_ne!(login(&toolbox).await, login(&toolbox).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tools_have_the_names_and_arguments_of_the_configuration() {
    let environment = connect(config(
        r#"
        command = "SHOP"
        deny = ["reset"]
        rename = { check_stock = "stock" }
        arguments = { session = "fixed-{rollout}" }
        "#,
    ))
    .await;
    let names: Vec<_> = environment.tools().iter().map(|spec| spec.name.as_str()).collect();
    assert_eq!(names, ["login", "list_items", "stock", "reorder"]);
    assert!(!environment.tools().iter().any(|spec| spec.parameters.to_string().contains("session")));
    let toolbox = open(&environment).await;
    let text = call(&toolbox, "stock", r#"{"session":"mine","item":"tea"}"#).await.text();
    assert!(text.starts_with("`fixed-retrace-"), "{text}");
    assert_eq!(call(&toolbox, "check_stock", "{}").await.outcome, Outcome::NotFound);
    assert_eq!(call(&toolbox, "reset", "{}").await.outcome, Outcome::NotFound);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failures_are_found_in_text_by_the_rule() {
    let environment = connect(config("command = \"SHOP\"\noutcome = { regex = \"shop|session\" }")).await;
    let output = call(&open(&environment).await, "login", "{}").await;
    assert_eq!((output.outcome, output.error.as_deref()), (Outcome::Error, Some("OutcomeRule")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_rollout_has_a_copy_of_the_workspace_under_one_name() {
    let template = tempfile::tempdir().unwrap();
    fs::write(template.path().join("notes.txt"), "hello").unwrap();
    let script = r#"
        echo "started in $PWD" >&2
        while read -r line; do
          case $line in
            *'"initialize"'*) echo '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}}' ;;
            *'"tools/list"'*) echo '{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"write","description":"Writes in '"$1"'.","inputSchema":{"type":"object","properties":{"path":{"default":"'"$1"'/a"}}}}]}}' ;;
            *'"tools/call"'*)
              id=${line#*'"id":'}; id=${id%%[,\}]*}
              path=${line#*'"path":"'}; path=${path%%'"'*}
              [ -f "$path" ] || { echo '{"jsonrpc":"2.0","id":'"$id"',"error":{"code":-32602,"message":"no '"$path"'"}}'; continue; }
              before=$(cat "$path")
              echo changed > "$path"
              echo '{"jsonrpc":"2.0","id":'"$id"',"result":{"content":[{"type":"text","text":"'"$path held $before, in $1"'"}]}}' ;;
          esac
        done
    "#;
    let mut config =
        config("command = 'sh'\nworkspace = '/replaced'\nfolder = '{workspace}'\nworkspace_as = '/project'");
    config.args = ["-c", script, "sh", "{workspace}"].map(str::to_owned).to_vec();
    config.workspace = Some(template.path().to_owned());
    let environment = connect(config).await;
    let tool = &environment.tools()[0];
    assert_eq!(tool.description.as_deref(), Some("Writes in /project."));
    assert_eq!(tool.parameters["properties"]["path"]["default"], "/project/a");
    for _ in 0..2 {
        let toolbox = open(&environment).await;
        let output = call(&toolbox, "write", r#"{"path":"/project/notes.txt"}"#).await;
        assert_eq!(output.text(), "/project/notes.txt held hello, in /project");
        let output = call(&toolbox, "write", r#"{"path":"/project/notes.txt"}"#).await;
        assert_eq!(output.text(), "/project/notes.txt held changed, in /project");
        let output = call(&toolbox, "write", r#"{"path":"/project/other"}"#).await;
        assert_eq!(output.text(), "no /project/other");
    }
    assert_eq!(fs::read_to_string(template.path().join("notes.txt")).unwrap(), "hello");
}

#[tokio::test]
async fn configurations_that_contradict_themselves_say_what_to_do() {
    let message = |text: &str| refusal(config(text));
    assert_eq!(message("").await, "a server needs a `command` that starts it, or the `url` where it is");
    assert_eq!(message("command = 'a'\nurl = 'b'").await, "a server has a `command` or a `url`, not both");
    assert_eq!(
        message("url = 'b'\nfolder = 'c'").await,
        "`folder` is for a server with a `command`; this one has a `url`"
    );
    assert_eq!(
        message("command = 'a'\nworkspace = 'b'").await,
        "nothing tells the server where its workspace is: put `{workspace}` into `args`, `env`, `folder` or `arguments`"
    );
    assert_eq!(
        message("command = 'a'\nargs = ['{workspace}']").await,
        "there is no `{workspace}`: `workspace` names the folder that is copied for it"
    );
    assert_eq!(message("command = 'a'\ncall_timeout = 0").await, "`call_timeout` is a number of seconds above 0");
    assert_eq!(
        message("command = 'a'\nenv = { A = '${NO_SUCH_VARIABLE}' }").await,
        "the environment has no variable `NO_SUCH_VARIABLE`, which `env.A` names: set it"
    );
    assert_eq!(
        message("command = 'a'\nworkspace = '/no/such'\nargs = ['{workspace}']").await,
        "the workspace `/no/such` cannot be copied: there is no such folder"
    );
    let error = toml::from_str::<retrace_mcp::McpConfig>(&format!("comand = '{}'", shop_server())).unwrap_err();
    assert!(error.to_string().contains("unknown field `comand`"), "{error}");
}
