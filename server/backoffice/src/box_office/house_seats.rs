//! House seats: seats kept off sale, with a reason, and put back on sale.
//!
//! The map is built from `shows.blocked`. The lock store blocks seats before the commit and unblocks them after it, so
//! that no request can take a seat the house keeps. After a failure the map is corrected from Postgres. A seat given
//! straight to a guest is never on sale: see `guest_seats`.

use std::collections::BTreeSet;

use domain::api::box_office::HouseSeats;
use domain::seats::{SeatIndex, SeatState};
use domain::time::Timestamp;
use sqlx::PgConnection;
use uuid::Uuid;

use super::{CounterStaff, find};
use crate::BackofficeState;
use crate::organiser::ScreenHouseSeat;
use catalogue::Show;
use http::idempotency::{Answer, Intent};
use http::{ApiResult, Code, Problem};
use identity::accounts::reason_of;
use platform::clock::to_utc;
use platform::database::BindAll;
use seats::seat_locks::{Refusal, with_map};
use selling::{bookings, holds};

/// Maximum number of seats per request.
const MAX_SEATS: usize = 200;

/// Keeps seats off sale, or puts them back; all or none.
///
/// # Errors
/// 404 for another theatre's show. 400 for an invalid request. 409 or 423 when seats to be kept are sold or held, and
/// 409 when a seat has another label than the caller saw.
pub(super) async fn keep(
    state: &BackofficeState,
    counter: CounterStaff<'_>,
    show: Uuid,
    request: &HouseSeats,
    intent: &Intent,
) -> ApiResult<Answer> {
    let now = state.clock.now();
    if let Some(answer) = intent.replay(&state.pg, now).await? {
        return Ok(answer);
    }
    let show = find::show_here(state, counter, show).await?;
    let reason = reason_of(&request.reason)?;
    let seats = known_seats(&show, &request.seats, MAX_SEATS)?;
    check_labels(&show, request)?;
    // A missing map is loaded here: loading takes a connection, which the transaction must not wait for.
    with_map(state, &show, || state.locks.snapshot(show.id)).await?;
    let mut tx = state.pg.begin().await?;
    if let Some(answer) = intent.begin(&mut tx, now).await? {
        return Ok(answer);
    }
    lock_unmoved(&mut tx, &show).await?;
    if request.kept {
        let taken = bookings::claimed_among(&mut tx, show.id, &seats, now).await?;
        if !taken.is_empty() {
            let taken: Vec<_> = taken.into_iter().map(|seat| (seat, SeatState::Booked)).collect();
            return Err(holds::seats_problem(&show, &taken));
        }
    }
    write(&mut tx, show.id, &seats, request.kept, (reason, counter.account()), now).await?;
    let act = if request.kept { "seats_kept" } else { "seats_put_back" };
    let words = format!("{}: {reason}", labels(&show, &seats));
    let subject = format!("show {}", show.id);
    counter.record(&mut tx, act, subject, &words, now).await?;
    let answer = Answer::no_content();
    intent.complete(&mut tx, &answer, now).await?;
    let done = commit(state, &show, &seats, request.kept, tx).await;
    if (done.is_err() || !request.kept)
        && let Err(problem) = follow(state, show.id, &seats).await
    {
        let why = problem.detail();
        tracing::warn!(why, show = %show.id, "correcting the house seats of {} on the map failed", show.id);
    }
    done.map(|()| answer)
}

/// Commits; blocks seats to be kept on the map first.
async fn commit(
    state: &BackofficeState,
    show: &Show,
    seats: &[SeatIndex],
    kept: bool,
    tx: sqlx::Transaction<'_, sqlx::Postgres>,
) -> ApiResult<()> {
    if kept {
        state.locks.block(show.id, seats, true).await?.map_err(|refusal| refused(show, &refusal))?;
    }
    tx.commit().await?;
    Ok(())
}

/// Corrects these seats on the map from Postgres, whether the last change was committed or not. If this fails, the
/// seats stay off sale: an error on the safe side.
///
/// # Errors
/// When the database or the lock store fails.
pub async fn follow(state: &BackofficeState, show: Uuid, seats: &[SeatIndex]) -> ApiResult<()> {
    let mut tx = state.pg.begin().await?;
    // The row lock prevents changes of house seats until the map agrees.
    let (on, off) = kept_among(&mut tx, show, seats).await?;
    for (mut those, is_kept) in [(on, true), (off, false)] {
        if those.is_empty() {
            continue;
        }
        let outcome = state.locks.block(show, &those, is_kept).await?;
        if let Err(Refusal::Taken(taken)) = outcome {
            // The call is all or none: retry without the seats that are held or sold, which the house does not keep.
            those.retain(|seat| taken.iter().all(|(other, _)| other != seat));
            if !those.is_empty() {
                let _best_effort = state.locks.block(show, &those, is_kept).await?;
            }
        }
    }
    tx.commit().await?;
    Ok(())
}

/// Locks a show until the transaction ends.
///
/// # Errors
/// 409 when the show has moved since it was cached: the numbers of its seats are of another room.
pub(super) async fn lock_unmoved(tx: &mut PgConnection, show: &Show) -> ApiResult<()> {
    let sql = "SELECT layout_id FROM shows WHERE id = $1 FOR NO KEY UPDATE";
    let layout: Uuid = sqlx::query_scalar(sql).bind(show.id).fetch_one(tx).await?;
    if layout == show.layout_id { Ok(()) } else { Err(moved()) }
}

