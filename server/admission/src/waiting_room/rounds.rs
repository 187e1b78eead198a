//! The background loop of waiting rooms on every replica: calls the next places, publishes the state of each room, and
//! records in Postgres what a rebuild needs.

use std::sync::Arc;
use std::time::Duration;

use domain::seats::SeatState;
use domain::time::Timestamp;
use domain::waiting_room::PASS_MS;
use futures::StreamExt;
use sqlx::PgPool;
use uuid::Uuid;

use super::room::ActiveRoom;
use super::sql;
use super::store;
use crate::AdmissionState;
use http::ApiResult;
use platform::background::PeriodicLoop;
use platform::clock::to_utc;
use platform::database::BindAll;
use seats::seat_locks::{MapSnapshot, with_map};

/// Period of the loop.
const CALL_EVERY: Duration = Duration::from_millis(250);
/// Rounds between two reads of the active rooms and of the unsold seats.
const ROUNDS_PER_RELOAD: u32 = 4;
/// Maximum rooms served concurrently.
const MAX_CONCURRENT: usize = 16;

/// Runs until the server stops.
pub async fn serve_forever(state: AdmissionState) {
    let mut rounds = PeriodicLoop::every(&state.stop, CALL_EVERY);
    for round in 0_u32.. {
        if !rounds.wait_next().await {
            return;
        }
        let is_reload_due = round.is_multiple_of(ROUNDS_PER_RELOAD);
        if is_reload_due && let Err(cause) = state.waiting_rooms.reload(&state.pg, state.clock.now()).await {
            // The known rooms stay in force: a failing database must not bypass a room.
            tracing::debug!(%cause, "read active waiting rooms failed");
        }
        let state = &state;
        futures::stream::iter(state.waiting_rooms.all())
            .for_each_concurrent(MAX_CONCURRENT, |room| async move {
                if let Err(problem) = one_round(state, &room, is_reload_due).await {
                    tracing::debug!(?problem, room = %room.id, "serve a waiting room failed");
                }
            })
            .await;
    }
}

async fn one_round(state: &AdmissionState, room: &Arc<ActiveRoom>, is_reload_due: bool) -> ApiResult<()> {
    let show = state.catalogue.find_show_or_rehearsal(room.show).await?;
    if catalogue::sales_open(&show, state.clock.now()).is_err() {
        return Ok(());
    }
    if is_reload_due && room.draw().is_some() {
        let snapshot = with_map(state, &show, || state.locks.snapshot(show.id)).await?;
        let since = state.clock.now().plus_ms(-PASS_MS);
        let (unsold_places, bought) = read_demand(&state.pg, show.id, since).await?;
        room.set_sale(unsold_seats(&snapshot) + unsold_places, bought);
    }
    let (from, numbers) = room.next_numbers();
    // Nothing is called while seats cannot be taken: before the sale begins, and while it is paused.
    let limit = if catalogue::on_sale(&show, state.clock.now()).is_ok() { room.inside_limit() } else { 0 };
    report_used(state, room).await?;
    let Some(status) = store::admit(state, room, limit, (from, &numbers)).await? else {
        room.used_tickets.forget();
        return store::rebuild(state, room).await;
    };
    room.set_status(status);
    // Places exist only after the number drawn is recorded: from then on it is final.
    if let (Some(people), None) = (status.drawn, room.people()) {
        match sql::record_drawn(&state.pg, room.id, people, status.now).await? {
            Some(people) => {
                room.set_drawn(people);
                tracing::info!(room = %room.id, people, "a waiting room has opened");
            }
            None => {
                room.apply_row(&sql::load_room(&state.pg, room.id).await?);
                store::close(state, room).await?;
                tracing::warn!(room = %room.id, "reverted the opening of a waiting room: it opens later");
            }
        }
    }
    state.hubs.publish_queue(room.show, room.queue());
    if is_reload_due {
        sql::record_progress(&state.pg, room.id, status.joined, status.called, status.inside).await?;
    }
    Ok(())
}

/// Reports used tickets to Redis, before places are called.
async fn report_used(state: &AdmissionState, room: &ActiveRoom) -> ApiResult<()> {
    loop {
        let numbers = room.used_tickets.take_pending();
        if numbers.is_empty() {
            return Ok(());
        }
        store::note_used(state, room, &numbers).await.inspect_err(|_| room.used_tickets.forget())?;
    }
}

/// Unsold seats, held ones included: their owners are inside.
fn unsold_seats(snapshot: &MapSnapshot) -> u64 {
    let is_unsold = |byte: &&u8| matches!(SeatState::from_byte(**byte), Some(SeatState::Available | SeatState::Locked));
    snapshot.map.iter().filter(is_unsold).count() as u64
}

/// Reads the unsold places of a sale's areas, held and claimed ones included, and how many bookings were confirmed since
/// the given time and still are.
async fn read_demand(pg: &PgPool, show: Uuid, since: Timestamp) -> sqlx::Result<(u64, u64)> {
    let sql = "SELECT (SELECT COALESCE(sum(capacity - sold), 0)::bigint FROM area_stock WHERE show_id = $1),
                      (SELECT count(*) FROM bookings
                       WHERE show_id = $1 AND NOT is_open AND state = 'CONFIRMED' AND updated_at >= $2)";
    let (unsold, bought): (i64, i64) = sqlx::query_as(sql).bind_all((show, to_utc(since))).fetch_one(pg).await?;
    Ok((unsold.unsigned_abs(), bought.unsigned_abs()))
}
