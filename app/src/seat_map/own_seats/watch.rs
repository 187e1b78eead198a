//! "Tell me if it frees": seats in somebody else's hold that this visitor would take.
//!
//! The live map says when; nothing is asked of the server and nobody is promised anything: a seat that is free
//! is whose tap comes first.

use domain::seats::{MAX_SEATS_PER_HOLD, SeatIndex};

use super::watch_notices;
use super::watched::Watched;
use crate::seat_map::live::connection;
use crate::seat_map::session::Session;
use crate::seat_map::telling::notices::Notice;

/// From now on the visitor is told when this seat is free. The oldest wish gives way to an eleventh.
pub(in crate::seat_map) fn watch_seat(session: Session, seat: SeatIndex) {
    session.watched.update_value(|watched| {
        watched.retain(|other| other.seat != seat);
        if watched.len() >= MAX_SEATS_PER_HOLD {
            watched.remove(0);
        }
        watched.push(Watched { seat, told: false });
    });
    session.notice.set(Some(Notice::watching(&session.seat_name(seat))));
    // It may lie in a section that is not on screen any more.
    connection::subscribe_sections(session);
    // It may have become free while the offer to watch was on show.
    watch_notices::notify_watched(session);
}
