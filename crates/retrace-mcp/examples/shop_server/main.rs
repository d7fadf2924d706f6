//! A simulated shop as an MCP server over its standard input and output, or over HTTP: no protocol library, so that it can
//! also do what no good server does.
//!
//! `shop_server [--seed N] [--http]`, and for tests `--slow-start MILLISECONDS`, `--die-after CALLS`, `--hang-after CALLS`,
//! `--babble` (writes what is no message, and no messages), `--banner` (writes a line first), `--mute` (lists no tools),
//! `--flawed` (lists a tool without a schema), `--count FILE` (adds a line to the file at each start).

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a server speaks")]

mod http;
mod rpc;

use std::fs::OpenOptions;
use std::io::{self, BufRead, Write};
use std::time::Duration;
use std::{env, process, thread};

use rpc::{Listing, Shops};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = env::args().skip(1).collect();
    let has = |flag: &str| args.iter().any(|arg| arg == flag);
    let value = |flag: &str| args.iter().position(|arg| arg == flag).and_then(|index| args.get(index + 1));
    let number = |flag: &str| value(flag).map(|value| value.parse::<u64>()).transpose();

    if let Some(file) = value("--count") {
        writeln!(OpenOptions::new().create(true).append(true).open(file)?, "{}", process::id())?;
    }
    thread::sleep(Duration::from_millis(number("--slow-start")?.unwrap_or(0)));
    let listing = match (has("--mute"), has("--flawed")) {
        (true, _) => Listing::Nothing,
        (_, true) => Listing::Flawed,
        _ => Listing::Tools,
    };
    let shops = Shops::new(number("--seed")?.unwrap_or(7), listing);
    if has("--http") {
        return Ok(http::serve(shops)?);
    }
    if has("--banner") || has("--babble") {
        println!("Welcome to the shop!");
    }
    let (dies_after, hangs_after) = (number("--die-after")?, number("--hang-after")?);
    let mut n_calls = 0;
    for line in io::stdin().lock().lines() {
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
        }
        if let Some(answer) = shops.answer("", &message) {
            println!("{answer}");
        }
    }
    Ok(())
}
