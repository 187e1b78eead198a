//! The visitor's taps: each changes the wish and sends the next request.

use domain::seats::{AreaIndex, SeatIndex};

use super::cart::{Cart, TapOutcome};
use super::offer::SeatOffer;
use super::{nearest, own_hold, requests};
use crate::seat_map::appearance::SeatAppearance;
use crate::seat_map::notice::Notice;
use crate::seat_map::session::MapSession;

/// Handles a tap, click or key on a seat.
pub fn tap_seat(session: MapSession, seat: SeatIndex) {
    let look = session.current_appearance(seat);
    // Seats held since before the end of sales can still be released.
    if session.is_read_only && !matches!(look, SeatAppearance::Mine | SeatAppearance::Asked) {
        session.unavailable_tap.set(Some(seat));
        return;
    }
    if !look.can_be_tapped() {
        session.unavailable_tap.set(Some(seat));
        let watchable = (look == SeatAppearance::Locked).then_some(seat);
        let offer = watchable.and_then(|seat| nearest::nearest_offer(session, &[seat]));
        session.notice.set(Some(Notice { offer, ..Notice::unavailable(&session.seat_name(seat), look, watchable) }));
        return;
    }
    let outcome = change_wish(session, |cart| cart.tap(seat));
    show_outcome(session, outcome);
}

/// Adds or removes one place in an area.
pub fn change_places(session: MapSession, area: AreaIndex, more: bool) {
    let outcome = change_wish(session, |cart| cart.change_places(area, more));
    show_outcome(session, outcome);
}

/// Changes the wish, except while a payment request is pending: the buyer pays what they saw.
fn change_wish(session: MapSession, change: impl FnOnce(&mut Cart) -> TapOutcome) -> TapOutcome {
    if session.is_payment_pending.get_value() {
        TapOutcome::PaymentPending
    } else {
        own_hold::change_cart(session, change)
    }
}

fn show_outcome(session: MapSession, outcome: TapOutcome) {
    match outcome {
        TapOutcome::Added | TapOutcome::Removed => {
            session.notice.set(None);
            requests::send_next(session);
        }
        TapOutcome::LimitReached => session.notice.set(Some(Notice::limit_reached())),
        TapOutcome::PaymentPending => session.notice.set(Some(Notice::payment_pending())),
    }
}

pub(super) fn replace_wish(session: MapSession, seats: &[SeatIndex]) -> TapOutcome {
    let outcome = change_wish(session, |cart| cart.exchange_for(seats));
    session.notice.set((outcome == TapOutcome::PaymentPending).then(Notice::payment_pending));
    requests::send_next(session);
    outcome
}

/// Chooses seats again that were released for an exchange that was refused.
pub fn choose_again(session: MapSession, seats: &[SeatIndex]) {
    replace_wish(session, seats);
}

/// Requests the seats of an expired hold again.
pub fn reclaim_lost_seats(session: MapSession) {
    session.notice.set(None);
    own_hold::change_cart(session, Cart::reclaim_lost);
    requests::send_next(session);
}

/// Adds the offered seats and places to the wish.
pub(in crate::seat_map) fn accept_offer(session: MapSession, offer: &SeatOffer) {
    session.notice.set(None);
    for seat in offer.seats.iter() {
        if !session.cart.with_untracked(|cart| cart.wants(*seat)) {
            own_hold::change_cart(session, |cart| cart.tap(*seat));
        }
    }
    for places in offer.places.iter() {
        for _ in 0..places.quantity {
            own_hold::change_cart(session, |cart| cart.change_places(places.area, true));
        }
    }
    requests::send_next(session);
}
