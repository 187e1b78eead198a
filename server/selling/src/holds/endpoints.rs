//! Endpoints of holds.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use domain::api::{AreaQuantity, HoldChange, HoldRequest, HoldView, ProblemView};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::service;
use crate::{SellingState, bookings, waiting_list};
use admission::fairness::LimitedCaller;
use admission::{puzzles, waiting_room};
use catalogue::Show;
use http::idempotency::{Answer, IdempotencyCount, IdempotencyKey, Intent};
use http::{ApiJson, ApiPath, ApiResult, ClientAddress, Code, Problem};
use identity::{Visitor, accounts};
use platform::ids;
use seats::seat_locks::is_offer;
use seats::seat_locks::{Refusal, RequestIdentity, Selection, with_map};

/// The routes of holds, under `/api/v1`.
pub fn routes() -> OpenApiRouter<SellingState> {
    OpenApiRouter::new()
        .routes(routes!(take))
        .routes(routes!(mine))
        .routes(routes!(change, release))
        .routes(routes!(extend))
        .routes(routes!(leave))
}

/// Take seats, or places in an area: all or none.
///
/// Hold 1 to 10 seats, `{"seats": [46, 47]}`, places in an area without numbered seats, `{"area": 0, "quantity":
/// 2}`, or both; all or none.
#[utoipa::path(post, path = "/shows/{show}/holds", tag = "holds", request_body = HoldRequest,
    params(("Idempotency-Key" = String, Header, description = "One per intent"),
        ("Puzzle-Solution" = Option<String>, Header, description = "Where a puzzle was asked for")),
    responses((status = 201, body = HoldView),
        (status = 400, body = ProblemView, description = "malformed, key_missing, seat_count, seat_twice, unknown_seat, unknown_area, puzzle_wrong"),
        (status = 409, body = ProblemView, description = "seats_taken, one_hold_per_show, waiting_list_first, sales_closed, puzzle_spent"),
        (status = 423, body = ProblemView, description = "seats_locked"),
        (status = 428, body = ProblemView, description = "puzzle_wanted"),
        (status = 429, body = ProblemView, description = "person_limit, waiting_room, too_many_attempts"),
        (status = 503, body = ProblemView, description = "lock_store_unavailable")))]
async fn take(
    State(state): State<SellingState>,
    visitor: Visitor,
    address: ClientAddress,
    ApiPath(show): ApiPath<Uuid>,
    headers: HeaderMap,
    key: IdempotencyKey,
    ApiJson(wish): ApiJson<HoldRequest>,
) -> ApiResult<Response> {
    let show = state.catalogue.find_show_or_rehearsal(show).await?;
    let intent = Intent::new(&visitor.owner, key, "take", &wish).in_show(show.id);
    let answer = replay_or_run(&state, &intent, async || {
        let asked = request_identity(&visitor, &show, &intent);
        let granted = async {
            waiting_room::check_pass(&state, &show, &visitor, &headers).await?;
            let selection = read_selection(&show, &wish)?;
            // Checked before a puzzle is required.
            catalogue::on_sale(&show, state.clock.now())?;
            let mut trying = LimitedCaller::new(show.id, &visitor, &address);
            trying.count_attempt(&state, &show, Some(asked.id)).await?;
            let proven = puzzles::check(&state, &show, &visitor, asked.id, &headers).await;
            proven.inspect_err(|why| trying.record_refusal(&state, why))?;
            trying.count_for_address(&state, &show, Some(asked.id)).await?;
            let held = service::take(&state, &show, &visitor.owner, asked, selection).await?;
            trying.record_hold(&state);
            Ok::<_, Problem>(held)
        };
        let held = match granted.await {
            Ok(held) => held,
            Err(refusal) => {
                Box::pin(service::earlier_grant_or_refusal(&state, &show, &visitor.owner, asked, asked.id, refusal))
                    .await?
            }
        };
        Answer::json(StatusCode::CREATED, &service::view(&show, &held, None))
    });
    let answer = answer.await;
    // Also after a refusal: a puzzle or place is bound to the new visitor's cookie, which is set here.
    Ok(match answer {
        Ok(answer) => (visitor, answer).into_response(),
        Err(problem) => (visitor, problem).into_response(),
    })
}

/// Validates a request for seats, places in one area, or both.
fn read_selection(show: &Show, wish: &HoldRequest) -> ApiResult<Selection> {
    let places = match (wish.area, wish.quantity) {
        (Some(area), Some(quantity)) => vec![AreaQuantity { area, quantity }],
        (None, None) => vec![],
        _ => return Err(Problem::new(Code::Malformed, "Send `area` and `quantity` together.")),
    };
    service::check_selection(show, &wish.seats, &places, 1)
}

