//! The pool: servers that start ahead of need.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::task::JoinHandle;

use crate::error::McpError;
use crate::server::{Server, Setup};

/// Servers that start or wait, the oldest first.
pub(crate) struct Pool {
    setup: Arc<Setup>,
    starting: Mutex<VecDeque<Starting>>,
}

/// A server that starts in the background; dropped before it was taken, it ends.
struct Starting(JoinHandle<Result<Server, McpError>>);

impl Pool {
    pub(crate) fn new(setup: Arc<Setup>) -> Self {
        Self { setup, starting: Mutex::default() }
    }

    /// Puts a server back that was started and not used.
    pub(crate) fn put(&self, server: Server) {
        let ready = Starting(tokio::spawn(async { Ok(server) }));
        self.starting.lock().unwrap_or_else(PoisonError::into_inner).push_front(ready);
    }

    /// A fresh server, and has others started for those who come next.
    pub(crate) async fn take(&self) -> Result<Server, McpError> {
        let mut oldest = self.next();
        let server = oldest.ready().await?;
        if server.is_alive() {
            return Ok(server);
        }
        // It has ended while it waited, perhaps because nobody spoke to it; this one is spoken to at once.
        self.setup.start().await
    }

    fn next(&self) -> Starting {
        let mut starting = self.starting.lock().unwrap_or_else(PoisonError::into_inner);
        let oldest = starting.pop_front().unwrap_or_else(|| self.start());
        while starting.len() < self.setup.config.pool() {
            starting.push_back(self.start());
        }
        oldest
    }

    fn start(&self) -> Starting {
        let setup = Arc::clone(&self.setup);
        Starting(tokio::spawn(async move { setup.start().await }))
    }
}

impl Starting {
    async fn ready(&mut self) -> Result<Server, McpError> {
        (&mut self.0).await.unwrap_or_else(|error| {
            let message = format!("the task that started the MCP server broke off: {error}");
            Err(McpError::Config { message })
        })
    }
}

impl Drop for Starting {
    fn drop(&mut self) {
        self.0.abort();
    }
}
