//! Seats the house keeps: off sale, with a reason, and back on sale.
//!
//! `shows.blocked` is what the map is built from. The lock store hears of seats to be kept before that is committed, and
//! of those put back after it, so that nobody can take a seat the house has. Where anything fails, the map follows
//! Postgres. One that goes straight to its guest is never on sale: `guest_seats`.

use std::collections::BTreeSet;

use domain::api::box_office::HouseSeats;
use domain::seats::{SeatIndex, SeatState};
use domain::time::Timestamp;
use sqlx::PgConnection;
use uuid::Uuid;

use super::{Counter, find};
use crate::BackofficeState;
use crate::organiser::ScreenHouseSeat;
use catalogue::Show;
use http::idempotency::{Answer, Intent};
use http::{Code, Problem};
use identity::accounts::reason_of;
use identity::audit::{self, Entry as Act};
use platform::clock::to_utc;
use seats::seat_locks::{Refusal, with_map};
use selling::{bookings, holds};

/// Seats kept or put back at once, at most.
const MAX_SEATS: usize = 200;

/// Keeps seats off sale, or puts them back; all or none.
///
/// # Errors
/// 404 for another theatre's show, 400 for what cannot be read, 409 or 423 for seats to be kept that are sold or held.
pub(super) async fn keep(
    state: &BackofficeState,
    counter: Counter<'_>,
    show: Uuid,
    request: &HouseSeats,
    intent: &Intent,
) -> Result<Answer, Problem> {
    let now = state.clock.now();
    if let Some(answer) = intent.replay(&state.pg, now).await? {
        return Ok(answer);
    }
    let show = find::show_here(state, counter, show).await?;
    let reason = reason_of(&request.reason)?;
    let seats = known_seats(&show, &request.seats, MAX_SEATS)?;
    // Loads the map where there is none: that takes a connection, which the transaction must not wait for.
    with_map(state, &show, || state.locks.snapshot(show.id)).await?;
    let mut tx = state.pg.begin().await?;
    if let Some(answer) = intent.begin(&mut tx, now).await? {
        return Ok(answer);
    }
    if request.kept {
        let taken = bookings::claimed_among(&mut tx, show.id, &seats, now).await?;
        if !taken.is_empty() {
            let taken: Vec<_> = taken.into_iter().map(|seat| (seat, SeatState::Booked)).collect();
            return Err(holds::seats_problem(&show, &taken));
        }
    }
    write(&mut tx, show.id, &seats, request.kept, (reason, counter.account()), now).await?;
    let labels = seats.iter().map(|seat| show.label_of(*seat)).collect::<Vec<_>>().join(", ");
    let act = if request.kept { "seats_kept" } else { "seats_put_back" };
    let words = format!("{labels}: {reason}");
    let subject = format!("show {}", show.id);
    audit::record(&mut tx, &Act::by(counter.account(), act, subject, &words).at(counter.theatre), now).await?;
    let answer = Answer::no_content();
    intent.complete(&mut tx, &answer, now).await?;
    let done = commit(state, &show, &seats, request.kept, tx).await;
    if (done.is_err() || !request.kept)
        && let Err(problem) = follow(state, show.id, &seats).await
    {
        let why = problem.detail();
        tracing::warn!(why, show = %show.id, "the map of {} may show house seats as they are not", show.id);
    }
    done.map(|()| answer)
}

/// Seats to be kept are off the map first.
async fn commit(
    state: &BackofficeState,
    show: &Show,
    seats: &[SeatIndex],
    kept: bool,
    tx: sqlx::Transaction<'_, sqlx::Postgres>,
) -> Result<(), Problem> {
    if kept {
        state.locks.block(show.id, seats, true).await?.map_err(|refusal| refused(show, &refusal))?;
    }
    tx.commit().await?;
    Ok(())
}

