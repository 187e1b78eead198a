//! What the visitor's taps do: each changes the wish and starts the request that brings the hold after it.

use domain::seats::{AreaIndex, SeatIndex};

use super::cart::{Cart, Tapped};
use super::offer::Offer;
use super::{alternatives, cart_changes, requests};
use crate::seat_map::appearance::Look;
use crate::seat_map::session::Session;
use crate::seat_map::telling::notices::Notice;

/// A tap, click or key on a seat.
pub fn tap_seat(session: Session, seat: SeatIndex) {
    let look = session.current_look(seat);
    // What is held from before the end of sales can still be let go.
    if session.is_read_only && !matches!(look, Look::Mine | Look::Asked) {
        session.unavailable_tap.set(Some(seat));
        return;
    }
    if !look.can_be_tapped() {
        session.unavailable_tap.set(Some(seat));
        let watchable = (look == Look::Locked).then_some(seat);
        let offer = watchable.and_then(|seat| alternatives::nearest_offer(session, &[seat]));
        session.notice.set(Some(Notice { offer, ..Notice::not_free(&session.seat_name(seat), look, watchable) }));
        return;
    }
    let tapped = change_wish(session, |cart| cart.tap(seat));
    show_outcome(session, tapped);
}

/// One place more or less in an area.
pub fn change_places(session: Session, area: AreaIndex, more: bool) {
    let tapped = change_wish(session, |cart| cart.step(area, more));
    show_outcome(session, tapped);
}

/// What is on its way to be paid for stays what the buyer saw when they pressed.
fn change_wish(session: Session, change: impl FnOnce(&mut Cart) -> Tapped) -> Tapped {
    if session.is_payment_pending.get_value() { Tapped::Paying } else { cart_changes::change_cart(session, change) }
}

fn show_outcome(session: Session, tapped: Tapped) {
    match tapped {
        Tapped::Wanted | Tapped::LetGo => {
            session.notice.set(None);
            requests::send_next(session);
        }
        Tapped::Full => session.notice.set(Some(Notice::full())),
        Tapped::Paying => session.notice.set(Some(Notice::paying())),
    }
}

/// Wants these seats and no others.
pub(super) fn replace_wish(session: Session, seats: &[SeatIndex]) -> Tapped {
    let outcome = change_wish(session, |cart| cart.want_instead(seats));
    session.notice.set((outcome == Tapped::Paying).then(Notice::paying));
    requests::send_next(session);
    outcome
}

/// Wants these seats again, which were let go for something that was refused.
pub fn choose_again(session: Session, seats: &[SeatIndex]) {
    replace_wish(session, seats);
}

/// Asks for the seats of an expired hold again.
pub fn reclaim_lost_seats(session: Session) {
    session.notice.set(None);
    cart_changes::change_cart(session, Cart::ask_again);
    requests::send_next(session);
}

/// Takes what the notice offers, beside what is wanted already.
pub(in crate::seat_map) fn accept_offer(session: Session, offer: &Offer) {
    session.notice.set(None);
    for seat in offer.seats.iter() {
        if !session.cart.with_untracked(|cart| cart.wants(*seat)) {
            cart_changes::change_cart(session, |cart| cart.tap(*seat));
        }
    }
    for places in offer.places.iter() {
        for _ in 0..places.quantity {
            cart_changes::change_cart(session, |cart| cart.step(places.area, true));
        }
    }
    requests::send_next(session);
}
