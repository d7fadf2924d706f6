//! A whole report as JSON, written boundary after boundary.

use std::io;

use retrace_report::{json, write_report};
use retrace_score::{BoundaryOutcome, BoundaryReport, Key, Report, Reporter, ScoreInput, Verification};
use serde_json::{Value, json};

/// A verification of `tail` at two boundaries.
fn verification() -> Verification {
    let action = |n: usize, blocked: bool| json!({"name": "stock", "arguments": {"n": n}, "blocked": blocked});
    let boundary = |cut: usize| {
        let pre = json!([{"actions": [action(1, false), action(2, false)]}, {"error": "no answer"}]);
        let post = json!([{"actions": [action(cut, true), action(cut, true)]}]);
        let history = [json!({"name": "look", "arguments": {}})];
        json!({"recording": "shop-1", "cut": cut, "history": history, "pre": pre, "strategies": {"tail": {"post": post}}})
    };
    let input = json!({"horizon": 2, "boundaries": [boundary(9), boundary(4)]});
    ScoreInput::from_json(&input.to_string()).expect("it is whole").into_verification()
}

fn boundaries() -> Vec<BoundaryOutcome> {
    verification().boundaries
}

fn written<E: From<io::Error>>(
    report: &Report,
    boundaries: impl IntoIterator<Item = Result<BoundaryReport, E>>,
) -> Result<String, E> {
    let mut written = Vec::new();
    write_report(&mut written, report, boundaries)?;
    Ok(String::from_utf8(written).expect("JSON is UTF-8"))
}

/// Boundaries scored again for a report.
fn again(report: &Report, boundaries: Vec<BoundaryOutcome>) -> Result<String, io::Error> {
    written(report, boundaries.into_iter().map(|boundary| Ok(report.score(boundary))))
}

#[test]
fn a_second_pass_over_the_source_writes_what_the_first_one_scored() {
    for refetch_by in [Key::Call, Key::Tool] {
        let mut verification = verification();
        verification.judging.refetch_by = refetch_by;
        verification.boundaries.clear();
        let mut reporter = Reporter::new(verification).unwrap();
        let first: Vec<_> = boundaries().into_iter().map(|boundary| reporter.add(boundary).unwrap()).collect();
        let report = reporter.finish();
        let whole = again(&report, boundaries()).unwrap();
        assert_eq!(whole, written(&report, first.into_iter().map(Ok::<_, io::Error>)).unwrap());

        let read: Value = serde_json::from_str(&whole).unwrap();
        let refetches = |at: &Value| at["pre"][0]["actions"][1]["refetch"] == json!(true);
        let cuts: Vec<_> =
            read["boundaries"].as_array().unwrap().iter().map(|at| (&at["cut"], refetches(at))).collect();
        let by_tool = refetch_by == Key::Tool;
        assert_eq!(cuts, [(&json!(9), by_tool), (&json!(4), by_tool)]);
        assert_eq!(read["judging"].get("refetch_by"), by_tool.then(|| json!("tool")).as_ref());

        // The rest stands before the boundaries, as it is written without them.
        let rest = json(&report);
        assert!(whole.starts_with(rest.strip_suffix("\n}").unwrap()));
    }
}

#[test]
fn boundaries_that_are_not_those_of_the_report_are_refused() {
    let report = Report::new(verification()).unwrap();
    let check = |break_it: fn(&mut Vec<BoundaryOutcome>), expected: &str| {
        let mut boundaries = boundaries();
        break_it(&mut boundaries);
        let error = again(&report, boundaries).unwrap_err();
        assert_eq!((error.kind(), error.to_string()), (io::ErrorKind::InvalidData, expected.to_owned()));
    };
    let other = |cut| format!("the boundary at {cut} of `shop-1` is not the one that the report has in this place");
    check(|them| them.swap(0, 1), &other(4));
    check(|them| drop(them[1].pre.pop()), &other(4));
    check(|them| drop(them[0].strategies.pop()), &other(9));
    check(|them| them.extend(boundaries()), &other(9));
    check(
        |them| drop(them.pop()),
        "the report has a boundary at 4 of `shop-1`, which is not among those to be written",
    );
}

#[test]
fn why_a_boundary_could_not_be_had_is_told_in_the_words_of_the_source() {
    #[derive(Debug)]
    enum Failure {
        Source,
        Writer(io::Error),
    }

    impl From<io::Error> for Failure {
        fn from(error: io::Error) -> Self {
            Self::Writer(error)
        }
    }

    let report = Report::new(verification()).unwrap();
    assert!(matches!(written(&report, [Err(Failure::Source)]), Err(Failure::Source)));
    let full = write_report(&mut [0; 9][..], &report, boundaries().into_iter().map(|it| Ok(report.score(it))));
    assert!(matches!(full, Err(Failure::Writer(error)) if error.kind() == io::ErrorKind::WriteZero));
}
