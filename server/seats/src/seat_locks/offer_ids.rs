//! Ids of holds that are offers of a waiting list. Only these are UUIDs of version 5, which every store recognises.

use platform::ids;
use uuid::Uuid;

/// The id of an offer's hold, derived from these parts.
#[must_use]
pub fn offer_id(parts: &[&str]) -> Uuid {
    uuid::Builder::from_sha1_bytes(ids::derived_id(parts).into_bytes()).into_uuid()
}

/// True if a hold is an offer.
#[must_use]
pub fn is_offer(hold: Uuid) -> bool {
    hold.get_version_num() == 5
}