/// Puts these seats on the map as Postgres has them, whether the last change of it came through or not. Where that fails
/// they stay off sale, which harms nobody.
///
/// # Errors
/// When the database or the lock store fails.
pub async fn follow(state: &BackofficeState, show: Uuid, seats: &[SeatIndex]) -> Result<(), Problem> {
    let mut tx = state.pg.begin().await?;
    // Nobody keeps them, or puts them back, until the map agrees.
    let (on, off) = kept_among(&mut tx, show, seats).await?;
    for (mut those, is_kept) in [(on, true), (off, false)] {
        if those.is_empty() {
            continue;
        }
        let told = state.locks.block(show, &those, is_kept).await?;
        if let Err(Refusal::Taken(taken)) = told {
            // All or none: without those that are somebody's, and so were not kept.
            those.retain(|seat| taken.iter().all(|(other, _)| other != seat));
            if !those.is_empty() {
                let _as_good_as_it_gets = state.locks.block(show, &those, is_kept).await?;
            }
        }
    }
    tx.commit().await?;
    Ok(())
}

/// Which of these seats the house keeps, and which it does not, for as long as the transaction lasts.
pub(super) async fn kept_among(
    tx: &mut PgConnection,
    show: Uuid,
    seats: &[SeatIndex],
) -> Result<(Vec<SeatIndex>, Vec<SeatIndex>), sqlx::Error> {
    let kept: Vec<i32> = sqlx::query_scalar("SELECT blocked FROM shows WHERE id = $1 FOR NO KEY UPDATE")
        .bind(show)
        .fetch_one(tx)
        .await?;
    Ok(seats.iter().copied().partition(|seat| kept.contains(&seat.cast_signed())))
}

/// Notes why the house keeps seats of shows since they were planned there; `shows.blocked` has them already, written by
/// whoever writes the shows. Nobody has seen these shows: there is no map to be told.
///
/// # Errors
/// When the database fails.
pub async fn keep_from_start(
    tx: &mut PgConnection,
    shows: &[Uuid],
    standing: &[ScreenHouseSeat],
    now: Timestamp,
) -> Result<(), sqlx::Error> {
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

/// Seats of the room, each once, in order.
pub(super) fn known_seats(show: &Show, seats: &[SeatIndex], most: usize) -> Result<Vec<SeatIndex>, Problem> {
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

fn refused(show: &Show, refusal: &Refusal) -> Problem {
    match refusal {
        Refusal::Taken(taken) => holds::seats_problem(show, taken),
        other => Problem::internal(&format!("the lock store keeps no seats: {other:?}")),
    }
}

/// Notes in Postgres that the house keeps these seats, or keeps them no more.
///
/// # Errors
/// When the database fails.
pub async fn write(
    tx: &mut PgConnection,
    show: Uuid,
    seats: &[SeatIndex],
    kept: bool,
    (reason, by): (&str, Uuid),
    now: Timestamp,
) -> Result<(), sqlx::Error> {
    let seats: Vec<i32> = seats.iter().map(|seat| seat.cast_signed()).collect();
    sqlx::query(
        "UPDATE shows SET blocked = ARRAY(SELECT seat FROM unnest(blocked) AS seat WHERE seat <> ALL($2)
                                          UNION SELECT seat FROM unnest($2::integer[]) AS seat WHERE $3
                                          ORDER BY seat)
         WHERE id = $1",
    )
    .bind(show)
    .bind(&seats)
    .bind(kept)
    .execute(&mut *tx)
    .await?;
    sqlx::query("DELETE FROM house_seats WHERE show_id = $1 AND seat_no = ANY($2)")
        .bind(show)
        .bind(&seats)
        .execute(&mut *tx)
        .await?;
    if kept {
        sqlx::query(
            "INSERT INTO house_seats (show_id, seat_no, reason, kept_by, kept_at)
             SELECT $1, seat, $3, $4, $5 FROM unnest($2::integer[]) AS seat",
        )
        .bind(show)
        .bind(&seats)
        .bind(reason)
        .bind(by)
        .bind(to_utc(now))
        .execute(tx)
        .await?;
    }
    Ok(())
}
