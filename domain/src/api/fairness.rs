//! JSON of unusual behaviour that a theatre's managers are shown.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::fairness::{UnusualKind, UnusualSubject};

/// Unusual behaviour in a show. It is information only: no request is refused because of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct UnusualView {
    /// Its id.
    pub id: Uuid,
    /// The show.
    pub show: Uuid,
    /// Title of the film.
    pub film: String,
    /// Start in the theatre's time zone: `2026-12-01T20:15`.
    pub starts_local: String,
    /// Kind of behaviour.
    pub kind: UnusualKind,
    /// Visitor or network address.
    pub subject: UnusualSubject,
    /// Keyed hash that distinguishes visitors and addresses within this theatre. It cannot be looked up.
    pub tag: String,
    /// Number of holds, visitors, tries or puzzles, depending on `kind`.
    pub seen: u32,
    /// First occurrence, RFC 3339.
    pub since: String,
    /// Last occurrence, RFC 3339.
    pub last_at: String,
    /// Time when a manager dismissed it; absent until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dismissed_at: Option<String>,
    /// The reason for the dismissal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
