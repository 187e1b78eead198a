//! Applies updates of the live map to the session: seat states, counts, dots and watched seats.

use domain::seats::SeatState;
use domain::wire::SeatChange;

use crate::seat_map::large_rooms::{counting, painting};
use crate::seat_map::own_seats::{own_hold, watch_notices};
use crate::seat_map::session::MapSession;

/// Replaces the whole map.
pub(super) fn replace_map(session: MapSession, map: &[SeatState]) {
    let replaced = session.cart.with_untracked(|cart| session.board.update_value(|board| board.replace(map, cart)));
    if replaced && !session.is_map_known.get_untracked() {
        session.is_map_known.set(true);
    }
    counting::count_all(session);
    painting::paint_changes(session);
    watch_notices::notify_watched(session);
}

/// Applies changes.
pub(super) fn apply_changes(session: MapSession, changes: &[SeatChange]) {
    // A seat of our hold that is not locked any more: the hold ended elsewhere.
    let lost = |change: &SeatChange| change.state != SeatState::Locked;
    if session.cart.with_untracked(|cart| changes.iter().any(|change| lost(change) && cart.holds(change.seat))) {
        own_hold::refresh(session);
    }
    session.cart.with_untracked(|cart| session.board.update_value(|board| board.apply(changes, cart)));
    counting::count_changed(session, changes);
    painting::paint_changes(session);
    watch_notices::notify_watched(session);
}
