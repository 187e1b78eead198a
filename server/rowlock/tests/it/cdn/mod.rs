//! A CDN in front: what it may keep, and what it is told to forget.

mod headers;
mod purges;
mod wishes;

use crate::systems::receiver::Receiver;

/// What it knows us by.
const TOKEN: &str = "a-token-of-this-test-32-bytes-or-more";

/// Settings of a server that tells this CDN.
fn telling(url: &str) -> [(&str, &str); 2] {
    [("CDN_PURGE_URL", url), ("CDN_PURGE_TOKEN", TOKEN)]
}

/// The tags it was told, call by call.
fn tags(told: &Receiver) -> Vec<Vec<String>> {
    told.told()
        .iter()
        .map(|call| serde_json::from_value(call.json()["tags"].clone()).expect("a list of texts"))
        .collect()
}
