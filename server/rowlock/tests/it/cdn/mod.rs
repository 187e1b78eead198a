//! A CDN in front of the server: cacheable answers and purges.

mod headers;
mod purges;
mod recorded_purges;

use crate::systems::receiver::Receiver;

/// Token of the purge requests.
const TOKEN: &str = "a-token-of-this-test-32-bytes-or-more";

/// Settings of a server that purges this CDN.
fn cdn_settings(url: &str) -> [(&str, &str); 2] {
    [("CDN_PURGE_URL", url), ("CDN_PURGE_TOKEN", TOKEN)]
}

/// Tags of each purge request.
fn tags(receiver: &Receiver) -> Vec<Vec<String>> {
    receiver
        .deliveries()
        .iter()
        .map(|call| serde_json::from_value(call.json()["tags"].clone()).expect("a list of texts"))
        .collect()
}
