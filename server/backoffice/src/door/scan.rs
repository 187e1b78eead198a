//! Scans tickets online: admits their holders, or explains the refusal.

use axum::http::StatusCode;
use domain::api::door::{Outcome, ScanAnswer, ScanRequest, TicketAnswer};
use domain::door::{self, Code, ScanAdmission};
use domain::time::Timestamp;
use sqlx::PgConnection;
use uuid::Uuid;

use super::check_device_name;
use super::sql::{self, Admission, NewAdmission, Scanner};
use super::ticket_lookup::{self, TicketLookup, TicketValidity};
use crate::BackofficeState;
use catalogue::Show;
use http::idempotency::{Answer, Intent};
use http::{ApiResult, Problem};
use identity::accounts::Staff;
use platform::ids;

/// Maximum attempts at a ticket whose admission is concurrently undone and made again.
const MAX_ATTEMPTS: u32 = 3;

/// Checks the tickets of a scan and admits the valid ones. The scan's id is the intent's key.
pub(super) async fn scan(
    state: &BackofficeState,
    staff: &Staff,
    show: &Show,
    request: &ScanRequest,
    intent: &Intent,
) -> ApiResult<Answer> {
    let now = state.clock.now();
    if let Some(answer) = intent.replay(&state.pg, now).await? {
        return Ok(answer);
    }
    let scan = parse_scan_id(intent)?;
    let device = check_device_name(&request.device)?;
    let codes = door::read(&request.text).map_err(|why| Problem::new(http::Code::Malformed, why.to_string()))?;
    require_open_door(show, now)?;
    let scanner = Scanner { device: request.device.id, account: staff.session.account, offline: false };
    let mut tx = state.pg.begin().await?;
    if let Some(answer) = intent.begin(&mut tx, now).await? {
        return Ok(answer);
    }
    // Locked in the order of the codes, answered in the order of the scan.
    let mut sorted: Vec<&Code> = codes.iter().collect();
    sorted.sort_unstable();
    let texts: Vec<String> = sorted.iter().map(ToString::to_string).collect();
    let lookup = TicketLookup::open(&mut tx, &show.theatre_id, &texts).await?;
    let mut tickets: Vec<(&Code, TicketAnswer)> = Vec::with_capacity(codes.len());
    for code in sorted {
        let new_admission = NewAdmission {
            code: code.as_str(),
            theatre: &show.theatre_id,
            show: show.id,
            device,
            let_in: ScanAdmission { at: now, scan },
        };
        let answer = check_ticket(state, &mut tx, &lookup, code, show, &new_admission, now).await?;
        sql::record_scan(&mut tx, scanner, &new_admission, answer.outcome, now).await?;
        tickets.push((code, answer));
    }
    let place = |code: &Code| codes.iter().position(|other| other == code);
    tickets.sort_by_key(|(code, _)| place(code));
    let answer = ScanAnswer { scan, tickets: tickets.into_iter().map(|(_, answer)| answer).collect() };
    let answer = Answer::json(StatusCode::OK, &answer)?;
    intent.commit(tx, answer, now).await
}

async fn check_ticket(
    state: &BackofficeState,
    tx: &mut PgConnection,
    lookup: &TicketLookup,
    code: &Code,
    show: &Show,
    new_admission: &NewAdmission<'_>,
    now: Timestamp,
) -> ApiResult<TicketAnswer> {
    let finding = lookup.finding(code, show.id);
    let seat = lookup.seat(code);
    if finding != TicketValidity::Good {
        let mut answer = ticket_lookup::bare_answer(code, finding.outcome(), seat);
        ticket_lookup::explain(state, &mut answer, &finding).await?;
        return Ok(answer);
    }
    Ok(match admit(tx, new_admission, now).await? {
        None => ticket_lookup::bare_answer(code, Outcome::Admitted, seat),
        // A retry of a scan whose answer was lost and whose key has expired.
        Some(current) if current.let_in().scan == new_admission.let_in.scan => {
            ticket_lookup::bare_answer(code, Outcome::Admitted, seat)
        }
        Some(current) => TicketAnswer {
            used_at: Some(show.local_iso(current.let_in().at)),
            used_by: Some(current.let_in().scan),
            used_where: Some(current.device),
            ..ticket_lookup::bare_answer(code, Outcome::AlreadyUsed, seat)
        },
    })
}

/// Admits a ticket; otherwise returns its active admission, locked.
pub(super) async fn admit(
    tx: &mut PgConnection,
    new_admission: &NewAdmission<'_>,
    now: Timestamp,
) -> ApiResult<Option<Admission>> {
    for _ in 0..MAX_ATTEMPTS {
        if sql::admit(tx, ids::new_id(), new_admission, now).await? {
            return Ok(None);
        }
        if let Some(current) = sql::current(tx, new_admission.code).await? {
            return Ok(Some(current));
        }
    }
    Err(Problem::new(http::Code::Overloaded, "Others are busy with this very ticket. Please scan it again."))
}

fn parse_scan_id(intent: &Intent) -> ApiResult<Uuid> {
    Uuid::parse_str(intent.key()).map_err(|_| {
        Problem::new(
            http::Code::KeyMalformed,
            "The Idempotency-Key of a scan is the scan's id, a UUID of the device's.",
        )
    })
}

/// Fails long before and long after a show.
pub(super) fn require_open_door(show: &Show, now: Timestamp) -> ApiResult<()> {
    if door::is_open(show.starts_at, now) {
        return Ok(());
    }
    let detail = format!("{} starts {}. Choose a show of today.", show.film, show.starts_local);
    Err(Problem::new(http::Code::DoorClosed, detail))
}
