//! Processes that end by themselves, with their owner, or not at all.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use retrace_process::{Process, ProcessError, Program, Stdout, settle};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};

use crate::helper::{LONG, eventually, runs};

/// A shell, and the lines it writes.
async fn shell(script: &str) -> (Process, Lines<BufReader<Stdout>>, retrace_process::Stdin) {
    let mut process = Process::spawn(&Program::new("sh").args(["-c", script])).await.unwrap();
    let (stdin, stdout) = process.take_pipes().unwrap();
    (process, BufReader::new(stdout).lines(), stdin)
}

async fn line(lines: &mut Lines<BufReader<Stdout>>) -> String {
    tokio::time::timeout(LONG, lines.next_line()).await.unwrap().unwrap().unwrap()
}

#[tokio::test]
async fn what_a_program_started_ends_with_it() {
    let (process, mut lines, stdin) = shell("sleep 1000 & echo $!; cat").await;
    let (child, grandchild) = (process.id().to_string(), line(&mut lines).await);
    assert!(runs(&child) && runs(&grandchild));
    drop(stdin);
    assert!(process.end().await.success());
    eventually("the end of both", || !runs(&child) && !runs(&grandchild));
}

#[tokio::test]
async fn what_a_program_leaves_behind_ends_before_its_owner() {
    let (process, mut lines, _stdin) = shell("sleep 1000 & echo $!; exit 3").await;
    let grandchild = line(&mut lines).await;
    assert_eq!(process.ended().await.code(), Some(3));
    eventually("the end of what it left", || !runs(&grandchild));
}

#[tokio::test]
async fn one_that_will_not_end_is_killed_and_settle_waits_for_it() {
    let (process, mut lines, _stdin) = shell("trap '' TERM; echo ready; while :; do sleep 1000; done").await;
    line(&mut lines).await;
    let id = process.id().to_string();
    drop(process);
    assert!(runs(&id), "it gets a moment");
    assert!(tokio::task::spawn_blocking(settle).await.unwrap());
    assert!(!runs(&id));
}

#[tokio::test]
async fn one_that_ignores_its_input_is_asked_to_end() {
    let (process, mut lines, _stdin) = shell("trap 'exit 7' TERM; echo ready; while :; do sleep 0.1; done").await;
    line(&mut lines).await;
    assert_eq!(process.end().await.code(), Some(7));
}

#[test]
fn a_program_outlives_the_thread_and_the_runtime_that_started_it() {
    let start = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(Process::spawn(&Program::new("sleep").args(["1000"]))).unwrap()
    };
    let process = std::thread::spawn(start).join().unwrap();
    std::thread::sleep(Duration::from_millis(100));
    assert!(process.status().is_none() && runs(&process.id().to_string()));
}

#[tokio::test]
async fn a_panic_ends_a_program() {
    let (process, _lines, stdin) = shell("cat").await;
    let id = process.id().to_string();
    let panicked = tokio::spawn(async move {
        let _all = (process, stdin);
        panic!("as it should")
    });
    assert!(panicked.await.unwrap_err().is_panic());
    eventually("its end", || !runs(&id));
}

/// It may be a folder full of files, and the owner may live in a runtime.
#[tokio::test]
async fn what_a_process_keeps_is_dropped_by_no_thread_of_its_owner() {
    struct Belonging(std::sync::mpsc::Sender<std::thread::ThreadId>);
    impl Drop for Belonging {
        fn drop(&mut self) {
            self.0.send(std::thread::current().id()).unwrap();
        }
    }
    let (sender, dropped_by) = std::sync::mpsc::channel();
    for script in ["exit", "cat"] {
        let (process, _, stdin) = shell(script).await;
        process.keep(Belonging(sender.clone()));
        if script == "exit" {
            process.ended().await;
            assert!(dropped_by.try_recv().is_err(), "its owner is still there");
        }
        drop(stdin);
        process.end().await;
        assert_ne!(dropped_by.try_recv().unwrap(), std::thread::current().id(), "{script}");
    }
}

#[tokio::test]
async fn what_a_program_writes_is_quoted_without_its_secrets() {
    let program = Program::new("cat").env("SHOP_TOKEN", "tk-1234567");
    let process = Process::spawn(&program).await.unwrap();
    assert_eq!(process.quoted("no tk-1234567\n\u{1b}"), r"no ***\n\u{1b}");
}

#[tokio::test]
async fn a_program_that_dies_is_told_with_its_last_words() {
    let (process, mut lines, _stdin) = shell("echo early >&2; kill -9 $$").await;
    assert_eq!(process.timed("answer", LONG, lines.next_line()).await.unwrap().unwrap(), None);
    let error = process.failure("says nothing").await;
    let ProcessError::Died { status, stderr, .. } = &error else { panic!("{error}") };
    assert_eq!((status.signal(), stderr.as_str()), (Some(9), "early"));
    let text = error.to_string();
    assert!(
        text.starts_with("the program `sh` ended with signal: 9 (SIGKILL); the last it wrote to stderr: `early`"),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_hangs_or_babbles_is_told_with_its_last_words() {
    let (process, mut lines, _stdin) = shell("echo wait >&2; echo; exec sleep 1000").await;
    line(&mut lines).await;
    eventually("its words", || process.stderr() == "wait");
    let error = process.timed("answer", Duration::from_millis(50), lines.next_line()).await.unwrap_err();
    assert_eq!(error.to_string(), "the program `sh` did not answer within 0.05 s; the last it wrote to stderr: `wait`");
    let error = process.failure("writes what is no JSON").await;
    assert_eq!(error.to_string(), "the program `sh` writes what is no JSON; the last it wrote to stderr: `wait`");
}

#[tokio::test]
async fn a_flood_on_stderr_stops_nobody() {
    let (process, mut lines, _stdin) = shell("head -c 3000000 /dev/zero | tr '\\0' 'x' >&2; echo done; cat").await;
    assert_eq!(line(&mut lines).await, "done");
    assert!(process.stderr().len() < 2_000);
}

#[tokio::test]
async fn programs_that_cannot_start_say_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let plain = folder.path().join("plain");
    fs::write(&plain, "#!/bin/sh\n").unwrap();
    let message = |program: Program| async move { Process::spawn(&program).await.unwrap_err().to_string() };
    assert_eq!(
        message(Program::new("no-such-program")).await,
        "there is no program `no-such-program`: it is in no folder of PATH; install it, or give its whole path"
    );
    assert_eq!(
        message(Program::new("./no/such/program")).await,
        "there is no program `program`: the path leads to no file"
    );
    assert_eq!(
        message(Program::new(plain.to_str().unwrap())).await,
        "the program `plain` may not be executed: `chmod +x` makes a file a program"
    );
    assert_eq!(
        message(Program::new("cat").folder("/no/such")).await,
        "the program `cat` cannot work in `/no/such`: there is no such folder"
    );
    for program in [Program::new(""), Program::new("cat").args(["\0"]), Program::new("cat").env("A=", "1")] {
        let error = Process::spawn(&program).await.unwrap_err();
        assert!(matches!(error, ProcessError::BadText { .. }), "{error}");
    }
}
