//! Queries of `bookings`, `booking_seats`, `booking_events` and `payments`.

use chrono::{DateTime, Utc};
use domain::VariantName;
use domain::api::SeatLine;
use domain::booking::{Booking, BookingState, MoneyState};
use domain::money::{Currency, Money};
use domain::seats::{Places, SeatIndex};
use domain::time::Timestamp;
use sqlx::{Connection as _, PgConnection, Row};
use uuid::Uuid;

use super::moves::Cause;
use platform::clock::{from_utc, to_utc};
use platform::database::BindAll;
use seats::seat_locks::{FencedSelection, Selection};

/// A booking as stored.
#[derive(Clone, Debug)]
pub struct BookingRow {
    /// The booking.
    pub id: Uuid,
    /// Its reference.
    pub reference: String,
    /// Its show.
    pub show_id: Uuid,
    /// Its owner.
    pub owner: String,
    /// The hold it was made from.
    pub hold_id: Uuid,
    /// The fencing token of that hold.
    pub fence: i64,
    /// The number of its events; every write verifies it.
    pub version: i32,
    /// Its state in the state machine.
    pub machine: Booking,
    /// The buyer: name and e-mail.
    pub buyer: (String, String),
    /// The ticket holder: name and e-mail.
    pub holder: (String, String),
    /// Its seats, sorted.
    pub seats: Vec<SeatIndex>,
    /// Its places in areas without seats, sorted by area.
    pub places: Vec<Places>,
}

impl BookingRow {
    /// Returns its seats and places in the lock store's form.
    #[must_use]
    pub fn sale(&self) -> FencedSelection {
        FencedSelection {
            hold: self.hold_id,
            owner: self.owner.clone(),
            fence: self.fence,
            selection: Selection { seats: self.seats.clone(), places: self.places.clone() },
        }
    }

    /// Returns true after a payment that failed; a declined one may have kept its hold.
    pub(super) fn has_failed_payment(&self) -> bool {
        (self.machine.state, self.machine.money) == (BookingState::Cancelled, MoneyState::Failed)
    }

    pub(super) fn seats_and_places(&self) -> usize {
        let places: u32 = self.places.iter().map(|places| places.count).sum();
        self.seats.len() + places as usize
    }
}

/// Builds the error of a corrupt row, with table, column and value; corrupt values never become defaults.
fn corrupt(column: &str, value: &str) -> sqlx::Error {
    sqlx::Error::Decode(format!("bookings.{column} is {value:?}").into())
}

impl sqlx::FromRow<'_, sqlx::postgres::PgRow> for BookingRow {
    fn from_row(row: &sqlx::postgres::PgRow) -> sqlx::Result<Self> {
        let (state, money): (String, String) = (row.try_get("state")?, row.try_get("money")?);
        let code: String = row.try_get("currency")?;
        let currency = Currency::parse(&code).ok_or_else(|| corrupt("currency", &code))?;
        let seats: Vec<i32> = row.try_get("seats")?;
        let places: Vec<i32> = row.try_get("places")?;
        Ok(Self {
            id: row.try_get("id")?,
            reference: row.try_get("reference")?,
            show_id: row.try_get("show_id")?,
            owner: row.try_get("owner")?,
            hold_id: row.try_get("hold_id")?,
            fence: row.try_get("fence")?,
            version: row.try_get("version")?,
            machine: Booking {
                state: state.parse().map_err(|_| corrupt("state", &state))?,
                money: money.parse().map_err(|_| corrupt("money", &money))?,
                total: Money::new(row.try_get("total_minor")?, currency),
                expires_at: from_utc(row.try_get::<DateTime<Utc>, _>("expires_at")?),
            },
            buyer: (row.try_get("buyer_name")?, row.try_get("buyer_email")?),
            holder: (row.try_get("holder_name")?, row.try_get("holder_email")?),
            seats: seats.into_iter().map(i32::cast_unsigned).collect(),
            places: super::places::read(&places).ok_or_else(|| corrupt("places", &format!("{places:?}")))?,
        })
    }
}

