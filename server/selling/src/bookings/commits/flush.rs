//! Writes a batch: statements that are sent to Postgres as one, arrays sorted by key, and every row count compared
//! with the plan.
//!
//! Batches lock bookings, then claims, then keys, and each of these in key order, so they queue instead of
//! deadlocking. If two deadlock nevertheless, Postgres aborts one, and it is retried. Statements that return no rows
//! come after those that do (`CteBatch`); new bookings return their ids so that they come first. A batch waits at its
//! end for a key or a gateway event that another replica writes at the same moment, and is then planned again.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use domain::VariantName;
use domain::booking::{Booking, BookingState, Effect};
use domain::money::Money;
use domain::seats::SeatIndex;
use domain::time::Timestamp;
use sqlx::PgConnection;
use uuid::Uuid;

use super::BookingDetails;
use super::run::BatchError;
use crate::bookings::moves::Cause;
use crate::bookings::sql::BookingRow;
use crate::outbox;
use catalogue::{alive_since, claim_is_alive};
use http::idempotency::{self, Answer, Intent};
use payments::{PaymentEvent, PaymentEventOutcome};
use platform::clock::to_utc;
use platform::cte_batch::{CteBatch, StatementResults};

macro_rules! insert_bookings {
    ($on_conflict:literal) => {
        concat!(
            "INSERT INTO bookings (id, reference, show_id, owner, hold_id, fence, state, money, version,
                                   total_minor, currency, buyer_name, buyer_email, holder_name, holder_email,
                                   expires_at, created_at, updated_at)
             SELECT fresh.*, $17, $17
             FROM unnest($1::uuid[], $2::text[], $3::uuid[], $4::text[], $5::uuid[], $6::bigint[], $7::text[],
                         $8::text[], $9::integer[], $10::bigint[], $11::text[], $12::text[], $13::text[],
                         $14::text[], $15::text[], $16::timestamptz[]) AS fresh ",
            $on_conflict,
            " RETURNING id"
        )
    };
}

macro_rules! insert_gateway_events {
    ($on_conflict:literal) => {
        concat!(
            "INSERT INTO webhook_events (gateway, event_id, received_at, outcome)
             SELECT event.gateway, event.id, $4, event.outcome
             FROM unnest($1::text[], $2::text[], $3::text[]) AS event (gateway, id, outcome) ",
            $on_conflict
        )
    };
}

impl Writes {
    /// Writes the whole batch and compares the row counts.
    pub(super) async fn flush(
        mut self,
        tx: &mut PgConnection,
        fresh: Uniqueness,
        now: Timestamp,
    ) -> Result<(), BatchError> {
        self.bookings.sort_unstable_by_key(|new| new.row.hold_id);
        self.moves.sort_unstable_by_key(|update| update.booking);
        self.claims.sort_unstable();
        self.sales.sort_unstable();
        let claims: Vec<_> = self.claimed_keys.iter().map(|(_, intent, answer)| (intent, answer.as_ref())).collect();
        let answers: Vec<_> = self.completed_keys.iter().map(|(intent, answer)| (intent, answer)).collect();
        let mut cte = CteBatch::default();
        if !self.bookings.is_empty() {
            self.add_bookings(&mut cte, fresh, now)?;
        }
        // A batch of checkouts only is short. Every other batch has all parts, some without rows: few texts, each
        // planned once.
        if self.is_more_than_checkouts() {
            self.add_moves(&mut cte, now)?;
            self.add_claims(&mut cte, now)?;
            self.add_sales(&mut cte)?;
            add_payments(&mut cte, &self.payments, now)?;
            add_notes(&mut cte, &self.notes, now)?;
            tickets::add_issued(&mut cte, &self.sold, fresh == Uniqueness::Assumed, now)?;
            outbox::add_enqueued(&mut cte, &self.effects, now)?;
            outbox::add_removal(&mut cte, &self.charged, Effect::Charge)?;
            self.add_gateway_events(&mut cte, fresh, now)?;
            idempotency::add_answers(&mut cte, &answers, now)?;
        }
        if !(self.events.is_empty() && claims.is_empty()) {
            add_events(&mut cte, &self.events, now)?;
            idempotency::add_claims(&mut cte, &claims, fresh == Uniqueness::Assumed, now)?;
        }
        let results = cte.run(tx).await?;
        self.compare(&results)?;
        if fresh == Uniqueness::Checked {
            self.compare_events(&results)?;
            let lost = idempotency::lost_claims(&results, &claims)?;
            if !lost.is_empty() {
                // The same request is running elsewhere: in its own transaction it waits, and gets the same answer.
                return Err(BatchError::NeedOwnTransactions(
                    lost.into_iter().map(|at| self.claimed_keys[at].0).collect(),
                ));
            }
        }
        Ok(idempotency::all_answered(&results, &answers)?)
    }

