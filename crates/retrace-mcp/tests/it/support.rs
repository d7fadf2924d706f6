//! The example's server, configurations that use it, and recordings of the shop.

use std::env;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use retrace_env::{Environment, RestoreError, ToolOutput, Toolbox};
use retrace_events::{Boundary, Trajectory};
use retrace_mcp::{McpConfig, McpEnvironment};
use retrace_sim::{Shop, Shopkeeper, record};

/// How long anything may take that is expected to happen.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// The program of the example, which cargo builds with the tests of a package.
pub(crate) fn shop_server() -> String {
    let own = env::current_exe().unwrap();
    let target = own.parent().and_then(|deps| deps.parent()).unwrap();
    let path: PathBuf = target.join("examples").join(format!("shop_server{}", env::consts::EXE_SUFFIX));
    assert!(path.exists(), "{} is not built: `cargo test -p retrace-mcp` builds it", path.display());
    path.to_str().unwrap().to_owned()
}

/// The shop's server with these arguments.
pub(crate) fn shop(args: &str) -> McpConfig {
    McpConfig {
        command: Some(shop_server()),
        args: args.split_whitespace().map(str::to_owned).collect(),
        ..McpConfig::default()
    }
}

/// A configuration as a file has it, with what stands for the shop's server filled in.
pub(crate) fn config(text: &str) -> McpConfig {
    toml::from_str(&text.replace("SHOP", &shop_server())).unwrap()
}

pub(crate) async fn connect(config: McpConfig) -> McpEnvironment {
    McpEnvironment::connect(config).await.unwrap()
}

/// Why a server cannot be used.
pub(crate) async fn refusal(config: McpConfig) -> String {
    McpEnvironment::connect(config).await.err().expect("it should not be usable").to_string()
}

/// Why there is no world.
pub(crate) fn reason(error: RestoreError) -> String {
    let RestoreError::Environment { source } = error else { panic!("{error}") };
    source.to_string()
}

pub(crate) async fn call(toolbox: &Toolbox, name: &str, arguments: &str) -> ToolOutput {
    toolbox.call(name, arguments).await.unwrap()
}

/// A session of the shop.
pub(crate) async fn login(toolbox: &Toolbox) -> String {
    let text = call(toolbox, "login", "{}").await.text();
    text.split(|c: char| !c.is_alphanumeric() && c != '-')
        .rfind(|word| word.contains(|c: char| c.is_ascii_digit()))
        .unwrap()
        .to_owned()
}

/// What the environment opens.
pub(crate) async fn open(environment: &McpEnvironment) -> Toolbox {
    environment.open().await.unwrap()
}

/// A recorded run in the shop, cut in its middle.
pub(crate) async fn boundary() -> Boundary {
    let recording = record(&Shop::new(7), "shop-1", &Shopkeeper::new(), 12, 0).await.unwrap();
    let trajectory = Arc::new(Trajectory::new(recording));
    let points = trajectory.resumable_points();
    let cut = points[points.len() / 2].cut;
    Boundary::new(&trajectory, cut).unwrap()
}

/// Whether a process runs; one that waits to be reaped does not.
pub(crate) fn runs(id: &str) -> bool {
    let ps = std::process::Command::new("ps").args(["-o", "stat=", "-p", id.trim()]).output().unwrap();
    let stat = String::from_utf8(ps.stdout).unwrap();
    !stat.trim().is_empty() && !stat.trim().starts_with('Z')
}

/// Waits for what has to come.
#[track_caller]
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < LONG, "{what}: not within {LONG:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
