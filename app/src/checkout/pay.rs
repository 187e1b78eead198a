//! From a hold to the payment page: one request creates the booking and starts its payment, then the page is left.
//!
//! An attempt keeps its idempotency key: a press after an unexplained failure repeats the same request and never
//! creates a second booking.

use domain::api::cancelling::LatePaymentHandling;
use domain::api::{AreaQuantity, BookingRequest, CheckoutPayment, ConfirmRequest, Person};
use domain::money::Money;
use domain::seats::SeatIndex;
use language::say;
use leptos::prelude::*;
use serde::Deserialize;
use uuid::Uuid;

use super::total_of;
use crate::browser::calls::{self, Failure};
use crate::browser::{events, ids};
use crate::payment_retry::{BOOKINGS, StartedPayment};
use crate::seat_map::own_seats::cart::Cart;
use crate::seat_map::own_seats::own_hold;
use crate::seat_map::session::MapSession;

/// Interval and most repetitions of the check whether all taps are answered, milliseconds.
const SETTLE_POLL_MS: u32 = 50;
const SETTLE_POLLS: u32 = 100;

/// Problem code after which a code is mailed and typed in. Not shown as an error.
const CODE_WANTED: &str = "email_code_wanted";

/// A booking that another request pays for.
#[derive(Deserialize)]
struct CreatedBooking {
    id: Uuid,
    total: Money,
}

/// The reason why no payment was started.
enum PaymentError {
    Failed(Failure),
    /// The price differs from what the buyer saw.
    PriceChanged,
}

impl PaymentError {
    /// Returns true if the server refused finally, unlike a failure in transit.
    fn is_refusal(&self) -> bool {
        match self {
            Self::Failed(failure) => (400..500).contains(&failure.status()),
            Self::PriceChanged => true,
        }
    }

    fn checkout_error(&self) -> CheckoutError {
        match self {
            Self::Failed(failure) => error_of(failure),
            Self::PriceChanged => CheckoutError::new(say!("problem.price_changed")),
        }
    }
}

impl From<Failure> for PaymentError {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// The hold to pay for, as the buyer sees it.
#[derive(Clone, PartialEq)]
struct PayableHold {
    hold: Uuid,
    /// A hold keeps its id when its seats change; other seats are another intent.
    seats: Vec<SeatIndex>,
    places: Vec<AreaQuantity>,
    /// The total in the cart: the buyer pays what they saw.
    total: Money,
}

/// An intent to pay: the request, the hold it is for, and its idempotency key.
#[derive(Clone)]
pub struct PaymentAttempt {
    request: BookingRequest,
    settled: PayableHold,
    key: String,
}

impl PaymentAttempt {
    async fn begin(&self) -> Result<StartedPayment, PaymentError> {
        match calls::change(BOOKINGS, &self.key, &self.request).await {
            // During a rolling update an older replica may answer, which needs two requests.
            Err(failure) if failure.code() == "malformed" => self.begin_in_two().await,
            started => Ok(started?),
        }
    }

