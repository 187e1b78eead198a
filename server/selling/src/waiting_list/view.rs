//! The owner's view of a place in line.

use domain::api::waiting_list::{OfferView, WaitingState, WaitingView};
use domain::seats::Places;
use domain::time::Timestamp;
use sqlx::PgConnection;

use super::sql::{self, EntryState, ListEntry};
use crate::SellingState;
use catalogue::Show;
use http::Problem;
use platform::clock::{from_utc, rfc3339};

/// Returns the caller's place; `None` when they have no entry or have left.
pub(super) async fn of_owner(state: &SellingState, show: &Show, owner: &str) -> Result<Option<WaitingView>, Problem> {
    let mut connection = state.pg.acquire().await?;
    newest(&mut connection, show, owner, state.clock.now()).await
}

/// Returns the view of their newest entry.
pub(super) async fn newest(
    connection: &mut PgConnection,
    show: &Show,
    owner: &str,
    now: Timestamp,
) -> Result<Option<WaitingView>, Problem> {
    let Some(entry) = sql::newest(connection, show.id, owner).await? else { return Ok(None) };
    let ahead = sql::count_ahead(connection, show.id, entry.place).await?;
    Ok(of_entry(show, &entry, ahead, now))
}

pub(super) fn of_entry(show: &Show, entry: &ListEntry, ahead: i64, now: Timestamp) -> Option<WaitingView> {
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
