//! How fast transcripts are imported.

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use retrace_formats::{ImportOptions, openai_chat};
use serde_json::{Value, json};

fn main() {
    divan::main();
}

/// A run of 100 rounds, about as large as those of real agents: arguments of 150 bytes, results of 1,200.
fn run(number: usize) -> Value {
    let mut messages = vec![
        json!({"role": "system", "content": "Keep every item in stock. ".repeat(100)}),
        json!({"role": "user", "content": "Is there enough tea?"}),
    ];
    for round in 0..100 {
        let id = format!("call_{round}");
        let arguments = json!({"item": format!("tea {round}"), "note": "as the customer said ".repeat(5)}).to_string();
        messages.push(json!({"role": "assistant", "content": null, "tool_calls": [
            {"id": id, "type": "function", "function": {"name": "check", "arguments": arguments}}]}));
        let result = format!("{{\n  \"left\": {round}\n}} ").repeat(60);
        messages.push(json!({"role": "tool", "tool_call_id": id, "name": "check", "content": result}));
    }
    json!({"task_id": number, "messages": messages})
}

fn bench(bencher: Bencher<'_, '_>, source: &str) {
    let options = ImportOptions::new("bench");
    bencher
        .counter(BytesCount::of_str(source))
        .bench(|| openai_chat::import(&mut black_box(source).as_bytes(), &options).map(|imported| imported.recordings));
}

#[divan::bench]
fn openai_chat_10mb_of_lines(bencher: Bencher<'_, '_>) {
    let lines: Vec<_> = (0..60).map(|number| run(number).to_string()).collect();
    bench(bencher, &lines.join("\n"));
}

#[divan::bench]
fn openai_chat_10mb_in_one_list(bencher: Bencher<'_, '_>) {
    let runs: Vec<_> = (0..60).map(run).collect();
    bench(bencher, &Value::from(runs).to_string());
}

#[divan::bench]
fn openai_chat_10mb_in_one_run(bencher: Bencher<'_, '_>) {
    let messages: Vec<_> = (0..60).flat_map(|number| run(number)["messages"].as_array().cloned()).flatten().collect();
    bench(bencher, &Value::from(messages).to_string());
}
