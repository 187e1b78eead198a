//! Codes before checkout: a show may require guests to prove that they receive mail at their address.
//!
//! A code is requested, mailed and entered, each by its own route (`http`), while the hold continues: a wrong code
//! costs a try and nothing else. A visitor who has entered it may check out with that address, at any show, for
//! [`PROVEN_MS`]. [`check`] runs before a booking; for a show without codes it only reads a flag.
//!
//! A [`Messenger`] carries the code: mail, or another carrier of short messages.
//!
//! Elsewhere: the verification of an account's address (`accounts::email`), which replaces the code; and the
//! counter, where customers are present in person.

mod endpoints;
mod gate;
mod limits;
mod messenger;
mod purge;
mod sending;
mod service;
mod sql;

pub use endpoints::routes;
pub use gate::check;
pub use messenger::{MailCarrier, Message, Messenger, SendError};
pub use purge::purge_forever;
pub use sending::send_forever;

use std::sync::Arc;

use domain::time::MINUTE_MS;
use tokio::sync::Notify;

/// Lifetime of a code, milliseconds: twice the default length of a hold.
const CODE_LIFE_MS: i64 = 10 * MINUTE_MS;
/// Period in which an entered code stays valid for its visitor and address, milliseconds.
const PROVEN_MS: i64 = 60 * MINUTE_MS;
/// Maximum tries of one code. The chance of a correct guess within them is one in 200,000.
const MAX_TRIES: i16 = 5;
/// The stored tries of an entered code: above the maximum, to distinguish it from a code whose last try is being
/// checked.
const USED_UP: i16 = MAX_TRIES + 1;

/// The state of codes in a replica.
pub struct EmailCodes {
    messenger: Arc<dyn Messenger>,
    wake: Notify,
}

impl EmailCodes {
    /// Creates the state with this carrier.
    #[must_use]
    pub fn new(messenger: Arc<dyn Messenger>) -> Self {
        Self { messenger, wake: Notify::new() }
    }

    /// Returns the carrier of codes, for other messages that verify an address.
    #[must_use]
    pub fn carrier(&self) -> &dyn Messenger {
        &*self.messenger
    }
}