/// Returns the identity of a request in the lock store, which replays the same answer for it. The request has its
/// only effect there, so its key is stored there as well (docs/decisions/0004).
fn request_identity(visitor: &Visitor, show: &Show, intent: &Intent) -> RequestIdentity {
    let id = ids::derived_id(&[&visitor.owner, &show.id.to_string(), intent.key()]);
    RequestIdentity { id, digest: intent.digest() }
}

/// Returns this process's cached answer, or else the lock store's, which is then cached: a replay gets the
/// same answer also when the hold has ended, and costs the store nothing.
async fn replay_or_run(
    state: &SellingState,
    intent: &Intent,
    ask: impl AsyncFnOnce() -> ApiResult<Answer>,
) -> ApiResult<Answer> {
    let now = state.clock.now();
    if let Some(answer) = state.idempotency.find_cached(intent, now)? {
        state.idempotency.add_fingerprint(intent);
        return Ok(answer);
    }
    state.idempotency.counters.add(IdempotencyCount::Held);
    let answer = ask().await?;
    state.idempotency.keep(intent, &answer, now);
    Ok(answer)
}

/// Your hold in a show. Coming back to it undoes the shortening of a closed tab.
///
/// Your hold, or 204 without one; restores the expiry that a closed tab shortened.
#[utoipa::path(get, path = "/shows/{show}/hold", tag = "holds",
    responses((status = 200, body = HoldView), (status = 204, description = "You hold nothing"),
        (status = 404, body = ProblemView, description = "No such show")))]
async fn mine(
    State(state): State<SellingState>,
    visitor: Visitor,
    ApiPath(show): ApiPath<Uuid>,
) -> ApiResult<Response> {
    let show = state.catalogue.find_show(show).await?;
    let held = with_map(&state, &show, || state.locks.hold_of(show.id, &visitor.owner)).await?;
    let held = match held {
        Some(held) if !is_offer_of_other_owner(&state, &visitor, held.hold).await? => held,
        // Most visitors hold nothing, and a browser prints a 404 where its owner sees it.
        _ => return Ok((visitor, StatusCode::NO_CONTENT).into_response()),
    };
    let booking = bookings::find_booking_of_hold(&state, &visitor.owner, held.hold).await?;
    let body = axum::Json(service::view(&show, &held, booking));
    Ok((visitor, body).into_response())
}

/// Add seats and places and release others, in one step. Never moves the expiry.
///
/// Add and release seats in one step; places with `add_places` and `remove_places`, each `[{"area": 0, "quantity":
/// 1}]`. The expiry stays. 204 when nothing is left.
#[utoipa::path(patch, path = "/shows/{show}/holds/{hold}", tag = "holds", request_body = HoldChange,
    params(("Idempotency-Key" = String, Header)), responses((status = 200, body = HoldView),
        (status = 204, description = "Nothing is left: the hold is over"),
        (status = 409, body = ProblemView, description = "seats_taken, hold_paying, waiting_list_first, sales_closed"),
        (status = 410, body = ProblemView, description = "hold_expired; also for another's"),
        (status = 423, body = ProblemView, description = "seats_locked"),
        (status = 429, body = ProblemView, description = "person_limit, waiting_room, too_many_attempts")))]
async fn change(
    State(state): State<SellingState>,
    visitor: Visitor,
    address: ClientAddress,
    ApiPath((show, hold)): ApiPath<(Uuid, Uuid)>,
    headers: HeaderMap,
    key: IdempotencyKey,
    ApiJson(wish): ApiJson<HoldChange>,
) -> ApiResult<Response> {
    let show = state.catalogue.find_show(show).await?;
    if is_offer_of_other_owner(&state, &visitor, hold).await? {
        return Err(service::refusal_problem(&show, &Refusal::Gone));
    }
    let intent = Intent::new(&visitor.owner, key, "change", &(hold, &wish)).in_show(show.id);
    let answer = replay_or_run(&state, &intent, async || {
        let asked = request_identity(&visitor, &show, &intent);
        let changed = async {
            let mut trying = LimitedCaller::new(show.id, &visitor, &address);
            trying.count_change(&state, &show).await?;
            if !wish.add.is_empty() || !wish.add_places.is_empty() {
                waiting_room::check_pass(&state, &show, &visitor, &headers).await?;
                trying.count_attempt(&state, &show, None).await?;
                trying.count_for_address(&state, &show, None).await?;
            }
            service::change(&state, &show, &visitor.owner, asked, hold, &wish).await
        };
        let held = match changed.await {
            Ok(held) => held,
            Err(refusal) => {
                Box::pin(service::earlier_grant_or_refusal(&state, &show, &visitor.owner, asked, hold, refusal)).await?
            }
        };
        // The hold is empty: it has ended.
        if held.selection.is_empty() {
            return Ok(Answer::no_content());
        }
        Answer::json(StatusCode::OK, &service::view(&show, &held, None))
    });
    Ok(answer.await?.into_response())
}

