//! Scans tickets online: admits their holders, or explains the refusal.

use axum::http::StatusCode;
use domain::api::door::{Outcome, ScanAnswer, ScanRequest, TicketAnswer};
use domain::door::{self, Code, LetIn};
use domain::time::Timestamp;
use sqlx::PgConnection;
use uuid::Uuid;

use super::books::{self, Books, Finding};
use super::named;
use super::sql::admissions::{self, Admission, Entrance};
use super::sql::records::{self, Looker};
use crate::BackofficeState;
use catalogue::Show;
use http::Problem;
use http::idempotency::{Answer, Intent};
use identity::accounts::Staff;
use platform::ids;

/// Maximum attempts at a ticket whose admission is concurrently undone and made again.
const MAX_LOOKS: u32 = 3;

/// Checks the tickets of a scan and admits the valid ones. The scan's id is the intent's key.
pub(super) async fn scan(
    state: &BackofficeState,
    staff: &Staff,
    show: &Show,
    request: &ScanRequest,
    intent: &Intent,
) -> Result<Answer, Problem> {
    let now = state.clock.now();
    if let Some(answer) = intent.replay(&state.pg, now).await? {
        return Ok(answer);
    }
    let scan = id_of(intent)?;
    let device = named(&request.device)?;
    let codes = door::read(&request.text).map_err(|why| Problem::new(http::Code::Malformed, why.to_string()))?;
    open_door(show, now)?;
    let looker = Looker { device: request.device.id, account: staff.session.account, offline: false };
    let mut tx = state.pg.begin().await?;
    if let Some(answer) = intent.begin(&mut tx, now).await? {
        return Ok(answer);
    }
    // Locked in the order of the codes, answered in the order of the scan.
    let mut sorted: Vec<&Code> = codes.iter().collect();
    sorted.sort_unstable();
    let texts: Vec<String> = sorted.iter().map(ToString::to_string).collect();
    let books = Books::open(&mut tx, &show.theatre_id, &texts).await?;
    let mut tickets: Vec<(&Code, TicketAnswer)> = Vec::with_capacity(codes.len());
    for code in sorted {
        let entrance = Entrance {
            code: code.as_str(),
            theatre: &show.theatre_id,
            show: show.id,
            device,
            let_in: LetIn { at: now, scan },
        };
        let answer = look(state, &mut tx, &books, code, show, &entrance, now).await?;
        records::note(&mut tx, looker, &entrance, answer.outcome, now).await?;
        tickets.push((code, answer));
    }
    let place = |code: &Code| codes.iter().position(|other| other == code);
    tickets.sort_by_key(|(code, _)| place(code));
    let answer = ScanAnswer { scan, tickets: tickets.into_iter().map(|(_, answer)| answer).collect() };
    let answer = Answer::json(StatusCode::OK, &answer)?;
    intent.commit(tx, answer, now).await
}

async fn look(
    state: &BackofficeState,
    tx: &mut PgConnection,
    books: &Books,
    code: &Code,
    show: &Show,
    entrance: &Entrance<'_>,
    now: Timestamp,
) -> Result<TicketAnswer, Problem> {
    let finding = books.finding(code, show.id);
    let seat = books.seat(code);
    if finding != Finding::Good {
        let mut answer = books::plain(code, finding.outcome(), seat);
        books::explain(state, &mut answer, &finding).await?;
        return Ok(answer);
    }
    Ok(match admit(tx, entrance, now).await? {
        None => books::plain(code, Outcome::Admitted, seat),
        // A retry of a scan whose answer was lost and whose key has expired.
        Some(stands) if stands.let_in().scan == entrance.let_in.scan => books::plain(code, Outcome::Admitted, seat),
        Some(stands) => TicketAnswer {
            used_at: Some(show.local_iso(stands.let_in().at)),
            used_by: Some(stands.let_in().scan),
            used_where: Some(stands.device),
            ..books::plain(code, Outcome::AlreadyUsed, seat)
        },
    })
}

/// Admits a ticket; otherwise returns its active admission, locked.
pub(super) async fn admit(
    tx: &mut PgConnection,
    entrance: &Entrance<'_>,
    now: Timestamp,
) -> Result<Option<Admission>, Problem> {
    for _ in 0..MAX_LOOKS {
        if admissions::admit(tx, ids::new_id(), entrance, now).await? {
            return Ok(None);
        }
        if let Some(stands) = admissions::standing(tx, entrance.code).await? {
            return Ok(Some(stands));
        }
    }
    Err(Problem::new(http::Code::Overloaded, "Others are busy with this very ticket. Please scan it again."))
}

/// Parses the scan's id from the idempotency key.
fn id_of(intent: &Intent) -> Result<Uuid, Problem> {
    Uuid::parse_str(intent.key()).map_err(|_| {
        Problem::new(
            http::Code::KeyMalformed,
            "The Idempotency-Key of a scan is the scan's id, a UUID of the device's.",
        )
    })
}

/// Fails long before and long after a show.
pub(super) fn open_door(show: &Show, now: Timestamp) -> Result<(), Problem> {
    if door::is_open(show.starts_at, now) {
        return Ok(());
    }
    let detail = format!("{} starts {}. Choose a show of today.", show.film, show.starts_local);
    Err(Problem::new(http::Code::DoorClosed, detail))
}
