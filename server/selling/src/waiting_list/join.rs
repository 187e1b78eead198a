//! Joins and leaves a waiting list.

use std::time::Duration;

use axum::http::StatusCode;
use domain::api::waiting_list::WaitingRequest;
use domain::seats::MAX_SEATS_PER_HOLD;
use domain::waiting_list::{EntryRequest, MAX_LISTS_PER_PERSON, MAX_WAITING_PER_SHOW};
use uuid::Uuid;

use super::reserved_seats::free_for_all;
use super::sql;
use crate::{SellingState, waiting_list};
use catalogue::Show;
use http::idempotency::{Answer, Intent};
use http::{ApiResult, ClientAddress, Code, Problem};
use identity::accounts;
use platform::ids;
use platform::rate_limits::{AddressAllowance, Allowance};
use seats::seat_locks::with_map;

/// Bounds the wait for each lock: of the key, of the list (which other joins, or the planner of offers,
/// may have locked), and of the visitor in another tab. After it the answer is a temporary database error, and
/// nothing has changed.
const BEGIN: &str = "BEGIN; SET LOCAL lock_timeout = '2s'";

/// Maximum wait for one of the joins that a replica commits at once.
const SLOT_TIMEOUT: Duration = Duration::from_secs(2);

enum JoinResult {
    Joined(Answer),
    /// Joined before, by the same request.
    Repeated(Answer),
}

/// Appends the caller to the line, if no suitable seats are free.
pub(super) async fn join(
    state: &SellingState,
    show: &Show,
    (owner, address): (&str, &ClientAddress),
    request: &WaitingRequest,
    intent: &Intent,
) -> ApiResult<Answer> {
    // Limited first: a crowd at one address gets no transactions, and the holder of the list's lock waits for no Redis.
    if let Err(refused) = count_join(state, address).await {
        // Their own join may have been the last that was allowed: a repeat gets its answer.
        return intent.unless_answered(&state.pg, state.clock.now(), refused).await;
    }
    let outcome = enter(state, show, owner, request, intent).await;
    // Joins count, and so do needless ones: each of them reads the whole map.
    let is_counted = match &outcome {
        Ok(JoinResult::Joined(_)) => true,
        Ok(JoinResult::Repeated(_)) => false,
        Err(problem) => problem.code() == Code::SeatsFree,
    };
    if !is_counted {
        return_token(state, address).await;
    }
    match outcome? {
        JoinResult::Joined(answer) | JoinResult::Repeated(answer) => Ok(answer),
    }
}

async fn enter(
    state: &SellingState,
    show: &Show,
    owner: &str,
    request: &WaitingRequest,
    intent: &Intent,
) -> ApiResult<JoinResult> {
    let now = state.clock.now();
    if let Some(answer) = intent.replay(&state.pg, now).await? {
        return Ok(JoinResult::Repeated(answer));
    }
    let wish = check(show, request)?;
    catalogue::on_sale(show, now)?;
    let _slot = match tokio::time::timeout(SLOT_TIMEOUT, state.waiting.join_slots.acquire()).await {
        Ok(slot) => slot.ok(),
        Err(_) => return Err(Problem::new(Code::Overloaded, "Many are joining waiting lists. Please try again.")),
    };
    if let Some(refused) = refuse_early(state, show, owner, &wish).await? {
        // The same request may have joined meanwhile.
        return intent.unless_answered(&state.pg, now, refused).await.map(JoinResult::Repeated);
    }

    let mut tx = state.pg.begin_with(BEGIN).await?;
    if let Some(answer) = intent.begin(&mut tx, now).await? {
        return Ok(JoinResult::Repeated(answer));
    }
    sql::open_list(&mut tx, show.id, now).await?;
    let waiting = sql::count_waiting(&mut tx, show.id).await?;
    if waiting >= MAX_WAITING_PER_SHOW {
        return Err(list_full());
    }
    if sql::count_lists_of(&mut tx, owner).await? >= MAX_LISTS_PER_PERSON {
        let detail = "You are waiting for ten shows, the most one person can. Leave one of the lists first.";
        return Err(Problem::new(Code::WaitingListFull, detail));
    }
    let email = request.email.trim();
    if !sql::insert(&mut tx, ids::new_id(), show.id, owner, email, &wish, now).await? {
        return Err(already_waiting());
    }
    let view = waiting_list::newest(&mut tx, show, owner, now).await?;
    let view = view.ok_or_else(|| Problem::internal(&"an entry of the waiting list is gone at once"))?;
    let answer = Answer::json(StatusCode::CREATED, &view)?;
    let answer = intent.commit(tx, answer, now).await?;
    state.waiting.add(show.id, wish.category).await;
    Ok(JoinResult::Joined(answer))
}

