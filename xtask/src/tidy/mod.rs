//! Tidy: what the workspace promises about itself and a compiler does not check.

pub mod floors;
pub mod manifests;
pub mod sources;

mod check;

pub use check::check;
