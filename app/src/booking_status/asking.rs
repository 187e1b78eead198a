//! What the buyer asks for about a booking: once however often they press, and what the page does when it is refused.

use gloo_net::http::Method;
use leptos::prelude::*;
use leptos::task::spawn_local;
use serde::Serialize;

use super::FollowedBooking;
use crate::browser::calls::{self, Failure};
use crate::browser::{self, ids};
use crate::language::problem_in_words;
use crate::say;

/// A wish of the buyer's: outlives the panel that asks.
pub(super) struct Asking<W: 'static> {
    booking: RwSignal<FollowedBooking>,
    /// Whether it is on its way.
    pub busy: RwSignal<bool>,
    /// Why it was refused.
    pub trouble: RwSignal<Option<String>>,
    /// One intent, one key: pressing again after no answer does nothing twice.
    attempt: StoredValue<Option<(W, String)>>,
}

impl<W: 'static> Clone for Asking<W> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<W: 'static> Copy for Asking<W> {}

impl<W: Clone + PartialEq + Serialize + Send + Sync + 'static> Asking<W> {
    /// Nothing was asked for yet.
    pub fn new(booking: RwSignal<FollowedBooking>) -> Self {
        Self { booking, busy: RwSignal::new(false), trouble: RwSignal::new(None), attempt: StoredValue::new(None) }
    }

    /// Asks at this address of the booking's; `unreachable` is what is said where no answer comes.
    pub fn send(self, address: &'static str, wish: W, unreachable: &'static str) {
        if self.busy.get_untracked() {
            return;
        }
        let again = self.attempt.get_value().filter(|(earlier, _)| *earlier == wish);
        let key = again.map_or_else(ids::new_key, |(_, key)| key);
        self.attempt.set_value(Some((wish.clone(), key.clone())));
        self.busy.set(true);
        self.trouble.set(None);
        let page = self.booking.with_untracked(|booking| format!("/bookings/{}", booking.id));
        spawn_local(async move {
            let path = format!("/api/v1{page}/{address}");
            match calls::change::<FollowedBooking>(Method::POST, &path, &key, &wish).await {
                // Seats, sum and story are the page's: it is read again.
                Ok(_) => browser::go_to(&page),
                Err(failure) => {
                    if (400..500).contains(&failure.status()) {
                        self.attempt.set_value(None);
                    }
                    self.busy.set(false);
                    self.trouble.set(Some(trouble(&failure, unreachable)));
                }
            }
        });
    }
}

/// A failure as the buyer reads it.
pub(super) fn trouble(failure: &Failure, unreachable: &'static str) -> String {
    match failure {
        Failure::Problem(problem) => problem_in_words(problem),
        Failure::Unreachable => say!(unreachable),
    }
}
