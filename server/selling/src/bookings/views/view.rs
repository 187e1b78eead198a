//! Bookings as their owners see them.

use std::sync::Arc;

use domain::api::{BookingEventView, BookingView, KeptHold, Person, PlaceLine, Receipt, SeatLine};
use domain::booking::{BookingState, MoneyState, buyer_cancels_until};
use domain::seats::sort_for_display;
use sqlx::PgConnection;
use uuid::Uuid;

use super::steps;
use crate::SellingState;
use crate::bookings::money::{declines, payment_rows, refunds};
use crate::bookings::places;
use crate::bookings::seat_offers;
use crate::bookings::sql::{self, BookingRow};
use catalogue::Show;
use http::{ApiResult, Problem};
use platform::clock::{from_utc, rfc3339};
use platform::database::BindAll;

/// Returns the caller's booking and its show; `None` when it is not theirs or does not exist.
///
/// # Errors
/// When the database fails.
pub(crate) async fn owned(state: &SellingState, owner: &str, id: Uuid) -> ApiResult<Option<(BookingRow, Arc<Show>)>> {
    let mut connection = state.pg.acquire().await?;
    let Some(row) = sql::find_owned(&mut connection, id, owner).await? else { return Ok(None) };
    // Returned first: loading the show may need a connection, and concurrent calls may hold all others.
    drop(connection);
    let show = state.catalogue.find_show(row.show_id).await?;
    Ok(Some((row, show)))
}

/// Returns the caller's booking as they see it; `None` as in [`owned`].
///
/// # Errors
/// When the database fails.
pub async fn view(state: &SellingState, owner: &str, id: Uuid) -> ApiResult<Option<BookingView>> {
    let Some((row, show)) = owned(state, owner, id).await? else { return Ok(None) };
    let mut connection = state.pg.acquire().await?;
    let mut view = of_row(&mut connection, &show, &row).await?;
    let (events, refunds) = (sql::events(&mut connection, id).await?, refunds::of_booking(&mut connection, id).await?);
    if row.machine.money == MoneyState::Moved {
        view.moved_to = payment_rows::moved_to(&mut connection, id).await?;
    }
    if row.machine.state == BookingState::Confirmed {
        view.seat_offer = seat_offers::offer(&mut connection, &show, id).await?;
    }
    let currency = row.machine.total.currency;
    view.refunds = steps::refunds_view(&refunds, currency);
    view.steps = steps::steps(&show, &events, &refunds, currency);
    // After that the seats may be sold to others, whatever the gateway reports later.
    let may_be_paid = row.machine.state == BookingState::PaymentPending && state.clock.now() < row.machine.expires_at;
    view.expires_at_theatre = may_be_paid.then(|| show.local_iso(row.machine.expires_at));
    view.kept_hold = view.kept_hold.filter(|kept| state.clock.now().0 < kept.until_ms);
    view.cancel_until_ms = view.cancel_until_ms.filter(|until| state.clock.now().0 <= *until);
    Ok(Some(view))
}

/// Returns the history of the caller's booking; `None` as in [`owned`].
///
/// # Errors
/// When the database fails, or a row names a state that does not exist.
pub async fn events(state: &SellingState, owner: &str, id: Uuid) -> ApiResult<Option<Vec<BookingEventView>>> {
    let mut connection = state.pg.acquire().await?;
    if sql::find_owned(&mut connection, id, owner).await?.is_none() {
        return Ok(None);
    }
    let rows = sql::events(&mut connection, id).await?;
    let known = |state: &str| {
        state
            .parse::<BookingState>()
            .map_err(|_| Problem::internal(&format!("booking_events({id}) has state {state:?}")))
    };
    let story = rows.into_iter().map(|row| {
        Ok(BookingEventView {
            number: row.number,
            from: row.from_state.as_deref().map(known).transpose()?,
            to: known(&row.to_state)?,
            event: row.event,
            actor: row.actor,
            reason: row.reason,
            at: rfc3339(from_utc(row.at)),
        })
    });
    story.collect::<Result<_, _>>().map(Some)
}