    fn is_more_than_checkouts(&self) -> bool {
        !(self.moves.is_empty()
            && self.notes.is_empty()
            && self.payments.is_empty()
            && self.charged.is_empty()
            && self.noted_events.is_empty()
            && self.completed_keys.is_empty())
    }

    fn compare(&self, results: &StatementResults) -> Result<(), BatchError> {
        let made: HashSet<Uuid> = results.column("made", "id")?.into_iter().collect();
        if made.len() < self.bookings.len() {
            // Another tab checked the hold out, or the reference is taken: alone, it is refused or gets another
            // reference.
            let missing = self.bookings.iter().map(|new| new.row.id).filter(|id| !made.contains(id)).collect();
            return Err(self.pieces_of(&missing));
        }
        let moved: Vec<Uuid> = results.column("moved", "id")?;
        if moved.len() != self.moves.len() {
            return Err(BatchError::Unclear(format!("{} of {} locked bookings moved", moved.len(), self.moves.len())));
        }
        // Redis lost a lock and granted a seat twice; alone, the piece reports the lost seats to its buyer.
        self.all_of(&self.claims, results.column("claimed", "booking_id")?)?;
        // A claim no longer belongs to the booking: alone, the booking is refunded.
        self.all_of(&self.sales, results.column("sold", "booking_id")?)
    }

    /// Checks that every gateway event was new. Events assumed new return no rows: a duplicate is a unique violation.
    fn compare_events(&self, results: &StatementResults) -> Result<(), BatchError> {
        let noted: HashSet<(String, String)> =
            results.column("noted", "gateway")?.into_iter().zip(results.column("noted", "event_id")?).collect();
        if noted.len() < self.noted_events.len() {
            // The event was delivered to another replica at the same moment.
            let known = |gateway: &str, id: &String| noted.contains(&(gateway.to_owned(), id.clone()));
            let twice = self.noted_events.iter().filter(|(_, news, _)| !known(news.gateway, &news.event_id));
            return Err(BatchError::NeedOwnTransactions(twice.map(|(index, _, _)| *index).collect()));
        }
        Ok(())
    }

    /// Checks that each booking got as many seats as planned.
    fn all_of(&self, wanted: &[Claim], written: Vec<Uuid>) -> Result<(), BatchError> {
        if written.len() == wanted.len() {
            return Ok(());
        }
        let mut missing: HashMap<Uuid, isize> = HashMap::new();
        wanted.iter().for_each(|claim| *missing.entry(claim.booking).or_default() += 1);
        written.iter().for_each(|booking| *missing.entry(*booking).or_default() -= 1);
        let lost = missing.into_iter().filter(|(_, seats)| *seats != 0);
        Err(self.pieces_of(&lost.map(|(booking, _)| booking).collect()))
    }

    fn pieces_of(&self, bookings: &HashSet<Uuid>) -> BatchError {
        let indexes = bookings.iter().filter_map(|booking| self.pieces.get(booking)).flatten().copied();
        BatchError::NeedOwnTransactions(indexes.collect())
    }

    fn add_bookings(&self, cte: &mut CteBatch, fresh: Uniqueness, now: Timestamp) -> sqlx::Result<()> {
        let rows = || self.bookings.iter().map(|new| &new.row);
        let text = |text: fn(&BookingRow) -> &str| rows().map(text).collect::<Vec<&str>>();
        let statement = match fresh {
            Uniqueness::Assumed => insert_bookings!(""),
            Uniqueness::Checked => insert_bookings!("ON CONFLICT DO NOTHING"),
        };
        cte.add("made", statement, &["id"])
            .each(rows().map(|row| row.id))
            .value(text(|row| &row.reference))
            .each(rows().map(|row| row.show_id))
            .value(text(|row| &row.owner))
            .each(rows().map(|row| row.hold_id))
            .each(rows().map(|row| row.fence))
            .value(text(|row| row.machine.state.as_str()))
            .value(text(|row| row.machine.money.as_str()))
            .each(rows().map(|row| row.version))
            .each(rows().map(|row| row.machine.total.minor))
            .value(text(|row| row.machine.total.currency.code()))
            .value(text(|row| &row.buyer.0))
            .value(text(|row| &row.buyer.1))
            .value(text(|row| &row.holder.0))
            .value(text(|row| &row.holder.1))
            .each(rows().map(|row| to_utc(row.machine.expires_at)))
            .value(to_utc(now))
            .done()?;
        let seats = || self.bookings.iter().flat_map(|new| new.lines.iter().map(|line| (new.row.id, line)));
        let statement = "INSERT INTO booking_seats (booking_id, seat_no, label, category, price_minor)
             SELECT * FROM unnest($1::uuid[], $2::integer[], $3::text[], $4::text[], $5::bigint[])";
        cte.add("seats", statement, &[])
            .each(seats().map(|(booking, _)| booking))
            .each(seats().map(|(_, line)| line.seat.cast_signed()))
            .each(seats().map(|(_, line)| line.label.as_str()))
            .each(seats().map(|(_, line)| line.category.as_str()))
            .each(seats().map(|(_, line)| line.price.minor))
            .done()
    }

