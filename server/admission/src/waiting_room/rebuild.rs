//! Building a room in Redis from what Postgres knows: at first touch, and whenever Redis forgot it.

use domain::waiting_room::PASS_MS;

use super::room::Room;
use super::{sql, store};
use crate::AdmissionState;
use http::Problem;

/// Builds the room unless somebody was faster. Numbers go on behind the mark.
pub(super) async fn rebuild(state: &AdmissionState, room: &Room) -> Result<(), Problem> {
    let row = sql::one(&state.pg, room.id).await?;
    room.learn(&row);
    let start = row.start(room.seen());
    if let Some(gap) = store::load(state, room, &start, PASS_MS).await?
        && start.first > 0
    {
        tracing::warn!(room = %room.id, ?start, ?gap, "Redis had forgotten a waiting room, or part of it");
        // Should we die here, places that are nobody's keep some room for two minutes each after the next loss.
        if !gap.is_empty() {
            sql::note_gap(&state.pg, room.id, gap).await?;
        }
    }
    Ok(())
}
