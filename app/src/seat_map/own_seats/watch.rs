//! Watches seats in other visitors' holds ("notify me when free").
//!
//! Notifications come from the live map. The server is not involved and nothing is reserved: the first tap on a free
//! seat takes it.

use domain::seats::{MAX_SEATS_PER_HOLD, SeatIndex};

use super::watch_notices;
use super::watched::WatchedSeat;
use crate::seat_map::live::connection;
use crate::seat_map::notices::notice::Notice;
use crate::seat_map::session::MapSession;

/// Watches a seat. An eleventh watched seat replaces the oldest.
pub(in crate::seat_map) fn watch_seat(session: MapSession, seat: SeatIndex) {
    session.watched.update_value(|watched| {
        watched.retain(|other| other.seat != seat);
        if watched.len() >= MAX_SEATS_PER_HOLD {
            watched.remove(0);
        }
        watched.push(WatchedSeat { seat, is_notified: false });
    });
    session.notice.set(Some(Notice::watching(&session.seat_name(seat))));
    // The seat may be in a section that is not on screen.
    connection::subscribe_sections(session);
    // The seat may have become free while the button was on show.
    watch_notices::notify_watched(session);
}
