//! The client's address, for limits per address.
//!
//! It is the peer of the connection. Behind trusted proxies it is the entry that the outermost of them added: each adds one
//! at the end of the header, and earlier entries may be forged. The peer is not checked to be a proxy: an operator who sets
//! `TRUSTED_PROXIES` must block all other access to the port (docs/operating.md).

use std::net::{IpAddr, Ipv6Addr};
use std::sync::Once;

use axum::extract::{FromRef, FromRequestParts};
use axum::http::HeaderMap;
use axum::http::request::Parts;

use crate::HttpState;

/// The header with the addresses of the clients of proxies, outermost first.
const FORWARDED: &str = "x-forwarded-for";

/// Limits the warning about missing entries to one per process.
static WARNING: Once = Once::new();

/// The other end of the connection; every request has it.
#[derive(Clone, Copy, Debug)]
pub struct Peer(pub IpAddr);

/// The unit that a limit per address counts: an IPv4 address, or an IPv6 network of 64 bits, which each household gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientAddress(pub String);

impl<S> FromRequestParts<S> for ClientAddress
where
    S: Send + Sync,
    HttpState: FromRef<S>,
{
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Self::Rejection> {
        let peer = parts.extensions.get::<Peer>().map(|peer| peer.0);
        Ok(Self::of(peer, &parts.headers, HttpState::from_ref(state).site.trusted_proxies))
    }
}

impl ClientAddress {
    /// `hops` trusted proxies are in front; each appends the address of its client to the header.
    fn of(peer: Option<IpAddr>, headers: &HeaderMap, hops: usize) -> Self {
        let address = if hops == 0 {
            peer
        } else {
            let entry = outermost_entry(headers, hops);
            // A request without the header did not pass the proxies, as those of a rehearsal.
            if entry.is_none() && headers.contains_key(FORWARDED) {
                WARNING.call_once(|| {
                    tracing::warn!(
                        trusted_proxies = hops,
                        "X-Forwarded-For has fewer entries than TRUSTED_PROXIES; limits count the proxy's address"
                    );
                });
            }
            entry.and_then(|entry| entry.parse().ok()).or(peer)
        };
        // Without a peer all share one limit: only tests call without a connection.
        address.map_or_else(|| Self("nowhere".to_owned()), Self::counted)
    }

    /// The address as limits count it: itself, or its IPv6 network of 64 bits.
    pub fn counted(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                format!("{}/64", Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
            }
        })
    }

    /// The network around the address: an IPv4 /24, an IPv6 /48. An owner of many addresses mostly has those of one network.
    #[must_use]
    pub fn network(&self) -> String {
        let address = self.0.strip_suffix("/64").unwrap_or(&self.0);
        match address.parse::<IpAddr>() {
            Ok(IpAddr::V4(address)) => {
                let [a, b, c, _] = address.octets();
                format!("{a}.{b}.{c}.0/24")
            }
            Ok(IpAddr::V6(address)) => {
                let [a, b, c, ..] = address.segments();
                format!("{}/48", Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0))
            }
            Err(_) => self.0.clone(),
        }
    }
}

/// The entry that the outermost of `hops` proxies appended; `None` if the header has fewer entries.
fn outermost_entry(headers: &HeaderMap, hops: usize) -> Option<&str> {
    let values = headers.get_all(FORWARDED).into_iter().filter_map(|value| value.to_str().ok());
    let entries: Vec<&str> = values.flat_map(|value| value.split(',')).map(str::trim).collect();
    // With one proxy the last entry is its client's address; earlier entries may be forged.
    let place = entries.len().checked_sub(hops)?;
    entries.get(place).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(forwarded: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in forwarded {
            headers.append(FORWARDED, value.parse().expect("a header value"));
        }
        headers
    }

    fn of(peer: &str, forwarded: &[&str], hops: usize) -> String {
        ClientAddress::of(Some(peer.parse().expect("an address")), &headers(forwarded), hops).0
    }

    #[test]
    fn without_trusted_proxies_the_header_is_ignored() {
        assert_eq!(of("203.0.113.7", &["198.51.100.1"], 0), "203.0.113.7");
    }

    #[test]
    fn only_the_entries_of_trusted_proxies_count() {
        assert_eq!(of("10.0.0.1", &["198.51.100.1"], 1), "198.51.100.1");
        assert_eq!(of("10.0.0.1", &["6.6.6.6, 198.51.100.1"], 1), "198.51.100.1");
        assert_eq!(of("10.0.0.1", &["6.6.6.6", "198.51.100.1, 10.0.0.2"], 2), "198.51.100.1");
        assert_eq!(of("10.0.0.1", &["198.51.100.1"], 2), "10.0.0.1", "fewer hops than there should be");
        assert_eq!(of("10.0.0.1", &["unknown"], 1), "10.0.0.1");
    }

    #[test]
    fn header_with_fewer_entries_than_proxies_has_no_outermost_entry() {
        assert_eq!(outermost_entry(&headers(&[]), 1), None);
        assert_eq!(outermost_entry(&headers(&["198.51.100.1"]), 2), None);
        assert_eq!(outermost_entry(&headers(&["198.51.100.1", "10.0.0.2"]), 2), Some("198.51.100.1"));
        assert_eq!(outermost_entry(&headers(&["unknown"]), 1), Some("unknown"), "it is no address, but it is there");
    }

    #[test]
    fn the_network_around_an_address_is_a_24_or_a_48() {
        let network = |peer| ClientAddress(of(peer, &[], 0)).network();
        assert_eq!(network("203.0.113.7"), "203.0.113.0/24");
        assert_eq!(network("2001:db8:1:2:3:4:5:6"), "2001:db8:1::/48");
        assert_eq!(network("2001:db8:1:ffff::1"), "2001:db8:1::/48");
        assert_eq!(ClientAddress("nowhere".to_owned()).network(), "nowhere");
    }

    #[test]
    fn a_household_has_one_limit_whatever_addresses_it_draws() {
        assert_eq!(of("2001:db8:1:2:3:4:5:6", &[], 0), "2001:db8:1:2::/64");
        assert_eq!(of("2001:db8:1:2:ffff::1", &[], 0), "2001:db8:1:2::/64");
        assert_eq!(of("::ffff:203.0.113.7", &[], 0), "203.0.113.7");
    }
}
