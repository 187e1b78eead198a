//! A small HTTP/1.1 load client: keep-alive, one request in flight per connection, one thread.
//!
//! It shares two cores with the server under test, so it must be cheap: the load writes requests as
//! bytes, and answers are parsed for status, length and body only.
//! It does not support TLS, redirects or chunked answers, because the API uses none of them.

mod answer;
mod engine;

pub use answer::{HttpAnswer, amount_after, number_after, text_after};
pub use engine::{LoadLimits, run};

/// The result of [`Load::next`].
pub enum Next {
    /// The request is in the buffer; its answer carries this number.
    Send(u32),
    /// No request is due before this instant, nanoseconds from the start.
    At(u64),
    /// No request is due until an answer arrives.
    AfterAnswer,
    /// There are no more requests.
    Done,
}

/// A source of requests that receives their answers. Instants are nanoseconds from the start.
pub trait Load {
    /// Writes the next request for the server with this number into `out`, if one is due.
    fn next(&mut self, server: usize, now: u64, out: &mut Vec<u8>) -> Next;
    /// Handles the answer to a request.
    fn answered(&mut self, ticket: u32, now: u64, answer: &HttpAnswer<'_>);
    /// Handles a request without an answer: the server may have processed it or not.
    fn lost(&mut self, ticket: u32, now: u64, why: &str);
}

/// Sends one request on a new connection and waits for the answer; for requests that are not load.
pub fn ask(address: std::net::SocketAddr, request: &[u8]) -> anyhow::Result<(u16, Vec<u8>)> {
    use std::io::{Read, Write};
    /// Such requests are fast.
    const TIMEOUT: std::time::Duration = std::time::Duration::from_secs(30);
    let mut stream = std::net::TcpStream::connect_timeout(&address, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.write_all(request)?;
    let mut bytes = Vec::new();
    let mut chunk = vec![0_u8; 64 * 1024];
    loop {
        let read = stream.read(&mut chunk)?;
        anyhow::ensure!(read > 0, "{address} closed the connection");
        bytes.extend_from_slice(&chunk[..read]);
        if let Some((answer, _)) = HttpAnswer::parse(&bytes)? {
            return Ok((answer.status, answer.body.to_vec()));
        }
    }
}

/// Sends a GET request.
pub fn get(address: std::net::SocketAddr, path: &str) -> anyhow::Result<(u16, Vec<u8>)> {
    ask(address, format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n").as_bytes())
}
