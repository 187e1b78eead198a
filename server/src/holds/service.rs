//! What a hold may do, and how refusals read.

use std::collections::BTreeSet;
use std::sync::Arc;

use domain::api::{HoldView, SeatProblem};
use domain::booking::SALES_CLOSE_BEFORE_START_MS;
use domain::money::Money;
use domain::seats::{HOLD_EXTENSION_MS, MAX_SEATS_PER_HOLD, MAX_SEATS_PER_PERSON, SeatIndex, SeatState};
use domain::time::Timestamp;
use uuid::Uuid;

use crate::AppState;
use crate::catalogue::Show;
use crate::clock::rfc3339;
use crate::seat_locks::{Asked, Attempt, Change, Held, Lot, Refusal, Terms, with_map};
use crate::web::{Code, Problem};

/// The one validator of a wish for seats: known, each once, 1 to 10.
pub(super) fn check_seats(show: &Show, seats: &[SeatIndex], least: usize) -> Result<Vec<SeatIndex>, Problem> {
    if seats.len() < least || seats.len() > MAX_SEATS_PER_HOLD {
        let detail = format!("Choose 1 to {MAX_SEATS_PER_HOLD} seats; these are {}.", seats.len());
        return Err(Problem::new(Code::SeatCount, detail));
    }
    let sorted: BTreeSet<SeatIndex> = seats.iter().copied().collect();
    if sorted.len() < seats.len() {
        return Err(Problem::new(Code::SeatTwice, "Name every seat once."));
    }
    match sorted.iter().find(|seat| **seat >= show.seat_count) {
        Some(seat) => Err(unknown_seat(show, *seat)),
        None => Ok(sorted.into_iter().collect()),
    }
}

fn unknown_seat(show: &Show, seat: SeatIndex) -> Problem {
    Problem::new(Code::UnknownSeat, format!("Seats of this show are 0 to {}; {seat} is none.", show.seat_count - 1))
}

/// Whether the show may still be booked.
///
/// # Errors
/// 409 within five minutes of the start, after it, and when the show was called off.
pub fn sales_open(show: &Show, now: Timestamp) -> Result<(), Problem> {
    if show.is_called_off() {
        return Err(Problem::new(
            Code::SalesClosed,
            "This show will not take place. Whoever has paid gets the money back.",
        ));
    }
    if show.starts_at.since(now) > SALES_CLOSE_BEFORE_START_MS {
        return Ok(());
    }
    Err(Problem::new(Code::SalesClosed, "Booking closes five minutes before the start. The box office may help."))
}

/// What holds of this show may be.
fn terms(state: &AppState, show: &Show) -> Terms {
    let cap_ms = state.config.hold_ms.unwrap_or(i64::MAX);
    let length_ms = show.hold_ms.min(cap_ms);
    let life_ms = length_ms + (show.hold_life_ms - show.hold_ms);
    Terms { per_person: MAX_SEATS_PER_PERSON, length_ms, life_ms }
}

/// Takes a hold; the same request gets the same hold again.
pub(super) async fn take(
    state: &AppState,
    show: &Arc<Show>,
    owner: &str,
    asked: Asked,
    seats: &[SeatIndex],
) -> Result<Held, Problem> {
    let seats = check_seats(show, seats, 1)?;
    sales_open(show, state.locks.now())?;
    let attempt = Attempt { asked, owner: owner.to_owned(), lot: Lot::of_seats(seats) };
    let answer = state.lock_queue.take(state, show, terms(state, show), attempt).await?;
    answer.map_err(|refusal| refused(show, &refusal))
}

/// Adds seats and lets others go, all or none; the expiry stays. `None`: no seat is left, it is over.
pub(super) async fn change(
    state: &AppState,
    show: &Show,
    owner: &str,
    asked: Asked,
    hold: Uuid,
    wish: (&[SeatIndex], &[SeatIndex]),
) -> Result<Option<Held>, Problem> {
    let add = Lot::of_seats(check_seats(show, wish.0, 0)?);
    let remove = Lot::of_seats(check_seats(show, wish.1, 0)?);
    if !add.is_empty() {
        sales_open(show, state.locks.now())?;
    }
    let change = Change { asked, hold, owner: owner.to_owned(), add, remove };
    match with_map(state, show, || state.locks.change(show.id, terms(state, show), &change)).await? {
        Ok(held) => Ok(Some(held).filter(|held| !held.lot.is_empty())),
        Err(refusal) => Err(refused(show, &refusal)),
    }
}