/// Returns the booking made from a hold of the caller, if there is one.
///
/// # Errors
/// When the database fails.
pub async fn find_booking_of_hold(state: &SellingState, owner: &str, hold: Uuid) -> ApiResult<Option<Uuid>> {
    let sql = "SELECT id FROM bookings WHERE hold_id = $1 AND owner = $2";
    let found = sqlx::query_scalar(sql).bind_all((hold, owner)).fetch_optional(&state.pg).await?;
    Ok(found)
}

/// Facts on a ticket besides its seat.
#[derive(Clone, Debug, platform::FromRow)]
pub struct TicketFacts {
    /// The booking's reference.
    pub reference: String,
    /// The holder's name.
    pub holder: String,
    /// The show.
    pub show: Uuid,
}

/// Returns the facts on a booking's tickets. The caller must have a ticket of it.
///
/// # Errors
/// When the database fails.
pub async fn ticket_facts(state: &SellingState, booking: Uuid) -> ApiResult<Option<TicketFacts>> {
    let sql = "SELECT reference, holder_name AS holder, show_id AS show FROM bookings WHERE id = $1";
    let facts = sqlx::query_as(sql).bind(booking).fetch_optional(&state.pg).await?;
    Ok(facts)
}

/// Returns the receipt of a booking; `None` when it does not exist. The caller must have the key of all its tickets.
///
/// # Errors
/// When the database fails.
pub async fn receipt(state: &SellingState, show: &Show, booking: Uuid) -> ApiResult<Option<Receipt>> {
    let mut connection = state.pg.acquire().await?;
    let Some(row) = sql::find(&mut connection, booking).await? else { return Ok(None) };
    Ok(Some(of_row(&mut connection, show, &row).await?.receipt()))
}

/// Builds the owner's view of a stored booking, with the prices as agreed.
pub(crate) async fn of_row(tx: &mut PgConnection, show: &Show, row: &BookingRow) -> ApiResult<BookingView> {
    let currency = row.machine.total.currency;
    let seats = sql::seats(tx, row.id).await?.into_iter().map(|seat| seat.into_line(currency)).collect();
    let places = places::of_booking(tx, row, currency).await?;
    let pay_url = match row.machine.state {
        BookingState::PaymentPending => sql::payment_of(tx, row.id).await?.and_then(|(pay_url, _)| pay_url),
        _ => None,
    };
    let mut view = compose(show, row, seats, places, pay_url);
    if row.has_failed_payment() {
        view.kept_hold = declines::kept_hold(tx, row.id).await?.map(|kept| KeptHold {
            hold: kept.hold,
            until_ms: kept.until.0,
            until_theatre: show.local_iso(kept.until),
        });
    }
    Ok(view)
}

/// Builds the view from loaded parts; the gateway's page is included only while the payment is pending.
pub(crate) fn compose(
    show: &Show,
    row: &BookingRow,
    mut seats: Vec<SeatLine>,
    places: Vec<PlaceLine>,
    pay_url: Option<String>,
) -> BookingView {
    assert_eq!(show.id, row.show_id, "a booking is seen with its own show");
    sort_for_display(&mut seats, |line| line.label.as_str());
    let person = |(name, email): &(String, String)| Person { name: name.clone(), email: email.clone() };
    let breakdown = show.breakdown(&seats, &places);
    BookingView {
        id: row.id,
        reference: row.reference.clone(),
        show: row.show_id,
        state: row.machine.state,
        money: row.machine.money,
        seats,
        places,
        total: breakdown.total,
        breakdown,
        buyer: person(&row.buyer),
        holder: person(&row.holder),
        expires_at: rfc3339(row.machine.expires_at),
        expires_at_ms: row.machine.expires_at.0,
        expires_at_theatre: None,
        pay_url: pay_url.filter(|_| row.machine.state == BookingState::PaymentPending),
        ticket_url: (row.machine.state == BookingState::Confirmed).then(|| format!("/bookings/{}/ticket", row.id)),
        cancel_until_ms: (row.machine.state == BookingState::Confirmed).then(|| buyer_cancels_until(show.starts_at).0),
        refunds: Vec::new(),
        steps: Vec::new(),
        moved_to: None,
        seat_offer: None,
        kept_hold: None,
    }
}
