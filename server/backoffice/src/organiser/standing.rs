//! Standing house seats: seats that a screen keeps off sale in each show planned there, for the house, the press or a
//! doctor.
//!
//! They are stored by seat label, for each layout the screen has had. A new show has them off sale from its creation,
//! with their reasons; the box office can put them back on sale like other house seats. Shows planned before stay
//! unchanged. A new layout of the screen takes them over by label, and lists labels it lacks. Elsewhere: house seats of
//! a single show (`box_office`).

use std::collections::{BTreeMap, BTreeSet};

use axum::http::StatusCode;
use domain::api::organiser::{ScreenHouseSeatView, ScreenHouseSeats, ScreenHouseSeatsRequest};
use domain::layout::Layout;
use domain::seats::SeatIndex;
use domain::time::Timestamp;
use sqlx::PgConnection;
use uuid::Uuid;

use super::{layouts, screens};
use crate::BackofficeState;
use http::idempotency::Answer;
use http::{ApiResult, Code, Problem};
use identity::accounts::{StaffAction, reason_of};
use platform::clock::to_utc;
use platform::database::BindAll;

/// Maximum number of standing seats per screen: each is a row in each of up to 500 shows per plan.
const MAX_STANDING: usize = 200;
/// Maximum number of unknown seats in a problem's detail.
const MAX_NAMED: usize = 10;

/// A standing house seat of a screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScreenHouseSeat {
    /// Seat number in the layout.
    pub seat: SeatIndex,
    /// Seat label.
    pub label: String,
    /// The reason.
    pub reason: String,
    /// The account that decided it.
    pub by: Uuid,
}

/// Lists the standing seats of a screen.
///
/// # Errors
/// 404 when the theatre has no such screen.
pub async fn list(state: &BackofficeState, theatre: &str, screen: &str) -> ApiResult<ScreenHouseSeats> {
    let mut connection = state.pg.acquire().await?;
    let place = screens::facts(&mut connection, theatre, screen).await?;
    let rows = rows_of(&mut connection, screen, place.layout_id).await?;
    Ok(view_of(screen, place.name, place.layout_id, rows))
}

/// Adds standing seats for future plans, or removes them.
///
/// # Errors
/// 404 for another theatre's screen. 400 for unknown or too many seats. 409 when the screen has another layout by now.
pub async fn keep(
    state: &BackofficeState,
    action: &StaffAction<'_>,
    screen: &str,
    request: &ScreenHouseSeatsRequest,
) -> ApiResult<Answer> {
    if let Some(answer) = action.intent.replay(&state.pg, state.clock.now()).await? {
        return Ok(answer);
    }
    reason_of(action.reason)?;
    let wanted = distinct_labels(&request.seats, MAX_STANDING)?;
    // Both take a connection, which the transaction must not wait for. A former layout of the screen may no longer
    // belong to the theatre.
    let place = screens::facts(&mut *state.pg.acquire().await?, action.theatre, screen).await?;
    if place.layout_id != request.layout {
        return Err(layout_changed());
    }
    let room = layouts::room(state, action.theatre, request.layout).await?.layout;
    let known = numbers(room, wanted.clone()).await?;

    let mut begun = match action.begin(state).await? {
        Ok(begun) => begun,
        Err(answer) => return Ok(answer),
    };
    let layout = screens::lock(&mut begun.tx, action.theatre, screen).await?;
    let layout = layout.ok_or_else(|| Problem::not_found("screen"))?;
    if layout != request.layout {
        return Err(layout_changed());
    }
    let place = (screen, layout);
    let before = rows_of(&mut begun.tx, screen, layout).await?;
    let kept: BTreeSet<&str> = before.iter().map(|row| row.label.as_str()).collect();
    let is_unknown = |label: &&String| !known.contains_key(*label) && (request.kept || !kept.contains(label.as_str()));
    let unknown_labels: Vec<&str> = wanted.iter().filter(is_unknown).map(String::as_str).take(MAX_NAMED).collect();
    if !unknown_labels.is_empty() {
        return Err(Problem::new(Code::UnknownSeat, format!("The room has no seat {}.", unknown_labels.join(", "))));
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
        let who = action.staff.session.account;
        insert(&mut begun.tx, place, (&labels, &numbers), (begun.reason, who), begun.now).await?;
    } else {
        delete(&mut begun.tx, place, &labels).await?;
    }
    let named = screens::facts(&mut begun.tx, action.theatre, screen).await?;
    let rows = rows_of(&mut begun.tx, screen, layout).await?;
    let answer = Answer::json(StatusCode::OK, &view_of(screen, named.name, layout, rows))?;
    let name = if request.kept { "standing_seats_kept" } else { "standing_seats_put_back" };
    begun.finish(name, format!("screen {screen}: {}", labels.join(", ")), answer).await
}

