//! The waiting list of a sold-out show: returned seats are held for the next in line.
//!
//! `domain::waiting_list` decides who gets an offer. An offer is a hold like any other, made by the
//! server for that person with its own terms; buying it is a normal checkout. Any replica makes
//! offers, without a leader: the replica that locks the show's row in `waiting_lists` plans them, in order, and
//! commits the plan before it calls the lock store ([`offers`]). The id of the hold
//! is derived from the entry and the number of the offer, so that a repeat after a crash is harmless.
//!
//! While people wait, free seats are reserved for them ([`ShowsWithWaitingList`]): other holds would jump the line.

mod endpoints;
mod gate;
mod hand_over;
mod join;
mod limits;
mod mails;
mod offers;
mod rounds;
mod sql;
mod view;

pub use endpoints::routes;
pub use gate::ShowsWithWaitingList;
pub use hand_over::{OpenedOffer, open_offer, sign_offers_with, take_offer};
pub use mails::send_forever as send_mails_forever;
pub use rounds::{serve_all_lists, serve_forever};

use domain::time::Timestamp;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::SellingState;
use seats::seat_locks::offer_id;

/// Returns the hold id of an entry's offer of that number; the only ids of version 5 among holds.
fn hold_of(entry: Uuid, number: i32) -> Uuid {
    offer_id(&["waiting list", &entry.to_string(), &number.to_string()])
}

/// Returns the next hold id of an offer whose hold continues after the payment of this booking.
#[must_use]
pub fn renewed_offer_id(hold: Uuid, booking: Uuid) -> Uuid {
    offer_id(&["waiting list", &hold.to_string(), &booking.to_string()])
}

/// Records the renewed hold of an offer and its expiry.
///
/// # Errors
/// When the database fails.
pub async fn note_renewed_offer(
    tx: &mut PgConnection,
    hold: Uuid,
    next: Uuid,
    until: Timestamp,
    now: Timestamp,
) -> sqlx::Result<()> {
    sql::note_renewed(tx, (hold, next), until, now).await
}

/// Removes the owner of a released offer from the line.
pub async fn close_released_offer(state: &SellingState, hold: Uuid) {
    if let Err(cause) = sql::close_released_offer(&state.pg, hold, state.clock.now()).await {
        tracing::warn!(%cause, %hold, "closing a released offer failed; it stays open until it expires");
    }
}

#[cfg(test)]
mod tests {
    use platform::ids;
    use seats::seat_locks::is_offer;

    use super::*;

    #[test]
    fn the_hold_id_of_an_offer_is_derived_from_entry_and_number() {
        let (one, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        assert_eq!(hold_of(one, 1), hold_of(one, 1));
        assert_ne!(hold_of(one, 1), hold_of(one, 2));
        assert_ne!(hold_of(one, 1), hold_of(other, 1));
        assert!(is_offer(hold_of(one, 1)));
        assert!(!is_offer(ids::derived_id(&["a visitor", "a show", "a key"])));
        assert!(!is_offer(ids::new_id()));
    }
}