/// Selects a booking with its seats and places in one snapshot. Never with a row lock: after a lock wait the row is
/// the latest version, but the sub-selects still use the snapshot from before the wait. [`lock`] locks first and
/// reads then.
macro_rules! select_booking {
    ($condition:literal) => {
        concat!(
            "SELECT booking.*,
                    ARRAY(SELECT seat_no FROM booking_seats WHERE booking_id = booking.id ORDER BY seat_no) AS seats,
                    ARRAY(SELECT pair.number FROM booking_places place,
                              LATERAL (VALUES (1, place.area_no::integer), (2, place.quantity)) AS pair (rank, number)
                          WHERE place.booking_id = booking.id ORDER BY place.area_no, pair.rank) AS places
             FROM bookings booking WHERE ",
            $condition
        )
    };
}

/// Returns the booking of that id, locked until the transaction ends: moves of one booking queue. Two statements: the
/// second has a snapshot from after the lock wait, also of the tables of its seats and places.
pub async fn lock(tx: &mut PgConnection, id: Uuid) -> sqlx::Result<Option<BookingRow>> {
    sqlx::query("SELECT 1 FROM bookings WHERE id = $1 FOR UPDATE").bind(id).execute(&mut *tx).await?;
    find(tx, id).await
}

/// Returns the booking of that id.
pub async fn find(tx: &mut PgConnection, id: Uuid) -> sqlx::Result<Option<BookingRow>> {
    sqlx::query_as(select_booking!("booking.id = $1")).bind(id).fetch_optional(tx).await
}

pub(super) async fn find_owned(tx: &mut PgConnection, id: Uuid, owner: &str) -> sqlx::Result<Option<BookingRow>> {
    let sql = select_booking!("booking.id = $1 AND booking.owner = $2");
    sqlx::query_as(sql).bind_all((id, owner)).fetch_optional(tx).await
}

/// Returns the booking made from a hold, if it is this owner's.
pub(super) async fn find_of_hold(
    connection: &mut PgConnection,
    hold: Uuid,
    owner: &str,
) -> sqlx::Result<Option<BookingRow>> {
    let found = sqlx::query_as(select_booking!("booking.hold_id = $1 AND booking.owner = $2"));
    found.bind(hold).bind(owner).fetch_optional(connection).await
}

pub(super) async fn show_of(tx: &mut PgConnection, id: Uuid) -> sqlx::Result<Option<Uuid>> {
    sqlx::query_scalar("SELECT show_id FROM bookings WHERE id = $1").bind(id).fetch_optional(tx).await
}

/// Bounds the wait for bookings that are being written, before their show is marked.
const SET_SHOW_LOCK_TIMEOUT: &str = "SET LOCAL lock_timeout = '2s'";
/// SQLSTATE of a lock that was not available within its timeout.
const LOCK_NOT_AVAILABLE: &str = "55P03";

/// Locks a show against writers of its bookings, before it is marked as called off or moving. FOR UPDATE waits for the
/// FOR KEY SHARE of their foreign key, which an update of the show does not. Where sales never pause the lock may
/// never be available, since a waiting FOR UPDATE does not hold off FOR KEY SHARE: after [`SET_SHOW_LOCK_TIMEOUT`] the
/// show is marked without it, which ends its sales. So a caller that acts on the mark takes the lock before it relies
/// on having seen every booking.
pub async fn lock_show_before_mark(tx: &mut PgConnection, show: Uuid) -> sqlx::Result<()> {
    let mut attempt = tx.begin().await?;
    sqlx::query(SET_SHOW_LOCK_TIMEOUT).execute(&mut *attempt).await?;
    let locked = sqlx::query("SELECT 1 FROM shows WHERE id = $1 FOR UPDATE").bind(show).execute(&mut *attempt).await;
    match locked {
        Ok(_) => {
            sqlx::query("SET LOCAL lock_timeout TO DEFAULT").execute(&mut *attempt).await?;
            attempt.commit().await
        }
        Err(sqlx::Error::Database(error)) if error.code().as_deref() == Some(LOCK_NOT_AVAILABLE) => {
            tracing::warn!(%show, "locking show {show} timed out; it is marked while bookings of it are being written");
            attempt.rollback().await
        }
        Err(cause) => Err(cause),
    }
}

pub(super) async fn is_called_off(tx: &mut PgConnection, show: Uuid) -> sqlx::Result<bool> {
    sqlx::query_scalar("SELECT called_off FROM shows WHERE id = $1").bind(show).fetch_one(tx).await
}

