//! Writing a batch in a handful of statements: arrays in the order of their keys, and every count compared
//! with what was planned.
//!
//! Bookings, then claims, then keys: every batch locks them in this order, and within each by its key.

use std::collections::{BTreeMap, HashSet};

use chrono::{DateTime, Utc};
use domain::booking::{BookingState, Effect};
use domain::time::Timestamp;
use sqlx::PgConnection;
use uuid::Uuid;

use super::super::claims::CLAIM_GRACE_MS;
use super::super::sql::BookingRow;
use super::run::Trouble;
use super::writes::{EventLine, Fresh, Payment, PaymentNote, Update, Writes};
use crate::clock::to_utc;
use crate::payments::PaymentNews;
use crate::{idempotency, outbox, tickets};

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
            $on_conflict,
            " RETURNING gateway, event_id"
        )
    };
}

impl Writes {
    /// Writes it all.
    pub(super) async fn flush(mut self, tx: &mut PgConnection, fresh: Fresh, now: Timestamp) -> Result<(), Trouble> {
        self.insert_bookings(tx, fresh, now).await?;
        for round in std::mem::take(&mut self.rounds) {
            move_bookings(tx, round, now).await?;
        }
        self.insert_claims(tx, now).await?;
        self.sell_claims(tx).await?;
        insert_events(tx, &self.events, now).await?;
        insert_payments(tx, &self.payments, now).await?;
        note_payments(tx, &self.notes, now).await?;
        if !self.sold.is_empty() {
            tickets::issue_all(tx, &self.sold, fresh == Fresh::Surely, now).await?;
        }
        if !self.effects.is_empty() {
            outbox::enqueue_all(tx, &self.effects, now).await?;
        }
        if !self.charged.is_empty() {
            outbox::done_all(tx, &self.charged, Effect::Charge).await?;
        }
        self.insert_gateway_events(tx, fresh, now).await?;
        self.write_keys(tx, fresh, now).await
    }

    /// The pieces that move these bookings.
    fn pieces_of(&self, bookings: &HashSet<Uuid>) -> Trouble {
        let places = bookings.iter().filter_map(|booking| self.pieces.get(booking)).flatten().copied();
        Trouble::Apart(places.collect())
    }

    async fn insert_bookings(&mut self, tx: &mut PgConnection, fresh: Fresh, now: Timestamp) -> Result<(), Trouble> {
        if self.bookings.is_empty() {
            return Ok(());
        }
        self.bookings.sort_unstable_by_key(|(row, _)| row.hold_id);
        let rows = || self.bookings.iter().map(|(row, _)| row);
        let texts = |text: fn(&BookingRow) -> &str| rows().map(text).collect::<Vec<&str>>();
        let ids = |id: fn(&BookingRow) -> Uuid| rows().map(id).collect::<Vec<Uuid>>();
        let statement = match fresh {
            Fresh::Surely => insert_bookings!(""),
            Fresh::Perhaps => insert_bookings!("ON CONFLICT DO NOTHING"),
        };
        let inserted: Vec<Uuid> = sqlx::query_scalar(statement)
            .bind(ids(|row| row.id))
            .bind(texts(|row| &row.reference))
            .bind(ids(|row| row.show_id))
            .bind(texts(|row| &row.owner))
            .bind(ids(|row| row.hold_id))
            .bind(rows().map(|row| row.fence).collect::<Vec<_>>())
            .bind(texts(|row| row.machine.state.as_str()))
            .bind(texts(|row| row.machine.money.as_str()))
            .bind(rows().map(|row| row.version).collect::<Vec<_>>())
            .bind(rows().map(|row| row.machine.total.minor).collect::<Vec<_>>())
            .bind(texts(|row| row.machine.total.currency.code()))
            .bind(texts(|row| &row.buyer.0))
            .bind(texts(|row| &row.buyer.1))
            .bind(texts(|row| &row.holder.0))
            .bind(texts(|row| &row.holder.1))
            .bind(rows().map(|row| to_utc(row.machine.expires_at)).collect::<Vec<_>>())
            .bind(to_utc(now))
            .fetch_all(&mut *tx)
            .await?;
        if inserted.len() < self.bookings.len() {
            // Another tab checked the hold out, or a name is taken: by itself it is told, or named anew.
            let inserted: HashSet<Uuid> = inserted.into_iter().collect();
            let missing = rows().map(|row| row.id).filter(|id| !inserted.contains(id)).collect();
            return Err(self.pieces_of(&missing));
        }
        let seats = || self.bookings.iter().flat_map(|(row, lines)| lines.iter().map(move |line| (row.id, line)));
        sqlx::query(
            "INSERT INTO booking_seats (booking_id, seat_no, label, category, price_minor)
             SELECT * FROM unnest($1::uuid[], $2::integer[], $3::text[], $4::text[], $5::bigint[])",
        )
        .bind(seats().map(|(booking, _)| booking).collect::<Vec<_>>())
        .bind(seats().map(|(_, line)| line.seat.cast_signed()).collect::<Vec<_>>())
        .bind(seats().map(|(_, line)| line.label.as_str()).collect::<Vec<_>>())
        .bind(seats().map(|(_, line)| line.category.as_str()).collect::<Vec<_>>())
        .bind(seats().map(|(_, line)| line.price.minor).collect::<Vec<_>>())
        .execute(tx)
        .await?;
        Ok(())
    }

