//! JSON of parked effects: work for bookings that has failed and waits for a decision.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::money::Money;

/// A parked effect. A manager retries it or marks it as done by other means.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ParkedView {
    /// Number of the effect.
    pub id: i64,
    /// The booking it is about.
    pub booking: Uuid,
    /// The booking's reference.
    pub reference: String,
    /// Kind of the effect, for example `refund`.
    pub effect: String,
    /// Amount of a refund.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amount: Option<Money>,
    /// Number of attempts; 0 if it had succeeded and was reversed later.
    pub attempts: u32,
    /// Error of the last attempt, in English.
    pub why: String,
    /// Time when it was first due or was reversed, RFC 3339.
    pub since: String,
}