/// Returns true if a show has begun.
pub(super) async fn has_begun(tx: &mut PgConnection, show: Uuid, now: Timestamp) -> sqlx::Result<bool> {
    let sql = "SELECT starts_at <= $2 FROM shows WHERE id = $1";
    sqlx::query_scalar(sql).bind_all((show, to_utc(now))).fetch_one(tx).await
}

/// Returns the booking made from a hold, locked as by [`lock`].
pub(super) async fn lock_of_hold(tx: &mut PgConnection, hold: Uuid) -> sqlx::Result<Option<BookingRow>> {
    let sql = "SELECT id FROM bookings WHERE hold_id = $1 FOR UPDATE";
    let locked: Option<Uuid> = sqlx::query_scalar(sql).bind(hold).fetch_optional(&mut *tx).await?;
    match locked {
        Some(id) => find(tx, id).await,
        // Created meanwhile by another tab: its insert conflicts with ours, and the next read finds it.
        None => Ok(None),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Channel {
    /// Online, by its buyer.
    Online,
    /// At the counter.
    BoxOffice,
}

impl Channel {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Online => "online",
            Self::BoxOffice => "box_office",
        }
    }
}

/// Writes a new booking, in state CREATED; `false` when its hold has one or its reference is taken.
pub(super) async fn insert(
    tx: &mut PgConnection,
    row: &BookingRow,
    channel: Channel,
    now: Timestamp,
) -> sqlx::Result<bool> {
    let inserted = sqlx::query(
        "INSERT INTO bookings (id, reference, show_id, owner, hold_id, fence, state, money, version,
                               total_minor, currency, buyer_name, buyer_email, holder_name, holder_email,
                               expires_at, created_at, updated_at, channel)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $17, $18)
         ON CONFLICT DO NOTHING",
    )
    .bind_all((row.id, &row.reference, row.show_id, &row.owner, row.hold_id))
    .bind_all((row.fence, row.machine.state.as_str(), row.machine.money.as_str(), row.version, row.machine.total.minor))
    .bind_all((row.machine.total.currency.code(), &row.buyer.0, &row.buyer.1, &row.holder.0, &row.holder.1))
    .bind_all((to_utc(row.machine.expires_at), to_utc(now), channel.as_str()))
    .execute(tx)
    .await?;
    Ok(inserted.rows_affected() == 1)
}

/// A seat of a booking with its label and price as agreed.
#[derive(Clone, Debug, platform::FromRow)]
pub(super) struct SeatRow {
    pub(super) seat_no: i32,
    pub(super) label: String,
    pub(super) category: String,
    pub(super) price_minor: i64,
}

impl SeatRow {
    pub(super) fn into_line(self, currency: Currency) -> SeatLine {
        let price = Money::new(self.price_minor, currency);
        SeatLine { seat: self.seat_no.cast_unsigned(), label: self.label, category: self.category, price }
    }
}

pub(super) async fn put_seats(tx: &mut PgConnection, id: Uuid, seats: &[SeatRow]) -> sqlx::Result<()> {
    sqlx::query("DELETE FROM booking_seats WHERE booking_id = $1").bind(id).execute(&mut *tx).await?;
    sqlx::query(
        "INSERT INTO booking_seats (booking_id, seat_no, label, category, price_minor)
         SELECT $1, * FROM unnest($2::integer[], $3::text[], $4::text[], $5::bigint[])",
    )
    .bind(id)
    .bind(seats.iter().map(|seat| seat.seat_no).collect::<Vec<_>>())
    .bind(seats.iter().map(|seat| seat.label.clone()).collect::<Vec<_>>())
    .bind(seats.iter().map(|seat| seat.category.clone()).collect::<Vec<_>>())
    .bind(seats.iter().map(|seat| seat.price_minor).collect::<Vec<_>>())
    .execute(tx)
    .await?;
    Ok(())
}

pub(super) async fn seats(tx: &mut PgConnection, id: Uuid) -> sqlx::Result<Vec<SeatRow>> {
    let sql = "SELECT seat_no, label, category, price_minor FROM booking_seats WHERE booking_id = $1 ORDER BY seat_no";
    sqlx::query_as(sql).bind(id).fetch_all(tx).await
}

