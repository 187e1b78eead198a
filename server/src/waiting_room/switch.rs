//! Switching a room on and off: what staff decide.

use chrono::DateTime;
use domain::api_waiting_room::WaitingRoomRequest;
use domain::time::Timestamp;
use domain::waiting_room::MAX_PER_SECOND;
use domain::waiting_room::draw::KEY_BYTES;
use sqlx::PgConnection;
use uuid::Uuid;

use super::room::Terms;
use super::sql;
use crate::audit::{self, Entry};
use crate::catalogue::Show;
use crate::clock::from_utc;
use crate::holds::sales_open;
use crate::ids;
use crate::web::{Code, Problem};

/// An opening that is nearer than this stays, milliseconds: some replica may be counting those who are drawn.
const SETTLED_MS: i64 = 10_000;
/// Longest reason, characters.
const MAX_REASON_CHARS: usize = 300;

/// Does what is asked for, and writes down who asked for it and why. What is so already stays so. One that has opened
/// keeps its draw: its pace may change, its opening not.
///
/// # Errors
/// 400 for what cannot be read, 409 when booking is closed or the room has opened.
pub async fn set_up(
    tx: &mut PgConnection,
    show: &Show,
    actor: Option<Uuid>,
    request: &WaitingRoomRequest,
    now: Timestamp,
) -> Result<(), Problem> {
    let reason = reason_of(&request.reason)?;
    let known = sql::lock_of_show(tx, show.id).await?;
    let act = match (known, request.on) {
        (None, false) => return Ok(()),
        (Some(row), false) => {
            sql::end(tx, row.id, now).await?;
            "waiting_room_off"
        }
        (known, true) => {
            sales_open(show, now)?;
            let terms = terms_of(request)?;
            let opens_at_before = known.as_ref().map(|row| from_utc(row.opens_at));
            let is_open = known.as_ref().is_some_and(|row| row.drawn().is_some())
                || opens_at_before.is_some_and(|before| before <= now.plus_ms(SETTLED_MS));
            if opens_at_before != Some(terms.opens_at) {
                check_opening(show, terms.opens_at, is_open, now)?;
            }
            match known {
                None => {
                    let names = (ids::new_id(), show.id);
                    sql::insert(tx, names, terms.opens_at, terms.per_second, &new_key(), now).await?;
                    "waiting_room_on"
                }
                Some(row) => {
                    sql::change(tx, row.id, terms.opens_at, terms.per_second).await?;
                    "waiting_room_changed"
                }
            }
        }
    };
    let subject = format!("show {}", show.id);
    audit::record(tx, &Entry { actor, theatre: Some(&show.theatre_id), act, subject, reason }, now).await?;
    Ok(())
}

/// An opening that people can prepare for, and before booking closes.
fn check_opening(show: &Show, opens_at: Timestamp, is_open: bool, now: Timestamp) -> Result<(), Problem> {
    if is_open {
        let detail = "The room has opened, or is about to: its places are drawn. Its pace can change.";
        return Err(Problem::new(Code::WrongState, detail));
    }
    if opens_at <= now {
        return Err(Problem::new(Code::Malformed, "`opens_at` is over already: say an instant to come."));
    }
    sales_open(show, opens_at)
}

fn terms_of(request: &WaitingRoomRequest) -> Result<Terms, Problem> {
    let opens_at = request.opens_at.as_deref().and_then(|text| DateTime::parse_from_rfc3339(text.trim()).ok());
    let per_second = request.per_second.filter(|pace| (1..=MAX_PER_SECOND).contains(pace));
    match (opens_at, per_second) {
        (Some(opens_at), Some(per_second)) => Ok(Terms { opens_at: from_utc(opens_at.to_utc()), per_second }),
        (None, _) => Err(Problem::new(Code::Malformed, "Say when it opens: `opens_at`, RFC 3339.")),
        (_, None) => {
            let detail = format!("Say how many are let in: `per_second`, 1 to {MAX_PER_SECOND}.");
            Err(Problem::new(Code::Malformed, detail))
        }
    }
}

fn reason_of(text: &str) -> Result<&str, Problem> {
    let reason = text.trim();
    if reason.is_empty() || reason.chars().count() > MAX_REASON_CHARS || reason.chars().any(char::is_control) {
        let detail = format!("Say why, in one line of up to {MAX_REASON_CHARS} characters.");
        return Err(Problem::new(Code::Malformed, detail));
    }
    Ok(reason)
}

/// A key nobody can guess.
fn new_key() -> [u8; KEY_BYTES] {
    let mut key = [0; KEY_BYTES];
    for half in key.chunks_exact_mut(16) {
        half.copy_from_slice(&ids::random_bits());
    }
    key
}
