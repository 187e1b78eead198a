//! Checkout: turns a live hold into a booking.

use std::sync::Arc;

use axum::http::StatusCode;
use domain::api::{BookingRequest, PlaceLine};
use domain::booking::{Booking, BookingState, MoneyState};
use domain::money::Money;
use domain::time::Timestamp;
use sqlx::PgConnection;
use uuid::Uuid;

use super::checks;
use crate::bookings::claims::on_map;
use crate::bookings::commits::{Checkout, Done, NewBooking, Work, retry_deadlocks};
use crate::bookings::moves::{self, Cause, MoveError, causes};
use crate::bookings::sql::{self, BookingRow, SeatRow};
use crate::bookings::views::view;
use crate::bookings::{late, places};
use crate::{SellingState, email_codes, holds};
use catalogue::Show;
use http::idempotency::{Answer, Intent};
use http::{ApiResult, Code, Problem};
use identity::{Visitor, accounts};
use platform::ids;
use seats::seat_locks::StoredHold;

/// A checkout request with its show, visitor and idempotency key.
#[derive(Clone, Copy)]
pub(crate) struct Order<'a> {
    pub(crate) show: &'a Arc<Show>,
    pub(crate) visitor: &'a Visitor,
    pub(crate) request: &'a BookingRequest,
    pub(crate) intent: &'a Intent,
}

/// Creates a booking of the caller's hold, or updates the one it has.
pub(crate) async fn create(state: &SellingState, order: Order<'_>) -> ApiResult<Answer> {
    let Order { show, visitor, request, intent } = order;
    let wanted = async {
        let row = build_row(state, order, None).await?;
        checks::check_owner(state, show, &row, visitor.account.is_none()).await?;
        Ok::<_, Problem>(row)
    };
    let wanted = match wanted.await {
        Ok(wanted) => wanted,
        // A refused request may have been granted before, to the same key.
        Err(refusal) => return replay_or_refuse(state, visitor, intent, refusal).await,
    };
    let new = NewBooking { row: wanted, if_late: request.if_late };
    let checkout = Checkout { show: Arc::clone(show), new, intent: intent.clone() };
    match state.commits.ask(state, Work::Create(Box::new(checkout))).await? {
        Done::Answered(answer) => Ok(answer),
        other => Err(Problem::internal(&format!("a checkout returned {other:?}"))),
    }
}

/// Returns true if the database is unavailable or overloaded: a lookup of an earlier answer would only wait again.
pub(super) const fn is_database_unavailable(code: Code) -> bool {
    matches!(code, Code::DatabaseUnavailable | Code::Overloaded)
}

/// Returns the earlier answer of this key, or else the refusal. The refusal is returned at once if the database is
/// unavailable.
///
/// Batches look up keys themselves, so that a successful request queries its key only once.
pub(crate) async fn replay_or_refuse(
    state: &SellingState,
    visitor: &Visitor,
    intent: &Intent,
    refusal: Problem,
) -> ApiResult<Answer> {
    if is_database_unavailable(refusal.code()) {
        return Err(refusal);
    }
    let answer = intent.replay(&state.pg, state.clock.now()).await?.ok_or(refusal)?;
    // Not with a copy of the cookie of a guest who has signed in since.
    accounts::refuse_handed_over(state, visitor).await?;
    Ok(answer)
}

/// Builds the booking for the caller's hold, from the lock store or from `known`, the hold as this replica granted it.
pub(super) async fn build_row(
    state: &SellingState,
    Order { show, visitor, request, .. }: Order<'_>,
    known: Option<StoredHold>,
) -> ApiResult<BookingRow> {
    let buyer = accounts::check_person("buyer", &request.buyer)?;
    let holder = request
        .holder
        .as_ref()
        .map_or_else(|| Ok(buyer.clone()), |friend| accounts::check_person("ticket holder", friend))?;
    catalogue::sales_open(show, state.clock.now())?;
    let owner = visitor.owner.as_str();
    let held = match known {
        Some(held) => Some(held),
        None => state.commits.hold_of(state, show, owner).await?,
    };
    let held = match held.filter(|held| held.hold == request.hold) {
        Some(held) => Some(held),
        // The hold may have been kept after a declined card. Boxed: that is rare.
        None => Box::pin(on_map::renew_kept_hold(state, show, request.hold, owner)).await?,
    };
    let held = held.ok_or_else(|| {
        Problem::new(Code::HoldExpired, "Your seats are free for everyone again. You can try to get them back.")
    })?;
    // Last: a buyer should not look for a code when the seats are gone.
    email_codes::check(state, show, visitor, &buyer.1).await?;
    new_booking_row(show, owner, &held, (buyer, holder), state.clock.now())
}

