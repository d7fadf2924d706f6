//! The last lines that a program wrote to its standard error.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::watch;

use crate::shown::{Hidden, escaped};

/// Bytes that are kept.
const MAX_KEPT: usize = 8 * 1024;
/// Lines that are shown.
const MAX_LINES: usize = 8;

/// Reads a standard error to its end, so that the program never waits for a reader, and keeps the last of it.
pub(crate) struct StderrTail {
    kept: Mutex<VecDeque<u8>>,
    /// Whether the end was read.
    at_end: watch::Sender<bool>,
    hidden: Hidden,
}

impl StderrTail {
    pub(crate) fn new(hidden: Hidden) -> Self {
        Self { kept: Mutex::default(), at_end: watch::Sender::new(false), hidden }
    }

    /// Reads to the end.
    pub(crate) async fn drain(&self, mut stderr: impl AsyncRead + Unpin) {
        let mut chunk = [0; 4096];
        while let Ok(n @ 1..) = stderr.read(&mut chunk).await {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.extend(&chunk[..n]);
            let excess = kept.len().saturating_sub(MAX_KEPT);
            kept.drain(..excess);
        }
        self.at_end.send_replace(true);
    }

    /// Waits until the end was read.
    pub(crate) async fn ended(&self) {
        let mut at_end = self.at_end.subscribe();
        // The sender is here, so it cannot be gone.
        let _ = at_end.wait_for(|at_end| *at_end).await;
    }

    /// The last lines, on one line, escaped, cut short, and without a hidden value.
    pub(crate) fn shown(&self) -> String {
        let kept: Vec<u8> = self.kept.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect();
        let text = String::from_utf8_lossy(&kept);
        let text = if kept.len() < MAX_KEPT { self.hidden.strip(&text) } else { self.hidden.strip_end(&text) };
        let lines: Vec<_> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).map(escaped).collect();
        lines[lines.len().saturating_sub(MAX_LINES)..].join(" | ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_last_lines_are_shown_without_secrets_and_never_at_length() {
        let tail = StderrTail::new(Hidden::new(["sk-secret".to_owned()]));
        assert_eq!(tail.shown(), "");
        tail.drain("start\nkey sk-secret\r\n\n\u{1b}[31mlast".as_bytes()).await;
        assert_eq!(tail.shown(), r"start | key *** | \u{1b}[31mlast");
        tail.drain(format!("{}\n", "x".repeat(1000)).repeat(1000).as_bytes()).await;
        tail.drain(&b"\xff\xfeend"[..]).await;
        let shown = tail.shown();
        assert!(shown.ends_with("\u{fffd}\u{fffd}end") && shown.len() < 4000, "{shown}");
        tail.ended().await;
    }

    /// Only the end of a flood is kept, and that may start within a value that is hidden.
    #[tokio::test]
    async fn no_part_of_a_secret_is_shown() {
        let secret = "sk-0123456789";
        for cut in 0..secret.len() {
            let tail = StderrTail::new(Hidden::new([secret.to_owned()]));
            tail.drain(format!("{}{secret}{}", "a".repeat(cut), "b".repeat(MAX_KEPT - cut)).as_bytes()).await;
            let shown = tail.shown();
            assert!(!shown.contains("789") && shown.ends_with("bbb"), "{cut}: {shown}");
        }
    }
}
