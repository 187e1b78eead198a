//! The HTTP client of webhooks: public addresses only, no redirects, no proxy, with a timeout.

use std::net::SocketAddr;
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;

use super::address::is_public;
use crate::WebhookSettings;

/// Timeout of the connection set-up.
const CONNECT_DEADLINE: Duration = Duration::from_secs(3);

/// The HTTP client for other systems.
pub struct WebhookClient(pub(super) reqwest::Client);

impl WebhookClient {
    /// Builds the client from the settings.
    ///
    /// When TLS cannot be set up.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_name_with_a_private_address_is_not_resolved() {
        let name = || "localhost".parse::<Name>().expect("a name");
        assert!(PublicOnly { allows_private: false }.resolve(name()).await.is_err());
        assert!(PublicOnly { allows_private: true }.resolve(name()).await.is_ok(), "in a test");
    }
}
