//! Exchanges the seats of a sold booking: one transaction takes the new seats and releases the old ones.
//!
//! The old booking ends and its money pays for the new one, as late money does (`late`, docs/decisions/0009): refunds
//! of the new booking go through the original payment. A higher price is paid at the counter. A gateway payment
//! cannot be increased there, so a booking that was paid online is not exchanged for dearer seats. For a lower price
//! all of the money moves, and the difference is a refund of the new booking, which a manager must approve: from the
//! till if it was paid at the counter, through the gateway if it was paid online.

use domain::booking::{Booking, BookingEvent, BookingState};
use domain::money::Money;
use domain::till::Means;
use domain::time::Timestamp;
use sqlx::PgConnection;
use uuid::Uuid;

use super::cancel;
use super::claims::{self, area_claims, seat_claims};
use super::counter::{self, CounterSale, CounterSaleError, CounterSaleResult};
use super::money::{payment_rows, refunds};
use super::moves::{self, Cause};
use super::sql::{self, BookingRow};
use http::{ApiResult, Code, Problem};

/// The booking to exchange.
#[derive(Clone, Copy, Debug)]
pub struct ExchangedBooking {
    /// Its id.
    pub booking: Uuid,
    /// The price of it that the customer was shown, minor units; not compared if `None`.
    pub quoted_minor: Option<i64>,
}

/// The result of an exchange.
#[derive(Clone, Debug)]
pub struct Exchanged {
    /// The new booking.
    pub sold: CounterSaleResult,
    /// The reference of the old one.
    pub from: String,
    /// The price difference; negative: refunded.
    pub difference: Money,
    /// The means of payment at the counter; `None` when a gateway has the money, and refunds the difference.
    pub means: Option<Means>,
}

/// Exchanges all of a sold booking for the selection of a closed hold, in the caller's transaction. The buyer stays the
/// same; `sale.means` and `sale.buyer` are ignored. A refund needs a manager's approval (`is_approved`), and so does a
/// booking whose show has begun: its money could hide cash that a seller takes for the new seats. A refund at the counter
/// counts as paid out when this is committed: the caller records it in the till.
///
/// # Errors
/// [`CounterSaleError`].
pub async fn exchange(
    tx: &mut PgConnection,
    given: ExchangedBooking,
    sale: &CounterSale<'_>,
    is_approved: bool,
    now: Timestamp,
) -> Result<Exchanged, CounterSaleError> {
    let from = given.booking;
    let old = sql::lock(tx, from).await?.ok_or_else(|| Problem::not_found("booking"))?;
    if old.machine.state != BookingState::Confirmed {
        return Err(refuse("This booking is not sold, or not any more: it cannot be exchanged."));
    }
    if !is_approved && sql::has_begun(tx, old.show_id, now).await? {
        let detail = "The show of this booking has begun: a manager authorises the exchange with their PIN.";
        return Err(CounterSaleError::Refused(Problem::new(Code::PinWrong, detail)));
    }
    if tickets::has_admissions(tx, from, None).await? {
        return Err(refuse("Someone has already come in with these tickets: they cannot be exchanged."));
    }
    // A refund belongs to the booking that has its money: that money must not move.
    if refunds::of_booking(tx, from).await?.iter().any(|refund| refund.settled_at.is_none()) {
        return Err(refuse("A refund of this booking is still under way. Exchange it when that has arrived."));
    }
    let means = refunds::paid_at_counter(tx, from).await?;
    let fresh = fresh_row(&old, sale, means, now)?;
    let difference = difference((&old, given.quoted_minor), (&fresh, sale.quoted_minor), means)?;
    if difference.minor < 0 && !is_approved {
        // The price was checked before the booking was locked, and a part of it may have been returned since.
        return Err(refuse("Money would go back for these seats, and no manager stands for it. Look at it once more."));
    }
    let row = counter::insert(tx, fresh, now).await?;
    counter::put_lines(tx, sale.show, &row, means.unwrap_or(Means::Card)).await?;

    let by_staff = Cause::of("staff", sale.reason);
    let locked = moves::begin(tx, &row, by_staff, now).await?;
    let moved_in = BookingEvent::PaymentMovedIn { until: sale.held.expires_at };
    let pending = moves::apply(tx, &locked, moved_in, by_staff, now).await?;
    area_claims::lock_both(tx, [&old, &pending]).await?;
    if let Some(lost) = claims::claim_all(tx, sale.show, &pending, now).await? {
        return Err(CounterSaleError::Lost(lost));
    }
    move_payment(tx, &old, &pending, now).await?;
    let paid = BookingEvent::PaymentSucceeded { amount: pending.machine.total };
    let paid =
        moves::apply(tx, &pending, paid, Cause::of("staff", "The money of the first booking pays."), now).await?;
    let sold = moves::settle(tx, &paid, sale.show.starts_at <= now, now).await?;
    if sold.machine.state != BookingState::Confirmed {
        return Err(refuse("The show has begun, or a seat was lost: nothing was exchanged."));
    }
    refund_difference(tx, &sold, difference, means, now).await?;
    end_old(tx, &old, &sold.reference, sale.reason, now).await?;
    let from = old.reference;
    let sold = CounterSaleResult { booking: sold.id, reference: sold.reference, total: sold.machine.total };
    Ok(Exchanged { sold, from, difference, means })
}

