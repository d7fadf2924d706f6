//! What a server writes to its standard output beside its messages.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use retrace_process::Process;
use tokio::io::{AsyncRead, ReadBuf};

/// The longest line that a server may write, in bytes. The client would pass over it and wait for an answer for ever.
pub(crate) const MAX_LINE: usize = rmcp::transport::async_rw::DEFAULT_MAX_LINE_LENGTH;
/// Bytes that are kept of a line that is no message.
const MAX_KEPT: usize = 400;

/// The last line that was no message: a client passes over them, but if no answer comes they are the reason.
#[derive(Clone, Default)]
pub(crate) struct Garbage(Arc<Mutex<Line>>);

/// A line, as far as it is kept.
#[derive(Default)]
struct Line {
    start: Vec<u8>,
    n_bytes: usize,
}

/// A standard output that is read through. A line that is too long ends it with an error.
pub(crate) struct Overheard<R> {
    inner: R,
    line: Line,
    garbage: Garbage,
}

impl Garbage {
    /// The line as messages show it, if there was one.
    pub(crate) fn quoted(&self, writer: &Process) -> Option<String> {
        self.last().map(|(start, is_whole)| match is_whole {
            true => format!("`{}`", writer.quoted(&start)),
            false => format!("`{}…`", writer.quoted_start(&start)),
        })
    }

    /// Whether it was too long.
    pub(crate) fn is_too_long(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).n_bytes > MAX_LINE
    }

    /// The start of the line, and whether that is all of it.
    fn last(&self) -> Option<(String, bool)> {
        let line = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let start = String::from_utf8_lossy(&line.start).trim().to_owned();
        (line.n_bytes > 0).then(|| (start, line.n_bytes <= MAX_KEPT))
    }
}

impl<R> Overheard<R> {
    pub(crate) fn new(inner: R) -> (Self, Garbage) {
        let garbage = Garbage::default();
        (Self { inner, line: Line::default(), garbage: garbage.clone() }, garbage)
    }

    fn hear(&mut self, bytes: &[u8]) -> io::Result<()> {
        for chunk in bytes.split_inclusive(|byte| *byte == b'\n') {
            let room = MAX_KEPT - self.line.start.len();
            self.line.start.extend(&chunk[..chunk.len().min(room)]);
            self.line.n_bytes += chunk.len();
            let is_too_long = self.line.n_bytes > MAX_LINE;
            if is_too_long || chunk.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                let start = line.start.trim_ascii_start();
                if is_too_long || !start.is_empty() && !start.starts_with(b"{") && !start.starts_with(b"[") {
                    *self.garbage.0.lock().unwrap_or_else(PoisonError::into_inner) = line;
                }
            }
            if is_too_long {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "a line is too long"));
            }
        }
        Ok(())
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Overheard<R> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buf))?;
        Poll::Ready(self.hear(&buf.filled()[before..]))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    #[tokio::test]
    async fn lines_that_are_no_messages_are_heard_and_all_is_passed_on() {
        let text = format!("{{\"id\":1}}\n  \n{}\nBanner \n{{\"id\":2}}\npart", "x".repeat(1000));
        let (mut overheard, garbage) = Overheard::new(text.as_bytes());
        assert_eq!(garbage.last(), None);
        let mut read = String::new();
        overheard.read_to_string(&mut read).await.unwrap();
        assert_eq!((read, garbage.last()), (text, Some(("Banner".to_owned(), true))));
    }

    #[tokio::test]
    async fn a_line_without_end_ends_the_talk() {
        let (mut overheard, garbage) = Overheard::new(tokio::io::repeat(b'{'));
        let mut chunk = vec![0; 1 << 20];
        let mut n_read = 0;
        while let Ok(n) = overheard.read(&mut chunk).await {
            n_read += n;
        }
        assert_eq!((n_read, garbage.last()), (MAX_LINE, Some(("{".repeat(MAX_KEPT), false))));
    }
}
