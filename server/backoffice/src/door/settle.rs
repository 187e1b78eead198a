//! Settles scans a device made without a network: records valid admissions, and reports the others at the door and to
//! the manager.

use std::collections::HashMap;

use axum::http::StatusCode;
use domain::api::door::{Outcome, QueuedScan, ScanAnswer, SettleRequest, Settlement, TicketAnswer};
use domain::door::{Code, LetIn, MAX_SETTLED_SCANS, Settled, placed, settle as rule};
use domain::seats::MAX_SEATS_PER_HOLD;
use domain::time::Timestamp;
use sqlx::PgConnection;
use uuid::Uuid;

use super::books::{self, Books, Finding};
use super::named;
use super::scan::admit;
use super::seal::{self, About};
use super::sql::admissions::{self, Entrance};
use super::sql::records::{self, Looker, entrance_of};
use crate::{BackofficeState, door};
use catalogue::Show;
use http::Problem;
use http::idempotency::{Answer, Intent};
use identity::accounts::Staff;
use identity::audit::{self, Entry};

/// A scanned code and the time of its scan.
struct Piece {
    code: Code,
    let_in: LetIn,
}

/// Settles scans made without a network; all or none.
pub(super) async fn settle(
    state: &BackofficeState,
    staff: &Staff,
    show: &Show,
    request: &SettleRequest,
    intent: &Intent,
) -> Result<Answer, Problem> {
    let now = state.clock.now();
    if let Some(answer) = intent.replay(&state.pg, now).await? {
        return Ok(answer);
    }
    let device = named(&request.device)?;
    let about = About { theatre: &show.theatre_id, show: show.id };
    let made_at = seal::check(about, request.device.id, &request.seal, &state.token_secrets)?;
    let pieces = pieces(request, now, made_at)?;
    let settling = Settling { state, staff, show, device, device_id: request.device.id, now };
    let mut tx = state.pg.begin().await?;
    if let Some(answer) = intent.begin(&mut tx, now).await? {
        return Ok(answer);
    }
    let came_to = settling.settle_all(&mut tx, &pieces).await?;
    let scans = request.scans.iter().map(|scan| answer_of(scan, &came_to)).collect();
    let answer = Answer::json(StatusCode::OK, &Settlement { scans })?;
    intent.commit(tx, answer, now).await
}

/// Returns the codes of all scans in settling order: by code, so that concurrent calls lock tickets in the same order,
/// then by time of the scan.
fn pieces(request: &SettleRequest, now: Timestamp, made_at: Timestamp) -> Result<Vec<Piece>, Problem> {
    let malformed = |detail: &str| Problem::new(http::Code::Malformed, detail);
    if request.scans.is_empty() || request.scans.len() > MAX_SETTLED_SCANS {
        return Err(malformed(&format!("A call settles 1 to {MAX_SETTLED_SCANS} scans.")));
    }
    let mut pieces = Vec::new();
    for scan in &request.scans {
        if scan.codes.is_empty() || scan.codes.len() > MAX_SEATS_PER_HOLD {
            return Err(malformed(&format!("A scan has 1 to {MAX_SEATS_PER_HOLD} codes.")));
        }
        let at = placed(Timestamp(scan.at_ms), Timestamp(request.sent_at_ms), now, made_at);
        for text in &scan.codes {
            let code = Code::parse(text).ok_or_else(|| malformed("A code is 26 digits of a ticket."))?;
            pieces.push(Piece { code, let_in: LetIn { at, scan: scan.scan } });
        }
    }
    pieces.sort_unstable_by(|one, other| (&one.code, one.let_in).cmp(&(&other.code, other.let_in)));
    Ok(pieces)
}

/// Answers by scan and code.
type CameTo = HashMap<(Uuid, String), TicketAnswer>;

fn answer_of(scan: &QueuedScan, came_to: &CameTo) -> ScanAnswer {
    let ticket =
        |text: &String| Code::parse(text).and_then(|code| came_to.get(&(scan.scan, code.to_string())).cloned());
    ScanAnswer { scan: scan.scan, tickets: scan.codes.iter().filter_map(ticket).collect() }
}

/// The context of a settlement.
struct Settling<'a> {
    state: &'a BackofficeState,
    staff: &'a Staff,
    show: &'a Show,
    device: &'a str,
    device_id: Uuid,
    now: Timestamp,
}

