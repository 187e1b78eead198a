//! Queries of `waiting_lists` and `waiting_list`. Every write verifies the state it was decided on.

use chrono::{DateTime, Utc};
use domain::seats::{Places, SeatIndex};
use domain::time::Timestamp;
use domain::waiting_list::{EntryRequest, OfferedPlaces};
use sqlx::error::BoxDynError;
use sqlx::postgres::{PgTypeInfo, PgValueRef};
use sqlx::{PgConnection, PgPool, Postgres};
use uuid::Uuid;

use platform::clock::to_utc;
use platform::database::BindAll;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntryState {
    /// In line.
    Waiting,
    /// An offer is planned, perhaps not held yet.
    Offering,
    /// An offer is held.
    Offered,
    /// Bought.
    Taken,
    /// The offer ran out.
    Lapsed,
    /// The owner left.
    Left,
    /// Sales closed.
    Over,
}

impl sqlx::Type<Postgres> for EntryState {
    fn type_info() -> PgTypeInfo {
        <str as sqlx::Type<Postgres>>::type_info()
    }
}

impl<'r> sqlx::Decode<'r, Postgres> for EntryState {
    /// Parses a state; a corrupt value is an error that names it, never a default.
    fn decode(value: PgValueRef<'r>) -> Result<Self, BoxDynError> {
        Ok(match value.as_str()? {
            "waiting" => Self::Waiting,
            "offering" => Self::Offering,
            "offered" => Self::Offered,
            "taken" => Self::Taken,
            "lapsed" => Self::Lapsed,
            "left" => Self::Left,
            "over" => Self::Over,
            other => return Err(format!("waiting_list.state is {other:?}").into()),
        })
    }
}

#[derive(Clone, Debug, platform::FromRow)]
pub(super) struct ListEntry {
    pub(super) id: Uuid,
    pub(super) place: i64,
    pub(super) show_id: Uuid,
    pub(super) owner: String,
    pub(super) email: String,
    pub(super) quantity: i32,
    pub(super) category: Option<String>,
    pub(super) state: EntryState,
    pub(super) offer_number: i32,
    pub(super) offer_hold: Option<Uuid>,
    offer_seats: Vec<i32>,
    offer_area: Option<i16>,
    pub(super) offer_until: Option<DateTime<Utc>>,
    /// Attempts to mail the offer.
    pub(super) mail_tries: i32,
    pub(super) joined_at: DateTime<Utc>,
}

impl ListEntry {
    pub(super) fn wish(&self) -> EntryRequest {
        EntryRequest { quantity: self.quantity.unsigned_abs(), category: self.category.clone() }
    }

    pub(super) fn seats(&self) -> Vec<SeatIndex> {
        self.offer_seats.iter().map(|seat| seat.cast_unsigned()).collect()
    }

    pub(super) fn places(&self) -> Option<Places> {
        self.offer_area.map(|area| Places { area: area.cast_unsigned(), count: self.quantity.unsigned_abs() })
    }

    /// Returns the offer; `None` before the first one.
    pub(super) fn offer(&self) -> Option<OfferedPlaces> {
        match self.places() {
            Some(places) => Some(OfferedPlaces::Places(places)),
            None => (!self.offer_seats.is_empty()).then(|| OfferedPlaces::Seats(self.seats())),
        }
    }
}

macro_rules! entries {
    ($rest:literal) => {
        concat!(
            "SELECT id, place, show_id, owner, email, quantity, category, state, offer_number, offer_hold,
                    offer_seats, offer_area, offer_until, mail_tries, joined_at
             FROM waiting_list ",
            $rest
        )
    };
}

/// Namespace of the advisory locks of joins: "join" in ASCII.
const JOIN_LOCK_SPACE: i64 = 0x6a6f_696e;

