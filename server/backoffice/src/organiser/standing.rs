//! Seats a screen keeps for the house in every show planned there: for the house itself, for the press, for a doctor.
//!
//! They are named by what is printed on them, for each room the screen has had. A show that is planned has them off sale
//! from its first moment, with their reasons, and the box office puts them back on sale as any seat the house keeps;
//! shows that are planned already stay as they are. Another room of the screen finds them by name, and names those it
//! has not. What is not here: seats the house keeps in one show alone (`box_office`).

use std::collections::{BTreeMap, BTreeSet};

use axum::http::StatusCode;
use domain::api::organiser::{StandingRequest, StandingSeat, StandingSeats};
use domain::layout::Layout;
use domain::seats::SeatIndex;
use sqlx::PgConnection;
use uuid::Uuid;

use super::sql::standing::{self as sql, StandingRow};
use super::{Act, layouts, sql as queries};
use crate::BackofficeState;
use http::idempotency::Answer;
use http::{Code, Problem};
use identity::accounts::reason_of;

/// Seats a screen keeps for the house at most: each is a row of each of up to 500 shows that are planned at once.
const MAX_STANDING: usize = 200;
/// Seats the room has not that are named in one refusal.
const MAX_NAMED: usize = 10;

/// A seat the house keeps in shows of a screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScreenHouseSeat {
    /// Its number in the room.
    pub seat: SeatIndex,
    /// Its name.
    pub label: String,
    /// Why.
    pub reason: String,
    /// Who said so.
    pub by: Uuid,
}

/// The seats a screen of a theatre keeps for the house.
///
/// # Errors
/// 404 when the theatre has no such screen.
pub async fn list(state: &BackofficeState, theatre: &str, screen: &str) -> Result<StandingSeats, Problem> {
    let mut connection = state.pg.acquire().await?;
    let place = queries::shows::screen(&mut connection, theatre, screen).await?;
    let place = place.ok_or_else(|| Problem::not_found("screen"))?;
    let rows = sql::of_room(&mut connection, screen, place.layout_id).await?;
    Ok(view_of(screen, place.name, place.layout_id, rows))
}

/// Keeps seats for the house in shows planned from now on, or puts them back.
///
/// # Errors
/// 404 for a screen of others, 400 for seats the room has not and for too many, 409 for another room than the screen
/// has by now.
pub async fn keep(
    state: &BackofficeState,
    act: &Act<'_>,
    screen: &str,
    request: &StandingRequest,
) -> Result<Answer, Problem> {
    if let Some(answer) = act.intent.replay(&state.pg, state.clock.now()).await? {
        return Ok(answer);
    }
    reason_of(act.reason)?;
    let wanted = wanted(&request.seats)?;
    // Both take a connection, which the transaction must not wait for. A room that the screen had before may not be the
    // theatre's any more.
    let place = queries::shows::screen(&mut *state.pg.acquire().await?, act.theatre, screen).await?;
    let place = place.ok_or_else(|| Problem::not_found("screen"))?;
    if place.layout_id != request.layout {
        return Err(another_room());
    }
    let room = layouts::room(state, act.theatre, request.layout).await?.layout;
    let known = numbers(room, wanted.clone()).await?;

    let mut begun = match act.begin(state).await? {
        Ok(begun) => begun,
        Err(answer) => return Ok(answer),
    };
    let layout = queries::screens::lock(&mut begun.tx, act.theatre, screen).await?;
    let layout = layout.ok_or_else(|| Problem::not_found("screen"))?;
    if layout != request.layout {
        return Err(another_room());
    }
    let place = (screen, layout);
    let before = sql::of_room(&mut begun.tx, screen, layout).await?;
    let kept: BTreeSet<&str> = before.iter().map(|row| row.label.as_str()).collect();
    let strange = |label: &&String| !known.contains_key(*label) && (request.kept || !kept.contains(label.as_str()));
    let strange: Vec<&str> = wanted.iter().filter(strange).map(String::as_str).take(MAX_NAMED).collect();
    if !strange.is_empty() {
        return Err(Problem::new(Code::UnknownSeat, format!("The room has no seat {}.", strange.join(", "))));
    }
    let labels: Vec<String> = wanted.iter().cloned().collect();
    if request.kept {
        let after = wanted.iter().map(String::as_str).chain(kept).collect::<BTreeSet<_>>().len();
        if after > MAX_STANDING {
            let detail = format!("The house keeps at most {MAX_STANDING} seats of a screen.");
            return Err(Problem::new(Code::Malformed, detail));
        }
        let numbers: Vec<i32> =
            wanted.iter().filter_map(|label| known.get(label)).map(|seat| seat.cast_signed()).collect();
        let who = act.staff.session.account;
        sql::keep(&mut begun.tx, place, (&labels, &numbers), (begun.reason, who), begun.now).await?;
    } else {
        sql::put_back(&mut begun.tx, place, &labels).await?;
    }
    let named = queries::shows::screen(&mut begun.tx, act.theatre, screen).await?;
    let named = named.ok_or_else(|| Problem::not_found("screen"))?;
    let rows = sql::of_room(&mut begun.tx, screen, layout).await?;
    let answer = Answer::json(StatusCode::OK, &view_of(screen, named.name, layout, rows))?;
    let name = if request.kept { "standing_seats_kept" } else { "standing_seats_put_back" };
    begun.done(name, format!("screen {screen}: {}", labels.join(", ")), answer).await
}

fn another_room() -> Problem {
    let detail = "The screen was given another room meanwhile. Look at it again, then choose its seats.";
    Problem::new(Code::WrongState, detail)
}

