//! A server at an address, which outlives its rollouts.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use retrace_env::Environment;

use crate::support::{boundary, config, connect, login, open, refusal, shop_server};

struct Served(Child, u16);

fn serve() -> Served {
    let mut child = Command::new(shop_server()).arg("--http").stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    Served(child, line.trim().parse().unwrap())
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_of_its_own_is_a_world_of_its_own() {
    let served = serve();
    let environment = connect(config(&format!("url = 'http://127.0.0.1:{}/{{rollout}}'", served.1))).await;
    assert!(environment.shared_writes().is_empty());
    let (a, b) = tokio::join!(open(&environment), open(&environment));
    let first = login(&a).await;
    assert_ne!(login(&a).await, first);
    assert_eq!(login(&b).await, first);
    let restored = environment.restore(&boundary().await).await.unwrap();
    assert_eq!(restored.replay.n_same_text, restored.replay.n_calls);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_reset_serves_one_rollout_at_a_time() {
    let served = serve();
    let text = format!("url = 'http://127.0.0.1:{}/'\nreset_tool = 'reset'", served.1);
    let environment = Arc::new(connect(config(&text)).await);
    assert!(environment.shared_writes().is_empty() && environment.max_rollouts() == Some(1));
    assert!(!environment.tools().iter().any(|spec| spec.name == "reset"));
    let rollouts = (0..8).map(|_| {
        let environment = Arc::clone(&environment);
        tokio::spawn(async move {
            let toolbox = open(&environment).await;
            let first = login(&toolbox).await;
            tokio::task::yield_now().await;
            (first, login(&toolbox).await)
        })
    });
    let rollouts: Vec<_> = rollouts.collect();
    let mut sessions = Vec::new();
    for rollout in rollouts {
        sessions.push(rollout.await.unwrap());
    }
    assert!(sessions[0].0 != sessions[0].1 && sessions.iter().all(|pair| *pair == sessions[0]), "{sessions:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_for_all_is_refused_unless_its_tools_only_read() {
    let served = serve();
    let url = format!("url = 'http://127.0.0.1:{}/'\n", served.1);
    let message = refusal(config(&url)).await;
    let expected = format!(
        "the MCP server at `http://127.0.0.1:{}/` is one for all rollouts, and `login`, `reorder`, `reset` may change what it keeps",
        served.1
    );
    assert!(message.starts_with(&expected) && message.contains("name a `reset_tool`"), "{message}");
    let reading = connect(config(&format!("{url}allow = ['list_items', 'login']\nread_only = ['login']"))).await;
    assert!(reading.shared_writes().is_empty());
    let writing = connect(config(&format!("{url}allow_writes = true"))).await;
    assert_eq!(writing.shared_writes(), ["login", "reorder", "reset"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_that_gives_no_answer_is_told_without_what_is_secret() {
    let served = serve();
    // PATH stands for a variable that holds a secret: it is set, and its value is not to be shown.
    let url = format!("http://127.0.0.1:{}/{{rollout}}?key=${{PATH}}", served.1);
    let message = refusal(config(&format!("url = '{url}'\nheaders = {{ x-closed = '${{PATH}}' }}"))).await;
    assert!(message.starts_with(&format!("the MCP server at `{url}` cannot be used: it ")), "{message}");
    assert!(message.contains("403") && !message.contains("/bin") && !message.contains("%2Fbin"), "{message}");

    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let message = refusal(config(&format!("url = 'http://{closed}/{{rollout}}?key=${{PATH}}'"))).await;
    assert!(message.contains("it cannot be reached") && !message.contains("bin"), "{message}");
}
