//! The state of a show's room, for staff who control it.

use domain::api::waiting_room::DrawView;
use domain::time::Timestamp;
use domain::waiting_room::WaitingRoomStatus;
use domain::waiting_room::draw::{METHOD, commitment};
use uuid::Uuid;

use super::{sql, switch};
use crate::AdmissionState;
use http::Problem;
use platform::clock::from_utc;

/// An active room, for its staff.
#[derive(Clone, Debug, PartialEq)]
pub struct Overview {
    /// When it opens.
    pub opens_at: Timestamp,
    /// True if the opening cannot change: it has opened, or is about to.
    pub is_settled: bool,
    /// Its public state.
    pub queue: WaitingRoomStatus,
    /// People inside, and called ones whose time to enter has not ended.
    pub inside: u64,
    /// The maximum of people inside; `None` before it has opened.
    pub limit: Option<u64>,
    /// The published part of its draw.
    pub draw: DrawView,
    /// The version of the room for optimistic locking; a change must name it (`switch`).
    pub seen: String,
}

/// The active room of a show. Settings come from Postgres: every replica returns the latest ones. Figures come from
/// this replica if it knows the room, otherwise from the record in Postgres, which is about a second old.
pub async fn overview(state: &AdmissionState, show: Uuid) -> Result<Option<Overview>, Problem> {
    let Some(row) = sql::of_show(&state.pg, show).await? else { return Ok(None) };
    let (key, people) = (row.key()?, row.drawn());
    let per_second = row.per_second.unsigned_abs();
    let heard = state.waiting_rooms.of(show).filter(|room| room.id == row.id);
    let status = heard.as_ref().and_then(|room| Some((room.queue(), room.status()?.inside)));
    let (queue, inside) = status.unwrap_or_else(|| {
        let noted = WaitingRoomStatus { joined: row.joined(), called: row.called(), ..WaitingRoomStatus::default() };
        (noted, row.inside())
    });
    Ok(Some(Overview {
        opens_at: from_utc(row.opens_at),
        is_settled: switch::is_settled(&row, state.clock.now()),
        queue: WaitingRoomStatus { is_open: people.is_some(), per_second, ..queue },
        inside,
        limit: heard.and_then(|room| room.known_limit()),
        draw: DrawView {
            method: METHOD.to_owned(),
            commitment: hex::encode(commitment(&key)),
            people,
            // Published once the number drawn is recorded, and not before.
            key: people.map(|_| hex::encode(key)),
        },
        seen: switch::version_of(Some(&row)),
    }))
}