fn layout_changed() -> Problem {
    let detail = "The screen was given another room meanwhile. Look at it again, then choose its seats.";
    Problem::new(Code::WrongState, detail)
}

/// Returns a screen's standing seats that a layout has, with their seat numbers. Shows planned with it keep them off
/// sale.
pub async fn of_room(tx: &mut PgConnection, screen: &str, layout: Uuid) -> sqlx::Result<Vec<ScreenHouseSeat>> {
    let rows = rows_of(tx, screen, layout).await?;
    let standing = |row: StandingRow| {
        // A table constraint excludes negative numbers.
        let seat = row.seat_no?.cast_unsigned();
        Some(ScreenHouseSeat { seat, label: row.label, reason: row.reason, by: row.kept_by })
    };
    Ok(rows.into_iter().filter_map(standing).collect())
}

/// Carries standing seats over to the new layout of a locked screen, by label.
pub(super) async fn carry_over(
    tx: &mut PgConnection,
    (theatre, screen): (&str, &str),
    before: Uuid,
    after: Uuid,
) -> ApiResult<()> {
    let rows = rows_of(tx, screen, before).await?;
    let labels: Vec<String> = rows.into_iter().map(|row| row.label).collect();
    let known = if labels.is_empty() {
        BTreeMap::new()
    } else {
        let room = layouts::of_theatre(tx, theatre, after).await?;
        let plan = room.ok_or_else(|| Problem::not_found("layout"))?.plan;
        let reading = tokio::task::spawn_blocking(move || serde_json::from_str::<Layout>(&plan)).await;
        let room = reading.map_err(|cause| Problem::internal(&cause))?.map_err(|cause| Problem::internal(&cause))?;
        numbers(room, labels.iter().cloned().collect()).await?
    };
    let numbers: Vec<Option<i32>> =
        labels.iter().map(|label| known.get(label).map(|seat| seat.cast_signed())).collect();
    Ok(copy(tx, screen, (before, after), (&labels, &numbers)).await?)
}

/// Formats standing seats and reasons for the audit list: `A1, A2: Press; B1: House`.
pub(super) fn format_reasons(standing: &[ScreenHouseSeat]) -> String {
    let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for kept in standing {
        by_reason.entry(&kept.reason).or_default().push(&kept.label);
    }
    let entries = by_reason.iter().map(|(reason, labels)| format!("{}: {reason}", labels.join(", ")));
    entries.collect::<Vec<_>>().join("; ")
}

/// Returns the labels that the layout lacks.
///
/// # Errors
/// 404 when the theatre has no such layout.
pub async fn unknown(
    state: &BackofficeState,
    theatre: &str,
    layout: Uuid,
    labels: &[String],
) -> ApiResult<Vec<String>> {
    let wanted: BTreeSet<String> = labels.iter().cloned().collect();
    let room = layouts::room(state, theatre, layout).await?.layout;
    let known = numbers(room, wanted.clone()).await?;
    Ok(wanted.into_iter().filter(|label| !known.contains_key(label)).collect())
}

/// Validates seat labels and rejects duplicates.
pub(super) fn distinct_labels(seats: &[String], most: usize) -> ApiResult<BTreeSet<String>> {
    let named: BTreeSet<String> = seats.iter().map(|label| label.trim().to_owned()).collect();
    if seats.is_empty() || seats.len() > most {
        return Err(Problem::new(Code::Malformed, format!("Name 1 to {most} seats.")));
    }
    if named.len() < seats.len() {
        return Err(Problem::new(Code::SeatTwice, "Name every seat once."));
    }
    Ok(named)
}

/// Returns the seat numbers of these labels, as far as the layout has them. Scans all seats on a blocking thread: for
/// an arena that is slow.
pub(super) async fn numbers(room: Layout, labels: BTreeSet<String>) -> ApiResult<BTreeMap<String, SeatIndex>> {
    let looking = tokio::task::spawn_blocking(move || {
        let seats = (0..).zip(room.seats()).filter(|(_, seat)| labels.contains(&seat.label));
        seats.map(|(number, seat)| (seat.label, number)).collect()
    });
    looking.await.map_err(|cause| Problem::internal(&cause))
}

fn view_of(screen: &str, name: String, layout: Uuid, rows: Vec<StandingRow>) -> ScreenHouseSeats {
    let seat = |row: StandingRow| ScreenHouseSeatView {
        label: row.label,
        seat: row.seat_no.map(i32::cast_unsigned),
        reason: row.reason,
        by: row.person,
    };
    let (seats, gone) = rows.into_iter().map(seat).partition(|seat| seat.seat.is_some());
    ScreenHouseSeats { screen: screen.to_owned(), name, layout, seats, gone }
}

