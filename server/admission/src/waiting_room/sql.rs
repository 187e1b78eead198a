//! Queries of `waiting_rooms`.

use std::ops::Range;

use chrono::{DateTime, Utc};
use domain::time::Timestamp;
use domain::waiting_room::draw::KEY_BYTES;
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use super::store::{RebuildStart, format_gaps, parse_gaps};
use platform::clock::{from_utc, to_utc};
use platform::database::BindAll;

/// A room that is on.
#[derive(Clone, Debug, platform::FromRow)]
pub(super) struct RoomRow {
    pub(super) id: Uuid,
    pub(super) show_id: Uuid,
    pub(super) opens_at: DateTime<Utc>,
    pub(super) per_second: i32,
    draw_key: Vec<u8>,
    drawn: Option<i64>,
    reserved: i64,
    joined: i64,
    called: i64,
    inside: i64,
    gaps: String,
}

impl RoomRow {
    pub(super) fn key(&self) -> sqlx::Result<[u8; KEY_BYTES]> {
        let key = self.draw_key.as_slice().try_into();
        key.map_err(|_| sqlx::Error::Decode(format!("waiting_rooms.draw_key of {} is no key", self.id).into()))
    }

    /// The number drawn, once recorded.
    pub(super) fn drawn(&self) -> Option<u64> {
        self.drawn.map(i64::unsigned_abs)
    }

    /// The mark: no number from here on may be given out.
    pub(super) const fn reserved(&self) -> u64 {
        self.reserved.unsigned_abs()
    }

    /// No number below is free.
    pub(super) const fn joined(&self) -> u64 {
        self.joined.unsigned_abs()
    }

    /// Places called, up to a second old.
    pub(super) const fn called(&self) -> u64 {
        self.called.unsigned_abs()
    }

    /// People inside, up to a second old.
    pub(super) const fn inside(&self) -> u64 {
        self.inside.unsigned_abs()
    }

    /// The start of a rebuilt room; `seen` is the last number seen to be free.
    pub(super) fn start(&self, seen: u64) -> RebuildStart {
        RebuildStart {
            first: self.reserved(),
            gaps: parse_gaps(&self.gaps),
            seen: seen.max(self.joined()),
            drawn: self.drawn(),
            called: self.called(),
            inside: self.inside(),
        }
    }
}

macro_rules! rooms {
    ($rest:literal) => {
        concat!(
            "SELECT room.id, room.show_id, room.opens_at, room.per_second, room.draw_key, room.drawn,
                    room.reserved, room.joined, room.called, room.inside, room.gaps
             FROM waiting_rooms room ",
            $rest
        )
    };
}

/// Rooms that are on, of shows that have not begun and of rehearsals, which have no row in `shows`.
pub(super) async fn load_active(pg: &PgPool, now: Timestamp, limit: i64) -> sqlx::Result<Vec<RoomRow>> {
    let sql = rooms!(
        "LEFT JOIN shows show ON show.id = room.show_id
         WHERE room.switched_off_at IS NULL AND (show.id IS NULL OR show.starts_at > $1)
         ORDER BY room.opens_at LIMIT $2"
    );
    sqlx::query_as(sql).bind_all((to_utc(now), limit)).fetch_all(pg).await
}

/// A room, active or not.
pub(super) async fn load_room(pg: &PgPool, room: Uuid) -> sqlx::Result<RoomRow> {
    sqlx::query_as(rooms!("WHERE room.id = $1")).bind(room).fetch_one(pg).await
}

pub(super) async fn of_show(pg: &PgPool, show: Uuid) -> sqlx::Result<Option<RoomRow>> {
    let sql = rooms!("WHERE room.show_id = $1 AND room.switched_off_at IS NULL");
    sqlx::query_as(sql).bind(show).fetch_optional(pg).await
}

/// True if a room of a published show, not called off, opens between these times. Rooms of rehearsals have no row in `shows`.
pub(super) async fn opens_between(
    connection: &mut PgConnection,
    after: Timestamp,
    before: Timestamp,
) -> sqlx::Result<bool> {
    let sql = "SELECT EXISTS (SELECT FROM waiting_rooms room JOIN shows show ON show.id = room.show_id
                              WHERE room.switched_off_at IS NULL AND room.opens_at > $1 AND room.opens_at < $2
                                AND NOT show.called_off AND show.sales <> 'planned')";
    sqlx::query_scalar(sql).bind_all((to_utc(after), to_utc(before))).fetch_one(connection).await
}

/// The opening of the active room of a show.
pub(super) async fn opening_of(connection: &mut PgConnection, show: Uuid) -> sqlx::Result<Option<Timestamp>> {
    let sql = "SELECT opens_at FROM waiting_rooms WHERE show_id = $1 AND switched_off_at IS NULL";
    let opens_at: Option<DateTime<Utc>> = sqlx::query_scalar(sql).bind(show).fetch_optional(connection).await?;
    Ok(opens_at.map(from_utc))
}

