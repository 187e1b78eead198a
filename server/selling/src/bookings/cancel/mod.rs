//! Undoes sales: by the buyer, by staff, or for a whole show.
//!
//! All three call [`undo`]: the state machine's move, the refund with its fee, and the revocation of the
//! tickets, in the caller's transaction. Seats, money and mail follow as effects. Money paid at the counter is paid out
//! there, in the same transaction; money at a gateway is refunded through the gateway.

mod shows;
mod withdrawals;

use std::collections::BTreeSet;

use axum::http::StatusCode;
use domain::api::cancelling::CancelRequest;
use domain::booking::{BUYER_CANCELS_UNTIL_MS, BookingEvent, BookingState, MoneyState, back_to_buyer};
use domain::money::Money;
use domain::seats::SeatIndex;
use domain::till::Means;
use domain::time::{MINUTE_MS, Timestamp};
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use super::claims::{on_map, seat_claims};
use super::effects::EffectError;
use super::money::refunds;
use super::moves::{self, Cause, MoveError};
use super::seat_offers;
use super::sql::{self, BookingRow, SeatRow};
use super::views::view;
use crate::{SellingState, outbox};
use catalogue::Show;
use http::idempotency::{Answer, Intent};
use http::{ApiResult, Code, Problem};
use identity::accounts::reason_of;
use platform::database::{BindAll, begin_with_lock_timeout};

pub use shows::{CallOffProgress, call_off, call_off_in, cancel_shows_forever, undo_batch};
pub use withdrawals::{bookings_with, withdraw_forever, withdraw_in};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Canceller {
    /// The buyer: only in time, less the fee.
    Buyer { show_starts_at: Timestamp },
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
) -> ApiResult<BookingRow> {
    undo(tx, row, Canceller::Staff, cause, now).await.map_err(cancellation_problem)
}

/// Seats of a booking to return.
#[derive(Clone, Copy, Debug)]
pub struct ReturnedSeats<'a> {
    /// The seats.
    seats: &'a [SeatIndex],
    /// Their labels as the caller saw them, in this order, if it says them.
    labels: Option<&'a [String]>,
}

impl<'a> ReturnedSeats<'a> {
    /// These seats, whatever they are called.
    const fn unlabelled(seats: &'a [SeatIndex]) -> Self {
        Self { seats, labels: None }
    }

    /// The seats that a request names; `None` for all of the booking.
    ///
    /// # Errors
    /// 400 for labels without seats: they must not count as a request for all.
    pub fn of_request(seats: Option<&'a [SeatIndex]>, labels: Option<&'a [String]>) -> ApiResult<Option<Self>> {
        match (seats, labels) {
            (None, Some(_)) => Err(Problem::new(Code::Malformed, "`labels` are those of `seats`, which are missing.")),
            (seats, labels) => Ok(seats.map(|seats| Self { seats, labels })),
        }
    }
}

/// Undoes these seats of a booking, which the caller has locked, and keeps the others; the whole booking, when no
/// other seat is left.
async fn undo_seats(
    tx: &mut PgConnection,
    row: &BookingRow,
    returned: ReturnedSeats<'_>,
    by: Canceller,
    words: &str,
    now: Timestamp,
) -> ApiResult<BookingRow> {
    let actor = if by == Canceller::Staff { "staff" } else { "buyer" };
    let lines = sql::seats(tx, row.id).await?;
    let (gone, kept) = split_seats(lines, returned)?;
    if kept.is_empty() && !row.places.is_empty() {
        let detail = "This booking has places without numbers as well. Cancel it as a whole.";
        return Err(Problem::new(Code::WrongState, detail));
    }
    if kept.is_empty() {
        return undo(tx, row, by, Cause { actor, reason: words }, now).await.map_err(cancellation_problem);
    }
    let price = Money::new(gone.iter().map(|line| line.price_minor).sum(), row.machine.total.currency);
    let number = refunds::next_number(tx, row.id).await?;
    let event = match by {
        Canceller::Buyer { show_starts_at } => BookingEvent::PartCancelledByBuyer { number, price, show_starts_at },
        Canceller::Staff => BookingEvent::PartCancelledByStaff { number, price },
    };
    let names = gone.iter().map(|line| line.label.as_str()).collect::<Vec<_>>().join(", ");
    let reason = format!("{names}: {words}");
    let smaller =
        moves::apply(tx, row, event, Cause { actor, reason: &reason }, now).await.map_err(cancellation_problem)?;
    refunds::request(tx, row.id, number, by.share(price), now).await?;
    remove_seats(tx, row.id, number, &gone).await?;
    let gone: Vec<i32> = gone.iter().map(|line| line.seat_no).collect();
    tickets::revoke(tx, row.id, Some(&gone), now).await?;
    Ok(BookingRow { seats: kept.iter().map(|line| line.seat_no.cast_unsigned()).collect(), ..smaller })
}

