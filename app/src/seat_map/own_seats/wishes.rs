//! The visitor's taps: each changes the wish and sends the next request.
//!
//! Requests bring the hold to the wish, one at a time. The answer to one sends the next.

use domain::api::{AreaQuantity, HoldChange, HoldRequest, HoldView};
use domain::seats::{AreaIndex, SeatIndex, sort_for_display};
use gloo_net::http::Method;
use language::{Arg, listed, say};
use leptos::task::spawn_local;

use super::cart::{Cart, HoldIntent, TapOutcome};
use super::offers::SeatOffer;
use super::{own_hold, refusals};
use crate::browser::calls::{self, Failure};
use crate::browser::ids;
use crate::seat_map::appearance::SeatAppearance;
use crate::seat_map::live::connection;
use crate::seat_map::notice::{Notice, places_in_words};
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
        let version = session.hold_version.get_value();
        spawn_local(async move { drop(refusals::unavailable_part(session, seat, look, version).await) });
        return;
    }
    // One tap on a proposed group takes the whole group.
    if look == SeatAppearance::Proposed {
        accept_proposal(session);
        return;
    }
    let outcome = change_wish(session, |cart| cart.tap(seat));
    show_outcome(session, outcome);
}

/// Replaces the wish with the proposed seats, if all of them are still free.
pub fn accept_proposal(session: MapSession) {
    let seats = session.cart.with_untracked(|cart| cart.proposed().to_vec());
    if seats.iter().all(|seat| session.current_appearance(*seat) == SeatAppearance::Proposed) {
        replace_wish(session, &seats);
    } else {
        propose(session, Vec::new());
        session.notice.set(Some(Notice::new(say!("party.gone"))));
    }
}

/// Proposes these seats on the map. Empty: none.
pub fn propose(session: MapSession, seats: Vec<SeatIndex>) {
    own_hold::change_cart(session, |cart| cart.propose(seats));
}

/// Adds one place in an area if `is_increase`, otherwise removes one.
pub fn change_places(session: MapSession, area: AreaIndex, is_increase: bool) {
    let outcome = change_wish(session, |cart| cart.change_places(area, is_increase));
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
            send_next(session);
        }
        TapOutcome::LimitReached => {
            session.notice.set(Some(Notice::limit_reached(session.cart.with_untracked(Cart::limit))))
        }
        TapOutcome::PaymentPending => session.notice.set(Some(Notice::payment_pending())),
    }
}

/// Replaces the wish with these seats.
pub fn replace_wish(session: MapSession, seats: &[SeatIndex]) {
    let outcome = change_wish(session, |cart| cart.exchange_for(seats));
    session.notice.set((outcome == TapOutcome::PaymentPending).then(Notice::payment_pending));
    send_next(session);
}

/// Requests the seats of an expired hold again.
pub fn reclaim_lost_seats(session: MapSession) {
    session.notice.set(None);
    own_hold::change_cart(session, Cart::reclaim_lost);
    send_next(session);
}

/// Adds the offered seats and places to the wish. A refusal is shown, and what was added before it is requested.
pub fn accept_offer(session: MapSession, offer: &SeatOffer) {
    let outcome = change_wish(session, |cart| cart.add(&offer.seats, &offer.places));
    show_outcome(session, outcome);
    send_next(session);
}

/// Sends the next request, if one is due. Its answer calls this again.
fn send_next(session: MapSession) {
    // Checked first: every change of the cart makes pending reads of the hold stale.
    if !session.cart.with_untracked(Cart::is_due) {
        return;
    }
    let Some((number, intent)) =
        own_hold::change_cart(session, |cart| cart.next_intent().map(|intent| (cart.number(), intent)))
    else {
        return;
    };
    spawn_local(async move {
        let key = ids::new_key();
        let answer = send(session, &intent, &key).await;
        if is_current(session, number) {
            handle_response(session, number, &intent, answer).await;
        } else {
            ignore_response(session);
        }
        send_next(session);
    });
}

/// Returns true if the cart is still the one that sent a request.
fn is_current(session: MapSession, number: u64) -> bool {
    session.cart.with_untracked(Cart::number) == number
}

/// Reads the hold instead of handling a response to an earlier cart.
fn ignore_response(session: MapSession) {
    own_hold::change_cart(session, Cart::answered);
    own_hold::refresh(session);
}

