//! Queries that lock and load the bookings of a batch.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use domain::VariantName;
use domain::api::SeatLine;
use domain::money::Money;
use sqlx::postgres::PgRow;
use sqlx::{FromRow, PgConnection, Row};
use uuid::Uuid;

use super::Work;
use super::plan::Known;
use super::run::BatchError;
use crate::SellingState;
use crate::bookings::sql::BookingRow;
use catalogue::Show;
use http::idempotency::{self, Intent};
use payments::{PaymentEvent, PaymentEventOutcome};
use platform::cte_batch::{CteBatch, StatementResults};

/// A booking with its seats and payment.
#[derive(Clone, Debug)]
pub(crate) struct BookingDetails {
    pub(crate) row: BookingRow,
    /// Its seats with labels and prices as agreed, in the order of the plan.
    pub(crate) lines: Vec<SeatLine>,
    /// The gateway that charges it, if a payment was ever submitted. A change of gateway increments the version.
    pub(crate) gateway: Option<String>,
    /// The gateway's page, if there is one.
    pub(crate) pay_url: Option<String>,
}

impl FromRow<'_, PgRow> for BookingDetails {
    fn from_row(row: &PgRow) -> sqlx::Result<Self> {
        let booking = BookingRow::from_row(row)?;
        let labels: Vec<String> = row.try_get("labels")?;
        let categories: Vec<String> = row.try_get("categories")?;
        let prices: Vec<i64> = row.try_get("prices")?;
        let currency = booking.machine.total.currency;
        let mut lines = Vec::with_capacity(booking.seats.len());
        for (((seat, label), category), price) in booking.seats.iter().zip(labels).zip(categories).zip(prices) {
            lines.push(SeatLine { seat: *seat, label, category, price: Money::new(price, currency) });
        }
        Ok(Self { lines, row: booking, gateway: row.try_get("gateway")?, pay_url: row.try_get("pay_url")? })
    }
}

/// Loads bookings with their seats and payments; unknown ids are left out.
pub(crate) async fn load_details(
    connection: &mut PgConnection,
    ids: &[Uuid],
) -> sqlx::Result<HashMap<Uuid, BookingDetails>> {
    let sql = "SELECT booking.*, ARRAY(SELECT pair.number FROM booking_places place,
                          LATERAL (VALUES (1, place.area_no::integer), (2, place.quantity)) AS pair (rank, number)
                      WHERE place.booking_id = booking.id ORDER BY place.area_no, pair.rank) AS places,
                seat.seats, seat.labels, seat.categories, seat.prices,
                payment.gateway, payment.pay_url
         FROM unnest($1::uuid[]) AS wanted (id)
         JOIN bookings booking ON booking.id = wanted.id
         LEFT JOIN payments payment ON payment.booking_id = booking.id
         CROSS JOIN LATERAL (
             SELECT coalesce(array_agg(seat_no), '{}') AS seats, coalesce(array_agg(label), '{}') AS labels,
                    coalesce(array_agg(category), '{}') AS categories, coalesce(array_agg(price_minor), '{}') AS prices
             FROM (SELECT seat_no, label, category, price_minor FROM booking_seats
                   WHERE booking_id = booking.id ORDER BY seat_no) AS sorted
         ) AS seat";
    let rows: Vec<BookingDetails> = sqlx::query_as(sql).bind(ids).fetch_all(connection).await?;
    Ok(rows.into_iter().map(|found| (found.row.id, found)).collect())
}

/// The treatment of bookings that other transactions keep locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LockMode {
    /// Waited for: nearly always another batch, for a moment.
    ForUpdate,
    /// Left out: a lock was held longer than the transaction waits.
    SkipLocked,
}

/// Locks bookings in the order of their ids, and returns their ids and versions. All other reads of the batch are later
/// statements: their snapshot is taken after the last lock was acquired.
async fn lock_bookings(tx: &mut PgConnection, mut ids: Vec<Uuid>, locks: LockMode) -> sqlx::Result<Vec<(Uuid, i32)>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    ids.sort_unstable();
    ids.dedup();
    let statement = match locks {
        LockMode::ForUpdate => "SELECT id, version FROM bookings WHERE id = ANY($1) ORDER BY id FOR UPDATE",
        LockMode::SkipLocked => {
            "SELECT id, version FROM bookings WHERE id = ANY($1) ORDER BY id FOR UPDATE SKIP LOCKED"
        }
    };
    sqlx::query_as(statement).bind(ids).fetch_all(tx).await
}