    /// Moves bookings from the state and version they were read in.
    fn add_moves(&self, cte: &mut CteBatch, now: Timestamp) -> sqlx::Result<()> {
        let moves = || self.moves.iter();
        let statement = "UPDATE bookings booking
             SET state = moved.state, money = moved.money, version = moved.version, expires_at = moved.expires_at,
                 updated_at = $8
             FROM unnest($1::uuid[], $2::text[], $3::integer[], $4::text[], $5::text[], $6::timestamptz[],
                         $7::integer[])
                  AS moved (id, from_state, from_version, state, money, expires_at, version)
             WHERE booking.id = moved.id AND booking.state = moved.from_state AND booking.version = moved.from_version
             RETURNING booking.id";
        cte.add("moved", statement, &["id"])
            .each(moves().map(|update| update.booking))
            .each(moves().map(|update| update.from.as_str()))
            .each(moves().map(|update| update.from_version))
            .each(moves().map(|update| update.to.state.as_str()))
            .each(moves().map(|update| update.to.money.as_str()))
            .each(moves().map(|update| to_utc(update.to.expires_at)))
            .each(moves().map(|update| update.to_version))
            .value(to_utc(now))
            .done()
    }

    /// Claims seats as `seat_claims::claim` does: a seat must be free, or its claim expired and of a lower fence.
    fn add_claims(&self, cte: &mut CteBatch, now: Timestamp) -> sqlx::Result<()> {
        let claims = || self.claims.iter();
        let statement = concat!(
            "INSERT INTO seat_claims (show_id, seat_no, booking_id, fence, state, expires_at)
             SELECT wish.show_id, wish.seat_no, wish.booking_id, wish.fence, 'claimed', wish.expires_at
             FROM unnest($1::uuid[], $2::integer[], $3::uuid[], $4::bigint[], $5::timestamptz[])
                  AS wish (show_id, seat_no, booking_id, fence, expires_at)
             ON CONFLICT (show_id, seat_no) DO UPDATE
             SET booking_id = EXCLUDED.booking_id, fence = EXCLUDED.fence, state = 'claimed',
                 expires_at = EXCLUDED.expires_at
             WHERE (seat_claims.state = 'released' OR seat_claims.fence < EXCLUDED.fence) AND NOT ",
            claim_is_alive!("seat_claims", "$6"),
            " RETURNING booking_id"
        );
        cte.add("claimed", statement, &["booking_id"])
            .each(claims().map(|claim| claim.show))
            .each(claims().map(|claim| claim.seat))
            .each(claims().map(|claim| claim.booking))
            .each(claims().map(|claim| claim.fence))
            .each(claims().map(|claim| to_utc(claim.expires_at)))
            .value(alive_since(now))
            .done()
    }

    /// Sells seats as `seat_claims::sell` does: only claims of this booking and fence. Adjacent seats are looked up
    /// as one range: other claims inside the range belong to other bookings.
    fn add_sales(&self, cte: &mut CteBatch) -> sqlx::Result<()> {
        let runs: Vec<&[Claim]> = self.sales.chunk_by(Claim::is_followed_by).collect();
        let firsts = || runs.iter().filter_map(|run| run.first());
        let statement = "UPDATE seat_claims claim SET state = 'sold'
             FROM unnest($1::uuid[], $2::integer[], $3::integer[], $4::uuid[], $5::bigint[])
                  AS own (show_id, first, last, booking_id, fence)
             WHERE claim.show_id = own.show_id AND claim.seat_no BETWEEN own.first AND own.last
               AND claim.booking_id = own.booking_id AND claim.fence = own.fence AND claim.state = 'claimed'
             RETURNING claim.booking_id";
        cte.add("sold", statement, &["booking_id"])
            .each(firsts().map(|claim| claim.show))
            .each(firsts().map(|claim| claim.seat))
            .each(runs.iter().filter_map(|run| run.last()).map(|claim| claim.seat))
            .each(firsts().map(|claim| claim.booking))
            .each(firsts().map(|claim| claim.fence))
            .done()
    }

