//! The waiting list of a sold-out show: returned seats are held for the next in line.
//!
//! `domain::waiting_list` decides who gets an offer. An offer is a hold like any other, made by the
//! server for that person with its own terms; buying it is a normal checkout. Any replica makes
//! offers, without a leader: the replica that locks the show's row in `waiting_lists` plans them, in order, and
//! commits the plan before it calls the lock store ([`offers`]). The id of the hold
//! is derived from the entry and the number of the offer, so that a repeat after a crash is harmless.
//!
//! Free seats that an entry of the line could be offered are reserved for it ([`is_reserved`]): other holds would jump the
//! line. All others stay on sale.

mod endpoints;
mod hand_over;
mod join;
mod mails;
mod offers;
mod reserved_seats;
mod sql;

pub use endpoints::routes;
pub use hand_over::{OpenedOffer, open_offer, sign_offers_with, take_offer};
pub use mails::send_forever as send_mails_forever;
pub use offers::{serve_all_lists, serve_forever};
pub use reserved_seats::{WaitingListState, is_reserved};

use domain::api::waiting_list::{OfferView, WaitingState, WaitingView};
use domain::seats::Places;
use domain::time::Timestamp;
use sqlx::PgConnection;
use uuid::Uuid;

use self::sql::{EntryState, ListEntry};
use crate::SellingState;
use catalogue::Show;
use http::ApiResult;
use platform::clock::{from_utc, rfc3339};
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

/// Returns the caller's place; `None` when they have no entry or have left.
async fn of_owner(state: &SellingState, show: &Show, owner: &str) -> ApiResult<Option<WaitingView>> {
    let mut connection = state.pg.acquire().await?;
    newest(&mut connection, show, owner, state.clock.now()).await
}

async fn newest(
    connection: &mut PgConnection,
    show: &Show,
    owner: &str,
    now: Timestamp,
) -> ApiResult<Option<WaitingView>> {
    let Some(entry) = sql::newest(connection, show.id, owner).await? else { return Ok(None) };
    let ahead = sql::count_ahead(connection, show.id, entry.place).await?;
    Ok(of_entry(show, &entry, ahead, now))
}

fn of_entry(show: &Show, entry: &ListEntry, ahead: i64, now: Timestamp) -> Option<WaitingView> {
    let until = entry.offer_until.map_or(now, from_utc);
    let state = match entry.state {
        EntryState::Waiting | EntryState::Offering | EntryState::Offered if show.is_called_off() => WaitingState::Over,
        // A planned offer is not held yet.
        EntryState::Waiting | EntryState::Offering => WaitingState::Waiting,
        EntryState::Offered if until > now => WaitingState::Offered,
        EntryState::Offered | EntryState::Lapsed => WaitingState::Lapsed,
        EntryState::Taken => WaitingState::Taken,
        EntryState::Over => WaitingState::Over,
        EntryState::Left => return None,
    };
    let offer = (state == WaitingState::Offered).then_some(entry.offer_hold).flatten().map(|hold| OfferView {
        hold,
        seats: entry.seats().into_iter().filter(|seat| show.has(*seat)).map(|seat| show.line(seat)).collect(),
        places: entry.places().and_then(|places: Places| show.place_line(places)).into_iter().collect(),
        expires_at: rfc3339(until),
        expires_at_ms: until.0,
    });
    Some(WaitingView {
        id: entry.id,
        show: show.id,
        quantity: entry.quantity.unsigned_abs(),
        category: entry.category.clone(),
        email: entry.email.clone(),
        state,
        ahead: if state == WaitingState::Waiting { u32::try_from(ahead).unwrap_or(u32::MAX) } else { 0 },
        offer,
        joined_at: rfc3339(from_utc(entry.joined_at)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use platform::ids;
    use seats::seat_locks::is_offer;

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