/// Commits a checkout that a batch cannot plan: with places or a choice for late money, or of a hold that has a booking.
pub(crate) async fn create_alone(state: &SellingState, checkout: &Checkout) -> ApiResult<Answer> {
    let Checkout { show, new, intent } = checkout;
    let now = state.clock.now();
    let mut tx = state.pg.begin().await?;
    if let Some(answer) = intent.begin(&mut tx, now).await? {
        return Ok(answer);
    }
    let row = insert_or_revise(&mut tx, show, new.row.clone(), now).await?;
    late::store_late_preference(&mut tx, &row, new.if_late).await?;
    let booking = view::of_row(&mut tx, show, &row).await?;
    let answer = Answer::json(StatusCode::CREATED, &booking)?;
    intent.commit(tx, answer, now).await
}

/// Builds the booking of a hold, in state CREATED, at current prices.
pub(crate) fn new_booking_row(
    show: &Show,
    owner: &str,
    held: &StoredHold,
    (buyer, holder): ((String, String), (String, String)),
    now: Timestamp,
) -> ApiResult<BookingRow> {
    let total = held
        .selection
        .seats
        .iter()
        .try_fold(Money::new(0, show.currency), |sum, seat| sum.checked_add(show.price_of(*seat)));
    let total = total.and_then(|seats| holds::total_with_places(show, seats, &held.selection.places));
    let total = total.ok_or_else(|| Problem::internal(&format!("prices of show {} do not add up", show.id)))?;
    Ok(BookingRow {
        id: ids::booking_id(now),
        reference: ids::booking_reference(ids::random_bits()),
        show_id: show.id,
        owner: owner.to_owned(),
        hold_id: held.hold,
        fence: held.fence,
        version: 1,
        machine: Booking { state: BookingState::Created, money: MoneyState::None, total, expires_at: held.expires_at },
        buyer,
        holder,
        seats: held.selection.seats.clone(),
        places: held.selection.places.clone(),
    })
}

pub(crate) fn seat_rows(show: &Show, row: &BookingRow) -> Vec<SeatRow> {
    row.seats
        .iter()
        .map(|seat| {
            let line = show.line(*seat);
            SeatRow {
                seat_no: seat.cast_signed(),
                label: line.label,
                category: line.category,
                price_minor: line.price.minor,
            }
        })
        .collect()
}

pub(crate) fn place_lines(show: &Show, row: &BookingRow) -> Vec<PlaceLine> {
    row.places.iter().filter_map(|places| show.place_line(*places)).collect()
}

/// Maximum draws of a reference that is taken; the chance is one in 850 thousand million per draw.
pub(crate) const MAX_REFERENCE_DRAWS: u32 = 3;

/// Inserts or revises the booking of a hold: one booking per hold, also when two tabs check out concurrently.
pub(super) async fn insert_or_revise(
    tx: &mut PgConnection,
    show: &Show,
    mut wanted: BookingRow,
    now: Timestamp,
) -> ApiResult<BookingRow> {
    for _ in 0..MAX_REFERENCE_DRAWS {
        if let Some(earlier) = sql::lock_of_hold(tx, wanted.hold_id).await? {
            return revise(tx, show, &earlier, wanted, now).await;
        }
        if sql::insert(tx, &wanted, sql::Channel::Online, now).await? {
            return begin(tx, show, wanted, now).await;
        }
        // Another tab was faster, and its booking is found in the next loop; or the reference is taken.
        wanted.reference = ids::booking_reference(ids::random_bits());
    }
    Err(Problem::internal(&"no free booking reference in three draws"))
}

async fn begin(tx: &mut PgConnection, show: &Show, row: BookingRow, now: Timestamp) -> ApiResult<BookingRow> {
    put_lines(tx, show, &row).await?;
    moves::begin(tx, &row, causes::CHECKED_OUT, now).await.map_err(move_problem)
}

