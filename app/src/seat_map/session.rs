//! The state of one visitor at one show: signals for what the page shows, cells for what it does not.
//!
//! The session holds values and answers questions about them. What taps, the clock and the live map do to it are
//! functions elsewhere, over the values they need: `own_seats::wishes` (taps), `own_seats::requests` and
//! `own_seats::own_hold` (the hold), `live::connection` and `live::map_changes` (the live map), `large_rooms::painting`,
//! `loading`. They import this module, and this module imports none of them.

use std::rc::Rc;
use std::sync::Arc;

use domain::seats::{AreaIndex, SeatIndex, SeatState};
use uuid::Uuid;

use super::appearance::Look;
use super::large_rooms::pending_counts::Counting;
use super::large_rooms::surface::Surface;
use super::live::board::Board;
use super::live::connection_state::Connection;
use super::own_seats::cart::Cart;
use super::own_seats::expiry_check::Ending;
use super::own_seats::watched::Watched;
use super::plan::plane::Shown;
use super::room::Room;
use super::signals::kept::{Here, Kept};
use super::signals::told::Told;
use super::telling::notices::Notice;
use crate::browser::tabs::Tabs;
use crate::say;

/// The live connection, as people see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Live {
    /// Not yet.
    Connecting,
    /// Every change is seen as it happens.
    On,
    /// Not to be reached; the map may be old.
    Offline,
}

/// Called with a seat that looks different.
pub(super) type Note = Rc<dyn Fn(SeatIndex)>;

/// Everything about one visitor at one show. A bundle of handles: copy it.
#[derive(Clone, Copy)]
pub struct Session {
    /// The show.
    pub show: Uuid,
    /// Whether nothing is taken from this map: a tap asks whose the seat is.
    pub is_read_only: bool,
    /// The room, once loaded.
    pub room: Told<Option<Arc<Room>>>,
    /// Why the room could not be loaded, in words.
    pub load_failure: Told<Option<String>>,
    /// Counts how often the room was asked for: the last one to ask goes on asking.
    pub(super) room_load: Kept<u64>,
    /// Whether any map of the seats was read: before that nobody can say which are free.
    pub is_map_known: Told<bool>,
    /// The section on screen, in a large room.
    pub section: Told<Option<usize>>,
    /// Counts how often one was chosen: rows of a section that was left are not asked for again.
    pub(super) section_choice: Kept<u64>,
    /// Wish and hold.
    pub cart: Told<Cart>,
    /// Every seat's state.
    pub board: Kept<Board>,
    /// Free seats of each section, live.
    pub free_seats: Kept<Vec<Told<u32>>>,
    pub(super) counting: Kept<Counting>,
    /// The section that was left for the overview, until the focus is back on its card; and whether by the keyboard.
    pub(super) left_section: Kept<Option<(usize, bool)>>,
    /// The categories looked for, a bit each by their number modulo eight; none means all.
    pub category_filter: Told<u64>,
    /// Whether the sections of a large room stood there to be chosen.
    pub(super) is_overview_drawn: Told<bool>,
    /// Whether a large room is on its canvas, or will be with the next frame of the worker that paints it.
    pub is_canvas_painted: Told<bool>,
    pub(super) canvas: Kept<Option<Here<Box<dyn Surface>>>>,
    /// The seat one pointed at last.
    pub(super) pointed_seat: Told<Option<SeatIndex>>,
    /// Where one is on the map.
    pub(super) map_view: Shown,
    /// Hears of every seat on screen that looks different: the room in small.
    pub(super) minimap_listener: Kept<Option<Here<Note>>>,
    /// Counts how often the page may look different than before: another theme, another size.
    pub(super) appearance: Told<u64>,
    /// Places left in every area, live.
    pub places_left: Told<Vec<(AreaIndex, u32)>>,
    /// Whether we were told that others wait for what is free.
    pub are_others_waiting: Told<bool>,
    /// How the live connection stands.
    pub connection_status: Told<Live>,
    /// What the visitor must know now.
    pub notice: Told<Option<Notice>>,
    /// Seats of others that the visitor wants to hear of.
    pub(super) watched: Kept<Vec<Watched>>,
    /// The seat that was tapped last and could not be taken: staff are told whose it is.
    pub unavailable_tap: Told<Option<SeatIndex>>,
    /// What a screen reader says when it is free to.
    pub announcement: Told<String>,
    /// Milliseconds until the hold ends, stepwise; `None` without a hold.
    pub countdown_ms: Told<Option<i64>>,
    /// The live connection itself.
    pub(super) connection: Kept<Here<Connection>>,
    pub(super) tabs: Kept<Option<Here<Tabs>>>,
    /// Counts what happened to the hold, so that a question asked before cannot overwrite it.
    pub(super) hold_version: Kept<u64>,
    /// Set while a payment is asked for: leaving the page then is not abandoning, nothing that is wanted changes, and
    /// only the answer tells what became of the hold.
    pub(super) is_payment_pending: Kept<bool>,
    /// The hold that was booked from this page, and its booking.
    pub(super) booked_hold: Kept<Option<(Uuid, Uuid)>>,
    /// Whether more time was asked for and the answer is not there yet.
    pub is_extending: Told<bool>,
    /// Set while the countdown stands at zero and the server has not said what that means.
    pub(super) expiry_check: Kept<Option<Ending>>,
}

