//! One visitor at one show: the signals everything on the page hangs on, and what taps, the clock and
//! the live map do to them.
//!
//! Decisions are in [`Cart`], [`Board`] and [`Notice`]; this carries them out. The requests that change
//! the hold are in `requests`, what is learnt of it and how it ends is in `own_hold`, how the live
//! connection is kept is in `connection`, how the room is read is in `loading`.

use std::rc::Rc;
use std::sync::Arc;

use domain::seats::{AreaIndex, SeatIndex, SeatState};
use domain::wire::Change;
use uuid::Uuid;

use super::large_rooms::counting::Counting;
use super::large_rooms::painting::Surface;
use super::live::board::{Board, Look};
use super::live::connection::Connection;
use super::own_seats::cart::{Cart, Tapped};
use super::own_seats::own_hold::Ending;
use super::own_seats::watch::Watched;
use super::plan::plane::Shown;
use super::room::Room;
use super::signals::kept::{Here, Kept};
use super::signals::told::Told;
use super::telling::notices::Notice;
use crate::browser::calls;
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
    pub is_for_looking: bool,
    /// The room, once loaded.
    pub room: Told<Option<Arc<Room>>>,
    /// Why the room could not be loaded, in words.
    pub unreachable: Told<Option<String>>,
    /// Counts how often the room was asked for: the last one to ask goes on asking.
    pub(super) room_reads: Kept<u64>,
    /// Whether any map of the seats was read: before that nobody can say which are free.
    pub known: Told<bool>,
    /// The section on screen, in a large room.
    pub section: Told<Option<usize>>,
    /// Counts how often one was chosen: rows of a section that was left are not asked for again.
    pub(super) choices: Kept<u64>,
    /// Wish and hold.
    pub cart: Told<Cart>,
    /// Every seat's state.
    pub board: Kept<Board>,
    /// Free seats of each section, live.
    pub free: Kept<Vec<Told<u32>>>,
    pub(super) counting: Kept<Counting>,
    /// The section that was left for the overview, until the focus is back on its card; and whether by the keyboard.
    pub(super) left_section: Kept<Option<(usize, bool)>>,
    /// The categories looked for, a bit each by their number modulo eight; none means all.
    pub only: Told<u64>,
    /// Whether the sections of a large room stood there to be chosen.
    pub(super) sections_drawn: Told<bool>,
    /// Whether a large room is on its canvas, or will be with the next frame of the worker that paints it.
    pub painted: Told<bool>,
    pub(super) canvas: Kept<Option<Here<Box<dyn Surface>>>>,
    /// The seat one pointed at last.
    pub(super) pointed: Told<Option<SeatIndex>>,
    /// Where one is on the map.
    pub(super) shown: Shown,
    /// Hears of every seat on screen that looks different: the room in small.
    pub(super) small: Kept<Option<Here<Note>>>,
    /// Counts how often the page may look different than before: another theme, another size.
    pub(super) appearance: Told<u64>,
    /// Places left in every area, live.
    pub places_left: Told<Vec<(AreaIndex, u32)>>,
    /// Whether we were told that others wait for what is free.
    pub others_wait: Told<bool>,
    /// How the live connection stands.
    pub live: Told<Live>,
    /// What the visitor must know now.
    pub notice: Told<Option<Notice>>,
    /// Seats of others that the visitor wants to hear of.
    pub(super) watched: Kept<Vec<Watched>>,
    /// The seat that was tapped last and could not be taken: staff are told whose it is.
    pub tapped_in_vain: Told<Option<SeatIndex>>,
    /// What a screen reader says when it is free to.
    pub spoken: Told<String>,
    /// Milliseconds until the hold ends, stepwise; `None` without a hold.
    pub left_ms: Told<Option<i64>>,
    /// The live connection itself.
    pub(super) connection: Kept<Here<Connection>>,
    tabs: Kept<Option<Here<Tabs>>>,
    /// Counts what happened to the hold, so that a question asked before cannot overwrite it.
    pub(super) turn: Kept<u64>,
    /// Set while a payment is asked for: leaving the page then is not abandoning, nothing that is wanted changes, and
    /// only the answer tells what became of the hold.
    pub(super) off_to_pay: Kept<bool>,
    /// The hold that was booked from this page, and its booking.
    pub(super) booked: Kept<Option<(Uuid, Uuid)>>,
    /// Whether more time was asked for and the answer is not there yet.
    pub extending: Told<bool>,
    /// Set while the countdown stands at zero and the server has not said what that means.
    pub(super) ending: Kept<Option<Ending>>,
}