/// Maps a refused cancellation to a problem.
pub(super) fn cancellation_problem(error: MoveError) -> Problem {
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
        other => super::checkout::create::move_problem(other),
    }
}

/// Splits the seats of a booking into those to return and those to keep. The only validator of
/// such a request: at least one seat, each once, each of this booking, each with its label.
fn split_seats(lines: Vec<SeatRow>, returned: ReturnedSeats<'_>) -> ApiResult<(Vec<SeatRow>, Vec<SeatRow>)> {
    let ReturnedSeats { seats, labels } = returned;
    let wanted: BTreeSet<SeatIndex> = seats.iter().copied().collect();
    if wanted.is_empty() {
        return Err(Problem::new(Code::Malformed, "Name at least one seat, or leave `seats` out to cancel all."));
    }
    if wanted.len() < seats.len() {
        return Err(Problem::new(Code::SeatTwice, "Name every seat once."));
    }
    let (gone, kept): (Vec<_>, Vec<_>) =
        lines.into_iter().partition(|line| wanted.contains(&line.seat_no.cast_unsigned()));
    if gone.len() < wanted.len() {
        return Err(Problem::new(Code::UnknownSeat, "The booking has no such seat (any more)."));
    }
    if let Some(labels) = labels {
        if labels.len() != seats.len() {
            return Err(Problem::new(Code::Malformed, "`labels` has one label for each of `seats`."));
        }
        let is_same = |(seat, label): (&SeatIndex, &String)| {
            gone.iter().any(|line| line.seat_no.cast_unsigned() == *seat && line.label == *label)
        };
        if !seats.iter().zip(labels).all(is_same) {
            let detail = "The show has moved to another room, and the seats of this booking have changed. Please look at \
                          it again.";
            return Err(Problem::new(Code::WrongState, detail));
        }
    }
    Ok((gone, kept))
}

/// Removes seats from a booking, in the transaction of its move.
async fn remove_seats(tx: &mut PgConnection, booking: Uuid, number: u32, gone: &[SeatRow]) -> sqlx::Result<()> {
    let seats: Vec<i32> = gone.iter().map(|line| line.seat_no).collect();
    let sql = "INSERT INTO returned_seats (booking_id, number, seat_no, label, category, price_minor)
               SELECT booking_id, $2, seat_no, label, category, price_minor FROM booking_seats
               WHERE booking_id = $1 AND seat_no = ANY($3)";
    sqlx::query(sql).bind_all((booking, number.cast_signed(), &seats)).execute(&mut *tx).await?;
    let sql = "DELETE FROM booking_seats WHERE booking_id = $1 AND seat_no = ANY($2)";
    sqlx::query(sql).bind_all((booking, &seats)).execute(tx).await.map(drop)
}

