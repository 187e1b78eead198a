//! Notifies the visitor when a watched seat becomes free, is taken again, or is sold.

use domain::seats::SeatIndex;
use leptos::prelude::*;

use super::cart::Cart;
use super::offer::SeatOffer;
use super::watched::{WatchEvent, watch_events};
use crate::seat_map::notices::notice::Notice;
use crate::seat_map::session::MapSession;
use crate::{browser, say};

/// Compares the map with the watched seats. Called after every change of the map.
pub(in crate::seat_map) fn notify_watched(session: MapSession) {
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
pub(in crate::seat_map) fn keep_title(session: MapSession) {
    let usual = browser::title();
    Effect::new(move |_| {
        let headline = session.notice.with(|notice| notice.as_ref().and_then(|notice| notice.headline.clone()));
        match headline {
            Some(words) => browser::set_title(&format!("{words} · {usual}")),
            None => browser::set_title(&usual),
        }
    });
}
