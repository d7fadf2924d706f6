//! A simulated shop as an MCP server over its standard input and output, or over HTTP: no protocol library, so that it can
//! also do what no good server does.
//!
//! `shop_server [--seed N] [--http]`, and for tests `--slow-start MILLISECONDS`, `--die-after CALLS`, `--hang-after CALLS`,
//! `--babble` (writes what is no message, and no messages), `--banner` (writes a line first), `--mute` (lists no tools),
//! `--flawed` (lists a tool without a schema), `--endless` (lists a page after every page), `--nosy` (tells and asks the
//! client all that a server may before it answers a call), `--count FILE` (adds a line to the file at each start).

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a server speaks")]

mod http;
mod rpc;

use std::fs::OpenOptions;
use std::io::{self, BufRead, Write};
use std::time::Duration;
use std::{env, process, thread};

use rpc::{Listing, Shops};
use serde_json::json;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = env::args().skip(1).collect();
    let has = |flag: &str| args.iter().any(|arg| arg == flag);
    let value = |flag: &str| args.iter().position(|arg| arg == flag).and_then(|index| args.get(index + 1));
    let number = |flag: &str| value(flag).map(|value| value.parse::<u64>()).transpose();

    if let Some(file) = value("--count") {
        writeln!(OpenOptions::new().create(true).append(true).open(file)?, "{}", process::id())?;
    }
    thread::sleep(Duration::from_millis(number("--slow-start")?.unwrap_or(0)));
    let listings = [("--mute", Listing::Nothing), ("--flawed", Listing::Flawed), ("--endless", Listing::Endless)];
    let listing = listings.into_iter().find(|(flag, _)| has(flag)).map_or(Listing::Tools, |(_, listing)| listing);
    let shops = Shops::new(number("--seed")?.unwrap_or(7), listing);
    if has("--http") {
        return Ok(http::serve(shops)?);
    }
    if has("--banner") || has("--babble") {
        println!("Welcome to the shop!");
    }
    let (dies_after, hangs_after) = (number("--die-after")?, number("--hang-after")?);
    let mut n_calls = 0;
    let mut lines = io::stdin().lock().lines();
    while let Some(line) = lines.next() {
        let message = serde_json::from_str(&line?)?;
        if has("--babble") {
            println!("What?");
            continue;
        }
        if rpc::is_call(&message) {
            if dies_after == Some(n_calls) {
                eprintln!("the shop is on fire\nit has burnt down");
                process::exit(3);
            }
            if hangs_after == Some(n_calls) {
                eprintln!("the shopkeeper sleeps");
                thread::sleep(Duration::from_secs(3600));
            }
            n_calls += 1;
            if has("--nosy") {
                bother(&mut lines)?;
            }
        }
        if let Some(answer) = shops.answer("", &message) {
            println!("{answer}");
        }
    }
    Ok(())
}

/// Tells the client this and that, asks it something, and waits for the answers.
fn bother(lines: &mut impl Iterator<Item = io::Result<String>>) -> Result<(), Box<dyn std::error::Error>> {
    for (method, params) in [
        ("notifications/tools/list_changed", json!({})),
        ("notifications/message", json!({"level": "info", "data": "a customer"})),
        ("notifications/progress", json!({"progressToken": 7, "progress": 1})),
        ("notifications/unheard_of", json!({"a": 1})),
    ] {
        println!("{}", json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }
    let message = json!({"role": "user", "content": {"type": "text", "text": "May I help you?"}});
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    for (id, method, params) in [
        ("a", "ping", json!({})),
        ("b", "roots/list", json!({})),
        ("c", "sampling/createMessage", json!({"messages": [message], "maxTokens": 9})),
        ("d", "elicitation/create", json!({"message": "Your name?", "requestedSchema": schema})),
        ("e", "unheard_of/ask", json!({})),
    ] {
        println!("{}", json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        let answer: serde_json::Value = serde_json::from_str(&lines.next().ok_or("no answer")??)?;
        if answer["id"] != id || answer.get("method").is_some() {
            return Err(format!("`{method}` is answered with {answer}").into());
        }
    }
    Ok(())
}