/// Opens a show's list if it is not open, and locks it until the transaction ends against other joins, which count its
/// entries. Not by its row: joins would keep the planner of offers, which does not wait for it, from their show.
pub(super) async fn open_list(tx: &mut PgConnection, show: Uuid, now: Timestamp) -> sqlx::Result<()> {
    let sql = "INSERT INTO waiting_lists (show_id, looked_at) VALUES ($1, $2) ON CONFLICT DO NOTHING";
    sqlx::query(sql).bind_all((show, to_utc(now))).execute(&mut *tx).await?;
    let sql = "SELECT pg_advisory_xact_lock(hashtextextended($1, $2))";
    sqlx::query(sql).bind_all((show.to_string(), JOIN_LOCK_SPACE)).execute(tx).await.map(drop)
}

/// Tries to lock a show's list; `false` when another replica has it and does the work.
pub(super) async fn lock_list(tx: &mut PgConnection, show: Uuid) -> sqlx::Result<bool> {
    let sql = "SELECT 1 FROM waiting_lists WHERE show_id = $1 FOR UPDATE SKIP LOCKED";
    let locked = sqlx::query(sql).bind(show).fetch_optional(tx).await?;
    Ok(locked.is_some())
}

pub(super) async fn count_waiting(tx: &mut PgConnection, show: Uuid) -> sqlx::Result<i64> {
    let sql = "SELECT count(*) FROM waiting_list WHERE show_id = $1 AND state IN ('waiting', 'offering')";
    sqlx::query_scalar(sql).bind(show).fetch_one(tx).await
}

/// Locks a visitor's joins, and the offers they take over, until the transaction ends.
pub(super) async fn lock_joins_of(tx: &mut PgConnection, owner: &str) -> sqlx::Result<()> {
    sqlx::query("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))").bind(owner).execute(tx).await.map(drop)
}

/// Counts the lists that a visitor is in. Their joins are serialised until the transaction ends, so that two
/// concurrent ones do not both pass the limit.
pub(super) async fn count_lists_of(tx: &mut PgConnection, owner: &str) -> sqlx::Result<i64> {
    lock_joins_of(tx, owner).await?;
    let sql = "SELECT count(*) FROM waiting_list WHERE owner = $1 AND state IN ('waiting', 'offering', 'offered')";
    sqlx::query_scalar(sql).bind(owner).fetch_one(tx).await
}

pub(super) async fn count_ahead(tx: &mut PgConnection, show: Uuid, place: i64) -> sqlx::Result<i64> {
    let sql = "SELECT count(*) FROM waiting_list
               WHERE show_id = $1 AND place < $2 AND state IN ('waiting', 'offering')";
    sqlx::query_scalar(sql).bind_all((show, place)).fetch_one(tx).await
}

/// Appends an entry to the line; `false` when the visitor is in it.
pub(super) async fn insert(
    tx: &mut PgConnection,
    id: Uuid,
    show: Uuid,
    owner: &str,
    email: &str,
    wish: &EntryRequest,
    now: Timestamp,
) -> sqlx::Result<bool> {
    let inserted = sqlx::query(
        "INSERT INTO waiting_list (id, show_id, owner, email, quantity, category,
                                   not_before, mail_after, joined_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $7, $7, $7)
         ON CONFLICT (show_id, owner) WHERE state IN ('waiting', 'offering', 'offered') DO NOTHING",
    )
    .bind_all((id, show, owner, email, wish.quantity.cast_signed(), &wish.category, to_utc(now)))
    .execute(tx)
    .await?;
    Ok(inserted.rows_affected() == 1)
}

pub(super) async fn find(tx: &mut PgConnection, id: Uuid) -> sqlx::Result<Option<ListEntry>> {
    sqlx::query_as(entries!("WHERE id = $1")).bind(id).fetch_optional(tx).await
}

pub(super) async fn lock(tx: &mut PgConnection, id: Uuid) -> sqlx::Result<()> {
    sqlx::query("SELECT 1 FROM waiting_list WHERE id = $1 FOR UPDATE").bind(id).execute(tx).await.map(drop)
}

pub(super) async fn is_in_line(tx: &mut PgConnection, show: Uuid, owner: &str) -> sqlx::Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM waiting_list
                              WHERE show_id = $1 AND owner = $2 AND state IN ('waiting', 'offering', 'offered'))";
    sqlx::query_scalar(sql).bind_all((show, owner)).fetch_one(tx).await
}

