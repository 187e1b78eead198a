//! The waiting list of a sold-out show: returned seats are held for the next in line.
//!
//! `domain::waiting_list` decides who gets an offer. An offer is a hold like any other, made by the
//! server for that person with its own terms; buying it is a normal checkout. Any replica makes
//! offers, without a leader: the replica that locks the show's row in `waiting_lists` plans them, in order, and
//! commits the plan before it calls the lock store ([`offers`]). The id of the hold
//! is derived from the entry and the number of the offer, so that a repeat after a crash is harmless.
//!
//! While people wait, free seats of the categories they want are reserved for them ([`WantedSeats`]): other holds would
//! jump the line. Other seats of the show stay on sale.

mod endpoints;
mod hand_over;
mod join;
mod mails;
mod offers;
mod sql;

pub use endpoints::routes;
pub use hand_over::{OpenedOffer, open_offer, sign_offers_with, take_offer};
pub use mails::send_forever as send_mails_forever;
pub use offers::{serve_all_lists, serve_forever};

use std::collections::{HashMap, HashSet};
use std::sync::{PoisonError, RwLock};

use domain::api::SeatKind;
use domain::api::waiting_list::{OfferView, WaitingState, WaitingView};
use domain::seats::Places;
use domain::time::Timestamp;
use domain::waiting_list::takes;
use sqlx::PgConnection;
use uuid::Uuid;

use self::sql::{EntryState, ListEntry};
use crate::SellingState;
use catalogue::Show;
use http::ApiResult;
use platform::clock::{from_utc, rfc3339};
use seats::seat_locks::{Selection, offer_id};

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

/// By show, the categories that its waiting entries named; `None` of those that named none.
type WantedCategories = HashMap<Uuid, HashSet<Option<String>>>;

/// The seats that people wait for. In memory, because every hold checks them; changes of other replicas arrive within a
/// second.
#[derive(Default)]
pub struct WantedSeats(RwLock<WantedCategories>);

impl WantedSeats {
    /// Checks for people who wait for seats or places like one of these, which exist in the show.
    #[must_use]
    pub fn has_any(&self, show: &Show, selection: &Selection) -> bool {
        let shows = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let Some(wanted) = shows.get(&show.id) else { return false };
        let is_wanted = |category: &str, kind| wanted.iter().any(|wanted| takes(wanted.as_deref(), category, kind));
        let mut categories = selection.seats.iter().map(|seat| show.category(*seat));
        let mut areas = selection.places.iter().filter_map(|places| show.area(places.area));
        categories.any(|category| is_wanted(&category.name, category.kind))
            || areas.any(|area| is_wanted(&area.category, SeatKind::Standard))
    }

    fn add(&self, show: Uuid, category: Option<String>) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).entry(show).or_default().insert(category);
    }

    fn replace(&self, wanted: impl IntoIterator<Item = (Uuid, Option<String>)>) {
        let mut shows = WantedCategories::new();
        for (show, category) in wanted {
            shows.entry(show).or_default().insert(category);
        }
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = shows;
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
