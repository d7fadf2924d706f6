//! What `verify` says of a configuration that is not right, before it runs anything.

use std::fs;

use crate::program::{Ended, file, retrace_in};

/// Verifies under a configuration.
fn verify(config: &str) -> Ended {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("retrace.toml"), config).unwrap();
    retrace_in(folder.path(), &["verify"])
}

fn config(strategy: &str) -> String {
    let recording = file("fixtures/recordings/tiny.jsonl");
    format!(
        "every = 1\nmin_prefix = 1\n[agent]\nmodel = \"sim:wander\"\n\
         [[recordings]]\nfiles = [\"{recording}\"]\nenvironment = \"recorded\"\n{strategy}"
    )
}

#[track_caller]
fn refuses(config: &str, words: &[&str]) {
    let error = verify(config).failed();
    for word in words {
        assert!(error.contains(word), "{word} is not in: {error}");
    }
}

const TAIL: &str = "[strategies.tail]\nkind = \"tail_window\"\ntarget = 2\n";

#[test]
fn a_wrong_configuration_names_line_and_field() {
    refuses(&config(&TAIL.replace("tail_window", "tail_windw")), &["line 8", "tail_windw", "tail_window"]);
    refuses(&config(&TAIL.replace("target", "targt")), &["line 8", "targt"]);
    refuses(&config(&TAIL.replace("= 2", "= -2")), &["line 8", "`target`", "-2"]);
    refuses(&format!("horizn = 3\n{}", config(TAIL)), &["line 1", "horizn"]);
    refuses(&format!("horizon = 0\n{}", config(TAIL)), &["horizon"]);
    refuses(&config(TAIL).replace("every = 1", "every = 0"), &["every"]);
    refuses(&config(TAIL).replace("sim:wander", "sim:wandr"), &["sim:wandr", "sim:wander"]);
    refuses(&config(TAIL).replace("\"recorded\"", "\"recrded\""), &["recrded", "recorded"]);
    refuses(&config(""), &["no strategy"]);
}

#[test]
fn a_cut_that_cannot_be_is_named_with_the_nearest() {
    let config = config(TAIL).replace("environment", "cuts = [1]\nenvironment");
    refuses(&config, &["cannot be cut after 1", "nearest"]);
}

#[test]
fn a_recording_that_cannot_be_read_names_file_line_and_field_and_costs_only_itself() {
    for (name, words) in [
        ("bad_json", ["bad_json.jsonl:4", "hint"]),
        ("bad_field", ["bad_field.jsonl:4: field `results[0].outcome`", "hint"]),
        ("newer", ["newer.jsonl:1", "version"]),
    ] {
        let alone = config(TAIL).replace("tiny", name);
        let ended = verify(&alone);
        assert_eq!(ended.code, 2);
        assert!(words.iter().all(|word| ended.stderr.contains(word)), "{}", ended.stderr);
        assert!(ended.stdout.contains("1 recording could not be used"), "{}", ended.stdout);

        let good = format!("\"{}\"", file("fixtures/recordings/tiny.jsonl"));
        let both = config(TAIL).replace(&good, &format!("{good}, {}", good.replace("tiny", name)));
        let ended = verify(&both);
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        assert!(ended.stdout.contains("1 recording could not be used"), "{}", ended.stdout);
    }
}

#[test]
fn a_torn_recording_is_used_and_said_to_be_torn() {
    let ended = verify(&config(TAIL).replace("tiny", "torn"));
    assert!(ended.stderr.contains("the last line was cut off"), "{}", ended.stderr);
    assert!(!ended.stdout.is_empty());
}
