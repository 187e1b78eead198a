//! The visitor's own hold: changes the cart, reads the hold from the server, counts it down, extends it and explains its
//! end.
//!
//! A hold ends by release, expiry or booking. Only the first two lose seats, and only the server can say which one
//! happened: a countdown at zero therefore triggers a request and is no answer.

use domain::api::HoldView;
use domain::seats::{SeatIndex, SeatState, sort_for_display};
use domain::time::{SECOND_MS, Timestamp};
use domain::wire::OwnHold;
use gloo_net::http::Method;
use language::say;
use leptos::task::spawn_local;
use uuid::Uuid;

use super::cart::Cart;
use crate::browser::events::Tabs;
use crate::browser::{self, calls, clock, events, ids};
use crate::seat_map::large_rooms::painting;
use crate::seat_map::live::connection;
use crate::seat_map::loading;
use crate::seat_map::notice::{Notice, places_in_words};
use crate::seat_map::session::{ExpiryCheck, MapSession};
use crate::seat_map::signals::SendWrapper;

/// A closing tab's beacon has arrived after this long, milliseconds.
const BEACON_DELAY_MS: u32 = 1_500;
/// A hold that ends this close to its expiry counts as expired, not released, milliseconds.
const EXPIRY_TOLERANCE_MS: i64 = 2 * SECOND_MS;
/// A countdown at zero is believed after this long without an answer, milliseconds.
const EXPIRY_GRACE_MS: f64 = 2_000.0;

/// Subscribes to the visitor's other tabs.
pub fn join_tabs(session: MapSession) {
    // The other tab may be closing: its beacon arrives after its message.
    let tabs = Tabs::join(&format!("rowlock-hold-{}", session.show), move || refresh_after_beacons(session));
    session.tabs.set_value(Some(SendWrapper::new(tabs)));
}

/// Shortens the hold when the visitor leaves the page, unless a payment is pending.
pub fn shorten_on_leave(session: MapSession) {
    let hold = session.cart.with_untracked(|cart| cart.held().filter(|held| !held.paying).map(|held| held.id));
    if let (Some(hold), false) = (hold, session.is_payment_pending.get_value()) {
        calls::beacon(&session.path(&format!("/holds/{hold}/leave")));
        session.notify_tabs();
    }
}

/// Clears the cart after its hold was sold or made house seats.
pub fn finish(session: MapSession) {
    change_cart(session, Cart::finish);
    session.notice.set(None);
    update_countdown(session);
}

/// Records that a payment for this hold has begun. A page that stays open then links to the booking.
pub fn record_payment(session: MapSession, hold: Uuid, booking: Uuid) {
    change_cart(session, |cart| cart.record_payment(hold, booking));
    session.set_payment_pending(false);
}

/// Longest pause before the hold is read again after a failure, milliseconds.
const RETRY_MS: u32 = 6_000;

/// Reads the hold from the server. Reading also restores the full time of a hold that a closing tab had shortened.
pub fn refresh(session: MapSession) {
    spawn_local(fetch(session));
}

/// Reads the hold now, and again after a pending beacon has arrived: the beacon may shorten the hold after the first
/// read restored it.
pub fn refresh_after_beacons(session: MapSession) {
    spawn_local(async move {
        fetch(session).await;
        events::after(BEACON_DELAY_MS).await;
        fetch(session).await;
    });
}

/// Reads the hold. Retries until there is an answer, or until a later call does.
async fn fetch(session: MapSession) {
    let number = session.hold_read.update_value(|number| {
        *number += 1;
        *number
    });
    while !fetch_once(session, number).await {
        events::after(ids::jitter(RETRY_MS)).await;
        // A page that is shown again reads the hold anyway.
        if session.hold_read.get_value() != number || !browser::is_visible() {
            return;
        }
    }
}

