//! A server that runs beside a step, and ends with it.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// How many of its last lines are shown of a server that failed.
const SHOWN_LINES: usize = 20;

/// A running server; it is killed when this is dropped. Its standard input is open until then, so that a server that ends
/// with its input ends even where nothing can be dropped.
pub(super) struct Server {
    child: Child,
    log: PathBuf,
}

impl Server {
    /// Starts a server. What it says goes to a log.
    pub(super) fn start(command: &mut Command, log: &Path) -> Result<Self> {
        let program = command.get_program().to_string_lossy().into_owned();
        let file = File::create(log).with_context(|| format!("failed to create `{}`", log.display()))?;
        command.stdin(Stdio::piped()).stdout(file.try_clone()?).stderr(file);
        let child = command.spawn().with_context(|| format!("failed to start `{program}`"))?;
        Ok(Self { child, log: log.to_owned() })
    }

    /// Waits until it answers HTTP on a port of this machine with success.
    pub(super) fn wait_for(&mut self, port: u16, path: &str, limit: Duration) -> Result<()> {
        let start = Instant::now();
        while !answers(port, path) {
            if let Some(status) = self.child.try_wait()? {
                bail!("the server ended with {status}; {}", self.last_lines());
            }
            if start.elapsed() > limit {
                bail!("the server did not answer within {limit:?}; {}", self.last_lines());
            }
            sleep(Duration::from_millis(200));
        }
        Ok(())
    }

    fn last_lines(&self) -> String {
        let said = fs::read(&self.log).unwrap_or_default();
        let said = String::from_utf8_lossy(&said);
        let lines: Vec<_> = said.lines().collect();
        let last = lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n");
        format!("the end of `{}`:\n{last}", self.log.display())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // One that has ended by itself cannot be killed, and need not be.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A port of this machine that nobody uses now.
pub(super) fn free_port() -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("this machine has no free port")?;
    Ok(listener.local_addr()?.port())
}

fn answers(port: u16, path: &str) -> bool {
    let ask = || -> std::io::Result<bool> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(1))?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        write!(stream, "GET {path} HTTP/1.0\r\nhost: localhost:{port}\r\n\r\n")?;
        let mut status = [0; 12];
        stream.read_exact(&mut status)?;
        Ok(status.starts_with(b"HTTP/") && status.ends_with(b" 200"))
    };
    ask().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_ends_is_told_from_one_that_is_slow() {
        let folder = tempfile::tempdir().unwrap();
        let mut failing = Command::new("cargo");
        let mut server = Server::start(failing.arg("no-such-command"), &folder.path().join("log")).unwrap();
        let error = server.wait_for(free_port().unwrap(), "/", Duration::from_secs(60)).unwrap_err().to_string();
        assert!(error.starts_with("the server ended with ") && error.contains("no-such-command"), "{error}");
    }

    #[test]
    fn only_success_is_an_answer() {
        for (status, expected) in [("200 OK", true), ("503 Service Unavailable", false)] {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            let port = listener.local_addr().unwrap().port();
            let server = std::thread::spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                assert!(stream.read(&mut [0; 1024]).unwrap() > 0);
                write!(stream, "HTTP/1.0 {status}\r\n\r\n").unwrap();
            });
            assert_eq!(answers(port, "/"), expected, "{status}");
            server.join().unwrap();
        }
    }
}
