//! Reads the map over HTTP while no live connection can be opened. The map is stale as soon as it is read.

use domain::json::{FromJson, Json};
use domain::seats::{AreaIndex, SeatState};
use leptos::task::spawn_local;

use super::connection_state::TRIES_UNTIL_OFFLINE;
use super::map_changes;
use crate::browser::calls::{self, Failure};
use crate::seat_map::notices::notice::Notice;
use crate::seat_map::session::{ConnectionStatus, MapSession};

/// The map in the API's HTTP format.
struct SeatsView {
    epoch: u64,
    version: u64,
    states: String,
    areas: Vec<AreaPlaces>,
}

struct AreaPlaces {
    area: AreaIndex,
    left: u32,
}

impl FromJson for SeatsView {
    fn from_json(json: &Json<'_>) -> Option<Self> {
        Some(Self {
            epoch: json.field("epoch")?,
            version: json.field("version")?,
            states: json.field("states")?,
            areas: json.field("areas")?,
        })
    }
}

impl FromJson for AreaPlaces {
    fn from_json(json: &Json<'_>) -> Option<Self> {
        Some(Self { area: json.field("area")?, left: json.field("left")? })
    }
}

impl SeatsView {
    /// Every seat's state; `None` for an invalid digit.
    fn map(&self) -> Option<Vec<SeatState>> {
        self.states.bytes().map(|digit| SeatState::from_byte(digit.wrapping_sub(b'0'))).collect()
    }
}

/// Reads the map over HTTP if there is no connection and the map is missing or already shown as stale.
pub(in crate::seat_map) fn read_map_if_offline(session: MapSession) {
    let failures = session.connection.with_value(|connection| connection.failures);
    let has_room = session.room.with_untracked(Option::is_some);
    let limit = if session.is_map_known.get_untracked() { TRIES_UNTIL_OFFLINE } else { 1 };
    if !has_room || failures < limit {
        return;
    }
    spawn_local(async move {
        let seats = match calls::read::<SeatsView>(&session.path("/seats")).await {
            Ok(seats) => seats,
            // Without an answer the next failed attempt reads again.
            Err(Failure::Unreachable) => return,
            Err(refused @ Failure::Problem(_)) => return show_failure_once(session, &refused),
        };
        let reached = session.connection.with_value(|connection| connection.follower.resume_from());
        let is_older = reached.is_some_and(|at| at.0 == seats.epoch && at.1 > seats.version);
        // The live connection resumes from its own version: its deltas repeat what this map contains.
        if let (Some(map), false, true) =
            (seats.map(), is_older, session.connection_status.get_untracked() != ConnectionStatus::Live)
        {
            map_changes::replace_map(session, &map);
            session.places_left.set(seats.areas.iter().map(|area| (area.area, area.left)).collect());
        }
    });
}

/// Shows why there is no map (for example, seats cannot be held now). Once until the next connection, and never over
/// another notice.
fn show_failure_once(session: MapSession, refused: &Failure) {
    let is_shown = session.connection.with_value(|connection| connection.map_failure_notice.is_some());
    if is_shown || session.notice.with_untracked(Option::is_some) {
        return;
    }
    let notice = Notice::failed(refused);
    session.connection.update_value(|connection| connection.map_failure_notice = Some(notice.clone()));
    session.notice.set(Some(notice));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_in_digits_is_parsed_as_seat_states() {
        let seats = |states: &str| SeatsView { epoch: 1, version: 1, states: states.to_owned(), areas: vec![] };
        let all = [SeatState::Available, SeatState::Locked, SeatState::Booked, SeatState::Blocked];
        assert_eq!(seats("0123").map().as_deref(), Some(&all[..]));
        assert_eq!(seats("01x").map(), None);
        let read = domain::json::read::<SeatsView>(
            r#"{"epoch":7,"version":3,"states":"02","areas":[{"area":1,"left":40,"name":"Floor"}]}"#,
        );
        let read = read.expect("the API's format");
        assert_eq!((read.epoch, read.version, read.map()), (7, 3, Some(vec![SeatState::Available, SeatState::Booked])));
        assert_eq!(read.areas.iter().map(|area| (area.area, area.left)).collect::<Vec<_>>(), [(1, 40)]);
    }
}
