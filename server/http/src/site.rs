//! The address at which people reach this server, and requests that another site's page sent.

use axum::http::HeaderMap;
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
    /// The address people type without a slash at its end: absolute addresses begin with it.
    #[must_use]
    pub fn origin(&self) -> &str {
        self.public_url.trim_end_matches('/')
    }

    /// True if people reach the server over TLS: then the cookie is `Secure`.
    #[must_use]
    pub fn is_https(&self) -> bool {
        self.public_url.starts_with("https://")
    }

    /// Checks the absolute address of a page outside Rowlock, to which our pages link.
    ///
    /// # Errors
    /// The reason, to be read after the name of a setting.
    pub fn check_page_url(&self, url: &str) -> Result<(), String> {
        // The parser also accepts `https:host`, which browsers resolve against the address of the page.
        let has_scheme = url.starts_with("https://") || (!self.is_https() && url.starts_with("http://"));
        if has_scheme && Url::parse(url).is_ok() {
            return Ok(());
        }
        Err("is no address of a page: https://host/path, or http:// if PUBLIC_URL is http:// too".to_owned())
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

/// True if a browser sent the request from one of our pages. Other clients send neither header.
#[must_use]
pub fn is_own_origin(site: &SiteSettings, headers: &HeaderMap) -> bool {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(origin) = text("origin") {
        return is_same_origin(origin, &site.public_url, text("host"));
    }
    matches!(text("sec-fetch-site"), None | Some("same-origin" | "none"))
}

/// True for the origin of `PUBLIC_URL`, and for its scheme with the host that this request came to. The scheme must match: a
/// page that came without TLS, which any machine on the way may have written, does not belong to a site with TLS.
fn is_same_origin(origin: &str, public_url: &str, host: Option<&str>) -> bool {
    let public_url = public_url.trim_end_matches('/');
    let (Some((scheme, authority)), Some((own_scheme, _))) = (origin.split_once("://"), public_url.split_once("://"))
    else {
        return false;
    };
    origin == public_url || (scheme == own_scheme && Some(authority) == host)
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

    #[test]
    fn a_page_of_another_site_has_tls_if_the_site_has_it() {
        let site = |url: &str| SiteSettings { public_url: url.to_owned(), trusted_proxies: 0 };
        let (tls, plain) = (site("https://seats.example"), site("http://127.0.0.1:3000"));
        assert_eq!(tls.check_page_url("https://cinema.example/terms?version=2#top"), Ok(()));
        assert!(tls.check_page_url("http://cinema.example/terms").is_err());
        assert_eq!(plain.check_page_url("http://cinema.example/terms"), Ok(()));
        for bad in ["", "/terms", "cinema.example/terms", "https:cinema.example", "https://", "javascript:alert(1)"] {
            assert!(plain.check_page_url(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_origin_is_ours_by_scheme_and_host() {
        let (tls, plain, host) = ("https://seats.example/", "http://127.0.0.1:3000", Some("replica.example:8080"));
        for (origin, public_url, is_ours) in [
            ("https://seats.example", tls, true),
            ("https://replica.example:8080", tls, true),
            ("http://seats.example", tls, false),
            ("http://replica.example:8080", tls, false),
            ("https://evil.example", tls, false),
            ("https://seats.example.evil.example", tls, false),
            ("null", tls, false),
            ("http://127.0.0.1:3000", plain, true),
            ("http://replica.example:8080", plain, true),
            ("https://replica.example:8080", plain, false),
        ] {
            assert_eq!(is_same_origin(origin, public_url, host), is_ours, "{origin} at {public_url}");
        }
        assert!(!is_same_origin("https://seats.example", "https://other.example", None));
    }
}
