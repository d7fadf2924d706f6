//! Rollouts against real server processes: the shop of the example.
#![expect(clippy::unwrap_used, reason = "tests may")]

mod faults;
mod http;
mod left_behind;
mod page;
mod pool;
mod rollouts;
mod support;
