//! Frames from the server.

use uuid::Uuid;

use super::seat_map::{decode_map, encode_changes, encode_map};
use super::{Cursor, SeatChange, WireError, put};
use crate::seats::{AreaIndex, MAX_SEATS_PER_HOLD, SeatIndex, SeatState};
use crate::time::Timestamp;
use crate::waiting_room::WaitingRoomStatus;

const SNAPSHOT: u8 = 1;
const DELTA: u8 = 2;
const MINE: u8 = 3;
const AREAS: u8 = 4;
const QUEUE: u8 = 5;
const DRAIN: u8 = 6;
const OVERVIEW: u8 = 7;

/// The visitor's own hold, as sent over the live connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnHold {
    /// The hold.
    pub hold: Uuid,
    /// Expiry, on the lock store's clock.
    pub expires_at: Timestamp,
    /// True while a payment is in progress.
    pub paying: bool,
    /// Its seats, in order.
    pub seats: Vec<SeatIndex>,
}

/// A message from the server over the live connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// The whole map. It is sent first, after a gap, and when the map was rebuilt (another epoch).
    Snapshot {
        /// Changes when the map is rebuilt. Versions of different epochs cannot be compared.
        epoch: u64,
        /// Number of changes in the epoch.
        version: u64,
        /// The lock store's clock at the time of sending.
        now: Timestamp,
        /// State of every seat.
        map: Vec<SeatState>,
    },
    /// Changes from one version to another. A client at any other version requests a snapshot. A delta without changes
    /// from a version to itself is a keep-alive.
    Delta {
        /// Version that the changes apply to.
        from: u64,
        /// Version after the changes.
        to: u64,
        /// Changes sorted by seat, each seat once.
        changes: Vec<SeatChange>,
    },
    /// The visitor's own hold; `None` if there is none any more.
    OwnHold {
        /// The lock store's clock at the time of sending.
        now: Timestamp,
        /// The hold.
        mine: Option<OwnHold>,
    },
    /// Free places in all areas without numbered seats. It is sent whenever one of them changes.
    Areas {
        /// Index of each area and its free places, sorted by index, each once.
        left: Vec<(AreaIndex, u32)>,
    },
    /// Number of free seats in every section, in plan order. It is sent to clients that follow only some sections and
    /// cannot count the others.
    Overview {
        /// Free seats per section.
        free: Vec<u32>,
    },
    /// State of the show's waiting room, the same for all visitors. Each visitor knows its own position.
    Queue(WaitingRoomStatus),
    /// The server is about to stop. The client should reconnect to another one after `retry_ms`.
    Drain {
        /// Delay in milliseconds; the client adds jitter.
        retry_ms: u64,
    },
}

