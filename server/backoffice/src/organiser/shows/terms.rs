//! Changes the terms of sale of a show, and calls shows off.
//!
//! Sales, holds and limits may change at any time before the start. Prices may not change while customers hold seats or
//! pay: the price a customer saw is the price they pay.

use std::collections::{BTreeMap, BTreeSet};

use axum::http::StatusCode;
use domain::VariantName;
use domain::api::organiser::{CancelShowRequest, OrganisedShow, Sales, TermsRequest};
use domain::time::{SECOND_MS, Timestamp};
use sqlx::PgConnection;
use sqlx::types::Json;
use uuid::Uuid;

use super::week::{self, OrganisedRow};
use super::{SaleTerms, checked, zone_of};
use crate::organiser::tariffs::amount;
use crate::{BackofficeState, box_office};
use http::idempotency::Answer;
use http::{ApiResult, Code, Problem};
use identity::accounts::StaffAction;
use platform::clock::{from_utc, to_utc};
use platform::database::BindAll;
use seats::seat_locks::StoreError;
use selling::bookings;

/// Minimum age of the last change of terms before prices may change, milliseconds: by then every replica has applied a
/// pause.
const MIN_TERMS_AGE_MS: i64 = 5 * SECOND_MS;

/// Changes the terms of a show.
///
/// # Errors
/// 400 for invalid terms or prices. 404 for another theatre's show. 409 when the show has begun or was called off, was
/// changed concurrently, or its prices may not change now.
pub async fn change(
    state: &BackofficeState,
    action: &StaffAction<'_>,
    show: Uuid,
    request: &TermsRequest,
) -> ApiResult<Answer> {
    let mut begun = match action.begin(state).await? {
        Ok(begun) => begun,
        Err(answer) => return Ok(answer),
    };
    let now = begun.now;
    week::lock(&mut begun.tx, action.theatre, show).await?;
    let row = week::find(&mut begun.tx, action.theatre, show).await?;
    if row.called_off || from_utc(row.starts_at) <= now {
        return Err(Problem::new(Code::SalesClosed, "This show is over, or will not take place."));
    }
    if row.is_moving {
        return Err(Problem::new(
            Code::WrongState,
            "This show is being moved to another screen. Wait until it is there.",
        ));
    }
    let terms = checked(&request.terms, zone_of(&row.time_zone)?)?;
    if terms.sales == Sales::Planned && row.sales != Sales::Planned.as_str() && is_bought(&mut begun.tx, show).await? {
        let detail = "Seats of this show are sold, so it stays where their buyers find it. Pause its sales instead.";
        return Err(Problem::new(Code::WrongState, detail));
    }
    let prices = match &request.prices {
        Some(prices) if *prices != row.prices.0 => {
            let checked = checked_prices(prices, &row.prices.0)?;
            check_prices_changeable(&mut begun.tx, &row, now).await?;
            Some(checked)
        }
        _ => None,
    };
    let version = request.version.cast_signed();
    if !set_terms(&mut begun.tx, show, version, &terms, prices.as_ref(), now).await? {
        let detail = "Someone else has changed this show in the meantime. Look at it again, then change it.";
        return Err(Problem::new(Code::WrongState, detail));
    }
    if prices.is_some() {
        release_holds(state, show).await?;
    }
    let row = week::find(&mut begun.tx, action.theatre, show).await?;
    let view: OrganisedShow = week::view_of(row)?;
    let answer = Answer::json(StatusCode::OK, &view)?;
    let what = if prices.is_some() { "terms and prices" } else { "terms" };
    let answer = begun.finish("show_terms_changed", format!("show {show}, {what}"), answer).await?;
    state.catalogue.evict(show).await;
    Ok(answer)
}

/// Releases all holds: a customer must not pay a price that they did not see, or for another start. If this fails, the
/// show stays unchanged.
pub(super) async fn release_holds(state: &BackofficeState, show: Uuid) -> ApiResult<()> {
    match state.locks.release_all(show).await {
        Ok(_) | Err(StoreError::NoMap(_)) => Ok(()),
        Err(cause) => Err(cause.into()),
    }
}

async fn check_prices_changeable(tx: &mut PgConnection, row: &OrganisedRow, now: Timestamp) -> ApiResult<()> {
    let is_on_sale = row.sales == Sales::Open.as_str() && row.sales_from.is_none_or(|from| from_utc(from) <= now);
    if is_on_sale {
        let detail = "Its sales are open. Pause them first, so that customers pay the price they saw.";
        return Err(Problem::new(Code::WrongState, detail));
    }
    require_no_buyers(tx, row, now).await
}

