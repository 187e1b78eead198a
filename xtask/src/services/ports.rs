//! Ports on 127.0.0.1 for private services, kept from run to run while they are free.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;

use anyhow::Result;

/// Assigns a port to `name`: the one in `file` if it is free, else `preferred` if that is free, else any free one.
pub fn claim(file: &Path, name: &str, preferred: Option<u16>) -> Result<u16> {
    let mut known = read(file);
    let candidates = known.get(name).copied().into_iter().chain(preferred);
    let port = match candidates.into_iter().find(|port| is_free(*port)) {
        Some(port) => port,
        None => TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port(),
    };
    known.insert(name.to_owned(), port);
    std::fs::write(file, serde_json::to_vec_pretty(&known)?)?;
    Ok(port)
}

/// Returns the port last assigned to `name`, free or not.
pub fn last_assigned(file: &Path, name: &str) -> Option<u16> {
    read(file).get(name).copied()
}

/// Returns `true` when the port is free.
pub fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

fn read(file: &Path) -> BTreeMap<String, u16> {
    // An unreadable file counts as empty: stable ports are only a convenience.
    std::fs::read(file).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
}
