//! Late money: payments that arrive after their booking has ended.
//!
//! The booking does not change: EXPIRED and CANCELLED are final, and no payment revives it. Its money pays for a
//! new booking of the same buyer, if the same seats are still free, or others that are no worse where the buyer
//! chose that; else it is refunded at once. Reasons, and the balance of the books: docs/decisions/0009.

use domain::VariantName;
use domain::api::cancelling::LatePaymentHandling;
use domain::booking::{Booking, BookingEvent, BookingState, MoneyState};
use domain::reseat::{self, PricedSeat};
use domain::seats::{MAX_SEATS_PER_HOLD, SeatIndex, SeatState};
use domain::time::{SECOND_MS, Timestamp};
use sqlx::PgConnection;

use super::checkout::checks;
use super::checkout::create::MAX_REFERENCE_DRAWS;
use super::checkout::instruments::{self, InstrumentDigest};
use super::claims::seat_claims;
use super::effects::EffectError;
use super::money::{declines, payment_rows};
use super::moves::{self, Cause, MoveError};
use super::sql::{self, BookingRow, SeatRow};
use crate::{SellingState, outbox};
use catalogue::Show;
use platform::clock::from_utc;
use platform::database::{BindAll, begin_with_lock_timeout};
use platform::ids;
use seats::seat_locks::{
    FencedSelection, HoldLimits, LockAttempt, Refusal, Renewal, RequestIdentity, Selection, StoredHold, with_map,
};

/// Length of a hold for late money, milliseconds: the sale follows at once.
const HOLD_MS: i64 = 30 * SECOND_MS;
/// Maximum outage of the lock store, milliseconds; after it the money is refunded.
const MAX_OUTAGE_MS: i64 = 60 * SECOND_MS;
/// Attempts to hold other seats before the refund: another buyer may be faster each time.
const MAX_HOLD_ATTEMPTS: usize = 4;
/// The reason of a refund where late money found no seats.
const SOLD_TO_OTHERS: &str = "The seats were sold to others meanwhile.";
/// The reason of a refund where the buyer bought other seats meanwhile.
const ABOVE_PERSON_LIMIT: &str = "With these seats the buyer would have more than one person may have.";

/// Stores the buyer's preference for late money; the default needs no row.
pub(super) async fn store_late_preference(
    tx: &mut PgConnection,
    row: &BookingRow,
    if_late: LatePaymentHandling,
) -> sqlx::Result<()> {
    // The first two versions are the booking's creation: there is no earlier preference to overwrite.
    if if_late.is_default() && row.version <= 2 {
        return Ok(());
    }
    let sql = "INSERT INTO late_wishes (booking_id, if_late) VALUES ($1, $2)
               ON CONFLICT (booking_id) DO UPDATE SET if_late = EXCLUDED.if_late";
    sqlx::query(sql).bind_all((row.id, if_late.as_str())).execute(tx).await.map(drop)
}

/// Finds seats for late money, or refunds it. An effect, performed at least once.
pub(super) async fn find_seats_or_refund(
    state: &SellingState,
    show: &Show,
    row: &BookingRow,
) -> Result<(), EffectError> {
    if !has_late_money(row) {
        return Ok(());
    }
    let mut connection = state.pg.acquire().await?;
    let facts = load_facts(&mut connection, row).await?;
    drop(connection);
    let now = state.clock.now();
    if let Some(why) = facts.refund_reason(show, now) {
        return refund_late_money(state, row, why).await;
    }
    let instrument = InstrumentDigest::of_payment(state, show, row.id).await?;
    match hold_seats(state, show, row, facts.if_late).await {
        Ok(Some(held)) => match move_to_new_booking(state, show, row, &held, instrument.as_ref()).await {
            Ok(None) => Ok(()),
            Ok(Some(why)) => {
                release_late_hold(state, show, row, &held).await;
                refund_late_money(state, row, why).await
            }
            Err(error) => Err(error),
        },
        Ok(None) => refund_late_money(state, row, "The seats were no longer free when the payment came.").await,
        Err(EffectError::Store(problem)) if now.since(facts.since) > MAX_OUTAGE_MS => {
            tracing::warn!(booking = %row.id, ?problem, "hold seats for late money of {} failed; it is refunded", row.id);
            refund_late_money(state, row, "Seats could not be held when the payment came.").await
        }
        Err(error) => Err(error),
    }
}

/// Returns true if the booking has ended and its money is neither moved nor refunded.
const fn has_late_money(row: &BookingRow) -> bool {
    row.machine.state.is_final() && matches!(row.machine.money, MoneyState::Paid)
}

