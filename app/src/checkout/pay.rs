//! From a hold to the payment page: make the booking, confirm it, go.
//!
//! An attempt keeps its keys, so that pressing again after a failure nobody can explain repeats the
//! same request and never makes a second booking.

use domain::api::cancelling::IfLate;
use domain::api::{AreaQuantity, BookingRequest, ConfirmRequest, Person};
use domain::seats::SeatIndex;
use gloo_net::http::Method;
use leptos::prelude::*;
use serde::Deserialize;
use uuid::Uuid;

use crate::browser::calls::{self, Failure};
use crate::browser::{self, events, ids};
use crate::language::problem_in_words;
use crate::say;
use crate::seat_map::own_seats::cart::Cart;
use crate::seat_map::session::Session;

/// How often we look whether the last taps were answered, milliseconds, and how often at most.
const SETTLE_POLL_MS: u32 = 50;
const SETTLE_POLLS: u32 = 100;

/// The code of the problem that is no trouble: a code is mailed, and typed in.
const CODE_WANTED: &str = "email_code_wanted";

/// What the way to the payment page needs of a booking, and so the only part of it that is read here.
#[derive(Deserialize)]
struct Begun {
    id: Uuid,
    pay_url: Option<String>,
}

/// One intent to pay: what was asked, and under which keys.
#[derive(Clone)]
pub struct Attempt {
    request: BookingRequest,
    /// A hold keeps its id when its seats change; another choice is another intent.
    seats: Vec<SeatIndex>,
    places: Vec<AreaQuantity>,
    booking_key: String,
    confirm_key: String,
}

/// What stood in the way, and the booking concerned if there is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// What happened and what to do.
    pub text: String,
    /// Whether no answer came: once the server can be reached again, this is not true any more.
    pub is_unreachable: bool,
    /// The booking to look at.
    pub booking: Option<Uuid>,
    /// Whether a code that is mailed to the buyer would help.
    pub wants_code: bool,
}

impl Trouble {
    fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_unreachable: false, booking: None, wants_code: false }
    }
}

/// Books what is held, for the buyer or for the friend who is the holder, and leaves for the payment page.
///
/// # Errors
/// [`Trouble`], in words; the page is not left then.
pub async fn pay(
    session: Session,
    (buyer, holder): (Person, Option<Person>),
    if_late: IfLate,
    attempt: StoredValue<Option<Attempt>>,
) -> Result<(), Trouble> {
    let (hold, seats, places) = settled_hold(session).await?;
    let request = BookingRequest { show: session.show, hold, buyer, holder, if_late };
    let same = attempt
        .get_value()
        .filter(|attempt| attempt.request == request && attempt.seats == seats && attempt.places == places);
    let intent = same.unwrap_or_else(|| Attempt {
        request,
        seats,
        places,
        booking_key: ids::new_key(),
        confirm_key: ids::new_key(),
    });
    attempt.set_value(Some(intent.clone()));

    let forget_if_final = |failure: &Failure| {
        // A definite no is an answer; trying again is another intent.
        if (400..500).contains(&failure.status()) {
            attempt.set_value(None);
        }
    };
    let made = calls::change::<Begun>(Method::POST, "/api/v1/bookings", &intent.booking_key, &intent.request);
    let booking = made.await.map_err(|failure| {
        forget_if_final(&failure);
        session.recall();
        trouble(&failure, None)
    })?;
    session.note_booked(hold, booking.id);
    session.set_off_to_pay(true);
    let path = format!("/api/v1/bookings/{}/confirm", booking.id);
    let by_page = ConfirmRequest::default();
    let asked = calls::change::<Begun>(Method::POST, &path, &intent.confirm_key, &by_page);
    let confirmed = asked.await.map_err(|failure| {
        forget_if_final(&failure);
        session.recall();
        trouble(&failure, Some(booking.id))
    })?;
    // Their countdowns would run out on the old instant: paying has moved it.
    session.tell_tabs();
    // The browser may be stopped on its way, or what it goes to may not be there.
    session.note_paying(hold, booking.id);
    browser::go_to(&confirmed.pay_url.unwrap_or_else(|| format!("/bookings/{}", booking.id)));
    Ok(())
}

/// The hold with its seats and places, once every tap was answered.
async fn settled_hold(session: Session) -> Result<(Uuid, Vec<SeatIndex>, Vec<AreaQuantity>), Trouble> {
    for _ in 0..SETTLE_POLLS {
        if session.cart.with_untracked(Cart::is_settled) {
            break;
        }
        events::after(SETTLE_POLL_MS).await;
    }
    let held = session.cart.with_untracked(|cart| {
        let held = cart.held().filter(|_| cart.is_settled())?;
        Some((held.id, cart.want().to_vec(), cart.want_places().to_vec()))
    });
    held.ok_or_else(|| Trouble::new(say!("pay.not_held")))
}

pub(super) fn trouble(failure: &Failure, booking: Option<Uuid>) -> Trouble {
    let text = match (failure.code(), failure) {
        ("hold_expired" | "not_found", _) => say!("pay.ran_out"),
        ("seats_taken" | "seats_locked", _) => say!("pay.not_kept"),
        ("gateway_unavailable", _) => say!("pay.gateway"),
        ("payment_declined", _) => say!("pay.declined"),
        (_, Failure::Unreachable) => say!("pay.unreachable"),
        (_, Failure::Problem(problem)) => problem_in_words(problem),
    };
    let is_unreachable = matches!(failure, Failure::Unreachable);
    Trouble { text, is_unreachable, booking, wants_code: failure.code() == CODE_WANTED }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_answer_invites_to_press_again_without_fear() {
        let met = trouble(&Failure::Unreachable, None);
        assert!(met.text.contains("not be charged twice"), "{}", met.text);
        assert!(met.is_unreachable, "it is over when the line is back");
    }
}