pub(super) async fn newest(tx: &mut PgConnection, show: Uuid, owner: &str) -> sqlx::Result<Option<ListEntry>> {
    let sql = entries!("WHERE show_id = $1 AND owner = $2 ORDER BY place DESC LIMIT 1");
    sqlx::query_as(sql).bind_all((show, owner)).fetch_optional(tx).await
}

/// Returns the waiting entries in order, without those that are paused. They are not locked, as most get nothing:
/// [`plan_offer`] detects entries that left meanwhile.
pub(super) async fn line(
    tx: &mut PgConnection,
    show: Uuid,
    now: Timestamp,
    limit: i64,
) -> sqlx::Result<Vec<ListEntry>> {
    let sql = entries!("WHERE show_id = $1 AND state = 'waiting' AND not_before <= $2 ORDER BY place LIMIT $3");
    sqlx::query_as(sql).bind_all((show, to_utc(now), limit)).fetch_all(tx).await
}

/// Removes a visitor from the line. `None` when they are not in it, else the hold of their offer, if any.
pub(super) async fn leave(
    tx: &mut PgConnection,
    show: Uuid,
    owner: &str,
    now: Timestamp,
) -> sqlx::Result<Option<Option<Uuid>>> {
    let sql = "UPDATE waiting_list entry SET state = 'left', updated_at = $3
               FROM (SELECT id, CASE WHEN state <> 'waiting' THEN offer_hold END AS hold FROM waiting_list
                     WHERE show_id = $1 AND owner = $2 AND state IN ('waiting', 'offering', 'offered')
                     FOR UPDATE) AS live
               WHERE entry.id = live.id
               RETURNING live.hold";
    let left: Option<(Option<Uuid>,)> =
        sqlx::query_as(sql).bind_all((show, owner, to_utc(now))).fetch_optional(tx).await?;
    Ok(left.map(|(hold,)| hold))
}

/// Ends the waiting entries of a show whose sales are closed.
pub(super) async fn close(pg: &PgPool, show: Uuid, now: Timestamp) -> sqlx::Result<()> {
    let sql = "UPDATE waiting_list SET state = 'over', updated_at = $2
               WHERE show_id = $1 AND state IN ('waiting', 'offering')";
    sqlx::query(sql).bind_all((show, to_utc(now))).execute(pg).await.map(drop)
}

/// Returns the shows with waiting entries, once for each category that is waited for.
pub(super) async fn wanted_categories(pg: &PgPool, limit: i64) -> sqlx::Result<Vec<(Uuid, Option<String>)>> {
    let sql = "SELECT DISTINCT show_id, category FROM waiting_list WHERE state IN ('waiting', 'offering') LIMIT $1";
    sqlx::query_as(sql).bind(limit).fetch_all(pg).await
}

/// Returns the shows with waiting entries that no replica has processed since `looked_at`, least recent first, and
/// marks them as processed.
pub(super) async fn due_shows(
    pg: &PgPool,
    now: Timestamp,
    looked_at: Timestamp,
    limit: i64,
) -> sqlx::Result<Vec<Uuid>> {
    let sql = "UPDATE waiting_lists list SET looked_at = $1
               FROM (SELECT show_id FROM waiting_lists known
                     WHERE looked_at <= $2
                       AND EXISTS (SELECT 1 FROM waiting_list entry
                                   WHERE entry.show_id = known.show_id AND entry.state IN ('waiting', 'offering'))
                     ORDER BY looked_at LIMIT $3 FOR UPDATE SKIP LOCKED) AS due
               WHERE list.show_id = due.show_id
               RETURNING list.show_id";
    sqlx::query_scalar(sql).bind_all((to_utc(now), to_utc(looked_at), limit)).fetch_all(pg).await
}

pub(super) async fn count_offers(tx: &mut PgConnection, show: Uuid) -> sqlx::Result<i64> {
    let sql = "SELECT count(*) FROM waiting_list WHERE show_id = $1 AND state IN ('offering', 'offered')";
    sqlx::query_scalar(sql).bind(show).fetch_one(tx).await
}