/// The facts that decide about late money, besides the seats.
struct LateMoneyFacts {
    if_late: LatePaymentHandling,
    /// The event that ended the booking.
    ended_by: String,
    /// The buyer has begun another booking of this show since.
    has_another: bool,
    /// The show was moved to another screen since: its seats differ.
    has_moved: bool,
    /// The time when the money arrived.
    since: Timestamp,
}

impl LateMoneyFacts {
    /// Returns the reason to refund the money regardless of free seats.
    fn refund_reason(&self, show: &Show, now: Timestamp) -> Option<&'static str> {
        if self.if_late == LatePaymentHandling::Refund {
            return Some("The payment came late, and the buyer wanted the money back in that case.");
        }
        // A booking that was cancelled: its buyer does not want seats, or must not have them.
        if !matches!(self.ended_by.as_str(), "timed_out" | "payment_failed" | "payment_voided") {
            return Some("The booking had been cancelled when the payment came.");
        }
        if self.has_moved {
            return Some("The show had moved to another screen when the payment came.");
        }
        if self.has_another {
            return Some("The buyer had chosen again when the payment came.");
        }
        catalogue::sales_open(show, now).is_err().then_some("The show could no longer be booked when the payment came.")
    }
}

async fn load_facts(tx: &mut PgConnection, row: &BookingRow) -> sqlx::Result<LateMoneyFacts> {
    type FactsRow = (Option<String>, Option<String>, bool, bool, chrono::DateTime<chrono::Utc>);
    let sql = "SELECT (SELECT if_late FROM late_wishes WHERE booking_id = booking.id),
                          (SELECT event FROM booking_events
                           WHERE booking_id = booking.id AND to_state = booking.state AND from_state <> booking.state
                           ORDER BY number DESC LIMIT 1),
                          EXISTS (SELECT 1 FROM bookings other
                                  WHERE other.owner = booking.owner AND other.show_id = booking.show_id
                                    AND other.created_at > booking.created_at
                                    AND other.state NOT IN ('CANCELLED', 'EXPIRED')),
                          EXISTS (SELECT 1 FROM show_moves move
                                  WHERE move.show_id = booking.show_id AND move.state <> 'dropped'
                                    AND coalesce(move.finished_at, 'infinity') >= booking.created_at),
                          booking.updated_at
                   FROM bookings booking WHERE booking.id = $1";
    let (if_late, ended_by, has_another, has_moved, since): FactsRow =
        sqlx::query_as(sql).bind(row.id).fetch_one(tx).await?;
    let if_late = if_late.unwrap_or_else(|| LatePaymentHandling::default().as_str().to_owned());
    Ok(LateMoneyFacts {
        if_late: if_late
            .parse()
            .map_err(|_| sqlx::Error::Decode(format!("late_wishes.if_late is {if_late:?}").into()))?,
        ended_by: ended_by.unwrap_or_default(),
        has_another,
        has_moved,
        since: from_utc(since),
    })
}

/// Holds the same seats, or others that are no worse where the buyer chose that. The lock store decides which seats are
/// free: late money never takes a seat from a live hold.
async fn hold_seats(
    state: &SellingState,
    show: &Show,
    row: &BookingRow,
    if_late: LatePaymentHandling,
) -> Result<Option<StoredHold>, EffectError> {
    // Places in areas are not kept for late money: it is refunded.
    if !row.places.is_empty() {
        return Ok(None);
    }
    if let Some(held) = renew_kept_hold(state, show, row).await? {
        return Ok(Some(held));
    }
    if let Some(held) = hold(state, show, row, &row.seats).await? {
        return Ok(Some(held));
    }
    if if_late != LatePaymentHandling::SameOrBetter {
        return Ok(None);
    }
    let rows: Vec<Vec<PricedSeat>> =
        show.layout.rows().map(|seats| seats.filter_map(|seat| priced_seat(show, seat)).collect()).collect();
    let lost: Vec<PricedSeat> = row.seats.iter().filter_map(|seat| priced_seat(show, *seat)).collect();
    for _ in 0..MAX_HOLD_ATTEMPTS {
        let map = with_map(state, show, || state.locks.snapshot(show.id)).await?.map;
        let is_free = |seat: SeatIndex| map.get(seat as usize) == Some(&(SeatState::Available as u8));
        let Some(mut seats) = reseat::find_replacement(&rows, &lost, is_free) else { return Ok(None) };
        seats.sort_unstable();
        if let Some(held) = hold(state, show, row, &seats).await? {
            return Ok(Some(held));
        }
    }
    Ok(None)
}