impl Frame {
    /// Encodes the frame.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Self::Snapshot { epoch, version, now, map } => {
                out.push(SNAPSHOT);
                put(&mut out, *epoch);
                put(&mut out, *version);
                put_instant(&mut out, *now);
                encode_map(&mut out, map);
            }
            Self::Delta { from, to, changes } => {
                out.push(DELTA);
                put(&mut out, *from);
                put(&mut out, *to);
                encode_changes(&mut out, changes);
            }
            Self::OwnHold { now, mine } => {
                out.push(MINE);
                put_instant(&mut out, *now);
                if let Some(mine) = mine {
                    out.extend_from_slice(mine.hold.as_bytes());
                    put_instant(&mut out, mine.expires_at);
                    out.push(u8::from(mine.paying));
                    mine.seats.iter().for_each(|seat| put(&mut out, u64::from(*seat)));
                }
            }
            Self::Areas { left } => {
                out.push(AREAS);
                for (area, left) in left {
                    put(&mut out, u64::from(*area));
                    put(&mut out, u64::from(*left));
                }
            }
            Self::Overview { free } => {
                out.push(OVERVIEW);
                free.iter().for_each(|free| put(&mut out, u64::from(*free)));
            }
            Self::Queue(queue) => {
                out.push(QUEUE);
                out.push(u8::from(queue.is_open) | (u8::from(queue.is_sold_out) << 1));
                let WaitingRoomStatus { joined, called, gone, per_second, lately, .. } = *queue;
                for number in [joined, called, gone, u64::from(per_second), u64::from(lately)] {
                    put(&mut out, number);
                }
            }
            Self::Drain { retry_ms } => {
                out.push(DRAIN);
                put(&mut out, *retry_ms);
            }
        }
        out
    }

    /// Decodes a frame.
    ///
    /// # Errors
    /// [`WireError`] for any bytes that [`Frame::encode`] does not produce for a room of `seats` seats.
    pub fn decode(bytes: &[u8], seats: u32) -> Result<Self, WireError> {
        let mut cursor = Cursor(bytes);
        match cursor.byte()? {
            SNAPSHOT => {
                let (epoch, version, now) = (cursor.number()?, cursor.number()?, instant(&mut cursor)?);
                let map = decode_map(cursor.0)?;
                if map.len() != seats as usize {
                    return Err(WireError::OutsideRoom);
                }
                Ok(Self::Snapshot { epoch, version, now, map })
            }
            DELTA => {
                let (from, to) = (cursor.number()?, cursor.number()?);
                let mut changes = Vec::new();
                super::apply_changes(cursor.0, seats, |change| changes.push(change))?;
                Ok(Self::Delta { from, to, changes })
            }
            MINE => {
                let now = instant(&mut cursor)?;
                let mine = if cursor.is_empty() { None } else { Some(decode_mine(&mut cursor, seats)?) };
                Ok(Self::OwnHold { now, mine })
            }
            AREAS => Ok(Self::Areas { left: decode_areas(&mut cursor)? }),
            OVERVIEW => Ok(Self::Overview { free: decode_overview(&mut cursor, seats)? }),
            QUEUE => Ok(Self::Queue(decode_queue(&mut cursor)?)),
            DRAIN => {
                let retry_ms = cursor.number()?;
                cursor.end()?;
                Ok(Self::Drain { retry_ms })
            }
            other => Err(WireError::Unknown(other)),
        }
    }
}

fn decode_mine(cursor: &mut Cursor<'_>, room: u32) -> Result<OwnHold, WireError> {
    let hold = Uuid::from_bytes(cursor.bytes::<16>()?);
    let expires_at = instant(cursor)?;
    let paying = match cursor.byte()? {
        0 => false,
        1 => true,
        other => return Err(WireError::Unknown(other)),
    };
    let mut seats = Vec::new();
    while !cursor.is_empty() {
        let seat = SeatIndex::try_from(cursor.number()?).map_err(|_| WireError::OutsideRoom)?;
        if seat >= room || seats.len() == MAX_SEATS_PER_HOLD {
            return Err(WireError::OutsideRoom);
        }
        seats.push(seat);
    }
    Ok(OwnHold { hold, expires_at, paying, seats })
}

fn decode_areas(cursor: &mut Cursor<'_>) -> Result<Vec<(AreaIndex, u32)>, WireError> {
    let mut areas: Vec<(AreaIndex, u32)> = Vec::new();
    while !cursor.is_empty() {
        let area = AreaIndex::try_from(cursor.number()?).map_err(|_| WireError::OutsideRoom)?;
        let left = u32::try_from(cursor.number()?).map_err(|_| WireError::OutsideRoom)?;
        // Strictly increasing indices also bound the length of the list.
        if areas.last().is_some_and(|(before, _)| *before >= area) {
            return Err(WireError::OutOfOrder);
        }
        areas.push((area, left));
    }
    Ok(areas)
}

