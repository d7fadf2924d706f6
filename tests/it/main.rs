//! End-to-end tests: what a user types, and what comes back.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod audit;
mod chain;
mod compact;
mod demo;
mod gate;
mod hostile;
mod init;
mod main_job;
mod otlp;
mod own_compaction;
mod parts;
mod plan;
mod program;
mod rates;
mod runs;
mod score;
mod verify;
