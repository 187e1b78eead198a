//! The way to the CDN: one POST with tags in it, not for long.
//!
//! The words are those of Cloudflare: `{"tags": […]}` with a bearer token. The same tags stand in a header, as Varnish and
//! Fastly read them (docs/operating.md).

use std::time::Duration;

use reqwest::header::{AUTHORIZATION, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{StatusCode, Url};
use serde_json::json;

use crate::CatalogueSettings;

/// How long connecting may take.
const CONNECT_DEADLINE: Duration = Duration::from_secs(2);
/// It has so long to answer, connecting included.
pub(super) const ANSWER_DEADLINE: Duration = Duration::from_secs(5);
/// The tags once more, parted by spaces.
const SURROGATE_KEY: &str = "surrogate-key";
/// Longest trouble that is told, characters.
const MAX_TROUBLE_CHARS: usize = 200;

/// The CDN in front of us, if there is one that is told.
pub struct Cdn(Option<Endpoint>);

struct Endpoint {
    http: reqwest::Client,
    url: Url,
    token: HeaderValue,
}

/// Why tags were not purged, as far as is known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotPurged {
    /// It heard us and would not.
    #[error("it answered {0}")]
    Refused(u16),
    /// Nobody knows whether it heard us.
    #[error("{0}")]
    Unreachable(String),
}

impl Cdn {
    /// From the settings.
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
            // Our token is for nobody else.
            .redirect(Policy::none())
            .user_agent("Rowlock");
        let url = Url::parse(url)?;
        let beside_us = url.host_str().is_some_and(|host| ["localhost", "127.0.0.1", "[::1]"].contains(&host));
        let http = if beside_us { http.no_proxy() } else { http };
        let mut token = HeaderValue::try_from(format!("Bearer {token}"))?;
        token.set_sensitive(true);
        Ok(Self(Some(Endpoint { http: http.build()?, url, token })))
    }

    /// Whether there is one that is told.
    #[must_use]
    pub const fn is_told(&self) -> bool {
        self.0.is_some()
    }

    /// Has everything forgotten that carries one of these tags. Nothing happens where no CDN is told.
    ///
    /// # Errors
    /// When it did not say that it was done.
    pub async fn purge(&self, tags: &[&str]) -> Result<(), NotPurged> {
        let Some(endpoint) = &self.0 else { return Ok(()) };
        let asked = endpoint.http.post(endpoint.url.clone()).header(AUTHORIZATION, endpoint.token.clone());
        // For those that read no bodies.
        let asked = asked.header(SURROGATE_KEY, tags.join(" "));
        match asked.json(&json!({ "tags": tags })).send().await {
            // What the body says nobody reads.
            Ok(answer) => judged(answer.status()),
            Err(cause) => Err(NotPurged::Unreachable(in_words(&cause))),
        }
    }
}

fn judged(status: StatusCode) -> Result<(), NotPurged> {
    if status.is_success() { Ok(()) } else { Err(NotPurged::Refused(status.as_u16())) }
}

/// What went wrong on the way, without the address, in which there may be secrets.
fn in_words(cause: &reqwest::Error) -> String {
    let mut last: &dyn std::error::Error = cause;
    while let Some(deeper) = last.source() {
        last = deeper;
    }
    let words = if cause.is_timeout() { "it did not answer in time".to_owned() } else { last.to_string() };
    words.chars().filter(|sign| !sign.is_control()).take(MAX_TROUBLE_CHARS).collect()
}

/// What is wrong with the settings of it, by setting.
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
            wrong.push(("CDN_PURGE_TOKEN", "is set, and CDN_PURGE_URL is not: nobody is told anything".to_owned()));
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_answer_from_the_two_hundreds_is_one() {
        assert_eq!(judged(StatusCode::NO_CONTENT), Ok(()));
        for status in
            [StatusCode::FOUND, StatusCode::UNAUTHORIZED, StatusCode::TOO_MANY_REQUESTS, StatusCode::BAD_GATEWAY]
        {
            assert_eq!(judged(status), Err(NotPurged::Refused(status.as_u16())));
        }
    }
}