impl Session {
    /// Nothing loaded yet.
    #[must_use]
    pub fn new(show: Uuid) -> Self {
        Self {
            show,
            is_read_only: false,
            room: Told::new(None),
            load_failure: Told::new(None),
            room_load: Kept::new(0),
            is_map_known: Told::new(false),
            section: Told::new(None),
            section_choice: Kept::new(0),
            left_section: Kept::new(None),
            cart: Told::new(Cart::default()),
            board: Kept::new(Board::default()),
            free_seats: Kept::new(Vec::new()),
            counting: Kept::new(Counting::default()),
            category_filter: Told::new(0),
            is_overview_drawn: Told::new(false),
            is_canvas_painted: Told::new(false),
            canvas: Kept::new(None),
            pointed_seat: Told::new(None),
            map_view: Shown::new(),
            minimap_listener: Kept::new(None),
            appearance: Told::new(0),
            places_left: Told::new(Vec::new()),
            are_others_waiting: Told::new(false),
            connection_status: Told::new(Live::Connecting),
            notice: Told::new(None),
            watched: Kept::new(Vec::new()),
            unavailable_tap: Told::new(None),
            announcement: Told::new(String::new()),
            countdown_ms: Told::new(None),
            connection: Kept::new(Here::new(Connection::default())),
            tabs: Kept::new(None),
            hold_version: Kept::new(0),
            is_payment_pending: Kept::new(false),
            booked_hold: Kept::new(None),
            is_extending: Told::new(false),
            expiry_check: Kept::new(None),
        }
    }

    /// The same for staff, of a show that is sold no more.
    #[must_use]
    pub fn read_only(show: Uuid) -> Self {
        Self { is_read_only: true, ..Self::new(show) }
    }

    /// Address of something of this show.
    pub(super) fn path(&self, rest: &str) -> String {
        format!("/api/v1/shows/{}{rest}", self.show)
    }

    /// Tells the other tabs of this visitor that the hold is not what it was.
    pub fn notify_tabs(self) {
        self.tabs.with_value(|tabs| tabs.iter().for_each(|tabs| tabs.tell()));
    }

    /// The signal of a seat on screen.
    #[must_use]
    pub fn look_signal(&self, seat: SeatIndex) -> Told<Look> {
        let signal = self.cart.with_untracked(|cart| self.board.update_value(|board| board.signal(seat, cart)));
        signal.unwrap_or_else(|| Told::new(Look::Blocked))
    }