fn refuse(words: &str) -> CounterSaleError {
    CounterSaleError::Refused(wrong_state(words))
}

fn wrong_state(words: &str) -> Problem {
    Problem::new(Code::WrongState, words)
}

/// Builds the new booking: the same people, other seats.
fn fresh_row(old: &BookingRow, sale: &CounterSale<'_>, means: Option<Means>, now: Timestamp) -> ApiResult<BookingRow> {
    let sale = CounterSale { means: means.unwrap_or(Means::Card), buyer: ("", ""), ..*sale };
    let row = counter::new_counter_row(&sale, now)?;
    // A buyer who paid online finds it in their own list; a counter booking has no visitor.
    let owner = if means.is_none() { old.owner.clone() } else { row.owner.clone() };
    Ok(BookingRow { owner, buyer: old.buyer.clone(), holder: old.holder.clone(), ..row })
}

/// Returns the price difference, if both prices are the ones that the customer was shown. The old booking may have
/// returned a part since, at another till.
fn difference(
    (old, shown_before): (&BookingRow, Option<i64>),
    (fresh, shown_after): (&BookingRow, i64),
    means: Option<Means>,
) -> ApiResult<Money> {
    let (before, after): (Booking, Booking) = (old.machine, fresh.machine);
    if shown_before.is_some_and(|shown| shown != before.total.minor) {
        let words = format!("The booking that is exchanged comes to {} now. Look at it once more.", before.total);
        return Err(wrong_state(&words));
    }
    if after.total.minor != shown_after {
        let words = format!("The new seats cost {} now. Tell the customer, then exchange them once more.", after.total);
        return Err(wrong_state(&words));
    }
    if after.total.currency != before.total.currency {
        return Err(wrong_state("The new seats are in another currency."));
    }
    let difference = Money::new(after.total.minor - before.total.minor, after.total.currency);
    if means.is_none() && difference.minor > 0 {
        let words = "This booking was paid online, and the new seats cost more: refund it and sell anew.";
        return Err(wrong_state(words));
    }
    Ok(difference)
}

/// Moves all money that is left, together with the amount paid at the counter.
async fn move_payment(tx: &mut PgConnection, old: &BookingRow, fresh: &BookingRow, now: Timestamp) -> ApiResult<()> {
    let there = old.machine.total.minor.max(fresh.machine.total.minor);
    if !payment_rows::move_money(tx, (old.id, fresh.id), Some(there), now).await? {
        return Err(Problem::internal(&format!("booking {} is sold and has no money that could move", old.id)));
    }
    Ok(())
}

/// Refunds a lower price as a refund of the new booking, which has the money.
async fn refund_difference(
    tx: &mut PgConnection,
    sold: &BookingRow,
    difference: Money,
    means: Option<Means>,
    now: Timestamp,
) -> Result<(), CounterSaleError> {
    if difference.minor >= 0 {
        return Ok(());
    }
    let amount = Money::new(-difference.minor, difference.currency);
    let number = refunds::next_number(tx, sold.id).await?;
    let returned = BookingEvent::DifferenceReturned { number, amount };
    let cause = Cause::of("staff", "The new seats cost less.");
    let updated = moves::apply(tx, sold, returned, cause, now).await?;
    refunds::request(tx, sold.id, number, (amount, 0), now).await?;
    if means.is_some() {
        refunds::settle(tx, &updated, number, cancel::PAID_OUT, now).await?;
    }
    Ok(())
}

/// Ends the old booking. Its seats are free when this is committed; the outbox updates the map.
async fn end_old(
    tx: &mut PgConnection,
    old: &BookingRow,
    to: &str,
    reason: &str,
    now: Timestamp,
) -> Result<(), CounterSaleError> {
    let words = format!("Exchanged for {to}. {reason}");
    moves::apply(tx, old, BookingEvent::Exchanged, Cause::of("staff", &words), now).await?;
    tickets::revoke(tx, old.id, None, now).await?;
    area_claims::release(tx, old).await?;
    seat_claims::release(tx, old).await?;
    Ok(())
}
