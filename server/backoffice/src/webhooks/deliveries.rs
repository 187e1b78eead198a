//! Lists the deliveries of an endpoint, replays them, and deletes messages older than a month, in small batches.

use std::time::Duration;

use axum::http::StatusCode;
use domain::api::systems::{DeliveryView, EndpointState, ReasonRequest};
use domain::time::MINUTE_MS;
use uuid::Uuid;

use super::sql::{self, DeliveryRow};
use crate::BackofficeState;
use http::idempotency::{Answer, Intent};
use http::{Code, Problem};
use identity::accounts::{Staff, reason_of};
use identity::audit::{self, AuditEntry};
use platform::housekeeping;

/// Maximum number of listed deliveries, the newest.
const MAX_LISTED: i64 = 100;

/// Returns the latest deliveries of an endpoint, the newest first.
///
/// # Errors
/// 404 when the theatre has no such endpoint.
pub async fn list(state: &BackofficeState, theatre: &str, endpoint: Uuid) -> Result<Vec<DeliveryView>, Problem> {
    let known = sql::endpoints(&state.pg, theatre, i64::from(i32::MAX)).await?;
    if !known.iter().any(|row| row.id == endpoint) {
        return Err(Problem::not_found("endpoint"));
    }
    let rows = sql::deliveries(&state.pg, endpoint, MAX_LISTED).await?;
    Ok(rows.into_iter().map(DeliveryRow::view).collect::<Result<_, _>>()?)
}

/// Replays the message of a delivery as a new delivery, whatever the outcome of the first.
///
/// # Errors
/// 404 for an unknown delivery, 409 while the endpoint is not on, 400 for an invalid reason.
pub async fn replay(
    state: &BackofficeState,
    staff: &Staff,
    (theatre, endpoint, delivery): (&str, Uuid, i64),
    request: &ReasonRequest,
    intent: &Intent,
) -> Result<Answer, Problem> {
    let now = state.clock.now();
    if let Some(answer) = intent.replay(&state.pg, now).await? {
        return Ok(answer);
    }
    let reason = reason_of(&request.reason)?;
    let mut tx = state.pg.begin().await?;
    if let Some(answer) = intent.begin(&mut tx, now).await? {
        return Ok(answer);
    }
    let row = sql::lock_endpoint(&mut tx, theatre, endpoint).await?.ok_or_else(|| Problem::not_found("endpoint"))?;
    if row.state()? != EndpointState::On {
        return Err(Problem::new(Code::WrongState, "The endpoint is switched off. Switch it on first."));
    }
    let again = sql::replay(&mut tx, endpoint, delivery, now).await?.ok_or_else(|| Problem::not_found("delivery"))?;
    let subject = format!("webhook {endpoint} delivery {delivery} as {again}");
    let entry = AuditEntry::by(staff.session.account, "webhook_replayed", subject, reason).at(theatre);
    audit::record(&mut tx, &entry, now).await?;
    let answer = Answer::json(StatusCode::ACCEPTED, &serde_json::json!({ "delivery": again }))?;
    intent.commit(tx, answer, now).await
}

/// Interval of purges.
const PURGE_EVERY: Duration = Duration::from_secs(600);
/// Retention of messages, for replays and for endpoints with failures, milliseconds.
const KEPT_MS: i64 = 30 * 24 * 60 * MINUTE_MS;
/// Maximum number of messages per statement, so that its locks are short.
const MAX_AT_ONCE: i64 = 2_000;

/// Purges until the server stops.
pub async fn purge_forever(state: BackofficeState) {
    let delete = |limit| sql::purge(&state.pg, state.clock.now().plus_ms(-KEPT_MS), limit);
    housekeeping::clear_forever(&state.stop, PURGE_EVERY, "messages of webhooks", MAX_AT_ONCE, delete).await;
}
