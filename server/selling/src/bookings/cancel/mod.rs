//! Undoes sales: by the buyer, by staff, or for a whole show.
//!
//! All three call [`undo`]: the state machine's move, the refund with its fee, and the revocation of the
//! tickets, in the caller's transaction. Seats, money and mail follow as effects.

mod buyer;
mod counter;
mod returned;
mod shows;
mod staff;
mod withdrawals;

use domain::booking::{BUYER_CANCELS_UNTIL_MS, BookingEvent, BookingState, back_to_buyer};
use domain::money::Money;
use domain::seats::SeatIndex;
use domain::time::{MINUTE_MS, Timestamp};
use sqlx::PgConnection;

pub(super) use buyer::cancel as cancel_own;
pub use counter::{CounterReturn, pay_out, take_back};
pub(super) use counter::{PAID_OUT, waiting};
pub(super) use returned::release_part;
pub use shows::{CallOffProgress, call_off, call_off_in, undo_batch, work_forever};
pub(super) use staff::reason_of;
pub use staff::{StaffCancellation, cancel_booking};
pub use withdrawals::{bookings_with, withdraw_forever, withdraw_in};

use super::money::refunds;
use super::moves::{self, Cause, MoveError};
use super::sql::{self, BookingRow};
use http::{Code, Problem};

/// The party that cancels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Canceller {
    /// The buyer: only in time, less the fee.
    Buyer {
        /// When the show starts.
        show_starts_at: Timestamp,
    },
    /// Staff: at any time, in full.
    Staff,
}

impl Canceller {
    /// Splits a price into the refund and the fee that is kept.
    fn share(self, price: Money) -> (Money, i64) {
        let back = match self {
            Self::Buyer { .. } => back_to_buyer(price),
            Self::Staff => price,
        };
        (back, price.minor - back.minor)
    }
}

/// Undoes all of a booking, which the caller has locked.
async fn undo(
    tx: &mut PgConnection,
    row: &BookingRow,
    by: Canceller,
    cause: Cause<'_>,
    now: Timestamp,
) -> Result<BookingRow, MoveError> {
    let event = match by {
        Canceller::Buyer { show_starts_at } => BookingEvent::CancelledByBuyer { show_starts_at },
        Canceller::Staff => BookingEvent::CancelledByStaff,
    };
    let undone = moves::apply(tx, row, event, cause, now).await?;
    if matches!(row.machine.state, BookingState::PaymentSucceeded | BookingState::Confirmed) {
        refunds::request(tx, row.id, 0, by.share(row.machine.total), now).await?;
        tickets::revoke(tx, row.id, None, now).await?;
    }
    Ok(undone)
}

/// Undoes all of a booking, which the caller has locked, on behalf of the cinema: the payment is refunded in full.
///
/// # Errors
/// 409 when the booking has ended.
pub async fn undo_in_full(
    tx: &mut PgConnection,
    row: &BookingRow,
    cause: Cause<'_>,
    now: Timestamp,
) -> Result<BookingRow, Problem> {
    undo(tx, row, Canceller::Staff, cause, now).await.map_err(unmoved)
}

/// Undoes these seats of a booking, which the caller has locked, and keeps the others; the whole booking, when no
/// other seat is left.
async fn undo_seats(
    tx: &mut PgConnection,
    row: &BookingRow,
    seats: &[SeatIndex],
    by: Canceller,
    words: &str,
    now: Timestamp,
) -> Result<BookingRow, Problem> {
    let actor = if by == Canceller::Staff { "staff" } else { "buyer" };
    let lines = sql::seats(tx, row.id).await?;
    let (gone, kept) = returned::divide(lines, seats)?;
    if kept.is_empty() && !row.places.is_empty() {
        let detail = "This booking has places without numbers as well. Cancel it as a whole.";
        return Err(Problem::new(Code::WrongState, detail));
    }
    if kept.is_empty() {
        return undo(tx, row, by, Cause { actor, reason: words }, now).await.map_err(unmoved);
    }
    let price = Money::new(gone.iter().map(|line| line.price_minor).sum(), row.machine.total.currency);
    let number = refunds::next_number(tx, row.id).await?;
    let event = match by {
        Canceller::Buyer { show_starts_at } => BookingEvent::PartCancelledByBuyer { number, price, show_starts_at },
        Canceller::Staff => BookingEvent::PartCancelledByStaff { number, price },
    };
    let names = gone.iter().map(|line| line.label.as_str()).collect::<Vec<_>>().join(", ");
    let reason = format!("{names}: {words}");
    let smaller = moves::apply(tx, row, event, Cause { actor, reason: &reason }, now).await.map_err(unmoved)?;
    refunds::request(tx, row.id, number, by.share(price), now).await?;
    returned::take(tx, row.id, number, &gone).await?;
    let gone: Vec<i32> = gone.iter().map(|line| line.seat_no).collect();
    tickets::revoke(tx, row.id, Some(&gone), now).await?;
    Ok(BookingRow { seats: kept.iter().map(|line| line.seat_no.cast_unsigned()).collect(), ..smaller })
}

/// Maps a refused cancellation to a problem.
pub(super) fn unmoved(error: MoveError) -> Problem {
    use domain::booking::StepError;
    match error {
        MoveError::Refused(StepError::TooLate) => Problem::new(
            Code::TooLateToCancel,
            format!(
                "Bookings can be cancelled until {} minutes before the show. The box office may help.",
                BUYER_CANCELS_UNTIL_MS / MINUTE_MS
            ),
        ),
        MoveError::Refused(StepError::Gone) => Problem::new(
            Code::WrongState,
            "This booking is over already. Anything that was charged for it is being refunded.",
        ),
        MoveError::Refused(_) => Problem::new(
            Code::WrongState,
            "The booking cannot be cancelled like this just now. Please look at its page and try again.",
        ),
        other => super::checkout::create::unmoved(other),
    }
}
