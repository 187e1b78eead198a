//! Returns at the counter. Money paid there is paid out there, in the same transaction; money at a gateway
//! is refunded through the gateway.

use domain::booking::{BookingState, MoneyState};
use domain::money::Money;
use domain::seats::SeatIndex;
use domain::till::Means;
use domain::time::Timestamp;
use sqlx::PgConnection;
use uuid::Uuid;

use super::{Canceller, reason_of, undo, undo_seats, unmoved};
use crate::bookings::money::refunds;
use crate::bookings::moves::Cause;
use crate::bookings::sql::{self, BookingRow};
use http::{Code, Problem};

/// The history's cause of a payout at the counter.
pub(crate) const PAID_OUT: Cause<'static> = Cause::of("staff", "Paid back at the counter.");

/// The result of a return at the counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterReturn {
    /// The refunded amount.
    pub amount: Money,
    /// The means of the payout at the counter; `None`: refunded through the gateway.
    pub means: Option<Means>,
}

/// Takes back all of a sold booking, or these seats, in full and at any time. Counter money counts as paid out
/// when this is committed: the caller records it in the till.
///
/// # Errors
/// 404 when there is no such booking, 409 when it is not sold (any more), 400 for unknown seats or an
/// invalid reason.
pub async fn take_back(
    tx: &mut PgConnection,
    booking: Uuid,
    seats: Option<&[SeatIndex]>,
    reason: &str,
    now: Timestamp,
) -> Result<CounterReturn, Problem> {
    let reason = reason_of(reason)?;
    let row = sql::lock(tx, booking).await?.ok_or_else(|| Problem::not_found("booking"))?;
    if row.machine.state != BookingState::Confirmed {
        return Err(Problem::new(Code::WrongState, "This booking is not sold, or not any more: nothing can go back."));
    }
    let means = refunds::paid_at_counter(tx, booking).await?;
    let number = refunds::next_number(tx, booking).await?;
    let undone = match seats {
        Some(seats) => undo_seats(tx, &row, seats, Canceller::Staff, reason, now).await?,
        None => undo(tx, &row, Canceller::Staff, Cause::of("staff", reason), now).await.map_err(unmoved)?,
    };
    let is_all = undone.machine.state == BookingState::Cancelled;
    let back = if is_all { row.machine.total.minor } else { row.machine.total.minor - undone.machine.total.minor };
    if means.is_some() {
        let number = if is_all { 0 } else { number };
        refunds::settle(tx, &undone, number, PAID_OUT, now).await.map_err(unmoved)?;
    }
    Ok(CounterReturn { amount: Money::new(back, row.machine.total.currency), means })
}

/// Pays out the refunds of a counter booking that was undone elsewhere, for example because its show was called off.
///
/// # Errors
/// 404 when there is no such booking, 409 when no payout is open.
pub async fn pay_out(tx: &mut PgConnection, booking: Uuid, now: Timestamp) -> Result<CounterReturn, Problem> {
    let nothing = || Problem::new(Code::WrongState, "Nothing waits at the counter for this booking.");
    let row = sql::lock(tx, booking).await?.ok_or_else(|| Problem::not_found("booking"))?;
    let means = refunds::paid_at_counter(tx, booking).await?.ok_or_else(nothing)?;
    let waiting: Vec<_> =
        refunds::of_booking(tx, booking).await?.into_iter().filter(|refund| refund.settled_at.is_none()).collect();
    if waiting.is_empty() {
        return Err(nothing());
    }
    let mut back = 0;
    for refund in &waiting {
        // The full refund is the machine's last step; a part adds an event, and so increments the version.
        let row = sql::lock(tx, row.id).await?.ok_or_else(|| Problem::not_found("booking"))?;
        refunds::settle(tx, &row, refund.number.cast_unsigned(), PAID_OUT, now).await.map_err(unmoved)?;
        back += refund.amount_minor;
    }
    Ok(CounterReturn { amount: Money::new(back, row.machine.total.currency), means: Some(means) })
}

/// Returns the open payout of a booking at the counter; `None` where its money is at a gateway.
pub(crate) fn waiting(row: &BookingRow, refunds: &[refunds::RefundRow], means: Option<Means>) -> Option<Money> {
    means?;
    let open: i64 = refunds.iter().filter(|refund| refund.settled_at.is_none()).map(|refund| refund.amount_minor).sum();
    let is_owed = open > 0 && matches!(row.machine.money, MoneyState::Refunding | MoneyState::Paid);
    is_owed.then(|| Money::new(open, row.machine.total.currency))
}
