//! The rows that a batch writes, collected while it is planned. `flush` writes them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use domain::booking::{Booking, BookingState, Effect};
use domain::money::Money;
use domain::seats::SeatIndex;
use domain::time::Timestamp;
use uuid::Uuid;

use super::BookingDetails;
use crate::bookings::moves::Cause;
use crate::bookings::sql::BookingRow;
use http::idempotency::{Answer, Intent};
use payments::{PaymentEvent, PaymentEventOutcome};

/// Treatment of rows that should be new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Uniqueness {
    /// They were looked up a moment ago, or are known to be new: Postgres does not check each for a conflict.
    Assumed,
    /// A duplicate occurred: each row is checked, so that the duplicate is known.
    Checked,
}

/// One event of a booking's history.
#[derive(Debug)]
pub(super) struct EventLine {
    pub(super) booking: Uuid,
    pub(super) number: i32,
    pub(super) event: &'static str,
    pub(super) from: Option<BookingState>,
    pub(super) to: Booking,
    pub(super) actor: String,
    pub(super) reason: String,
}

impl EventLine {
    /// Creates the event that moved the booking to its state in `row`.
    pub(super) fn of(row: &BookingRow, from: Option<BookingState>, event: &'static str, cause: Cause<'_>) -> Self {
        Self {
            booking: row.id,
            number: row.version,
            event,
            from,
            to: row.machine,
            actor: cause.actor.to_owned(),
            reason: cause.reason.to_owned(),
        }
    }
}

/// A move of a booking, with the state and version it was planned for.
#[derive(Debug)]
pub(super) struct Update {
    pub(super) booking: Uuid,
    pub(super) from: BookingState,
    pub(super) from_version: i32,
    pub(super) to: Booking,
    /// One more than `from_version`, or two where it was paid and sold at once.
    pub(super) to_version: i32,
}

/// A charge to be requested.
#[derive(Debug)]
pub(super) struct Payment {
    pub(super) booking: Uuid,
    pub(super) gateway: &'static str,
    pub(super) amount: Money,
    pub(super) token: Option<String>,
}

/// A gateway's report about a payment, whatever it means for the booking.
#[derive(Debug)]
pub(super) struct PaymentNote {
    pub(super) state: &'static str,
    pub(super) gateway_ref: Option<String>,
    pub(super) pay_url: Option<String>,
}

/// Maximum distance of seats of one booking that are looked up as one range. Claims of other bookings in the range
/// are read unnecessarily.
const NEAR: i32 = 4;

/// A seat of a booking that is to be claimed or sold. Ordered by show and seat.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Claim {
    pub(super) show: Uuid,
    pub(super) seat: i32,
    pub(super) booking: Uuid,
    pub(super) fence: i64,
    pub(super) expires_at: Timestamp,
}

impl Claim {
    /// Checks that `next` is of the same booking, and near enough for one range lookup.
    pub(super) fn is_followed_by(&self, next: &Self) -> bool {
        self.booking == next.booking && self.show == next.show && next.seat - self.seat <= NEAR
    }

    fn all_of(row: &BookingRow) -> impl Iterator<Item = Self> {
        row.seats.iter().map(|seat: &SeatIndex| Self {
            show: row.show_id,
            seat: seat.cast_signed(),
            booking: row.id,
            fence: row.fence,
            expires_at: row.machine.expires_at,
        })
    }
}

/// Everything a batch writes.
#[derive(Default)]
pub(super) struct Writes {
    /// New bookings, in their state after the first steps.
    pub(super) bookings: Vec<Arc<BookingDetails>>,
    pub(super) events: Vec<EventLine>,
    pub(super) payments: Vec<Payment>,
    pub(super) effects: Vec<(Uuid, Effect)>,
    /// Bookings whose charge is done.
    pub(super) charged: Vec<Uuid>,
    /// Each booking once: a statement moves a row once.
    pub(super) moves: Vec<Update>,
    pub(super) claims: Vec<Claim>,
    pub(super) sales: Vec<Claim>,
    /// Bookings that become tickets, in the order of their sale.
    pub(super) sold: Vec<(Uuid, Vec<i32>)>,
    pub(super) notes: BTreeMap<Uuid, PaymentNote>,
    pub(super) claimed_keys: Vec<(usize, Intent, Option<Answer>)>,
    pub(super) completed_keys: Vec<(Intent, Answer)>,
    pub(super) noted_events: Vec<(usize, PaymentEvent, PaymentEventOutcome)>,
    /// The pieces of the batch that move each booking.
    pub(super) pieces: HashMap<Uuid, Vec<usize>>,
}

impl Writes {
    /// Records that the piece at this place writes rows of this booking.
    pub(super) fn touches(&mut self, booking: Uuid, place: usize) {
        self.pieces.entry(booking).or_default().push(place);
    }

    pub(super) fn claim_seats(&mut self, row: &BookingRow) {
        self.claims.extend(Claim::all_of(row));
    }

    pub(super) fn sell(&mut self, row: &BookingRow) {
        self.sales.extend(Claim::all_of(row));
        self.sold.push((row.id, row.seats.iter().map(|seat| seat.cast_signed()).collect()));
    }

    /// Keeps the latest report on a payment, with the reference and page of an earlier one where it has none.
    pub(super) fn note_payment(&mut self, booking: Uuid, note: PaymentNote) {
        let earlier = self.notes.remove(&booking);
        let (gateway_ref, pay_url) = earlier.map_or((None, None), |earlier| (earlier.gateway_ref, earlier.pay_url));
        let note = PaymentNote {
            state: note.state,
            gateway_ref: note.gateway_ref.or(gateway_ref),
            pay_url: note.pay_url.or(pay_url),
        };
        self.notes.insert(booking, note);
    }

    pub(super) fn claim_key(&mut self, place: usize, intent: &Intent, answer: Option<Answer>) {
        self.claimed_keys.push((place, intent.clone(), answer));
    }

    pub(super) fn complete_key(&mut self, intent: &Intent, answer: Answer) {
        self.completed_keys.push((intent.clone(), answer));
    }

    pub(super) fn note_event(&mut self, place: usize, news: &PaymentEvent, outcome: PaymentEventOutcome) {
        self.noted_events.push((place, news.clone(), outcome));
    }
}
