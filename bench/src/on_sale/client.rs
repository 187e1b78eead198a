//! The keep-alive connections of one worker, to any replica that answers, as behind a proxy with health checks.

use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::http::{CompleteAnswer, exchange};

/// Timeout of a connection attempt; then the next replica is tried.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Timeout of an answer: longer than any deadline of the server.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// The reason for a missing answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LostAnswer {
    /// The connection failed: the request was not sent.
    NotConnected,
    /// The connection ended after the request was sent: the outcome is unknown.
    CutOff,
}

/// Connections to all replicas, for one request at a time.
pub struct CrowdClient<'a> {
    addresses: &'a [SocketAddr],
    streams: Vec<Option<TcpStream>>,
    /// Index of the replica to send to.
    preferred: usize,
}

impl<'a> CrowdClient<'a> {
    pub fn new(addresses: &'a [SocketAddr], preferred: usize) -> Self {
        let streams = addresses.iter().map(|_| None).collect();
        Self { addresses, streams, preferred: preferred % addresses.len() }
    }

    /// Sends a request to the preferred replica. After an error the next replica is preferred.
    pub fn send(&mut self, request: &[u8]) -> Result<CompleteAnswer, LostAnswer> {
        let server = self.preferred;
        let result = self.send_to(server, request);
        if result.is_err() {
            self.streams[server] = None;
            self.preferred = (server + 1) % self.addresses.len();
        }
        result
    }

    fn send_to(&mut self, server: usize, request: &[u8]) -> Result<CompleteAnswer, LostAnswer> {
        // The server may close an idle connection; that loses no answer.
        if let Some(stream) = self.streams[server].take()
            && is_open(&stream)
        {
            return self.send_over(server, stream, request);
        }
        let stream = connect(self.addresses[server]).map_err(|_| LostAnswer::NotConnected)?;
        self.send_over(server, stream, request)
    }

    fn send_over(
        &mut self,
        server: usize,
        mut stream: TcpStream,
        request: &[u8],
    ) -> Result<CompleteAnswer, LostAnswer> {
        let response = exchange(&mut stream, request).map_err(|_| LostAnswer::CutOff)?;
        if !response.closes {
            self.streams[server] = Some(stream);
        }
        Ok(response)
    }
}

fn connect(address: SocketAddr) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, CONNECT_TIMEOUT)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
    Ok(stream)
}

/// Checks that an idle connection has neither bytes to read nor an end of stream.
fn is_open(stream: &TcpStream) -> bool {
    let mut byte = [0];
    let is_idle = stream.set_nonblocking(true).is_ok()
        && stream.peek(&mut byte).is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock);
    is_idle && stream.set_nonblocking(false).is_ok()
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    #[test]
    fn the_next_replica_is_used_when_one_is_down() {
        let down = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
        let up = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let addresses = [down, up.local_addr().expect("an address")];
        let serving = std::thread::spawn(move || {
            let (mut stream, _) = up.accept().expect("a connection");
            let mut chunk = [0; 64];
            let _ = stream.read(&mut chunk);
            stream.write_all(b"HTTP/1.1 204 No Content\r\nRetry-After: 7\r\n\r\n").expect("written");
        });
        let mut client = CrowdClient::new(&addresses, 0);
        assert_eq!(client.send(b"GET / HTTP/1.1\r\n\r\n").err(), Some(LostAnswer::NotConnected));
        let response = client.send(b"GET / HTTP/1.1\r\n\r\n").expect("an answer");
        assert_eq!((response.status, response.retry_after), (204, Some(7)));
        serving.join().expect("the thread ends");
    }
}
