//! The control of a room by staff: switches it on and off, changes it, and shows its state.

use std::sync::Arc;

use chrono::DateTime;
use domain::api::systems::MAX_REASON_CHARS;
use domain::api::waiting_room::{DrawView, WaitingRoomRequest};
use domain::time::Timestamp;
use domain::waiting_room::draw::{KEY_BYTES, METHOD, commitment};
use domain::waiting_room::{MAX_PER_SECOND, WaitingRoomStatus};
use sqlx::PgConnection;
use uuid::Uuid;

use super::room::RoomSettings;
use super::sql::{self, RoomRow};
use crate::AdmissionState;
use catalogue::{Show, sales_open};
use http::idempotency::{Answer, Intent};
use http::{ApiResult, Code, Problem};
use identity::accounts::{Staff, reason_of};
use identity::audit::{self, AuditEntry};
use platform::clock::from_utc;
use platform::ids;

/// An opening nearer than this cannot change, milliseconds: a replica may have counted those who are drawn.
const OPENING_FIXED_MS: i64 = 10_000;

/// The reason for which a room was not changed: a problem for programs; a page shows it beside the form, translated.
#[derive(Clone, Debug)]
pub enum SwitchError {
    /// The reason is missing, or longer than a line.
    Reason,
    /// The opening is missing or malformed.
    Opening,
    /// The rate is missing or out of range.
    Rate,
    /// The opening is in the past.
    Past,
    /// Booking closes before the opening.
    TooLate,
    /// It has opened, or is about to.
    Opened,
    /// It differs from the version that the request names, or its show has moved to another start.
    Changed,
    /// A problem outside the room: booking is closed, or a store is unavailable.
    Other(Problem),
}

impl<E: Into<Problem>> From<E> for SwitchError {
    fn from(cause: E) -> Self {
        Self::Other(cause.into())
    }
}

impl SwitchError {
    /// Converts it to a problem for programs.
    #[must_use]
    pub fn problem(self) -> Problem {
        let malformed = |detail: String| Problem::new(Code::Malformed, detail);
        match self {
            Self::Reason => malformed(format!("Say why, in one line of up to {MAX_REASON_CHARS} characters.")),
            Self::Opening => malformed("Say when it opens: `opens_at`, RFC 3339.".to_owned()),
            Self::Rate => malformed(format!("Say how many are let in: `per_second`, 1 to {MAX_PER_SECOND}.")),
            Self::Past => malformed("`opens_at` is over already: say an instant to come.".to_owned()),
            Self::TooLate => Problem::new(Code::SalesClosed, "Booking closes before that: say an earlier `opens_at`."),
            Self::Opened => {
                let detail = "The room has opened, or is about to: its places are drawn. Its pace can change.";
                Problem::new(Code::WrongState, detail)
            }
            Self::Changed => {
                let detail = "Someone else has changed this show or its waiting room in the meantime. Look at it again, \
                              then change it.";
                Problem::new(Code::WrongState, detail)
            }
            Self::Other(problem) => problem,
        }
    }
}

/// A show, if it belongs to that theatre, whose staff control its room.
///
/// # Errors
/// 404 for a show of another theatre.
pub async fn show_at(state: &AdmissionState, theatre: &str, show: Uuid) -> ApiResult<Arc<Show>> {
    let show = state.catalogue.find_show(show).await?;
    if show.theatre_id == theatre { Ok(show) } else { Err(Problem::not_found("show")) }
}

/// Runs [`apply_request`] once per idempotency key; `seen` as there.
///
/// # Errors
/// As [`apply_request`]; and if the key was used for another request, or that one is still running.
pub async fn switch(
    state: &AdmissionState,
    show: &Show,
    staff: &Staff,
    intent: &Intent,
    request: &WaitingRoomRequest,
    seen: Option<&str>,
) -> Result<Answer, SwitchError> {
    let now = state.clock.now();
    if let Some(answer) = intent.replay(&state.pg, now).await? {
        return Ok(answer);
    }
    let mut tx = state.pg.begin().await?;
    if let Some(answer) = intent.begin(&mut tx, now).await? {
        return Ok(answer);
    }
    apply_request(&mut tx, show, Some(staff.session.account), request, seen, now).await?;
    let answer = Answer::no_content();
    let answer = intent.commit(tx, answer, now).await?;
    // Other replicas reload within a second.
    state.waiting_rooms.reload(&state.pg, now).await?;
    Ok(answer)
}