/// The start of a show, locked until the transaction ends: a draft does not move meanwhile.
pub(super) async fn lock_start(tx: &mut PgConnection, show: Uuid) -> sqlx::Result<Option<Timestamp>> {
    let sql = "SELECT starts_at FROM shows WHERE id = $1 FOR KEY SHARE";
    let starts_at: Option<DateTime<Utc>> = sqlx::query_scalar(sql).bind(show).fetch_optional(tx).await?;
    Ok(starts_at.map(from_utc))
}

/// The active room of a show, locked until the transaction ends.
pub(super) async fn lock_of_show(tx: &mut PgConnection, show: Uuid) -> sqlx::Result<Option<RoomRow>> {
    let sql = rooms!("WHERE room.show_id = $1 AND room.switched_off_at IS NULL FOR UPDATE");
    sqlx::query_as(sql).bind(show).fetch_optional(tx).await
}

/// Raises the mark to at least `upto`; returns the mark.
pub(super) async fn reserve(pg: &PgPool, room: Uuid, upto: u64) -> sqlx::Result<u64> {
    let sql = "UPDATE waiting_rooms SET reserved = GREATEST(reserved, $2) WHERE id = $1 RETURNING reserved";
    let mark: i64 = sqlx::query_scalar(sql).bind_all((room, stored(upto))).fetch_one(pg).await?;
    Ok(mark.unsigned_abs())
}

/// Records the number drawn, unless it is recorded. Returns the recorded number; `None` before the opening: the caller
/// may not know a later opening time. `now` is Redis' time, which decides when a room opens.
pub(super) async fn record_drawn(pg: &PgPool, room: Uuid, people: u64, now: Timestamp) -> sqlx::Result<Option<u64>> {
    let sql = "UPDATE waiting_rooms SET drawn = COALESCE(drawn, $2), reserved = GREATEST(reserved, COALESCE(drawn, $2))
               WHERE id = $1 AND (drawn IS NOT NULL OR opens_at <= $3) RETURNING drawn";
    let drawn: Option<i64> =
        sqlx::query_scalar(sql).bind_all((room, stored(people), to_utc(now))).fetch_optional(pg).await?;
    Ok(drawn.map(i64::unsigned_abs))
}

/// Records the progress of a room, for a rebuild.
pub(super) async fn record_progress(
    pg: &PgPool,
    room: Uuid,
    joined: u64,
    called: u64,
    inside: u64,
) -> sqlx::Result<()> {
    let sql = "UPDATE waiting_rooms
               SET joined = GREATEST(joined, $2), called = GREATEST(called, $3), inside = $4
               WHERE id = $1 AND (joined < $2 OR called < $3 OR inside <> $4)";
    sqlx::query(sql).bind_all((room, stored(joined), stored(called), stored(inside))).execute(pg).await.map(drop)
}

/// Records a gap of lost numbers.
pub(super) async fn record_gap(pg: &PgPool, room: Uuid, gap: Range<u64>) -> sqlx::Result<()> {
    let sql = "UPDATE waiting_rooms SET gaps = concat_ws(',', NULLIF(gaps, ''), $2) WHERE id = $1";
    sqlx::query(sql).bind_all((room, format_gaps(&[gap]))).execute(pg).await.map(drop)
}

/// Switches a room on, unless the show has an active one.
pub(super) async fn insert(
    tx: &mut PgConnection,
    (room, show): (Uuid, Uuid),
    opens_at: Timestamp,
    per_second: u32,
    key: &[u8; KEY_BYTES],
    now: Timestamp,
) -> sqlx::Result<bool> {
    let done = sqlx::query(
        "INSERT INTO waiting_rooms (id, show_id, opens_at, per_second, draw_key, switched_on_at)
         VALUES ($1, $2, $3, $4, $5, $6)
         ON CONFLICT (show_id) WHERE switched_off_at IS NULL DO NOTHING",
    )
    .bind_all((room, show, to_utc(opens_at), per_second.cast_signed(), &key[..], to_utc(now)))
    .execute(tx)
    .await?;
    Ok(done.rows_affected() == 1)
}

pub(super) async fn change(
    tx: &mut PgConnection,
    room: Uuid,
    opens_at: Timestamp,
    per_second: u32,
) -> sqlx::Result<()> {
    let sql = "UPDATE waiting_rooms SET opens_at = $2, per_second = $3
               WHERE id = $1 AND switched_off_at IS NULL AND (drawn IS NULL OR opens_at = $2)";
    sqlx::query(sql).bind_all((room, to_utc(opens_at), per_second.cast_signed())).execute(tx).await.map(drop)
}

/// Switches a room off, finally.
pub(super) async fn switch_off(tx: &mut PgConnection, room: Uuid, now: Timestamp) -> sqlx::Result<()> {
    let sql = "UPDATE waiting_rooms SET switched_off_at = $2 WHERE id = $1 AND switched_off_at IS NULL";
    sqlx::query(sql).bind_all((room, to_utc(now))).execute(tx).await.map(drop)
}

/// Deletes the rooms of a rehearsal.
pub(super) async fn delete_of(tx: &mut PgConnection, rehearsal: Uuid) -> sqlx::Result<()> {
    sqlx::query("DELETE FROM waiting_rooms WHERE show_id = $1").bind(rehearsal).execute(tx).await.map(drop)
}

/// Converts a number of people, which is far below 2^63.
fn stored(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
