//! Compares the ledger of each gateway with our payments, once a day.
//!
//! A day of UTC is compared two hours after its end, from both sides: the payments that the gateway lists, and the
//! payments here that were not listed. Before a difference counts, the gateway is asked once more about that payment:
//! a page may be older than our rows. A difference waits for a person (`parked`) and is counted in a metric.
//!
//! Any replica compares, under a lease that each page renews. If it dies, another replica restarts the day.

mod compare;
mod differences;
mod sql;

use std::collections::HashSet;
use std::time::Duration;

use chrono::{DateTime, Days, NaiveDate, NaiveTime, Utc};
use domain::money::Money;
use domain::time::{MINUTE_MS, Timestamp};
use uuid::Uuid;

use self::compare::{Amounts, Book, Difference, DifferenceKind};
pub use self::differences::{OpenDifference, count_open_differences, list_open_differences, open_counts};
pub(super) use self::differences::{compare_again, find, settle};
use super::effects::EffectError;
use crate::SellingState;
use payments::{GatewayError, GuardedGateway, LedgerEntry, PaymentIds, PaymentStatus, Window};
use platform::background::PeriodicLoop;
use platform::clock::{from_utc, to_utc};
use platform::ids;

/// Interval of checks for due days and differences.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// Delay of a comparison after the end of its day, milliseconds: payments of its last minutes are settled by then.
const SETTLED_AFTER_MS: i64 = 120 * MINUTE_MS;
/// Maximum days that are compared after an outage.
const MAX_DAYS_BACK: u64 = 7;
/// Lease of a comparison, renewed with each page, milliseconds.
const LEASE_MS: i64 = 5 * MINUTE_MS;
/// Delay before a failed comparison restarts, milliseconds.
const AGAIN_AFTER_MS: i64 = 10 * MINUTE_MS;
/// Timeout of a comparison.
const DEADLINE: Duration = Duration::from_secs(3_600);
/// Maximum pages of one ledger and day: half a million payments.
const MAX_PAGES: u32 = 5_000;
/// Our own payments per page: few enough that a gateway can be asked for each within the lease.
const OWN_PER_PAGE: i64 = 250;
/// Maximum differences in one comparison; more indicate a systematic fault. Payments that are verified and agree do not
/// count: thousands may be bought before midnight and charged after it.
const MAX_DIFFERENCES: u32 = 1_000;

