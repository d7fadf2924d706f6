//! Copies of a template, and what is left of them.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::{Duration, SystemTime};

use retrace_process::{Process, Program, Workspace, WorkspaceError};

use crate::helper::{Helper, eventually, is_part};

fn template() -> tempfile::TempDir {
    let template = tempfile::tempdir().unwrap();
    let path = template.path();
    fs::create_dir_all(path.join("deep/er")).unwrap();
    fs::write(path.join("deep/er/notes.txt"), "hello").unwrap();
    fs::write(path.join("run.sh"), "#!/bin/sh\n").unwrap();
    fs::set_permissions(path.join("run.sh"), fs::Permissions::from_mode(0o751)).unwrap();
    let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    fs::File::open(path.join("run.sh")).unwrap().set_modified(old).unwrap();
    symlink("deep/er/notes.txt", path.join("relative")).unwrap();
    symlink(path.canonicalize().unwrap().join("deep"), path.join("whole")).unwrap();
    symlink("/etc", path.join("outside")).unwrap();
    symlink("nowhere", path.join("dangling")).unwrap();
    fs::set_permissions(path.join("deep/er"), fs::Permissions::from_mode(0o555)).unwrap();
    template
}

#[test]
fn a_copy_has_all_of_its_template_and_touches_nothing_outside() {
    let template = template();
    let (a, b) = (Workspace::copy(template.path()).unwrap(), Workspace::copy(template.path()).unwrap());
    assert_ne!(a.path(), b.path());
    let path = a.path().to_owned();
    assert_eq!(fs::read_to_string(path.join("relative")).unwrap(), "hello");
    assert_eq!(fs::metadata(path.join("run.sh")).unwrap().permissions().mode() & 0o777, 0o751);
    assert_eq!(fs::metadata(path.join("deep/er")).unwrap().permissions().mode() & 0o777, 0o555);
    let modified = |path: &Path| fs::metadata(path.join("run.sh")).unwrap().modified().unwrap();
    assert_eq!(modified(&path), modified(template.path()));
    assert_eq!(fs::read_link(path.join("whole")).unwrap(), path.join("deep"));
    assert_eq!(fs::read_link(path.join("outside")).unwrap(), Path::new("/etc"));
    assert_eq!(fs::read_link(path.join("dangling")).unwrap(), Path::new("nowhere"));

    fs::write(path.join("whole/new.txt"), "new").unwrap();
    fs::write(path.join("deep/er/notes.txt"), "changed").unwrap();
    assert!(!template.path().join("deep/new.txt").exists() && !b.path().join("deep/new.txt").exists());
    assert_eq!(fs::read_to_string(template.path().join("relative")).unwrap(), "hello");

    drop(a);
    assert!(!path.exists() && Path::new("/etc/hostname").exists() && b.path().join("relative").exists());
}

/// Deeper than a path is long, and with more in it than a name may say.
#[test]
fn a_hostile_tree_is_removed() {
    let template = template();
    let workspace = Workspace::copy(template.path()).unwrap();
    let at = |name: &str| workspace.path().join(name);
    fs::create_dir(at(".removed-1")).unwrap();
    fs::write(at(".removed-2"), "").unwrap();
    fs::create_dir(at("a-name-of-a-dozen")).unwrap();
    fs::set_permissions(at("a-name-of-a-dozen"), fs::Permissions::from_mode(0o000)).unwrap();
    for _ in 0..400 {
        fs::create_dir(at("new")).unwrap();
        symlink("/", at("new/root")).unwrap();
        fs::rename(at("a-name-of-a-dozen"), at("new/a-name-of-a-dozen")).unwrap();
        fs::rename(at("new"), at("a-name-of-a-dozen")).unwrap();
    }
    let path = workspace.path().to_owned();
    drop(workspace);
    assert!(!path.exists() && Path::new("/etc/hostname").exists());
}

#[tokio::test]
async fn a_workspace_that_a_process_keeps_is_there_until_it_has_ended() {
    let workspace = Workspace::copy(template().path()).unwrap();
    let path = workspace.path().to_owned();
    let script = "trap 'echo late > late; sleep 0.2; exit 0' TERM; echo; while :; do sleep 0.1; done";
    let process = Process::spawn(&Program::new("sh").args(["-c", script]).folder(&path)).await.unwrap();
    process.keep(workspace);
    drop(process);
    assert!(path.exists());
    eventually("the end of the folder", || !path.exists());
}

#[test]
fn what_cannot_be_copied_leaves_nothing() {
    let error = Workspace::copy(Path::new("/no/such/folder")).unwrap_err();
    assert_eq!(error.to_string(), "the workspace `/no/such/folder` cannot be copied: there is no such folder");

    let template = template();
    let socket = template.path().join("socket");
    let _socket = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let error = Workspace::copy(template.path()).unwrap_err();
    let WorkspaceError::Special { path } = &error else { panic!("{error}") };
    assert_eq!(path, &socket.canonicalize().unwrap());

    let error = Workspace::copy(Path::new("/")).unwrap_err();
    assert!(matches!(error, WorkspaceError::HoldsItself { .. }), "{error}");
}

/// The part: makes a workspace and waits.
#[test]
fn part_worker() {
    if !is_part() {
        return;
    }
    let workspace = Workspace::copy(template().path()).unwrap();
    println!("\npath={}", workspace.path().display());
    let _ = std::io::stdin().read_line(&mut String::new());
}

#[test]
fn what_a_killed_process_left_is_removed_by_the_next_and_nothing_else() {
    let temporary = tempfile::tempdir().unwrap();
    let worker = || {
        let mut worker = Helper::start("workspaces::part_worker", &[("TMPDIR", temporary.path().to_str().unwrap())]);
        let path = worker.told("path");
        assert!(Path::new(&path).join("relative").exists());
        (worker, path)
    };
    let foreign = temporary.path().join("retrace-workspaces-1-x");
    fs::create_dir(&foreign).unwrap();
    fs::write(foreign.join("precious"), "").unwrap();

    let ((mut killed, left), (_alive, used)) = (worker(), worker());
    killed.kill();
    assert!(Path::new(&left).exists());
    let (mut next, path) = worker();
    assert!(!Path::new(&left).exists() && !Path::new(&left).parent().unwrap().exists());
    assert!(Path::new(&used).join("relative").exists() && foreign.join("precious").exists());

    drop(next.child.stdin.take());
    assert!(next.child.wait().unwrap().success());
    assert!(!Path::new(&path).parent().unwrap().exists());
}
