//! Plans a batch: each piece is decided on the loaded state and on the plans of the pieces before it, without
//! a call to any store.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use axum::http::StatusCode;
use domain::VariantName;
use domain::api::SeatLine;
use domain::booking::{BookingEvent, BookingState, StepError, step};
use domain::seats::SeatIndex;
use domain::time::Timestamp;
use uuid::Uuid;

use super::flush::{EventLine, Payment, PaymentNote, Update, Writes};
use super::load::BookingDetails;
use super::{ChargeOutcome, Checkout, Done, Key, NewBooking, Submission, Work};
use crate::bookings::checkout::create::move_problem;
use crate::bookings::checkout::person_limit::PersonCheck;
use crate::bookings::moves::{Cause, MoveError, causes};
use crate::bookings::sql::BookingRow;
use crate::bookings::views::view;
use catalogue::Show;
use http::idempotency::{Answer, Intent};
use http::{ApiResult, Problem};
use payments::{PaymentEvent, PaymentEventKind, PaymentEventOutcome, PaymentStatus};

/// The state that was loaded before the batch is planned.
#[derive(Default)]
pub(super) struct Known {
    /// Bookings of the pieces. A missing booking does not exist, or another transaction keeps it locked: its piece is
    /// committed alone, and waits or is refused.
    pub(super) bookings: HashMap<Uuid, BookingDetails>,
    /// Holds of the pieces that have a booking already.
    pub(super) booked_holds: HashSet<Uuid>,
    /// Gateway events that were noted before.
    pub(super) noted_events: HashSet<(String, String)>,
    /// Shows of bookings whose piece does not carry them, as far as they are in memory.
    pub(super) shows: HashMap<Uuid, Arc<Show>>,
}

#[derive(Debug)]
pub(super) enum Planned {
    /// The outcome once the batch is committed.
    Done(Done),
    /// Refused, and nothing is written for it.
    Refused(Problem),
    /// It must be committed alone, and this batch writes nothing for it.
    NeedsOwnTransaction,
}

/// The effect of a payment event on a booking, as far as a batch can apply it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Applicability {
    /// Paid as agreed, in time: the batch sells it.
    Batchable,
    /// Declined, late or another amount, which is rare work; or this batch has moved the booking already.
    NeedsOwnTransaction,
    /// The event was applied before, or cannot be applied.
    NoOp,
}

/// The state and version of a booking before its step.
#[derive(Clone, Copy, Debug)]
struct PriorState {
    state: BookingState,
    version: i32,
}

impl PriorState {
    const fn of(row: &BookingRow) -> Self {
        Self { state: row.machine.state, version: row.version }
    }
}

pub(super) struct Plan {
    known: Known,
    now: Timestamp,
    pub(super) writes: Writes,
    /// Bookings it creates: written in their final state in `known`.
    created: Vec<Uuid>,
    /// Bookings that moved: a piece that would move one again is committed alone.
    moved: HashSet<Uuid>,
    /// Keys, holds and seats that a piece of this batch has taken.
    keys: HashSet<(String, String)>,
    holds: HashSet<Uuid>,
    seats: HashSet<(Uuid, SeatIndex)>,
}

impl Plan {
    pub(super) fn new(known: Known, pieces: usize, now: Timestamp) -> Self {
        Self {
            known,
            now,
            writes: Writes::default(),
            created: Vec::new(),
            moved: HashSet::with_capacity(pieces),
            keys: HashSet::with_capacity(pieces),
            holds: HashSet::with_capacity(pieces),
            seats: HashSet::with_capacity(pieces),
        }
    }

    /// Returns the bookings the batch creates, and those it moves, in their final state.
    pub(super) fn created_and_moved(&self) -> (Vec<Arc<BookingDetails>>, Vec<Arc<BookingDetails>>) {
        let found = |booking: &Uuid| self.known.bookings.get(booking).cloned().map(Arc::new);
        (self.created.iter().filter_map(found).collect(), self.moved.iter().filter_map(found).collect())
    }

