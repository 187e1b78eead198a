//! Parser of change announcements from the lock store: `epoch;version;item,item,…`.
//!
//! An item is `seat=state`, or `aN=left` for the places left in area N; `*` instead of items means that
//! the map was rebuilt. Written by `seat_locks/lua`; this is the only reader.

use domain::seats::{AreaIndex, SeatIndex, SeatState};

/// One announcement: the changes from the previous version to `version`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MapChange {
    pub(super) epoch: u64,
    pub(super) version: u64,
    /// `None` after a rebuild of the map: readers need a snapshot.
    pub(super) changes: Option<Changes>,
}

/// Changed seats and areas of one step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    pub(super) seats: Vec<(SeatIndex, SeatState)>,
    /// Number of an area and its places left.
    pub(super) areas: Vec<(AreaIndex, u32)>,
}

/// Parses an announcement; `None` if it is malformed.
pub(super) fn read(text: &[u8]) -> Option<MapChange> {
    let mut parts = std::str::from_utf8(text).ok()?.splitn(3, ';');
    let (epoch, version) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    let changes = match parts.next()? {
        "*" => None,
        list => {
            let mut changes = Changes::default();
            list.split(',').try_for_each(|item| add(&mut changes, item))?;
            Some(changes)
        }
    };
    Some(MapChange { epoch, version, changes })
}

fn add(changes: &mut Changes, item: &str) -> Option<()> {
    let (what, now) = item.split_once('=')?;
    match what.strip_prefix('a') {
        Some(area) => changes.areas.push((area.parse().ok()?, now.parse().ok()?)),
        None => changes.seats.push((what.parse().ok()?, SeatState::from_byte(now.parse().ok()?)?)),
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn announcements_in_the_format_of_the_scripts_are_parsed() {
        let seats = vec![(12, SeatState::Locked), (0, SeatState::Available)];
        let step = |changes| Some(MapChange { epoch: 7, version: 3, changes });
        assert_eq!(read(b"7;3;12=1,0=0"), step(Some(Changes { seats: seats.clone(), areas: vec![] })));
        assert_eq!(read(b"7;3;12=1,a3=57,0=0,a0=0"), step(Some(Changes { seats, areas: vec![(3, 57), (0, 0)] })));
        assert_eq!(read(b"7;3;*"), step(None));
    }

    #[test]
    fn malformed_announcements_are_rejected() {
        for text in ["", "7;3", "7;x;*", "7;3;", "7;3;12", "7;3;12=9", "7;3;-1=1", "7;3;a=1", "7;3;a1=-1", "7;3;b1=1"] {
            assert_eq!(read(text.as_bytes()), None, "{text:?}");
        }
        assert_eq!(read(&[0xff, b';']), None);
    }
}