fn priced_seat(show: &Show, seat: SeatIndex) -> Option<PricedSeat> {
    let ((x, y), _) = show.layout.place(seat)?;
    let category = show.category(seat);
    Some(PricedSeat { seat, x, y, kind: category.kind, price: category.price.minor })
}

/// Renews the hold that the buyer keeps for another card: the money of the first card has arrived.
async fn renew_kept_hold(
    state: &SellingState,
    show: &Show,
    row: &BookingRow,
) -> Result<Option<StoredHold>, EffectError> {
    let kept = declines::kept_hold(&mut *state.pg.acquire().await?, row.id).await?;
    let Some(kept) = kept else { return Ok(None) };
    let mine = with_map(state, show, || state.locks.hold_of(show.id, &row.owner)).await?;
    let Some(mine) = mine.filter(|held| held.hold == kept.hold && held.selection.seats == row.seats) else {
        return Ok(None);
    };
    let party =
        FencedSelection { hold: mine.hold, owner: row.owner.clone(), fence: mine.fence, selection: mine.selection };
    let renewal = Renewal {
        hold: ids::derived_id(&["late", &row.id.to_string(), "kept"]),
        owner: late_owner(row),
        until: state.clock.now().plus_ms(HOLD_MS),
        ends_payment: false,
        per_person: None,
    };
    let held = with_map(state, show, || state.locks.renew(show.id, &party, &renewal)).await?.ok();
    // The buyer chose other seats at the same moment.
    if let Some(held) = held.as_ref().filter(|held| held.selection.seats != row.seats) {
        release_late_hold(state, show, row, held).await;
        return Ok(None);
    }
    Ok(held)
}

/// Holds seats under a separate owner: the buyer may hold other seats. A repeat finds its own hold.
async fn hold(
    state: &SellingState,
    show: &Show,
    row: &BookingRow,
    seats: &[SeatIndex],
) -> Result<Option<StoredHold>, EffectError> {
    let names: Vec<String> = seats.iter().map(ToString::to_string).collect();
    let id = ids::derived_id(&["late", &row.id.to_string(), &names.join(",")]);
    let attempt = LockAttempt {
        asked: RequestIdentity { id, digest: 0 },
        owner: late_owner(row),
        selection: Selection::of_seats(seats.to_vec()),
        takes_kept: false,
    };
    let terms = HoldLimits { per_person: MAX_SEATS_PER_HOLD, length_ms: HOLD_MS, life_ms: HOLD_MS };
    let mut answers =
        with_map(state, show, || state.locks.lock(show.id, terms, std::slice::from_ref(&attempt))).await?;
    match answers.pop() {
        // A repeat gets the answer of a hold that has been released or has expired since.
        Some(Ok(held)) => {
            let live = with_map(state, show, || state.locks.hold_of(show.id, &attempt.owner)).await?;
            Ok(live.filter(|live| live.hold == held.hold))
        }
        // A hold of an earlier attempt, for other seats: it is released, and the next attempt finds it gone.
        Some(Err(Refusal::OtherHold(other))) => {
            let owner = late_owner(row);
            let _gone = with_map(state, show, || state.locks.release(show.id, other, &owner)).await?;
            Ok(None)
        }
        _ => Ok(None),
    }
}

fn late_owner(row: &BookingRow) -> String {
    format!("late-{}", row.id.simple())
}

async fn release_late_hold(state: &SellingState, show: &Show, row: &BookingRow, held: &StoredHold) {
    let owner = late_owner(row);
    if let Err(problem) = with_map(state, show, || state.locks.release(show.id, held.hold, &owner)).await {
        tracing::debug!(?problem, "release a hold for late money failed; it expires");
    }
}

