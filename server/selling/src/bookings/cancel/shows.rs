//! Calls shows off: sales stop, holds are released, every booking is undone in full.
//!
//! First the show is locked against writers of its bookings, and marked, in one transaction with the row that keeps
//! the progress. The lock waits for bookings that are being written, whose foreign key has the show locked; later
//! ones wait for the mark, and triggers refuse them (`migrations/0006_selling.sql`). Replicas read the mark within a
//! second. Batches start after the mark was committed, so they see every booking that was submitted before; a booking
//! that is being paid just then is locked, skipped, and found by the next batch. A batch reports that none is left
//! only while it has the show's lock once more: where sales never pause, the mark is set without it. A payment that
//! is settled all the same is refunded (`moves::settle`). If a server dies half way, the row stays open, and any
//! replica continues.

use std::time::Duration;

use domain::time::{SECOND_MS, Timestamp};
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use super::{Canceller, undo};
use crate::bookings::moves::{Cause, MoveError};
use crate::bookings::sql;
use crate::{SellingState, outbox};
use http::{ApiResult, Problem};
use identity::accounts::reason_of;
use platform::background::PeriodicLoop;
use platform::clock::to_utc;
use platform::database::BindAll;
use seats::seat_locks::StoreError;

/// Bookings undone in one transaction.
const MAX_PER_BATCH: i64 = 64;
/// Interval in which replicas look for called-off shows, and so the maximum delay until they stop selling.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Minimum time before a called-off show is finished, milliseconds: until then a replica may
/// have granted a hold before it read the mark.
const MIN_OPEN_MS: i64 = 5 * SECOND_MS;
/// Period in which replicas are notified of a called-off show, milliseconds: longer than the catalogue
/// caches a show.
const NOTIFY_PERIOD_MS: i64 = 900 * SECOND_MS;
/// Shows processed in one round.
const MAX_SHOWS: i64 = 1_000;

/// The result of one batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallOffProgress {
    /// The number of bookings in the batch; there may be more.
    Cancelled(usize),
    /// Another replica works on the show, or has locked the remaining bookings, or a booking is being written.
    Busy,
    /// No booking is left.
    NoneLeft,
}

/// Calls a show off; `false` when it was called off already. [`undo_batch`] undoes the bookings, here or on any
/// replica.
///
/// # Errors
/// 404 when there is no such show, 400 when the reason is invalid.
pub async fn call_off(pg: &PgPool, show: Uuid, reason: &str, now: Timestamp) -> ApiResult<bool> {
    let mut tx = pg.begin().await?;
    let is_first = call_off_in(&mut tx, show, reason, now).await?;
    tx.commit().await?;
    Ok(is_first)
}

/// Calls a show off in the caller's transaction.
///
/// # Errors
/// As [`call_off`].
pub async fn call_off_in(tx: &mut PgConnection, show: Uuid, reason: &str, now: Timestamp) -> ApiResult<bool> {
    let reason = reason_of(reason)?;
    sql::lock_show_before_mark(tx, show).await?;
    let marked = sqlx::query("UPDATE shows SET called_off = true WHERE id = $1").bind(show).execute(&mut *tx).await?;
    if marked.rows_affected() == 0 {
        return Err(Problem::not_found("show"));
    }
    let first = sqlx::query(
        "INSERT INTO show_cancellations (show_id, reason, requested_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
    )
    .bind_all((show, reason, to_utc(now)))
    .execute(tx)
    .await?;
    Ok(first.rows_affected() == 1)
}

/// Undoes some of the bookings of a show that was called off.
///
/// # Errors
/// When the database fails; then nothing of this batch is committed.
pub async fn undo_batch(pg: &PgPool, show: Uuid, now: Timestamp) -> ApiResult<CallOffProgress> {
    let mut tx = pg.begin().await?;
    // The show-level lock: one batch of a show at a time, on any replica.
    let sql = "SELECT reason FROM show_cancellations WHERE show_id = $1 FOR UPDATE SKIP LOCKED";
    let reason: Option<String> = sqlx::query_scalar(sql).bind(show).fetch_optional(&mut *tx).await?;
    let Some(reason) = reason else { return Ok(CallOffProgress::Busy) };
    let ids = lock_next_bookings(&mut tx, show).await?;
    if ids.is_empty() {
        // In this order: a booking that began before the mark is committed once this has the lock, and the search sees
        // it.
        let is_finished = try_lock_show(&mut tx, show).await? && !has_bookings_left(&mut tx, show).await?;
        // A dropped transaction ends later, in the background: until then the next batch would find the show locked.
        tx.rollback().await?;
        return Ok(if is_finished { CallOffProgress::NoneLeft } else { CallOffProgress::Busy });
    }
    let words = format!("The show will not take place. {reason}");
    let mut undone = 0;
    for id in &ids {
        let Some(row) = sql::lock(&mut tx, *id).await? else { continue };
        match undo(&mut tx, &row, Canceller::Staff, Cause { actor: "staff", reason: &words }, now).await {
            Ok(_) => undone += 1,
            Err(MoveError::Refused(why)) => {
                tracing::warn!(booking = %row.id, %why, "cancel a booking of a called-off show failed");
            }
            Err(error) => return Err(super::cancellation_problem(error)),
        }
    }
    let sql = "UPDATE show_cancellations SET cancelled = cancelled + $2 WHERE show_id = $1";
    sqlx::query(sql).bind_all((show, undone)).execute(&mut *tx).await?;
    tx.commit().await?;
    Ok(CallOffProgress::Cancelled(ids.len()))
}