    /// Returns the submissions whose buyer's seats are counted under a lock, for known bookings. Others are refused
    /// or leave the batch before anything is written for them.
    pub(super) fn person_checks<'a>(&'a self, works: &[&'a Work]) -> Vec<PersonCheck<'a>> {
        let of = |(index, work): (usize, &&'a Work)| {
            let Work::Submit(submission) = *work else { return None };
            let person = submission.person.as_ref().filter(|_| submission.instrument.is_none())?;
            let row = match &submission.new {
                Some(new) => &new.row,
                None => &self.known.bookings.get(&submission.booking)?.row,
            };
            Some(PersonCheck { index, person, show: &submission.show, row })
        };
        works.iter().enumerate().filter_map(of).collect()
    }

    pub(super) fn piece(&mut self, index: usize, work: &Work) -> Planned {
        match work {
            Work::Create(checkout) => self.create(index, checkout),
            Work::Submit(submission) => self.submit(index, submission),
            Work::RecordChargeOutcome(charge) => self.record_charge_outcome(index, charge),
            Work::ApplyWebhook(news) => self.apply_webhook(index, news),
        }
    }

    fn submit(&mut self, index: usize, submission: &Submission) -> Planned {
        // The seats that its instrument has paid for are counted under a lock, which no batch waits for.
        if submission.instrument.is_some() {
            return Planned::NeedsOwnTransaction;
        }
        if self.keys.contains(&submission.intent.name()) {
            return Planned::NeedsOwnTransaction;
        }
        match &submission.new {
            Some(new) => self.submit_new(index, submission, new),
            None => self.submit_known(index, submission),
        }
    }

    fn submit_known(&mut self, index: usize, submission: &Submission) -> Planned {
        let Some(found) = self.known.bookings.get(&submission.booking) else { return Planned::NeedsOwnTransaction };
        if !found.row.places.is_empty() {
            return Planned::NeedsOwnTransaction;
        }
        if submission.expected_version.is_some_and(|version| version != found.row.version) {
            return Planned::Refused(move_problem(MoveError::LostRace));
        }
        if self.is_claimed(&found.row) {
            return Planned::NeedsOwnTransaction;
        }
        let event = BookingEvent::PaymentSubmitted { until: submission.until };
        match self.apply(index, submission.booking, event, causes::PRESSED_PAY) {
            Ok(()) => self.plan_submission(index, submission),
            // Another key was slightly faster: this one is answered with the booking as it is now.
            Err(StepError::AlreadyDone) => {
                self.answer(index, (&submission.show, submission.booking), (&submission.intent, Key::New))
            }
            Err(why) => Planned::Refused(move_problem(MoveError::Refused(why))),
        }
    }

    /// Returns true if an earlier piece claims a seat of this booking. Redis granted a seat twice, and both are in
    /// this batch: committed alone, the second reports the seat to its buyer.
    fn is_claimed(&self, row: &BookingRow) -> bool {
        row.seats.iter().any(|seat| self.seats.contains(&(row.show_id, *seat)))
    }

    /// Plans the writes that follow a booking's move to PAYMENT_PENDING.
    fn plan_submission(&mut self, index: usize, submission: &Submission) -> Planned {
        self.take_key(&submission.intent);
        let Some(found) = self.known.bookings.get_mut(&submission.booking) else { return Planned::NeedsOwnTransaction };
        found.gateway = Some(submission.gateway.to_owned());
        let seen = Some(Box::new(found.clone()));
        let row = found.row.clone();
        self.seats.extend(row.seats.iter().map(|seat| (row.show_id, *seat)));
        self.writes.claim_seats(&row);
        self.writes.payments.push(Payment {
            booking: row.id,
            gateway: submission.gateway,
            amount: row.machine.total,
            token: submission.token.clone(),
        });
        self.writes.claim_key(index, &submission.intent, None);
        Planned::Done(Done::Submitted(Box::new(row), seen))
    }

    fn record_charge_outcome(&mut self, index: usize, charge: &ChargeOutcome) -> Planned {
        let Some(found) = self.known.bookings.get(&charge.booking) else { return Planned::NeedsOwnTransaction };
        if !found.row.places.is_empty() {
            return Planned::NeedsOwnTransaction;
        }
        let key_is_taken = |(intent, key): &(Intent, Key)| *key == Key::New && self.keys.contains(&intent.name());
        if charge.answer.as_ref().is_some_and(key_is_taken) {
            return Planned::NeedsOwnTransaction;
        }
        // Its webhook came first. The answer names the hold that was kept, which a batch does not read.
        if charge.answer.is_some() && found.row.has_failed_payment() {
            return Planned::NeedsOwnTransaction;
        }
        if let Some(gateway_answer) = &charge.gateway_answer {
            let (state, pay_url, event) = interpret_status(&gateway_answer.status);
            match event.map(|event| (event, self.classify(found, &charge.show, event))) {
                Some((_, Applicability::NeedsOwnTransaction)) => return Planned::NeedsOwnTransaction,
                Some((event, Applicability::Batchable)) => {
                    self.sell(index, charge.booking, event, causes::GATEWAY_ANSWERED)
                }
                Some((_, Applicability::NoOp)) | None => {}
            }
            self.note(charge.booking, PaymentNote { state, gateway_ref: gateway_answer.gateway_ref.clone(), pay_url });
        }
        if charge.charged {
            self.writes.charged.push(charge.booking);
        }
        match &charge.answer {
            Some((intent, key)) => self.answer(index, (&charge.show, charge.booking), (intent, *key)),
            None => Planned::Done(Done::Recorded),
        }
    }

    fn apply_webhook(&mut self, index: usize, news: &PaymentEvent) -> Planned {
        let PaymentEventKind::Succeeded { amount } = news.kind else { return Planned::NeedsOwnTransaction };
        let Some(found) =
            self.known.bookings.get(&news.booking).filter(|found| found.gateway.as_deref() == Some(news.gateway))
        else {
            // An unknown booking, or a gateway that the booking no longer uses.
            return Planned::NeedsOwnTransaction;
        };
        if !found.row.places.is_empty() {
            return Planned::NeedsOwnTransaction;
        }
        let Some(show) = self.known.shows.get(&found.row.show_id) else { return Planned::NeedsOwnTransaction };
        let noted = (news.gateway.to_owned(), news.event_id.clone());
        if self.known.noted_events.contains(&noted) {
            return Planned::Done(Done::WebhookApplied(PaymentEventOutcome::Duplicate));
        }
        let event = BookingEvent::PaymentSucceeded { amount };
        let outcome = match self.classify(found, show, event) {
            Applicability::NeedsOwnTransaction => return Planned::NeedsOwnTransaction,
            Applicability::NoOp => PaymentEventOutcome::Ignored,
            Applicability::Batchable => {
                self.sell(index, news.booking, event, causes::WEBHOOK);
                self.note(
                    news.booking,
                    PaymentNote { state: "succeeded", gateway_ref: news.gateway_ref.clone(), pay_url: None },
                );
                PaymentEventOutcome::Applied
            }
        };
        self.known.noted_events.insert(noted);
        self.writes.note_event(index, news, outcome);
        Planned::Done(Done::WebhookApplied(outcome))
    }

    fn classify(&self, found: &BookingDetails, show: &Show, event: BookingEvent) -> Applicability {
        match step(found.row.machine, event, self.now) {
            Ok(_) if self.moved.contains(&found.row.id) => Applicability::NeedsOwnTransaction,
            // The gateway is asked which card paid, where the show has a limit per instrument.
            Ok(_) if show.per_instrument.is_some() => Applicability::NeedsOwnTransaction,
            Ok((paid, effects))
                if paid.state == BookingState::PaymentSucceeded
                    && effects.is_empty()
                    && show.starts_at > self.now
                    && !show.is_called_off() =>
            {
                Applicability::Batchable
            }
            Ok(_) => Applicability::NeedsOwnTransaction,
            Err(why) => {
                tracing::debug!(booking = %found.row.id, event = event.as_str(), %why, "nothing to do for {}", found.row.id);
                Applicability::NoOp
            }
        }
    }

    /// Pays and sells a booking in one step. The write verifies that every claim is still the booking's own; if
    /// not, the piece is committed alone, and its money is refunded.
    fn sell(&mut self, index: usize, booking: Uuid, event: BookingEvent, cause: Cause<'_>) {
        let Some(before) = self.known.bookings.get(&booking).map(|found| PriorState::of(&found.row)) else { return };
        let paid = self.apply_step(index, booking, event, cause);
        let sold = self.apply_step(index, booking, BookingEvent::SeatsSold, causes::ALL_CLAIMED);
        assert!(paid.is_ok() && sold.is_ok(), "the event was batchable: {paid:?}, {sold:?}");
        // No reader sees it paid and not sold: one update writes both steps, as `refuse_other_moves` requires.
        self.update(booking, before);
        if let Some(found) = self.known.bookings.get(&booking) {
            self.writes.sell(&found.row);
        }
    }

    /// Steps a booking as `moves::apply` does, and plans its state, event and effects.
    fn apply(&mut self, index: usize, booking: Uuid, event: BookingEvent, cause: Cause<'_>) -> Result<(), StepError> {
        let before =
            self.known.bookings.get(&booking).map(|found| PriorState::of(&found.row)).ok_or(StepError::Gone)?;
        self.apply_step(index, booking, event, cause)?;
        self.update(booking, before);
        Ok(())
    }

    /// Takes a step and plans its event and effects; the booking's row is not written yet.
    fn apply_step(
        &mut self,
        index: usize,
        booking: Uuid,
        event: BookingEvent,
        cause: Cause<'_>,
    ) -> Result<(), StepError> {
        let Some(found) = self.known.bookings.get_mut(&booking) else { return Err(StepError::Gone) };
        let row = &mut found.row;
        let (machine, effects) = step(row.machine, event, self.now)?;
        let from = row.machine.state;
        row.machine = machine;
        row.version += 1;
        tracing::debug!(%booking, ?from, to = ?machine.state, event = event.as_str(), "booking {booking} takes {}", event.as_str());
        self.writes.events.push(EventLine::of(row, Some(from), event.as_str(), cause));
        self.writes.effects.extend(effects.into_iter().map(|effect| (booking, effect)));
        self.writes.note_piece(booking, index);
        Ok(())
    }

    /// Plans the row update of a booking that took one step, or two that belong together.
    fn update(&mut self, booking: Uuid, PriorState { state, version }: PriorState) {
        let Some(found) = self.known.bookings.get(&booking) else { return };
        let (to, to_version) = (found.row.machine, found.row.version);
        let is_first = self.moved.insert(booking);
        assert!(is_first, "booking {booking} moves twice in a batch");
        self.writes.moves.push(Update { booking, from: state, from_version: version, to, to_version });
    }

    /// Makes the current booking the answer of a key.
    fn answer(&mut self, index: usize, (show, booking): (&Show, Uuid), (intent, key): (&Intent, Key)) -> Planned {
        let Some(found) = self.known.bookings.get(&booking) else {
            return Planned::Refused(Problem::not_found("booking"));
        };
        let view = view::compose(show, &found.row, found.lines.clone(), Vec::new(), found.pay_url.clone());
        let answer = match Answer::json(key.status(), &view) {
            Ok(answer) => answer,
            // A bug; the charge outcome is written all the same.
            Err(problem) => return Planned::Refused(problem),
        };
        match key {
            Key::OursSinceSubmit(_) => self.writes.complete_key(intent, answer.clone()),
            Key::New => {
                self.take_key(intent);
                self.writes.claim_key(index, intent, Some(answer.clone()));
            }
        }
        Planned::Done(Done::Answered(answer))
    }

    fn note(&mut self, booking: Uuid, note: PaymentNote) {
        if let Some(found) = self.known.bookings.get_mut(&booking) {
            found.pay_url = note.pay_url.clone().or_else(|| found.pay_url.take());
        }
        self.writes.note_payment(booking, note);
    }

    /// Takes a key. `false`: an earlier piece has the same key.
    fn take_key(&mut self, intent: &Intent) -> bool {
        self.keys.insert(intent.name())
    }
}

/// Returns a payment's state as stored, its page, and its event for the booking.
pub(crate) fn interpret_status(status: &PaymentStatus) -> (&'static str, Option<String>, Option<BookingEvent>) {
    match status {
        PaymentStatus::Pending { pay_url } => ("pending", pay_url.clone(), None),
        PaymentStatus::Succeeded { amount } => {
            ("succeeded", None, Some(BookingEvent::PaymentSucceeded { amount: *amount }))
        }
        PaymentStatus::Failed { .. } => ("failed", None, Some(BookingEvent::PaymentFailed)),
        PaymentStatus::Voided => ("voided", None, Some(BookingEvent::PaymentVoided)),
    }
}

/// A new booking after its first step, with its history.
struct CreatedBooking {
    row: BookingRow,
    lines: Vec<SeatLine>,
    history: [EventLine; 2],
}

impl CreatedBooking {
    fn of(show: &Show, new: &NewBooking, now: Timestamp) -> ApiResult<Self> {
        let mut row = new.row.clone();
        let created = EventLine::of(&row, None, "created", causes::CHECKED_OUT);
        // No reader sees it in CREATED: it is written in its state after the hold was confirmed, or later.
        let stepped = step(row.machine, BookingEvent::HoldTaken, now);
        let (machine, effects) = stepped.map_err(|why| move_problem(MoveError::Refused(why)))?;
        assert!(effects.is_empty(), "a taken hold has no effects");
        let from = row.machine.state;
        row.machine = machine;
        row.version += 1;
        let held = EventLine::of(&row, Some(from), BookingEvent::HoldTaken.as_str(), causes::HOLD_CONFIRMED);
        let lines = row.seats.iter().map(|seat| show.line(*seat)).collect();
        Ok(Self { row, lines, history: [created, held] })
    }
}

impl Plan {
    pub(super) fn create(&mut self, index: usize, checkout: &Checkout) -> Planned {
        if !self.can_create(&checkout.new) || !self.take_key(&checkout.intent) {
            return Planned::NeedsOwnTransaction;
        }
        let created = match CreatedBooking::of(&checkout.show, &checkout.new, self.now) {
            Ok(created) => created,
            Err(refused) => return Planned::Refused(refused),
        };
        let view = view::compose(&checkout.show, &created.row, created.lines.clone(), Vec::new(), None);
        let answer = match Answer::json(StatusCode::CREATED, &view) {
            Ok(answer) => answer,
            Err(problem) => return Planned::Refused(problem),
        };
        self.add_created(index, created);
        self.writes.claim_key(index, &checkout.intent, Some(answer.clone()));
        Planned::Done(Done::Answered(answer))
    }