/// Applies the request, and audits its actor and reason. A setting that is already so stays so. A room that has opened
/// keeps its draw: its rate may change, its opening not. `seen` is the version ([`version_of`]) that the caller has
/// seen; another version is refused.
///
/// # Errors
/// If the request is malformed, booking is closed, the room has opened or has another version, or the show has moved to
/// another start since it was read.
pub async fn apply_request(
    tx: &mut PgConnection,
    show: &Show,
    actor: Option<Uuid>,
    request: &WaitingRoomRequest,
    seen: Option<&str>,
    now: Timestamp,
) -> Result<(), SwitchError> {
    let reason = reason_of(&request.reason).map_err(|_| SwitchError::Reason)?;
    let known = sql::lock_of_show(tx, show.id).await?;
    if seen.is_some_and(|seen| seen != version_of(known.as_ref())) {
        return Err(SwitchError::Changed);
    }
    let act = match (known, request.on) {
        (None, false) => return Ok(()),
        (Some(row), false) => {
            sql::switch_off(tx, row.id, now).await?;
            "waiting_room_off"
        }
        (known, true) => {
            sales_open(show, now)?;
            let settings = settings_of(request)?;
            if known.as_ref().map(|row| from_utc(row.opens_at)) != Some(settings.opens_at) {
                if sql::lock_start(tx, show.id).await? != Some(show.starts_at) {
                    return Err(SwitchError::Changed);
                }
                let is_settled = known.as_ref().is_some_and(|row| is_settled(row, now));
                check_opening(show, settings.opens_at, is_settled, now)?;
            }
            switch_on(tx, show.id, known, settings, now).await?
        }
    };
    let subject = format!("show {}", show.id);
    audit::record(tx, &AuditEntry { actor, theatre: Some(&show.theatre_id), act, subject, reason }, now).await?;
    Ok(())
}

async fn switch_on(
    tx: &mut PgConnection,
    show: Uuid,
    known: Option<RoomRow>,
    settings: RoomSettings,
    now: Timestamp,
) -> Result<&'static str, SwitchError> {
    let RoomSettings { opens_at, per_second } = settings;
    if let Some(row) = known {
        sql::change(tx, row.id, opens_at, per_second).await?;
        return Ok("waiting_room_changed");
    }
    let is_first = sql::insert(tx, (ids::new_id(), show), opens_at, per_second, &new_key(), now).await?;
    // There was no row to lock, so a concurrent request may have switched one on.
    if is_first { Ok("waiting_room_on") } else { Err(SwitchError::Changed) }
}

/// Switches on the room of a rehearsal. Call [`super::Rooms::reload`] after the commit.
pub async fn open_for_rehearsal(
    tx: &mut PgConnection,
    rehearsal: Uuid,
    opens_at: Timestamp,
    per_second: u32,
    now: Timestamp,
) -> sqlx::Result<()> {
    sql::insert(tx, (ids::new_id(), rehearsal), opens_at, per_second, &new_key(), now).await.map(|_| ())
}

/// Deletes the room of a rehearsal that has ended. Its keys in Redis expire.
pub async fn delete_of_rehearsal(tx: &mut PgConnection, rehearsal: Uuid) -> sqlx::Result<()> {
    sql::delete_of(tx, rehearsal).await
}

/// True if the active room of any show opens between these times, or has opened then. Drafts and called-off shows do not
/// count.
pub async fn opens_between(connection: &mut PgConnection, after: Timestamp, before: Timestamp) -> sqlx::Result<bool> {
    sql::opens_between(connection, after, before).await
}

