//! The state of one visitor at one show: signals for values the page shows, cells for values it does not show.
//!
//! The session holds values and answers questions about them. Taps, the clock and the live map change it through
//! functions in other modules: `own_seats::wishes` (taps and requests), `own_seats::own_hold` (the hold),
//! `live::connection` (the live map), `large_rooms::painting` and `loading`. Those modules import this one; this one
//! imports none of them.

use std::rc::Rc;
use std::sync::Arc;

use domain::seats::{AreaIndex, SeatIndex, SeatState};
use language::say;
use uuid::Uuid;

use super::appearance::SeatAppearance;
use super::large_rooms::dots::PaintTarget;
use super::live::board::Board;
use super::live::connection_state::ConnectionState;
use super::notice::Notice;
use super::own_seats::cart::Cart;
use super::plan::map_view::MapView;
use super::room_plan::RoomPlan;
use super::signals::{PageCell, PageSignal, SendWrapper};
use crate::browser::events::Tabs;

/// Status of the live connection, as the page shows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConnectionStatus {
    /// Not connected yet.
    #[default]
    Connecting,
    /// Connected: changes arrive as they happen.
    Live,
    /// Not reachable: the map may be stale.
    Offline,
}

/// Called with a seat whose appearance changed.
pub(super) type SeatListener = Rc<dyn Fn(SeatIndex)>;

/// The sections of a large room to be counted again.
#[derive(Default)]
pub(super) struct PendingCounts {
    /// Sections with changes since their last count.
    pub touched: Vec<bool>,
    /// Time of the last count, on the monotonic clock.
    pub counted_at: f64,
    /// True if a count is scheduled.
    pub is_due: bool,
}

/// A seat in another visitor's hold of which this visitor wants to be notified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WatchedSeat {
    pub seat: SeatIndex,
    /// True if the visitor has been notified that it is free.
    pub is_notified: bool,
}

/// A countdown at zero that waits for the server's answer.
#[derive(Clone, Copy)]
pub(super) struct ExpiryCheck {
    /// Time at which the hold is given up without an answer, on the monotonic clock.
    pub deadline: f64,
    /// True if a request is in flight.
    pub is_requested: bool,
}

/// The state of one visitor at one show. All fields are handles: copy it.
#[derive(Clone, Copy, Default)]
pub struct MapSession {
    /// The show.
    pub show: Uuid,
    /// True if seats cannot be taken from this map. A tap then asks who has the seat.
    pub is_read_only: bool,
    /// The room plan, once loaded.
    pub room: PageSignal<Option<Arc<RoomPlan>>>,
    /// Why the room could not be loaded, for people.
    pub load_failure: PageSignal<Option<String>>,
    /// Number of the current load of the room. An older load stops when it sees a newer number.
    pub(super) room_load: PageCell<u64>,
    /// True if a first snapshot has been read. Before that no seat is known to be free.
    pub is_map_known: PageSignal<bool>,
    /// The section on screen, in a large room.
    pub section: PageSignal<Option<usize>>,
    /// Number of the current choice of a section. Loads for an older choice stop.
    pub(super) section_choice: PageCell<u64>,
    /// The wish and the hold.
    pub cart: PageSignal<Cart>,
    /// Every seat's state.
    pub board: PageCell<Board>,
    /// Free seats per section, live.
    pub free_seats: PageCell<Vec<PageSignal<u32>>>,
    pub(super) counting: PageCell<PendingCounts>,
    /// The section that was left for the overview, until the focus is back on its card, and whether the keyboard was
    /// used.
    pub(super) left_section: PageCell<Option<(usize, bool)>>,
    /// The categories to highlight, a bit each: see `appearance::filter_bit`. Zero means all.
    pub category_filter: PageSignal<u64>,
    /// True once seats or the sections of a large room were drawn, or the code for that did not load.
    pub(super) was_map_drawn: PageSignal<bool>,
    /// True if the canvas shows the large room, or will with the next frame of the painting worker.
    pub is_canvas_painted: PageSignal<bool>,
    pub(super) canvas: PageCell<Option<SendWrapper<Box<dyn PaintTarget>>>>,
    pub(super) pointed_seat: PageSignal<Option<SeatIndex>>,
    pub(super) map_view: MapView,
    /// Called for every seat on screen whose appearance changed. The minimap sets it.
    pub(super) minimap_listener: PageCell<Option<SendWrapper<SeatListener>>>,
    /// Incremented when the page may look different: another theme, another size.
    pub(super) appearance: PageSignal<u64>,
    /// Places left per area, live.
    pub places_left: PageSignal<Vec<(AreaIndex, u32)>>,
    /// True if the server said that the waiting list comes first.
    pub are_others_waiting: PageSignal<bool>,
    /// The category of the seat that was refused because others wait for it; `None` for places of an area.
    pub waited_category: PageCell<Option<String>>,
    /// Status of the live connection.
    pub connection_status: PageSignal<ConnectionStatus>,
    /// The message on show.
    pub notice: PageSignal<Option<Notice>>,
    /// Seats in others' holds that the visitor wants to be notified of.
    pub(super) watched: PageCell<Vec<WatchedSeat>>,
    /// The last tapped seat that could not be taken. Staff see who has it.
    pub unavailable_tap: PageSignal<Option<SeatIndex>>,
    /// Text for a polite screen reader announcement.
    pub announcement: PageSignal<String>,
    /// Milliseconds until the hold expires, in steps of a second; `None` without a hold.
    pub countdown_ms: PageSignal<Option<i64>>,
    pub(super) connection: PageCell<ConnectionState>,
    pub(super) tabs: PageCell<Option<SendWrapper<Tabs>>>,
    /// Incremented with every change of the cart, so that an answer to an older request does not overwrite it.
    pub(super) hold_version: PageCell<u64>,
    /// Number of the last read of the hold. An older one is not retried.
    pub(super) hold_read: PageCell<u64>,
    /// Set while a payment request is pending. Leaving the page then does not shorten the hold, the wish cannot change,
    /// and only the answer says what became of the hold.
    pub(super) is_payment_pending: PageCell<bool>,
    /// The hold that was booked from this page, and its booking.
    pub(super) booked_hold: PageCell<Option<(Uuid, Uuid)>>,
    /// True if a request for more time is pending.
    pub is_extending: PageSignal<bool>,
    /// Set while the countdown is at zero and the server has not confirmed the expiry.
    pub(super) expiry_check: PageCell<Option<ExpiryCheck>>,
}

