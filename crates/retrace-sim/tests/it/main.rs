//! Worlds, agents and strategies together.

#![expect(clippy::unwrap_used, reason = "tests may")]

mod arms;
mod code_base;
mod shop;
mod wander;
