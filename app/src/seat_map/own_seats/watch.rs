//! "Tell me if it frees": seats in somebody else's hold that this visitor would take.
//!
//! The live map says when; nothing is asked of the server and nobody is promised anything: a seat that is free
//! is whose tap comes first.

use domain::seats::{MAX_SEATS_PER_HOLD, SeatIndex, SeatState};
use leptos::prelude::*;

use super::cart::Cart;
use super::party::Offer;
use crate::browser;
use crate::say;
use crate::seat_map::session::Session;
use crate::seat_map::telling::notices::Notice;

/// A seat to be told about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watched {
    seat: SeatIndex,
    /// Whether the visitor was told that it is free: once each time.
    told: bool,
}

/// What became of a seat one waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum News {
    Free(SeatIndex),
    /// Somebody was faster once more.
    TakenAgain(SeatIndex),
    Sold(SeatIndex),
}

impl Session {
    /// From now on the visitor is told when this seat is free. The oldest wish gives way to an eleventh.
    pub(in crate::seat_map) fn watch(self, seat: SeatIndex) {
        self.watched.update_value(|watched| {
            watched.retain(|other| other.seat != seat);
            if watched.len() >= MAX_SEATS_PER_HOLD {
                watched.remove(0);
            }
            watched.push(Watched { seat, told: false });
        });
        self.notice.set(Some(Notice::watching(&self.name_of(seat))));
        // It may lie in a section that is not on screen any more.
        self.follow_sections();
        // It may have become free while the offer to watch was on show.
        self.look_at_watched();
    }

    /// The seats the visitor waits for.
    pub(in crate::seat_map) fn watched_seats(self) -> Vec<SeatIndex> {
        self.watched.with_value(|watched| watched.iter().map(|one| one.seat).collect())
    }

    /// Compares the map with what the visitor waits for. Called after every change of the map.
    pub(in crate::seat_map) fn look_at_watched(self) {
        if self.watched.with_value(Vec::is_empty) {
            return;
        }
        let is_mine = |seat| self.cart.with_untracked(|cart| cart.wants(seat) || cart.holds(seat));
        let news = self.watched.update_value(|watched| news(watched, |seat| self.state_of(seat), is_mine));
        for news in news {
            match news {
                News::Free(seat) => self.offer_freed(seat),
                News::TakenAgain(seat) if self.is_said_free(seat) => {
                    self.notice.set(Some(Notice::watching(&self.name_of(seat))));
                }
                News::TakenAgain(_) => {}
                News::Sold(seat) => self.notice.set(Some(Notice::sold_after_all(&self.name_of(seat)))),
            }
        }
    }

    fn offer_freed(self, seat: SeatIndex) {
        let name = self.name_of(seat);
        // A party that is paying can take nothing: then it is news without an offer.
        let offer = (!self.cart.with_untracked(Cart::is_paying)).then(|| {
            let price = self.room.with_untracked(|room| room.as_ref()?.line(seat).map(|line| line.price));
            let words = price.map_or_else(|| name.clone(), |price| say!("map.take", seat = &name, price = price));
            Offer { seats: [seat].into(), places: [].into(), words }
        });
        self.notice.set(Some(Notice::free_now(&name, offer)));
    }

    /// Whether the notice on show says that this seat is free.
    fn is_said_free(self, seat: SeatIndex) -> bool {
        let said = Notice::free_now(&self.name_of(seat), None).headline;
        self.notice.with_untracked(|notice| notice.as_ref().is_some_and(|notice| notice.headline == said))
    }
}

/// What is new about the seats one waits for; forgets those that were got or sold.
fn news(
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

/// Puts a headline in front of the page's title for as long as its notice is on show.
pub(in crate::seat_map) fn keep_title(session: Session) {
    let usual = browser::title();
    Effect::new(move |_| {
        let headline = session.notice.with(|notice| notice.as_ref().and_then(|notice| notice.headline.clone()));
        match headline {
            Some(words) => browser::set_title(&format!("{words} · {usual}")),
            None => browser::set_title(&usual),
        }
    });
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
