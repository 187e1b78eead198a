//! Requests of the buyer about a booking: idempotent over several presses, with their errors.

use gloo_net::http::Method;
use leptos::prelude::*;
use leptos::task::spawn_local;
use serde::Serialize;

use super::FollowedBooking;
use crate::browser::calls::{self, Failure};
use crate::browser::{self, ids};
use crate::language::problem_in_words;
use crate::say;

/// A request and its state. It outlives the panel with its button.
pub(super) struct BookingAction<W: 'static> {
    booking: RwSignal<FollowedBooking>,
    /// True if the request is in flight.
    pub busy: RwSignal<bool>,
    /// The error of the last request.
    pub trouble: RwSignal<Option<String>>,
    /// The last request and its key: a press after no answer is a retry.
    attempt: StoredValue<Option<(W, String)>>,
}

impl<W: 'static> Clone for BookingAction<W> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<W: 'static> Copy for BookingAction<W> {}

impl<W: Clone + PartialEq + Serialize + Send + Sync + 'static> BookingAction<W> {
    /// No request made yet.
    pub fn new(booking: RwSignal<FollowedBooking>) -> Self {
        Self { booking, busy: RwSignal::new(false), trouble: RwSignal::new(None), attempt: StoredValue::new(None) }
    }

    /// Sends the request to this address of the booking. `unreachable` is the message for a missing answer.
    pub fn send(self, address: &'static str, request: W, unreachable: &'static str) {
        if self.busy.get_untracked() {
            return;
        }
        let same = self.attempt.get_value().filter(|(earlier, _)| *earlier == request);
        let key = same.map_or_else(ids::new_key, |(_, key)| key);
        self.attempt.set_value(Some((request.clone(), key.clone())));
        self.busy.set(true);
        self.trouble.set(None);
        let page = self.booking.with_untracked(|booking| format!("/bookings/{}", booking.id));
        spawn_local(async move {
            let path = format!("/api/v1{page}/{address}");
            match calls::change::<FollowedBooking>(Method::POST, &path, &key, &request).await {
                // The page shows seats, total and history, so it is loaded again.
                Ok(_) => browser::go_to(&page),
                Err(failure) => {
                    if (400..500).contains(&failure.status()) {
                        self.attempt.set_value(None);
                    }
                    self.busy.set(false);
                    self.trouble.set(Some(error_in_words(&failure, unreachable)));
                }
            }
        });
    }
}

/// The failure in words for the buyer.
pub(super) fn error_in_words(failure: &Failure, unreachable: &'static str) -> String {
    match failure {
        Failure::Problem(problem) => problem_in_words(problem),
        Failure::Unreachable => say!(unreachable),
    }
}
