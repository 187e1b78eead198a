//! New bookings in a batch: checked out, or checked out and paid for at once.

use axum::http::StatusCode;
use domain::api::SeatLine;
use domain::booking::{BookingEvent, step};
use domain::time::Timestamp;

use super::{Plan, Planned};
use crate::bookings::checkout::create::unmoved;
use crate::bookings::commits::load::BookingDetails;
use crate::bookings::commits::writes::EventLine;
use crate::bookings::commits::{Checkout, Done, NewBooking, Submission};
use crate::bookings::moves::{MoveError, causes};
use crate::bookings::sql::BookingRow;
use crate::bookings::views::view;
use catalogue::Show;
use http::Problem;
use http::idempotency::Answer;

/// A new booking after its first step, with its history.
struct CreatedBooking {
    row: BookingRow,
    lines: Vec<SeatLine>,
    history: [EventLine; 2],
}

impl CreatedBooking {
    fn of(show: &Show, new: &NewBooking, now: Timestamp) -> Result<Self, Problem> {
        let mut row = new.row.clone();
        let created = EventLine::of(&row, None, "created", causes::CHECKED_OUT);
        // No reader sees it in CREATED: it is written in its state after the hold was confirmed, or later.
        let stepped = step(row.machine, BookingEvent::HoldTaken, now);
        let (machine, effects) = stepped.map_err(|why| unmoved(MoveError::Refused(why)))?;
        assert!(effects.is_empty(), "a hold that was taken asks for nothing");
        let from = row.machine.state;
        row.machine = machine;
        row.version += 1;
        let held = EventLine::of(&row, Some(from), BookingEvent::HoldTaken.name(), causes::HOLD_CONFIRMED);
        let lines = row.seats.iter().map(|seat| show.line(*seat)).collect();
        Ok(Self { row, lines, history: [created, held] })
    }
}

impl Plan {
    pub(super) fn create(&mut self, place: usize, checkout: &Checkout) -> Planned {
        if !self.can_make(&checkout.new) || !self.take_key(&checkout.intent) {
            return Planned::NeedsOwnTransaction;
        }
        let made = match CreatedBooking::of(&checkout.show, &checkout.new, self.now) {
            Ok(made) => made,
            Err(refused) => return Planned::Refused(refused),
        };
        let view = view::compose(&checkout.show, &made.row, made.lines.clone(), Vec::new(), None);
        let answer = match Answer::json(StatusCode::CREATED, &view) {
            Ok(answer) => answer,
            Err(problem) => return Planned::Refused(problem),
        };
        self.make(place, made);
        self.writes.claim_key(place, &checkout.intent, Some(answer.clone()));
        Planned::Done(Done::Answered(answer))
    }

    /// Plans a checkout and its payment in one request: the booking is written in its final state.
    pub(super) fn submit_new(&mut self, place: usize, submission: &Submission, new: &NewBooking) -> Planned {
        if !self.can_make(new) || self.is_claimed(&new.row) {
            return Planned::NeedsOwnTransaction;
        }
        let event = BookingEvent::PaymentSubmitted { until: submission.until };
        let made = CreatedBooking::of(&submission.show, new, self.now);
        let made = made.and_then(|made| match step(made.row.machine, event, self.now) {
            Ok(_) => Ok(made),
            Err(why) => Err(unmoved(MoveError::Refused(why))),
        });
        match made {
            Ok(made) => self.make(place, made),
            Err(refused) => return Planned::Refused(refused),
        }
        let taken = self.apply_step(place, new.row.id, event, causes::PRESSED_PAY);
        assert!(taken.is_ok(), "it was tried: {taken:?}");
        self.submitted(place, submission)
    }

    /// Checks that a booking of this hold can be created in a batch.
    fn can_make(&self, new: &NewBooking) -> bool {
        let hold = new.row.hold_id;
        // A preference for late money is a separate, rare row. The stock of an area is one row, which batches would
        // queue for. A hold that was checked out before is revised, if that is still possible.
        new.if_late.is_default()
            && new.row.places.is_empty()
            && !self.known.booked_holds.contains(&hold)
            && !self.holds.contains(&hold)
    }

    /// Plans to write a new booking: its row comes last, after the other steps of its piece.
    fn make(&mut self, place: usize, CreatedBooking { row, lines, history }: CreatedBooking) {
        self.holds.insert(row.hold_id);
        self.writes.touches(row.id, place);
        self.writes.events.extend(history);
        self.made.push(row.id);
        self.known.bookings.insert(row.id, BookingDetails { row, lines, gateway: None, pay_url: None });
    }
}
