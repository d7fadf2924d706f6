//! What a server writes to its standard output beside its messages.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use retrace_process::escaped;
use tokio::io::{AsyncRead, ReadBuf};

/// Bytes that are kept of a line.
const MAX_KEPT: usize = 200;

/// The last line that was no message: a client passes over them, but if no answer comes they are the reason.
#[derive(Clone, Default)]
pub(crate) struct Garbage(Arc<Mutex<Vec<u8>>>);

/// A standard output that is read through.
pub(crate) struct Overheard<R> {
    inner: R,
    line: Vec<u8>,
    garbage: Garbage,
}

impl Garbage {
    /// The line as messages show it, if there was one.
    pub(crate) fn last(&self) -> Option<String> {
        let line = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (!line.is_empty()).then(|| escaped(&String::from_utf8_lossy(&line)))
    }
}

impl<R> Overheard<R> {
    pub(crate) fn new(inner: R) -> (Self, Garbage) {
        let garbage = Garbage::default();
        (Self { inner, line: Vec::new(), garbage: garbage.clone() }, garbage)
    }

    fn hear(&mut self, bytes: &[u8]) {
        for chunk in bytes.split_inclusive(|byte| *byte == b'\n') {
            let room = MAX_KEPT.saturating_sub(self.line.len());
            self.line.extend(&chunk[..chunk.len().min(room)]);
            if chunk.ends_with(b"\n") {
                let line = self.line.trim_ascii();
                if !line.is_empty() && !line.starts_with(b"{") && !line.starts_with(b"[") {
                    *self.garbage.0.lock().unwrap_or_else(PoisonError::into_inner) = line.to_vec();
                }
                self.line.clear();
            }
        }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Overheard<R> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buf))?;
        self.hear(&buf.filled()[before..]);
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    #[tokio::test]
    async fn lines_that_are_no_messages_are_heard_and_all_is_passed_on() {
        let text = format!("{{\"id\":1}}\n  \n{}\nBanner \u{1b}[1m\n{{\"id\":2}}\npart", "x".repeat(1000));
        let (mut overheard, garbage) = Overheard::new(text.as_bytes());
        assert_eq!(garbage.last(), None);
        let mut read = String::new();
        overheard.read_to_string(&mut read).await.unwrap();
        assert_eq!((read, garbage.last().as_deref()), (text, Some(r"Banner \u{1b}[1m")));
    }
}
