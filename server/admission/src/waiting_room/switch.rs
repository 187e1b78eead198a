//! Switching a room on and off: what staff decide.

use std::sync::Arc;

use chrono::DateTime;
use domain::api::systems::MAX_REASON_CHARS;
use domain::api::waiting_room::WaitingRoomRequest;
use domain::time::Timestamp;
use domain::waiting_room::MAX_PER_SECOND;
use domain::waiting_room::draw::KEY_BYTES;
use sqlx::PgConnection;
use uuid::Uuid;

use super::room::Terms;
use super::sql::{self, RoomRow};
use crate::AdmissionState;
use catalogue::Show;
use catalogue::sales_open;
use http::idempotency::{Answer, Intent};
use http::{Code, Problem};
use identity::accounts::{Staff, reason_of};
use identity::audit::{self, Entry};
use platform::clock::from_utc;
use platform::ids;

/// An opening that is nearer than this stays, milliseconds: some replica may be counting those who are drawn.
const SETTLED_MS: i64 = 10_000;

/// Why a room stays as it is. Programs are told as a problem; a page says it beside the form, in its reader's language.
#[derive(Clone, Debug)]
pub enum Refused {
    /// Nobody says why it is asked for, or in more than a line.
    Reason,
    /// When it opens is not said, or cannot be read.
    Opening,
    /// How many are let in a second is not said, or is more than can be.
    Pace,
    /// The opening would be over already.
    Past,
    /// Booking would be closed by the opening.
    TooLate,
    /// It has opened, or is about to.
    Opened,
    /// It is another than whoever asks has seen.
    Changed,
    /// What is no matter of the room alone: booking is closed, a store is away.
    Other(Problem),
}

impl<E: Into<Problem>> From<E> for Refused {
    fn from(cause: E) -> Self {
        Self::Other(cause.into())
    }
}

impl Refused {
    /// The same for programs.
    #[must_use]
    pub fn problem(self) -> Problem {
        let malformed = |detail: String| Problem::new(Code::Malformed, detail);
        match self {
            Self::Reason => malformed(format!("Say why, in one line of up to {MAX_REASON_CHARS} characters.")),
            Self::Opening => malformed("Say when it opens: `opens_at`, RFC 3339.".to_owned()),
            Self::Pace => malformed(format!("Say how many are let in: `per_second`, 1 to {MAX_PER_SECOND}.")),
            Self::Past => malformed("`opens_at` is over already: say an instant to come.".to_owned()),
            Self::TooLate => Problem::new(Code::SalesClosed, "Booking closes before that: say an earlier `opens_at`."),
            Self::Opened => {
                let detail = "The room has opened, or is about to: its places are drawn. Its pace can change.";
                Problem::new(Code::WrongState, detail)
            }
            Self::Changed => {
                let detail = "Somebody else has changed this waiting room meanwhile. Look at it again, then change it.";
                Problem::new(Code::WrongState, detail)
            }
            Self::Other(problem) => problem,
        }
    }
}

/// A show of that theatre, whose staff decide about its room.
///
/// # Errors
/// 404 for another theatre's.
pub async fn show_at(state: &AdmissionState, theatre: &str, show: Uuid) -> Result<Arc<Show>, Problem> {
    let show = state.catalogue.known_show(show).await?;
    if show.theatre_id == theatre { Ok(show) } else { Err(Problem::not_found("show")) }
}

/// [`set_up`], once for each key; `seen` as there.
///
/// # Errors
/// As [`set_up`]; and when the key was used for another request, or that one is still running.
pub async fn switch(
    state: &AdmissionState,
    show: &Show,
    staff: &Staff,
    intent: &Intent,
    request: &WaitingRoomRequest,
    seen: Option<&str>,
) -> Result<Answer, Refused> {
    let now = state.clock.now();
    if let Some(answer) = intent.replay(&state.pg, now).await? {
        return Ok(answer);
    }
    let mut tx = state.pg.begin().await?;
    if let Some(answer) = intent.begin(&mut tx, now).await? {
        return Ok(answer);
    }
    set_up(&mut tx, show, Some(staff.session.account), request, seen, now).await?;
    let answer = Answer::no_content();
    let answer = intent.commit(tx, answer, now).await?;
    // The others know within a second.
    state.waiting_rooms.reload(&state.pg, now).await?;
    Ok(answer)
}

