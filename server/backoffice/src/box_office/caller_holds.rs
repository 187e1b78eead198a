//! Holds for callers at the telephone: longer than a moviegoer's hold, under a name, and limited in number per show.
//!
//! The lock store holds the seats, as it holds all others. If the lock store loses them, the seats are free and a sale
//! of them is refused. Postgres records the caller's name and the expiry.

use axum::http::StatusCode;
use chrono::{DateTime, Utc};
use domain::api::box_office::{CallerHold, CallerHoldView, Reason};
use domain::booking::SALES_CLOSE_BEFORE_START_MS;
use domain::person::personal_name;
use domain::seats::{MAX_SEATS_PER_HOLD, SeatIndex};
use domain::time::{MINUTE_MS, Timestamp};
use sqlx::PgConnection;
use uuid::Uuid;

use super::house_seats::{self, labels, lock_unmoved};
use super::{CounterStaff, find};
use crate::BackofficeState;
use catalogue::Show;
use http::idempotency::{Answer, Intent};
use http::{ApiResult, Code, Problem};
use identity::accounts::reason_of;
use platform::clock::{from_utc, to_utc};
use platform::database::BindAll;
use platform::ids;
use seats::seat_locks::{HoldLimits, LockAttempt, Refusal, RequestIdentity, Selection, with_map};
use selling::{holds, waiting_list};

/// Duration of a caller's hold, minutes.
const MINUTES: std::ops::RangeInclusive<u32> = 5..=240;
/// Maximum number of callers with holds in one show at a time.
const MAX_CALLERS: i64 = 30;

/// Holds seats for a caller. 404 for another theatre's show. 400 for an invalid request. 409 or 423 for seats that are
/// not free, when the show is not on sale, when customers are on the waiting list, or when the show has the maximum
/// number of callers' holds.
pub(super) async fn take(
    state: &BackofficeState,
    counter: CounterStaff<'_>,
    show: Uuid,
    request: &CallerHold,
    intent: &Intent,
) -> ApiResult<Answer> {
    let now = state.clock.now();
    if let Some(answer) = intent.replay(&state.pg, now).await? {
        return Ok(answer);
    }
    let show = find::show_here(state, counter, show).await?;
    let seats = house_seats::known_seats(&show, &request.seats, MAX_SEATS_PER_HOLD)?;
    let name = name_of(&request.name)?;
    let length_ms = duration_ms(&show, request.minutes, now)?;
    catalogue::on_sale(&show, now)?;
    if waiting_list::is_reserved(state, &show, &Selection::of_seats(seats.clone())).await? {
        let taken = state.hubs.taken_among(show.id, &seats);
        if !taken.is_empty() {
            return Err(holds::seats_problem(&show, &taken));
        }
        return Err(Problem::new(Code::WaitingListFirst, "Others are waiting for seats like these: they come first."));
    }
    // A missing map is loaded here: loading takes a connection, which the transaction must not wait for.
    with_map(state, &show, || state.locks.snapshot(show.id)).await?;
    let hold = ids::derived_id(&["caller", &counter.account().to_string(), &show.id.to_string(), intent.key()]);
    let owner = format!("caller-{}", hold.simple());
    let mut tx = state.pg.begin().await?;
    if let Some(answer) = intent.begin(&mut tx, now).await? {
        return Ok(answer);
    }
    // The row lock serialises concurrent requests, so that each counts the other's hold.
    lock_unmoved(&mut tx, &show).await?;
    if open_holds(&mut tx, show.id, now).await?.len() as i64 >= MAX_CALLERS {
        return Err(Problem::new(
            Code::WrongState,
            "Seats are held for as many callers as may be. Let some of them go.",
        ));
    }
    let until = now.plus_ms(length_ms);
    let row = HoldRow { hold_id: hold, name: name.to_owned(), seats: to_sql_numbers(&seats), until: to_utc(until) };
    insert(&mut tx, counter, &show, &owner, &row, now).await?;
    // The hold's id, not the caller's name: audit entries are never deleted.
    let words = format!("{} as hold {hold}, until {}.", labels(&show, &seats), show.local_time(until));
    counter.record(&mut tx, "held_for_caller", format!("show {}", show.id), &words, now).await?;
    let answer = Answer::json(StatusCode::CREATED, &view(&show, &row))?;
    // The row and its answer are not committed yet: the seats are locked first, so that no row exists without its
    // seats.
    intent.complete(&mut tx, &answer, now).await?;

    let terms = HoldLimits { per_person: MAX_SEATS_PER_HOLD, length_ms, life_ms: length_ms };
    let asked = RequestIdentity { id: hold, digest: intent.digest() };
    let attempt = LockAttempt { asked, owner: owner.clone(), selection: Selection::of_seats(seats), takes_kept: false };
    let granted = match state.locks.lock(show.id, terms, std::slice::from_ref(&attempt)).await {
        Ok(mut granted) => granted.pop(),
        Err(cause) => {
            // The answer may be lost although the lock was granted: without a row no request could release these seats.
            let _expires_anyway = state.locks.release(show.id, hold, &owner).await;
            return Err(cause.into());
        }
    };
    granted.ok_or_else(|| Problem::internal(&"an attempt without an answer"))?.map_err(|why| refused(&show, &why))?;
    if let Err(cause) = tx.commit().await {
        let _expires_anyway = state.locks.release(show.id, hold, &owner).await;
        return Err(cause.into());
    }
    Ok(answer)
}

