//! The address at which people reach this server.

use clap::Args;
use reqwest::Url;

/// Settings about the way of requests to this server.
#[derive(Clone, Debug, Args)]
pub struct SiteSettings {
    /// The address people type: decides cookie security, allowed origins and links in mails.
    #[arg(long, env = "PUBLIC_URL", default_value = "http://127.0.0.1:3000")]
    pub public_url: String,
    /// Trusted proxies in front, each of which appends its client's address to `X-Forwarded-For`.
    #[arg(long, env = "TRUSTED_PROXIES", default_value_t = 0)]
    pub trusted_proxies: usize,
}

impl SiteSettings {
    /// True if people reach the server over TLS: then the cookie is `Secure`.
    #[must_use]
    pub fn is_https(&self) -> bool {
        self.public_url.starts_with("https://")
    }
}

/// Checks that an address is an origin: a scheme and a host. Links and allowed origins begin with it.
///
/// # Errors
/// The reason, to be read after the name of a setting.
pub fn check_origin(url: &str) -> Result<(), String> {
    let parsed = Url::parse(url).map_err(|cause| format!("is no address: {cause}"))?;
    if !matches!(parsed.scheme(), "http" | "https") || !parsed.has_host() {
        return Err("is neither http:// nor https:// of some host".to_owned());
    }
    if parsed.path() != "/" || parsed.query().is_some() || parsed.fragment().is_some() {
        return Err("has more than a host in it; Rowlock is at the root of one".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_a_scheme_and_a_host() {
        for valid in ["http://127.0.0.1:3000", "https://cinema.example", "https://cinema.example/"] {
            assert_eq!(check_origin(valid), Ok(()), "{valid}");
        }
        for bad in ["cinema.example", "ftp://cinema.example", "https://cinema.example/tickets", "https://", ""] {
            assert!(check_origin(bad).is_err(), "{bad}");
        }
    }
}
