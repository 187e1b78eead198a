//! A sale at the counter. The money is already paid, so the booking makes all its moves in one transaction, the
//! caller's, who also writes the till in it. The steps are those of any sale: the hold is closed to changes, seats are
//! claimed in Postgres, claims become a sale, tickets are written; the outbox updates the map.
//!
//! Such a booking belongs to no visitor: it has its own owner, so that no limit of seats applies to the seller.

use domain::api::box_office::CounterBooking;
use domain::booking::{BookingEvent, BookingState, MoneyState, PAYMENT_EXTENSION_MS};
use domain::money::Money;
use domain::person::personal_name;
use domain::till::Means;
use domain::time::Timestamp;
use sqlx::PgConnection;
use uuid::Uuid;

use super::checkout::create::{self, MAX_REFERENCE_DRAWS, move_problem};
use super::claims::{self, LostClaims};
use super::money::{payment_rows, refunds};
use super::moves::{self, Cause, MoveError};
use super::sql::{self, BookingRow, Channel};
use super::views::steps;
use super::{cancel, places};
use crate::SellingState;
use catalogue::Show;
use http::{ApiResult, Code, Problem};
use identity::accounts;
use platform::ids;
use seats::seat_locks::{FencedSelection, Refusal, StoredHold, with_map};

/// A sale at the counter.
#[derive(Clone, Copy, Debug)]
pub struct CounterSale<'a> {
    /// The show.
    pub show: &'a Show,
    /// The hold, closed by [`close_hold`].
    pub held: &'a StoredHold,
    /// Name and address for the tickets, as typed; each may be empty.
    pub buyer: (&'a str, &'a str),
    /// The means of payment.
    pub means: Means,
    /// The total that the customer was asked for, minor units.
    pub quoted_minor: i64,
    /// The reason in the booking's history.
    pub reason: &'a str,
}

/// A completed sale.
#[derive(Clone, Debug)]
pub struct CounterSaleResult {
    /// The booking.
    pub booking: Uuid,
    /// Its reference.
    pub reference: String,
    /// Its price.
    pub total: Money,
}

/// Reasons why nothing was sold. The caller rolls back in either case.
#[derive(Debug)]
pub enum CounterSaleError {
    /// Seats that were granted twice.
    Lost(LostClaims),
    /// Any other refusal.
    Refused(Problem),
}

impl From<Problem> for CounterSaleError {
    fn from(problem: Problem) -> Self {
        Self::Refused(problem)
    }
}

impl From<sqlx::Error> for CounterSaleError {
    fn from(cause: sqlx::Error) -> Self {
        Self::Refused(cause.into())
    }
}

impl From<MoveError> for CounterSaleError {
    fn from(error: MoveError) -> Self {
        Self::Refused(move_problem(error))
    }
}

/// Closes a hold to changes and extends it until the sale is committed.
///
/// # Errors
/// 410 when the owner has no such hold (any more).
pub async fn close_hold(state: &SellingState, show: &Show, owner: &str, hold: Uuid) -> ApiResult<StoredHold> {
    let gone = || Problem::new(Code::HoldExpired, "The seats are free for everyone again. Choose them once more.");
    let held = with_map(state, show, || state.locks.hold_of(show.id, owner)).await?;
    let held = held.filter(|held| held.hold == hold).ok_or_else(gone)?;
    let sale = sale_of(owner, &held);
    let until = with_map(state, show, || state.locks.begin_payment(show.id, &sale, PAYMENT_EXTENSION_MS)).await?;
    let until = until.map_err(|refusal| match refusal {
        Refusal::Changed => Problem::new(Code::WrongState, "The seats have changed. Look at the total again."),
        _ => gone(),
    })?;
    Ok(StoredHold { expires_at: until, paying: true, ..held })
}

/// Reopens a hold after a failed sale, unless a booking was made of it meanwhile.
pub async fn reopen_hold(state: &SellingState, show: &Show, owner: &str, held: &StoredHold) {
    let opened = async {
        let mut tx = state.pg.begin().await?;
        if sql::lock_of_hold(&mut tx, held.hold).await?.is_none() {
            state.locks.end_payment(show.id, &sale_of(owner, held), PAYMENT_EXTENSION_MS).await?;
        }
        tx.commit().await?;
        Ok::<(), Problem>(())
    };
    if let Err(problem) = opened.await {
        tracing::warn!(?problem, hold = %held.hold, "reopen the hold {} failed; it stays closed until it ends", held.hold);
    }
}

