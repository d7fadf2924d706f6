//! Servers start ahead of need.

use std::time::{Duration, Instant};

use retrace_mcp::McpConfig;

use crate::support::{connect, login, open, shop};

const START: Duration = Duration::from_secs(1);
const N_ROLLOUTS: u32 = 100;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_rollouts_take_less_than_a_third_of_what_their_starts_take() {
    let config = McpConfig { pool: Some(49), ..shop(&format!("--slow-start {}", START.as_millis())) };
    let began = Instant::now();
    let environment = connect(config).await;
    // Longer than it should be where the machine is busy, as all is then.
    let start = began.elapsed();
    let began = Instant::now();
    let mut sessions = std::collections::BTreeSet::new();
    for _ in 0..N_ROLLOUTS {
        sessions.insert(login(&open(&environment).await).await);
    }
    let took = began.elapsed();
    assert_eq!(sessions.len(), 1, "each started afresh");
    assert!(took < start * N_ROLLOUTS / 3, "{took:?} with starts of {start:?}");
}
