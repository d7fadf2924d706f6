//! One module a command.

pub(crate) mod audit;
pub(crate) mod compact;
pub(crate) mod demo;
pub(crate) mod import;
pub(crate) mod init;
pub(crate) mod inspect;
pub(crate) mod merge;
pub(crate) mod plan;
pub(crate) mod record;
pub(crate) mod replay;
pub(crate) mod report;
pub(crate) mod score;
pub(crate) mod strategies;
pub(crate) mod verify;