/// Does what is asked for, and writes down who asked for it and why. What is so already stays so. One that has opened
/// keeps its draw: its pace may change, its opening not. Whoever decided on a room they saw says which ([`mark`]), and
/// decides about no other.
///
/// # Errors
/// When it cannot be read, booking is closed, the room has opened, or is another than was seen.
pub async fn set_up(
    tx: &mut PgConnection,
    show: &Show,
    actor: Option<Uuid>,
    request: &WaitingRoomRequest,
    seen: Option<&str>,
    now: Timestamp,
) -> Result<(), Refused> {
    let reason = reason_of(&request.reason).map_err(|_| Refused::Reason)?;
    let known = sql::lock_of_show(tx, show.id).await?;
    if seen.is_some_and(|seen| seen != mark(known.as_ref())) {
        return Err(Refused::Changed);
    }
    let act = match (known, request.on) {
        (None, false) => return Ok(()),
        (Some(row), false) => {
            sql::end(tx, row.id, now).await?;
            "waiting_room_off"
        }
        (known, true) => {
            sales_open(show, now)?;
            let terms = terms_of(request)?;
            if known.as_ref().map(|row| from_utc(row.opens_at)) != Some(terms.opens_at) {
                let is_settled = known.as_ref().is_some_and(|row| is_settled(row, now));
                check_opening(show, terms.opens_at, is_settled, now)?;
            }
            switch_on(tx, show.id, known, terms, now).await?
        }
    };
    let subject = format!("show {}", show.id);
    audit::record(tx, &Entry { actor, theatre: Some(&show.theatre_id), act, subject, reason }, now).await?;
    Ok(())
}

async fn switch_on(
    tx: &mut PgConnection,
    show: Uuid,
    known: Option<RoomRow>,
    terms: Terms,
    now: Timestamp,
) -> Result<&'static str, Refused> {
    let Terms { opens_at, per_second } = terms;
    if let Some(row) = known {
        sql::change(tx, row.id, opens_at, per_second).await?;
        return Ok("waiting_room_changed");
    }
    let is_first = sql::insert(tx, (ids::new_id(), show), opens_at, per_second, &new_key(), now).await?;
    // There was no row to lock: somebody else may have switched one on meanwhile.
    if is_first { Ok("waiting_room_on") } else { Err(Refused::Changed) }
}

/// What a room is known by to those who decide about it: another when anything of it has changed that they decide.
pub(super) fn mark(known: Option<&RoomRow>) -> String {
    known.map_or_else(String::new, |row| format!("{}.{}.{}", row.id.simple(), from_utc(row.opens_at).0, row.per_second))
}

/// Whether its opening stays: it has opened, or is about to.
pub(super) fn is_settled(row: &RoomRow, now: Timestamp) -> bool {
    row.drawn().is_some() || from_utc(row.opens_at) <= now.plus_ms(SETTLED_MS)
}

/// An opening that people can prepare for, and before booking closes.
fn check_opening(show: &Show, opens_at: Timestamp, is_settled: bool, now: Timestamp) -> Result<(), Refused> {
    if is_settled {
        return Err(Refused::Opened);
    }
    if opens_at <= now {
        return Err(Refused::Past);
    }
    sales_open(show, opens_at).map_err(|_| Refused::TooLate)
}

fn terms_of(request: &WaitingRoomRequest) -> Result<Terms, Refused> {
    let opens_at = request.opens_at.as_deref().and_then(|text| DateTime::parse_from_rfc3339(text.trim()).ok());
    let opens_at = from_utc(opens_at.ok_or(Refused::Opening)?.to_utc());
    let per_second = request.per_second.filter(|pace| (1..=MAX_PER_SECOND).contains(pace)).ok_or(Refused::Pace)?;
    Ok(Terms { opens_at, per_second })
}

/// A key nobody can guess.
fn new_key() -> [u8; KEY_BYTES] {
    let mut key = [0; KEY_BYTES];
    for half in key.chunks_exact_mut(16) {
        half.copy_from_slice(&ids::random_bits());
    }
    key
}