fn refused(show: &Show, refusal: &Refusal) -> Problem {
    match refusal {
        Refusal::Taken(taken) => holds::seats_problem(show, taken),
        other => Problem::internal(&format!("the lock store holds nothing for a caller: {other:?}")),
    }
}

fn name_of(text: &str) -> ApiResult<&str> {
    personal_name(text).ok_or_else(|| Problem::new(Code::PersonInvalid, "Say whom the seats are for."))
}

/// Duration of the hold, milliseconds: as requested, but not beyond the end of sales.
fn duration_ms(show: &Show, minutes: u32, now: Timestamp) -> ApiResult<i64> {
    if !MINUTES.contains(&minutes) {
        let detail = format!("Seats are held for {} to {} minutes.", MINUTES.start(), MINUTES.end());
        return Err(Problem::new(Code::Malformed, detail));
    }
    let left = show.starts_at.since(now) - SALES_CLOSE_BEFORE_START_MS;
    Ok((i64::from(minutes) * MINUTE_MS).min(left.max(1)))
}

/// Lists the holds for callers in a show, by name.
///
/// # Errors
/// 404 for another theatre's show.
pub(super) async fn list(
    state: &BackofficeState,
    counter: CounterStaff<'_>,
    show: Uuid,
) -> ApiResult<Vec<CallerHoldView>> {
    let show = find::show_here(state, counter, show).await?;
    let rows = open_holds(&mut *state.pg.acquire().await?, show.id, state.clock.now()).await?;
    Ok(rows.iter().map(|row| view(&show, row)).collect())
}

/// Releases the seats of a caller. 404 for another theatre's show, 409 when no such hold is open.
pub(super) async fn release(
    state: &BackofficeState,
    counter: CounterStaff<'_>,
    (show, hold): (Uuid, Uuid),
    request: &Reason,
    intent: &Intent,
) -> ApiResult<Answer> {
    let now = state.clock.now();
    if let Some(answer) = intent.replay(&state.pg, now).await? {
        return Ok(answer);
    }
    let show = find::show_here(state, counter, show).await?;
    let reason = reason_of(&request.reason)?;
    with_map(state, &show, || state.locks.snapshot(show.id)).await?;
    let mut tx = state.pg.begin().await?;
    if let Some(answer) = intent.begin(&mut tx, now).await? {
        return Ok(answer);
    }
    let sql = "UPDATE caller_holds SET ended_as = 'released'
         WHERE hold_id = $1 AND show_id = $2 AND theatre_id = $3 AND ended_as IS NULL RETURNING owner, seats";
    let ended: Option<(String, Vec<i32>)> =
        sqlx::query_as(sql).bind_all((hold, show.id, counter.theatre)).fetch_optional(&mut *tx).await?;
    let nothing = || Problem::new(Code::WrongState, "Nothing is held for a caller like that (any more).");
    let (owner, seats) = ended.ok_or_else(nothing)?;
    let seats: Vec<SeatIndex> = seats.into_iter().map(i32::cast_unsigned).collect();
    let words = format!("{} of hold {hold}: {reason}", labels(&show, &seats));
    counter.record(&mut tx, "caller_let_go", format!("show {}", show.id), &words, now).await?;
    let answer = Answer::no_content();
    // The transaction is not committed yet: the seats are released first. If they are being sold, nothing is committed.
    intent.complete(&mut tx, &answer, now).await?;
    // An expired hold counts as released.
    match state.locks.release(show.id, hold, &owner).await? {
        Ok(()) | Err(Refusal::Gone) => {}
        Err(Refusal::Paying) => return Err(Problem::new(Code::HoldPaying, "These seats are being sold.")),
        Err(other) => return Err(Problem::internal(&format!("the lock store lets no caller go: {other:?}"))),
    }
    tx.commit().await?;
    Ok(answer)
}