/// Returns the refusal of a join that needs no lock to be refused. Refused joins do not count towards the address's limit,
/// so they must cost little.
async fn refuse_early(
    state: &SellingState,
    show: &Show,
    owner: &str,
    wish: &EntryRequest,
) -> ApiResult<Option<Problem>> {
    if free_for_all(state, show).await?.find_offer(wish).is_some() {
        let detail = "There are such seats: take them from the map, no need to wait.";
        return Ok(Some(Problem::new(Code::SeatsFree, detail)));
    }
    let mut connection = state.pg.acquire().await?;
    if sql::is_in_line(&mut connection, show.id, owner).await? {
        return Ok(Some(already_waiting()));
    }
    let is_full = sql::count_waiting(&mut connection, show.id).await? >= MAX_WAITING_PER_SHOW;
    Ok(is_full.then(list_full))
}

fn already_waiting() -> Problem {
    Problem::new(Code::AlreadyWaiting, "You are in this line already. Leave it first if you want other seats.")
}

fn list_full() -> Problem {
    Problem::new(Code::WaitingListFull, "So many are waiting for this show that your turn would not come.")
}

fn check(show: &Show, request: &WaitingRequest) -> ApiResult<EntryRequest> {
    let most = show.per_person.min(MAX_SEATS_PER_HOLD);
    if request.quantity == 0 || request.quantity as usize > most {
        let detail = format!("Wait for 1 to {most} seats; these are {}.", request.quantity);
        return Err(Problem::new(Code::SeatCount, detail));
    }
    accounts::email_of(&request.email)?;
    if let Some(category) = &request.category
        && show.prices.price(category).is_none()
    {
        return Err(Problem::new(Code::Malformed, "This show has no such category; its plan lists those it has."));
    }
    Ok(EntryRequest { quantity: request.quantity, category: request.category.clone() })
}

/// Removes the caller from the line, and releases their offer. After a crash between the two,
/// the hold expires.
pub(super) async fn leave(state: &SellingState, show: &Show, owner: &str, intent: &Intent) -> ApiResult<Answer> {
    let now = state.clock.now();
    let mut tx = state.pg.begin_with(BEGIN).await?;
    // A late repeat must not remove them from the line that they have joined again since.
    if let Some(answer) = intent.begin(&mut tx, now).await? {
        return Ok(answer);
    }
    let left = sql::leave(&mut tx, show.id, owner, now).await?;
    let offered = left.ok_or_else(|| Problem::not_found("place in the waiting list"))?;
    let answer = Answer::no_content();
    let answer = intent.commit(tx, answer, now).await?;
    if let Some(hold) = offered {
        // A hold that ended or is being paid for is not released. A failed release is only logged, since the hold
        // expires soon: the caller has left all the same, and a repeat gets the same answer.
        if let Err(problem) = with_map(state, show, || state.locks.release(show.id, hold, owner)).await {
            tracing::warn!(?problem, %hold, "releasing the offer {hold} failed; it expires");
        }
    }
    Ok(answer)
}

/// Rate limit of take-overs of one offer, from all devices: each locks the entry and calls the lock store.
const TAKE_OFFER: Allowance = Allowance { name: "waiting-list-offer", burst: 10, each_ms: 6_000 };

/// Minimum refill of an address's limit, milliseconds: that of its network is a sixteenth.
const MIN_REFILL_MS: i64 = 16;

/// Derives the limits of joins from the address's limit of seat requests per minute; `None`: unlimited. Without the
/// network's limit a few of its addresses could fill a list.
fn of_address(tries_a_minute: u32) -> Option<AddressAllowance> {
    let (burst, each_ms) = burst_and_refill(tries_a_minute)?;
    Some(AddressAllowance::new(("waiting-list-address", "waiting-list-network"), burst, each_ms))
}

/// A tenth of the limit as burst, then a hundredth a minute.
fn burst_and_refill(tries_a_minute: u32) -> Option<(u32, i64)> {
    let each_ms = 6_000_000_i64.checked_div(i64::from(tries_a_minute))?;
    Some(((tries_a_minute / 10).max(1), each_ms.max(MIN_REFILL_MS)))
}

/// Counts a join from this address and its network.
///
/// # Errors
/// 429.
async fn count_join(state: &SellingState, address: &ClientAddress) -> ApiResult<()> {
    match of_address(state.admission_settings.holds_per_address_min) {
        Some(of) => Ok(state.rate_limits.take_from_address(&of, &address.0, &address.network()).await?),
        None => Ok(()),
    }
}

async fn return_token(state: &SellingState, address: &ClientAddress) {
    if let Some(of) = of_address(state.admission_settings.holds_per_address_min) {
        state.rate_limits.give_back_to_address(&of, &address.0, &address.network()).await;
    }
}

/// Counts a take-over of this entry's offer.
///
/// # Errors
/// 429.
pub(super) async fn count_taking(state: &SellingState, entry: Uuid) -> ApiResult<()> {
    Ok(state.rate_limits.take(&TAKE_OFFER, &entry.to_string()).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_join_limit_is_derived_from_the_seat_request_limit() {
        assert_eq!(burst_and_refill(1_200), Some((120, 5_000)));
        assert_eq!(burst_and_refill(1), Some((1, 6_000_000)), "one join is allowed");
        assert_eq!(burst_and_refill(60_000), Some((6_000, 100)));
        assert_eq!(burst_and_refill(u32::MAX), Some((u32::MAX / 10, MIN_REFILL_MS)));
        assert_eq!(burst_and_refill(0), None);
    }
}