    /// As `claims::claim`: free, released, or run out a grace ago, and by a higher fence.
    async fn insert_claims(&mut self, tx: &mut PgConnection, now: Timestamp) -> Result<(), Trouble> {
        if self.claims.is_empty() {
            return Ok(());
        }
        self.claims.sort_unstable();
        let claims = &self.claims;
        let got: Vec<(Uuid, i32)> = sqlx::query_as(
            "INSERT INTO seat_claims (show_id, seat_no, booking_id, fence, state, expires_at)
             SELECT wish.show_id, wish.seat_no, wish.booking_id, wish.fence, 'claimed', wish.expires_at
             FROM unnest($1::uuid[], $2::integer[], $3::uuid[], $4::bigint[], $5::timestamptz[])
                  AS wish (show_id, seat_no, booking_id, fence, expires_at)
             ON CONFLICT (show_id, seat_no) DO UPDATE
             SET booking_id = EXCLUDED.booking_id, fence = EXCLUDED.fence, state = 'claimed',
                 expires_at = EXCLUDED.expires_at
             WHERE seat_claims.fence < EXCLUDED.fence
               AND (seat_claims.state = 'released' OR (seat_claims.state = 'claimed' AND seat_claims.expires_at <= $6))
             RETURNING show_id, seat_no",
        )
        .bind(claims.iter().map(|claim| claim.show).collect::<Vec<_>>())
        .bind(claims.iter().map(|claim| claim.seat).collect::<Vec<_>>())
        .bind(claims.iter().map(|claim| claim.booking).collect::<Vec<_>>())
        .bind(claims.iter().map(|claim| claim.fence).collect::<Vec<_>>())
        .bind(claims.iter().map(|claim| to_utc(claim.expires_at)).collect::<Vec<DateTime<Utc>>>())
        .bind(to_utc(now.plus_ms(-CLAIM_GRACE_MS)))
        .fetch_all(tx)
        .await?;
        if got.len() == claims.len() {
            return Ok(());
        }
        // Redis had lost a lock and granted the seat twice; by itself its buyer is told which.
        let got: HashSet<(Uuid, i32)> = got.into_iter().collect();
        let lost = claims.iter().filter(|claim| !got.contains(&(claim.show, claim.seat)));
        Err(self.pieces_of(&lost.map(|claim| claim.booking).collect()))
    }

