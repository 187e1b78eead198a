//! Watched seats, and the events that notify the visitor.

use domain::seats::{SeatIndex, SeatState};

/// A watched seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchedSeat {
    pub(in crate::seat_map) seat: SeatIndex,
    /// True if the visitor has been notified that it is free.
    pub(super) is_notified: bool,
}

/// A change of a watched seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WatchEvent {
    Free(SeatIndex),
    /// Locked again by another visitor.
    TakenAgain(SeatIndex),
    Sold(SeatIndex),
}

/// The events since the last call. Stops watching seats that were got or sold.
pub(super) fn watch_events(
    watched: &mut Vec<WatchedSeat>,
    state_of: impl Fn(SeatIndex) -> SeatState,
    is_mine: impl Fn(SeatIndex) -> bool,
) -> Vec<WatchEvent> {
    let mut news = Vec::new();
    watched.retain_mut(|one| {
        let seat = one.seat;
        if is_mine(seat) {
            return false;
        }
        match (state_of(seat), one.is_notified) {
            (SeatState::Available, false) => {
                one.is_notified = true;
                news.push(WatchEvent::Free(seat));
            }
            (SeatState::Locked, true) => {
                one.is_notified = false;
                news.push(WatchEvent::TakenAgain(seat));
            }
            (SeatState::Booked | SeatState::Blocked, _) => {
                news.push(WatchEvent::Sold(seat));
                return false;
            }
            _ => {}
        }
        true
    });
    news
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: [WatchEvent; 0] = [];

    #[test]
    fn a_watched_seat_notifies_once_per_change_until_sold() {
        let mut watched = vec![WatchedSeat { seat: 7, is_notified: false }];
        let mut now = |state| watch_events(&mut watched, |_| state, |_| false);
        assert_eq!(now(SeatState::Locked), NOTHING);
        assert_eq!(now(SeatState::Available), [WatchEvent::Free(7)]);
        assert_eq!(now(SeatState::Available), NOTHING);
        assert_eq!(now(SeatState::Locked), [WatchEvent::TakenAgain(7)]);
        assert_eq!(now(SeatState::Available), [WatchEvent::Free(7)]);
        assert_eq!(now(SeatState::Booked), [WatchEvent::Sold(7)]);
        assert_eq!(now(SeatState::Available), NOTHING, "no longer watched");
    }

    #[test]
    fn a_seat_the_visitor_got_is_no_longer_watched() {
        let mut watched = vec![WatchedSeat { seat: 7, is_notified: true }, WatchedSeat { seat: 8, is_notified: false }];
        assert_eq!(watch_events(&mut watched, |_| SeatState::Locked, |seat| seat == 7), NOTHING);
        assert_eq!(watched, [WatchedSeat { seat: 8, is_notified: false }]);
    }
}