impl Session {
    /// Nothing loaded yet.
    #[must_use]
    pub fn new(show: Uuid) -> Self {
        Self {
            show,
            is_for_looking: false,
            room: Told::new(None),
            unreachable: Told::new(None),
            room_reads: Kept::new(0),
            known: Told::new(false),
            section: Told::new(None),
            choices: Kept::new(0),
            left_section: Kept::new(None),
            cart: Told::new(Cart::default()),
            board: Kept::new(Board::default()),
            free: Kept::new(Vec::new()),
            counting: Kept::new(Counting::default()),
            only: Told::new(0),
            sections_drawn: Told::new(false),
            painted: Told::new(false),
            canvas: Kept::new(None),
            pointed: Told::new(None),
            shown: Shown::new(),
            small: Kept::new(None),
            appearance: Told::new(0),
            places_left: Told::new(Vec::new()),
            others_wait: Told::new(false),
            live: Told::new(Live::Connecting),
            notice: Told::new(None),
            watched: Kept::new(Vec::new()),
            tapped_in_vain: Told::new(None),
            spoken: Told::new(String::new()),
            left_ms: Told::new(None),
            connection: Kept::new(Here::new(Connection::default())),
            tabs: Kept::new(None),
            turn: Kept::new(0),
            off_to_pay: Kept::new(false),
            booked: Kept::new(None),
            extending: Told::new(false),
            ending: Kept::new(None),
        }
    }

    /// The same for staff, of a show that is sold no more.
    #[must_use]
    pub fn for_looking(show: Uuid) -> Self {
        Self { is_for_looking: true, ..Self::new(show) }
    }

    /// Address of something of this show.
    pub(super) fn path(&self, rest: &str) -> String {
        format!("/api/v1/shows/{}{rest}", self.show)
    }

    /// Listens to the other tabs of this visitor.
    pub(super) fn join_tabs(self) {
        // The other tab may have spoken while closing: its beacon arrives after its words.
        let tabs = Tabs::join(&format!("rowlock-hold-{}", self.show), move || self.recall_past_beacons());
        self.tabs.set_value(Some(Here::new(tabs)));
    }

    /// Tells the other tabs of this visitor that the hold is not what it was.
    pub fn tell_tabs(self) {
        self.tabs.with_value(|tabs| tabs.iter().for_each(|tabs| tabs.tell()));
    }

    /// The signal of a seat on screen.
    #[must_use]
    pub fn look_of(&self, seat: SeatIndex) -> Told<Look> {
        let signal = self.cart.with_untracked(|cart| self.board.update_value(|board| board.signal(seat, cart)));
        signal.unwrap_or_else(|| Told::new(Look::Blocked))
    }

    /// A tap, click or key on a seat.
    pub fn tap(self, seat: SeatIndex) {
        let look = self.look_now(seat);
        // What is held from before the end of sales can still be let go.
        if self.is_for_looking && !matches!(look, Look::Mine | Look::Asked) {
            self.tapped_in_vain.set(Some(seat));
            return;
        }
        if !look.can_be_tapped() {
            self.tapped_in_vain.set(Some(seat));
            let watchable = (look == Look::Locked).then_some(seat);
            let offer = watchable.and_then(|seat| self.nearest_to(&[seat]));
            self.notice.set(Some(Notice { offer, ..Notice::not_free(&self.name_of(seat), look, watchable) }));
            return;
        }
        let tapped = self.change_wish(|cart| cart.tap(seat));
        self.follow(tapped);
    }

    /// One place more or less in an area.
    pub fn step_places(self, area: AreaIndex, more: bool) {
        let tapped = self.change_wish(|cart| cart.step(area, more));
        self.follow(tapped);
    }

    /// What is on its way to be paid for stays what the buyer saw when they pressed.
    fn change_wish(self, change: impl FnOnce(&mut Cart) -> Tapped) -> Tapped {
        if self.off_to_pay.get_value() { Tapped::Paying } else { self.change_cart(change) }
    }

    fn follow(self, tapped: Tapped) {
        match tapped {
            Tapped::Wanted | Tapped::LetGo => {
                self.notice.set(None);
                self.pump();
            }
            Tapped::Full => self.notice.set(Some(Notice::full())),
            Tapped::Paying => self.notice.set(Some(Notice::paying())),
        }
    }

    /// Wants these seats and no others.
    pub(super) fn want_instead(self, seats: &[SeatIndex]) -> Tapped {
        let outcome = self.change_wish(|cart| cart.want_instead(seats));
        self.notice.set((outcome == Tapped::Paying).then(Notice::paying));
        self.pump();
        outcome
    }

    /// Wants these seats again, which were let go for something that was refused.
    pub fn choose_again(self, seats: &[SeatIndex]) {
        self.want_instead(seats);
    }

    /// Asks for the seats of an expired hold again.
    pub fn ask_again(self) {
        self.notice.set(None);
        self.change_cart(Cart::ask_again);
        self.pump();
    }