/// Returns the entries in order that free seats are reserved for: those with a planned offer that is perhaps not held, and
/// the waiting ones that are not paused. One statement, so that an entry which is planned meanwhile is in it once.
pub(super) async fn claimants(
    connection: &mut PgConnection,
    show: Uuid,
    now: Timestamp,
    limit: i64,
) -> sqlx::Result<Vec<ListEntry>> {
    let sql = entries!(
        "WHERE show_id = $1 AND (state = 'offering' OR (state = 'waiting' AND not_before <= $2)) ORDER BY place LIMIT $3"
    );
    sqlx::query_as(sql).bind_all((show, to_utc(now), limit)).fetch_all(connection).await
}

/// Returns offers that are planned and perhaps not held, in order. Bounded by the maximum of open offers.
pub(super) async fn offering(tx: &mut PgConnection, show: Uuid) -> sqlx::Result<Vec<ListEntry>> {
    let sql = entries!("WHERE show_id = $1 AND state = 'offering' ORDER BY place FOR UPDATE");
    sqlx::query_as(sql).bind(show).fetch_all(tx).await
}

/// Plans an offer for an entry; `false` when the entry has left the line.
pub(super) async fn plan_offer(
    tx: &mut PgConnection,
    entry: &ListEntry,
    number: i32,
    hold: Uuid,
    offer: &OfferedPlaces,
    now: Timestamp,
) -> sqlx::Result<bool> {
    let (seats, area) = match offer {
        OfferedPlaces::Seats(seats) => (seats.iter().map(|seat| seat.cast_signed()).collect(), None),
        OfferedPlaces::Places(places) => (Vec::new(), Some(places.area.cast_signed())),
    };
    let intended = sqlx::query(
        "UPDATE waiting_list
         SET state = 'offering', offer_number = $3, offer_hold = $4, offer_seats = $5, offer_area = $6,
             offer_until = NULL, mail_tries = 0, mail_after = $7, updated_at = $7
         WHERE id = $1 AND state = 'waiting' AND offer_number = $2",
    )
    .bind_all((entry.id, entry.offer_number, number, hold, seats, area, to_utc(now)))
    .execute(tx)
    .await?;
    Ok(intended.rows_affected() == 1)
}

pub(super) async fn offered(
    tx: &mut PgConnection,
    entry: &ListEntry,
    until: Timestamp,
    now: Timestamp,
) -> sqlx::Result<()> {
    let sql = "UPDATE waiting_list SET state = 'offered', offer_until = $3, updated_at = $4
               WHERE id = $1 AND state = 'offering' AND offer_number = $2";
    sqlx::query(sql).bind_all((entry.id, entry.offer_number, to_utc(until), to_utc(now))).execute(tx).await.map(drop)
}

/// Returns an entry to the line after its planned offer could not be held.
pub(super) async fn back_in_line(
    tx: &mut PgConnection,
    entry: &ListEntry,
    not_before: Timestamp,
    now: Timestamp,
) -> sqlx::Result<()> {
    let sql = "UPDATE waiting_list SET state = 'waiting', not_before = $3, updated_at = $4
               WHERE id = $1 AND state = 'offering' AND offer_number = $2";
    sqlx::query(sql).bind_all((entry.id, entry.offer_number, to_utc(not_before), to_utc(now))).execute(tx).await?;
    Ok(())
}

pub(super) async fn close_released_offer(pg: &PgPool, hold: Uuid, now: Timestamp) -> sqlx::Result<()> {
    let sql = "UPDATE waiting_list SET state = 'left', updated_at = $2 WHERE offer_hold = $1 AND state = 'offered'";
    sqlx::query(sql).bind_all((hold, to_utc(now))).execute(pg).await.map(drop)
}

/// Replaces the hold of an offer, the first id, by its renewal, the second, until `until`.
pub(super) async fn note_renewed(
    tx: &mut PgConnection,
    (hold, next): (Uuid, Uuid),
    until: Timestamp,
    now: Timestamp,
) -> sqlx::Result<()> {
    let sql = "UPDATE waiting_list SET offer_hold = $2, offer_until = $3, updated_at = $4
               WHERE offer_hold = $1 AND state = 'offered'";
    sqlx::query(sql).bind_all((hold, next, to_utc(until), to_utc(now))).execute(tx).await.map(drop)
}