/// A standing house seat of a screen.
#[derive(Clone, Debug, platform::FromRow)]
struct StandingRow {
    pub label: String,
    pub seat_no: Option<i32>,
    pub reason: String,
    pub kept_by: Uuid,
    pub person: String,
}

/// Returns a screen's standing seats for one layout, in seat order; seats the layout lacks come last.
async fn rows_of(connection: &mut PgConnection, screen: &str, layout: Uuid) -> sqlx::Result<Vec<StandingRow>> {
    let sql = "SELECT kept.label, kept.seat_no, kept.reason, kept.kept_by, account.name AS person
               FROM standing_house_seats kept JOIN accounts account ON account.id = kept.kept_by
               WHERE kept.screen_id = $1 AND kept.layout_id = $2 ORDER BY kept.seat_no NULLS LAST, kept.label";
    sqlx::query_as(sql).bind_all((screen, layout)).fetch_all(connection).await
}

/// Inserts standing seats; updates the reason of existing ones.
async fn insert(
    tx: &mut PgConnection,
    (screen, layout): (&str, Uuid),
    (labels, numbers): (&[String], &[i32]),
    (reason, who): (&str, Uuid),
    now: Timestamp,
) -> sqlx::Result<()> {
    let sql = "INSERT INTO standing_house_seats (screen_id, layout_id, label, seat_no, reason, kept_by, kept_at)
               SELECT $1, $2, seat.label, seat.number, $5, $6, $7
               FROM UNNEST($3::text[], $4::integer[]) AS seat (label, number)
               ON CONFLICT (screen_id, layout_id, label) DO UPDATE
               SET reason = EXCLUDED.reason, kept_by = EXCLUDED.kept_by, kept_at = EXCLUDED.kept_at";
    sqlx::query(sql).bind_all((screen, layout, labels, numbers, reason, who, to_utc(now))).execute(tx).await.map(drop)
}

async fn delete(tx: &mut PgConnection, (screen, layout): (&str, Uuid), labels: &[String]) -> sqlx::Result<()> {
    let sql = "DELETE FROM standing_house_seats WHERE screen_id = $1 AND layout_id = $2 AND label = ANY ($3)";
    sqlx::query(sql).bind_all((screen, layout, labels)).execute(tx).await.map(drop)
}

/// Copies standing seats to another layout, with its seat numbers. Replaces the seats from an earlier use of that
/// layout.
async fn copy(
    tx: &mut PgConnection,
    screen: &str,
    (before, after): (Uuid, Uuid),
    (labels, numbers): (&[String], &[Option<i32>]),
) -> sqlx::Result<()> {
    let sql = "DELETE FROM standing_house_seats WHERE screen_id = $1 AND layout_id = $2";
    sqlx::query(sql).bind_all((screen, after)).execute(&mut *tx).await?;
    let sql = "INSERT INTO standing_house_seats (screen_id, layout_id, label, seat_no, reason, kept_by, kept_at)
               SELECT kept.screen_id, $3, kept.label, seat.number, kept.reason, kept.kept_by, kept.kept_at
               FROM standing_house_seats kept
               JOIN UNNEST($4::text[], $5::integer[]) AS seat (label, number) ON seat.label = kept.label
               WHERE kept.screen_id = $1 AND kept.layout_id = $2";
    sqlx::query(sql).bind_all((screen, before, after, labels, numbers)).execute(tx).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_to_two_hundred_distinct_seats_are_accepted() {
        let labels = |seats: &[String]| distinct_labels(seats, MAX_STANDING);
        let named = |seats: &[&str]| labels(&seats.iter().map(|label| (*label).to_owned()).collect::<Vec<_>>());
        assert_eq!(named(&["B2", " A1 "]).ok(), Some(BTreeSet::from(["A1".to_owned(), "B2".to_owned()])));
        assert!(named(&[]).is_err() && named(&["A1", "A1 "]).is_err());
        let many: Vec<String> = (0..=MAX_STANDING).map(|number| format!("A{number}")).collect();
        assert!(labels(&many).is_err() && labels(&many[1..]).is_ok());
    }

    #[test]
    fn seats_are_grouped_by_reason_in_audit_entries() {
        let kept = |seat, label: &str, reason: &str| ScreenHouseSeat {
            seat,
            label: label.to_owned(),
            reason: reason.to_owned(),
            by: Uuid::nil(),
        };
        let all = [kept(0, "A1", "Press"), kept(1, "A2", "House"), kept(2, "A3", "Press")];
        assert_eq!(format_reasons(&all), "A2: House; A1, A3: Press");
    }
}
