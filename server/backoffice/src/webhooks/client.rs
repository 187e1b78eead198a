//! The HTTP client of webhooks: only public internet addresses over TLS, no redirects, no proxy, with a timeout. A
//! theatre's manager must not make this server call its neighbours (server-side request forgery).
//!
//! Addresses are validated when they are stored, and their names are resolved again at each call: a name that was public
//! then may point inside later.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use domain::api::systems::MAX_URL_BYTES;
use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;

use crate::WebhookSettings;
use http::{ApiResult, Code, Problem};

/// Timeout of the connection set-up.
const CONNECT_DEADLINE: Duration = Duration::from_secs(3);

/// The HTTP client for other systems.
pub struct WebhookClient(pub(super) reqwest::Client);

impl WebhookClient {
    /// Builds the client from the settings.
    ///
    /// # Errors
    /// When TLS cannot be set up.
    pub fn new(settings: &WebhookSettings) -> anyhow::Result<Self> {
        let client = reqwest::Client::builder()
            .connect_timeout(CONNECT_DEADLINE)
            .timeout(Duration::from_millis(settings.webhook_deadline_ms))
            // The target of a redirect is not validated.
            .redirect(Policy::none())
            // A proxy would resolve names itself and could call private addresses.
            .no_proxy()
            .user_agent("Rowlock webhooks")
            .dns_resolver(PublicOnly { allows_private: settings.webhooks_may_be_private });
        Ok(Self(client.build()?))
    }
}

/// A resolver that rejects names with private addresses.
struct PublicOnly {
    allows_private: bool,
}

impl Resolve for PublicOnly {
    fn resolve(&self, name: Name) -> Resolving {
        let allows_private = self.allows_private;
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            // One private address is enough: the choice among the addresses is not ours.
            if !allows_private && !found.iter().all(|at| is_public(at.ip())) {
                return Err("the name leads to an address that is not on the public internet".into());
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

/// Parses the address of an endpoint. `may_be_private` is for tests, which have no public server. 400 with the reason.
pub(super) fn read_address(text: &str, may_be_private: bool) -> ApiResult<Url> {
    let wrong = |why: &str| Problem::new(Code::Malformed, format!("Webhooks cannot be sent to this address: {why}"));
    let text = text.trim();
    if text.len() > MAX_URL_BYTES {
        return Err(wrong("it is too long."));
    }
    let url = Url::parse(text).map_err(|_| wrong("it is none."))?;
    if url.scheme() != "https" && !(may_be_private && url.scheme() == "http") {
        return Err(wrong("it does not begin with https://."));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("it has a password in it, which would appear in our log and on this page."));
    }
    if url.fragment().is_some() {
        return Err(wrong("the part behind a # is never sent."));
    }
    if !may_be_private && !is_callable(&url) {
        return Err(wrong("it is not on the public internet."));
    }
    Ok(url)
}

/// Returns `true` when the host of an address may be called, without resolving its name.
pub(super) fn is_callable(url: &Url) -> bool {
    // The parser has normalised the host: 0x7f.1 is 127.0.0.1 here.
    let Some(host) = url.host_str() else { return false };
    let literal = host.trim_start_matches('[').trim_end_matches(']');
    match literal.parse::<IpAddr>() {
        Ok(address) => is_public(address),
        Err(_) => {
            let name = host.trim_end_matches('.').to_ascii_lowercase();
            name.contains('.') && ![".localhost", ".local", ".internal", ".arpa"].iter().any(|end| name.ends_with(end))
        }
    }
}

/// Returns `true` for public internet addresses (per the special-purpose registries, RFC 6890).
fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let is_special = a == 0
        || a == 10
        || a == 127
        || (a == 100 && (64..128).contains(&b))
        || (a == 169 && b == 254)
        || (a == 172 && (16..32).contains(&b))
        || (a == 192 && b == 168)
        || (a == 192 && b == 0 && (c == 0 || c == 2))
        || (a == 192 && b == 88 && c == 99)
        || (a == 198 && (b == 18 || b == 19))
        || (a == 198 && b == 51 && c == 100)
        || (a == 203 && b == 0 && c == 113)
        || a >= 224;
    !is_special
}

/// Global unicast, without documentation and protocol ranges and without ranges that embed IPv4 addresses.
fn is_public_v6(address: Ipv6Addr) -> bool {
    let [first, second, ..] = address.segments();
    let is_global = first & 0xe000 == 0x2000;
    let is_special = (first == 0x2001 && (second < 0x0200 || second == 0x0db8)) || first == 0x2002 || first == 0x3fff;
    is_global && !is_special
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_name_with_a_private_address_is_not_resolved() {
        let name = || "localhost".parse::<Name>().expect("a name");
        assert!(PublicOnly { allows_private: false }.resolve(name()).await.is_err());
        assert!(PublicOnly { allows_private: true }.resolve(name()).await.is_ok(), "in a test");
    }

    #[test]
    fn private_addresses_are_refused_in_any_notation() {
        for inside in [
            "https://localhost/",
            "https://localhost./",
            "https://db/",
            "https://redis.internal/",
            "https://printer.local/",
            "https://a.localhost/",
            "https://127.0.0.1/",
            "https://127.1/",
            "https://0x7f000001/",
            "https://2130706433/",
            "https://0/",
            "https://10.1.2.3/",
            "https://172.31.0.1/",
            "https://192.168.0.1/",
            "https://169.254.169.254/latest/meta-data/",
            "https://100.64.0.1/",
            "https://198.18.0.1/",
            "https://224.0.0.1/",
            "https://255.255.255.255/",
            "https://[::1]/",
            "https://[::]/",
            "https://[::ffff:10.0.0.1]/",
            "https://[::ffff:7f00:1]/",
            "https://[64:ff9b::7f00:1]/",
            "https://[2002:7f00:1::]/",
            "https://[2001::1]/",
            "https://[2001:db8::1]/",
            "https://[fe80::1]/",
            "https://[fc00::1]/",
            "https://[ff02::1]/",
        ] {
            assert_eq!(read_address(inside, false).map_err(|problem| problem.code()), Err(Code::Malformed), "{inside}");
        }
    }

    #[test]
    fn invalid_urls_are_refused() {
        let long = format!("https://example.com/{}", "a".repeat(MAX_URL_BYTES));
        for wrong in [
            "",
            "example.com",
            "http://example.com/",
            "ftp://example.com/",
            "file:///etc/passwd",
            "javascript:alert(1)",
            "https://",
            "https://user:password@example.com/",
            "https://example.com/#x",
            &long,
        ] {
            assert!(read_address(wrong, false).is_err(), "{wrong}");
        }
    }

    #[test]
    fn public_addresses_are_accepted() {
        for public in
            ["https://example.com/hooks?tenant=4", "https://93.184.215.14:8443/", "https://[2606:2800:21f::1]/"]
        {
            assert!(read_address(public, false).is_ok(), "{public}");
        }
        assert!(read_address("http://127.0.0.1:9/", true).is_ok(), "in a test");
        assert!(read_address("ftp://127.0.0.1/", true).is_err(), "not even there");
    }
}