/// Marks a sale as booked on the map at once, so that it does not count against the seller's next hold. The outbox
/// has the update too: a failure here only delays it.
pub async fn show_as_sold(state: &SellingState, show: &Show, booking: Uuid) {
    let marked = async {
        let row = sql::find(&mut *state.pg.acquire().await?, booking).await?;
        let row = row.filter(|row| row.machine.state == BookingState::Confirmed);
        let Some(sale) = row.map(|row| row.sale()) else { return Ok(()) };
        with_map(state, show, || state.locks.book(show.id, &sale)).await
    };
    if let Err(problem) = marked.await {
        tracing::debug!(?problem, %booking, "update the map for {booking} failed; the relay retries it");
    }
}

fn sale_of(owner: &str, held: &StoredHold) -> FencedSelection {
    FencedSelection { hold: held.hold, owner: owner.to_owned(), fence: held.fence, selection: held.selection.clone() }
}

/// Sells the seats and places of a closed hold: booking, claims, payment, tickets, in the caller's transaction.
///
/// # Errors
/// [`CounterSaleError`].
pub async fn sell(
    tx: &mut PgConnection,
    sale: &CounterSale<'_>,
    now: Timestamp,
) -> Result<CounterSaleResult, CounterSaleError> {
    let CounterSale { show, held, means, reason, .. } = sale;
    let wanted = new_counter_row(sale, now)?;
    if wanted.machine.total.minor != sale.quoted_minor {
        let words = format!("It costs {} now. Tell the customer, then sell it once more.", wanted.machine.total);
        return Err(Problem::new(Code::WrongState, words).into());
    }
    let row = insert(tx, wanted, now).await?;
    put_lines(tx, show, &row, *means).await?;
    let by_staff = Cause::of("staff", reason);
    let locked = moves::begin(tx, &row, by_staff, now).await?;
    let taken = BookingEvent::TakenAtCounter { until: held.expires_at };
    let pending = moves::apply(tx, &locked, taken, by_staff, now).await?;
    if let Some(lost) = claims::claim_all(tx, show, &pending, now).await? {
        return Err(CounterSaleError::Lost(lost));
    }
    sql::insert_payment(tx, &pending, means.gateway_name(), None, now).await?;
    sql::note_payment(tx, pending.id, "succeeded", None, None, now).await?;
    let paid = BookingEvent::PaymentSucceeded { amount: pending.machine.total };
    let paid = moves::apply(tx, &pending, paid, Cause::of("staff", "The money is at the counter."), now).await?;
    let sold = moves::settle(tx, &paid, show.starts_at <= now, now).await?;
    if sold.machine.state != BookingState::Confirmed {
        return Err(Problem::new(Code::SalesClosed, "The show has begun, or a seat was lost: nothing was sold.").into());
    }
    Ok(CounterSaleResult { booking: sold.id, reference: sold.reference, total: sold.machine.total })
}

/// Builds the booking of a hold at the counter.
pub(super) fn new_counter_row(sale: &CounterSale<'_>, now: Timestamp) -> ApiResult<BookingRow> {
    let buyer = buyer(sale.buyer)?;
    let row = create::new_booking_row(sale.show, "", sale.held, (buyer.clone(), buyer), now)?;
    let total = if sale.means == Means::Free { Money::new(0, row.machine.total.currency) } else { row.machine.total };
    Ok(BookingRow {
        owner: format!("counter-{}", row.id.simple()),
        machine: domain::booking::Booking { total, ..row.machine },
        ..row
    })
}

/// Validates a name and an address, each optional.
fn buyer((name, email): (&str, &str)) -> ApiResult<(String, String)> {
    let is_left_out = |text: &str| text.trim().is_empty();
    let unusable = || Problem::new(Code::PersonInvalid, "The name cannot be used.");
    let name = if is_left_out(name) { "" } else { personal_name(name).ok_or_else(unusable)? };
    let email = if is_left_out(email) { "" } else { accounts::email_of(email)? };
    Ok((name.to_owned(), email.to_owned()))
}

/// Inserts the booking, in state CREATED, under an unused reference.
pub(super) async fn insert(
    tx: &mut PgConnection,
    mut row: BookingRow,
    now: Timestamp,
) -> Result<BookingRow, CounterSaleError> {
    for _ in 0..MAX_REFERENCE_DRAWS {
        if sql::insert(tx, &row, Channel::BoxOffice, now).await? {
            return Ok(row);
        }
        if sql::lock_of_hold(tx, row.hold_id).await?.is_some() {
            return Err(Problem::new(Code::WrongState, "A booking was made of these seats already.").into());
        }
        row.reference = ids::booking_reference(ids::random_bits());
    }
    Err(Problem::internal(&"no free booking reference in three draws").into())
}