impl Settling<'_> {
    async fn settle_all(&self, tx: &mut PgConnection, pieces: &[Piece]) -> Result<CameTo, Problem> {
        let scans: Vec<Uuid> = pieces.iter().map(|piece| piece.let_in.scan).collect();
        let codes: Vec<String> = pieces.iter().map(|piece| piece.code.to_string()).collect();
        let known = records::known(tx, &self.show.theatre_id, &scans).await?;
        let books = Books::open(tx, &self.show.theatre_id, &codes).await?;
        let looker = Looker { device: self.device_id, account: self.staff.session.account, offline: true };
        let mut came_to = CameTo::new();
        for piece in pieces {
            let key = (piece.let_in.scan, piece.code.to_string());
            let answer = if let Some(outcome) = known.get(&key) {
                books::plain(&piece.code, *outcome, books.seat(&piece.code))
            } else {
                let entrance = Entrance {
                    code: piece.code.as_str(),
                    theatre: &self.show.theatre_id,
                    show: self.show.id,
                    device: self.device,
                    let_in: piece.let_in,
                };
                let answer = self.one(tx, &books, &piece.code, &entrance).await?;
                records::note(tx, looker, &entrance, answer.outcome, self.now).await?;
                answer
            };
            came_to.insert(key, answer);
        }
        Ok(came_to)
    }

    /// Settles one scanned code: an admission or a conflict.
    async fn one(
        &self,
        tx: &mut PgConnection,
        books: &Books,
        code: &Code,
        entrance: &Entrance<'_>,
    ) -> Result<TicketAnswer, Problem> {
        let finding = books.finding(code, self.show.id);
        let seat = books.seat(code);
        if finding != Finding::Good {
            records::report(tx, entrance, seat, finding.outcome(), self.now).await?;
            let why = format!("Let in at {}: {}.", self.when(entrance), words(&finding));
            self.tell_manager(tx, code, &why).await?;
            let mut answer = books::plain(code, Outcome::Conflict, seat);
            books::explain(self.state, &mut answer, &finding).await?;
            return Ok(answer);
        }
        let admitted = books::plain(code, Outcome::Admitted, seat);
        let Some(stands) = admit(tx, entrance, self.now).await? else { return Ok(admitted) };
        let stood = entrance_of(&stands, entrance);
        Ok(match rule(Some(stands.let_in()), entrance.let_in) {
            Settled::Admission | Settled::Known => admitted,
            Settled::Earlier { .. } => {
                if !admissions::take_over(tx, &stands, entrance).await? {
                    // It is locked: nobody else can have.
                    return Err(Problem::internal(&"an admission moved while it was locked"));
                }
                self.report_second(tx, code, entrance, &stood, seat).await?;
                admitted
            }
            Settled::TooMany { .. } => {
                self.report_second(tx, code, &stood, entrance, seat).await?;
                TicketAnswer {
                    used_at: Some(self.show.local_iso(stood.let_in.at)),
                    used_where: Some(stood.device.to_owned()),
                    used_by: Some(stood.let_in.scan),
                    ..books::plain(code, Outcome::Conflict, seat)
                }
            }
        })
    }

    async fn report_second(
        &self,
        tx: &mut PgConnection,
        code: &Code,
        first: &Entrance<'_>,
        second: &Entrance<'_>,
        seat: Option<&str>,
    ) -> Result<(), Problem> {
        records::report_second(tx, first, second, seat, self.now).await?;
        let why = format!("Let in twice with one ticket: at {} and at {}.", self.when(first), self.when(second));
        self.tell_manager(tx, code, &why).await
    }

    fn when(&self, entrance: &Entrance<'_>) -> String {
        format!("{} ({})", self.show.local(entrance.let_in.at), entrance.device)
    }

    /// Records a conflict in the audit list, which managers read.
    async fn tell_manager(&self, tx: &mut PgConnection, code: &Code, why: &str) -> Result<(), Problem> {
        let subject = format!("ticket …{} of show {}", books::ends_of(code.as_str()), self.show.id);
        let entry = Entry::by(self.staff.session.account, door::CONFLICT, subject, why).at(&self.show.theatre_id);
        audit::record(tx, &entry, self.now).await?;
        // The reason, which contains names of devices, belongs to the audit list only.
        tracing::warn!(show = %self.show.id, "settled a door scan of show {} with a conflict", self.show.id);
        Ok(())
    }
}

const fn words(finding: &Finding) -> &'static str {
    match finding {
        Finding::Good => "with a good ticket",
        Finding::OtherShow(_) => "with a ticket for another show",
        Finding::NotValid(_) => "with a ticket that had been given back",
        Finding::Unknown => "with a code that is no ticket of this theatre",
        Finding::Forged => "with a code that we never signed",
    }
}
