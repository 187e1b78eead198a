//! Rehearsals of an on-sale: simulated visitors try for the seats of a show that exists for the rehearsal only.
//!
//! A rehearsal sells the room, prices, house seats and waiting room of a show. It has no row in `shows`: only
//! `Catalogue::find_show_or_rehearsal` finds it, and only the handlers that lead to a hold ask that function. A hold
//! counts as a sale, so there is no booking, payment, ticket, mail or webhook. At the end the waiting room and the keys
//! of the lock store are deleted; the figures stay until staff delete them.
//!
//! `start` records a rehearsal, and the next server in [`serve_forever`] claims it. Its reports renew a lease. Without
//! them every server may end it: a server that stops leaves nothing behind. A server that cannot report dismisses its
//! visitors before the lease ends: no two crowds load the deployment.
//!
//! One runs at a time in the whole deployment, which the unique index `rehearsals_one_running` enforces. None starts near
//! the opening of a show's waiting room (`REHEARSAL_QUIET_MIN`). An opening that is set meanwhile ends it: each report
//! looks for one. Waiting rooms of drafts and of called-off shows do not count.
//!
//! Not rehearsed: payment, puzzles (the server would solve its own), and areas without numbered seats.

mod sql;
mod visitors;

use std::sync::Arc;
use std::time::{Duration, Instant};

use domain::rehearsal::{
    LONGEST_MS, MAX_ARRIVAL_MINUTES, MAX_PEOPLE, RehearsalEnd, RehearsalFigures, RehearsalRequest,
};
use domain::seats::SeatIndex;
use domain::time::{MINUTE_MS, SECOND_MS, Timestamp};
use sqlx::PgConnection;
use tokio::task::JoinSet;
use tokio::time::timeout_at;
use uuid::Uuid;

use crate::BackofficeState;
use admission::waiting_room;
use http::idempotency::Answer;
use http::{ApiResult, Code, Problem};
use identity::accounts::{Staff, StaffAction};
use identity::audit::{self, AuditEntry};
use platform::background::PeriodicLoop;
use platform::ids;
use visitors::{Crowd, SimulatedVisitor};
pub use visitors::{Site, SiteAnswer};

/// Period of reports, and of polls for rehearsals to begin.
const REPORT_EVERY: Duration = Duration::from_secs(1);
/// One in this many polls also ends abandoned rehearsals.
const SWEEP_EVERY: u32 = 10;
/// Time without a report after which a rehearsal counts as abandoned, milliseconds.
const LEASE_MS: i64 = 30 * SECOND_MS;
/// [`LEASE_MS`] as a duration, for the server that runs the rehearsal.
const LEASE: Duration = Duration::from_millis(LEASE_MS.unsigned_abs());
/// Time before the opening of a show's waiting room at which a running rehearsal ends, milliseconds.
const END_BEFORE_OPENING_MS: i64 = 5 * MINUTE_MS;
/// Period after the end in which each sweep deletes the lock store's keys again, milliseconds: a request in flight may
/// have loaded the map once more.
const REPEAT_DELETION_MS: i64 = MINUTE_MS;
/// Maximum duration of a rehearsal.
const MAX_DURATION: Duration = Duration::from_millis(LONGEST_MS.unsigned_abs());
/// Shortest time from the start to the opening of the waiting room, milliseconds: every server knows it by then.
const MIN_OPENING_DELAY_MS: u64 = 2_000;

/// Audit reason of a stop and of a deletion: their forms ask for none.
const REASON: &str = "Requested on the rehearsal page.";

/// A rehearsal for its page.
#[derive(Clone, Debug)]
pub struct RehearsalView {
    /// Its figures.
    pub figures: RehearsalFigures,
    /// How it ended; `None` while it runs.
    pub end: Option<RehearsalEnd>,
    /// A byte per seat (`domain::seats::SeatState`); empty before the first hold, and after the end.
    pub map: Vec<u8>,
}