    /// As `claims::sell`: only what is still the booking's own by booking and fence.
    async fn sell_claims(&mut self, tx: &mut PgConnection) -> Result<(), Trouble> {
        if self.sales.is_empty() {
            return Ok(());
        }
        self.sales.sort_unstable();
        let sales = &self.sales;
        let sold: Vec<(Uuid, i32)> = sqlx::query_as(
            "UPDATE seat_claims claim SET state = 'sold'
             FROM unnest($1::uuid[], $2::integer[], $3::uuid[], $4::bigint[]) AS own (show_id, seat_no, booking_id, fence)
             WHERE claim.show_id = own.show_id AND claim.seat_no = own.seat_no
               AND claim.booking_id = own.booking_id AND claim.fence = own.fence AND claim.state = 'claimed'
             RETURNING claim.show_id, claim.seat_no",
        )
        .bind(sales.iter().map(|claim| claim.show).collect::<Vec<_>>())
        .bind(sales.iter().map(|claim| claim.seat).collect::<Vec<_>>())
        .bind(sales.iter().map(|claim| claim.booking).collect::<Vec<_>>())
        .bind(sales.iter().map(|claim| claim.fence).collect::<Vec<_>>())
        .fetch_all(tx)
        .await?;
        if sold.len() == sales.len() {
            return Ok(());
        }
        // By itself its money goes back.
        let sold: HashSet<(Uuid, i32)> = sold.into_iter().collect();
        let lost = sales.iter().filter(|claim| !sold.contains(&(claim.show, claim.seat)));
        Err(self.pieces_of(&lost.map(|claim| claim.booking).collect()))
    }

    async fn insert_gateway_events(&self, tx: &mut PgConnection, fresh: Fresh, now: Timestamp) -> Result<(), Trouble> {
        if self.noted_events.is_empty() {
            return Ok(());
        }
        let mut events: Vec<_> = self.noted_events.iter().collect();
        events.sort_unstable_by_key(|(_, news, _)| (news.gateway, &news.event_id));
        let statement = match fresh {
            Fresh::Surely => insert_gateway_events!(""),
            Fresh::Perhaps => insert_gateway_events!("ON CONFLICT DO NOTHING"),
        };
        let noted: Vec<(String, String)> = sqlx::query_as(statement)
            .bind(events.iter().map(|(_, news, _)| news.gateway).collect::<Vec<_>>())
            .bind(events.iter().map(|(_, news, _)| news.event_id.as_str()).collect::<Vec<_>>())
            .bind(events.iter().map(|(_, _, outcome)| outcome.as_str()).collect::<Vec<_>>())
            .bind(to_utc(now))
            .fetch_all(tx)
            .await?;
        if noted.len() == events.len() {
            return Ok(());
        }
        // Delivered to another replica at the same moment.
        let noted: HashSet<(String, String)> = noted.into_iter().collect();
        let known = |news: &PaymentNews| noted.contains(&(news.gateway.to_owned(), news.event_id.clone()));
        Err(Trouble::Apart(events.iter().filter(|(_, news, _)| !known(news)).map(|(place, _, _)| *place).collect()))
    }

    async fn write_keys(&self, tx: &mut PgConnection, fresh: Fresh, now: Timestamp) -> Result<(), Trouble> {
        if !self.claimed_keys.is_empty() {
            let claims: Vec<_> =
                self.claimed_keys.iter().map(|(_, intent, answer)| (intent, answer.as_ref())).collect();
            let lost = idempotency::claim_all(tx, &claims, fresh == Fresh::Surely, now).await?;
            if !lost.is_empty() {
                // The same request is running elsewhere: by itself it waits, and gets the same answer.
                return Err(Trouble::Apart(lost.into_iter().map(|at| self.claimed_keys[at].0).collect()));
            }
        }
        if !self.completed_keys.is_empty() {
            let answers: Vec<_> = self.completed_keys.iter().map(|(intent, answer)| (intent, answer)).collect();
            idempotency::complete_all(tx, &answers, now).await?;
        }
        Ok(())
    }
}

/// Moves bookings from the state and version they were read in.
async fn move_bookings(tx: &mut PgConnection, mut round: Vec<Update>, now: Timestamp) -> Result<(), Trouble> {
    round.sort_unstable_by_key(|update| update.booking);
    let moved = sqlx::query(
        "UPDATE bookings booking
         SET state = moved.state, money = moved.money, version = moved.version, expires_at = moved.expires_at,
             updated_at = $8
         FROM unnest($1::uuid[], $2::text[], $3::integer[], $4::text[], $5::text[], $6::timestamptz[], $7::integer[])
              AS moved (id, from_state, from_version, state, money, expires_at, version)
         WHERE booking.id = moved.id AND booking.state = moved.from_state AND booking.version = moved.from_version",
    )
    .bind(round.iter().map(|update| update.booking).collect::<Vec<_>>())
    .bind(round.iter().map(|update| update.from.as_str()).collect::<Vec<_>>())
    .bind(round.iter().map(|update| update.from_version).collect::<Vec<_>>())
    .bind(round.iter().map(|update| update.to.state.as_str()).collect::<Vec<_>>())
    .bind(round.iter().map(|update| update.to.money.as_str()).collect::<Vec<_>>())
    .bind(round.iter().map(|update| to_utc(update.to.expires_at)).collect::<Vec<_>>())
    .bind(round.iter().map(|update| update.to_version).collect::<Vec<_>>())
    .bind(to_utc(now))
    .execute(tx)
    .await?;
    if moved.rows_affected() == round.len() as u64 {
        return Ok(());
    }
    Err(Trouble::Unclear(format!("{} of {} locked bookings moved", moved.rows_affected(), round.len())))
}

