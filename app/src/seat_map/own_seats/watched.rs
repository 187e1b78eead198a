//! Watches seats in other visitors' holds: notifies the visitor when one becomes free, is taken again, or is sold.
//!
//! Notifications come from the live map. The server is not involved and nothing is reserved: the first tap on a free
//! seat takes it.

use domain::seats::{MAX_SEATS_PER_HOLD, SeatIndex, SeatState};
use language::say;
use leptos::prelude::*;

use super::cart::Cart;
use super::offers::SeatOffer;
use crate::browser;
use crate::seat_map::live::connection;
use crate::seat_map::notice::Notice;
use crate::seat_map::session::{MapSession, WatchedSeat};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WatchEvent {
    Free(SeatIndex),
    /// Locked again by another visitor.
    TakenAgain(SeatIndex),
    Sold(SeatIndex),
}

/// The events since the last call. Stops watching seats that were got or sold.
fn watch_events(
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

/// Watches a seat. An eleventh watched seat replaces the oldest.
pub fn watch_seat(session: MapSession, seat: SeatIndex) {
    session.watched.update_value(|watched| {
        watched.retain(|other| other.seat != seat);
        if watched.len() >= MAX_SEATS_PER_HOLD {
            watched.remove(0);
        }
        watched.push(WatchedSeat { seat, is_notified: false });
    });
    session.notice.set(Some(Notice::watching(&session.seat_name(seat))));
    // The seat may be in a section that is not on screen.
    connection::subscribe_sections(session);
    // The seat may have become free while the button was on show.
    notify_watched(session);
}

/// Compares the map with the watched seats. Called after every change of the map.
pub fn notify_watched(session: MapSession) {
    if session.watched.with_value(Vec::is_empty) {
        return;
    }
    let is_mine = |seat| session.cart.with_untracked(|cart| cart.wants(seat) || cart.holds(seat));
    let news = session.watched.update_value(|watched| watch_events(watched, |seat| session.seat_state(seat), is_mine));
    for news in news {
        match news {
            WatchEvent::Free(seat) => offer_freed_seat(session, seat),
            WatchEvent::TakenAgain(seat) if is_announced_free(session, seat) => {
                session.notice.set(Some(Notice::watching(&session.seat_name(seat))));
            }
            WatchEvent::TakenAgain(_) => {}
            WatchEvent::Sold(seat) => session.notice.set(Some(Notice::watched_seat_sold(&session.seat_name(seat)))),
        }
    }
}

fn offer_freed_seat(session: MapSession, seat: SeatIndex) {
    let name = session.seat_name(seat);
    // Nothing can be taken during a payment: the notice then has no offer.
    let offer = (!session.cart.with_untracked(Cart::is_paying)).then(|| {
        let price = session.room.with_untracked(|room| room.as_ref()?.line(seat).map(|line| line.price));
        let words = price.map_or_else(|| name.clone(), |price| say!("map.take", seat = &name, price = price));
        SeatOffer { seats: [seat].into(), places: [].into(), words }
    });
    session.notice.set(Some(Notice::watched_seat_free(&name, offer)));
}

/// Returns true if the notice on show says that this seat is free.
fn is_announced_free(session: MapSession, seat: SeatIndex) -> bool {
    let headline = Notice::watched_seat_free(&session.seat_name(seat), None).headline;
    session.notice.with_untracked(|notice| notice.as_ref().is_some_and(|notice| notice.headline == headline))
}

/// Puts the notice's headline in front of the page title.
pub fn keep_title(session: MapSession) {
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
