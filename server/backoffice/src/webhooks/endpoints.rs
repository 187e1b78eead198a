//! Endpoints: create, switch, remove, rotate their secrets; and the deliveries to them: list, replay, and delete messages
//! older than a month, in small batches.

use std::time::Duration;

use axum::http::StatusCode;
use domain::VariantName;
use domain::api::systems::{DeliveryView, EndpointChange, EndpointMade, EndpointRequest, EndpointState, EndpointView};
use domain::time::MINUTE_MS;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::client::read_address;
use super::sql::{self, DeliveryRow, EndpointRow};
use crate::BackofficeState;
use http::idempotency::{Answer, Intent};
use http::{ApiResult, Code, Problem};
use identity::accounts::{Staff, StaffAction, reason_of};
use identity::audit::{self, AuditEntry};
use platform::clock::to_utc;
use platform::{housekeeping, ids};

/// Maximum number of endpoints per theatre.
const MAX_ENDPOINTS: i64 = 20;
/// Period in which the previous secret signs as well, milliseconds: a day to replace it in the other system.
const OLD_SECRET_LIFE_MS: i64 = 24 * 60 * MINUTE_MS;
/// Prefix of all secrets.
const PREFIX: &str = "whsec_";
/// Number of first characters of a secret that a stored answer has to recognise it, including the prefix.
const HINT_CHARS: usize = 14;

/// Returns the endpoints of a theatre.
pub async fn list(state: &BackofficeState, theatre: &str) -> ApiResult<Vec<EndpointView>> {
    let now = state.clock.now();
    let rows = sql::endpoints(&state.pg, theatre, MAX_ENDPOINTS).await?;
    Ok(rows.into_iter().map(|row| row.view(now)).collect::<Result<_, _>>()?)
}

/// The stored form of an answer with a secret: without the secret, but with its inputs.
#[derive(Serialize, Deserialize)]
struct StoredAnswer {
    about: EndpointView,
    version: i32,
    /// The first characters of the secret; empty in answers of an earlier version.
    #[serde(default)]
    hint: String,
}

impl StoredAnswer {
    fn new(about: EndpointView, version: i32, secret: &str) -> Self {
        Self { about, version, hint: secret.chars().take(HINT_CHARS).collect() }
    }
}

/// Derives the secret of a version of an endpoint from a server secret. A retry gets the same secret; a new version
/// never repeats an old one.
fn secret_of(state: &BackofficeState, id: Uuid, version: i32) -> String {
    format!("{PREFIX}{}", state.accounts.derived_secret(&format!("webhook\0{id}\0{version}")))
}

fn with_secret(state: &BackofficeState, stored: &Answer) -> ApiResult<Answer> {
    let StoredAnswer { about, version, hint } =
        serde_json::from_slice(stored.body()).map_err(|cause| Problem::internal(&cause))?;
    let secret = secret_of(state, about.id, version);
    // Derived with another server secret, it would be another secret.
    if !secret.starts_with(&hint) {
        let detail = "This secret was made with an earlier secret of the server. It cannot be shown again; replace it.";
        return Err(Problem::new(Code::WrongState, detail));
    }
    Answer::json(stored.status(), &EndpointMade { about, secret })
}

/// Creates an endpoint, which gets all later events.
///
/// # Errors
/// 400 for an address that must not be called, for missing or duplicate events, or for an invalid reason. 409 when the
/// theatre has too many endpoints, or for a replay after `TOKEN_SECRET` was replaced.
pub async fn make(
    state: &BackofficeState,
    staff: &Staff,
    theatre: &str,
    request: &EndpointRequest,
    intent: &Intent,
) -> ApiResult<Answer> {
    let now = state.clock.now();
    if let Some(answer) = intent.replay(&state.pg, now).await? {
        return with_secret(state, &answer);
    }
    let url = read_address(&request.url, state.webhook_settings.webhooks_may_be_private)?;
    let reason = reason_of(&request.reason)?;
    let mut events = request.events.clone();
    events.sort_unstable();
    events.dedup();
    if events.is_empty() || events.len() != request.events.len() {
        return Err(Problem::new(Code::Malformed, "Name the events to send: one or more, each once."));
    }
    let mut tx = state.pg.begin().await?;
    if let Some(answer) = intent.begin(&mut tx, now).await? {
        return with_secret(state, &answer);
    }
    if sql::lock_count(&mut tx, theatre).await? >= MAX_ENDPOINTS {
        let detail = format!("A theatre has {MAX_ENDPOINTS} endpoints at most. Remove one that is no longer needed.");
        return Err(Problem::new(Code::WrongState, detail));
    }
    let row = EndpointRow {
        id: ids::new_id(),
        url: url.to_string(),
        events: events.iter().map(|event| event.as_str().to_owned()).collect(),
        state: EndpointState::On.as_str().to_owned(),
        failures: 0,
        notice: None,
        old_until: None,
        version: 1,
        made_at: to_utc(now),
    };
    let version = row.version;
    let secret = secret_of(state, row.id, version);
    sql::insert_endpoint(&mut tx, theatre, &row, &secret).await?;
    let subject = format!("webhook {}", row.id);
    let entry = AuditEntry::by(staff.session.account, "webhook_made", subject, reason).at(theatre);
    audit::record(&mut tx, &entry, now).await?;
    let answer = Answer::json(StatusCode::CREATED, &StoredAnswer::new(row.view(now)?, version, &secret))?;
    let answer = intent.commit(tx, answer, now).await?;
    with_secret(state, &answer)
}

