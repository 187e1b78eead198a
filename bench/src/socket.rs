//! The reading half of a WebSocket client: the handshake and a frame parser.
//!
//! A reader of a live map sends only pongs. The client offers no extensions and rejects fragments.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use socket2::{Domain, Protocol, Socket, Type};

const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum answer to a handshake, bytes.
const MAX_HEAD: usize = 8 * 1024;
/// Receive buffer of a narrow reader, bytes; the kernel doubles it.
const NARROW_BUFFER: usize = 4 * 1024;
/// Maximum segment size of a narrow reader, bytes: the minimum that every host must accept.
const NARROW_SEGMENT: u32 = 536;
/// Any 16 bytes in base64: the client does not verify the server's accept key.
const KEY: &str = "cm93bG9jay1iZW5jaC0wMQ==";

pub const TEXT: u8 = 1;
pub const BINARY: u8 = 2;
pub const CLOSE: u8 = 8;
pub const PING: u8 = 9;

/// Opens a WebSocket. Returns the stream and the bytes received after the handshake. A `narrow` socket
/// models a slow line: the kernels on both ends buffer little for it.
pub fn connect(address: SocketAddr, path: &str, narrow: bool) -> Result<(TcpStream, Vec<u8>)> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if narrow {
        socket.set_recv_buffer_size(NARROW_BUFFER)?;
        // On the loopback a segment has 64 KiB, and the sending kernel buffers twenty of them.
        socket.set_tcp_mss(NARROW_SEGMENT)?;
    }
    socket.connect_timeout(&address.into(), HANDSHAKE_TIMEOUT).with_context(|| format!("cannot reach {address}"))?;
    let mut stream: TcpStream = socket.into();
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(HANDSHAKE_TIMEOUT))?;
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {KEY}\r\n\r\n"
    )?;
    let mut bytes = Vec::new();
    let mut chunk = [0_u8; 2_048];
    loop {
        let read = stream.read(&mut chunk)?;
        bytes.extend_from_slice(&chunk[..read]);
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            if !bytes.starts_with(b"HTTP/1.1 101") {
                bail!("no WebSocket at {path}: {}", String::from_utf8_lossy(&bytes[..bytes.len().min(200)]));
            }
            return Ok((stream, bytes.split_off(end + 4)));
        }
        if read == 0 || bytes.len() > MAX_HEAD {
            bail!("the handshake at {path} was not answered");
        }
    }
}

/// Parses the frame at the start of `bytes`: opcode, payload and total length; `None` while it is
/// incomplete.
///
/// # Errors
/// When the frame is masked, a fragment, or uses extensions, which the server never sends.
pub fn frame(bytes: &[u8]) -> Result<Option<(u8, &[u8], usize)>> {
    const FINAL: u8 = 0x80;
    const MASKED: u8 = 0x80;
    let [first, second, ..] = bytes else { return Ok(None) };
    if first & 0xf0 != FINAL || second & MASKED != 0 {
        bail!("a frame begins with {first:02x} {second:02x}");
    }
    let (length, head) = match second {
        126 => match bytes.get(2..4) {
            Some(length) => (usize::from(u16::from_be_bytes([length[0], length[1]])), 4),
            None => return Ok(None),
        },
        127 => match bytes.get(2..10).and_then(|length| <[u8; 8]>::try_from(length).ok()) {
            Some(length) => (usize::try_from(u64::from_be_bytes(length))?, 10),
            None => return Ok(None),
        },
        short => (usize::from(*short), 2),
    };
    Ok(bytes.get(head..head + length).map(|payload| (first & 0x0f, payload, head + length)))
}

/// The pong to an empty ping, masked with zeros: a client must mask its frames.
pub const PONG: [u8; 6] = [0x8a, 0x80, 0, 0, 0, 0];

/// Opens a WebSocket and waits for its first message that is not a ping.
pub fn first_message(address: SocketAddr, path: &str) -> Result<Vec<u8>> {
    let (mut stream, mut bytes) = connect(address, path, false)?;
    let mut chunk = vec![0_u8; 64 * 1024];
    loop {
        if let Some((kind, payload, length)) = frame(&bytes)? {
            if matches!(kind, TEXT | BINARY) {
                return Ok(payload.to_vec());
            }
            bytes.drain(..length);
        } else {
            let read = stream.read(&mut chunk)?;
            anyhow::ensure!(read > 0, "the socket closed before its first message");
            bytes.extend_from_slice(&chunk[..read]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_all_three_length_encodings_are_parsed() {
        for length in [0_usize, 125, 126, 65_535, 65_536] {
            let mut bytes = match length {
                0..126 => vec![0x82, length as u8],
                126..65_536 => [&[0x82, 126], &(length as u16).to_be_bytes()[..]].concat(),
                _ => [&[0x82, 127], &(length as u64).to_be_bytes()[..]].concat(),
            };
            bytes.resize(bytes.len() + length, 7);
            let whole = bytes.len();
            assert_eq!(frame(&bytes[..whole - 1]).expect("readable"), None);
            bytes.extend_from_slice(&[0x89, 0]);
            let (kind, payload, end) = frame(&bytes).expect("readable").expect("whole");
            assert_eq!((kind, payload.len(), end), (BINARY, length, whole));
            assert_eq!(frame(&bytes[end..]).expect("readable"), Some((PING, &[][..], 2)));
        }
    }

    #[test]
    fn masked_fragmented_and_extended_frames_are_rejected() {
        for bytes in [[0x82, 0x80], [0x02, 0x00], [0xc2, 0x00]] {
            assert!(frame(&bytes).is_err(), "{bytes:02x?}");
        }
    }
}