/// Releases the seats of one part: claims first, then the map. An effect, performed at least once.
pub(crate) async fn release_part(
    state: &SellingState,
    show: &Show,
    row: &BookingRow,
    number: u32,
) -> Result<(), EffectError> {
    let mut tx = begin_with_lock_timeout(&state.pg).await?;
    let sql = "SELECT seat_no FROM returned_seats WHERE booking_id = $1 AND number = $2 ORDER BY seat_no";
    let seats: Vec<i32> = sqlx::query_scalar(sql).bind_all((row.id, number.cast_signed())).fetch_all(&mut *tx).await?;
    let seats = seats.into_iter().map(i32::cast_unsigned).collect();
    let part = BookingRow { seats, places: Vec::new(), ..row.clone() };
    seat_claims::release(&mut tx, &part).await?;
    tx.commit().await?;
    let sale = part.sale();
    on_map::free(state, show, &sale).await
}

/// Refuses a cancellation by the buyer: the booking is undone in full in a moment, and a fee would be unfair.
fn called_off_problem() -> Problem {
    Problem::new(
        Code::SalesClosed,
        "This show will not take place. The full price is being refunded; you do not need to do anything.",
    )
}

/// Cancels the caller's booking. Returns its new state.
pub(crate) async fn cancel_own(
    state: &SellingState,
    owner: &str,
    booking: Uuid,
    request: &CancelRequest,
    intent: &Intent,
) -> ApiResult<Answer> {
    let now = state.clock.now();
    if let Some(answer) = intent.replay(&state.pg, now).await? {
        return Ok(answer);
    }
    let (_, show) = view::owned(state, owner, booking).await?.ok_or_else(|| Problem::not_found("booking"))?;
    if show.is_called_off() {
        return Err(called_off_problem());
    }

    let mut tx = state.pg.begin().await?;
    if let Some(answer) = intent.begin(&mut tx, now).await? {
        return Ok(answer);
    }
    let row = sql::lock(&mut tx, booking).await?.ok_or_else(|| Problem::not_found("booking"))?;
    // Asked again: the cached show may be a second old.
    if sql::is_called_off(&mut tx, row.show_id).await? {
        return Err(called_off_problem());
    }
    if seat_offers::is_offered(&mut tx, booking).await? {
        let words = "The show has moved, and you may choose: take the other seats, or get a full refund.";
        return Err(Problem::new(Code::WrongState, words));
    }
    let seats: Option<Vec<i32>> =
        request.seats.as_ref().map(|seats| seats.iter().map(|seat| seat.cast_signed()).collect());
    if tickets::has_admissions(&mut tx, booking, seats.as_deref()).await? {
        return Err(Problem::new(
            Code::WrongState,
            "Someone has already come in with these tickets: they cannot be cancelled. The box office may help.",
        ));
    }
    let by = Canceller::Buyer { show_starts_at: show.starts_at };
    let words = "The buyer cancelled.";
    let undone = match &request.seats {
        Some(seats) => {
            let returned = ReturnedSeats { seats, labels: request.labels.as_deref() };
            undo_seats(&mut tx, &row, returned, by, words, now).await?
        }
        None => {
            undo(&mut tx, &row, by, Cause { actor: "buyer", reason: words }, now).await.map_err(cancellation_problem)?
        }
    };
    let booking = view::of_row(&mut tx, &show, &undone).await?;
    let answer = Answer::json(StatusCode::OK, &booking)?;
    let answer = intent.commit(tx, answer, now).await?;
    outbox::wake(state);
    Ok(answer)
}

/// The result of a cancellation by staff.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaffCancellation {
    /// The booking.
    pub booking: Uuid,
    /// The refund to the buyer; zero when nothing was paid.
    pub back: Money,
}