    async fn begin_in_two(&self) -> Result<StartedPayment, PaymentError> {
        let request = BookingRequest { pay: None, ..self.request.clone() };
        let created: CreatedBooking = calls::change(BOOKINGS, &format!("{}-made", self.key), &request).await?;
        if created.total != self.settled.total {
            return Err(PaymentError::PriceChanged);
        }
        let path = format!("{BOOKINGS}/{}/confirm", created.id);
        Ok(calls::change(&path, &format!("{}-paid", self.key), &ConfirmRequest::default()).await?)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckoutError {
    /// Message: the cause and the next step.
    pub text: String,
    /// True if no answer came. Such an error is cleared once the server is reachable.
    pub is_unreachable: bool,
    /// True if a mailed code is required.
    pub wants_code: bool,
}

impl CheckoutError {
    fn new(text: String) -> Self {
        Self { text, is_unreachable: false, wants_code: false }
    }
}

/// Books the hold for the buyer, or for a friend as ticket holder, and opens the payment page.
///
/// # Errors
/// [`CheckoutError`], in words; the page then stays.
pub async fn pay(
    session: MapSession,
    (buyer, holder): (Person, Option<Person>),
    if_late: LatePaymentHandling,
    attempt: StoredValue<Option<PaymentAttempt>>,
) -> Result<(), CheckoutError> {
    let settled = await_settled_hold(session).await?;
    let hold = settled.hold;
    let pay = Some(CheckoutPayment { total_minor: settled.total.minor, payment_token: None });
    let request = BookingRequest { show: session.show, hold, buyer, holder, if_late, pay };
    let same = attempt.get_value().filter(|attempt| attempt.request == request && attempt.settled == settled);
    let intent = same.unwrap_or_else(|| PaymentAttempt { request, settled, key: ids::new_key() });
    attempt.set_value(Some(intent.clone()));

    // Set before sending: from then on the seats may be booked, and only the answer names the booking.
    session.set_payment_pending(true);
    let started = intent.begin().await;
    // Other tabs saw the hold close before there was a booking to link to. Their countdowns need the new expiry that
    // the payment has set.
    session.notify_tabs();
    let booking = started.map_err(|why| {
        // A retry after a refusal is a new intent.
        if why.is_refusal() {
            attempt.set_value(None);
        }
        session.set_payment_pending(false);
        // The hold may have ended or changed its price.
        own_hold::refresh(session);
        why.checkout_error()
    })?;
    // Navigation may be stopped or its target unavailable.
    own_hold::record_payment(session, hold, booking.id);
    booking.open();
    Ok(())
}

/// The hold, after every tap was answered.
async fn await_settled_hold(session: MapSession) -> Result<PayableHold, CheckoutError> {
    for _ in 0..SETTLE_POLLS {
        if session.cart.with_untracked(Cart::is_settled) {
            break;
        }
        events::after(SETTLE_POLL_MS).await;
    }
    let total = untrack(|| total_of(session));
    let held = session.cart.with_untracked(|cart| {
        let held = cart.held().filter(|_| cart.is_settled())?;
        let (seats, places) = (cart.want().to_vec(), cart.want_places().to_vec());
        // Every hold has a price. Without one nothing is paid.
        Some(PayableHold { hold: held.id, seats, places, total: total? })
    });
    held.ok_or_else(|| CheckoutError::new(say!("pay.not_held")))
}

pub(super) fn error_of(failure: &Failure) -> CheckoutError {
    let text = match failure.code() {
        "hold_expired" | "not_found" => say!("pay.ran_out"),
        "seats_taken" | "seats_locked" => say!("pay.not_kept"),
        "gateway_unavailable" => say!("pay.gateway"),
        // This message says what to do; the cart shows the new total.
        "price_changed" => say!("problem.price_changed"),
        _ => failure.in_words("pay.unreachable"),
    };
    let is_unreachable = matches!(failure, Failure::Unreachable);
    CheckoutError { text, is_unreachable, wants_code: failure.code() == CODE_WANTED }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::api::ProblemView;

    #[test]
    fn a_missing_answer_explains_that_a_retry_is_safe() {
        let error = error_of(&Failure::Unreachable);
        assert!(error.text.contains("not be charged twice"), "{}", error.text);
        assert!(error.is_unreachable, "cleared once the server is reachable");
    }

    #[test]
    fn a_changed_price_explains_what_to_do() {
        let problem = ProblemView {
            title: "The price has changed".to_owned(),
            status: 409,
            detail: "It costs 12.50 EUR now.".to_owned(),
            code: "price_changed".to_owned(),
            ..ProblemView::default()
        };
        let error = error_of(&Failure::Problem(Box::new(problem)));
        assert!(error.text.contains("new total, then pay"), "{}", error.text);
    }
}