fn moved() -> Problem {
    Problem::new(Code::WrongState, "The show has moved to another room. Look at its seats again.")
}

/// Refuses seats whose labels have changed, if the request has the labels that the caller saw.
fn check_labels(show: &Show, request: &HouseSeats) -> ApiResult<()> {
    let Some(labels) = &request.labels else { return Ok(()) };
    if labels.len() != request.seats.len() {
        return Err(Problem::new(Code::Malformed, "`labels` has one label for each of `seats`."));
    }
    let is_same = |(seat, label): (&SeatIndex, &String)| show.label_of(*seat) == *label;
    if request.seats.iter().zip(labels).all(is_same) { Ok(()) } else { Err(moved()) }
}

/// Splits these seats into those the house keeps and those it does not, and locks the show until the transaction ends.
pub(super) async fn kept_among(
    tx: &mut PgConnection,
    show: Uuid,
    seats: &[SeatIndex],
) -> sqlx::Result<(Vec<SeatIndex>, Vec<SeatIndex>)> {
    let sql = "SELECT blocked FROM shows WHERE id = $1 FOR NO KEY UPDATE";
    let kept: Vec<i32> = sqlx::query_scalar(sql).bind(show).fetch_one(tx).await?;
    Ok(seats.iter().copied().partition(|seat| kept.contains(&seat.cast_signed())))
}

/// Records the reasons of house seats for newly planned shows. The caller has written `shows.blocked` together with the
/// shows. The shows are new, so no map needs an update.
pub async fn keep_from_start(
    tx: &mut PgConnection,
    shows: &[Uuid],
    standing: &[ScreenHouseSeat],
    now: Timestamp,
) -> sqlx::Result<()> {
    sqlx::query(
        "INSERT INTO house_seats (show_id, seat_no, reason, kept_by, kept_at, is_standing)
         SELECT show.id, kept.seat_no, kept.reason, kept.kept_by, $5, true
         FROM UNNEST($1::uuid[]) AS show (id)
         CROSS JOIN UNNEST($2::integer[], $3::text[], $4::uuid[]) AS kept (seat_no, reason, kept_by)",
    )
    .bind(shows)
    .bind(standing.iter().map(|kept| kept.seat.cast_signed()).collect::<Vec<_>>())
    .bind(standing.iter().map(|kept| kept.reason.as_str()).collect::<Vec<_>>())
    .bind(standing.iter().map(|kept| kept.by).collect::<Vec<_>>())
    .bind(to_utc(now))
    .execute(tx)
    .await?;
    Ok(())
}

/// Validates seats of a layout: sorted, without duplicates.
pub(super) fn known_seats(show: &Show, seats: &[SeatIndex], most: usize) -> ApiResult<Vec<SeatIndex>> {
    if seats.is_empty() || seats.len() > most {
        return Err(Problem::new(Code::Malformed, format!("Name 1 to {most} seats.")));
    }
    let sorted: BTreeSet<SeatIndex> = seats.iter().copied().collect();
    if sorted.len() < seats.len() {
        return Err(Problem::new(Code::SeatTwice, "Name every seat once."));
    }
    match sorted.iter().find(|seat| !show.has(**seat)) {
        Some(seat) => Err(Problem::new(Code::UnknownSeat, format!("The room has no seat {seat}."))),
        None => Ok(sorted.into_iter().collect()),
    }
}

/// Formats the labels of seats for people.
pub(super) fn labels(show: &Show, seats: &[SeatIndex]) -> String {
    seats.iter().map(|seat| show.label_of(*seat)).collect::<Vec<_>>().join(", ")
}

fn refused(show: &Show, refusal: &Refusal) -> Problem {
    match refusal {
        Refusal::Taken(taken) => holds::seats_problem(show, taken),
        other => Problem::internal(&format!("the lock store keeps no seats: {other:?}")),
    }
}

/// Records in Postgres that the house keeps these seats, or no longer keeps them.
pub async fn write(
    tx: &mut PgConnection,
    show: Uuid,
    seats: &[SeatIndex],
    kept: bool,
    (reason, by): (&str, Uuid),
    now: Timestamp,
) -> sqlx::Result<()> {
    let seats: Vec<i32> = seats.iter().map(|seat| seat.cast_signed()).collect();
    let sql = "UPDATE shows SET blocked = ARRAY(SELECT seat FROM unnest(blocked) AS seat WHERE seat <> ALL($2)
                                                UNION SELECT seat FROM unnest($2::integer[]) AS seat WHERE $3
                                                ORDER BY seat)
               WHERE id = $1";
    sqlx::query(sql).bind_all((show, &seats, kept)).execute(&mut *tx).await?;
    let sql = "DELETE FROM house_seats WHERE show_id = $1 AND seat_no = ANY($2)";
    sqlx::query(sql).bind_all((show, &seats)).execute(&mut *tx).await?;
    if kept {
        let sql = "INSERT INTO house_seats (show_id, seat_no, reason, kept_by, kept_at)
                   SELECT $1, seat, $3, $4, $5 FROM unnest($2::integer[]) AS seat";
        sqlx::query(sql).bind_all((show, &seats, reason, by, to_utc(now))).execute(tx).await?;
    }
    Ok(())
}