impl MapSession {
    /// A session with nothing loaded.
    pub fn new(show: Uuid) -> Self {
        Self { show, ..Self::default() }
    }

    /// A read-only session for staff, for a show whose sale has ended.
    pub fn read_only(show: Uuid) -> Self {
        Self { is_read_only: true, ..Self::new(show) }
    }

    /// Address of an API resource of this show.
    pub(super) fn path(&self, rest: &str) -> String {
        format!("/api/v1/shows/{}{rest}", self.show)
    }

    /// Notifies the visitor's other tabs of a changed hold.
    pub fn notify_tabs(self) {
        self.tabs.with_value(|tabs| tabs.iter().for_each(|tabs| tabs.notify()));
    }

    /// The signal of a seat on screen.
    pub fn appearance_signal(&self, seat: SeatIndex) -> PageSignal<SeatAppearance> {
        let signal = self.cart.with_untracked(|cart| self.board.update_value(|board| board.signal(seat, cart)));
        signal.unwrap_or_else(|| PageSignal::new(SeatAppearance::Blocked))
    }

    /// Returns true if the hold is being paid for or is about to be.
    pub fn is_paying(self) -> bool {
        self.is_payment_pending.get_value() || self.cart.with_untracked(Cart::is_paying)
    }

    /// Records whether a payment request is pending.
    pub fn set_payment_pending(self, is_pending: bool) {
        self.is_payment_pending.set_value(is_pending);
    }

    /// Records that this hold became a booking, so that a later loss can be explained.
    pub fn record_booking(self, hold: Uuid, booking: Uuid) {
        self.booked_hold.set_value(Some((hold, booking)));
    }

    /// Name of a seat for people.
    pub fn seat_name(self, seat: SeatIndex) -> String {
        self.label(seat).unwrap_or_else(|| say!("map.some_seat", number = seat))
    }

    /// The seat's label; `None` if neither the hold nor the drawn map has the seat.
    pub fn label(&self, seat: SeatIndex) -> Option<String> {
        let held = self.cart.with_untracked(|cart| {
            let held = cart.held()?;
            held.seats.iter().find(|line| line.seat == seat).map(|line| line.label.clone())
        });
        let drawn = || {
            self.room.with_untracked(|room| room.as_ref().and_then(|room| room.seat(seat).map(|facts| facts.name())))
        };
        held.or_else(drawn)
    }

    /// Returns true if the map is drawn, or cannot be for now. Deferred parts load from then on.
    pub(crate) fn is_drawn(self) -> bool {
        self.was_map_drawn.get()
            // A message: its box is a deferred part.
            || self.notice.with(Option::is_some)
            || self.load_failure.with(Option::is_some)
            || self.connection_status.get() == ConnectionStatus::Offline
    }

    /// The number of free seats and places. Subscribes.
    pub(super) fn count_left(self) -> u32 {
        let seats: u32 = self.free_seats.with_value(|free| free.iter().map(|free| free.get()).sum());
        seats + self.places_left.with(|left| left.iter().map(|(_, left)| *left).sum::<u32>())
    }

    /// Returns true if no seat and no place is free; false while that is unknown.
    pub fn is_sold_out(self) -> bool {
        if !self.is_map_known.get() || self.room.with(Option::is_none) {
            return false;
        }
        self.count_left() == 0
    }

    /// Name of an area for people.
    pub fn area_name(self, area: AreaIndex) -> String {
        let drawn = self.room.with_untracked(|room| Some(room.as_ref()?.area(area)?.name.clone()));
        drawn.unwrap_or_else(|| say!("map.some_area", number = area))
    }

    /// The places left in an area, if known. Subscribes.
    pub(super) fn places_left_in(self, area: AreaIndex) -> Option<u32> {
        self.places_left.with(|left| left.iter().find(|(known, _)| *known == area).map(|(_, left)| *left))
    }

    pub(super) fn merge_places_left(self, left: &[(AreaIndex, u32)]) {
        self.places_left.update(|known| {
            for (area, left) in left {
                known.retain(|(other, _)| other != area);
                known.push((*area, *left));
            }
        });
    }

    /// A seat's state in the live map.
    pub(super) fn seat_state(self, seat: SeatIndex) -> SeatState {
        self.board.with_value(|board| board.state(seat))
    }

    /// Clears the notice if it is still this one.
    pub(super) fn dismiss(self, said: &Notice) {
        if self.notice.with_untracked(|notice| notice.as_ref() == Some(said)) {
            self.notice.set(None);
        }
    }

    /// A seat's current appearance.
    pub fn current_appearance(self, seat: SeatIndex) -> SeatAppearance {
        self.cart.with_untracked(|cart| self.board.with_value(|board| board.look(seat, cart)))
    }

    pub(super) fn redraw_in_minimap(self, seat: SeatIndex) {
        if let Some(note) = self.minimap_listener.get_value() {
            note(seat);
        }
    }
}
