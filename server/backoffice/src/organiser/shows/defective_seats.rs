//! Takes defective seats out of sale at once, in one show or in every planned show of its screen.
//!
//! `bookings` refunds their buyers and sends the notices.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use axum::http::StatusCode;
use domain::api::organiser::{DefectiveSeatsRequest, DefectiveSeatsView};
use domain::seats::SeatIndex;
use domain::time::Timestamp;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::organiser::standing::{distinct_labels, numbers};
use crate::{BackofficeState, box_office};
use http::idempotency::Answer;
use http::{ApiResult, Code, Problem};
use identity::accounts::StaffAction;
use platform::clock::to_utc;
use platform::database::BindAll;
use seats::seat_locks::StoreError;
use selling::bookings;

/// Maximum number of seats per request: each is a row per planned show.
const MAX_SEATS: usize = 20;
/// Maximum number of planned shows per request.
const MAX_SHOWS: usize = 500;
/// Maximum number of listed shows whose layout lacks a seat.
const MAX_NAMED: usize = 10;

/// A show and its seats that go off sale.
struct ShowSeats {
    show: Uuid,
    layout: Uuid,
    seats: Vec<SeatIndex>,
}

/// Takes seats out of sale. Their buyers are refunded within seconds; holds lose them at once.
///
/// # Errors
/// 404 for another theatre's show, 400 for unknown seats, 409 for a show that has begun or was called off.
pub async fn withdraw(
    state: &BackofficeState,
    action: &StaffAction<'_>,
    show: Uuid,
    request: &DefectiveSeatsRequest,
) -> ApiResult<Answer> {
    if let Some(answer) = action.intent.replay(&state.pg, state.clock.now()).await? {
        return Ok(answer);
    }
    let wanted = distinct_labels(&request.seats, MAX_SEATS)?;
    // Layouts are loaded before the transaction, which must not wait for another connection.
    let scope = (action.theatre, show, request.all_shows);
    let planned = planned_on_screen(&mut *state.pg.acquire().await?, scope, state.clock.now()).await?;
    let (parts, elsewhere) = parts_of(state, show, planned, &wanted).await?;

    let mut begun = match action.begin(state).await? {
        Ok(begun) => begun,
        Err(answer) => return Ok(answer),
    };
    let (now, who, reason) = (begun.now, action.staff.session.account, begun.reason);
    let ids: Vec<Uuid> = parts.iter().map(|part| part.show).collect();
    let locked = lock_planned(&mut begun.tx, &ids, now).await?;
    if locked != parts.iter().map(|part| (part.show, part.layout)).collect::<Vec<_>>() {
        let detail = "A show of this screen was moved or cancelled, or has begun meanwhile. Please look again.";
        return Err(Problem::new(Code::WrongState, detail));
    }
    let mut affected = 0;
    for ShowSeats { show, layout, seats, .. } in &parts {
        box_office::write_house_seats(&mut begun.tx, *show, seats, true, (reason, who), now).await?;
        bookings::withdraw_seats_in(&mut begun.tx, (*show, *layout), seats, reason, now).await?;
        affected += bookings::bookings_with(&mut begun.tx, *show, seats).await?.len();
    }
    let names: Vec<String> = wanted.into_iter().collect();
    let view = DefectiveSeatsView {
        seats: names.clone(),
        shows: u32::try_from(parts.len()).unwrap_or(u32::MAX),
        bookings: u32::try_from(affected).unwrap_or(u32::MAX),
        elsewhere: elsewhere.into_iter().take(MAX_NAMED).collect(),
    };
    let others = if request.all_shows { format!(" and {} more of its screen", parts.len() - 1) } else { String::new() };
    let subject = format!("show {show}{others}: {}", names.join(", "));
    let answer = Answer::json(StatusCode::ACCEPTED, &view)?;
    for part in &parts {
        take_off_map(state, part).await?;
    }
    let done = begun.finish("defective_seats", subject, answer).await;
    if done.is_err() {
        for ShowSeats { show, seats, .. } in &parts {
            if let Err(problem) = box_office::correct_house_seats_on_map(state, *show, seats).await {
                let why = problem.detail();
                tracing::warn!(why, %show, "restoring the house seats of {show} on the map failed");
            }
        }
    }
    done
}

/// Takes seats off the map, before the commit. If the map is not loaded or the lock store is unavailable, the worker in
/// `bookings` corrects the map later.
async fn take_off_map(state: &BackofficeState, part: &ShowSeats) -> ApiResult<()> {
    match state.locks.withdraw(part.show, &part.seats).await {
        Ok(Ok(_)) | Err(StoreError::NoMap(_)) => Ok(()),
        Ok(Err(refusal)) => Err(Problem::internal(&format!("the lock store withdraws no seats: {refusal:?}"))),
        Err(cause) => {
            tracing::warn!(%cause, show = %part.show, "withdrawing defective seats of {} from the map failed; the worker retries", part.show);
            Ok(())
        }
    }
}

