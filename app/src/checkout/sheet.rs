//! The cart's sheet on a phone. While it is open, the cart covers the map. A wide page has no button that opens it.
//!
//! The open sheet has an entry in the history of the tab, so that a phone's Back closes it and does not leave the show.
//! Escape and a focus behind the sheet close it too.

use leptos::prelude::*;

use crate::browser::{self, events};
use crate::seat_map::focus_seats;
use crate::seat_map::session::MapSession;

/// State of the sheet's entry in the history.
const ENTRY: &str = "cart";
/// The parts of the page in front of the map while the sheet is open.
const IN_FRONT: &str = ".cart, .notice";

/// The sheet's state, and its entry in the history.
#[derive(Clone, Copy)]
pub struct CartSheet {
    session: MapSession,
    pub is_open: RwSignal<bool>,
    /// True while the page itself goes back from the sheet's entry.
    is_going_back: StoredValue<bool>,
}

impl CartSheet {
    /// A closed sheet, which follows the page's events.
    pub fn new(session: MapSession) -> Self {
        let sheet = Self { session, is_open: RwSignal::new(false), is_going_back: StoredValue::new(false) };
        events::on_window("popstate", move |_| sheet.follow_history());
        events::on_escape(move || sheet.return_to_map());
        events::on_window("focusin", move |_| {
            // A frame later: a message whose button disappears returns the focus to the sheet.
            request_animation_frame(move || sheet.hide_if_focus_left());
        });
        sheet
    }

    /// Opens the sheet and focuses the first field.
    pub fn open(self) {
        self.is_open.set(true);
        // The entry is still there after a reload, and after `hide`.
        if !browser::is_history_at(ENTRY) {
            browser::push_history(ENTRY);
        }
        request_animation_frame(|| browser::focus("buyer-name"));
    }

    /// Closes the sheet, leaves its entry and moves the focus to the seats.
    pub fn return_to_map(self) {
        if !self.is_open.get_untracked() {
            return;
        }
        self.hide();
        if browser::is_history_at(ENTRY) && !self.is_going_back.get_value() && !self.session.is_paying() {
            self.is_going_back.set_value(true);
            browser::go_back();
        }
        // The sheet is closed with the next frame.
        request_animation_frame(focus_seats);
    }

    /// Closes the sheet and keeps its entry: going back would stop the navigation to a link or a booking.
    pub fn hide(self) {
        self.is_open.set(false);
    }

    /// Closes the sheet if a control behind it has the focus.
    fn hide_if_focus_left(self) {
        if self.is_open.get_untracked() && !browser::has_no_focus() && !browser::has_focus_in(IN_FRONT) {
            self.hide();
        }
    }

    /// Closes the sheet after a press of Back. After `return_to_map` it only restores the entry of a sheet that was
    /// opened meanwhile.
    fn follow_history(self) {
        if !self.is_going_back.get_value() {
            self.return_to_map();
            return;
        }
        self.is_going_back.set_value(false);
        if self.is_open.get_untracked() {
            browser::push_history(ENTRY);
        }
    }
}
