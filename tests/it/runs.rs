//! Runs that are kept, killed, stopped, resumed, shared out and judged again.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::program::{Ended, retrace_in};

/// The demonstration, saved, with so many samples.
fn shop(samples: u32) -> TempDir {
    let folder = TempDir::new().unwrap();
    retrace_in(folder.path(), &["demo", "--save", "."]).ok();
    let config = folder.path().join("retrace.toml");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, format!("samples = {samples}\nconcurrency = 2\n{text}")).unwrap();
    folder
}

/// The JSON of a verification that nothing disturbed.
fn undisturbed(folder: &Path) -> String {
    retrace_in(folder, &["verify", "--json", "--run", "undisturbed"]).ok()
}

fn verify(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_retrace-under-test"));
    command.args(["verify", "--json", "--run", "run"]).current_dir(folder);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// How many whole lines the journal of a run has.
fn n_lines(journal: &Path) -> usize {
    fs::read(journal).map_or(0, |bytes| bytes.iter().filter(|&&byte| byte == b'\n').count())
}

/// Kills a run once its journal has so many lines; whether it was still at work.
#[cfg(unix)]
fn kill_at(mut child: Child, journal: &Path, n: usize) -> bool {
    use std::os::unix::process::ExitStatusExt;

    let (mut there, mut n_there) = (None, n_lines(journal));
    // At least one more than were there, so that it has been at work.
    let n = n.max(n_there + 1);
    loop {
        if there.is_none() {
            there = fs::File::open(journal).ok();
            n_there = 0;
        }
        let mut more = Vec::new();
        there.as_ref().map(|mut file| file.read_to_end(&mut more).unwrap());
        n_there += more.iter().filter(|&&byte| byte == b'\n').count();
        if n_there >= n {
            // SIGKILL.
            child.kill().unwrap();
            break;
        }
        if child.try_wait().unwrap().is_some() {
            break;
        }
        std::thread::yield_now();
    }
    child.wait().unwrap().signal() == Some(9)
}

#[cfg(unix)]
#[test]
fn a_verification_that_is_killed_a_hundred_times_ends_with_the_same_report() {
    const N_KILLS: usize = 100;
    let folder = shop(20);
    let expected = undisturbed(folder.path());
    let n_records = n_lines(&folder.path().join("undisturbed/journal.jsonl"));
    let journal = folder.path().join("run/journal.jsonl");
    let mut n_killed = 0;
    for kill in 0..N_KILLS {
        // Between the first record and the last.
        let at = 1 + kill * (n_records - 2) / N_KILLS;
        n_killed += usize::from(kill_at(verify(folder.path()).spawn().unwrap(), &journal, at));
    }
    assert_eq!(n_killed, N_KILLS);
    assert!(retrace_in(folder.path(), &["verify", "--json", "--run", "run"]).ok() == expected);
    assert!(retrace_in(folder.path(), &["report", "--json", "run"]).ok() == expected);
    // A record that was there twice would be an error, so no cell ran twice once it was journalled.
    assert_eq!(n_lines(&journal), n_records);
}

#[cfg(target_os = "linux")]
#[test]
fn a_verification_that_is_killed_inside_a_write_goes_on_to_the_same_report() {
    let folder = shop(3);
    let expected = undisturbed(folder.path());
    let journal = folder.path().join("run/journal.jsonl");
    let n_bytes = fs::metadata(folder.path().join("undisturbed/journal.jsonl")).unwrap().len();
    let mut n_torn = 0;
    for step in 1..10 {
        // The system lets a file grow to a limit that falls into a record, and kills the program that would write on.
        let blocks = n_bytes * step / 10 / 512;
        let script = format!("ulimit -c 0; ulimit -f {blocks}; exec \"$0\" verify --json --run run");
        let status = Command::new("sh")
            .args(["-c", &script, env!("CARGO_BIN_EXE_retrace-under-test")])
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap();
        assert!(!status.success());
        n_torn += usize::from(!fs::read(&journal).unwrap().ends_with(b"\n"));
    }
    assert!(n_torn >= 5, "{n_torn} of 9");
    assert!(retrace_in(folder.path(), &["verify", "--json", "--run", "run"]).ok() == expected);
}

#[cfg(target_os = "linux")]
#[test]
fn a_disk_that_takes_no_more_stops_the_run_and_says_so() {
    let folder = shop(3);
    let expected = undisturbed(folder.path());
    let script = "trap '' XFSZ; ulimit -f 64; exec \"$0\" verify --run run";
    let output = Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_retrace-under-test")])
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let error = Ended::from(output).failed();
    assert!(error.contains("the run stopped, since nothing more could be kept: "), "{error}");
    assert!(error.contains("`run/journal.jsonl`"), "{error}");
    assert!(error.contains("goes on where it was"), "{error}");
    assert_eq!(fs::metadata(folder.path().join("run/journal.jsonl")).unwrap().len(), 64 * 512);
    assert!(retrace_in(folder.path(), &["verify", "--json", "--run", "run"]).ok() == expected);
}

#[test]
fn a_run_is_kept_beside_its_configuration_and_judged_again() {
    let folder = shop(3);
    let shown = retrace_in(folder.path(), &["verify"]).ok();
    assert_eq!(retrace_in(folder.path(), &["report", "runs/retrace"]).ok(), shown);
    assert_eq!(retrace_in(folder.path(), &["score", "runs/retrace"]).ok(), shown);
    let json =
        retrace_in(folder.path(), &["report", "--json", "runs/retrace", "--horizon", "2", "--refetch-by", "tool"]);
    let json = json.json();
    assert_eq!((&json["horizon"], &json["judging"]["refetch_by"]), (&2.into(), &"tool".into()));
    let gate = retrace_in(folder.path(), &["report", "runs/retrace", "--margin", "wasted=1,stopped=0.3"]);
    assert_eq!(gate.code, 1, "{}", gate.stdout);
    let error = retrace_in(folder.path(), &["report", "recordings"]).failed();
    assert!(error.contains("there is no run in `recordings`"), "{error}");
    let error = retrace_in(folder.path(), &["report", "runs/retrace", "--horizon", "6"]).failed();
    assert!(error.contains('6'), "{error}");
}

#[test]
fn a_run_goes_on_with_more_and_refuses_what_is_another() {
    let folder = shop(2);
    retrace_in(folder.path(), &["verify"]).ok();
    let grown = retrace_in(folder.path(), &["verify", "--samples", "3"]);
    assert!(grown.stderr.contains("goes on with 96 rollouts"), "{}", grown.stderr);
    let grown = grown.ok();
    assert_eq!(grown, retrace_in(folder.path(), &["verify", "--samples", "3", "--run", "whole"]).ok());
    let error = retrace_in(folder.path(), &["verify", "--samples", "3", "--seed", "8"]).failed();
    assert!(error.contains("the run in `runs/retrace` has another plan: `seed` was 0 and is now 8"), "{error}");
    assert!(error.contains("name another folder"), "{error}");
}

#[test]
fn a_run_that_may_spend_no_more_is_a_part_and_goes_on() {
    let folder = shop(3);
    let part = retrace_in(folder.path(), &["verify", "--budget-tokens", "50000"]);
    assert_eq!(part.code, 0);
    assert!(part.stderr.contains("the run stopped before its end: 50000 tokens are spent"), "{}", part.stderr);
    let text = part.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("This is a part of the run: up to"), "{text}");
    let whole = retrace_in(folder.path(), &["verify"]).ok();
    assert_eq!(whole, retrace_in(folder.path(), &["verify", "--run", "whole"]).ok());
    let error = retrace_in(folder.path(), &["verify", "--budget", "1", "--run", "priced"]).failed();
    assert!(error.contains("prices of the model `sim:shopkeeper` are not known"), "{error}");
}