    /// Whether what is held is being paid for, or about to be.
    #[must_use]
    pub fn is_paying(self) -> bool {
        self.is_payment_pending.get_value() || self.cart.with_untracked(Cart::is_paying)
    }

    /// Says that a payment is asked for from here on: the next time the page is left it is to pay. Or that this came to
    /// nothing.
    pub fn set_payment_pending(self, off: bool) {
        self.is_payment_pending.set_value(off);
    }

    /// Says that this hold was made a booking: when it ends, the booking knows why.
    pub fn record_booking(self, hold: Uuid, booking: Uuid) {
        self.booked_hold.set_value(Some((hold, booking)));
    }

    /// Name of a seat for people.
    #[must_use]
    pub fn seat_name(self, seat: SeatIndex) -> String {
        let held = self.cart.with_untracked(|cart| {
            let held = cart.held()?;
            held.seats.iter().find(|line| line.seat == seat).map(|line| line.label.clone())
        });
        let drawn = || {
            self.room.with_untracked(|room| room.as_ref().and_then(|room| room.seat(seat).map(|facts| facts.name())))
        };
        held.or_else(drawn).unwrap_or_else(|| say!("map.some_seat", number = seat))
    }

    /// Whether the map stands there, or will not for a while: what comes after it may come.
    #[must_use]
    pub(super) fn is_drawn(self) -> bool {
        // The sections of a large room are a part themselves: the others wait for it.
        let is_there =
            |room: &Arc<Room>| !room.plan().overview || self.is_overview_drawn.get() || self.section.get().is_some();
        (self.is_map_known.get() && self.room.with(|room| room.as_ref().is_some_and(is_there)))
            || self.load_failure.with(Option::is_some)
            || self.connection_status.get() == Live::Offline
    }

    /// Whether no seat and no place is free; false while that is not known.
    #[must_use]
    pub fn is_sold_out(self) -> bool {
        if !self.is_map_known.get() || self.room.with(Option::is_none) {
            return false;
        }
        let no_seat = self.free_seats.with_value(|free| free.iter().all(|free| free.get() == 0));
        no_seat && self.places_left.with(|left| left.iter().all(|(_, left)| *left == 0))
    }

    /// Name of an area for people.
    #[must_use]
    pub fn area_name(self, area: AreaIndex) -> String {
        let drawn = self.room.with_untracked(|room| {
            let areas = room.iter().flat_map(|room| &room.plan().areas);
            areas.into_iter().find(|known| known.area == area).map(|known| known.name.clone())
        });
        drawn.unwrap_or_else(|| say!("map.some_area", number = area))
    }

    /// What is known of some areas before the live map tells it of all.
    pub(super) fn merge_places_left(self, left: &[(AreaIndex, u32)]) {
        self.places_left.update(|known| {
            for (area, left) in left {
                known.retain(|(other, _)| other != area);
                known.push((*area, *left));
            }
        });
    }

    /// What the live map says of a seat.
    pub(super) fn seat_state(self, seat: SeatIndex) -> SeatState {
        self.board.with_value(|board| board.state(seat))
    }

    /// The seats the visitor waits for.
    pub(super) fn watched_seats(self) -> Vec<SeatIndex> {
        self.watched.with_value(|watched| watched.iter().map(|one| one.seat).collect())
    }

    /// Says this no more, unless something else is said already.
    pub(super) fn dismiss(self, said: &Notice) {
        if self.notice.with_untracked(|notice| notice.as_ref() == Some(said)) {
            self.notice.set(None);
        }
    }

    /// What a seat looks like just now.
    #[must_use]
    pub fn current_look(self, seat: SeatIndex) -> Look {
        self.cart.with_untracked(|cart| self.board.with_value(|board| board.look(seat, cart)))
    }

    /// Says that a seat on screen looks different, where the room stands in small.
    pub(super) fn redraw_in_minimap(self, seat: SeatIndex) {
        if let Some(note) = self.minimap_listener.get_value() {
            note(seat);
        }
    }
}
