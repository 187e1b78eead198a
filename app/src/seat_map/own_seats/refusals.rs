//! Handles refused seats and places: says why, and offers others. Loads after the map, with the box that shows it.

use std::pin::Pin;

use domain::api::{AreaProblem, HoldView, SeatProblem};
use domain::seats::SeatIndex;
use leptos::wasm_split::wasm_split;

use super::cart::{Cart, HoldIntent};
use super::{area_offers, offers, own_hold, wishes};
use crate::browser::calls::Failure;
use crate::browser::{self, calls};
use crate::seat_map::appearance::SeatAppearance;
use crate::seat_map::deferred::SplitLoaderError;
use crate::seat_map::large_rooms::painting;
use crate::seat_map::notice::Notice;
use crate::seat_map::session::MapSession;

/// Explains why a tapped seat is not free, and offers the nearest one that is. `version` is that of the hold when it was
/// tapped: a later tap is answered instead.
#[wasm_split(rest, wasm_split_path = ::leptos::wasm_split, fallible)]
pub fn unavailable_part(
    session: MapSession,
    seat: SeatIndex,
    look: SeatAppearance,
    version: u64,
) -> Result<(), SplitLoaderError> {
    if session.hold_version.get_value() != version {
        return Ok(());
    }
    let watchable = (look == SeatAppearance::Locked).then_some(seat);
    let offer = watchable.and_then(|seat| offers::nearest_offer(session, &[seat]));
    session.notice.set(Some(Notice { offer, ..Notice::unavailable(&session.seat_name(seat), look, watchable) }));
    Ok(())
}

/// Handles the refusal of a request.
#[wasm_split(rest, wasm_split_path = ::leptos::wasm_split, fallible)]
pub fn refusal_part(
    session: MapSession,
    intent: HoldIntent,
    failure: Failure,
) -> Result<Pin<Box<dyn Future<Output = ()>>>, SplitLoaderError> {
    Ok(Box::pin(handle(session, intent, failure)))
}

async fn handle(session: MapSession, intent: HoldIntent, failure: Failure) {
    match (failure.code(), &failure) {
        ("seats_locked" | "seats_taken", Failure::Problem(problem)) if !problem.areas.is_empty() => {
            refuse_places(session, &problem.areas);
        }
        ("seats_locked" | "seats_taken", Failure::Problem(problem)) => refuse_seats(session, &problem.seats),
        ("one_hold_per_show", _) => match calls::read::<HoldView>(&session.path("/hold")).await {
            Ok(hold) => own_hold::change_cart(session, |cart| cart.join(hold)),
            Err(_) => wishes::handle_failure(session, &failure),
        },
        // The hold to release is already gone.
        ("hold_expired" | "not_found", _) if matches!(intent, HoldIntent::Drop { .. }) => {
            own_hold::change_cart(session, Cart::dropped);
        }
        ("hold_expired" | "not_found", _) if matches!(intent, HoldIntent::Change { .. }) => {
            own_hold::change_cart(session, Cart::answered);
            own_hold::explain_loss(session);
        }
        ("waiting_list_first", _) => {
            session.waited_category.set_value(refused_category(session));
            session.are_others_waiting.set(true);
            wishes::handle_failure(session, &failure);
        }
        ("waiting_room", _) => {
            wishes::handle_failure(session, &failure);
            // Without a hold nothing can be done on the map. The waiting room shows the place, or offers a new one.
            if session.cart.with_untracked(|cart| cart.held().is_none()) {
                browser::go_to(&format!("/shows/{}?queue", session.show));
            }
        }
        _ => wishes::handle_failure(session, &failure),
    }
}

/// The category of the first wanted seat that is not held.
fn refused_category(session: MapSession) -> Option<String> {
    let refused = session.cart.with_untracked(|cart| cart.want().iter().copied().find(|seat| !cart.holds(*seat)))?;
    session.room.with_untracked(|room| Some(room.as_ref()?.seat(refused)?.category.name.clone()))
}

fn refuse_seats(session: MapSession, seats: &[SeatProblem]) {
    let refused: Vec<_> = seats.iter().map(|seat| seat.seat).collect();
    // Paint the refused seats before the live map reports them.
    let states: Vec<_> = seats.iter().map(|seat| (seat.seat, seat.state)).collect();
    session.cart.with_untracked(|cart| session.board.update_value(|board| board.record_refused(&states, cart)));
    painting::paint_changes(session);
    own_hold::expire_corrections(session, refused.clone());
    let (is_kept, others) = own_hold::change_cart(session, |cart| (cart.refused(&refused, &[]), !cart.is_empty()));
    if is_kept {
        // Nothing was lost, so nothing is offered instead.
        session.notice.set(Some(Notice::not_exchanged(seats)));
        return;
    }
    session.notice.set(Some(Notice::refused(seats, others)));
    offers::offer_alternatives(session, &refused);
}

/// Handles a refusal because of full areas. Offers the refused places in another area.
fn refuse_places(session: MapSession, areas: &[AreaProblem]) {
    let left: Vec<_> = areas.iter().map(|area| (area.area, area.left)).collect();
    session.merge_places_left(&left);
    let count = session.cart.with_untracked(|cart| area_offers::refused_count(cart, areas));
    let has_others = own_hold::change_cart(session, |cart| {
        cart.refused(&[], &left);
        !cart.is_empty()
    });
    let offer = area_offers::offer_places(session, areas, count);
    session.notice.set(Some(Notice { offer, ..Notice::places_refused(areas, has_others) }));
}
