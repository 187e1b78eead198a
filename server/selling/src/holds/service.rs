//! The rules of holds, and the texts of refusals.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use domain::api::organiser::Sales;
use domain::api::{AreaProblem, AreaQuantity, HoldChange, HoldView, SeatProblem};
use domain::money::Money;
use domain::seats::{AreaIndex, HOLD_EXTENSION_MS, MAX_SEATS_PER_HOLD, Places, SeatIndex, SeatState};
use uuid::Uuid;

use crate::{SellingState, bookings, waiting_list};
use catalogue::{Show, on_sale, sales_open};
use http::{ApiResult, Code, Problem};
use platform::clock::rfc3339;
use seats::seat_locks::{
    HoldLimits, HoldUpdate, LockAttempt, Refusal, RequestIdentity, Selection, StoredHold, with_map,
};

/// The only validator of a request for seats and places: known, each seat and area once, 1 to 10 in all.
pub(super) fn check_selection(
    show: &Show,
    seats: &[SeatIndex],
    places: &[AreaQuantity],
    least: usize,
) -> ApiResult<Selection> {
    let in_areas = places.iter().fold(0_usize, |sum, places| sum.saturating_add(places.quantity as usize));
    let count = seats.len().saturating_add(in_areas);
    if count < least || count > MAX_SEATS_PER_HOLD || places.iter().any(|places| places.quantity == 0) {
        let detail = format!("Choose 1 to {MAX_SEATS_PER_HOLD} seats or places; these are {count}.");
        return Err(Problem::new(Code::SeatCount, detail));
    }
    Ok(Selection { seats: check_seats(show, seats)?, places: check_places(show, places)? })
}

fn check_places(show: &Show, places: &[AreaQuantity]) -> ApiResult<Vec<Places>> {
    let sorted: BTreeMap<AreaIndex, u32> = places.iter().map(|places| (places.area, places.quantity)).collect();
    if sorted.len() < places.len() {
        return Err(Problem::new(Code::SeatTwice, "Name every area once."));
    }
    match sorted.keys().find(|area| show.area(**area).is_none()) {
        Some(area) => Err(unknown_area(*area)),
        None => Ok(sorted.into_iter().map(|(area, count)| Places { area, count }).collect()),
    }
}

fn unknown_area(area: AreaIndex) -> Problem {
    Problem::new(Code::UnknownArea, format!("This show has no area {area}; its plan lists those it has."))
}

fn check_seats(show: &Show, seats: &[SeatIndex]) -> ApiResult<Vec<SeatIndex>> {
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
    let known = match show.seat_count.checked_sub(1) {
        Some(last) => format!("Seats of this show are 0 to {last}; {seat} is none."),
        None => "This show has no numbered seats.".to_owned(),
    };
    Problem::new(Code::UnknownSeat, known)
}

/// Returns the limits of holds of this show.
#[must_use]
pub fn terms(state: &SellingState, show: &Show) -> HoldLimits {
    let cap_ms = state.selling_settings.hold_ms.unwrap_or(i64::MAX);
    let length_ms = show.hold_ms.min(cap_ms);
    let life_ms = length_ms + (show.hold_life_ms - show.hold_ms);
    HoldLimits { per_person: show.per_person, length_ms, life_ms }
}

/// Refuses seats that are reserved for the waiting list; a repeated request still gets its answer.
async fn check_waiting_list(
    state: &SellingState,
    show: &Show,
    owner: &str,
    hold: Option<Uuid>,
    selection: &Selection,
) -> ApiResult<()> {
    if !waiting_list::is_reserved(state, show, selection).await? {
        return Ok(());
    }
    if hold.is_some() {
        let own = with_map(state, show, || state.locks.hold_of(show.id, owner)).await?;
        if own.map(|held| held.hold) == hold {
            return Ok(());
        }
    }
    // Refused anyway: the seats to drop help more than the waiting list.
    let taken = state.hubs.taken_among(show.id, &selection.seats);
    if !taken.is_empty() {
        return Err(seats_problem(show, &taken));
    }
    let detail = "Others are waiting for seats like these, and free ones go to them first. Join the waiting list, or try \
                  again in a second: what none of them can use is for you.";
    Err(Problem::new(Code::WaitingListFirst, detail))
}

