//! The server over streamable HTTP, as little of it as there can be: each answer is one JSON body. The path is the name of
//! the shop, and a request with the header `x-closed` is refused.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use crate::rpc::Shops;

/// Serves on a free port of this machine, which it writes to standard output.
pub(crate) fn serve(shops: Shops) -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("{}", listener.local_addr()?.port());
    let shops = Arc::new(shops);
    for stream in listener.incoming() {
        let (stream, shops) = (stream?, Arc::clone(&shops));
        // One that breaks off is no loss.
        thread::spawn(move || answer(stream, &shops));
    }
    Ok(())
}

fn answer(mut stream: TcpStream, shops: &Shops) -> io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line.trim().is_empty() {
            break;
        }
        lines.push(line);
    }
    let first = lines.first().cloned().unwrap_or_default();
    let (method, path) = first.split_once(' ').unwrap_or_default();
    let path = path.split(' ').next().unwrap_or_default();
    let headers: HashMap<_, _> =
        lines.iter().filter_map(|line| line.split_once(':')).map(|(k, v)| (k.to_ascii_lowercase(), v.trim())).collect();
    let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;

    let answer = serde_json::from_slice(&body).ok().and_then(|message| shops.answer(path, &message));
    let (status, body) = match (method, answer) {
        _ if headers.contains_key("x-closed") => ("403 Forbidden", String::new()),
        ("POST", Some(answer)) => ("200 OK", answer.to_string()),
        ("POST", None) => ("202 Accepted", String::new()),
        _ => ("405 Method Not Allowed", String::new()),
    };
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n");
    write!(stream, "{head}connection: close\r\n\r\n{body}")
}
