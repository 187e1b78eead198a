//! What every replica does for waiting rooms: calls the next places, tells everybody how the room stands, and writes
//! down what it would be built again from.

use std::sync::Arc;
use std::time::Duration;

use domain::seats::SeatState;
use domain::waiting_room::inside_limit;
use futures::StreamExt;

use super::door::CLAIM_MS;
use super::room::Room;
use super::{rebuild, sql, store};
use crate::AppState;
use crate::catalogue::Show;
use crate::holds;
use crate::seat_locks::{MapSnapshot, with_map};
use crate::web::Problem;

/// How often places are called.
const CALL_EVERY: Duration = Duration::from_millis(250);
/// Which rooms are on and how many seats are left is looked at in one round of so many.
const LOOK_EVERY: u32 = 4;
/// Rooms served side by side.
const AT_ONCE: usize = 16;

/// Runs until the server stops.
pub async fn serve_forever(state: AppState) {
    let mut tick = tokio::time::interval(CALL_EVERY);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    for round in 0_u32.. {
        tokio::select! {
            () = state.stop.cancelled() => return,
            _ = tick.tick() => {}
        }
        let looks = round.is_multiple_of(LOOK_EVERY);
        if looks && let Err(cause) = state.waiting_rooms.reload(&state.pg, state.locks.now()).await {
            // With what is known: nobody gets past a room because the database rests.
            tracing::debug!(%cause, "which waiting rooms are on could not be read");
        }
        let state = &state;
        futures::stream::iter(state.waiting_rooms.all())
            .for_each_concurrent(AT_ONCE, |room| async move {
                if let Err(problem) = one_round(state, &room, looks).await {
                    tracing::debug!(?problem, room = %room.id, "a waiting room could not be served");
                }
            })
            .await;
    }
}

async fn one_round(state: &AppState, room: &Arc<Room>, looks: bool) -> Result<(), Problem> {
    let show = state.catalogue.known_show(room.show).await?;
    if holds::sales_open(&show, state.locks.now()).is_err() {
        return Ok(());
    }
    if looks && room.draw().is_some() {
        let snapshot = with_map(state, &show, || state.locks.snapshot(show.id)).await?;
        room.note_unsold(unsold(&show, &snapshot));
    }
    let (from, numbers) = room.next_numbers();
    let limit = inside_limit(room.unsold());
    let Some(stands) = store::admit(state, room, limit, CLAIM_MS, (from, &numbers)).await? else {
        return rebuild::rebuild(state, room).await;
    };
    room.note_stands(stands);
    // Nobody has a place before it is written down how many are drawn: then nothing can change it any more.
    if let (Some(people), None) = (stands.drawn, room.people()) {
        let people = sql::seal(&state.pg, room.id, people).await?;
        room.set_drawn(people);
        tracing::info!(room = %room.id, people, "a waiting room has opened");
    }
    state.hubs.tell_queue(room.show, room.queue());
    if looks {
        sql::note(&state.pg, room.id, stands.joined, stands.called, stands.inside).await?;
    }
    Ok(())
}

/// Seats and places nobody has bought, held ones included: who holds them is inside.
fn unsold(show: &Show, snapshot: &MapSnapshot) -> u64 {
    let is_unsold = |byte: &&u8| matches!(SeatState::from_byte(**byte), Some(SeatState::Available | SeatState::Locked));
    let seats = snapshot.map.iter().filter(is_unsold).count() as u64;
    let places: u64 =
        snapshot.areas.iter().filter(|(area, _)| show.area(*area).is_some()).map(|(_, left)| u64::from(*left)).sum();
    seats + places
}
