//! The JSON of what was to be done for bookings, was tried in vain and waits for a person.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::money::Money;

#[cfg(feature = "openapi")]
use utoipa::ToSchema;

/// Something that a manager decides about: have it tried again, or say that it was done in another way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct ParkedView {
    /// Its number.
    pub id: i64,
    /// The booking it is about.
    pub booking: Uuid,
    /// The booking's name for people.
    pub reference: String,
    /// What is to be done, for example `refund`.
    pub effect: String,
    /// The sum, of a refund.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amount: Option<Money>,
    /// How often it was tried; not at all, where it had been done and came undone.
    pub attempts: u32,
    /// What went wrong the last time, in English.
    pub why: String,
    /// When it was to be done first, or came undone, RFC 3339.
    pub since: String,
}
