//! What is left when this process is killed, or ends without a word.

use retrace_process::{Process, Program};
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::helper::{Helper, eventually, is_part, runs};

/// The part: starts a shell that ends neither by its input nor when it is asked, and that has started another program.
#[test]
fn part_owner() {
    if !is_part() {
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let script = r#"trap '' TERM HUP INT; sleep 1000 & echo "<$FAKE_API_KEY$FAKE_KEYBOARD>"; echo $!; while :; do sleep 1000; done"#;
        let mut process = Process::spawn(&Program::new("sh").args(["-c", script])).await.unwrap();
        let (_stdin, stdout) = process.take_pipes().unwrap();
        let mut lines = BufReader::new(stdout).lines();
        println!("\nenvironment={}", lines.next_line().await.unwrap().unwrap());
        println!("\ngrandchild={}", lines.next_line().await.unwrap().unwrap());
        println!("\nchild={}", process.id());
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).unwrap();
        if line == "exit\n" {
            std::process::exit(0);
        }
    });
}

struct Family {
    owner: Helper,
    child: String,
    grandchild: String,
}

fn family() -> Family {
    let mut owner = Helper::start("killed::part_owner", &[("FAKE_API_KEY", "sk-1234567"), ("FAKE_KEYBOARD", "de")]);
    assert_eq!(owner.told("environment"), "<de>");
    let (grandchild, child) = (owner.told("grandchild"), owner.told("child"));
    assert!(runs(&child) && runs(&grandchild));
    Family { owner, child, grandchild }
}

#[test]
fn a_killed_owner_leaves_nobody() {
    let mut family = family();
    family.owner.kill();
    eventually("the end of the family", || !runs(&family.child) && !runs(&family.grandchild));
}

#[test]
fn an_owner_that_exits_without_destructors_leaves_nobody() {
    use std::io::Write;

    let mut family = family();
    family.owner.child.stdin.take().unwrap().write_all(b"exit\n").unwrap();
    assert!(family.owner.child.wait().unwrap().success());
    eventually("the end of the family", || !runs(&family.child) && !runs(&family.grandchild));
}

/// Without the guard there is still the death signal.
#[cfg(target_os = "linux")]
#[test]
fn a_program_dies_with_its_owner_even_without_a_guard() {
    let mut family = family();
    let children = std::process::Command::new("ps")
        .args(["-o", "pid=,args=", "--ppid", &family.owner.child.id().to_string()])
        .output()
        .unwrap();
    let children = String::from_utf8(children.stdout).unwrap();
    let guard = children.lines().find(|line| line.contains("retrace-guard")).unwrap();
    let guard = guard.split_whitespace().next().unwrap();
    assert!(std::process::Command::new("kill").args(["-9", guard]).status().unwrap().success());
    eventually("the end of the guard", || !runs(guard));
    family.owner.kill();
    eventually("the end of the child", || !runs(&family.child));
    let group = format!("-{}", family.child);
    assert!(std::process::Command::new("kill").args(["-9", "--", &group]).status().unwrap().success());
}
