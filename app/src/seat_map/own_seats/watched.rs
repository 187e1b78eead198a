//! Seats in other visitors' holds that this visitor wants to be notified of.

use domain::seats::{SeatIndex, SeatState};

/// A seat to be told about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watched {
    pub(in crate::seat_map) seat: SeatIndex,
    /// Whether the visitor was told that it is free: once each time.
    pub(super) told: bool,
}

/// What became of a seat one waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum News {
    Free(SeatIndex),
    /// Somebody was faster once more.
    TakenAgain(SeatIndex),
    Sold(SeatIndex),
}

/// What is new about the seats one waits for; forgets those that were got or sold.
pub(super) fn news(
    watched: &mut Vec<Watched>,
    state_of: impl Fn(SeatIndex) -> SeatState,
    is_mine: impl Fn(SeatIndex) -> bool,
) -> Vec<News> {
    let mut news = Vec::new();
    watched.retain_mut(|one| {
        let seat = one.seat;
        if is_mine(seat) {
            return false;
        }
        match (state_of(seat), one.told) {
            (SeatState::Available, false) => {
                one.told = true;
                news.push(News::Free(seat));
            }
            (SeatState::Locked, true) => {
                one.told = false;
                news.push(News::TakenAgain(seat));
            }
            (SeatState::Booked | SeatState::Blocked, _) => {
                news.push(News::Sold(seat));
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

    const NOTHING: [News; 0] = [];

    #[test]
    fn one_is_told_once_each_time_and_no_more_when_it_is_sold() {
        let mut watched = vec![Watched { seat: 7, told: false }];
        let mut now = |state| news(&mut watched, |_| state, |_| false);
        assert_eq!(now(SeatState::Locked), NOTHING);
        assert_eq!(now(SeatState::Available), [News::Free(7)]);
        assert_eq!(now(SeatState::Available), NOTHING);
        assert_eq!(now(SeatState::Locked), [News::TakenAgain(7)]);
        assert_eq!(now(SeatState::Available), [News::Free(7)]);
        assert_eq!(now(SeatState::Booked), [News::Sold(7)]);
        assert_eq!(now(SeatState::Available), NOTHING, "it was forgotten");
    }

    #[test]
    fn a_seat_one_got_is_no_news() {
        let mut watched = vec![Watched { seat: 7, told: true }, Watched { seat: 8, told: false }];
        assert_eq!(news(&mut watched, |_| SeatState::Locked, |seat| seat == 7), NOTHING);
        assert_eq!(watched, [Watched { seat: 8, told: false }]);
    }
}