fn decode_queue(cursor: &mut Cursor<'_>) -> Result<WaitingRoomStatus, WireError> {
    let flags = cursor.byte()?;
    if flags > 3 {
        return Err(WireError::Unknown(flags));
    }
    let (joined, called, gone) = (cursor.number()?, cursor.number()?, cursor.number()?);
    let mut short = || u32::try_from(cursor.number()?).map_err(|_| WireError::NumberTooLong);
    let (per_second, lately) = (short()?, short()?);
    cursor.end()?;
    Ok(WaitingRoomStatus {
        is_open: flags & 1 != 0,
        is_sold_out: flags & 2 != 0,
        joined,
        called,
        gone,
        per_second,
        lately,
    })
}

/// Bounds the input: all sections together have at most as many free seats as the room, and each section takes at least
/// one byte.
fn decode_overview(cursor: &mut Cursor<'_>, room: u32) -> Result<Vec<u32>, WireError> {
    let mut sections = Vec::new();
    let mut left = room;
    while !cursor.is_empty() {
        let free = u32::try_from(cursor.number()?).map_err(|_| WireError::OutsideRoom)?;
        left = left.checked_sub(free).ok_or(WireError::OutsideRoom)?;
        if sections.len() == room as usize {
            return Err(WireError::OutsideRoom);
        }
        sections.push(free);
    }
    Ok(sections)
}

/// Instants in frames are not before 1970.
fn put_instant(out: &mut Vec<u8>, at: Timestamp) {
    put(out, u64::try_from(at.0).unwrap_or(0));
}