/// Records a rehearsal, which a server begins within seconds.
///
/// # Errors
/// 400 for an invalid request. 404 for another theatre's show. 409 when the show's sales end too soon, it has no seats
/// for sale, any rehearsal is running, or an on-sale is near.
pub async fn start(
    state: &BackofficeState,
    action: &StaffAction<'_>,
    show: Uuid,
    request: &RehearsalRequest,
) -> ApiResult<()> {
    if !(1..=MAX_PEOPLE).contains(&request.people) || request.arrival_minutes > MAX_ARRIVAL_MINUTES {
        let detail =
            format!("A rehearsal has 1 to {MAX_PEOPLE} visitors, who arrive within {MAX_ARRIVAL_MINUTES} minutes.");
        return Err(Problem::new(Code::Malformed, detail));
    }
    // A repeated request has started it before.
    let Ok(mut begun) = action.begin(state).await? else { return Ok(()) };
    let show = waiting_room::show_at(state, action.theatre, show).await?;
    catalogue::sales_open(&show, begun.now.plus_ms(LONGEST_MS))?;
    // The visitors take suggested seats, which never include spaces for wheelchairs and companions.
    let is_offered = |seat: &SeatIndex| show.layout.seat_kind(*seat).rules().is_offered_unasked;
    let for_sale = (0..show.seat_count).filter(|seat| show.blocked.binary_search(seat).is_err());
    let seats = for_sale.filter(is_offered).map(|_| 1).sum();
    if seats == 0 {
        return Err(Problem::new(Code::WrongState, "This show has no numbered seats for sale."));
    }
    if is_near_opening(state, &mut begun.tx, state.rehearsal_settings.quiet_ms(), begun.now).await? {
        let detail = "A show with a waiting room goes on sale soon, or has just done so, and a rehearsal would slow it \
                      down. Please rehearse later.";
        return Err(Problem::new(Code::OnSaleNear, detail));
    }
    let figures = RehearsalFigures {
        people: request.people,
        arrival_minutes: request.arrival_minutes,
        seats,
        per_person: u32::try_from(show.per_person).unwrap_or(u32::MAX),
        per_second: waiting_room::overview(state, show.id).await?.map(|room| room.queue.per_second),
        ..RehearsalFigures::default()
    };
    let names = (ids::new_id(), show.id, action.theatre);
    if !sql::insert(&mut begun.tx, names, &figures, begun.now).await? {
        let detail = "Another rehearsal is running, perhaps in another theatre. Only one runs at a time: please wait \
                      for its end.";
        return Err(Problem::new(Code::RehearsalRunning, detail));
    }
    begun.finish("show_rehearsed", format!("show {}", show.id), Answer::no_content()).await?;
    Ok(())
}

/// True if a show's waiting room opens within `ahead_ms`, or has opened within the quiet time.
async fn is_near_opening(
    state: &BackofficeState,
    connection: &mut PgConnection,
    ahead_ms: i64,
    now: Timestamp,
) -> sqlx::Result<bool> {
    let quiet_ms = state.rehearsal_settings.quiet_ms();
    waiting_room::opens_between(connection, now.plus_ms(-quiet_ms), now.plus_ms(ahead_ms.min(quiet_ms))).await
}

/// The running rehearsal of a show, or the last one.
pub async fn of_show(state: &BackofficeState, show: Uuid) -> ApiResult<Option<RehearsalView>> {
    let Some(row) = sql::of_show(&state.pg, show).await? else { return Ok(None) };
    let end = row.end()?;
    let map = match end {
        // Without a map no seat is held yet.
        None => state.locks.snapshot(row.id).await.map(|snapshot| snapshot.map.to_vec()).unwrap_or_default(),
        Some(_) => Vec::new(),
    };
    Ok(Some(RehearsalView { figures: row.figures.0, end, map }))
}

/// Requests that the rehearsal of a show stops, which it does within a second.
pub async fn request_stop(state: &BackofficeState, staff: &Staff, theatre: &str, show: Uuid) -> ApiResult<()> {
    let mut tx = state.pg.begin().await?;
    if sql::request_stop(&mut tx, theatre, show).await? {
        let entry = AuditEntry::by(staff.session.account, "rehearsal_stopped", format!("show {show}"), REASON);
        audit::record(&mut tx, &entry.at(theatre), state.clock.now()).await?;
    }
    Ok(tx.commit().await?)
}

/// Deletes the figures of the last rehearsal of a show; a running one stays.
pub async fn delete(state: &BackofficeState, staff: &Staff, theatre: &str, show: Uuid) -> ApiResult<()> {
    let mut tx = state.pg.begin().await?;
    if sql::delete(&mut tx, theatre, show).await? {
        let entry = AuditEntry::by(staff.session.account, "rehearsal_deleted", format!("show {show}"), REASON);
        audit::record(&mut tx, &entry.at(theatre), state.clock.now()).await?;
    }
    Ok(tx.commit().await?)
}

/// Runs rehearsals on `site` until the server stops, and ends those that other servers abandoned.
pub async fn serve_forever(state: BackofficeState, site: Site) {
    let mut rounds = PeriodicLoop::every(&state.stop, REPORT_EVERY);
    for round in 0_u32.. {
        if !rounds.wait_next().await {
            return;
        }
        match claim(&state, &site).await {
            Ok(Some(claimed)) => {
                state.tasks.spawn(run(state.clone(), claimed));
            }
            Ok(None) => {}
            Err(problem) => tracing::debug!(?problem, "look for a rehearsal to begin failed"),
        }
        if round.is_multiple_of(SWEEP_EVERY)
            && let Err(problem) = sweep(&state).await
        {
            tracing::debug!(?problem, "end abandoned rehearsals failed");
        }
    }
}