/// Writes its seats and places, at price zero where it is free.
pub(super) async fn put_lines(tx: &mut PgConnection, show: &Show, row: &BookingRow, means: Means) -> sqlx::Result<()> {
    let (mut seats, mut lines) = (create::seat_rows(show, row), create::place_lines(show, row));
    if means == Means::Free {
        seats.iter_mut().for_each(|seat| seat.price_minor = 0);
        lines.iter_mut().for_each(|line| line.price.minor = 0);
    }
    sql::put_seats(tx, row.id, &seats).await?;
    places::replace_places(tx, row.id, &lines).await
}

/// A booking and its show. The caller must check that the staff member works at its theatre before showing it.
#[derive(Clone, Debug)]
pub struct CounterLookup {
    /// Its show.
    pub show: Uuid,
    row: BookingRow,
    channel: String,
}

/// Returns the booking of that id.
///
/// # Errors
/// When the database fails.
pub async fn find_by_id(tx: &mut PgConnection, id: Uuid) -> sqlx::Result<Option<CounterLookup>> {
    let Some(row) = sql::find(tx, id).await? else { return Ok(None) };
    let channel = sqlx::query_scalar("SELECT channel FROM bookings WHERE id = $1").bind(id).fetch_one(tx).await?;
    Ok(Some(CounterLookup { show: row.show_id, row, channel }))
}

/// Returns the booking of that reference, as people type it.
///
/// # Errors
/// When the database fails.
pub async fn find_by_reference(tx: &mut PgConnection, reference: &str) -> sqlx::Result<Option<CounterLookup>> {
    match id_of_reference(tx, reference).await? {
        Some(id) => find_by_id(tx, id).await,
        None => Ok(None),
    }
}

pub(super) async fn row_of_reference(tx: &mut PgConnection, reference: &str) -> sqlx::Result<Option<BookingRow>> {
    match id_of_reference(tx, reference).await? {
        Some(id) => sql::find(tx, id).await,
        None => Ok(None),
    }
}

async fn id_of_reference(tx: &mut PgConnection, reference: &str) -> sqlx::Result<Option<Uuid>> {
    let id = sqlx::query_scalar("SELECT id FROM bookings WHERE reference = $1").bind(as_written(reference));
    id.fetch_optional(tx).await
}

/// Normalizes `k7qm 2xpa` to `K7QM-2XPA`.
fn as_written(reference: &str) -> String {
    let mut letters: String = reference
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|letter| letter.to_ascii_uppercase())
        .take(9)
        .collect();
    if letters.len() == 8 {
        letters.insert(4, '-');
    }
    letters
}

impl CounterLookup {
    /// Returns the counter's view of the booking.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn view(&self, tx: &mut PgConnection, show: &Show) -> ApiResult<CounterBooking> {
        let row = &self.row;
        let view = super::views::view::of_row(tx, show, row).await?;
        let refunds = refunds::of_booking(tx, row.id).await?;
        let means = refunds::paid_at_counter(tx, row.id).await?;
        let moved_to = match row.machine.money {
            MoneyState::Moved => payment_rows::moved_to(tx, row.id).await?,
            _ => None,
        };
        let to_pay_out = cancel::open_payout(row, &refunds, means);
        let pay_out_needs_pin = to_pay_out.is_some() && cancel::was_cancelled_by_buyer(tx, row.id).await?;
        Ok(CounterBooking {
            id: row.id,
            reference: row.reference.clone(),
            show: show.id,
            film: show.film.clone(),
            starts: show.starts_local.clone(),
            screen: show.screen.clone(),
            state: row.machine.state,
            money: row.machine.money,
            seats: view.seats,
            places: view.places,
            total: row.machine.total,
            breakdown: Some(view.breakdown),
            name: row.buyer.0.clone(),
            channel: self.channel.clone(),
            means,
            to_pay_out,
            pay_out_needs_pin,
            refunds: steps::refunds_view(&refunds, row.machine.total.currency),
            moved_to,
            difference: None,
            undo_until_ms: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_normalized() {
        for typed in ["K7QM-2XPA", "k7qm2xpa", " k7qm 2xpa ", "K7QM–2XPA"] {
            assert_eq!(as_written(typed), "K7QM-2XPA", "{typed}");
        }
        assert_eq!(as_written("K7QM"), "K7QM");
        assert_eq!(as_written("'; DROP TABLE bookings"), "DROPTABLE");
    }

    #[test]
    fn counter_buyers_may_be_empty_but_not_invalid() {
        assert_eq!(buyer(("", " ")).expect("an empty buyer"), (String::new(), String::new()));
        assert_eq!(buyer((" Ann ", "a@example.org")).expect("Ann").0, "Ann");
        for bad in [("a\nb", ""), ("", "nobody"), ("", "a@example.org\r\nBcc: b@example.org")] {
            assert_eq!(buyer(bad).expect_err("refused").code(), Code::PersonInvalid, "{bad:?}");
        }
    }
}
