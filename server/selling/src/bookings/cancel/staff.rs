//! Cancellation by staff, of a booking or of some seats, in full: a defective seat, a mistake at the box office.

use domain::booking::{BookingState, MoneyState};
use domain::money::Money;
use domain::time::Timestamp;
use sqlx::PgPool;
use uuid::Uuid;

use super::{Canceller, undo, undo_seats, unmoved};
use crate::bookings::moves::Cause;
use crate::bookings::sql;
use http::{Code, Problem};

/// Longest reason, characters: it goes into a mail.
const MAX_REASON_CHARS: usize = 300;

/// The result of a cancellation by staff.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaffCancellation {
    /// The booking.
    pub booking: Uuid,
    /// The refund to the buyer; zero when nothing was paid.
    pub back: Money,
}

/// Validates a reason for histories and mails.
///
/// # Errors
/// 400 when it is empty, too long, or has control characters.
pub(crate) fn reason_of(text: &str) -> Result<&str, Problem> {
    let reason = text.trim();
    if reason.is_empty() || reason.chars().count() > MAX_REASON_CHARS || reason.chars().any(char::is_control) {
        let detail = format!("Say why, in one line of up to {MAX_REASON_CHARS} characters.");
        return Err(Problem::new(Code::Malformed, detail));
    }
    Ok(reason)
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
) -> Result<StaffCancellation, Problem> {
    let reason = reason_of(reason)?;
    let mut tx = pg.begin().await?;
    let booking: Option<Uuid> = sqlx::query_scalar("SELECT id FROM bookings WHERE reference = $1")
        .bind(reference.trim().to_uppercase())
        .fetch_optional(&mut *tx)
        .await?;
    let booking = booking.ok_or_else(|| Problem::not_found("booking"))?;
    let row = sql::lock(&mut tx, booking).await?.ok_or_else(|| Problem::not_found("booking"))?;
    let undone = if labels.is_empty() {
        undo(&mut tx, &row, Canceller::Staff, Cause { actor: "staff", reason }, now).await.map_err(unmoved)?
    } else {
        let lines = sql::seats(&mut tx, booking).await?;
        let seat_of = |label: &String| {
            let line = lines.iter().find(|line| line.label.eq_ignore_ascii_case(label.trim()));
            line.map(|line| line.seat_no.cast_unsigned())
                .ok_or_else(|| Problem::new(Code::UnknownSeat, format!("The booking has no seat {label} (any more).")))
        };
        let seats = labels.iter().map(seat_of).collect::<Result<Vec<_>, _>>()?;
        undo_seats(&mut tx, &row, &seats, Canceller::Staff, reason, now).await?
    };
    let back = match (undone.machine.state, undone.machine.money) {
        (BookingState::Cancelled, MoneyState::Refunding) => row.machine.total.minor,
        (BookingState::Confirmed, _) => row.machine.total.minor - undone.machine.total.minor,
        _ => 0,
    };
    tx.commit().await?;
    Ok(StaffCancellation { booking: undone.id, back: Money::new(back, undone.machine.total.currency) })
}