/// Cancels the booking of that reference, or only the seats with these labels; the reason is mailed to the buyer.
///
/// # Errors
/// 404 when there is none, 400 for an unknown seat or an invalid reason, 409 when the booking has ended.
pub async fn cancel_booking(
    pg: &PgPool,
    reference: &str,
    labels: &[String],
    reason: &str,
    now: Timestamp,
) -> ApiResult<StaffCancellation> {
    let reason = reason_of(reason)?;
    let mut tx = pg.begin().await?;
    let booking: Option<Uuid> = sqlx::query_scalar("SELECT id FROM bookings WHERE reference = $1")
        .bind(reference.trim().to_uppercase())
        .fetch_optional(&mut *tx)
        .await?;
    let booking = booking.ok_or_else(|| Problem::not_found("booking"))?;
    let row = sql::lock(&mut tx, booking).await?.ok_or_else(|| Problem::not_found("booking"))?;
    let undone = if labels.is_empty() {
        undo(&mut tx, &row, Canceller::Staff, Cause { actor: "staff", reason }, now)
            .await
            .map_err(cancellation_problem)?
    } else {
        let lines = sql::seats(&mut tx, booking).await?;
        let seat_of = |label: &String| {
            let line = lines.iter().find(|line| line.label.eq_ignore_ascii_case(label.trim()));
            line.map(|line| line.seat_no.cast_unsigned())
                .ok_or_else(|| Problem::new(Code::UnknownSeat, format!("The booking has no seat {label} (any more).")))
        };
        let seats = labels.iter().map(seat_of).collect::<Result<Vec<_>, _>>()?;
        // Found by their labels, under the lock.
        undo_seats(&mut tx, &row, ReturnedSeats::unlabelled(&seats), Canceller::Staff, reason, now).await?
    };
    let back = match (undone.machine.state, undone.machine.money) {
        (BookingState::Cancelled, MoneyState::Refunding) => row.machine.total.minor,
        (BookingState::Confirmed, _) => row.machine.total.minor - undone.machine.total.minor,
        _ => 0,
    };
    tx.commit().await?;
    Ok(StaffCancellation { booking: undone.id, back: Money::new(back, undone.machine.total.currency) })
}

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
    seats: Option<ReturnedSeats<'_>>,
    reason: &str,
    now: Timestamp,
) -> ApiResult<CounterReturn> {
    let reason = reason_of(reason)?;
    let row = sql::lock(tx, booking).await?.ok_or_else(|| Problem::not_found("booking"))?;
    if row.machine.state != BookingState::Confirmed {
        return Err(Problem::new(Code::WrongState, "This booking is not sold, or not any more: nothing can go back."));
    }
    let means = refunds::paid_at_counter(tx, booking).await?;
    let number = refunds::next_number(tx, booking).await?;
    let undone = match seats {
        Some(seats) => undo_seats(tx, &row, seats, Canceller::Staff, reason, now).await?,
        None => {
            undo(tx, &row, Canceller::Staff, Cause::of("staff", reason), now).await.map_err(cancellation_problem)?
        }
    };
    let is_all = undone.machine.state == BookingState::Cancelled;
    let back = if is_all { row.machine.total.minor } else { row.machine.total.minor - undone.machine.total.minor };
    if means.is_some() {
        let number = if is_all { 0 } else { number };
        refunds::settle(tx, &undone, number, PAID_OUT, now).await.map_err(cancellation_problem)?;
    }
    Ok(CounterReturn { amount: Money::new(back, row.machine.total.currency), means })
}

