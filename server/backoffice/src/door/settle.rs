//! Settles scans a device made without a network: records valid admissions, and reports the others at the door and to
//! the manager.

use std::collections::HashMap;

use axum::http::StatusCode;
use domain::api::door::{Outcome, QueuedScan, ScanAnswer, SettleRequest, Settlement, TicketAnswer};
use domain::door::{
    Code, MAX_SETTLED_SCANS, ScanAdmission, SettlementOutcome, scan_time_on_server_clock, settle as rule,
};
use domain::seats::MAX_SEATS_PER_HOLD;
use domain::time::Timestamp;
use sqlx::PgConnection;
use uuid::Uuid;

use super::check_device_name;
use super::list::{ListScope, check_seal};
use super::scan::admit;
use super::sql::{self, NewAdmission, Scanner, recorded_admission};
use super::ticket_lookup::{self, TicketLookup, TicketValidity};
use crate::{BackofficeState, door};
use catalogue::Show;
use http::idempotency::{Answer, Intent};
use http::{ApiResult, Problem};
use identity::accounts::Staff;
use identity::audit::{self, AuditEntry};

struct ScannedCode {
    code: Code,
    let_in: ScanAdmission,
}

/// Settles scans made without a network; all or none.
pub(super) async fn settle(
    state: &BackofficeState,
    staff: &Staff,
    show: &Show,
    request: &SettleRequest,
    intent: &Intent,
) -> ApiResult<Answer> {
    let now = state.clock.now();
    if let Some(answer) = intent.replay(&state.pg, now).await? {
        return Ok(answer);
    }
    let device = check_device_name(&request.device)?;
    let scope = ListScope { theatre: &show.theatre_id, show: show.id };
    let made_at = check_seal(scope, request.device.id, &request.seal, &state.token_secrets)?;
    let scanned_codes = scanned_codes(request, now, made_at)?;
    let settling = SettlementRun { state, staff, show, device, device_id: request.device.id, now };
    let mut tx = state.pg.begin().await?;
    if let Some(answer) = intent.begin(&mut tx, now).await? {
        return Ok(answer);
    }
    let answers = settling.settle_all(&mut tx, &scanned_codes).await?;
    let scans = request.scans.iter().map(|scan| answer_of(scan, &answers)).collect();
    let answer = Answer::json(StatusCode::OK, &Settlement { scans })?;
    intent.commit(tx, answer, now).await
}

/// Returns the codes of all scans in settling order: by code, so that concurrent calls lock tickets in the same order,
/// then by time of the scan.
fn scanned_codes(request: &SettleRequest, now: Timestamp, made_at: Timestamp) -> ApiResult<Vec<ScannedCode>> {
    let malformed = |detail: &str| Problem::new(http::Code::Malformed, detail);
    if request.scans.is_empty() || request.scans.len() > MAX_SETTLED_SCANS {
        return Err(malformed(&format!("A call settles 1 to {MAX_SETTLED_SCANS} scans.")));
    }
    let mut scanned_codes = Vec::new();
    for scan in &request.scans {
        if scan.codes.is_empty() || scan.codes.len() > MAX_SEATS_PER_HOLD {
            return Err(malformed(&format!("A scan has 1 to {MAX_SEATS_PER_HOLD} codes.")));
        }
        let at = scan_time_on_server_clock(Timestamp(scan.at_ms), Timestamp(request.sent_at_ms), now, made_at);
        for text in &scan.codes {
            let code = Code::parse(text).ok_or_else(|| malformed("A code is 26 digits of a ticket."))?;
            scanned_codes.push(ScannedCode { code, let_in: ScanAdmission { at, scan: scan.scan } });
        }
    }
    scanned_codes.sort_unstable_by(|one, other| (&one.code, one.let_in).cmp(&(&other.code, other.let_in)));
    Ok(scanned_codes)
}

type AnswersByCode = HashMap<(Uuid, String), TicketAnswer>;

fn answer_of(scan: &QueuedScan, answers: &AnswersByCode) -> ScanAnswer {
    let ticket =
        |text: &String| Code::parse(text).and_then(|code| answers.get(&(scan.scan, code.to_string())).cloned());
    ScanAnswer { scan: scan.scan, tickets: scan.codes.iter().filter_map(ticket).collect() }
}

struct SettlementRun<'a> {
    state: &'a BackofficeState,
    staff: &'a Staff,
    show: &'a Show,
    device: &'a str,
    device_id: Uuid,
    now: Timestamp,
}