/// Reasons for which a comparison failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum CompareError {
    #[error(transparent)]
    Database(#[from] sqlx::Error),
    #[error(transparent)]
    Gateway(#[from] GatewayError),
    #[error(transparent)]
    Effect(#[from] EffectError),
    #[error("its ledger has more than {} pages", MAX_PAGES)]
    TooLong,
    #[error("more than {} payments differ", MAX_DIFFERENCES)]
    TooMany,
    #[error("it is not done after {} s", DEADLINE.as_secs())]
    Overdue,
    #[error("another replica has taken it, or the server stops")]
    Lost,
}

/// The comparison of one day of a gateway.
struct Comparison<'a> {
    state: &'a SellingState,
    gateway: &'a GuardedGateway,
    day: NaiveDate,
    fence: i32,
    /// Bookings whose payments the gateway listed.
    listed: HashSet<Uuid>,
    differences: u32,
}

/// Compares ledgers until the server stops.
pub async fn compare_forever(state: SellingState) {
    let mut rounds = PeriodicLoop::every(&state.stop, LOOK_EVERY);
    while rounds.wait_next().await {
        for name in state.gateways.names() {
            let Some(gateway) = state.gateways.find(name) else { continue };
            if let Err(cause) = compare_due(&state, gateway).await {
                tracing::warn!(%cause, gateway = name, "read due ledger days of {name} failed");
            }
        }
        if let Err(cause) = differences::compare_due(&state).await {
            tracing::warn!(%cause, "compare differences again failed");
        }
    }
}

async fn compare_due(state: &SellingState, gateway: &GuardedGateway) -> sqlx::Result<()> {
    let (now, name) = (state.clock.now(), gateway.name());
    plan(state, name, now).await?;
    let lease = now.plus_ms(LEASE_MS);
    let Some((day, fence)) = sql::take(&state.pg, name, now, lease).await? else { return Ok(()) };
    let mut comparison = Comparison { state, gateway, day, fence, listed: HashSet::new(), differences: 0 };
    let compared = tokio::time::timeout(DEADLINE, comparison.run()).await.unwrap_or(Err(CompareError::Overdue));
    let now = state.clock.now();
    match compared {
        Ok(()) => sql::finish(&state.pg, (name, day, fence), comparison.listed.len() as i64, now).await?,
        Err(CompareError::Lost) => sql::renew(&state.pg, (name, day, fence), now).await.map(drop)?,
        Err(cause) => {
            tracing::error!(%cause, gateway = name, %day, "compare the ledger of {name} failed; it is retried");
            sql::renew(&state.pg, (name, day, fence), now.plus_ms(AGAIN_AFTER_MS)).await.map(drop)?;
        }
    }
    Ok(())
}

async fn plan(state: &SellingState, gateway: &str, now: Timestamp) -> sqlx::Result<()> {
    let last = sql::last_planned(&state.pg, gateway).await?;
    for day in days_after(last, to_utc(now.plus_ms(-SETTLED_AFTER_MS)).date_naive()) {
        sql::plan(&state.pg, gateway, day, now).await?;
    }
    Ok(())
}

/// Returns the finished days after the last planned one; with none planned, only yesterday.
fn days_after(last: Option<NaiveDate>, today: NaiveDate) -> Vec<NaiveDate> {
    let earliest = today - Days::new(MAX_DAYS_BACK);
    let first = last.map_or(today - Days::new(1), |last| last + Days::new(1)).max(earliest);
    first.iter_days().take_while(|day| *day < today).collect()
}

impl Comparison<'_> {
    async fn run(&mut self) -> Result<(), CompareError> {
        let (from, until) = (midnight(self.day), midnight(self.day + Days::new(1)));
        let window = Window { from: from_utc(from), until: from_utc(until) };
        self.compare_listed(window).await?;
        self.compare_own(window).await
    }

    /// Compares the payments that the gateway lists with ours.
    async fn compare_listed(&mut self, window: Window) -> Result<(), CompareError> {
        let mut after: Option<String> = None;
        for _ in 0..MAX_PAGES {
            let page = self.gateway.ledger(window, after.as_deref()).await?;
            let ids: Vec<Uuid> = page.entries.iter().filter_map(|entry| entry.booking).collect();
            let books = sql::books(&self.state.pg, self.gateway.name(), &ids).await?;
            for entry in &page.entries {
                let Some(booking) = entry.booking else { continue };
                if self.listed.insert(booking)
                    && compare::find_difference(amounts(entry), books.get(&booking)).is_some()
                {
                    self.verify_difference(booking, Some(entry.gateway_ref.clone())).await?;
                }
            }
            self.renew().await?;
            after = page.next;
            if after.is_none() {
                return Ok(());
            }
        }
        Err(CompareError::TooLong)
    }

    /// Finds payments here that were not listed. A payment at the edge of the day may be listed on the next, so the
    /// gateway is asked for it.
    async fn compare_own(&mut self, window: Window) -> Result<(), CompareError> {
        let name = self.gateway.name();
        let mut after = first_id(window.from);
        loop {
            let own = sql::paid(&self.state.pg, name, (after, first_id(window.until)), OWN_PER_PAGE).await?;
            for (booking, gateway_ref) in &own {
                if !self.listed.contains(booking) {
                    self.verify_difference(*booking, gateway_ref.clone()).await?;
                }
            }
            self.renew().await?;
            match own.last() {
                Some((last, _)) if own.len() as i64 == OWN_PER_PAGE => after = *last,
                _ => return Ok(()),
            }
        }
    }

    /// Verifies a payment that seems to differ with the gateway; a confirmed difference is recorded for a person.
    async fn verify_difference(&mut self, booking: Uuid, gateway_ref: Option<String>) -> Result<(), CompareError> {
        let known = PaymentIds { booking, gateway_ref: gateway_ref.clone() };
        let Some(found) = find_current_difference(self.state, self.gateway, &known).await? else { return Ok(()) };
        if found.kind == DifferenceKind::UnknownBooking && self.state.catalogue.has_regions() {
            // A booking of another region, which is in another database.
            return Ok(());
        }
        self.differences += 1;
        if self.differences > MAX_DIFFERENCES {
            return Err(CompareError::TooMany);
        }
        let payment = gateway_ref.unwrap_or_else(|| booking.to_string());
        let name = self.gateway.name();
        if differences::record(&self.state.pg, name, (&payment, booking), &found, self.state.clock.now()).await? {
            tracing::error!(%booking, gateway = name, ?found, "the ledger of {name} and the payment of {booking} differ");
        }
        Ok(())
    }

    async fn renew(&self) -> Result<(), CompareError> {
        let lease = self.state.clock.now().plus_ms(LEASE_MS);
        let is_ours = sql::renew(&self.state.pg, (self.gateway.name(), self.day, self.fence), lease).await?;
        if is_ours && !self.state.stop.is_cancelled() { Ok(()) } else { Err(CompareError::Lost) }
    }
}

/// Asks a gateway for a payment, and returns its difference from ours now.
async fn find_current_difference(
    state: &SellingState,
    gateway: &GuardedGateway,
    known: &PaymentIds,
) -> Result<Option<Difference>, CompareError> {
    let payment = gateway.status(known).await?;
    let there = payment.as_ref().and_then(|payment| match payment.status {
        PaymentStatus::Succeeded { amount } => Some(Amounts { charged: amount, refunded: payment.refunded }),
        _ => None,
    });
    let books = sql::books(&state.pg, gateway.name(), &[known.booking]).await?;
    let book: Option<&Book> = books.get(&known.booking);
    Ok(match there {
        Some(there) => compare::find_difference(there, book),
        None => book.and_then(compare::missing),
    })
}

fn amounts(entry: &LedgerEntry) -> Amounts {
    Amounts { charged: entry.charged, refunded: entry.refunded }
}

fn midnight(day: NaiveDate) -> DateTime<Utc> {
    day.and_time(NaiveTime::MIN).and_utc()
}

/// Returns an id below those of all bookings made from that instant on: ids are ordered by time.
fn first_id(at: Timestamp) -> Uuid {
    ids::first_booking_id(at)
}

fn amount_difference(here: i64, there: i64, currency: domain::money::Currency) -> Money {
    Money::new((there - here).abs(), currency)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(number: u32) -> NaiveDate {
        NaiveDate::from_ymd_opt(2026, 11, number).expect("a day")
    }

    #[test]
    fn each_finished_day_is_compared_once_up_to_a_week_back() {
        assert_eq!(days_after(None, day(20)), [day(19)]);
        assert!(days_after(Some(day(19)), day(20)).is_empty());
        assert_eq!(days_after(Some(day(17)), day(20)), [day(18), day(19)]);
        assert_eq!(days_after(Some(day(1)), day(20)), (13..20).map(day).collect::<Vec<_>>());
        assert!(days_after(Some(day(25)), day(20)).is_empty(), "a clock that was put back");
    }
}
