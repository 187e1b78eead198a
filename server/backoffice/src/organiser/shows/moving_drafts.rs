//! Moves of a draft to another start, and to another screen of its theatre. A draft has no buyers, so one transaction moves
//! it, under the checks of planning. A published show keeps its start: its buyers know it.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use domain::VariantName;
use domain::api::moving::DraftStart;
use domain::api::organiser::{OrganisedShow, Sales};
use domain::pricing::{ShowSlot, Tariff};
use domain::time::Timestamp;
use sqlx::PgConnection;
use sqlx::types::Json;
use uuid::Uuid;

use super::moving::{MovingShow, check_screen_free, load_show, lock_screens, prices, slot};
use super::week::{self, OrganisedRow};
use super::{LOCAL_MINUTE, read_instant, terms, zone_of};
use crate::BackofficeState;
use crate::organiser::{screens, tariffs};
use crate::relocation::{self, LayoutPair, NewStart, RequestedMove};
use admission::waiting_room;
use catalogue::is_before_close;
use http::idempotency::Answer;
use http::{ApiResult, Code, Problem};
use identity::accounts::StaffAction;
use platform::clock::{from_utc, to_utc};
use platform::database::BindAll;

/// Moves a draft; an empty `screen` is its own. Prices that the tariff gave it follow its start; the others stay, also
/// those of an earlier tariff. The answer has the prices that differ from the tariff.
///
/// # Errors
/// 404 for another theatre's show or screen, 400 for a start that is over or skipped by the clocks, or a category without a
/// price, 409 when another show overlaps, when its waiting room opens too late for the start, and for a show that is
/// published, was changed concurrently or has buyers.
pub(super) async fn move_draft(
    state: &BackofficeState,
    action: &StaffAction<'_>,
    show: Uuid,
    screen: &str,
    start: &DraftStart,
) -> ApiResult<Answer> {
    let theatre = action.theatre;
    let mut connection = state.pg.acquire().await?;
    let known = load_show(&mut connection, theatre, show).await?;
    let own_screen = known.screen_id.clone();
    let screen = if screen.is_empty() { own_screen.as_str() } else { screen };
    let place = screens::facts(&mut connection, theatre, screen).await?;
    let tariff = tariffs::find_tariff(&mut connection, theatre).await?.map(|(tariff, _)| tariff);
    drop(connection);
    let zone = zone_of(&known.time_zone)?;
    let starts_at = to_utc(read_instant(start.at.trim(), zone)?);
    if from_utc(starts_at) <= state.clock.now() {
        return Err(Problem::new(Code::Malformed, "That time is over. Choose a later one."));
    }
    let is_same_screen = known.screen_id == screen;
    let layout = if is_same_screen { known.layout_id } else { place.layout_id };
    let rooms = LayoutPair::load(state, known.layout_id, layout).await?;
    let slots = (slot(known.starts_at, zone, &known.format)?, slot(starts_at, zone, &known.format)?);
    let own = other_than_tariff(&known.prices.0, tariff.as_ref(), slots.0);
    let moved = MovingShow { starts_at, prices: Json(own), ..known };
    let prices = prices(state, theatre, &moved, &rooms.after, zone).await?;
    let kept_prices = other_than_tariff(&prices, tariff.as_ref(), slots.1);

    let mut begun = match action.begin(state).await? {
        Ok(begun) => begun,
        Err(answer) => return Ok(answer),
    };
    lock_screens(&mut begun.tx, theatre, &moved.screen_id, (screen, place.layout_id)).await?;
    week::lock(&mut begun.tx, theatre, show).await?;
    let row = week::find(&mut begun.tx, theatre, show).await?;
    require_draft(&row, moved.terms_version, start.version, begun.now)?;
    relocation::lock_against_bookings(&mut begun.tx, show).await?;
    require_room_opens_in_time(&mut begun.tx, show, starts_at, zone).await?;
    terms::require_no_buyers(&mut begun.tx, &row, begun.now).await?;
    if terms::is_bought(&mut begun.tx, show).await? {
        return Err(Problem::new(Code::WrongState, "Seats of this show are taken, so its guests know its time."));
    }
    check_screen_free(&mut begun.tx, show, &moved, (screen, &place.name), zone).await?;
    let new_start = NewStart { at: starts_at, day: starts_at.with_timezone(&zone).date_naive() };
    if is_same_screen {
        set_start(&mut begun.tx, show, start.version, new_start, &prices).await?;
    } else {
        let reason = begun.reason.to_owned();
        let requested = RequestedMove { show, screen: screen.to_owned(), layout, prices, reason };
        relocation::move_at_once(&mut begun.tx, &requested, &rooms, new_start, begun.now).await?;
    }
    terms::release_holds(state, show).await?;
    let row = week::find(&mut begun.tx, theatre, show).await?;
    let view = OrganisedShow { kept_prices, ..week::of_row(&mut begun.tx, row).await? };
    let answer = Answer::json(StatusCode::OK, &view)?;
    let local = starts_at.with_timezone(&zone).format(LOCAL_MINUTE).to_string();
    let subject = format!("show {show} to {local} on screen {screen}");
    let answer = begun.finish("draft_moved", subject, answer).await?;
    state.catalogue.evict(show).await;
    Ok(answer)
}