/// Hold your seats a little longer, within the show's limit.
///
/// Extend a hold, up to `latest_ms`; not in a flash sale, and less after expired holds, see *Fairness*.
#[utoipa::path(post, path = "/shows/{show}/holds/{hold}/extend", tag = "holds",
    params(("Idempotency-Key" = String, Header)), responses((status = 200, body = HoldView),
        (status = 409, body = ProblemView, description = "hold_capped, hold_not_extended, hold_paying, sales_closed"),
        (status = 410, body = ProblemView, description = "hold_expired; also for another's"),
        (status = 503, body = ProblemView, description = "lock_store_unavailable, database_unavailable")))]
async fn extend(
    State(state): State<SellingState>,
    visitor: Visitor,
    address: ClientAddress,
    ApiPath((show, hold)): ApiPath<(Uuid, Uuid)>,
    key: IdempotencyKey,
) -> ApiResult<Answer> {
    let show = state.catalogue.find_show(show).await?;
    if is_offer_of_other_owner(&state, &visitor, hold).await? {
        return Err(service::refusal_problem(&show, &Refusal::Gone));
    }
    let intent = Intent::new(&visitor.owner, key, "extend", &hold).in_show(show.id);
    let answer = replay_or_run(&state, &intent, async || {
        LimitedCaller::new(show.id, &visitor, &address).count_change(&state, &show).await?;
        let asked = request_identity(&visitor, &show, &intent);
        let held = service::extend(&state, &show, &visitor.owner, asked, hold).await?;
        Answer::json(StatusCode::OK, &service::view(&show, &held, None))
    });
    answer.await
}

/// Release a hold. Its seats are free for others at once. No key is needed: a repeat finds the hold gone, and gets
/// the same answer.
///
/// Release a hold; 204 also without such a hold.
#[utoipa::path(delete, path = "/shows/{show}/holds/{hold}", tag = "holds",
    responses((status = 204, description = "You do not have it any more, or never had: another's is left alone"),
        (status = 404, body = ProblemView, description = "No such show"),
        (status = 409, body = ProblemView, description = "hold_paying"),
        (status = 503, body = ProblemView, description = "lock_store_unavailable")))]
async fn release(
    State(state): State<SellingState>,
    visitor: Visitor,
    ApiPath((show, hold)): ApiPath<(Uuid, Uuid)>,
) -> ApiResult<StatusCode> {
    let show = state.catalogue.find_show(show).await?;
    if is_offer_of_other_owner(&state, &visitor, hold).await? {
        return Ok(StatusCode::NO_CONTENT);
    }
    let asked = with_map(&state, &show, || state.locks.release(show.id, hold, &visitor.owner));
    match asked.await? {
        Ok(()) if is_offer(hold) => waiting_list::close_released_offer(&state, hold).await,
        Ok(()) | Err(Refusal::Gone) => {}
        Err(refusal) => return Err(service::refusal_problem(&show, &refusal)),
    }
    Ok(StatusCode::NO_CONTENT)
}

/// The tab was closed: the hold ends after a grace unless its owner comes back. For `sendBeacon`.
#[utoipa::path(post, path = "/shows/{show}/holds/{hold}/leave", tag = "holds", responses((status = 204)))]
async fn leave(
    State(state): State<SellingState>,
    visitor: Visitor,
    ApiPath((show, hold)): ApiPath<(Uuid, Uuid)>,
) -> ApiResult<StatusCode> {
    // An offer is announced by mail and lasts as announced, even if a tab is closed.
    if is_offer(hold) {
        return Ok(StatusCode::NO_CONTENT);
    }
    let show = state.catalogue.find_show(show).await?;
    let grace_ms = state.selling_settings.leave_grace_ms;
    with_map(&state, &show, || state.locks.shorten_hold(show.id, hold, &visitor.owner, grace_ms)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Returns true for an offer that the caller's cookie no longer opens: like bookings, the place in line belongs to an
/// account, and releasing its hold leaves the line.
async fn is_offer_of_other_owner(state: &SellingState, visitor: &Visitor, hold: Uuid) -> ApiResult<bool> {
    Ok(is_offer(hold) && !accounts::is_own_visitor(state, visitor).await?)
}