/// Rotates the secret of an endpoint. For a day, messages carry signatures of both secrets.
///
/// # Errors
/// 404 for an unknown endpoint, 400 for an invalid reason, 409 for a replay after `TOKEN_SECRET` was replaced.
pub async fn rotate(state: &BackofficeState, action: &StaffAction<'_>, id: Uuid) -> ApiResult<Answer> {
    let mut begun = match action.begin(state).await? {
        Ok(begun) => begun,
        Err(answer) => return with_secret(state, &answer),
    };
    let row =
        sql::lock_endpoint(&mut begun.tx, action.theatre, id).await?.ok_or_else(|| Problem::not_found("endpoint"))?;
    let now = begun.now;
    let until = now.plus_ms(OLD_SECRET_LIFE_MS);
    let version = row.version + 1;
    let secret = secret_of(state, id, version);
    if !sql::put_secret(&mut begun.tx, &row, &secret, until).await? {
        return Err(concurrent_change());
    }
    let row = EndpointRow { old_until: Some(to_utc(until)), ..row };
    let answer = Answer::json(StatusCode::OK, &StoredAnswer::new(row.view(now)?, version, &secret))?;
    let answer = begun.finish("webhook_secret_changed", format!("webhook {id}"), answer).await?;
    with_secret(state, &answer)
}

/// Switches an endpoint on or off, or removes it. Its waiting deliveries fail unless it is on; they can be replayed
/// from the list while the endpoint exists.
///
/// # Errors
/// 404 for an unknown endpoint, 400 for a state that cannot be set or for an invalid reason.
pub async fn change(
    state: &BackofficeState,
    action: &StaffAction<'_>,
    id: Uuid,
    request: &EndpointChange,
) -> ApiResult<Answer> {
    let act = match request.state {
        EndpointState::On => "webhook_switched_on",
        EndpointState::Off => "webhook_switched_off",
        EndpointState::Removed => "webhook_removed",
        EndpointState::Failed => {
            return Err(Problem::new(Code::Malformed, "An endpoint can be switched `on` or `off`, or `removed`."));
        }
    };
    let mut begun = match action.begin(state).await? {
        Ok(begun) => begun,
        Err(answer) => return Ok(answer),
    };
    let row =
        sql::lock_endpoint(&mut begun.tx, action.theatre, id).await?.ok_or_else(|| Problem::not_found("endpoint"))?;
    // An unchanged state writes no audit entry.
    if row.state()? != request.state {
        if !sql::put_state(&mut begun.tx, &row, request.state, None).await? {
            return Err(concurrent_change());
        }
        if request.state != EndpointState::On {
            sql::fail_waiting(&mut begun.tx, id, "the endpoint was switched off").await?;
        }
        begun.record(act, format!("webhook {id}")).await?;
    }
    begun.commit(Answer::no_content()).await
}

/// Unreachable while the row is locked; if it happens, nothing was changed.
fn concurrent_change() -> Problem {
    Problem::new(Code::WrongState, "Someone else has just changed this endpoint. Please look at it again.")
}

/// Maximum number of listed deliveries, the newest.
const MAX_LISTED: i64 = 100;

/// Returns the latest deliveries of an endpoint, the newest first.
///
/// # Errors
/// 404 when the theatre has no such endpoint.
pub async fn deliveries(state: &BackofficeState, theatre: &str, endpoint: Uuid) -> ApiResult<Vec<DeliveryView>> {
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
    action: &StaffAction<'_>,
    endpoint: Uuid,
    delivery: i64,
) -> ApiResult<Answer> {
    let mut begun = match action.begin(state).await? {
        Ok(begun) => begun,
        Err(answer) => return Ok(answer),
    };
    let row = sql::lock_endpoint(&mut begun.tx, action.theatre, endpoint)
        .await?
        .ok_or_else(|| Problem::not_found("endpoint"))?;
    if row.state()? != EndpointState::On {
        return Err(Problem::new(Code::WrongState, "The endpoint is switched off. Switch it on first."));
    }
    let again = sql::replay(&mut begun.tx, endpoint, delivery, begun.now)
        .await?
        .ok_or_else(|| Problem::not_found("delivery"))?;
    let subject = format!("webhook {endpoint} delivery {delivery} as {again}");
    let answer = Answer::json(StatusCode::ACCEPTED, &serde_json::json!({ "delivery": again }))?;
    begun.finish("webhook_replayed", subject, answer).await
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
