//! The workspace's own chores, as functions that return what they found.
//!
//! Every check answers with a list of [`Finding`]s, each a place and what to do there; an empty list is the proof
//! that all is well, and an `Err` means that there is no answer. The program `xtask` prints them.
//!
//! * [`tidy`]: the arrows between crates, manifests and sources;
//! * [`copies`]: vectors and real transcripts, copied from a folder beside the checkout;
//! * [`fixtures`]: made-up inputs, written from builders;
//! * [`ci`]: all checks, one after the other;
//! * [`adapters`]: programs of `examples/` over the real libraries, which is no check of ci, since it needs a network;
//! * [`live`]: retrace with real parts, and what came out kept in `docs/live/`; no check of ci either;
//! * [`peers`]: our work timed beside that of other programs, on the same data; no check of ci either.
//! * [`calibrate`]: our own procedures put through simulations, and how often they err kept in `docs/methods.md`; nor this.

pub mod adapters;
pub mod calibrate;
pub mod ci;
pub mod copies;
pub mod finding;
pub mod fixtures;
pub mod generated;
mod install;
pub mod live;
pub mod peers;
pub mod tidy;
pub mod workspace;

pub use finding::Finding;