impl SettlementRun<'_> {
    async fn settle_all(&self, tx: &mut PgConnection, scanned_codes: &[ScannedCode]) -> ApiResult<AnswersByCode> {
        let scans: Vec<Uuid> = scanned_codes.iter().map(|scanned| scanned.let_in.scan).collect();
        let codes: Vec<String> = scanned_codes.iter().map(|scanned| scanned.code.to_string()).collect();
        let known = sql::recorded_outcomes(tx, &self.show.theatre_id, &scans).await?;
        let lookup = TicketLookup::open(tx, &self.show.theatre_id, &codes).await?;
        let scanner = Scanner { device: self.device_id, account: self.staff.session.account, offline: true };
        let mut answers = AnswersByCode::new();
        for scanned in scanned_codes {
            let key = (scanned.let_in.scan, scanned.code.to_string());
            let answer = if let Some(outcome) = known.get(&key) {
                ticket_lookup::bare_answer(&scanned.code, *outcome, lookup.seat(&scanned.code))
            } else {
                let new_admission = NewAdmission {
                    code: scanned.code.as_str(),
                    theatre: &self.show.theatre_id,
                    show: self.show.id,
                    device: self.device,
                    let_in: scanned.let_in,
                };
                let answer = self.settle_one(tx, &lookup, &scanned.code, &new_admission).await?;
                sql::record_scan(tx, scanner, &new_admission, answer.outcome, self.now).await?;
                answer
            };
            answers.insert(key, answer);
        }
        Ok(answers)
    }

    /// Settles one scanned code: an admission or a conflict.
    async fn settle_one(
        &self,
        tx: &mut PgConnection,
        lookup: &TicketLookup,
        code: &Code,
        new_admission: &NewAdmission<'_>,
    ) -> ApiResult<TicketAnswer> {
        let finding = lookup.finding(code, self.show.id);
        let seat = lookup.seat(code);
        if finding != TicketValidity::Good {
            sql::report(tx, new_admission, seat, finding.outcome(), self.now).await?;
            let why = format!("Let in at {}: {}.", self.when(new_admission), describe(&finding));
            self.record_conflict(tx, code, &why).await?;
            let mut answer = ticket_lookup::bare_answer(code, Outcome::Conflict, seat);
            ticket_lookup::explain(self.state, &mut answer, &finding).await?;
            return Ok(answer);
        }
        let admitted = ticket_lookup::bare_answer(code, Outcome::Admitted, seat);
        let Some(current) = admit(tx, new_admission, self.now).await? else { return Ok(admitted) };
        let recorded = recorded_admission(&current, new_admission);
        Ok(match rule(Some(current.let_in()), new_admission.let_in) {
            SettlementOutcome::Admission | SettlementOutcome::AlreadyRecorded => admitted,
            SettlementOutcome::ReplacesLater { .. } => {
                if !sql::take_over(tx, &current, new_admission).await? {
                    // Unreachable: the row is locked, so no other transaction can have replaced it.
                    return Err(Problem::internal(&"an admission moved while it was locked"));
                }
                self.report_second(tx, code, new_admission, &recorded, seat).await?;
                admitted
            }
            SettlementOutcome::Duplicate { .. } => {
                self.report_second(tx, code, &recorded, new_admission, seat).await?;
                TicketAnswer {
                    used_at: Some(self.show.local_iso(recorded.let_in.at)),
                    used_where: Some(recorded.device.to_owned()),
                    used_by: Some(recorded.let_in.scan),
                    ..ticket_lookup::bare_answer(code, Outcome::Conflict, seat)
                }
            }
        })
    }

    async fn report_second(
        &self,
        tx: &mut PgConnection,
        code: &Code,
        first: &NewAdmission<'_>,
        second: &NewAdmission<'_>,
        seat: Option<&str>,
    ) -> ApiResult<()> {
        sql::report_second(tx, first, second, seat, self.now).await?;
        let why = format!("Let in twice with one ticket: at {} and at {}.", self.when(first), self.when(second));
        self.record_conflict(tx, code, &why).await
    }

    fn when(&self, new_admission: &NewAdmission<'_>) -> String {
        format!("{} ({})", self.show.local(new_admission.let_in.at), new_admission.device)
    }

    /// Records a conflict in the audit list, which managers read.
    async fn record_conflict(&self, tx: &mut PgConnection, code: &Code, why: &str) -> ApiResult<()> {
        let subject = format!("ticket …{} of show {}", ticket_lookup::code_suffix(code.as_str()), self.show.id);
        let entry = AuditEntry::by(self.staff.session.account, door::CONFLICT, subject, why).at(&self.show.theatre_id);
        audit::record(tx, &entry, self.now).await?;
        // The reason, which contains names of devices, belongs to the audit list only.
        tracing::warn!(show = %self.show.id, "settled a door scan of show {} with a conflict", self.show.id);
        Ok(())
    }
}

const fn describe(finding: &TicketValidity) -> &'static str {
    match finding {
        TicketValidity::Good => "with a good ticket",
        TicketValidity::OtherShow(_) => "with a ticket for another show",
        TicketValidity::NotValid(_) => "with a ticket that had been given back",
        TicketValidity::Unknown => "with a code that is no ticket of this theatre",
        TicketValidity::Forged => "with a code that we never signed",
    }
}
