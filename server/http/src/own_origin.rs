//! Recognises requests that another site's page sent.

use axum::http::HeaderMap;

use crate::SiteSettings;

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
