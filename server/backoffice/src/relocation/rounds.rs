//! Drives moves until they are done: on any replica, without a leader.
//!
//! While a move is *closing*, holds are released, checkouts are cancelled, and payments end or are stopped; then all
//! bookings are moved. Once it is *carried*, the lock store drops the show and rebuilds its map. Sales resume after
//! every replica has had time to load the new layout. Each round also ends offers whose deadline has passed. Mails are
//! sent by a separate worker ([`mails`](super::mails)).

use std::time::Duration;

use domain::time::{MINUTE_MS, SECOND_MS, Timestamp};
use uuid::Uuid;

use super::carry::{MoveAttempt, carry};
use super::sql::{self, MoveRow};
use crate::BackofficeState;
use http::ApiResult;
use platform::background::PeriodicLoop;
use platform::clock::from_utc;
use seats::seat_locks::{StoreError, with_map};
use selling::bookings::{self, Cause, undo_in_full};
use selling::outbox;

/// Interval of the rounds.
const ROUND_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum time for a running payment before it is stopped, milliseconds: as long as its hold was extended.
const SETTLE_MS: i64 = 2 * MINUTE_MS;
/// Delay between the move and the restart of sales, milliseconds: replicas poll for changes every second.
const REOPEN_DELAY_MS: i64 = 3 * SECOND_MS;
/// Maximum number of moves per round.
const MAX_MOVES: i64 = 100;
/// Bookings stopped per transaction.
const MAX_PER_BATCH: i64 = 64;

/// Runs until the server stops.
pub async fn work_forever(state: BackofficeState) {
    let mut rounds = PeriodicLoop::every(&state.stop, ROUND_INTERVAL);
    while rounds.wait_next().await {
        if let Err(problem) = round(&state).await {
            tracing::warn!(?problem, "a round of show moves failed");
        }
    }
}

/// Runs one round over all open moves.
///
/// # Errors
/// When the database fails. Errors of single moves are logged; the next round retries them.
pub async fn round(state: &BackofficeState) -> ApiResult<()> {
    for row in sql::open_moves(&state.pg, MAX_MOVES).await? {
        if let Err(problem) = advance_move(state, row.clone()).await {
            tracing::warn!(?problem, show = %row.show_id, "moving show {} failed; the next round retries", row.show_id);
        }
    }
    selling::bookings::end_due_seat_offers(state).await?;
    Ok(())
}

async fn advance_move(state: &BackofficeState, row: MoveRow) -> ApiResult<()> {
    if row.state == "closing" {
        release_holds(state, row.show_id).await;
        stop_unpaid(state, &row, state.clock.now()).await?;
        match carry(state, &row).await? {
            MoveAttempt::Done => outbox::wake(state),
            MoveAttempt::NotYet | MoveAttempt::Busy => return Ok(()),
            MoveAttempt::Dropped => {
                state.catalogue.evict(row.show_id).await;
                return Ok(());
            }
        }
    }
    rebuild_map(state, &row).await
}

/// Releases the holds of a show. Holds in payment stay until the payment has ended.
async fn release_holds(state: &BackofficeState, show: Uuid) {
    match state.locks.release_all(show).await {
        Ok(_) | Err(StoreError::NoMap(_)) => {}
        // The map is rebuilt later in any case, which ends the holds.
        Err(cause) => tracing::warn!(%cause, %show, "releasing the holds of show {show} failed; the new map ends them"),
    }
}

/// Cancels unpaid bookings: checkouts at once, payments after [`SETTLE_MS`].
async fn stop_unpaid(state: &BackofficeState, row: &MoveRow, now: Timestamp) -> ApiResult<()> {
    let is_settle_time_over = now.since(from_utc(row.requested_at)) > SETTLE_MS;
    let reason = format!("The show moves to {}. Nothing is lost: please choose again. {}", row.to_name, row.reason);
    loop {
        let mut tx = state.pg.begin().await?;
        let ids = sql::take_unpaid(&mut tx, row.show_id, is_settle_time_over, MAX_PER_BATCH).await?;
        for id in &ids {
            if let Some(booking) = bookings::lock(&mut tx, *id).await? {
                undo_in_full(&mut tx, &booking, Cause::of("staff", &reason), now).await?;
            }
        }
        tx.commit().await?;
        if ids.is_empty() {
            return Ok(());
        }
        outbox::wake(state);
    }
}

/// Rebuilds the map for the new layout, and resumes sales once every replica has loaded it.
async fn rebuild_map(state: &BackofficeState, row: &MoveRow) -> ApiResult<()> {
    let show = row.show_id;
    state.catalogue.evict(show).await;
    let now = state.clock.now();
    let mut tx = state.pg.begin().await?;
    // Under the lock: a slow replica must not delete holds that were made after the restart of sales.
    let Some(row) = sql::lock_move(&mut tx, row.id, "carried").await? else { return Ok(()) };
    state.locks.forget(show).await?;
    let is_known_everywhere = row.carried_at.is_some_and(|at| now.since(from_utc(at)) >= REOPEN_DELAY_MS);
    if is_known_everywhere {
        sql::requeue_offers(&mut tx, show, now).await?;
        sql::finish(&mut tx, &row, now).await?;
    }
    tx.commit().await?;
    if is_known_everywhere {
        state.catalogue.evict(show).await;
    }
    // Publishes the new map to all subscribers of the show.
    let known = state.catalogue.find_show(show).await?;
    with_map(state, &known, || state.locks.snapshot(show)).await?;
    Ok(())
}
