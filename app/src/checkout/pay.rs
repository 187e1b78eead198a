//! From a hold to the payment page: one request makes the booking and begins its payment, then the page is left.
//!
//! An attempt keeps its key, so that pressing again after a failure nobody can explain repeats the
//! same request and never makes a second booking.

use domain::api::cancelling::IfLate;
use domain::api::{AreaQuantity, BookingRequest, ConfirmRequest, PayAtOnce, Person};
use domain::money::Money;
use domain::seats::SeatIndex;
use gloo_net::http::Method;
use leptos::prelude::*;
use serde::Deserialize;
use uuid::Uuid;

use super::total_of;
use crate::browser::calls::{self, Failure};
use crate::browser::{self, events, ids};
use crate::language::problem_in_words;
use crate::say;
use crate::seat_map::own_seats::cart::Cart;
use crate::seat_map::own_seats::own_hold;
use crate::seat_map::session::Session;

/// How often we look whether the last taps were answered, milliseconds, and how often at most.
const SETTLE_POLL_MS: u32 = 50;
const SETTLE_POLLS: u32 = 100;

/// Where bookings are made.
const BOOKINGS: &str = "/api/v1/bookings";

/// The code of the problem that is no trouble: a code is mailed, and typed in.
const CODE_WANTED: &str = "email_code_wanted";

/// What the way to the payment page needs of a booking, and so the only part of it that is read here.
#[derive(Deserialize)]
struct Begun {
    id: Uuid,
    pay_url: Option<String>,
}

/// A booking that is to be paid for by another request.
#[derive(Deserialize)]
struct Made {
    id: Uuid,
    total: Money,
}

/// Why no payment has begun.
enum NotBegun {
    Failed(Failure),
    /// It costs something else than the buyer saw.
    PriceChanged,
}

impl NotBegun {
    /// Whether it is a definite no, and no trouble on the way.
    fn is_an_answer(&self) -> bool {
        match self {
            Self::Failed(failure) => (400..500).contains(&failure.status()),
            Self::PriceChanged => true,
        }
    }

    fn trouble(&self) -> Trouble {
        match self {
            Self::Failed(failure) => trouble(failure),
            Self::PriceChanged => Trouble::new(say!("problem.price_changed")),
        }
    }
}

impl From<Failure> for NotBegun {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// What is to be paid for: a hold as the buyer sees it.
#[derive(Clone, PartialEq)]
struct Settled {
    hold: Uuid,
    /// A hold keeps its id when its seats change; another choice is another intent.
    seats: Vec<SeatIndex>,
    places: Vec<AreaQuantity>,
    /// What stands in the cart: nobody pays another sum than they saw.
    total: Money,
}

/// One intent to pay: what was asked, of what, and under which key.
#[derive(Clone)]
pub struct Attempt {
    request: BookingRequest,
    settled: Settled,
    key: String,
}

impl Attempt {
    async fn begin(&self) -> Result<Begun, NotBegun> {
        match calls::change(Method::POST, BOOKINGS, &self.key, &self.request).await {
            // While replicas are exchanged the one that answers may be of the version before, which knows two requests.
            Err(failure) if failure.code() == "malformed" => self.begin_in_two().await,
            asked => Ok(asked?),
        }
    }

    async fn begin_in_two(&self) -> Result<Begun, NotBegun> {
        let request = BookingRequest { pay: None, ..self.request.clone() };
        let made: Made = calls::change(Method::POST, BOOKINGS, &format!("{}-made", self.key), &request).await?;
        if made.total != self.settled.total {
            return Err(NotBegun::PriceChanged);
        }
        let path = format!("{BOOKINGS}/{}/confirm", made.id);
        Ok(calls::change(Method::POST, &path, &format!("{}-paid", self.key), &ConfirmRequest::default()).await?)
    }
}

/// What stood in the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// What happened and what to do.
    pub text: String,
    /// Whether no answer came: once the server can be reached again, this is not true any more.
    pub is_unreachable: bool,
    /// Whether a code that is mailed to the buyer would help.
    pub wants_code: bool,
}

impl Trouble {
    fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_unreachable: false, wants_code: false }
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
    let settled = settled_hold(session).await?;
    let hold = settled.hold;
    let pay = Some(PayAtOnce { total_minor: settled.total.minor, payment_token: None });
    let request = BookingRequest { show: session.show, hold, buyer, holder, if_late, pay };
    let same = attempt.get_value().filter(|attempt| attempt.request == request && attempt.settled == settled);
    let intent = same.unwrap_or_else(|| Attempt { request, settled, key: ids::new_key() });
    attempt.set_value(Some(intent.clone()));

    // Before it is sent: from then on the seats may be on their way to a booking that only the answer names.
    session.set_payment_pending(true);
    let asked = intent.begin().await;
    // Other tabs saw the hold close before there was a booking to lead to, and their countdowns would run out on the old
    // instant: paying has moved it.
    session.notify_tabs();
    let booking = asked.map_err(|why| {
        // Trying again after a no is another intent.
        if why.is_an_answer() {
            attempt.set_value(None);
        }
        session.set_payment_pending(false);
        // What is held may have ended, or cost something else by now.
        own_hold::refresh(session);
        why.trouble()
    })?;
    // The browser may be stopped on its way, or what it goes to may not be there.
    own_hold::record_payment(session, hold, booking.id);
    browser::go_to(&booking.pay_url.unwrap_or_else(|| format!("/bookings/{}", booking.id)));
    Ok(())
}

/// What is held, once every tap was answered.
async fn settled_hold(session: Session) -> Result<Settled, Trouble> {
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
        // Whatever is held has a price; nobody pays for what has none.
        Some(Settled { hold: held.id, seats, places, total: total? })
    });
    held.ok_or_else(|| Trouble::new(say!("pay.not_held")))
}

pub(super) fn trouble(failure: &Failure) -> Trouble {
    let text = match (failure.code(), failure) {
        ("hold_expired" | "not_found", _) => say!("pay.ran_out"),
        ("seats_taken" | "seats_locked", _) => say!("pay.not_kept"),
        ("gateway_unavailable", _) => say!("pay.gateway"),
        // In every language what to do now; the new sum stands in the cart.
        ("price_changed", _) => say!("problem.price_changed"),
        ("payment_declined", _) => say!("pay.declined"),
        (_, Failure::Unreachable) => say!("pay.unreachable"),
        (_, Failure::Problem(problem)) => problem_in_words(problem),
    };
    let is_unreachable = matches!(failure, Failure::Unreachable);
    Trouble { text, is_unreachable, wants_code: failure.code() == CODE_WANTED }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::api::ProblemView;

    #[test]
    fn no_answer_invites_to_press_again_without_fear() {
        let met = trouble(&Failure::Unreachable);
        assert!(met.text.contains("not be charged twice"), "{}", met.text);
        assert!(met.is_unreachable, "it is over when the line is back");
    }

    #[test]
    fn whoever_is_told_another_price_is_told_what_to_do() {
        let problem = ProblemView {
            kind: String::new(),
            title: "The price has changed".to_owned(),
            status: 409,
            detail: "It costs 12.50 EUR now.".to_owned(),
            code: "price_changed".to_owned(),
            seats: Vec::new(),
            areas: Vec::new(),
            findings: Vec::new(),
            puzzle: None,
            hold: None,
            request_id: None,
        };
        let met = trouble(&Failure::Problem(Box::new(problem)));
        assert!(met.text.contains("new total, then pay"), "{}", met.text);
    }
}
