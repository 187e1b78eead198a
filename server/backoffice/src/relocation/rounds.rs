//! Looks after moves until they are done: any replica, no leader.
//!
//! Three things happen in turn. While a move is *closing*, holds are let go, checkouts are cancelled, and payments end
//! or are stopped; then everybody is carried. Once it is *carried*, the lock store forgets the show and builds its map
//! anew from what was written; sales go on when every replica had time to hear of the other room. And day in, day
//! out: buyers whose time to answer is over. Mails go out beside it ([`mails`](super::mails)).

use std::time::Duration;

use domain::time::{MINUTE_MS, SECOND_MS, Timestamp};
use uuid::Uuid;

use super::carry::{Carried, carry};
use super::sql::{self, MoveRow};
use crate::BackofficeState;
use http::Problem;
use platform::background::Rounds;
use platform::clock::from_utc;
use seats::seat_locks::{StoreError, with_map};
use selling::bookings::{self, Cause, undo_in_full};
use selling::outbox;

/// How often replicas look.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// A payment that was begun may take so long before it is stopped, milliseconds: as long as its hold was extended.
const SETTLE_MS: i64 = 2 * MINUTE_MS;
/// Sales go on so long after everybody was carried, milliseconds: replicas look for changes every second.
const HEARD_MS: i64 = 3 * SECOND_MS;
/// Moves looked after in one round.
const MAX_MOVES: i64 = 100;
/// Bookings stopped in one transaction.
const MAX_PER_BATCH: i64 = 64;

/// Runs until the server stops.
pub async fn work_forever(state: BackofficeState) {
    let mut rounds = Rounds::every(&state.stop, LOOK_EVERY);
    while rounds.go_on().await {
        if let Err(problem) = round(&state).await {
            tracing::warn!(?problem, "shows that move could not be looked after");
        }
    }
}

/// One round over all of them.
///
/// # Errors
/// When the database fails. Troubles of single moves are logged, and the next round tries again.
pub async fn round(state: &BackofficeState) -> Result<(), Problem> {
    for row in sql::open_moves(&state.pg, MAX_MOVES).await? {
        if let Err(problem) = look_after(state, row.clone()).await {
            tracing::warn!(?problem, show = %row.show_id, "show {} is not moved yet", row.show_id);
        }
    }
    selling::bookings::end_due_seat_offers(state).await?;
    Ok(())
}

async fn look_after(state: &BackofficeState, row: MoveRow) -> Result<(), Problem> {
    if row.state == "closing" {
        let_go(state, row.show_id).await;
        stop_unpaid(state, &row, state.clock.now()).await?;
        match carry(state, &row).await? {
            Carried::Done => outbox::wake(state),
            Carried::NotYet | Carried::Busy => return Ok(()),
            Carried::Dropped => {
                state.catalogue.forget(row.show_id).await;
                return Ok(());
            }
        }
    }
    open_again(state, &row).await
}

/// People who are choosing see their seats go. Those who pay keep theirs until that ended.
async fn let_go(state: &BackofficeState, show: Uuid) {
    match state.locks.release_all(show).await {
        Ok(_) | Err(StoreError::NoMap(_)) => {}
        // The map is built anew in any case: they end with it.
        Err(cause) => tracing::warn!(%cause, %show, "holds of show {show} end when it has moved"),
    }
}

/// Stops what is not paid: checkouts at once, payments that take too long.
async fn stop_unpaid(state: &BackofficeState, row: &MoveRow, now: Timestamp) -> Result<(), Problem> {
    let is_patience_over = now.since(from_utc(row.requested_at)) > SETTLE_MS;
    let reason = format!("The show moves to {}. Nothing is lost: please choose again. {}", row.to_name, row.reason);
    loop {
        let mut tx = state.pg.begin().await?;
        let ids = sql::take_unpaid(&mut tx, row.show_id, is_patience_over, MAX_PER_BATCH).await?;
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

/// The map of the other room, and sales as before once everybody knows it.
async fn open_again(state: &BackofficeState, row: &MoveRow) -> Result<(), Problem> {
    let show = row.show_id;
    state.catalogue.forget(show).await;
    let now = state.clock.now();
    let mut tx = state.pg.begin().await?;
    // Under the lock: a replica that is slow must not forget the holds of those who choose again already.
    let Some(row) = sql::lock_move(&mut tx, row.id, "carried").await? else { return Ok(()) };
    state.locks.forget(show).await?;
    let is_heard = row.carried_at.is_some_and(|at| now.since(from_utc(at)) >= HEARD_MS);
    if is_heard {
        sql::put_back_in_line(&mut tx, show, now).await?;
        sql::finish(&mut tx, &row, now).await?;
    }
    tx.commit().await?;
    if is_heard {
        state.catalogue.forget(show).await;
    }
    // This tells everyone who is looking at the show that there is another map.
    let known = state.catalogue.known_show(show).await?;
    with_map(state, &known, || state.locks.snapshot(show)).await?;
    Ok(())
}