/// Moves seats and money to a new booking, in one transaction. Returns the reason, with nothing written, when a seat
/// was sold to another buyer, or the person or the card would have too many.
async fn move_to_new_booking(
    state: &SellingState,
    show: &Show,
    row: &BookingRow,
    held: &StoredHold,
    instrument: Option<&InstrumentDigest>,
) -> Result<Option<&'static str>, EffectError> {
    let now = state.clock.now();
    let mut tx = begin_with_lock_timeout(&state.pg).await?;
    let row = sql::lock(&mut tx, row.id).await?.ok_or(EffectError::NoBooking(row.id))?;
    if !has_late_money(&row) {
        return Ok(None);
    }
    if !checks::allows_late_money(&mut tx, show, &row, now).await? {
        return Ok(Some(ABOVE_PERSON_LIMIT));
    }
    let agreed = sql::seats(&mut tx, row.id).await?;
    let Some(fresh) = insert(&mut tx, &row, held, now).await? else {
        return Err(EffectError::Store(http::Problem::internal(&"no free booking reference in three draws")));
    };
    sql::put_seats(&mut tx, fresh.id, &seat_rows(show, &agreed, &fresh.seats)).await?;
    let reason = format!("The money of booking {} came when its time was over.", row.reference);
    let locked = moves::begin(&mut tx, &fresh, Cause::of("system", &reason), now).await?;
    let moved_in = BookingEvent::PaymentMovedIn { until: held.expires_at };
    let pending = step(&mut tx, &locked, moved_in, &reason, now).await?;
    if !seat_claims::claim(&mut tx, &pending, now).await?.is_empty() {
        return Ok(Some(SOLD_TO_OTHERS));
    }
    let has_moved = payment_rows::move_money(&mut tx, (row.id, fresh.id), None, now).await?;
    assert!(has_moved, "late money has not moved before");
    let is_within_card_limit = match instrument {
        Some(instrument) => instruments::try_record(&mut tx, show, &pending, instrument).await?,
        None => instruments::allows_late_money(&mut tx, show, &pending).await?,
    };
    if !is_within_card_limit {
        return Ok(Some(moves::causes::CARD_LIMIT.reason));
    }
    let paid = BookingEvent::PaymentSucceeded { amount: row.machine.total };
    let paid = step(&mut tx, &pending, paid, "The gateway has the money.", now).await?;
    let sold = moves::settle(&mut tx, &paid, show.starts_at <= now, now).await?;
    if sold.machine.state != BookingState::Confirmed {
        return Ok(Some(SOLD_TO_OTHERS));
    }
    let reason = format!("It pays for booking {} now.", sold.reference);
    step(&mut tx, &row, BookingEvent::LateMoneyMoved, &reason, now).await?;
    tx.commit().await?;
    outbox::wake(state);
    Ok(None)
}

async fn step(
    tx: &mut PgConnection,
    row: &BookingRow,
    event: BookingEvent,
    reason: &str,
    now: Timestamp,
) -> Result<BookingRow, MoveError> {
    moves::apply(tx, row, event, Cause { actor: "system", reason }, now).await
}

/// Inserts the new booking, in state CREATED; one per hold.
async fn insert(
    tx: &mut PgConnection,
    row: &BookingRow,
    held: &StoredHold,
    now: Timestamp,
) -> sqlx::Result<Option<BookingRow>> {
    let machine = Booking {
        state: BookingState::Created,
        money: MoneyState::None,
        total: row.machine.total,
        expires_at: held.expires_at,
    };
    for _ in 0..MAX_REFERENCE_DRAWS {
        let fresh = BookingRow {
            id: ids::booking_id(now),
            reference: ids::booking_reference(ids::random_bits()),
            hold_id: held.hold,
            fence: held.fence,
            version: 1,
            machine,
            seats: held.selection.seats.clone(),
            ..row.clone()
        };
        if sql::insert(tx, &fresh, sql::Channel::Online, now).await? {
            return Ok(Some(fresh));
        }
    }
    Ok(None)
}

/// Returns the new seats at the agreed prices: replacements cost no more than the seats they replace.
fn seat_rows(show: &Show, agreed: &[SeatRow], seats: &[SeatIndex]) -> Vec<SeatRow> {
    let rows = seats.iter().zip(agreed).map(|(seat, agreed)| {
        if agreed.seat_no == seat.cast_signed() {
            return agreed.clone();
        }
        let line = show.line(*seat);
        SeatRow { seat_no: seat.cast_signed(), label: line.label, category: line.category, ..agreed.clone() }
    });
    rows.collect()
}

async fn refund_late_money(state: &SellingState, row: &BookingRow, why: &str) -> Result<(), EffectError> {
    let now = state.clock.now();
    let mut tx = begin_with_lock_timeout(&state.pg).await?;
    let row = sql::lock(&mut tx, row.id).await?.ok_or(EffectError::NoBooking(row.id))?;
    if has_late_money(&row) {
        step(&mut tx, &row, BookingEvent::LateMoneyReturned { amount: row.machine.total }, why, now).await?;
        tx.commit().await?;
        outbox::wake(state);
    }
    Ok(())
}
