//! Prints the table of a few rollouts that were collected elsewhere: `cargo run -p retrace-report --example table`.

use std::error::Error;

use retrace_report::{View, text};
use retrace_score::{Report, ScoreInput};

#[expect(clippy::print_stdout, reason = "an example shows what it found")]
fn main() -> Result<(), Box<dyn Error>> {
    let boundary = |recording: usize, post: &str| {
        format!(
            r#"{{
                "recording": "shop-{recording}",
                "cut": 9,
                "history": [{{"name": "login", "arguments": {{"user": "ada"}}}}],
                "pre_size": {{"events": 9, "tokens": 1200}},
                "pre": [{{"actions": [
                    {{"name": "stock", "arguments": {{"item": "tea"}}, "blocked": false}},
                    {{"name": "stock", "arguments": {{"item": "rice"}}, "blocked": false}}
                ]}}],
                "strategies": {{"tail": {{"size": {{"events": 3, "tokens": 260}}, "post": [{{"actions": [{post}]}}]}}}}
            }}"#
        )
    };
    let login = r#"{"name": "login", "arguments": {"user": "ada"}, "blocked": false}"#;
    let blocked = r#"{"name": "stock", "arguments": {"item": "tea"}, "blocked": true}"#;
    let posts = [format!("{blocked}, {login}"), login.to_owned(), format!("{login}, {login}")];
    let boundaries: Vec<_> = posts.iter().enumerate().map(|(i, post)| boundary(i + 1, post)).collect();
    let input = ScoreInput::from_json(&format!(r#"{{"horizon": 2, "boundaries": [{}]}}"#, boundaries.join(",")))?;

    let report = Report::new(input.into_verification())?;
    print!("{}", text(&View::new(&report)));
    Ok(())
}