/// Claims a rehearsal that no server has begun, and opens its waiting room.
async fn claim(state: &BackofficeState, site: &Site) -> ApiResult<Option<Arc<Crowd>>> {
    let now = state.clock.now();
    let Some((id, figures)) = sql::claim(&state.pg, now).await? else { return Ok(None) };
    let figures = figures.0;
    // Half of the visitors arrive before the opening and take part in the draw.
    let opens_in_ms = figures.per_second.map_or(0, |_| (arrival_ms(&figures) / 2).max(MIN_OPENING_DELAY_MS));
    if let Some(per_second) = figures.per_second {
        let opens_at = now.plus_ms(opens_in_ms.cast_signed());
        let mut connection = state.pg.acquire().await?;
        waiting_room::open_for_rehearsal(&mut connection, id, opens_at, per_second, now).await?;
    }
    state.waiting_rooms.reload(&state.pg, now).await?;
    let opens_at = Instant::now() + Duration::from_millis(opens_in_ms);
    Ok(Some(Arc::new(Crowd::new(id, Arc::clone(site), figures, opens_at))))
}

fn arrival_ms(figures: &RehearsalFigures) -> u64 {
    u64::from(figures.arrival_minutes) * MINUTE_MS.unsigned_abs()
}

async fn run(state: BackofficeState, crowd: Arc<Crowd>) {
    let begun_at = Instant::now();
    let figures = crowd.figures();
    let mut visitors = JoinSet::new();
    for number in 0..u16::try_from(figures.people).unwrap_or(u16::MAX) {
        let after = Duration::from_millis(ids::jitter(arrival_ms(&figures)));
        visitors.spawn(SimulatedVisitor::new(Arc::clone(&crowd), number).visit(after));
    }
    let mut rounds = PeriodicLoop::every(&state.stop, REPORT_EVERY);
    let mut reported_at = begun_at;
    let end = loop {
        if !rounds.wait_next().await {
            break RehearsalEnd::Interrupted;
        }
        while visitors.try_join_next().is_some() {}
        let sent_at = Instant::now();
        match timeout_at((reported_at + LEASE).into(), report(&state, &crowd)).await {
            Ok(Ok(Some(end))) => break end,
            Ok(Ok(None)) if visitors.is_empty() => break RehearsalEnd::AllServed,
            Ok(Ok(None)) if begun_at.elapsed() > MAX_DURATION => break RehearsalEnd::OutOfTime,
            // Other servers count the lease from `rehearsals.seen_at`, which is later.
            Ok(Ok(None)) => reported_at = sent_at,
            Ok(Err(problem)) => {
                tracing::warn!(?problem, rehearsal = %crowd.id, "report of a rehearsal failed, retrying");
            }
            Err(_) => {
                tracing::warn!(rehearsal = %crowd.id, "reports of a rehearsal failed for its whole lease, ending it");
                break RehearsalEnd::Interrupted;
            }
        }
    };
    // Shutting them down cancels their requests.
    visitors.shutdown().await;
    let mut figures = crowd.final_figures();
    if end == RehearsalEnd::SoldOut {
        figures.no_seats += figures.unserved();
    }
    let ended = async {
        sql::end(&state.pg, crowd.id, end, Some(&figures), state.clock.now()).await?;
        forget(&state, crowd.id).await
    };
    match ended.await {
        Ok(()) => tracing::info!(rehearsal = %crowd.id, ?end, "a rehearsal has ended"),
        Err(problem) => tracing::warn!(?problem, rehearsal = %crowd.id, "end a rehearsal failed; its lease ends it"),
    }
}

/// Reports the figures. Returns the end if it has come.
async fn report(state: &BackofficeState, crowd: &Crowd) -> ApiResult<Option<RehearsalEnd>> {
    let (figures, now) = (crowd.figures(), state.clock.now());
    Ok(match sql::report(&state.pg, crowd.id, &figures, now).await? {
        // Another server ended it: this one was late with its reports.
        None => Some(RehearsalEnd::Interrupted),
        Some(true) => Some(RehearsalEnd::Stopped),
        Some(false) if figures.taken >= figures.seats => Some(RehearsalEnd::SoldOut),
        Some(false) => {
            let mut connection = state.pg.acquire().await?;
            is_near_opening(state, &mut connection, END_BEFORE_OPENING_MS, now).await?.then_some(RehearsalEnd::GaveWay)
        }
    })
}

/// Ends abandoned rehearsals, and deletes again the maps that requests in flight may have loaded.
async fn sweep(state: &BackofficeState) -> ApiResult<()> {
    let now = state.clock.now();
    for id in sql::abandoned(&state.pg, now.plus_ms(-LEASE_MS)).await? {
        sql::end(&state.pg, id, RehearsalEnd::Interrupted, None, now).await?;
        tracing::warn!(rehearsal = %id, "ended a rehearsal that its server abandoned");
    }
    for id in sql::ended(&state.pg, now.plus_ms(-REPEAT_DELETION_MS)).await? {
        forget(state, id).await?;
    }
    Ok(())
}

/// Deletes the map and the holds of a rehearsal that has ended.
async fn forget(state: &BackofficeState, id: Uuid) -> ApiResult<()> {
    state.catalogue.evict_rehearsal(id).await;
    Ok(state.locks.forget(id).await?)
}