/// Reads the hold, and applies the answer unless a later read than this `number` has begun. Returns false if there was no
/// answer and a retry may get one.
async fn fetch_once(session: MapSession, number: u64) -> bool {
    let turn = session.hold_version.get_value();
    let hold = match calls::read::<Option<HoldView>>(&session.path("/hold")).await {
        Ok(hold) => hold,
        Err(failure) => return loading::is_final(&failure),
    };
    if session.hold_version.get_value() != turn || session.hold_read.get_value() != number {
        return true;
    }
    if hold.is_some() {
        session.expiry_check.set_value(None);
    }
    // Every change of the cart drops the pending explanation of a tapped seat.
    let differs = session.cart.with_untracked(|cart| cart.held() != hold.as_ref());
    if hold.is_none() && session.cart.with_untracked(|cart| cart.held().is_some() && cart.is_settled()) {
        explain_loss(session);
    } else if differs && change_cart(session, |cart| cart.replace_hold(hold)) {
        update_countdown(session);
    }
    true
}

/// Reads the hold again if the live connection reports a different one. The live report may be older than the last
/// answer, so it is not applied directly.
pub fn compare_with_live_map(session: MapSession, mine: Option<&OwnHold>) {
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

/// Updates the countdown, and checks a hold whose time is over.
pub fn update_countdown(session: MapSession) {
    let ends = session.cart.with_untracked(|cart| cart.held().map(|held| (held.expires_at_ms, held.paying)));
    let (Some((ends_ms, paying)), Some(now)) = (ends, clock::server_now()) else {
        session.expiry_check.set_value(None);
        if session.countdown_ms.get_untracked().is_some() {
            session.countdown_ms.set(None);
        }
        return;
    };
    let left = Timestamp(ends_ms).since(now).max(0);
    // Steps of a second: the display shows no finer ones, and every step repaints.
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

/// Asks the server about a hold at zero: another tab may be paying for it, which extends it.
fn confirm_expiry(session: MapSession) {
    let now = clock::monotonic_ms();
    let check = session
        .expiry_check
        .get_value()
        .unwrap_or(ExpiryCheck { deadline: now + EXPIRY_GRACE_MS, is_requested: false });
    if now > check.deadline {
        expire(session);
        return;
    }
    // A request in flight brings the answer as well.
    let should_request = !check.is_requested && session.cart.with_untracked(Cart::is_settled);
    session.expiry_check.set_value(Some(ExpiryCheck { is_requested: check.is_requested || should_request, ..check }));
    if should_request {
        spawn_local(async move {
            fetch_once(session, session.hold_read.get_value()).await;
            // Without an answer the next tick asks again.
            session.expiry_check.update_value(|check| {
                if let Some(check) = check {
                    check.is_requested = false;
                }
            });
        });
    }
}

pub fn expire(session: MapSession) {
    let (seats, places) = session.cart.with_untracked(|cart| (cart.want().to_vec(), cart.want_places().to_vec()));
    let mut seat_names: Vec<String> = seats.iter().map(|seat| session.seat_name(*seat)).collect();
    sort_for_display(&mut seat_names, String::as_str);
    let place_names = places.iter().map(|places| places_in_words(places.quantity, &session.area_name(places.area)));
    let names: Vec<String> = seat_names.into_iter().chain(place_names).collect();
    session.board.update_value(|board| board.record_released(&seats));
    lose(session, Notice::expired(&names));
    expire_corrections(session, seats);
}

/// Ends a hold that the server does not know any more, and explains why, if known.
pub fn explain_loss(session: MapSession) {
    // Paid in another tab, or expired: the pending answer says which, and reads the hold again if there is no booking.
    if session.is_payment_pending.get_value() {
        return;
    }
    let Some(held) = session.cart.with_untracked(|cart| cart.held().cloned()) else {
        return;
    };
    let of_seats = |wanted: SeatState| held.seats.iter().filter(move |line| session.seat_state(line.seat) == wanted);
    let booked_here = session.booked_hold.get_value().filter(|(hold, _)| *hold == held.id);
    let booking = held.booking.or(booked_here.map(|(_, booking)| booking));
    let is_sold = of_seats(SeatState::Booked).next().is_some();
    if booking.is_some() || held.paying || is_sold {
        change_cart(session, Cart::finish);
        update_countdown(session);
        session.notice.set(Some(Notice::sale_finished(booking)));
    } else if clock::server_now().is_none_or(|now| held.expires_at_ms - now.0 < EXPIRY_TOLERANCE_MS) {
        expire(session);
    } else if of_seats(SeatState::Available).count() == held.seats.len() {
        lose(session, Notice::released_elsewhere());
    } else {
        lose(session, Notice::ended());
    }
}

fn lose(session: MapSession, notice: Notice) {
    change_cart(session, Cart::expired);
    update_countdown(session);
    session.notice.set(Some(notice));
}

/// Requests as much time as the show allows.
pub fn extend_hold(session: MapSession) {
    spawn_local(request_extension(session));
}

/// As [`extend_hold`], and waits until the answer is on the page. While another request is pending it does nothing.
pub async fn request_extension(session: MapSession) {
    if session.is_extending.get_untracked() {
        return;
    }
    let held = session
        .cart
        .with_untracked(|cart| cart.held().filter(|held| !held.paying).map(|held| (held.id, held.expires_at_ms)));
    let Some((hold, ended_ms)) = held else { return };
    session.is_extending.set(true);
    let path = session.path(&format!("/holds/{hold}/extend"));
    let answer = calls::ask::<HoldView>(Method::POST, &path, &ids::new_key(), &()).await;
    session.is_extending.set(false);
    match answer {
        Ok(hold) => {
            match Notice::shorter_extension(hold.expires_at_ms - ended_ms, hold.latest_ms - ended_ms) {
                Some(notice) => session.notice.set(Some(notice)),
                None => session.announcement.set(say!("map.more_time")),
            }
            // Only the time is taken over: seats may have changed since the request was sent.
            if change_cart(session, |cart| cart.extend_time(&hold)) {
                update_countdown(session);
            } else {
                fetch(session).await;
            }
            session.notify_tabs();
        }
        // The visitor already sees the countdown.
        Err(failure) if failure.code() == "hold_capped" => fetch(session).await,
        Err(failure) => {
            session.notice.set(Some(Notice::failed(&failure)));
            connection::reconnect_if_unreachable(session, &failure);
            refresh(session);
        }
    }
}

/// Lifetime of a local correction of the map without confirmation, milliseconds.
const CORRECTION_MS: u32 = 2_000;

/// Changes the cart, then repaints the affected seats.
pub(super) fn change_cart<T>(session: MapSession, change: impl FnOnce(&mut Cart) -> T) -> T {
    session.hold_version.update_value(|version| *version += 1);
    let mut affected = session.cart.with_untracked(seats_in);
    let outcome = session.cart.update(change);
    session.cart.with_untracked(|cart| {
        affected.extend(seats_in(cart));
        session.board.update_value(|board| affected.iter().for_each(|seat| board.repaint(*seat, cart)));
    });
    painting::paint_changes(session);
    outcome
}

/// Drops the local corrections of these seats after a moment, when the live map has caught up.
pub fn expire_corrections(session: MapSession, seats: Vec<SeatIndex>) {
    spawn_local(async move {
        events::after(CORRECTION_MS).await;
        session.cart.with_untracked(|cart| session.board.update_value(|board| board.drop_corrections(&seats, cart)));
        painting::paint_changes(session);
    });
}

fn seats_in(cart: &Cart) -> Vec<SeatIndex> {
    let held = cart.held().into_iter().flat_map(|held| held.seats.iter().map(|line| line.seat));
    cart.want().iter().chain(cart.proposed()).copied().chain(held).collect()
}
