//! What a batch writes, gathered while it is planned. `flush` writes it.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use domain::booking::{Booking, BookingState, Effect};
use domain::money::Money;
use domain::seats::SeatIndex;
use domain::time::Timestamp;
use uuid::Uuid;

use super::Found;
use crate::bookings::moves::Cause;
use crate::bookings::sql::BookingRow;
use http::idempotency::{Answer, Intent};
use payments::{NewsOutcome, PaymentNews};

/// Whether rows that a batch writes anew may be there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fresh {
    /// They were looked for a moment ago, or are known to be new: Postgres need not look before it writes each.
    Surely,
    /// One was there all the same: each is looked for, so that it is known whose.
    Perhaps,
}

/// One line of a booking's story.
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
    /// What brought the booking to where `row` has it.
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

/// A move of a booking, with the state and version it was decided on.
#[derive(Debug)]
pub(super) struct Update {
    pub(super) booking: Uuid,
    pub(super) from: BookingState,
    pub(super) from_version: i32,
    pub(super) to: Booking,
    /// One more, or two where it was paid and sold at once.
    pub(super) to_version: i32,
}

/// A charge that will be asked for.
#[derive(Debug)]
pub(super) struct Payment {
    pub(super) booking: Uuid,
    pub(super) gateway: &'static str,
    pub(super) amount: Money,
    pub(super) token: Option<String>,
}

/// What a gateway said of a payment, whatever it means for the booking.
#[derive(Debug)]
pub(super) struct PaymentNote {
    pub(super) state: &'static str,
    pub(super) gateway_ref: Option<String>,
    pub(super) pay_url: Option<String>,
}

/// Seats of a booking that are no further apart are looked up as one. Between them are claims of others, which are read
/// in vain.
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
    /// Whether another is of the same booking, and so near behind it that both are found by one look.
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
    /// New ones, as they stand after their first steps.
    pub(super) bookings: Vec<Arc<Found>>,
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
    pub(super) noted_events: Vec<(usize, PaymentNews, NewsOutcome)>,
    /// Which pieces of the batch move a booking.
    pub(super) pieces: HashMap<Uuid, Vec<usize>>,
}

impl Writes {
    /// The piece at this place writes something of this booking.
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

    /// The last word on a payment counts; what an earlier one knew besides is kept.
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

    pub(super) fn note_event(&mut self, place: usize, news: &PaymentNews, outcome: NewsOutcome) {
        self.noted_events.push((place, news.clone(), outcome));
    }
}