/// Returns the owner of a caller's hold in the lock store; `None` when the show has no such hold.
pub(super) async fn owner_of(
    state: &BackofficeState,
    counter: CounterStaff<'_>,
    show: Uuid,
    hold: Uuid,
) -> sqlx::Result<Option<String>> {
    let sql = "SELECT owner FROM caller_holds
               WHERE hold_id = $1 AND show_id = $2 AND theatre_id = $3 AND ended_as IS NULL";
    sqlx::query_scalar(sql).bind_all((hold, show, counter.theatre)).fetch_optional(&state.pg).await
}

/// Marks a caller's hold as sold; does nothing for any other hold.
pub(super) async fn mark_sold(tx: &mut PgConnection, hold: Uuid) -> sqlx::Result<()> {
    let sql = "UPDATE caller_holds SET ended_as = 'sold' WHERE hold_id = $1 AND ended_as IS NULL";
    sqlx::query(sql).bind(hold).execute(tx).await.map(drop)
}

/// Returns `true` when seats of a show are held for callers.
pub async fn is_held_for_callers(connection: &mut PgConnection, show: Uuid, now: Timestamp) -> sqlx::Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM caller_holds WHERE show_id = $1 AND ended_as IS NULL AND until > $2)";
    sqlx::query_scalar(sql).bind_all((show, to_utc(now))).fetch_one(connection).await
}

/// Returns the name of the caller a seat is held for.
pub(super) async fn name_at(
    connection: &mut PgConnection,
    show: Uuid,
    seat: SeatIndex,
    now: Timestamp,
) -> sqlx::Result<Option<String>> {
    let sql = "SELECT name FROM caller_holds
         WHERE show_id = $1 AND ended_as IS NULL AND until > $2 AND $3 = ANY(seats) ORDER BY held_at DESC LIMIT 1";
    sqlx::query_scalar(sql).bind_all((show, to_utc(now), seat.cast_signed())).fetch_optional(connection).await
}

#[derive(Clone, Debug, platform::FromRow)]
struct HoldRow {
    hold_id: Uuid,
    name: String,
    seats: Vec<i32>,
    until: DateTime<Utc>,
}

async fn open_holds(connection: &mut PgConnection, show: Uuid, now: Timestamp) -> sqlx::Result<Vec<HoldRow>> {
    let sql = "SELECT hold_id, name, seats, until FROM caller_holds
               WHERE show_id = $1 AND ended_as IS NULL AND until > $2 ORDER BY name, hold_id";
    sqlx::query_as(sql).bind_all((show, to_utc(now))).fetch_all(connection).await
}

async fn insert(
    tx: &mut PgConnection,
    counter: CounterStaff<'_>,
    show: &Show,
    owner: &str,
    row: &HoldRow,
    now: Timestamp,
) -> sqlx::Result<()> {
    sqlx::query(
        "INSERT INTO caller_holds (hold_id, theatre_id, show_id, owner, name, seats, held_by, held_at, until)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
    )
    .bind_all((row.hold_id, counter.theatre, show.id, owner, &row.name))
    .bind_all((&row.seats, counter.account(), to_utc(now), row.until))
    .execute(tx)
    .await?;
    Ok(())
}

fn to_sql_numbers(seats: &[SeatIndex]) -> Vec<i32> {
    seats.iter().map(|seat| seat.cast_signed()).collect()
}

fn view(show: &Show, row: &HoldRow) -> CallerHoldView {
    // Seats that a changed layout no longer has are left out.
    let seats: Vec<_> = row
        .seats
        .iter()
        .map(|seat| seat.cast_unsigned())
        .filter(|seat| show.has(*seat))
        .map(|seat| show.line(seat))
        .collect();
    let until = from_utc(row.until);
    let breakdown = show.breakdown(&seats, &[]);
    CallerHoldView {
        hold: row.hold_id,
        name: row.name.clone(),
        total: breakdown.total,
        breakdown: Some(breakdown),
        seats,
        until_ms: until.0,
        until: show.local_iso(until).get(11..16).unwrap_or_default().to_owned(),
    }
}
