//! Codes before checkout: a show may want guests to prove that mail at their address reaches them.
//!
//! A code is asked for, mailed, and entered, each by a route of its own (`http`), while the hold goes on: a wrong code
//! costs a try and nothing else. Whoever has entered it may check out with that address, at any show, for
//! [`PROVEN_MS`]. [`check`] is the gate in front of a booking; a show that wants no codes costs it a look at a flag.
//!
//! What carries the code is a [`Messenger`]: mail, and whatever else reaches people by a few words.
//!
//! What is not here: accounts' own proof of an address (`accounts::email`), which spares its owner the code; and the
//! counter, where somebody stands in front of us.

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
pub use messenger::{ByMail, Message, Messenger, NotSent};
pub use purge::purge_forever;
pub use sending::send_forever;

use std::sync::Arc;

use domain::time::MINUTE_MS;
use tokio::sync::Notify;

/// How long a code can be entered, milliseconds: twice as long as seats are held as a rule.
const CODE_LIFE_MS: i64 = 10 * MINUTE_MS;
/// How long a visitor who entered one needs no other for that address, milliseconds.
const PROVEN_MS: i64 = 60 * MINUTE_MS;
/// How often a wrong one may be entered before another has to be asked for. One in 200,000 guesses right so.
const MAX_TRIES: i16 = 5;
/// The tries of a code that was entered: past every try, so that it is told from one whose last try is being looked at.
const USED_UP: i16 = MAX_TRIES + 1;

/// What a replica needs for codes.
pub struct EmailCodes {
    messenger: Arc<dyn Messenger>,
    wake: Notify,
}

impl EmailCodes {
    /// Codes that go out this way.
    #[must_use]
    pub fn new(messenger: Arc<dyn Messenger>) -> Self {
        Self { messenger, wake: Notify::new() }
    }

    /// The carrier of codes, for other messages that prove an address.
    #[must_use]
    pub fn carrier(&self) -> &dyn Messenger {
        &*self.messenger
    }
}
