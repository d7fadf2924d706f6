//! No process and no folder is left behind.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use retrace_mcp::McpConfig;
use retrace_process::settle;

use crate::support::{call, connect, eventually, open, runs, shop};

const COUNT: &str = "RETRACE_MCP_COUNT";

fn ids(count: &Path) -> Vec<String> {
    fs::read_to_string(count).unwrap().lines().map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_and_workspaces_end_with_their_rollouts() {
    let folder = tempfile::tempdir().unwrap();
    let (count, template) = (folder.path().join("count"), folder.path().join("template"));
    fs::create_dir(&template).unwrap();
    let config = McpConfig {
        workspace: Some(template),
        folder: Some(PathBuf::from("{workspace}")),
        ..shop(&format!("--count {} --hang-after 1", count.display()))
    };
    let environment = connect(config).await;
    let folder_of = |id: &str| fs::read_link(format!("/proc/{id}/cwd"));
    let toolbox = open(&environment).await;
    call(&toolbox, "login", "{}").await;
    eventually("the start of the pool", || ids(&count).len() == 3);
    let workspaces: Vec<_> = ids(&count).iter().filter_map(|id| folder_of(id).ok()).collect();
    let hanging = tokio::spawn(async move { toolbox.call("login", "{}").await });
    tokio::task::yield_now().await;
    hanging.abort();
    assert!(hanging.await.unwrap_err().is_cancelled());
    drop(environment);
    let gone = || ids(&count).iter().all(|id| !runs(id)) && !workspaces.iter().any(|it| it.exists());
    tokio::task::spawn_blocking(settle).await.unwrap();
    eventually("the end of all", gone);
}

/// The part of a process that is killed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn part_owner() {
    let Ok(count) = env::var(COUNT) else { return };
    let environment = connect(shop(&format!("--count {count} --hang-after 0"))).await;
    let toolbox = open(&environment).await;
    let calling = toolbox.call("login", "{}");
    eventually("the start of the pool", || ids(Path::new(&count)).len() == 3);
    println!("\nready");
    calling.await.unwrap();
}

#[test]
fn a_killed_owner_leaves_no_server() {
    let folder = tempfile::tempdir().unwrap();
    let count = folder.path().join("count");
    let mut owner = Command::new(env::current_exe().unwrap())
        .args(["--exact", "left_behind::part_owner", "--nocapture"])
        .env(COUNT, &count)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(owner.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "ready"));
    let servers = ids(&count);
    assert!(servers.iter().all(|id| runs(id)));
    owner.kill().unwrap();
    owner.wait().unwrap();
    eventually("the end of the servers", || servers.iter().all(|id| !runs(id)));
}