/// Pays out the refunds of a counter booking that was undone elsewhere, for example because its show was called off. A
/// booking that its buyer cancelled needs a manager's approval (`is_approved`): the seller may have typed an address of
/// their own as the buyer's.
///
/// # Errors
/// 404 when there is no such booking, 409 when no payout is open, 422 without the approval.
pub async fn pay_out(
    tx: &mut PgConnection,
    booking: Uuid,
    is_approved: bool,
    now: Timestamp,
) -> ApiResult<CounterReturn> {
    let nothing = || Problem::new(Code::WrongState, "Nothing waits at the counter for this booking.");
    let row = sql::lock(tx, booking).await?.ok_or_else(|| Problem::not_found("booking"))?;
    let means = refunds::paid_at_counter(tx, booking).await?.ok_or_else(nothing)?;
    let open: Vec<_> =
        refunds::of_booking(tx, booking).await?.into_iter().filter(|refund| refund.settled_at.is_none()).collect();
    if open.is_empty() {
        return Err(nothing());
    }
    if !is_approved && was_cancelled_by_buyer(tx, booking).await? {
        let detail = "The buyer cancelled this booking: a manager authorises the pay-out with their PIN.";
        return Err(Problem::new(Code::PinWrong, detail));
    }
    let mut back = 0;
    for refund in &open {
        // The full refund is the machine's last step; a part adds an event, and so increments the version.
        let row = sql::lock(tx, row.id).await?.ok_or_else(|| Problem::not_found("booking"))?;
        refunds::settle(tx, &row, refund.number.cast_unsigned(), PAID_OUT, now).await.map_err(cancellation_problem)?;
        back += refund.amount_minor;
    }
    Ok(CounterReturn { amount: Money::new(back, row.machine.total.currency), means: Some(means) })
}

/// Returns `true` if the buyer cancelled this booking or a part of it.
pub(crate) async fn was_cancelled_by_buyer(tx: &mut PgConnection, booking: Uuid) -> sqlx::Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM booking_events
                              WHERE booking_id = $1 AND event LIKE '%cancelled\\_by\\_buyer')";
    sqlx::query_scalar(sql).bind(booking).fetch_one(tx).await
}

/// Returns the open payout of a booking at the counter; `None` where its money is at a gateway. A refund of single seats may
/// still wait when the rest was paid out.
pub(crate) fn open_payout(row: &BookingRow, refunds: &[refunds::RefundRow], means: Option<Means>) -> Option<Money> {
    means?;
    let open: i64 = refunds.iter().filter(|refund| refund.settled_at.is_none()).map(|refund| refund.amount_minor).sum();
    let is_owed =
        open > 0 && matches!(row.machine.money, MoneyState::Paid | MoneyState::Refunding | MoneyState::Refunded);
    is_owed.then(|| Money::new(open, row.machine.total.currency))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines() -> Vec<SeatRow> {
        let line = |seat_no| SeatRow { seat_no, label: format!("C{seat_no}"), category: "Gold".into(), price_minor: 1 };
        [4, 5, 6].map(line).to_vec()
    }

    #[test]
    fn only_seats_of_the_booking_are_returned_each_once() {
        let (gone, kept) = split_seats(lines(), ReturnedSeats::unlabelled(&[6, 4])).expect("two of three");
        assert_eq!(gone.iter().map(|line| line.seat_no).collect::<Vec<_>>(), [4, 6]);
        assert_eq!(kept.iter().map(|line| line.seat_no).collect::<Vec<_>>(), [5]);
        for (seats, code) in [
            (&[][..], Code::Malformed),
            (&[4, 4], Code::SeatTwice),
            (&[4, 7], Code::UnknownSeat),
            (&[u32::MAX], Code::UnknownSeat),
        ] {
            assert_eq!(
                split_seats(lines(), ReturnedSeats::unlabelled(seats)).expect_err("refused").code(),
                code,
                "{seats:?}"
            );
        }
    }

    #[test]
    fn seats_with_other_labels_than_the_caller_saw_are_not_returned() {
        let labelled = |labels: &[&str]| {
            let labels: Vec<String> = labels.iter().map(|label| (*label).to_owned()).collect();
            split_seats(lines(), ReturnedSeats { seats: &[6, 4], labels: Some(&labels) })
                .map_err(|problem| problem.code())
        };
        assert!(labelled(&["C6", "C4"]).is_ok());
        assert_eq!(labelled(&["C4", "C6"]).err(), Some(Code::WrongState));
        assert_eq!(labelled(&["C6"]).err(), Some(Code::Malformed));
    }
}
