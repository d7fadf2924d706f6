//! What is left of processes and folders: nothing, however they end.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod helper;
mod killed;
mod processes;
mod workspaces;