    fn add_gateway_events(&self, cte: &mut CteBatch, fresh: Uniqueness, now: Timestamp) -> sqlx::Result<()> {
        let mut events: Vec<_> = self.noted_events.iter().collect();
        events.sort_unstable_by_key(|(_, news, _)| (news.gateway, &news.event_id));
        let (statement, columns): (_, &[_]) = match fresh {
            Uniqueness::Assumed => (insert_gateway_events!(""), &[]),
            Uniqueness::Checked => {
                (insert_gateway_events!("ON CONFLICT DO NOTHING RETURNING gateway, event_id"), &["gateway", "event_id"])
            }
        };
        cte.add("noted", statement, columns)
            .each(events.iter().map(|(_, news, _)| news.gateway))
            .each(events.iter().map(|(_, news, _)| news.event_id.as_str()))
            .each(events.iter().map(|(_, _, outcome)| outcome.as_str()))
            .value(to_utc(now))
            .done()
    }
}

fn add_events(cte: &mut CteBatch, events: &[EventLine], now: Timestamp) -> sqlx::Result<()> {
    let statement =
        "INSERT INTO booking_events (booking_id, number, event, from_state, to_state, money, actor, reason, at)
         SELECT line.*, $9
         FROM unnest($1::uuid[], $2::integer[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[])
              AS line";
    cte.add("story", statement, &[])
        .each(events.iter().map(|line| line.booking))
        .each(events.iter().map(|line| line.number))
        .each(events.iter().map(|line| line.event))
        .each(events.iter().map(|line| line.from.map(|from| from.as_str())))
        .each(events.iter().map(|line| line.to.state.as_str()))
        .each(events.iter().map(|line| line.to.money.as_str()))
        .each(events.iter().map(|line| line.actor.as_str()))
        .each(events.iter().map(|line| line.reason.as_str()))
        .value(to_utc(now))
        .done()
}

fn add_payments(cte: &mut CteBatch, payments: &[Payment], now: Timestamp) -> sqlx::Result<()> {
    let statement =
        "INSERT INTO payments (booking_id, gateway, state, amount_minor, currency, payment_token, updated_at)
         SELECT booking_id, gateway, 'requested', amount_minor, currency, payment_token, $6
         FROM unnest($1::uuid[], $2::text[], $3::bigint[], $4::text[], $5::text[])
              AS asked (booking_id, gateway, amount_minor, currency, payment_token)";
    cte.add("asked", statement, &[])
        .each(payments.iter().map(|payment| payment.booking))
        .each(payments.iter().map(|payment| payment.gateway))
        .each(payments.iter().map(|payment| payment.amount.minor))
        .each(payments.iter().map(|payment| payment.amount.currency.code()))
        .each(payments.iter().map(|payment| payment.token.as_deref()))
        .value(to_utc(now))
        .done()
}

fn add_notes(cte: &mut CteBatch, notes: &BTreeMap<Uuid, PaymentNote>, now: Timestamp) -> sqlx::Result<()> {
    let statement = "UPDATE payments payment
         SET state = CASE payment.state WHEN 'succeeded' THEN payment.state ELSE note.state END,
             gateway_ref = coalesce(note.gateway_ref, payment.gateway_ref),
             pay_url = coalesce(note.pay_url, payment.pay_url), updated_at = $5
         FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[]) AS note (booking_id, state, gateway_ref, pay_url)
         WHERE payment.booking_id = note.booking_id";
    cte.add("told_of_payments", statement, &[])
        .each(notes.keys().copied())
        .each(notes.values().map(|note| note.state))
        .each(notes.values().map(|note| note.gateway_ref.as_deref()))
        .each(notes.values().map(|note| note.pay_url.as_deref()))
        .value(to_utc(now))
        .done()
}

/// Treatment of rows that should be new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Uniqueness {
    /// They were looked up a moment ago, or are known to be new: Postgres does not check each for a conflict.
    Assumed,
    /// A duplicate occurred: each row is checked, so that the duplicate is known.
    Checked,
}

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
const MAX_RANGE_GAP: i32 = 4;

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
    fn is_followed_by(&self, next: &Self) -> bool {
        self.booking == next.booking && self.show == next.show && next.seat - self.seat <= MAX_RANGE_GAP
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
    pub(super) fn note_piece(&mut self, booking: Uuid, index: usize) {
        self.pieces.entry(booking).or_default().push(index);
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

    pub(super) fn claim_key(&mut self, index: usize, intent: &Intent, answer: Option<Answer>) {
        self.claimed_keys.push((index, intent.clone(), answer));
    }

    pub(super) fn complete_key(&mut self, intent: &Intent, answer: Answer) {
        self.completed_keys.push((intent.clone(), answer));
    }

    pub(super) fn note_event(&mut self, index: usize, news: &PaymentEvent, outcome: PaymentEventOutcome) {
        self.noted_events.push((index, news.clone(), outcome));
    }
}
