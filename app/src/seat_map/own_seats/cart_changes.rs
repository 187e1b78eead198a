//! Changes the cart and repaints the affected seats.

use domain::seats::SeatIndex;
use leptos::task::spawn_local;

use super::cart::Cart;
use crate::browser::events;
use crate::seat_map::large_rooms::painting;
use crate::seat_map::session::MapSession;

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
pub(in crate::seat_map) fn expire_corrections(session: MapSession, seats: Vec<SeatIndex>) {
    spawn_local(async move {
        events::after(CORRECTION_MS).await;
        session.cart.with_untracked(|cart| session.board.update_value(|board| board.drop_corrections(&seats, cart)));
        painting::paint_changes(session);
    });
}

fn seats_in(cart: &Cart) -> Vec<SeatIndex> {
    let held = cart.held().into_iter().flat_map(|held| held.seats.iter().map(|line| line.seat));
    cart.want().iter().copied().chain(held).collect()
}