/// Fails while customers may hold seats of a show with closed sales, or pay for them.
pub(super) async fn require_no_buyers(tx: &mut PgConnection, row: &OrganisedRow, now: Timestamp) -> ApiResult<()> {
    if row.terms_at.is_some_and(|at| now.since(from_utc(at)) < MIN_TERMS_AGE_MS) {
        let detail = "It was paused, or changed, only just now. Please try again in a few seconds.";
        return Err(Problem::new(Code::WrongState, detail));
    }
    if box_office::is_held_for_callers(tx, row.id, now).await? {
        let detail = "The box office holds seats of this show for callers. Have them sold or released first.";
        return Err(Problem::new(Code::WrongState, detail));
    }
    if is_being_bought(tx, row.id).await? {
        let detail = "A payment for seats of this show is under way. Please try again in a few minutes.";
        return Err(Problem::new(Code::WrongState, detail));
    }
    Ok(())
}

/// Validates prices: exactly the categories the show has.
fn checked_prices(wanted: &BTreeMap<String, i64>, before: &BTreeMap<String, i64>) -> ApiResult<BTreeMap<String, i64>> {
    let (names, known): (BTreeSet<_>, BTreeSet<_>) = (wanted.keys().collect(), before.keys().collect());
    if let Some(strange) = names.symmetric_difference(&known).next() {
        let detail = format!("Give every category of the room a price, and no other: {strange:?}.");
        return Err(Problem::new(Code::PriceInvalid, detail));
    }
    let checked = wanted.iter().map(|(name, value)| Ok((name.clone(), amount(*value, name)?.cast_signed())));
    checked.collect()
}

/// Returns `true` when seats or places of a show are sold or claimed.
pub(super) async fn is_bought(tx: &mut PgConnection, show: Uuid) -> sqlx::Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM seat_claims WHERE show_id = $1 AND state <> 'released')
                   OR EXISTS (SELECT 1 FROM area_stock WHERE show_id = $1 AND claimed + sold > 0)";
    sqlx::query_scalar(sql).bind(show).fetch_one(tx).await
}

/// Returns `true` when a booking of a show is between checkout and the end of its payment.
async fn is_being_bought(tx: &mut PgConnection, show: Uuid) -> sqlx::Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM bookings WHERE show_id = $1 AND is_open
                              AND state IN ('CREATED', 'SEATS_LOCKED', 'PAYMENT_PENDING', 'PAYMENT_SUCCEEDED'))";
    sqlx::query_scalar(sql).bind(show).fetch_one(tx).await
}

/// Changes the terms of a locked show; `false` when its version differs.
async fn set_terms(
    tx: &mut PgConnection,
    show: Uuid,
    version: i32,
    terms: &SaleTerms,
    prices: Option<&BTreeMap<String, i64>>,
    now: Timestamp,
) -> sqlx::Result<bool> {
    let done = sqlx::query(
        "UPDATE shows SET sales = $3, sales_from = $4, hold_ms = $5, flash_sale = $6, per_person = $7,
                prices = coalesce($8, prices), terms_version = terms_version + 1, terms_at = $9,
                email_code = $10, per_instrument = $11
         WHERE id = $1 AND terms_version = $2 AND NOT called_off AND NOT is_moving",
    )
    .bind_all((show, version, terms.sales.as_str(), terms.sales_from.map(to_utc), terms.hold_ms, terms.flash_sale))
    .bind_all((terms.per_person, prices.map(Json), to_utc(now), terms.email_code, terms.per_instrument))
    .execute(tx)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Calls a show off before it begins. The answer contains the progress of the refunds, which run in the background.
///
/// # Errors
/// 404 for another theatre's show, 409 when it has begun or is already called off.
pub async fn call_off(
    state: &BackofficeState,
    action: &StaffAction<'_>,
    show: Uuid,
    request: &CancelShowRequest,
) -> ApiResult<Answer> {
    let mut begun = match action.begin(state).await? {
        Ok(begun) => begun,
        Err(answer) => return Ok(answer),
    };
    week::lock(&mut begun.tx, action.theatre, show).await?;
    let row = week::find(&mut begun.tx, action.theatre, show).await?;
    // Read after the lock wait, during which the show may have begun.
    let now = state.clock.now();
    if from_utc(row.starts_at) <= now {
        let detail = "This show has begun, so it can no longer be cancelled. The box office can refund its bookings.";
        return Err(Problem::new(Code::SalesClosed, detail));
    }
    if !bookings::call_off_in(&mut begun.tx, show, &request.reason, now).await? {
        return Err(Problem::new(Code::WrongState, "This show is already cancelled. Its page shows the refunds."));
    }
    let row = week::find(&mut begun.tx, action.theatre, show).await?;
    let answer = Answer::json(StatusCode::ACCEPTED, &week::view_of(row)?)?;
    let answer = begun.finish("show_called_off", format!("show {show}"), answer).await?;
    // Immediate on this replica; the others follow within a second.
    state.catalogue.call_off(show).await;
    Ok(answer)
}
