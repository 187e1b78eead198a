//! Builds a room in Redis from Postgres: at its first use, and after Redis lost it.

use domain::waiting_room::PASS_MS;

use super::room::ActiveRoom;
use super::{sql, store};
use crate::AdmissionState;
use http::Problem;

/// Builds the room, unless another replica has built it. Numbers continue after the mark.
pub(super) async fn rebuild(state: &AdmissionState, room: &ActiveRoom) -> Result<(), Problem> {
    let row = sql::load_room(&state.pg, room.id).await?;
    room.apply_row(&row);
    let start = row.start(room.seen());
    if let Some(gap) = store::load(state, room, &start, PASS_MS).await?
        && start.first > 0
    {
        tracing::warn!(room = %room.id, ?start, ?gap, "rebuilt a waiting room that Redis had lost, or a part of it");
        // A crash here leaves the gap unrecorded: after the next loss its places take room for two minutes each.
        if !gap.is_empty() {
            sql::record_gap(&state.pg, room.id, gap).await?;
        }
    }
    Ok(())
}
