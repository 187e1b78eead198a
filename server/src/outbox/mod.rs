//! Effects of committed steps, done at least once, in order within a booking.
//!
//! A step writes its effects here in its own transaction ([`enqueue`]); the relay on every replica does
//! them and deletes the row. What fails is tried again with full jitter, then parked for a person
//! ([`parked`]). What an effect means is `bookings`' business.

mod parked;
mod relay;
mod sql;

use tokio::sync::Notify;

pub use parked::{MAX_LISTED, Parked, parked, parked_effect, retry, settle};
pub use relay::{Lane, relay_forever};
pub use sql::{done, enqueue, name as effect_name};

/// Wakes the relay's lanes; a wake that comes while a lane is busy is kept for it.
#[derive(Default)]
pub struct Wake {
    gateway: Notify,
    house: Notify,
}

/// Tells the relay that something was committed; without this it looks every half second.
pub fn wake(state: &crate::AppState) {
    state.outbox_wake.gateway.notify_one();
    state.outbox_wake.house.notify_one();
}
