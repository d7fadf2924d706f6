//! `identity`: nothing is done. Cost: none.

use futures_core::future::BoxFuture;
use retrace_events::History;
use serde::{Deserialize, Serialize};

use crate::context::CompactContext;
use crate::strategy::{Business, CompactError, Compacted, Strategy};

/// Returns the history. As the control of a verification it shows the noise: a delta is evidence only when it clears
/// this one's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {}

impl Strategy for Identity {
    fn kind(&self) -> &'static str {
        "identity"
    }

    fn business(&self) -> Business {
        Business::Keeps
    }

    fn compact<'a>(
        &'a self,
        _history: &'a History,
        _cx: &'a mut CompactContext<'_>,
    ) -> BoxFuture<'a, Result<Compacted, CompactError>> {
        Box::pin(std::future::ready(Ok(Compacted::Unchanged)))
    }
}