/// Resolves the labels in each of these shows. Also returns the shows whose layout lacks one of them.
async fn parts_of(
    state: &BackofficeState,
    show: Uuid,
    planned: Vec<(Uuid, Uuid)>,
    wanted: &BTreeSet<String>,
) -> ApiResult<(Vec<ShowSeats>, Vec<Uuid>)> {
    if !planned.iter().any(|(id, _)| *id == show) {
        return Err(Problem::new(Code::WrongState, "This show has begun or was cancelled."));
    }
    let mut rooms: BTreeMap<Uuid, BTreeMap<String, SeatIndex>> = BTreeMap::new();
    let (mut parts, mut elsewhere) = (Vec::new(), Vec::new());
    for (id, layout) in planned {
        if let Entry::Vacant(room) = rooms.entry(layout) {
            let found = state.catalogue.find_show(id).await?;
            if found.layout_id != layout {
                return Err(Problem::new(
                    Code::WrongState,
                    "The show is being moved to another room. Please look again.",
                ));
            }
            room.insert(numbers((*found.layout).clone(), wanted.clone()).await?);
        }
        let known = rooms.get(&layout).ok_or_else(|| Problem::not_found("layout"))?;
        if id == show
            && let Some(strange) = wanted.iter().find(|label| !known.contains_key(*label))
        {
            return Err(Problem::new(Code::UnknownSeat, format!("The room has no seat {strange}.")));
        }
        let mut seats: Vec<SeatIndex> = known.values().copied().collect();
        seats.sort_unstable();
        if seats.len() < wanted.len() {
            elsewhere.push(id);
        }
        if !seats.is_empty() {
            parts.push(ShowSeats { show: id, layout, seats });
        }
    }
    Ok((parts, elsewhere))
}

/// Returns this show of a theatre, or all planned shows of its screen, each with its layout, by id. Shows that have
/// begun or were called off are excluded.
async fn planned_on_screen(
    connection: &mut PgConnection,
    (theatre, show, all_shows): (&str, Uuid, bool),
    now: Timestamp,
) -> ApiResult<Vec<(Uuid, Uuid)>> {
    let screen: Option<String> = sqlx::query_scalar(
        "SELECT screen_id FROM shows WHERE id = $2 AND screen_id IN (SELECT id FROM screens WHERE theatre_id = $1)",
    )
    .bind_all((theatre, show))
    .fetch_optional(&mut *connection)
    .await?;
    let screen = screen.ok_or_else(|| Problem::not_found("show"))?;
    let planned: Vec<(Uuid, Uuid)> = sqlx::query_as(
        "SELECT id, layout_id FROM shows
         WHERE screen_id = $1 AND starts_at > $2 AND NOT called_off AND (id = $3 OR $4) ORDER BY id LIMIT $5",
    )
    .bind_all((screen, to_utc(now), show, all_shows, MAX_SHOWS as i64 + 1))
    .fetch_all(connection)
    .await?;
    if planned.len() > MAX_SHOWS {
        let detail =
            format!("More than {MAX_SHOWS} shows are planned on this screen. Take the seats out show by show.");
        return Err(Problem::new(Code::Malformed, detail));
    }
    Ok(planned)
}

/// Locks these shows in the order of their ids. Returns those that are still planned, each with its layout.
async fn lock_planned(tx: &mut PgConnection, shows: &[Uuid], now: Timestamp) -> sqlx::Result<Vec<(Uuid, Uuid)>> {
    let sql = "SELECT id FROM shows WHERE id = ANY($1) ORDER BY id FOR NO KEY UPDATE";
    sqlx::query_scalar::<_, Uuid>(sql).bind(shows).fetch_all(&mut *tx).await?;
    let sql = "SELECT id, layout_id FROM shows WHERE id = ANY($1) AND starts_at > $2 AND NOT called_off ORDER BY id";
    sqlx::query_as(sql).bind_all((shows, to_utc(now))).fetch_all(tx).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_to_twenty_distinct_seats_are_accepted() {
        let labels = |seats: &[String]| distinct_labels(seats, MAX_SEATS);
        let named = |seats: &[&str]| labels(&seats.iter().map(|label| (*label).to_owned()).collect::<Vec<_>>());
        assert_eq!(named(&["B2", " A1 "]).ok(), Some(BTreeSet::from(["A1".to_owned(), "B2".to_owned()])));
        assert!(named(&[]).is_err() && named(&["A1", "A1 "]).is_err());
        let many: Vec<String> = (0..=MAX_SEATS).map(|number| format!("A{number}")).collect();
        assert!(labels(&many).is_err() && labels(&many[1..]).is_ok());
    }
}
