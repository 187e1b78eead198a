//! A small HTTP/1.1 client for load: keep-alive, one request in the air per connection, one thread.
//!
//! It shares two cores with the server under test, so it costs little: requests are bytes made by the
//! load, answers are looked at for status, length and body, and nothing is copied that need not be.
//! What it leaves out: TLS, redirects, chunked answers, anything the API does not do.

mod answer;
mod engine;

pub use answer::{Answer, amount_after, number_after, text_after};
pub use engine::{Limits, run};

/// What a load says when it is asked for the next request.
pub enum Next {
    /// The request is in the buffer; the number comes back with its answer.
    Send(u32),
    /// Nothing before this instant, nanoseconds from the start.
    At(u64),
    /// Nothing until some answer arrives.
    AfterAnswer,
    /// Nothing any more.
    Done,
}

/// Something that makes requests and hears their answers. Instants are nanoseconds from the start.
pub trait Load {
    /// Writes the next request for the server with this number into `out`, if one is due.
    fn next(&mut self, server: usize, now: u64, out: &mut Vec<u8>) -> Next;
    /// The answer to a request.
    fn answered(&mut self, ticket: u32, now: u64, answer: &Answer<'_>);
    /// There will be no answer, and nobody knows what the server did.
    fn lost(&mut self, ticket: u32, now: u64, why: &str);
}

/// One request and its answer on a connection of its own, waiting for it; for everything that is not load.
pub fn ask(address: std::net::SocketAddr, request: &[u8]) -> anyhow::Result<(u16, Vec<u8>)> {
    use std::io::{Read, Write};
    /// Whatever is asked this way is quick.
    const PATIENCE: std::time::Duration = std::time::Duration::from_secs(30);
    let mut stream = std::net::TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(request)?;
    let mut bytes = Vec::new();
    let mut chunk = vec![0_u8; 64 * 1024];
    loop {
        let read = stream.read(&mut chunk)?;
        anyhow::ensure!(read > 0, "{address} hung up");
        bytes.extend_from_slice(&chunk[..read]);
        if let Some((answer, _)) = Answer::parse(&bytes)? {
            return Ok((answer.status, answer.body.to_vec()));
        }
    }
}

/// A plain GET.
pub fn get(address: std::net::SocketAddr, path: &str) -> anyhow::Result<(u16, Vec<u8>)> {
    ask(address, format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n").as_bytes())
}
