//! The visitor's own hold as the server tells it: asking for it, counting it down, and saying the right
//! thing when it is gone.
//!
//! A hold that is gone was given back, ran out, or became a booking. Only the first two are a loss, and
//! only the server knows for certain, so the countdown's zero is a reason to ask, not an answer.

use domain::api::HoldView;
use domain::seats::{SeatState, put_as_read};
use domain::time::{SECOND_MS, Timestamp};
use domain::wire::Mine;
use leptos::task::spawn_local;
use uuid::Uuid;

use super::cart::Cart;
use super::cart_changes;
use super::expiry_check::Ending;
use crate::browser::tabs::Tabs;
use crate::browser::{calls, clock, events};
use crate::seat_map::session::Session;
use crate::seat_map::signals::kept::Here;
use crate::seat_map::telling::notices::{Notice, places_in_words};

/// By then the beacon of a tab that closed has arrived, milliseconds.
const BEACON_MS: u32 = 1_500;
/// A hold that ends within this of the server's word was ended by time, not by hand, milliseconds.
const END_TOLERANCE_MS: i64 = 2 * SECOND_MS;
/// How long the countdown stands at zero without a word from the server before we believe it,
/// milliseconds.
const END_PATIENCE_MS: f64 = 2_000.0;

/// Listens to the other tabs of this visitor.
pub(in crate::seat_map) fn join_tabs(session: Session) {
    // The other tab may have spoken while closing: its beacon arrives after its words.
    let tabs = Tabs::join(&format!("rowlock-hold-{}", session.show), move || refresh_after_beacons(session));
    session.tabs.set_value(Some(Here::new(tabs)));
}

/// The visitor leaves the page: unless it is to pay, the hold gets shortened.
pub(in crate::seat_map) fn shorten_on_leave(session: Session) {
    let hold = session.cart.with_untracked(|cart| cart.held().filter(|held| !held.paying).map(|held| held.id));
    if let (Some(hold), false) = (hold, session.is_payment_pending.get_value()) {
        calls::beacon(&session.path(&format!("/holds/{hold}/leave")));
        session.notify_tabs();
    }
}

/// What was held is sold, or was given to the house: the next wish begins.
pub fn finish(session: Session) {
    cart_changes::change_cart(session, Cart::moved_on);
    session.notice.set(None);
    update_countdown(session);
}

/// Says that a payment for this hold has begun: a page that is not left after all shows the way to its booking.
pub fn record_payment(session: Session, hold: Uuid, booking: Uuid) {
    cart_changes::change_cart(session, |cart| cart.payment_begun(hold, booking));
    session.set_payment_pending(false);
}

/// Asks the server what this visitor holds. That also gives a hold its full time back that a
/// closing tab had shortened.
pub fn refresh(session: Session) {
    spawn_local(fetch(session));
}

/// Asks now, and once more when a beacon on its way has arrived: it may shorten the hold after our
/// question gave it its time back.
pub(in crate::seat_map) fn refresh_after_beacons(session: Session) {
    spawn_local(async move {
        fetch(session).await;
        events::after(BEACON_MS).await;
        fetch(session).await;
    });
}

async fn fetch(session: Session) {
    let turn = session.hold_version.get_value();
    let answer = calls::read::<Option<HoldView>>(&session.path("/hold")).await;
    if session.hold_version.get_value() != turn {
        return;
    }
    // Without an answer the live connection or the next tap will tell.
    if let Ok(hold) = answer {
        if hold.is_some() {
            session.expiry_check.set_value(None);
        }
        take_over(session, hold);
    }
}

/// What the live connection says about the own hold. It may be older than the answer to a request,
/// so a difference only makes us ask.
pub(in crate::seat_map) fn compare_with_live_map(session: Session, mine: Option<&Mine>) {
    let differs = session.cart.with_untracked(|cart| match (cart.held(), mine) {
        (None, None) => false,
        (Some(held), Some(mine)) => {
            held.id != mine.hold
                || held.expires_at_ms != mine.expires_at.0
                || held.paying != mine.paying
                || !held.seats.iter().map(|line| line.seat).eq(mine.seats.iter().copied())
        }
        _ => true,
    });
    if differs {
        refresh(session);
    }
}