#[test]
fn shards_are_joined_into_the_whole() {
    let folder = shop(2);
    let expected = undisturbed(folder.path());
    for shard in ["1/3", "2/3", "3/3"] {
        let name = format!("shard-{}", &shard[..1]);
        assert_eq!(retrace_in(folder.path(), &["verify", "--shard", shard, "--run", &name]).code, 0);
    }
    let merge = |shards: &[&str]| retrace_in(folder.path(), &[&["merge"], shards, &["--output", "merged"]].concat());
    let error = merge(&["shard-1", "shard-2", "shard-2"]).failed();
    assert!(error.contains("the runs in `shard-2` and `shard-2` are not different shards"), "{error}");
    let error = merge(&["shard-1", "undisturbed"]).failed();
    assert!(error.contains("not of one plan: `shard.of`"), "{error}");
    merge(&["shard-1", "shard-2", "shard-3"]).ok();
    assert!(retrace_in(folder.path(), &["report", "--json", "merged"]).ok() == expected);
    let error = merge(&["shard-1"]).failed();
    assert!(error.contains("`merged` holds files"), "{error}");
}

/// An agent that is a program: it ends four of its turns at once, notes its process at the next, and never ends that.
#[cfg(target_os = "linux")]
const STUCK: &str = r#"
echo '{"type":"greeting","retrace":1,"role":"agent","name":"stuck"}'
read hello; read resume
echo >> turns
if [ $(wc -l < turns) -gt 4 ]; then echo $$ >> stuck; sleep 1000; fi
echo '{"type":"report","use":1,"response":{"type":"response","content":"Done."}}'
echo '{"type":"ended","use":1}'
read over"#;