async fn send(session: MapSession, intent: &HoldIntent, key: &str) -> Result<Option<HoldView>, Failure> {
    match intent {
        HoldIntent::Take { seats, places } => {
            let (area, quantity) = (places.map(|places| places.area), places.map(|places| places.quantity));
            let body = HoldRequest { seats: seats.clone(), area, quantity };
            let path = session.path("/holds");
            let answer = calls::take(
                &path,
                key,
                &body,
                || session.notice.set(Some(Notice::solving_puzzle())),
                || session.cart.with_untracked(|cart| is_still_wanted(cart, seats, *places)),
            );
            let answer = answer.await;
            // The puzzle is solved or was given up.
            session.dismiss(&Notice::solving_puzzle());
            answer
        }
        HoldIntent::Change { hold, add, remove, add_places, remove_places } => {
            let body = HoldChange {
                add: add.clone(),
                remove: remove.clone(),
                add_places: add_places.clone(),
                remove_places: remove_places.clone(),
            };
            calls::ask(Method::PATCH, &session.path(&format!("/holds/{hold}")), key, &body).await
        }
        HoldIntent::Drop { hold } => calls::remove(&session.path(&format!("/holds/{hold}")), key).await.map(|()| None),
    }
}

async fn handle_response(
    session: MapSession,
    number: u64,
    intent: &HoldIntent,
    answer: Result<Option<HoldView>, Failure>,
) {
    let before = session.cart.with_untracked(|cart| cart.held().cloned());
    match answer {
        Ok(hold) => {
            record_released_seats(session, before.as_ref(), hold.as_ref());
            announce_changes(session, before.as_ref(), hold.as_ref());
            own_hold::change_cart(session, |cart| match hold {
                Some(hold) => cart.granted(hold),
                // The change left no seat in the hold: requesting the rest again would loop.
                None if matches!(intent, HoldIntent::Change { .. }) => cart.emptied(),
                None => cart.dropped(),
            });
            own_hold::update_countdown(session);
            session.notify_tabs();
        }
        Err(failure) => match refusals::refusal_part(session, intent.clone(), failure.clone()).await {
            Ok(handling) if is_current(session, number) => handling.await,
            // The cart has changed while the code was loading.
            Ok(_) => ignore_response(session),
            Err(_) => handle_failure(session, &failure),
        },
    }
}

pub(super) fn handle_failure(session: MapSession, failure: &Failure) {
    own_hold::change_cart(session, Cart::failed);
    session.notice.set(Some(Notice::failed(failure)));
    connection::reconnect_if_unreachable(session, failure);
    // Without an answer the hold is unknown.
    own_hold::refresh(session);
}

fn record_released_seats(session: MapSession, before: Option<&HoldView>, after: Option<&HoldView>) {
    let kept = |seat: SeatIndex| after.is_some_and(|hold| hold.seats.iter().any(|line| line.seat == seat));
    let gone: Vec<_> =
        before.iter().flat_map(|hold| &hold.seats).map(|line| line.seat).filter(|seat| !kept(*seat)).collect();
    if !gone.is_empty() {
        session.board.update_value(|board| board.record_released(&gone));
        own_hold::expire_corrections(session, gone);
    }
}

fn announce_changes(session: MapSession, before: Option<&HoldView>, after: Option<&HoldView>) {
    let names = |hold: Option<&HoldView>, without: Option<&HoldView>| -> Vec<String> {
        let has = |seat| without.is_some_and(|hold| hold.seats.iter().any(|line| line.seat == seat));
        let lines = hold.iter().flat_map(|hold| &hold.seats);
        let mut seats: Vec<_> = lines.filter(|line| !has(line.seat)).map(|line| line.label.clone()).collect();
        sort_for_display(&mut seats, String::as_str);
        let had = |area| {
            let mut lines = without.into_iter().flat_map(|hold| &hold.places);
            lines.find(|line| line.area == area).map_or(0, |line| line.quantity)
        };
        let places = hold.iter().flat_map(|hold| &hold.places).filter_map(|line| {
            let more = line.quantity.saturating_sub(had(line.area));
            (more > 0).then(|| places_in_words(more, &line.label))
        });
        seats.into_iter().chain(places).collect()
    };
    let said = |names: Vec<String>, key: &str| {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        (!names.is_empty()).then(|| say!(key, seats = Arg::Ours(&listed(&names))))
    };
    let parts = [said(names(after, before), "map.held_for_you"), said(names(before, after), "map.let_go")];
    session.announcement.set(parts.into_iter().flatten().collect::<Vec<_>>().join(" "));
}

fn is_still_wanted(cart: &Cart, seats: &[SeatIndex], places: Option<AreaQuantity>) -> bool {
    seats.iter().all(|seat| cart.wants(*seat))
        && places.is_none_or(|places| cart.wanted_in(places.area) >= places.quantity)
}