/// Takes a hold of a selection that [`check_selection`] accepted; a repeated request gets the same hold.
pub(super) async fn take(
    state: &SellingState,
    show: &Arc<Show>,
    owner: &str,
    asked: RequestIdentity,
    selection: Selection,
) -> ApiResult<StoredHold> {
    on_sale(show, state.clock.now())?;
    // Boxed: hardly any attempt is at a show with a waiting list, and each would carry the future.
    if state.waiting.has_any(show, &selection) {
        Box::pin(check_waiting_list(state, show, owner, Some(asked.id), &selection)).await?;
    }
    let attempt = LockAttempt { asked, owner: owner.to_owned(), selection, takes_kept: false };
    let asked_at = state.clock.now();
    let answer = state.lock_queue.lock(state, show, terms(state, show), attempt).await?;
    match answer {
        Ok(held) => {
            state.hold_tally.granted(show.id);
            state.latest_holds.keep(owner, &held);
            Ok(held)
        }
        Err(refusal) => {
            Err(refusal_problem(show, &refusal).with_times(|seat| state.hubs.time_since_lock(show.id, seat, asked_at)))
        }
    }
}

/// Adds and releases seats and places, all or none; the expiry is unchanged. An empty hold ends.
pub(super) async fn change(
    state: &SellingState,
    show: &Show,
    owner: &str,
    asked: RequestIdentity,
    hold: Uuid,
    wish: &HoldChange,
) -> ApiResult<StoredHold> {
    let add = check_selection(show, &wish.add, &wish.add_places, 0)?;
    let remove = check_selection(show, &wish.remove, &wish.remove_places, 0)?;
    if !add.is_empty() {
        on_sale(show, state.clock.now())?;
        if state.waiting.has_any(show, &add) {
            Box::pin(check_waiting_list(state, show, owner, None, &add)).await?;
        }
    }
    let change = HoldUpdate { asked, hold, owner: owner.to_owned(), add, remove };
    let asked_at = state.clock.now();
    let changed = with_map(state, show, || state.locks.change(show.id, terms(state, show), &change)).await?;
    let ago = |seat| state.hubs.time_since_lock(show.id, seat, asked_at);
    let held = changed.map_err(|refusal| refusal_problem(show, &refusal).with_times(ago))?;
    state.latest_holds.keep(owner, &held);
    Ok(held)
}

/// Extends a hold, within the show's limit; not for an owner who let several holds expire recently.
pub(super) async fn extend(
    state: &SellingState,
    show: &Show,
    owner: &str,
    asked: RequestIdentity,
    hold: Uuid,
) -> ApiResult<StoredHold> {
    let held = match extend_in_store(state, show, owner, asked, hold).await {
        Ok(held) => held,
        Err(refusal) => Box::pin(earlier_grant_or_refusal(state, show, owner, asked, hold, refusal)).await?,
    };
    // If it is checked out already, its booking may be paid as long.
    bookings::extend_booking(state, hold, owner, held.expires_at).await?;
    Ok(held)
}

async fn extend_in_store(
    state: &SellingState,
    show: &Show,
    owner: &str,
    asked: RequestIdentity,
    hold: Uuid,
) -> ApiResult<StoredHold> {
    sales_open(show, state.clock.now())?;
    let extended = with_map(state, show, || state.locks.extend(show.id, asked, hold, owner, HOLD_EXTENSION_MS)).await?;
    let held = extended.map_err(|refusal| refusal_problem(show, &refusal))?;
    state.latest_holds.keep(owner, &held);
    Ok(held)
}

/// Returns the earlier grant of a refused request, perhaps by another replica, because the reason of the refusal may be
/// newer. Otherwise returns the refusal.
///
/// The lock store is asked only where a later retry would not help, with bounded concurrency: a successful request
/// costs nothing here, nor does one that is to be retried (429, 428) or that the store itself refused.
pub(super) async fn earlier_grant_or_refusal(
    state: &SellingState,
    show: &Show,
    owner: &str,
    asked: RequestIdentity,
    hold: Uuid,
    refusal: Problem,
) -> ApiResult<StoredHold> {
    let was_on_sale = show.sales != Sales::Planned && show.sales_from.is_none_or(|from| from <= state.clock.now());
    if !was_on_sale || !matches!(refusal.code(), Code::SalesClosed | Code::WaitingListFirst) {
        return Err(refusal);
    }
    let Some(_turn) = state.fairness.try_acquire_replay_check() else { return Err(refusal) };
    // Not through `with_map`: without a map there is no known grant, and none is loaded for that.
    match state.locks.stored_answer(show.id, asked, hold, owner).await {
        Ok(Some(granted)) => granted.map_err(|why| refusal_problem(show, &why)),
        Ok(None) | Err(_) => Err(refusal),
    }
}

