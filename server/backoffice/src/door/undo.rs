//! Undoes admissions: a ticket was scanned by mistake, or its holder was turned away.

use domain::api::door::UndoRequest;
use domain::door::Code as TicketCode;

use super::sql;
use super::ticket_lookup::code_suffix;
use crate::{BackofficeState, door};
use catalogue::Show;
use http::idempotency::{Answer, Intent};
use http::{Code, Problem};
use identity::accounts::{Staff, reason_of};
use identity::audit::{self, AuditEntry};

/// Undoes the admissions of a scan, or of one ticket of it; the tickets are valid again. An admission that another scan
/// has since replaced is not undone.
pub(super) async fn undo(
    state: &BackofficeState,
    staff: &Staff,
    show: &Show,
    request: &UndoRequest,
    intent: &Intent,
) -> Result<Answer, Problem> {
    let now = state.clock.now();
    if let Some(answer) = intent.replay(&state.pg, now).await? {
        return Ok(answer);
    }
    let reason = reason_of(&request.reason)?;
    let ticket = match &request.ticket {
        None => None,
        Some(text) => Some(TicketCode::parse(text).ok_or_else(|| {
            Problem::new(
                Code::Malformed,
                "A `ticket` is named by its code, 26 digits; without it the whole scan is undone.",
            )
        })?),
    };
    let mut tx = state.pg.begin().await?;
    if let Some(answer) = intent.begin(&mut tx, now).await? {
        return Ok(answer);
    }
    let which = (request.scan, ticket.as_ref().map(TicketCode::as_str));
    let codes = sql::undo(&mut tx, show.id, which, staff.session.account, now).await?;
    if codes.is_empty() {
        let detail = "This scan has admitted no one, or was already undone. Look at the list of the door again.";
        return Err(Problem::new(Code::NotAdmitted, detail));
    }
    let ends: Vec<String> = codes.iter().map(|code| format!("…{}", code_suffix(code))).collect();
    let subject = format!("tickets {} of show {}", ends.join(", "), show.id);
    let entry = AuditEntry::by(staff.session.account, door::UNDONE, subject, reason).at(&show.theatre_id);
    audit::record(&mut tx, &entry, now).await?;
    let answer = Answer::no_content();
    intent.commit(tx, answer, now).await
}
