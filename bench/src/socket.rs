//! The reading half of a WebSocket client: the handshake, and frames out of a stream of bytes.
//!
//! A reader of a live map says nothing but pong. Extensions are never offered, fragments never expected.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use socket2::{Domain, Protocol, Socket, Type};

/// The handshake may take this long.
const PATIENCE: Duration = Duration::from_secs(30);
/// Longest answer to a handshake, bytes.
const MAX_HEAD: usize = 8 * 1024;
/// What the kernel keeps for a narrow reader who does not read, bytes; it doubles that.
const NARROW_BUFFER: usize = 4 * 1024;
/// The longest segment a narrow reader takes, bytes: the least every host must.
const NARROW_SEGMENT: u32 = 536;
/// Any 16 bytes in base64 will do: we trust who we started.
const KEY: &str = "cm93bG9jay1iZW5jaC0wMQ==";

/// A text message.
pub const TEXT: u8 = 1;
/// A binary message.
pub const BINARY: u8 = 2;
/// The peer says goodbye.
pub const CLOSE: u8 = 8;
/// The peer wants a sign of life.
pub const PING: u8 = 9;

/// Opens a WebSocket. Returns the stream and what came behind the handshake already. One that is
/// `narrow` is as on a slow line: the kernels on both ends keep little for it.
pub fn connect(address: SocketAddr, path: &str, narrow: bool) -> Result<(TcpStream, Vec<u8>)> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if narrow {
        socket.set_recv_buffer_size(NARROW_BUFFER)?;
        // On the loopback a segment has 64 KiB, and the sending kernel keeps twenty of them.
        socket.set_tcp_mss(NARROW_SEGMENT)?;
    }
    socket.connect_timeout(&address.into(), PATIENCE).with_context(|| format!("cannot reach {address}"))?;
    let mut stream: TcpStream = socket.into();
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
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

/// A frame at the beginning of `bytes`: its kind, its payload, its whole length; `None` while some of it
/// is missing.
///
/// # Errors
/// When it is one that a server never sends: masked, in fragments, or with extensions.
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

/// The pong to an empty ping; masked, as clients must, with a mask of zeros.
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
    fn frames_of_all_three_lengths_are_cut_out_of_a_stream() {
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
    fn what_servers_never_send_is_refused() {
        for bytes in [[0x82, 0x80], [0x02, 0x00], [0xc2, 0x00]] {
            assert!(frame(&bytes).is_err(), "{bytes:02x?}");
        }
    }
}