/// Builds the problem for a refusal, with the next step for the person.
#[must_use]
pub fn refusal_problem(show: &Show, refusal: &Refusal) -> Problem {
    match refusal {
        Refusal::Taken(seats) => seats_problem(show, seats),
        Refusal::OtherHold(hold) => {
            Problem::new(Code::OneHoldPerShow, "Add the seats to the hold you have, or let it go first.")
                .with_hold(*hold)
        }
        Refusal::Limit(left) => Problem::new(
            Code::PersonLimit,
            format!("One person may have {} seats and places in this show; you may take {left} more.", show.per_person),
        ),
        Refusal::Reused => Problem::new(Code::KeyReused, "Use a new Idempotency-Key for other seats."),
        Refusal::Outside(seat) => unknown_seat(show, *seat),
        Refusal::NoArea(area) => unknown_area(*area),
        Refusal::Full(areas) => places_problem(show, areas),
        Refusal::Capped => {
            Problem::new(Code::HoldCapped, "Your hold lasts as long as it can. Please check out before it ends.")
        }
        Refusal::Lapsed => {
            let detail = "This hold cannot be extended, because several holds of yours ran out lately and nothing was \
                          bought. Please check out before it ends.";
            Problem::new(Code::HoldNotExtended, detail)
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

/// Builds the problem with every seat that was not free. 423 when all may be free again, 409 when one will not.
#[must_use]
pub fn seats_problem(show: &Show, taken: &[(SeatIndex, SeatState)]) -> Problem {
    let seats: Vec<SeatProblem> = taken
        .iter()
        .map(|(seat, state)| SeatProblem {
            seat: *seat,
            label: show.label_of(*seat).to_owned(),
            state: *state,
            taken_ms_ago: None,
        })
        .collect();
    let names = seats.iter().map(|seat| seat.label.as_str()).collect::<Vec<_>>().join(", ");
    let all_locked = taken.iter().all(|(_, state)| *state == SeatState::Locked);
    let (code, fate) = if all_locked {
        (Code::SeatsLocked, "being held by someone else")
    } else {
        (Code::SeatsTaken, "no longer for sale")
    };
    let verb = if seats.len() == 1 { "is" } else { "are" };
    Problem::new(code, format!("{names} {verb} {fate}. You still have your other seats; please choose again."))
        .with_seats(seats)
}

/// Builds the problem with every area that has too few places, and its free places.
#[must_use]
pub fn places_problem(show: &Show, full: &[(AreaIndex, u32)]) -> Problem {
    let areas: Vec<AreaProblem> = full
        .iter()
        .map(|(area, left)| AreaProblem { area: *area, label: show.area_label(*area), left: *left })
        .collect();
    let left_in_words = |area: &AreaProblem| match area.left {
        0 => format!("No place is left in {}.", area.label),
        1 => format!("One place is left in {}.", area.label),
        left => format!("Only {left} places are left in {}.", area.label),
    };
    let sentences: Vec<String> = areas.iter().map(left_in_words).collect();
    Problem::new(Code::SeatsTaken, format!("{} Please choose fewer.", sentences.join(" "))).with_areas(areas)
}

/// Adds the price of these places to a sum; `None` on overflow, or when an area is unknown.
#[must_use]
pub fn total_with_places(show: &Show, seats: Money, places: &[Places]) -> Option<Money> {
    places.iter().try_fold(seats, |sum, places| {
        let minor = show.area(places.area)?.price.minor.checked_mul(i64::from(places.count))?;
        sum.checked_add(Money::new(minor, show.currency))
    })
}

/// Builds the owner's view of a hold.
#[must_use]
pub fn view(show: &Show, held: &StoredHold, booking: Option<Uuid>) -> HoldView {
    let seats: Vec<_> = held.selection.seats.iter().map(|seat| show.line(*seat)).collect();
    let places: Vec<_> = held.selection.places.iter().filter_map(|places| show.place_line(*places)).collect();
    let breakdown = show.breakdown(&seats, &places);
    HoldView {
        id: held.hold,
        show: show.id,
        seats,
        places,
        total: breakdown.total,
        breakdown: Some(breakdown),
        expires_at: rfc3339(held.expires_at),
        expires_at_ms: held.expires_at.0,
        latest_ms: held.latest.0.max(held.expires_at.0),
        paying: held.paying,
        booking,
    }
}