/// The opening of the active room of a show. It does not change while the caller has the show locked FOR UPDATE.
pub async fn opening_of(connection: &mut PgConnection, show: Uuid) -> sqlx::Result<Option<Timestamp>> {
    sql::opening_of(connection, show).await
}

/// The version of a room for optimistic locking: changes with everything that staff control.
fn version_of(known: Option<&RoomRow>) -> String {
    known.map_or_else(String::new, |row| format!("{}.{}.{}", row.id.simple(), from_utc(row.opens_at).0, row.per_second))
}

/// True if its opening cannot change: it has opened, or is about to.
fn is_settled(row: &RoomRow, now: Timestamp) -> bool {
    row.drawn().is_some() || from_utc(row.opens_at) <= now.plus_ms(OPENING_FIXED_MS)
}

/// Checks that an opening is in the future, before booking closes, and may still change.
fn check_opening(show: &Show, opens_at: Timestamp, is_settled: bool, now: Timestamp) -> Result<(), SwitchError> {
    if is_settled {
        return Err(SwitchError::Opened);
    }
    if opens_at <= now {
        return Err(SwitchError::Past);
    }
    sales_open(show, opens_at).map_err(|_| SwitchError::TooLate)
}

fn settings_of(request: &WaitingRoomRequest) -> Result<RoomSettings, SwitchError> {
    let opens_at = request.opens_at.as_deref().and_then(|text| DateTime::parse_from_rfc3339(text.trim()).ok());
    let opens_at = from_utc(opens_at.ok_or(SwitchError::Opening)?.to_utc());
    let per_second = request.per_second.filter(|pace| (1..=MAX_PER_SECOND).contains(pace)).ok_or(SwitchError::Rate)?;
    Ok(RoomSettings { opens_at, per_second })
}

fn new_key() -> [u8; KEY_BYTES] {
    let mut key = [0; KEY_BYTES];
    for half in key.chunks_exact_mut(16) {
        half.copy_from_slice(&ids::random_bits());
    }
    key
}

/// An active room, for its staff.
#[derive(Clone, Debug, PartialEq)]
pub struct Overview {
    /// When it opens.
    pub opens_at: Timestamp,
    /// True if the opening cannot change: it has opened, or is about to.
    pub is_settled: bool,
    /// Its public state.
    pub queue: WaitingRoomStatus,
    /// People inside, and called ones whose time to enter has not ended.
    pub inside: u64,
    /// The maximum of people inside; `None` before it has opened.
    pub limit: Option<u64>,
    /// The published part of its draw.
    pub draw: DrawView,
    /// The version of the room for optimistic locking; a change must name it (`switch`).
    pub seen: String,
}

/// The active room of a show. Settings come from Postgres: every replica returns the latest ones. Figures come from
/// this replica if it knows the room, otherwise from the record in Postgres, which is about a second old.
pub async fn overview(state: &AdmissionState, show: Uuid) -> ApiResult<Option<Overview>> {
    let Some(row) = sql::of_show(&state.pg, show).await? else { return Ok(None) };
    let (key, people) = (row.key()?, row.drawn());
    let per_second = row.per_second.unsigned_abs();
    let heard = state.waiting_rooms.of(show).filter(|room| room.id == row.id);
    let status = heard.as_ref().and_then(|room| Some((room.queue(), room.status()?.inside)));
    let (queue, inside) = status.unwrap_or_else(|| {
        let noted = WaitingRoomStatus { joined: row.joined(), called: row.called(), ..WaitingRoomStatus::default() };
        (noted, row.inside())
    });
    Ok(Some(Overview {
        opens_at: from_utc(row.opens_at),
        is_settled: is_settled(&row, state.clock.now()),
        queue: WaitingRoomStatus { is_open: people.is_some(), per_second, ..queue },
        inside,
        limit: heard.and_then(|room| room.known_limit()),
        draw: DrawView {
            method: METHOD.to_owned(),
            commitment: hex::encode(commitment(&key)),
            people,
            // Published once the number drawn is recorded, and not before.
            key: people.map(|_| hex::encode(key)),
        },
        seen: version_of(Some(&row)),
    }))
}