/// Looks at the clock: counts down, and asks what became of a hold whose time is over.
pub(in crate::seat_map) fn update_countdown(session: Session) {
    let ends = session.cart.with_untracked(|cart| cart.held().map(|held| (held.expires_at_ms, held.paying)));
    let (Some((ends_ms, paying)), Some(now)) = (ends, clock::server_now()) else {
        session.expiry_check.set_value(None);
        if session.countdown_ms.get_untracked().is_some() {
            session.countdown_ms.set(None);
        }
        return;
    };
    let left = Timestamp(ends_ms).since(now).max(0);
    // Steps of a second: the display has no finer ones, and every step repaints.
    let step = (left + SECOND_MS - 1) / SECOND_MS * SECOND_MS;
    if session.countdown_ms.get_untracked() != Some(step) {
        session.countdown_ms.set(Some(step));
    }
    if left > 0 {
        session.expiry_check.set_value(None);
    } else if !paying && !session.is_payment_pending.get_value() {
        confirm_expiry(session);
    }
}

/// The countdown is at zero: another tab may be paying for the hold, which made it longer.
fn confirm_expiry(session: Session) {
    let now = clock::monotonic_ms();
    let ending = session.expiry_check.get_value().unwrap_or(Ending { until: now + END_PATIENCE_MS, asked: false });
    if now > ending.until {
        expire(session);
        return;
    }
    // The answer to a request on its way tells as well.
    let ask = !ending.asked && session.cart.with_untracked(Cart::is_settled);
    session.expiry_check.set_value(Some(Ending { asked: ending.asked || ask, ..ending }));
    if ask {
        spawn_local(async move {
            fetch(session).await;
            // Without an answer the next tick asks again.
            session.expiry_check.update_value(|ending| {
                if let Some(ending) = ending {
                    ending.asked = false;
                }
            });
        });
    }
}

/// The hold's time is over.
pub(in crate::seat_map) fn expire(session: Session) {
    let (seats, places) = session.cart.with_untracked(|cart| (cart.want().to_vec(), cart.want_places().to_vec()));
    let mut seat_names: Vec<String> = seats.iter().map(|seat| session.seat_name(*seat)).collect();
    put_as_read(&mut seat_names, String::as_str);
    let place_names = places.iter().map(|places| places_in_words(places.quantity, &session.area_name(places.area)));
    let names: Vec<String> = seat_names.into_iter().chain(place_names).collect();
    session.board.update_value(|board| board.note_given_back(&seats));
    lose(session, Notice::expired(&names));
    cart_changes::expire_guesses(session, seats);
}

/// The server knows no hold of ours any more: says why, as far as that can be known.
pub(in crate::seat_map) fn explain_loss(session: Session) {
    // Paid in another tab, or out of time: the answer that is on its way says which, and asks again if it is no booking.
    if session.is_payment_pending.get_value() {
        return;
    }
    let Some(held) = session.cart.with_untracked(|cart| cart.held().cloned()) else {
        return;
    };
    let of_seats = |wanted: SeatState| held.seats.iter().filter(move |line| session.seat_state(line.seat) == wanted);
    let booking = held.booking.or_else(|| booking_of(session, held.id));
    let is_sold = of_seats(SeatState::Booked).next().is_some();
    if booking.is_some() || held.paying || is_sold {
        cart_changes::change_cart(session, Cart::moved_on);
        update_countdown(session);
        session.notice.set(Some(Notice::moved_on(booking)));
    } else if clock::server_now().is_none_or(|now| held.expires_at_ms - now.0 < END_TOLERANCE_MS) {
        expire(session);
    } else if of_seats(SeatState::Available).count() == held.seats.len() {
        lose(session, Notice::let_go_elsewhere());
    } else {
        lose(session, Notice::ended());
    }
}

fn lose(session: Session, notice: Notice) {
    cart_changes::change_cart(session, Cart::expired);
    update_countdown(session);
    session.notice.set(Some(notice));
}

fn booking_of(session: Session, hold: Uuid) -> Option<Uuid> {
    session.booked_hold.get_value().filter(|(booked, _)| *booked == hold).map(|(_, booking)| booking)
}

fn take_over(session: Session, hold: Option<HoldView>) {
    if hold.is_none() && session.cart.with_untracked(|cart| cart.held().is_some() && cart.is_settled()) {
        explain_loss(session);
    } else if cart_changes::change_cart(session, |cart| cart.learn(hold)) {
        update_countdown(session);
    }
}
