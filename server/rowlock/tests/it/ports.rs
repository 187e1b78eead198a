//! Ports for programs that tests start.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU16, Ordering};

/// Below those that a kernel gives to whoever asks for any: one that is free stays so until its program
/// listens, however many connections other tests make meanwhile.
const FIRST: u16 = 10_000;
const COUNT: u16 = 20_000;

/// Where the next one is looked for. A second run beside this one begins elsewhere.
static NEXT: LazyLock<AtomicU16> =
    LazyLock::new(|| AtomicU16::new(u16::try_from(std::process::id() % u32::from(COUNT)).unwrap_or_default()));

/// An address nobody listens at, told to one caller only.
pub fn free() -> SocketAddr {
    let mut tries = (0..COUNT).map(|_| {
        let offset = NEXT.fetch_add(1, Ordering::Relaxed) % COUNT;
        SocketAddr::from((Ipv4Addr::LOCALHOST, FIRST + offset))
    });
    tries.find(|address| TcpListener::bind(address).is_ok()).expect("a port is free")
}
