//! The client of the CDN: one POST with tags, with a short deadline.
//!
//! The request is Cloudflare's: `{"tags": […]}` with a bearer token. Varnish and Fastly read the same tags from a header
//! (docs/operating.md).

use std::time::Duration;

use reqwest::header::{AUTHORIZATION, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{StatusCode, Url};
use serde_json::json;

use crate::CatalogueSettings;

/// Deadline of connecting.
const CONNECT_DEADLINE: Duration = Duration::from_secs(2);
/// Deadline of the answer, connecting included.
pub(super) const ANSWER_DEADLINE: Duration = Duration::from_secs(5);
/// Header with the tags, separated by spaces.
const SURROGATE_KEY: &str = "surrogate-key";
/// Maximum length of a logged failure, characters.
const MAX_ERROR_CHARS: usize = 200;

/// The CDN in front of the server, if one is configured.
pub struct Cdn(Option<Endpoint>);

struct Endpoint {
    http: reqwest::Client,
    url: Url,
    token: HeaderValue,
}

/// The failure of a purge.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotPurged {
    /// The CDN answered with an error.
    #[error("it answered {0}")]
    Refused(u16),
    /// No answer: the purge may have happened.
    #[error("{0}")]
    Unreachable(String),
}

impl Cdn {
    /// The client that the settings configure, if any.
    ///
    /// # Errors
    /// When they cannot be used.
    pub fn from_settings(settings: &CatalogueSettings) -> anyhow::Result<Self> {
        let (Some(url), Some(token)) = (&settings.cdn_purge_url, &settings.cdn_purge_token) else {
            return Ok(Self(None));
        };
        let http = reqwest::Client::builder()
            .connect_timeout(CONNECT_DEADLINE)
            .timeout(ANSWER_DEADLINE)
            // The token must not go to another host.
            .redirect(Policy::none())
            .user_agent("Rowlock");
        let url = Url::parse(url)?;
        let beside_us = url.host_str().is_some_and(|host| ["localhost", "127.0.0.1", "[::1]"].contains(&host));
        let http = if beside_us { http.no_proxy() } else { http };
        let mut token = HeaderValue::try_from(format!("Bearer {token}"))?;
        token.set_sensitive(true);
        Ok(Self(Some(Endpoint { http: http.build()?, url, token })))
    }

    /// True if a CDN is configured.
    #[must_use]
    pub const fn is_configured(&self) -> bool {
        self.0.is_some()
    }

    /// Purges everything with one of these tags. Does nothing without a CDN.
    ///
    /// # Errors
    /// When the CDN did not confirm the purge.
    pub async fn purge(&self, tags: &[&str]) -> Result<(), NotPurged> {
        let Some(endpoint) = &self.0 else { return Ok(()) };
        let request = endpoint.http.post(endpoint.url.clone()).header(AUTHORIZATION, endpoint.token.clone());
        // For CDNs that read the header only.
        let request = request.header(SURROGATE_KEY, tags.join(" "));
        match request.json(&json!({ "tags": tags })).send().await {
            // The body is not read.
            Ok(answer) => check_status(answer.status()),
            Err(cause) => Err(NotPurged::Unreachable(describe_error(&cause))),
        }
    }
}

fn check_status(status: StatusCode) -> Result<(), NotPurged> {
    if status.is_success() { Ok(()) } else { Err(NotPurged::Refused(status.as_u16())) }
}

/// Describes an error without the address, which may contain secrets.
fn describe_error(cause: &reqwest::Error) -> String {
    let mut last: &dyn std::error::Error = cause;
    while let Some(deeper) = last.source() {
        last = deeper;
    }
    let text = if cause.is_timeout() { "it did not answer in time".to_owned() } else { last.to_string() };
    text.chars().filter(|character| !character.is_control()).take(MAX_ERROR_CHARS).collect()
}

/// Checks the CDN settings. Returns each invalid setting with the reason, to be read after its name.
#[must_use]
pub fn wrong_settings(settings: &CatalogueSettings) -> Vec<(&'static str, String)> {
    let mut wrong = Vec::new();
    if let Some(url) = &settings.cdn_purge_url {
        let is_usable = Url::parse(url).is_ok_and(|url| {
            matches!(url.scheme(), "http" | "https")
                && url.has_host()
                && url.username().is_empty()
                && url.password().is_none()
        });
        if !is_usable {
            wrong.push((
                "CDN_PURGE_URL",
                "is no address to send to: https://host/path, with no password in it".to_owned(),
            ));
        }
        if settings.cdn_purge_token.is_none() {
            wrong.push(("CDN_PURGE_TOKEN", "is not set, and CDN_PURGE_URL is".to_owned()));
        }
    }
    if let Some(token) = &settings.cdn_purge_token {
        let is_visible = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_visible {
            wrong.push(("CDN_PURGE_TOKEN", "is empty, or has in it what no header may have".to_owned()));
        } else if settings.cdn_purge_url.is_none() {
            wrong.push(("CDN_PURGE_TOKEN", "is set, and CDN_PURGE_URL is not: nothing is purged".to_owned()));
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_2xx_answer_confirms_a_purge() {
        assert_eq!(check_status(StatusCode::NO_CONTENT), Ok(()));
        for status in
            [StatusCode::FOUND, StatusCode::UNAUTHORIZED, StatusCode::TOO_MANY_REQUESTS, StatusCode::BAD_GATEWAY]
        {
            assert_eq!(check_status(status), Err(NotPurged::Refused(status.as_u16())));
        }
    }
}
