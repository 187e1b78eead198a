//! How the room of a show stands, for those who decide about it.

use domain::api::waiting_room::DrawView;
use domain::time::Timestamp;
use domain::waiting_room::Queue;
use domain::waiting_room::draw::{METHOD, commitment};
use uuid::Uuid;

use super::{sql, switch};
use crate::AdmissionState;
use http::Problem;
use platform::clock::from_utc;

/// A room that is on, as its staff see it.
#[derive(Clone, Debug, PartialEq)]
pub struct Overview {
    /// When it opens.
    pub opens_at: Timestamp,
    /// Whether that stays: it has opened, or is about to.
    pub is_settled: bool,
    /// How it stands, as everyone is told.
    pub queue: Queue,
    /// People inside, and those called who have time left to come.
    pub inside: u64,
    /// How many they may be; `None` before it has opened.
    pub limit: Option<u64>,
    /// What is published of its draw.
    pub draw: DrawView,
    /// Names the room as it is described here; whoever decides about it says it (`switch`).
    pub seen: String,
}

/// The room of a show, if one is on. What staff decide comes from Postgres: whichever server is asked, it is what was
/// last decided. Figures are those this server heard a moment ago, else those that were noted about a second ago.
///
/// # Errors
/// When the database fails.
pub async fn overview(state: &AdmissionState, show: Uuid) -> Result<Option<Overview>, Problem> {
    let Some(row) = sql::of_show(&state.pg, show).await? else { return Ok(None) };
    let (key, people) = (row.key()?, row.drawn());
    let per_second = row.per_second.unsigned_abs();
    let heard = state.waiting_rooms.of(show).filter(|room| room.id == row.id);
    let stands = heard.as_ref().and_then(|room| Some((room.queue(), room.stands()?.inside)));
    let (queue, inside) = stands.unwrap_or_else(|| {
        let noted = Queue { joined: row.joined(), called: row.called(), ..Queue::default() };
        (noted, row.inside())
    });
    Ok(Some(Overview {
        opens_at: from_utc(row.opens_at),
        is_settled: switch::is_settled(&row, state.clock.now()),
        queue: Queue { is_open: people.is_some(), per_second, ..queue },
        inside,
        limit: heard.and_then(|room| room.known_limit()),
        draw: DrawView {
            method: METHOD.to_owned(),
            commitment: hex::encode(commitment(&key)),
            people,
            // Told by everybody once it is written down how many are drawn, and not before.
            key: people.map(|_| hex::encode(key)),
        },
        seen: switch::mark(Some(&row)),
    }))
}