/// Fails unless the locked row is a draft of the version that the request names and that was read before the lock.
fn require_draft(row: &OrganisedRow, read: i32, requested: u32, now: Timestamp) -> ApiResult<()> {
    let refuse = |detail: &str| Err(Problem::new(Code::WrongState, detail));
    if row.called_off || from_utc(row.starts_at) <= now {
        return Err(Problem::new(Code::SalesClosed, "This show is over, or will not take place."));
    }
    if row.sales != Sales::Planned.as_str() {
        return refuse("This show is published, so its time stays. Cancel it, and plan another.");
    }
    if row.is_moving {
        return refuse("This show is being moved to another screen. Please try again in a few seconds.");
    }
    if row.terms_version != read || read.unsigned_abs() != requested {
        return refuse("Someone else has changed this show in the meantime. Look at it again, then move it.");
    }
    Ok(())
}

/// Fails when booking for this start closes before the waiting room of the locked show opens.
async fn require_room_opens_in_time(
    tx: &mut PgConnection,
    show: Uuid,
    starts_at: DateTime<Utc>,
    zone: Tz,
) -> ApiResult<()> {
    let opens_at = waiting_room::opening_of(tx, show).await?;
    let Some(opens_at) = opens_at.filter(|opens_at| !is_before_close(from_utc(starts_at), *opens_at)) else {
        return Ok(());
    };
    let opens = to_utc(opens_at).with_timezone(&zone).format("%a %-d %b %H:%M");
    let detail = format!("Its waiting room opens on {opens}, too late for this start. Change the room first.");
    Err(Problem::new(Code::WrongState, detail))
}

/// Returns the prices of a show that are not the tariff's for its start, minor units by category.
///
/// # Errors
/// 404 for another theatre's show.
pub async fn own_prices(state: &BackofficeState, theatre: &str, show: Uuid) -> ApiResult<BTreeMap<String, i64>> {
    let mut connection = state.pg.acquire().await?;
    let show = load_show(&mut connection, theatre, show).await?;
    let tariff = tariffs::find_tariff(&mut connection, theatre).await?.map(|(tariff, _)| tariff);
    let slot = slot(show.starts_at, zone_of(&show.time_zone)?, &show.format)?;
    Ok(other_than_tariff(&show.prices.0, tariff.as_ref(), slot))
}

/// The prices that are not the tariff's for this slot.
fn other_than_tariff(prices: &BTreeMap<String, i64>, tariff: Option<&Tariff>, slot: ShowSlot) -> BTreeMap<String, i64> {
    let Some(tariff) = tariff else { return prices.clone() };
    let is_of_tariff = |name: &str, minor: i64| tariff.price_minor(name, slot).is_ok_and(|price| price == minor);
    let own = prices.iter().filter(|(name, minor)| !is_of_tariff(name, **minor));
    own.map(|(name, minor)| (name.clone(), *minor)).collect()
}

/// Gives a locked draft its start on the same screen. `terms_at` stays, because it is the time since which no server sells
/// the show; servers do not cache drafts.
async fn set_start(
    tx: &mut PgConnection,
    show: Uuid,
    version: u32,
    start: NewStart,
    prices: &BTreeMap<String, i64>,
) -> sqlx::Result<()> {
    let sql = "UPDATE shows SET starts_at = $3, local_date = $4, prices = $5, terms_version = terms_version + 1
               WHERE id = $1 AND terms_version = $2 AND sales = 'planned' AND NOT called_off AND NOT is_moving";
    let moved =
        sqlx::query(sql).bind_all((show, version.cast_signed(), start.at, start.day, Json(prices))).execute(tx).await?;
    if moved.rows_affected() == 1 { Ok(()) } else { Err(sqlx::Error::RowNotFound) }
}