/// Those a room of this screen has, by their numbers: what shows planned in it keep from the start.
///
/// # Errors
/// When the database fails.
pub async fn of_room(tx: &mut PgConnection, screen: &str, layout: Uuid) -> Result<Vec<ScreenHouseSeat>, sqlx::Error> {
    let rows = sql::of_room(tx, screen, layout).await?;
    let standing = |row: StandingRow| {
        // Checked by the table to be none below 0.
        let seat = row.seat_no?.cast_unsigned();
        Some(ScreenHouseSeat { seat, label: row.label, reason: row.reason, by: row.kept_by })
    };
    Ok(rows.into_iter().filter_map(standing).collect())
}

/// A locked screen of a theatre has another room: the house keeps the seats of the same names there.
pub(super) async fn carry_over(
    tx: &mut PgConnection,
    (theatre, screen): (&str, &str),
    before: Uuid,
    after: Uuid,
) -> Result<(), Problem> {
    let rows = sql::of_room(tx, screen, before).await?;
    let labels: Vec<String> = rows.into_iter().map(|row| row.label).collect();
    let known = if labels.is_empty() {
        BTreeMap::new()
    } else {
        let room = queries::layouts::of_theatre(tx, theatre, after).await?;
        let plan = room.ok_or_else(|| Problem::not_found("layout"))?.plan;
        let reading = tokio::task::spawn_blocking(move || serde_json::from_str::<Layout>(&plan)).await;
        let room = reading.map_err(|cause| Problem::internal(&cause))?.map_err(|cause| Problem::internal(&cause))?;
        numbers(room, labels.iter().cloned().collect()).await?
    };
    let numbers: Vec<Option<i32>> =
        labels.iter().map(|label| known.get(label).map(|seat| seat.cast_signed())).collect();
    Ok(sql::carry_over(tx, screen, (before, after), (&labels, &numbers)).await?)
}

/// What is kept and why, as the audit list has it: `A1, A2: Press; B1: House`.
pub(super) fn in_words(standing: &[ScreenHouseSeat]) -> String {
    let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for kept in standing {
        by_reason.entry(&kept.reason).or_default().push(&kept.label);
    }
    let told = by_reason.iter().map(|(reason, labels)| format!("{}: {reason}", labels.join(", ")));
    told.collect::<Vec<_>>().join("; ")
}

/// Which of these names no seat of the room has.
///
/// # Errors
/// 404 when the theatre has no such room.
pub async fn unknown(
    state: &BackofficeState,
    theatre: &str,
    layout: Uuid,
    labels: &[String],
) -> Result<Vec<String>, Problem> {
    let wanted: BTreeSet<String> = labels.iter().cloned().collect();
    let room = layouts::room(state, theatre, layout).await?.layout;
    let known = numbers(room, wanted.clone()).await?;
    Ok(wanted.into_iter().filter(|label| !known.contains_key(label)).collect())
}

/// The names somebody sent, each once.
fn wanted(seats: &[String]) -> Result<BTreeSet<String>, Problem> {
    let named: BTreeSet<String> = seats.iter().map(|label| label.trim().to_owned()).collect();
    if seats.is_empty() || seats.len() > MAX_STANDING {
        return Err(Problem::new(Code::Malformed, format!("Name 1 to {MAX_STANDING} seats.")));
    }
    if named.len() < seats.len() {
        return Err(Problem::new(Code::SeatTwice, "Name every seat once."));
    }
    Ok(named)
}

/// The seats of these names, as far as the room has them. Looks at every seat: an arena takes long enough that it would
/// hold up every request on this thread.
pub(super) async fn numbers(room: Layout, labels: BTreeSet<String>) -> Result<BTreeMap<String, SeatIndex>, Problem> {
    let looking = tokio::task::spawn_blocking(move || {
        let seats = (0..).zip(room.seats()).filter(|(_, seat)| labels.contains(&seat.label));
        seats.map(|(number, seat)| (seat.label, number)).collect()
    });
    looking.await.map_err(|cause| Problem::internal(&cause))
}

fn view_of(screen: &str, name: String, layout: Uuid, rows: Vec<StandingRow>) -> StandingSeats {
    let seat = |row: StandingRow| StandingSeat {
        label: row.label,
        seat: row.seat_no.map(i32::cast_unsigned),
        reason: row.reason,
        by: row.person,
    };
    let (seats, gone) = rows.into_iter().map(seat).partition(|seat| seat.seat.is_some());
    StandingSeats { screen: screen.to_owned(), name, layout, seats, gone }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seats_are_named_one_to_two_hundred_and_each_once() {
        let named = |labels: &[&str]| wanted(&labels.iter().map(|label| (*label).to_owned()).collect::<Vec<_>>());
        assert_eq!(named(&["B2", " A1 "]).ok(), Some(BTreeSet::from(["A1".to_owned(), "B2".to_owned()])));
        assert!(named(&[]).is_err() && named(&["A1", "A1 "]).is_err());
        let many: Vec<String> = (0..=MAX_STANDING).map(|number| format!("A{number}")).collect();
        assert!(wanted(&many).is_err() && wanted(&many[1..]).is_ok());
    }

    #[test]
    fn the_audit_list_has_every_seat_with_its_reason() {
        let kept = |seat, label: &str, reason: &str| ScreenHouseSeat {
            seat,
            label: label.to_owned(),
            reason: reason.to_owned(),
            by: Uuid::nil(),
        };
        let all = [kept(0, "A1", "Press"), kept(1, "A2", "House"), kept(2, "A3", "Press")];
        assert_eq!(in_words(&all), "A2: House; A1, A3: Press");
    }
}