/// Lets a hold last longer, as far as the show allows.
pub(super) async fn extend(
    state: &AppState,
    show: &Show,
    owner: &str,
    asked: Asked,
    hold: Uuid,
) -> Result<Held, Problem> {
    sales_open(show, state.locks.now())?;
    let extended = with_map(state, show, || state.locks.extend(show.id, asked, hold, owner, HOLD_EXTENSION_MS)).await?;
    extended.map_err(|refusal| refused(show, &refusal))
}

/// Says to a person what stood in the way and what to do.
pub(super) fn refused(show: &Show, refusal: &Refusal) -> Problem {
    match refusal {
        Refusal::Taken(seats) => seats_problem(show, seats),
        Refusal::OtherHold(hold) => {
            Problem::new(Code::OneHoldPerShow, "Add the seats to the hold you have, or let it go first.")
                .with_hold(*hold)
        }
        Refusal::Limit(left) => Problem::new(
            Code::PersonLimit,
            format!("One person may have {MAX_SEATS_PER_PERSON} seats in a show; you may take {left} more."),
        ),
        Refusal::Reused => Problem::new(Code::KeyReused, "Use a new Idempotency-Key for other seats."),
        Refusal::Outside(seat) => unknown_seat(show, *seat),
        Refusal::NoArea(area) => Problem::new(Code::UnknownSeat, format!("This show has no area {area}.")),
        Refusal::Full(areas) => {
            let left = areas.iter().map(|(_, left)| *left).min().unwrap_or(0);
            Problem::new(Code::SeatsTaken, format!("Only {left} places are left there. Please choose fewer."))
        }
        Refusal::Capped => {
            Problem::new(Code::HoldCapped, "Your hold lasts as long as it can. Please check out before it ends.")
        }
        Refusal::Gone => {
            Problem::new(Code::HoldExpired, "Your seats are free for everyone again. You can try to get them back.")
        }
        Refusal::Paying => {
            Problem::new(Code::HoldPaying, "You are paying for these seats. Finish or cancel the payment first.")
        }
        Refusal::Changed => Problem::new(
            Code::WrongState,
            "Your seats have changed since you checked out. Please look at the total again.",
        ),
    }
}

/// Names every seat that stood in the way. 423 when all may come back, 409 when one will not.
#[must_use]
pub fn seats_problem(show: &Show, taken: &[(SeatIndex, SeatState)]) -> Problem {
    let seats: Vec<SeatProblem> = taken
        .iter()
        .map(|(seat, state)| SeatProblem { seat: *seat, label: show.label_of(*seat).to_owned(), state: *state })
        .collect();
    let names = seats.iter().map(|seat| seat.label.as_str()).collect::<Vec<_>>().join(", ");
    let all_locked = taken.iter().all(|(_, state)| *state == SeatState::Locked);
    let (code, fate) = if all_locked {
        (Code::SeatsLocked, "being held by someone else")
    } else {
        (Code::SeatsTaken, "no longer for sale")
    };
    let verb = if seats.len() == 1 { "is" } else { "are" };
    Problem::new(code, format!("{names} {verb} {fate}. Your other seats are safe; please choose again."))
        .with_seats(seats)
}

/// A hold as its owner sees it.
#[must_use]
pub fn view(show: &Show, held: &Held, booking: Option<Uuid>) -> HoldView {
    let seats: Vec<_> = held.lot.seats.iter().map(|seat| show.line(*seat)).collect();
    let total = seats.iter().fold(0_i64, |sum, line| sum.saturating_add(line.price.minor));
    HoldView {
        id: held.hold,
        show: show.id,
        seats,
        total: Money::new(total, show.currency),
        expires_at: rfc3339(held.expires_at),
        expires_at_ms: held.expires_at.0,
        latest_ms: held.latest.0.max(held.expires_at.0),
        paying: held.paying,
        booking,
    }
}
