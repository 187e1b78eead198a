//! Undoes admissions: a ticket was scanned by mistake, or its holder was turned away.

use domain::api::door::UndoRequest;
use domain::door::Code as TicketCode;

use super::scan::require_open_door;
use super::sql;
use super::ticket_lookup::code_suffix;
use crate::{BackofficeState, door};
use catalogue::Show;
use http::idempotency::Answer;
use http::{ApiResult, Code, Problem};
use identity::accounts::StaffAction;

/// Undoes the admissions of a scan, or of one ticket of it. The tickets are valid again, except those with which another
/// scan let in a second person: that scan is their admission now. An admission that another scan has since replaced is not
/// undone. Refused while the door is closed, as scans are.
pub(super) async fn undo(
    state: &BackofficeState,
    action: &StaffAction<'_>,
    show: &Show,
    request: &UndoRequest,
) -> ApiResult<Answer> {
    let ticket = match &request.ticket {
        None => None,
        Some(text) => Some(TicketCode::parse(text).ok_or_else(|| {
            Problem::new(
                Code::Malformed,
                "A `ticket` is named by its code, 26 digits; without it the whole scan is undone.",
            )
        })?),
    };
    let mut begun = match action.begin(state).await? {
        Ok(begun) => begun,
        Err(answer) => return Ok(answer),
    };
    require_open_door(show, begun.now)?;
    let which = (request.scan, ticket.as_ref().map(TicketCode::as_str));
    let codes = sql::undo(&mut begun.tx, show.id, which, action.staff.session.account, begun.now).await?;
    if codes.is_empty() {
        let detail = "This scan has admitted no one, or was already undone. Look at the list of the door again.";
        return Err(Problem::new(Code::NotAdmitted, detail));
    }
    let ends: Vec<String> = codes.iter().map(|code| format!("…{}", code_suffix(code))).collect();
    let subject = format!("tickets {} of show {}", ends.join(", "), show.id);
    begun.finish(door::UNDONE, subject, Answer::no_content()).await
}