/// Gives an offer to another owner, with its hold under this id. `false` when the entry has changed since it was read.
pub(super) async fn hand_over(
    tx: &mut PgConnection,
    entry: &ListEntry,
    hold: Uuid,
    owner: &str,
    now: Timestamp,
) -> sqlx::Result<bool> {
    let done = sqlx::query(
        "UPDATE waiting_list SET owner = $4, offer_hold = $5, updated_at = $6
         WHERE id = $1 AND state = 'offered' AND owner = $2 AND offer_hold = $3",
    )
    .bind_all((entry.id, &entry.owner, entry.offer_hold, owner, hold, to_utc(now)))
    .execute(tx)
    .await?;
    Ok(done.rows_affected() == 1)
}

pub(super) async fn note_taken(pg: &PgPool, now: Timestamp) -> sqlx::Result<u64> {
    let sql = "UPDATE waiting_list entry SET state = 'taken', updated_at = $1
               FROM bookings booking
               WHERE entry.state = 'offered' AND booking.hold_id = entry.offer_hold AND booking.state = 'CONFIRMED'";
    let done = sqlx::query(sql).bind(to_utc(now)).execute(pg).await?;
    Ok(done.rows_affected())
}

/// Marks expired offers as lapsed, unless they are being paid for.
pub(super) async fn note_lapsed(pg: &PgPool, now: Timestamp) -> sqlx::Result<u64> {
    let sql = "UPDATE waiting_list entry SET state = 'lapsed', updated_at = $1
               WHERE entry.state = 'offered' AND entry.offer_until <= $1
                 AND NOT EXISTS (SELECT 1 FROM bookings booking
                                 WHERE booking.hold_id = entry.offer_hold
                                   AND booking.state IN ('PAYMENT_PENDING', 'PAYMENT_SUCCEEDED', 'CONFIRMED'))";
    let done = sqlx::query(sql).bind(to_utc(now)).execute(pg).await?;
    Ok(done.rows_affected())
}

/// Leases the mail that has been due longest, until `lease_until`. Offers that ended are not mailed.
pub(super) async fn take_mail(pg: &PgPool, now: Timestamp, lease_until: Timestamp) -> sqlx::Result<Option<ListEntry>> {
    let sql = "UPDATE waiting_list entry SET mail_after = $2, mail_tries = entry.mail_tries + 1
         FROM (SELECT id FROM waiting_list
               WHERE state = 'offered' AND mailed < offer_number AND mail_after <= $1 AND offer_until > $1
               ORDER BY mail_after LIMIT 1 FOR UPDATE SKIP LOCKED) AS due
         WHERE entry.id = due.id
         RETURNING entry.id, entry.place, entry.show_id, entry.owner, entry.email, entry.quantity, entry.category,
                   entry.state, entry.offer_number, entry.offer_hold, entry.offer_seats, entry.offer_area,
                   entry.offer_until, entry.mail_tries, entry.joined_at";
    sqlx::query_as(sql).bind_all((to_utc(now), to_utc(lease_until))).fetch_optional(pg).await
}

pub(super) async fn note_mailed(pg: &PgPool, entry: &ListEntry) -> sqlx::Result<()> {
    let sql = "UPDATE waiting_list SET mailed = $2 WHERE id = $1 AND mailed < $2";
    sqlx::query(sql).bind_all((entry.id, entry.offer_number)).execute(pg).await.map(drop)
}

pub(super) async fn postpone_mail(pg: &PgPool, entry: &ListEntry, at: Timestamp) -> sqlx::Result<()> {
    let sql = "UPDATE waiting_list SET mail_after = $3 WHERE id = $1 AND offer_number = $2";
    sqlx::query(sql).bind_all((entry.id, entry.offer_number, to_utc(at))).execute(pg).await.map(drop)
}