fn instant(cursor: &mut Cursor<'_>) -> Result<Timestamp, WireError> {
    i64::try_from(cursor.number()?).map(Timestamp).map_err(|_| WireError::NumberTooLong)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ROOM: u32 = 1_000;

    fn state() -> impl Strategy<Value = SeatState> {
        (0..4_u8).prop_map(|byte| SeatState::from_byte(byte).expect("below four"))
    }

    fn instant() -> impl Strategy<Value = Timestamp> {
        (0..i64::MAX).prop_map(Timestamp)
    }

    fn frame() -> impl Strategy<Value = Frame> {
        let map = prop_oneof![
            proptest::collection::vec(state(), ROOM as usize),
            state().prop_map(|state| vec![state; ROOM as usize]),
        ];
        let changes = proptest::collection::btree_map(0..ROOM, state(), 0..40)
            .prop_map(|seats| seats.into_iter().map(|(seat, state)| SeatChange { seat, state }).collect());
        let seats = proptest::collection::vec(0..ROOM, 0..=MAX_SEATS_PER_HOLD);
        let mine = (any::<u128>(), instant(), any::<bool>(), seats).prop_map(|(id, expires_at, paying, seats)| {
            OwnHold { hold: Uuid::from_u128(id), expires_at, paying, seats }
        });
        prop_oneof![
            (any::<u64>(), any::<u64>(), instant(), map).prop_map(|(epoch, version, now, map)| Frame::Snapshot {
                epoch,
                version,
                now,
                map
            }),
            (any::<u64>(), any::<u64>(), changes).prop_map(|(from, to, changes)| Frame::Delta { from, to, changes }),
            (instant(), proptest::option::of(mine)).prop_map(|(now, mine)| Frame::OwnHold { now, mine }),
            proptest::collection::btree_map(any::<u16>(), any::<u32>(), 0..40)
                .prop_map(|areas| Frame::Areas { left: areas.into_iter().collect() }),
            proptest::collection::vec(0..ROOM / 20, 0..20).prop_map(|free| Frame::Overview { free }),
            any::<u64>().prop_map(|retry_ms| Frame::Drain { retry_ms }),
            (any::<(bool, bool)>(), any::<(u64, u64, u64)>(), any::<(u32, u32)>()).prop_map(
                |((is_open, is_sold_out), (joined, called, gone), (per_second, lately))| {
                    Frame::Queue(WaitingRoomStatus { is_open, is_sold_out, joined, called, gone, per_second, lately })
                }
            ),
        ]
    }

    proptest! {
        #[test]
        fn round_trip(frame in frame()) {
            prop_assert_eq!(Frame::decode(&frame.encode(), ROOM), Ok(frame));
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Frame::decode(&bytes, ROOM);
        }

        #[test]
        fn truncated_frame_is_refused_or_differs(frame in frame(), cut in 0..2_000_usize) {
            let bytes = frame.encode();
            if cut < bytes.len() {
                prop_assert_ne!(Frame::decode(&bytes[..cut], ROOM), Ok(frame));
            }
        }
    }

    #[test]
    fn uniform_snapshot_is_tiny_and_the_worst_takes_a_quarter_byte_per_seat() {
        let snapshot = |map| Frame::Snapshot { epoch: 1, version: 1, now: Timestamp(1_800_000_000_000), map }.encode();
        let fresh = snapshot(vec![SeatState::Available; 50_000]);
        assert!(fresh.len() <= 20, "{} bytes", fresh.len());
        let chequered =
            (0..50_000).map(|seat| if seat % 2 == 0 { SeatState::Booked } else { SeatState::Available }).collect();
        assert!(snapshot(chequered).len() <= 12_500 + 24);
    }

    /// The examples of `docs/api.md`, which other clients are implemented from.
    #[test]
    fn documented_examples_match() {
        use SeatState::{Available, Blocked, Booked, Locked};
        let now = Timestamp(1_000);
        let change = |seat, state| SeatChange { seat, state };
        let examples = [
            (
                "SNAPSHOT epoch 7, version 300, now 1000, 300 free seats",
                Frame::Snapshot { epoch: 7, version: 300, now, map: vec![Available; 300] },
            ),
            (
                "SNAPSHOT epoch 7, version 301, now 1000, 4 seats: free, locked, booked, blocked",
                Frame::Snapshot { epoch: 7, version: 301, now, map: vec![Available, Locked, Booked, Blocked] },
            ),
            (
                "DELTA from 300 to 302: seat 46 locked, seat 47 free, seat 250 booked",
                Frame::Delta {
                    from: 300,
                    to: 302,
                    changes: vec![change(46, Locked), change(47, Available), change(250, Booked)],
                },
            ),
            ("MINE now 1000, holding nothing", Frame::OwnHold { now, mine: None }),
            ("AREAS area 0 has 57 places left, area 3 none", Frame::Areas { left: vec![(0, 57), (3, 0)] }),
            ("OVERVIEW three sections with 120, 0 and 300 free seats", Frame::Overview { free: vec![120, 0, 300] }),
            (
                "QUEUE open, 2000 joined, 300 called, 5 gone, 10 a second, 550 let in lately",
                Frame::Queue(WaitingRoomStatus {
                    is_open: true,
                    is_sold_out: false,
                    joined: 2_000,
                    called: 300,
                    gone: 5,
                    per_second: 10,
                    lately: 550,
                }),
            ),
            ("DRAIN, come back in 1500 ms", Frame::Drain { retry_ms: 1_500 }),
        ];
        let documented = include_str!("../../../docs/api.md");
        for (name, frame) in examples {
            let bytes = frame.encode().iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ");
            let row = format!("| {name} | `{bytes}` |");
            assert!(documented.contains(&row), "docs/api.md lacks {row}");
        }
    }

    #[test]
    fn unsorted_areas_and_too_many_free_seats_are_refused() {
        assert_eq!(Frame::decode(&[AREAS, 3, 1, 3, 1], ROOM), Err(WireError::OutOfOrder));
        assert_eq!(
            Frame::decode(&Frame::Overview { free: vec![600, 600] }.encode(), ROOM),
            Err(WireError::OutsideRoom)
        );
    }

    #[test]
    fn snapshot_of_another_room_is_refused() {
        let bytes = Frame::Snapshot { epoch: 1, version: 1, now: Timestamp(0), map: vec![SeatState::Available; 3] };
        assert_eq!(Frame::decode(&bytes.encode(), 4), Err(WireError::OutsideRoom));
    }
}
