//! Ports of our own on 127.0.0.1, the same ones from run to run while they are free.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;

use anyhow::Result;

/// The port remembered for `name` in `file` when it is free, else `wish` when that is, else any free one.
pub fn claim(file: &Path, name: &str, wish: Option<u16>) -> Result<u16> {
    let mut known = read(file);
    let wishes = known.get(name).copied().into_iter().chain(wish);
    let port = match wishes.into_iter().find(|port| is_free(*port)) {
        Some(port) => port,
        None => TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port(),
    };
    known.insert(name.to_owned(), port);
    std::fs::write(file, serde_json::to_vec_pretty(&known)?)?;
    Ok(port)
}

/// The port remembered for `name`, free or not.
pub fn remembered(file: &Path, name: &str) -> Option<u16> {
    read(file).get(name).copied()
}

/// Whether nobody listens there.
pub fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

fn read(file: &Path) -> BTreeMap<String, u16> {
    // An unreadable memory is an empty one: ports are only a convenience.
    std::fs::read(file).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
}