async fn insert_events(tx: &mut PgConnection, events: &[EventLine], now: Timestamp) -> Result<(), sqlx::Error> {
    if events.is_empty() {
        return Ok(());
    }
    sqlx::query(
        "INSERT INTO booking_events (booking_id, number, event, from_state, to_state, money, actor, reason, at)
         SELECT line.*, $9
         FROM unnest($1::uuid[], $2::integer[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[])
              AS line",
    )
    .bind(events.iter().map(|line| line.booking).collect::<Vec<_>>())
    .bind(events.iter().map(|line| line.number).collect::<Vec<_>>())
    .bind(events.iter().map(|line| line.event).collect::<Vec<_>>())
    .bind(events.iter().map(|line| line.from.map(BookingState::as_str)).collect::<Vec<_>>())
    .bind(events.iter().map(|line| line.to.state.as_str()).collect::<Vec<_>>())
    .bind(events.iter().map(|line| line.to.money.as_str()).collect::<Vec<_>>())
    .bind(events.iter().map(|line| line.actor.as_str()).collect::<Vec<_>>())
    .bind(events.iter().map(|line| line.reason.as_str()).collect::<Vec<_>>())
    .bind(to_utc(now))
    .execute(tx)
    .await?;
    Ok(())
}

async fn insert_payments(tx: &mut PgConnection, payments: &[Payment], now: Timestamp) -> Result<(), sqlx::Error> {
    if payments.is_empty() {
        return Ok(());
    }
    sqlx::query(
        "INSERT INTO payments (booking_id, gateway, state, amount_minor, currency, payment_token, updated_at)
         SELECT booking_id, gateway, 'requested', amount_minor, currency, payment_token, $6
         FROM unnest($1::uuid[], $2::text[], $3::bigint[], $4::text[], $5::text[])
              AS asked (booking_id, gateway, amount_minor, currency, payment_token)",
    )
    .bind(payments.iter().map(|payment| payment.booking).collect::<Vec<_>>())
    .bind(payments.iter().map(|payment| payment.gateway).collect::<Vec<_>>())
    .bind(payments.iter().map(|payment| payment.amount.minor).collect::<Vec<_>>())
    .bind(payments.iter().map(|payment| payment.amount.currency.code()).collect::<Vec<_>>())
    .bind(payments.iter().map(|payment| payment.token.as_deref()).collect::<Vec<_>>())
    .bind(to_utc(now))
    .execute(tx)
    .await?;
    Ok(())
}

async fn note_payments(
    tx: &mut PgConnection,
    notes: &BTreeMap<Uuid, PaymentNote>,
    now: Timestamp,
) -> Result<(), sqlx::Error> {
    if notes.is_empty() {
        return Ok(());
    }
    sqlx::query(
        "UPDATE payments payment
         SET state = note.state, gateway_ref = coalesce(note.gateway_ref, payment.gateway_ref),
             pay_url = coalesce(note.pay_url, payment.pay_url), updated_at = $5
         FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[]) AS note (booking_id, state, gateway_ref, pay_url)
         WHERE payment.booking_id = note.booking_id",
    )
    .bind(notes.keys().copied().collect::<Vec<_>>())
    .bind(notes.values().map(|note| note.state).collect::<Vec<_>>())
    .bind(notes.values().map(|note| note.gateway_ref.as_deref()).collect::<Vec<_>>())
    .bind(notes.values().map(|note| note.pay_url.as_deref()).collect::<Vec<_>>())
    .bind(to_utc(now))
    .execute(tx)
    .await?;
    Ok(())
}