/// Locks bookings that are to be undone, skipping those that other transactions have locked: waiting for
/// them while holding locks could deadlock.
async fn lock_next_bookings(tx: &mut PgConnection, show: Uuid) -> sqlx::Result<Vec<Uuid>> {
    let sql = "SELECT id FROM bookings
               WHERE show_id = $1 AND is_open AND state IN ('SEATS_LOCKED', 'PAYMENT_PENDING', 'PAYMENT_SUCCEEDED')
               LIMIT $2 FOR UPDATE SKIP LOCKED";
    let mut ids: Vec<Uuid> = sqlx::query_scalar(sql).bind_all((show, MAX_PER_BATCH)).fetch_all(&mut *tx).await?;
    if (ids.len() as i64) < MAX_PER_BATCH {
        let sold: Vec<Uuid> = sqlx::query_scalar(
            "SELECT id FROM bookings WHERE show_id = $1 AND NOT is_open AND state = 'CONFIRMED' LIMIT $2 FOR UPDATE SKIP LOCKED",
        )
        .bind_all((show, MAX_PER_BATCH - ids.len() as i64))
        .fetch_all(tx)
        .await?;
        ids.extend(sold);
    }
    Ok(ids)
}

/// Locks the show unless a transaction is writing a booking of it: the booking's foreign key has it locked then. True
/// if the lock was taken.
async fn try_lock_show(tx: &mut PgConnection, show: Uuid) -> sqlx::Result<bool> {
    let sql = "SELECT 1 FROM shows WHERE id = $1 FOR UPDATE SKIP LOCKED";
    let locked: Option<i32> = sqlx::query_scalar(sql).bind(show).fetch_optional(tx).await?;
    Ok(locked.is_some())
}

async fn has_bookings_left(tx: &mut PgConnection, show: Uuid) -> sqlx::Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM bookings WHERE show_id = $1 AND NOT is_open AND state = 'CONFIRMED')
                   OR EXISTS (SELECT 1 FROM bookings WHERE show_id = $1 AND is_open
                              AND state IN ('SEATS_LOCKED', 'PAYMENT_PENDING', 'PAYMENT_SUCCEEDED'))";
    sqlx::query_scalar(sql).bind(show).fetch_one(tx).await
}

/// Undoes the bookings of called-off shows, until the server stops: any replica, no leader.
pub async fn cancel_shows_forever(state: SellingState) {
    let mut rounds = PeriodicLoop::every(&state.stop, LOOK_EVERY);
    while rounds.wait_next().await {
        if let Err(problem) = one_round(&state).await {
            tracing::warn!(?problem, "read called-off shows failed");
        }
    }
}

async fn one_round(state: &SellingState) -> ApiResult<()> {
    let now = state.clock.now();
    let sql = "SELECT show_id, finished_at IS NULL FROM show_cancellations
               WHERE finished_at IS NULL OR requested_at > $1 ORDER BY requested_at LIMIT $2";
    let shows: Vec<(Uuid, bool)> =
        sqlx::query_as(sql).bind_all((to_utc(now.plus_ms(-NOTIFY_PERIOD_MS)), MAX_SHOWS)).fetch_all(&state.pg).await?;
    for (show, is_open) in shows {
        state.catalogue.call_off(show).await;
        if is_open && let Err(problem) = cancel_bookings_of_show(state, show, now).await {
            tracing::warn!(?problem, %show, "cancel the bookings of show {show} failed; it is retried");
        }
    }
    Ok(())
}

async fn cancel_bookings_of_show(state: &SellingState, show: Uuid, now: Timestamp) -> ApiResult<()> {
    // The map shows the seats as released to people who are choosing; seats being paid for follow with their bookings.
    match state.locks.release_all(show).await {
        // No seat of it was ever held.
        Ok(_) | Err(StoreError::NoMap(_)) => {
            sqlx::query(
                "UPDATE show_cancellations SET holds_released_at = $2 WHERE show_id = $1 AND holds_released_at IS NULL",
            )
            .bind_all((show, to_utc(now)))
            .execute(&state.pg)
            .await?;
        }
        Err(cause) => tracing::warn!(%cause, %show, "release the holds of show {show} failed; they expire"),
    }
    loop {
        match undo_batch(&state.pg, show, state.clock.now()).await? {
            CallOffProgress::Cancelled(_) => outbox::wake(state),
            CallOffProgress::Busy => return Ok(()),
            CallOffProgress::NoneLeft => break,
        }
        if state.stop.is_cancelled() {
            return Ok(());
        }
    }
    let sql = "UPDATE show_cancellations SET finished_at = $2
               WHERE show_id = $1 AND finished_at IS NULL AND holds_released_at IS NOT NULL AND requested_at <= $3";
    sqlx::query(sql).bind_all((show, to_utc(now), to_utc(now.plus_ms(-MIN_OPEN_MS)))).execute(&state.pg).await?;
    Ok(())
}
