//! The JSON of what a theatre's managers are shown as unusual.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::fairness::{Kind, Subject};

#[cfg(feature = "openapi")]
use utoipa::ToSchema;

/// Something unusual, seen in a show. Nobody is refused anything because of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct UnusualView {
    /// Its id.
    pub id: Uuid,
    /// The show.
    pub show: Uuid,
    /// What is on.
    pub film: String,
    /// When it begins, in the theatre's time: `2026-12-01T20:15`.
    pub starts_local: String,
    /// What was seen.
    pub kind: Kind,
    /// Of a visitor or of an address.
    pub subject: Subject,
    /// Tells one visitor or address of this theatre from another; made from it by a secret, and nothing can be looked
    /// up by it.
    pub tag: String,
    /// How many: holds, visitors, tries or puzzles, by its kind.
    pub seen: u32,
    /// Since when, RFC 3339.
    pub since: String,
    /// When last, RFC 3339.
    pub last_at: String,
    /// When a manager put it aside; absent until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dismissed_at: Option<String>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
