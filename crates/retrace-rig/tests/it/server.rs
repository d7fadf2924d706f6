//! A provider on this machine: it answers with what a test gives it, and keeps what it was asked.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::Value;

/// One answer.
pub(crate) enum Reply {
    /// A status, more headers (each with its line end), and a body.
    Status(u16, &'static str, String),
    /// A status, and all that the request said, as a careless provider shows it.
    Echo(u16),
    /// No answer while the server lives.
    Hang,
    /// An answer that says that it is longer than it is.
    BreakOff,
    /// The connection is reset before the request is read.
    Reset,
}

/// A request.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// The method and the address.
    pub(crate) line: String,
    pub(crate) headers: String,
    pub(crate) body: Value,
}

pub(crate) struct Server {
    pub(crate) url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Server {
    /// Gives the replies in turn, and the last one from then on.
    pub(crate) fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (replies, keeps) = (replies.into_iter().collect::<Vec<_>>(), Arc::clone(&seen));
        thread::spawn(move || {
            let mut open = Vec::new();
            for (at, stream) in listener.incoming().enumerate() {
                let mut stream = stream.unwrap();
                let reply = &replies[at.min(replies.len() - 1)];
                if matches!(reply, Reply::Reset) {
                    // What was sent and never read makes the end of the connection a reset.
                    let _ = stream.peek(&mut [0]);
                    continue;
                }
                let Some(request) = read(&stream) else { continue };
                keeps.lock().unwrap().push(request.clone());
                answer(&mut stream, reply, &request);
                if matches!(reply, Reply::Hang) {
                    open.push(stream);
                }
            }
        });
        Self { url, seen }
    }

    pub(crate) fn json(body: Value) -> Self {
        Self::new([Reply::Status(200, "", body.to_string())])
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

fn read(stream: &TcpStream) -> Option<Seen> {
    let mut reader = BufReader::new(stream);
    let (mut line, mut headers, mut length) = (String::new(), String::new(), 0);
    reader.read_line(&mut line).ok()?;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        if header.trim().is_empty() {
            break;
        }
        if let Some(value) = header.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        headers.push_str(&header);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Seen { line: line.trim().to_owned(), headers, body: serde_json::from_slice(&body).unwrap_or_default() })
}

fn answer(stream: &mut TcpStream, reply: &Reply, request: &Seen) {
    let (status, headers, body) = match reply {
        Reply::Status(status, headers, body) => (*status, *headers, body.clone()),
        Reply::Echo(status) => (*status, "", format!("{}\n{}{}", request.line, request.headers, request.body)),
        Reply::Hang | Reply::Reset => return,
        Reply::BreakOff => {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 999\r\n\r\n{\"id\":");
            return;
        }
    };
    let length = body.len();
    let _ =
        write!(stream, "HTTP/1.1 {status} X\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}");
}
