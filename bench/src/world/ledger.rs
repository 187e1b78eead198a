//! Reads the state of a show after a sale, for the checker.

use std::time::{Duration, Instant};

use anyhow::Result;
use uuid::Uuid;

use super::{BenchServer, Show, World};
use crate::checker::{BOOKED, Findings, Ledger};

/// Polling interval.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

impl World {
    /// Reads a show's claims, tickets, payments and bookings.
    pub fn ledger(&self, show: &Show) -> Result<Ledger> {
        self.runtime.block_on(async {
            let sold: Vec<(i32, Uuid)> =
                sqlx::query_as("SELECT seat_no, booking_id FROM seat_claims WHERE show_id = $1 AND state = 'sold'")
                    .bind(show.id)
                    .fetch_all(&self.pg)
                    .await?;
            let tickets: Vec<(i32, Uuid)> = sqlx::query_as(
                "SELECT ticket.seat_no, ticket.booking_id
                 FROM tickets ticket JOIN bookings booking ON booking.id = ticket.booking_id
                 WHERE booking.show_id = $1",
            )
            .bind(show.id)
            .fetch_all(&self.pg)
            .await?;
            let count = async |query: &'static str| -> Result<u64> {
                let number: i64 = sqlx::query_scalar(query).bind(show.id).fetch_one(&self.pg).await?;
                Ok(number.unsigned_abs())
            };
            let open_claims =
                count("SELECT count(*) FROM seat_claims WHERE show_id = $1 AND state = 'claimed'").await?;
            let paid = count(
                "SELECT count(*) FROM payments payment JOIN bookings booking ON booking.id = payment.booking_id
                 WHERE booking.show_id = $1 AND payment.state = 'succeeded' AND payment.refund_state IS NULL",
            )
            .await?;
            let confirmed = count("SELECT count(*) FROM bookings WHERE show_id = $1 AND state = 'CONFIRMED'").await?;
            let numbered = |rows: Vec<(i32, Uuid)>| {
                rows.into_iter().map(|(seat, booking)| (seat.unsigned_abs(), booking)).collect()
            };
            Ok(Ledger { sold: numbered(sold), open_claims, tickets: numbered(tickets), paid, confirmed })
        })
    }

    /// Returns the number of outbox rows: pending effects.
    pub fn pending_effects(&self) -> Result<u64> {
        let count: i64 =
            self.runtime.block_on(sqlx::query_scalar("SELECT count(*) FROM outbox").fetch_one(&self.pg))?;
        Ok(count.unsigned_abs())
    }

    /// Waits until every server shows every seat as sold and no effect is pending.
    pub fn wait_until_sold_out(&self, servers: &[BenchServer], show: &Show, timeout: Duration) -> Result<Findings> {
        let began = Instant::now();
        let mut found = Findings::default();
        loop {
            let open = self.pending_effects()?;
            let mut is_settled = open == 0;
            for server in servers {
                is_settled &= server.seat_states(show)?.iter().all(|state| *state == BOOKED);
            }
            if is_settled {
                return Ok(found);
            }
            if began.elapsed() > timeout {
                let seconds = timeout.as_secs();
                found.add(|| format!("{seconds} s after the sale the map is not sold out, or {open} effects are open"));
                return Ok(found);
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Returns the number of charges without a received webhook; every charge has exactly one.
    pub fn charges_without_webhook(&self) -> Result<u64> {
        let count: i64 = self.runtime.block_on(
            sqlx::query_scalar(
                "SELECT (SELECT count(*) FROM payments WHERE state = 'succeeded') - (SELECT count(*) FROM webhook_events)",
            )
            .fetch_one(&self.pg),
        )?;
        Ok(count.max(0).unsigned_abs())
    }
}