    /// The visitor leaves the page: unless it is to pay, the hold gets shortened.
    pub(super) fn leave(self) {
        let hold = self.cart.with_untracked(|cart| cart.held().filter(|held| !held.paying).map(|held| held.id));
        if let (Some(hold), false) = (hold, self.off_to_pay.get_value()) {
            calls::beacon(&self.path(&format!("/holds/{hold}/leave")));
            self.tell_tabs();
        }
    }

    /// Whether what is held is being paid for, or about to be.
    #[must_use]
    pub fn is_paying(self) -> bool {
        self.off_to_pay.get_value() || self.cart.with_untracked(Cart::is_paying)
    }

    /// Says that a payment is asked for from here on: the next time the page is left it is to pay. Or that this came to
    /// nothing.
    pub fn set_off_to_pay(self, off: bool) {
        self.off_to_pay.set_value(off);
    }

    /// What was held is sold, or was given to the house: the next wish begins.
    pub fn move_on(self) {
        self.change_cart(Cart::moved_on);
        self.notice.set(None);
        self.tick();
    }

    /// Says that a payment for this hold has begun: a page that is not left after all shows the way to its booking.
    pub fn note_paying(self, hold: Uuid, booking: Uuid) {
        self.change_cart(|cart| cart.payment_begun(hold, booking));
        self.set_off_to_pay(false);
    }

    /// Says that this hold was made a booking: when it ends, the booking knows why.
    pub fn note_booked(self, hold: Uuid, booking: Uuid) {
        self.booked.set_value(Some((hold, booking)));
    }

    /// Name of a seat for people.
    #[must_use]
    pub fn name_of(self, seat: SeatIndex) -> String {
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
            |room: &Arc<Room>| !room.plan().overview || self.sections_drawn.get() || self.section.get().is_some();
        (self.known.get() && self.room.with(|room| room.as_ref().is_some_and(is_there)))
            || self.unreachable.with(Option::is_some)
            || self.live.get() == Live::Offline
    }

    /// Whether no seat and no place is free; false while that is not known.
    #[must_use]
    pub fn is_sold_out(self) -> bool {
        if !self.known.get() || self.room.with(Option::is_none) {
            return false;
        }
        let no_seat = self.free.with_value(|free| free.iter().all(|free| free.get() == 0));
        no_seat && self.places_left.with(|left| left.iter().all(|(_, left)| *left == 0))
    }

    /// Name of an area for people.
    #[must_use]
    pub fn name_of_area(self, area: AreaIndex) -> String {
        let drawn = self.room.with_untracked(|room| {
            let areas = room.iter().flat_map(|room| &room.plan().areas);
            areas.into_iter().find(|known| known.area == area).map(|known| known.name.clone())
        });
        drawn.unwrap_or_else(|| say!("map.some_area", number = area))
    }

    /// What is known of some areas before the live map tells it of all.
    pub(super) fn note_places_left(self, left: &[(AreaIndex, u32)]) {
        self.places_left.update(|known| {
            for (area, left) in left {
                known.retain(|(other, _)| other != area);
                known.push((*area, *left));
            }
        });
    }

    /// What the live map says of a seat.
    pub(super) fn state_of(self, seat: SeatIndex) -> SeatState {
        self.board.with_value(|board| board.state(seat))
    }

    /// Changes the cart, then repaints the seats it concerns.
    pub(super) fn change_cart<T>(self, change: impl FnOnce(&mut Cart) -> T) -> T {
        self.turn.update_value(|turn| *turn += 1);
        let mut concerned = self.cart.with_untracked(seats_in);
        let outcome = self.cart.update(change);
        self.cart.with_untracked(|cart| {
            concerned.extend(seats_in(cart));
            self.board.update_value(|board| concerned.iter().for_each(|seat| board.repaint(*seat, cart)));
        });
        self.paint();
        outcome
    }

    /// Takes the whole map.
    pub(super) fn replace_map(self, map: &[SeatState]) {
        let replaced = self.cart.with_untracked(|cart| self.board.update_value(|board| board.replace(map, cart)));
        if replaced && !self.known.get_untracked() {
            self.known.set(true);
        }
        self.count_all();
        self.paint();
        self.look_at_watched();
    }

    /// Takes changes.
    pub(super) fn apply(self, changes: &[Change]) {
        // A seat we hold and the map says nobody does: the hold was ended elsewhere.
        let lost = |change: &Change| change.state != SeatState::Locked;
        if self.cart.with_untracked(|cart| changes.iter().any(|change| lost(change) && cart.holds(change.seat))) {
            self.recall();
        }
        self.cart.with_untracked(|cart| self.board.update_value(|board| board.apply(changes, cart)));
        self.count_soon(changes);
        self.paint();
        self.look_at_watched();
    }
}

fn seats_in(cart: &Cart) -> Vec<SeatIndex> {
    let held = cart.held().into_iter().flat_map(|held| held.seats.iter().map(|line| line.seat));
    cart.want().iter().copied().chain(held).collect()
}
