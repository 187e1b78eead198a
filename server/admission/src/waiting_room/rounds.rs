//! What every replica does for waiting rooms: calls the next places, tells everybody how the room stands, and writes
//! down what it would be built again from.

use std::sync::Arc;
use std::time::Duration;

use domain::seats::SeatState;
use domain::waiting_room::PASS_MS;
use futures::StreamExt;

use super::demand::read_demand;
use super::entry::{CLAIM_MS, UNUSED_CLAIM_MS};
use super::room::Room;
use super::store::Claim;
use super::{rebuild, sql, store};
use crate::AdmissionState;
use http::Problem;
use platform::background::Rounds;
use seats::seat_locks::{MapSnapshot, with_map};

/// How often places are called.
const CALL_EVERY: Duration = Duration::from_millis(250);
/// Which rooms are on and how many seats are left is looked at in one round of so many.
const LOOK_EVERY: u32 = 4;
/// Rooms served side by side.
const AT_ONCE: usize = 16;

/// Runs until the server stops.
pub async fn serve_forever(state: AdmissionState) {
    let mut rounds = Rounds::every(&state.stop, CALL_EVERY);
    for round in 0_u32.. {
        if !rounds.go_on().await {
            return;
        }
        let looks = round.is_multiple_of(LOOK_EVERY);
        if looks && let Err(cause) = state.waiting_rooms.reload(&state.pg, state.clock.now()).await {
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

async fn one_round(state: &AdmissionState, room: &Arc<Room>, looks: bool) -> Result<(), Problem> {
    let show = state.catalogue.known_show(room.show).await?;
    if catalogue::sales_open(&show, state.clock.now()).is_err() {
        return Ok(());
    }
    if looks && room.draw().is_some() {
        let snapshot = with_map(state, &show, || state.locks.snapshot(show.id)).await?;
        let since = state.clock.now().plus_ms(-PASS_MS);
        let selling = read_demand(&state.pg, show.id, since).await?;
        room.note_sale(unsold_seats(&snapshot) + selling.unsold_places(), selling.bought());
    }
    let (from, numbers) = room.next_numbers();
    // Nobody is called to seats they cannot take: before the sale begins, and while it is paused.
    let limit = if catalogue::on_sale(&show, state.clock.now()).is_ok() { room.inside_limit() } else { 0 };
    report_used(state, room).await?;
    let claim = Claim { used_ms: CLAIM_MS, unused_ms: UNUSED_CLAIM_MS };
    let Some(stands) = store::admit(state, room, limit, claim, (from, &numbers)).await? else {
        room.used_tickets.forget();
        return rebuild::rebuild(state, room).await;
    };
    room.note_stands(stands);
    // Nobody has a place before it is written down how many are drawn: then nothing can change it any more.
    if let (Some(people), None) = (stands.drawn, room.people()) {
        match sql::seal(&state.pg, room.id, people, stands.now).await? {
            Some(people) => {
                room.set_drawn(people);
                tracing::info!(room = %room.id, people, "a waiting room has opened");
            }
            None => {
                room.learn(&sql::one(&state.pg, room.id).await?);
                store::close(state, room).await?;
                tracing::warn!(room = %room.id, "a server took a waiting room for open that opens later");
            }
        }
    }
    state.hubs.tell_queue(room.show, room.queue());
    if looks {
        sql::note(&state.pg, room.id, stands.joined, stands.called, stands.inside).await?;
    }
    Ok(())
}

/// Reports which tickets are in use, before places are called.
async fn report_used(state: &AdmissionState, room: &Room) -> Result<(), Problem> {
    loop {
        let numbers = room.used_tickets.take_pending();
        if numbers.is_empty() {
            return Ok(());
        }
        store::note_used(state, room, &numbers).await.inspect_err(|_| room.used_tickets.forget())?;
    }
}

/// Seats nobody has bought, held ones included: who holds them is inside.
fn unsold_seats(snapshot: &MapSnapshot) -> u64 {
    let is_unsold = |byte: &&u8| matches!(SeatState::from_byte(**byte), Some(SeatState::Available | SeatState::Locked));
    snapshot.map.iter().filter(is_unsold).count() as u64
}
