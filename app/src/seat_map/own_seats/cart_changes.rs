//! Changes the cart and repaints the seats the change concerns.

use domain::seats::SeatIndex;
use leptos::task::spawn_local;

use super::cart::Cart;
use crate::browser::events;
use crate::seat_map::large_rooms::painting;
use crate::seat_map::session::Session;

/// How long an answer's news of a seat may be ahead of the live map, milliseconds.
const GUESS_MS: u32 = 2_000;

/// Changes the cart, then repaints the seats it concerns.
pub(super) fn change_cart<T>(session: Session, change: impl FnOnce(&mut Cart) -> T) -> T {
    session.hold_version.update_value(|turn| *turn += 1);
    let mut concerned = session.cart.with_untracked(seats_in);
    let outcome = session.cart.update(change);
    session.cart.with_untracked(|cart| {
        concerned.extend(seats_in(cart));
        session.board.update_value(|board| concerned.iter().for_each(|seat| board.repaint(*seat, cart)));
    });
    painting::paint_changes(session);
    outcome
}

/// Believes for a moment what we know of these seats before the live map does.
pub(in crate::seat_map) fn expire_guesses(session: Session, seats: Vec<SeatIndex>) {
    spawn_local(async move {
        events::after(GUESS_MS).await;
        session.cart.with_untracked(|cart| session.board.update_value(|board| board.forget_guesses(&seats, cart)));
        painting::paint_changes(session);
    });
}

fn seats_in(cart: &Cart) -> Vec<SeatIndex> {
    let held = cart.held().into_iter().flat_map(|held| held.seats.iter().map(|line| line.seat));
    cart.want().iter().copied().chain(held).collect()
}