/// Replaces all lines of a booking, seats and places, so that its total is the sum of exactly these
/// lines.
async fn put_lines(tx: &mut PgConnection, show: &Show, row: &BookingRow) -> sqlx::Result<()> {
    sql::put_seats(tx, row.id, &seat_rows(show, row)).await?;
    places::replace_places(tx, row.id, &place_lines(show, row)).await
}

/// Updates the booking of a buyer who changed seats or names and checks out again.
async fn revise(
    tx: &mut PgConnection,
    show: &Show,
    earlier: &BookingRow,
    wanted: BookingRow,
    now: Timestamp,
) -> ApiResult<BookingRow> {
    match earlier.machine.state {
        BookingState::SeatsLocked => {}
        BookingState::Cancelled | BookingState::Expired => {
            return Err(move_problem(MoveError::Refused(domain::booking::StepError::Gone)));
        }
        // Paid for, or about to be: the agreed terms do not change.
        _ => return Ok(earlier.clone()),
    }
    // Never sooner: the hold may have been extended since this checkout read its expiry.
    let expires_at = wanted.machine.expires_at.max(earlier.machine.expires_at);
    let machine = Booking { total: wanted.machine.total, expires_at, ..earlier.machine };
    let revised = BookingRow {
        version: earlier.version + 1,
        machine,
        buyer: wanted.buyer,
        holder: wanted.holder,
        seats: wanted.seats,
        places: wanted.places,
        ..earlier.clone()
    };
    let cause = Cause::of("buyer", "Checked out again with other seats or names.");
    moves::write(tx, earlier, &revised, "revised", cause, now).await.map_err(move_problem)?;
    put_lines(tx, show, &revised).await?;
    Ok(revised)
}

/// Maps a failed move to a problem for the buyer.
pub(crate) fn move_problem(error: MoveError) -> Problem {
    use domain::booking::StepError;
    match error {
        MoveError::Database(cause) => cause.into(),
        MoveError::LostRace => {
            Problem::new(Code::WrongState, "The booking moved at the same moment. Please look again.")
        }
        MoveError::Refused(StepError::Gone) => {
            Problem::new(Code::HoldExpired, "This booking is over. Anything that was charged for it is being refunded.")
        }
        MoveError::Refused(StepError::TooLate) => Problem::new(Code::HoldExpired, "The time for this booking is over."),
        MoveError::Refused(StepError::AlreadyDone | StepError::WrongState | StepError::NotDue) => {
            Problem::new(Code::WrongState, "The booking has moved on. Please look at its page.")
        }
    }
}

/// Extends the booking of a hold, if it has one, to the hold's new expiry; never shortens it.
///
/// The lock store is updated first, and the hold's extension is confirmed only after this call as well: a
/// failed request is repeated with its key, and calls this again.
///
/// # Errors
/// `hold_expired` when the booking has ended meanwhile; 503 when the database is unavailable.
pub async fn extend_booking(state: &SellingState, hold: Uuid, owner: &str, until: Timestamp) -> ApiResult<()> {
    // Boxed, as in `checks`.
    Box::pin(retry_deadlocks(|| async {
        let mut tx = state.pg.begin().await?;
        if let Some(row) = sql::lock_of_hold(&mut tx, hold).await?.filter(|row| row.owner == owner) {
            extend_expiry(&mut tx, &row, until, state.clock.now()).await.map_err(move_problem)?;
        }
        tx.commit().await?;
        Ok(())
    }))
    .await
}

/// Extends the expiry of a booking that is not paid for; never shortens it.
async fn extend_expiry(
    tx: &mut PgConnection,
    row: &BookingRow,
    until: Timestamp,
    now: Timestamp,
) -> Result<(), MoveError> {
    // Extended already. A repeated request that was granted succeeds, whatever happened to the booking since.
    if until <= row.machine.expires_at {
        return Ok(());
    }
    match row.machine.state {
        BookingState::SeatsLocked => {}
        // It ended before this call: its seats are, or were, released with it.
        BookingState::Cancelled | BookingState::Expired => {
            return Err(MoveError::Refused(domain::booking::StepError::Gone));
        }
        // The terms of a submitted payment do not change.
        _ => return Ok(()),
    }
    let machine = Booking { expires_at: until, ..row.machine };
    let longer = BookingRow { version: row.version + 1, machine, ..row.clone() };
    moves::write(tx, row, &longer, "kept_longer", Cause::of("buyer", "The hold was kept longer."), now).await
}