/// Updates a booking from the state and version that were read; `false` on a version conflict.
pub(super) async fn update(
    tx: &mut PgConnection,
    from: &BookingRow,
    to: &BookingRow,
    now: Timestamp,
) -> sqlx::Result<bool> {
    let moved = sqlx::query(
        "UPDATE bookings
         SET state = $4, money = $5, version = version + 1, expires_at = $6, total_minor = $7, updated_at = $8,
             buyer_name = $9, buyer_email = $10, holder_name = $11, holder_email = $12
         WHERE id = $1 AND state = $2 AND version = $3",
    )
    .bind_all((from.id, from.machine.state.as_str(), from.version, to.machine.state.as_str()))
    .bind_all((to.machine.money.as_str(), to_utc(to.machine.expires_at), to.machine.total.minor, to_utc(now)))
    .bind_all((&to.buyer.0, &to.buyer.1, &to.holder.0, &to.holder.1))
    .execute(tx)
    .await?;
    Ok(moved.rows_affected() == 1)
}

#[derive(Clone, Debug, platform::FromRow)]
pub(super) struct EventRow {
    pub(super) number: i32,
    pub(super) event: String,
    pub(super) from_state: Option<String>,
    pub(super) to_state: String,
    pub(super) actor: String,
    pub(super) reason: String,
    pub(super) at: DateTime<Utc>,
}

pub(super) async fn insert_event(
    tx: &mut PgConnection,
    row: &BookingRow,
    from: Option<BookingState>,
    event: &str,
    cause: Cause<'_>,
    now: Timestamp,
) -> sqlx::Result<()> {
    sqlx::query(
        "INSERT INTO booking_events (booking_id, number, event, from_state, to_state, money, actor, reason, at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
    )
    .bind_all((row.id, row.version, event, from.map(|from| from.as_str()), row.machine.state.as_str()))
    .bind_all((row.machine.money.as_str(), cause.actor, cause.reason, to_utc(now)))
    .execute(tx)
    .await?;
    Ok(())
}

pub(super) async fn events(tx: &mut PgConnection, id: Uuid) -> sqlx::Result<Vec<EventRow>> {
    let sql = "SELECT number, event, from_state, to_state, actor, reason, at
               FROM booking_events WHERE booking_id = $1 ORDER BY number";
    sqlx::query_as(sql).bind(id).fetch_all(tx).await
}

/// Inserts a payment before its charge is requested.
pub(super) async fn insert_payment(
    tx: &mut PgConnection,
    row: &BookingRow,
    gateway: &str,
    token: Option<&str>,
    now: Timestamp,
) -> sqlx::Result<()> {
    sqlx::query(
        "INSERT INTO payments (booking_id, gateway, state, amount_minor, currency, payment_token, updated_at)
         VALUES ($1, $2, 'requested', $3, $4, $5, $6)",
    )
    .bind_all((row.id, gateway, row.machine.total.minor, row.machine.total.currency.code(), token, to_utc(now)))
    .execute(tx)
    .await?;
    Ok(())
}

/// Records a gateway's report about a payment, whatever it means for the booking. State `succeeded` is final: a later
/// report of another state is stale.
pub(super) async fn note_payment(
    tx: &mut PgConnection,
    booking: Uuid,
    state: &str,
    gateway_ref: Option<&str>,
    pay_url: Option<&str>,
    now: Timestamp,
) -> sqlx::Result<()> {
    let sql = "UPDATE payments
               SET state = CASE state WHEN 'succeeded' THEN state ELSE $2 END,
                   gateway_ref = coalesce($3, gateway_ref), pay_url = coalesce($4, pay_url), updated_at = $5
               WHERE booking_id = $1";
    sqlx::query(sql).bind_all((booking, state, gateway_ref, pay_url, to_utc(now))).execute(tx).await.map(drop)
}

pub(super) async fn note_refund(
    tx: &mut PgConnection,
    booking: Uuid,
    state: &str,
    amount: Option<i64>,
    now: Timestamp,
) -> sqlx::Result<()> {
    let sql = "UPDATE payments SET refund_state = $2, refund_minor = coalesce($3, refund_minor), updated_at = $4
               WHERE booking_id = $1";
    sqlx::query(sql).bind_all((booking, state, amount, to_utc(now))).execute(tx).await.map(drop)
}

pub(super) async fn payment_of(
    tx: &mut PgConnection,
    booking: Uuid,
) -> sqlx::Result<Option<(Option<String>, Option<String>)>> {
    let sql = "SELECT pay_url, payment_token FROM payments WHERE booking_id = $1";
    sqlx::query_as(sql).bind(booking).fetch_optional(tx).await
}