/// Returns the locked bookings. Only those that are not in `known` at the same version are loaded: every change of a
/// booking or its seats increments its version.
async fn load_locked(
    tx: &mut PgConnection,
    locked: Vec<(Uuid, i32)>,
    known: &HashMap<Uuid, &BookingDetails>,
) -> sqlx::Result<HashMap<Uuid, BookingDetails>> {
    let mut bookings = HashMap::with_capacity(locked.len());
    let mut unknown = Vec::new();
    for (id, version) in locked {
        match known.get(&id).filter(|found| found.row.version == version) {
            Some(found) => drop(bookings.insert(id, (*found).clone())),
            None => unknown.push(id),
        }
    }
    if !unknown.is_empty() {
        bookings.extend(load_details(tx, &unknown).await?);
    }
    Ok(bookings)
}

/// Adds the query for holds that have a booking already: see [`booked_holds`].
fn add_holds(cte: &mut CteBatch, holds: Vec<Uuid>) -> sqlx::Result<()> {
    cte.add("booked", "SELECT hold_id FROM bookings WHERE hold_id = ANY($1)", &["hold_id"]).value(holds).done()
}

/// Returns the queried holds that have a booking. A booking made meanwhile is detected by the write.
pub(super) fn booked_holds(results: &StatementResults) -> sqlx::Result<HashSet<Uuid>> {
    Ok(results.column("booked", "hold_id")?.into_iter().collect())
}

/// Adds the query for gateway events that were noted before for a known payment: see [`noted_events`].
fn add_noted_events(cte: &mut CteBatch, news: &[&PaymentEvent]) -> sqlx::Result<()> {
    let statement = "SELECT known.gateway, known.event_id
         FROM unnest($1::text[], $2::text[]) AS event (gateway, id)
         JOIN webhook_events known ON known.gateway = event.gateway AND known.event_id = event.id
         WHERE known.outcome <> $3";
    cte.add("known_events", statement, &["gateway", "event_id"])
        .each(news.iter().map(|news| news.gateway))
        .each(news.iter().map(|news| news.event_id.as_str()))
        .value(PaymentEventOutcome::Unknown.as_str())
        .done()
}

/// Returns the events that were noted before: gateway and id. Events noted meanwhile are detected by the write.
pub(super) fn noted_events(results: &StatementResults) -> sqlx::Result<HashSet<(String, String)>> {
    let gateways: Vec<String> = results.column("known_events", "gateway")?;
    Ok(gateways.into_iter().zip(results.column("known_events", "event_id")?).collect())
}

/// Locks and returns the bookings of the pieces, and true if a key that a piece claims is taken already.
pub(super) async fn load_batch(
    state: &SellingState,
    tx: &mut PgConnection,
    works: &[&Work],
    locks: LockMode,
    keys: &[&Intent],
) -> Result<(Known, bool), BatchError> {
    let locked = lock_bookings(tx, works.iter().filter_map(|work| work.booking()).collect(), locks).await?;
    let holds: Vec<Uuid> = works.iter().filter_map(|work| work.hold()).collect();
    let news: Vec<_> = works.iter().filter_map(|work| work.news()).collect();
    let mut cte = CteBatch::default();
    if !(holds.is_empty() && news.is_empty() && keys.is_empty()) {
        add_holds(&mut cte, holds)?;
        add_noted_events(&mut cte, &news)?;
        idempotency::add_lookup(&mut cte, keys, state.clock.now())?;
    }
    let results = cte.run(tx).await?;

    // Only for bookings that no piece answers with: the gateway's page may be newer than the booking's version.
    let answered: HashSet<Uuid> =
        works.iter().filter(|work| work.news().is_none()).filter_map(|work| work.booking()).collect();
    let noted = news.iter().map(|news| news.booking).filter(|booking| !answered.contains(booking));
    let recent: Vec<Arc<BookingDetails>> = noted.filter_map(|booking| state.commits.recent.get(booking)).collect();
    let seen = works.iter().filter_map(|work| work.seen()).chain(recent.iter().map(|found| &**found));
    let seen = seen.map(|found| (found.row.id, found)).collect();
    let bookings = load_locked(tx, locked, &seen).await?;
    let mut known =
        Known { booked_holds: booked_holds(&results)?, noted_events: noted_events(&results)?, ..Known::default() };
    known.shows = cached_shows(state, &news, &bookings).await;
    known.bookings = bookings;
    Ok((known, !idempotency::all_keys_free(&results)?))
}

/// Returns the shows of bookings with webhooks, as far as they are in memory: loading one takes another connection,
/// which a transaction must not wait for.
async fn cached_shows(
    state: &SellingState,
    news: &[&PaymentEvent],
    bookings: &HashMap<Uuid, BookingDetails>,
) -> HashMap<Uuid, Arc<Show>> {
    let mut shows = HashMap::new();
    for show in news.iter().filter_map(|news| bookings.get(&news.booking)).map(|found| found.row.show_id) {
        if !shows.contains_key(&show)
            && let Some(cached) = state.catalogue.cached_show(show).await
        {
            shows.insert(show, cached);
        }
    }
    shows
}
