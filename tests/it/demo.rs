//! The demonstration: the tail hurts, and the control does not.

use serde_json::Value;

use crate::program::{retrace, retrace_in, root};

fn wasted(report: &Value, strategy: &str) -> (f64, f64, f64) {
    let last = report["strategies"][strategy]["horizons"].as_array().unwrap().last().unwrap();
    let number = |value: &Value| value["value"].as_f64().unwrap();
    let wasted = &last["deltas"]["wasted"];
    (number(&wasted["mean"]), number(&wasted["interval"]["low"]), number(&wasted["interval"]["high"]))
}

#[test]
fn the_tail_hurts_and_the_control_does_not() {
    let report = retrace(&["demo", "--json"]).json();
    let names: Vec<_> = report["strategies"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["control", "tail", "summary"]);
    let (tail, control) = (wasted(&report, "tail"), wasted(&report, "control"));
    assert!(tail.0 > 0.5 && tail.1 > 0.0, "{tail:?}");
    assert!(control.1 <= 0.0 && control.2 >= 0.0 && control.0.abs() < 0.3, "{control:?}");
    assert_eq!(retrace(&["demo", "--json"]).json(), report, "a seed gives one report");
}

#[test]
fn another_seed_tells_the_same_story() {
    for seed in ["1", "2", "3"] {
        let report = retrace(&["demo", "--json", "--seed", seed]).json();
        let (tail, control) = (wasted(&report, "tail"), wasted(&report, "control"));
        assert!(tail.0 > control.0 + 0.3, "seed {seed}: tail {tail:?}, control {control:?}");
    }
}

#[test]
fn the_demo_reads_well_at_a_hundred_columns() {
    let text = retrace(&["demo"]).ok();
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    insta::assert_snapshot!(text);
    let at_one = retrace(&["demo", "--at", "1"]).ok();
    assert_ne!(at_one, text);
    let error = retrace(&["demo", "--at", "6"]).failed();
    assert!(error.starts_with("error: "), "{error}");
}

#[test]
fn the_readme_shows_what_the_demo_prints() {
    let printed = retrace(&["demo"]).ok();
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let table = "    strategy ";
    let shown = readme.split("among other things:\n").nth(1).unwrap().lines();
    let shown: Vec<_> =
        shown.skip(1).map_while(|line| line.strip_prefix("    ").or(line.is_empty().then_some(""))).collect();
    assert!(shown.len() > 8 && readme.contains(table), "{shown:?}");
    assert!(printed.contains(shown.join("\n").trim_end()), "{printed}");
}

#[test]
fn the_walk_through_one_number_is_that_of_the_demo() {
    let report = retrace(&["demo", "--json"]).json();
    let walk = std::fs::read_to_string(root().join("docs/methods.md")).unwrap();
    let walk = walk.split("\n## ").nth(1).unwrap();
    let tail = &report["strategies"]["tail"]["inference"];
    let boundaries = report["boundaries"].as_array().unwrap();
    let deltas: Vec<_> = boundaries
        .iter()
        .map(|at| at["strategies"]["tail"]["scores"][4]["scored"]["delta"]["wasted"]["exact"].as_str().unwrap())
        .collect();
    let deltas: Vec<_> = deltas.chunks(4).map(|of_recording| of_recording.join(", ")).collect();
    let high = format!("`{:+.3}`", tail["wasted"]["high"].as_f64().unwrap());
    let interval = &report["strategies"]["tail"]["horizons"][4]["deltas"]["wasted"]["interval"];
    let end = |end: &str| format!("{:+.3}", interval[end]["value"].as_f64().unwrap());
    let said = [
        deltas.join("; "),
        tail["wasted"]["mean"]["exact"].as_str().unwrap().to_owned(),
        tail["wasted"]["p_here"]["exact"].as_str().unwrap().to_owned(),
        tail["wasted"]["p_here"]["adjusted"]["exact"].as_str().unwrap().to_owned(),
        format!("p is {}", tail["wasted"]["p_new"]["exact"].as_str().unwrap()),
        high,
        format!("`[{},{}]`", end("low"), end("high")),
    ];
    let walk = walk.split_whitespace().collect::<Vec<_>>().join(" ");
    for said in said {
        assert!(walk.contains(&said), "{said}: {walk}");
    }
    assert!(walk.contains(&format!("**{}**", tail["verdict"].as_str().unwrap())), "{walk}");
    let at = boundaries.iter().find(|at| at["recording"] == "shop-2" && at["cut"] == 27).unwrap();
    let rollouts = at["pre"].as_array().unwrap().iter().chain(at["strategies"]["tail"]["post"].as_array().unwrap());
    for rollout in rollouts {
        let actions = rollout["actions"].as_array().unwrap().iter().map(|action| {
            let arguments: serde_json::Value = serde_json::from_str(action["arguments"].as_str().unwrap()).unwrap();
            let item = arguments["item"].as_str().map_or(String::new(), |item| format!(" {item}"));
            let star = if action["refetch"] == true { "*" } else { "" };
            let failed = if action["outcome"] == "ok" { "" } else { "!" };
            format!("`{}{item}`{star}{failed}", action["name"].as_str().unwrap())
        });
        let actions = actions.collect::<Vec<_>>().join(", ");
        assert!(walk.contains(&actions), "{actions}");
    }
}

#[test]
fn a_saved_demo_can_be_verified_again_and_gives_the_same_report() {
    let folder = tempfile::tempdir().unwrap();
    let report = retrace_in(folder.path(), &["demo", "--seed", "5", "--save", "shop", "--json"]).json();
    assert_eq!(retrace_in(folder.path(), &["verify", "-c", "shop/retrace.toml", "--json"]).json(), report);
    let facts = retrace_in(folder.path(), &["inspect", "shop/recordings", "--json"]).json();
    assert_eq!(facts["total"]["recordings"], 3);
    let error = retrace_in(folder.path(), &["demo", "--seed", "6", "--save", "shop"]).failed();
    assert!(error.contains("is there already and holds something else"), "{error}");
}
