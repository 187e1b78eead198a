//! Ports for the processes that tests start.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU16, Ordering};

/// Below the kernel's ephemeral ports: a free port stays free until its program listens, however many connections other
/// tests open meanwhile.
const FIRST: u16 = 10_000;
const COUNT: u16 = 20_000;

/// Offset of the next port to try. A second run beside this one starts at another offset.
static NEXT: LazyLock<AtomicU16> =
    LazyLock::new(|| AtomicU16::new(u16::try_from(std::process::id() % u32::from(COUNT)).unwrap_or_default()));

/// Returns an address with a free port, and never the same one twice.
pub fn free() -> SocketAddr {
    let mut tries = (0..COUNT).map(|_| {
        let offset = NEXT.fetch_add(1, Ordering::Relaxed) % COUNT;
        SocketAddr::from((Ipv4Addr::LOCALHOST, FIRST + offset))
    });
    tries.find(|address| TcpListener::bind(address).is_ok()).expect("a port is free")
}
