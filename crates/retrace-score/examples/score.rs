//! Scores one boundary and sums up a few, from nothing but rollouts: `cargo run -p retrace-score --example score`.

use std::error::Error;

use retrace_events::{Event, Outcome, Rollout, Spend, ToolCall, ToolResult};
use retrace_score::{
    ExecutedCalls, Key, actions_from_events, bootstrap_mean, resumable_cuts, score_boundary, sign_flip_test,
};
use retrace_stats::Level;

#[expect(clippy::print_stdout, reason = "an example shows what it found")]
fn main() -> Result<(), Box<dyn Error>> {
    let round = |id: &str, tool: &str, outcome| {
        let call = ToolCall::new(id, tool, "{}");
        let result = ToolResult::text_result(&call, outcome, "…");
        [Event::calls([call]), Event::results([result])]
    };
    let rollout = |tools: &[(&str, Outcome)]| {
        let events: Vec<Event> = tools.iter().flat_map(|&(tool, outcome)| round("c", tool, outcome)).collect();
        let end = retrace_events::EndReason::Budget;
        Rollout { actions: actions_from_events(&events), end, n_answers: 3, spend: Spend::default(), sent: None }
    };

    let prefix: Vec<Event> = [Event::request("restock")].into_iter().chain(round("c1", "login", Outcome::Ok)).collect();
    println!("it can be resumed after {} events", resumable_cuts(&prefix)[0].cut);
    let executed: ExecutedCalls = actions_from_events(&prefix).iter().collect();

    let pre = [rollout(&[("list", Outcome::Ok), ("reorder", Outcome::Ok)])];
    let post = [
        rollout(&[("list", Outcome::Error), ("login", Outcome::Ok)]),
        rollout(&[("list", Outcome::Ok), ("reorder", Outcome::Ok)]),
    ];
    let burdens = retrace_score::Burdens::of(&post[0], &executed, Key::Call);
    println!("the first POST rollout: {:?}", burdens.at(2));

    let scores = score_boundary(&pre, &post, &executed, &[1, 2])?;
    for at in &scores {
        if let Some(delta) = at.score.delta() {
            println!("horizon {}: wasted {}, stopped {}", at.horizon, delta.wasted, delta.stopped);
        }
    }

    let wasted = ["1", "1/2", "0", "3/2", "1"].map(|delta| delta.parse()).into_iter().collect::<Result<Vec<_>, _>>()?;
    let bootstrap = bootstrap_mean(&wasted, 10_000, Level::PERCENT_95, 0)?;
    println!("mean {}, from {} to {}", bootstrap.mean, bootstrap.interval.low, bootstrap.interval.high);
    let p = sign_flip_test(&wasted).p;
    println!("p = {} ({})", p.to_f64(), p.method());
    Ok(())
}