    /// Plans a checkout and its payment in one request: the booking is written in its final state.
    fn submit_new(&mut self, index: usize, submission: &Submission, new: &NewBooking) -> Planned {
        if !self.can_create(new) || self.is_claimed(&new.row) {
            return Planned::NeedsOwnTransaction;
        }
        let event = BookingEvent::PaymentSubmitted { until: submission.until };
        let created = CreatedBooking::of(&submission.show, new, self.now);
        let created = created.and_then(|created| match step(created.row.machine, event, self.now) {
            Ok(_) => Ok(created),
            Err(why) => Err(move_problem(MoveError::Refused(why))),
        });
        match created {
            Ok(created) => self.add_created(index, created),
            Err(refused) => return Planned::Refused(refused),
        }
        let taken = self.apply_step(index, new.row.id, event, causes::PRESSED_PAY);
        assert!(taken.is_ok(), "the step was checked above: {taken:?}");
        self.plan_submission(index, submission)
    }

    /// Returns true if a booking of this hold can be created in a batch.
    fn can_create(&self, new: &NewBooking) -> bool {
        let hold = new.row.hold_id;
        // A preference for late money is a separate, rare row. The stock of an area is one row, which batches would
        // queue for. A hold that was checked out before is revised, if that is still possible.
        new.if_late.is_default()
            && new.row.places.is_empty()
            && !self.known.booked_holds.contains(&hold)
            && !self.holds.contains(&hold)
    }

    /// Plans to write a new booking: its row comes last, after the other steps of its piece.
    fn add_created(&mut self, index: usize, CreatedBooking { row, lines, history }: CreatedBooking) {
        self.holds.insert(row.hold_id);
        self.writes.note_piece(row.id, index);
        self.writes.events.extend(history);
        self.created.push(row.id);
        self.known.bookings.insert(row.id, BookingDetails { row, lines, gateway: None, pay_url: None });
    }
}