/// Verifies with an agent that gets stuck, gives the signal so many times, and looks at what is left.
#[cfg(target_os = "linux")]
fn interrupt(signal: &str, n_times: usize, grace: u32) {
    let folder = TempDir::new().unwrap();
    let temporary = TempDir::new().unwrap();
    retrace_in(folder.path(), &["demo", "--save", "."]).ok();
    let config = folder.path().join("retrace.toml");
    let text = fs::read_to_string(&config).unwrap();
    let (before, after) = text.split_once("[agent]").unwrap();
    let (_, after) = after.split_once("[[recordings]]").unwrap();
    let agent = "[agent]\nprogram = { command = [\"sh\", \"agent.sh\"] }\n";
    let text = format!("concurrency = 1\n{before}{agent}[limits]\ngrace = {grace}\n[[recordings]]{after}");
    fs::write(&config, text.replace("summarize", "tail_window")).unwrap();
    fs::write(folder.path().join("agent.sh"), STUCK).unwrap();

    let verify = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_retrace-under-test"));
        command.args(["verify", "--run", "run"]).current_dir(folder.path()).env("TMPDIR", temporary.path());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    };
    let mut child = verify().spawn().unwrap();
    let stuck = folder.path().join("stuck");
    wait(|| fs::read_to_string(&stuck).is_ok_and(|pid| pid.ends_with('\n')) || child.try_wait().unwrap().is_some());
    let pid = fs::read_to_string(&stuck).unwrap().trim().to_owned();
    let (id, started) = (child.id().to_string(), Instant::now());
    for _ in 0..n_times {
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
        std::thread::sleep(Duration::from_millis(200));
    }
    let ended = Ended::from(child.wait_with_output().unwrap());
    assert_eq!(ended.code, 130, "{}", ended.stderr);
    assert!(started.elapsed() < Duration::from_secs(30));
    assert_eq!(ended.stdout, "");
    wait(|| !Path::new(&format!("/proc/{pid}")).exists());
    assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 0);
    // Of four rollouts hardly anything is scored.
    let report = retrace_in(folder.path(), &["report", "--json", "run"]).stdout;
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["pre"]["n_rollouts"].as_u64().unwrap() + n_post(&report), 4);

    // The same command goes on, once the agent does.
    fs::write(folder.path().join("agent.sh"), STUCK.replace("-gt 4", "-gt 4000")).unwrap();
    let whole = Ended::from(verify().output().unwrap());
    assert!(whole.stderr.contains("goes on with 4 rollouts"), "{}", whole.stderr);
    assert_eq!(whole.code, 0, "{}", whole.stderr);
}

/// How many rollouts all strategies of a report have.
#[cfg(target_os = "linux")]
fn n_post(report: &serde_json::Value) -> u64 {
    let strategies = report["strategies"].as_object().unwrap().values();
    strategies.map(|strategy| strategy["post"]["n_rollouts"].as_u64().unwrap()).sum()
}

#[cfg(target_os = "linux")]
#[test]
fn a_run_that_is_asked_to_stop_leaves_a_journal_that_goes_on_and_no_process() {
    interrupt("-INT", 1, 1);
    interrupt("-TERM", 1, 1);
}

#[cfg(target_os = "linux")]
#[test]
fn a_run_that_is_asked_twice_stops_at_once() {
    interrupt("-INT", 2, 1000);
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
