//! The way out: to public addresses only, no redirect followed, no proxy in between, not for long.

use std::net::SocketAddr;
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;

use super::address::is_public;
use crate::WebhookSettings;

/// How long connecting may take.
const CONNECT_DEADLINE: Duration = Duration::from_secs(3);

/// What calls other systems.
pub struct Client(pub(super) reqwest::Client);

impl Client {
    /// From the settings.
    ///
    /// # Errors
    /// When TLS cannot be set up.
    pub fn new(settings: &WebhookSettings) -> anyhow::Result<Self> {
        let client = reqwest::Client::builder()
            .connect_timeout(CONNECT_DEADLINE)
            .timeout(Duration::from_millis(settings.webhook_deadline_ms))
            // Where it leads nobody has looked at.
            .redirect(Policy::none())
            // A proxy would look names up for us, and call whom we would not.
            .no_proxy()
            .user_agent("Rowlock webhooks")
            .dns_resolver(PublicOnly { or_private: settings.webhooks_may_be_private });
        Ok(Self(client.build()?))
    }
}

/// Looks names up, and knows no address that is not public.
struct PublicOnly {
    or_private: bool,
}

impl Resolve for PublicOnly {
    fn resolve(&self, name: Name) -> Resolving {
        let or_private = self.or_private;
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            // One of them inside is enough: which one is called would be another's choice.
            if !or_private && !found.iter().all(|at| is_public(at.ip())) {
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
    async fn a_name_that_leads_inside_is_not_called_whatever_it_is() {
        let name = || "localhost".parse::<Name>().expect("a name");
        assert!(PublicOnly { or_private: false }.resolve(name()).await.is_err());
        assert!(PublicOnly { or_private: true }.resolve(name()).await.is_ok(), "in a test");
    }
}
