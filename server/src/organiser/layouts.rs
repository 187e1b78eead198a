//! Rooms from files: read, told about, kept; drawn and written out again.

use std::time::Duration;

use axum::http::StatusCode;
use domain::api_organiser::{LayoutCategory, LayoutImport, LayoutView};
use domain::layout::Layout;
use domain::layout::import::{self as files, Finding, Imported};
use serde_json::Value;
use tokio::sync::Semaphore;
use uuid::Uuid;

use super::{Act, sql};
use crate::AppState;
use crate::idempotency::Answer;
use crate::ids;
use crate::web::{Code, Problem};

/// Largest file of a room, bytes: 100,000 seats with all that editors write about them.
pub const MAX_FILE_BYTES: usize = 32 * 1024 * 1024;
/// Why a file was imported is said when a screen gets its room.
pub const REASON: &str = "Imported from a file.";
/// Files read at a time by one replica: a large one takes half a second of a core, and ten times its size in memory.
static READING: Semaphore = Semaphore::const_new(1);
/// Nobody waits longer than this for their file's turn.
const TURN_DEADLINE: Duration = Duration::from_secs(10);
/// Rooms a theatre may have imported and not used; the oldest go.
const MAX_UNPUBLISHED: i64 = 50;
/// Findings told in the sentence of a problem; the list has all.
const MAX_IN_WORDS: usize = 5;

/// A room with what is known about it.
#[derive(Debug)]
pub struct Room {
    /// The room itself.
    pub layout: Layout,
    /// Its facts.
    pub view: LayoutView,
    /// Whether it was imported in this theatre, and so may be given to a screen.
    pub is_own: bool,
}

/// Imports a room. Nothing is kept of one that is refused.
///
/// # Errors
/// 400 with everything that is wrong with the file.
pub async fn import(state: &AppState, act: &Act<'_>, request: LayoutImport) -> Result<Answer, Problem> {
    if let Some(answer) = act.intent.replay(&state.pg, state.locks.now()).await? {
        return Ok(answer);
    }
    let Imported { layout, remarks } = read(request).await?;
    let stored = serde_json::to_string(&layout).map_err(|cause| Problem::internal(&cause))?;
    let id = ids::new_id();
    let view = view_of(id, &layout, remarks, false);
    let mut begun = match act.begin(state).await? {
        Ok(begun) => begun,
        Err(answer) => return Ok(answer),
    };
    let (who, now) = (act.staff.session.account, begun.now);
    sql::layouts::forget_oldest(&mut begun.tx, act.theatre, MAX_UNPUBLISHED - 1).await?;
    sql::layouts::insert(&mut begun.tx, act.theatre, &view, &stored, who, now).await?;
    let answer = Answer::json(StatusCode::CREATED, &view)?;
    begun.done("layout_imported", format!("layout {id}"), answer).await
}

/// Reads a file on a thread of its own, a file at a time.
async fn read(request: LayoutImport) -> Result<Imported, Problem> {
    let turn = tokio::time::timeout(TURN_DEADLINE, READING.acquire()).await;
    let _turn = turn
        .map_err(|_| Problem::new(Code::Overloaded, "Another file is being read. Please try again in a moment."))?
        .map_err(|cause| Problem::internal(&cause))?;
    let LayoutImport { name, mend, plan } = request;
    let name = if name.trim().is_empty() { "Room".to_owned() } else { name };
    let reading = tokio::task::spawn_blocking(move || files::import(plan, &name, mend));
    reading.await.map_err(|cause| Problem::internal(&cause))?.map_err(refused)
}

/// A plan as text, as forms have it.
///
/// # Errors
/// 400 when it is no JSON.
pub fn take_plan(text: &str) -> Result<Value, Problem> {
    serde_json::from_str(text.trim_start_matches('\u{feff}')).map_err(|cause| {
        let finding = Finding { kind: files::FindingKind::NotAPlan, place: cause.to_string(), count: 1 };
        refused(vec![finding])
    })
}

fn refused(findings: Vec<Finding>) -> Problem {
    let told = findings.iter().take(MAX_IN_WORDS).map(ToString::to_string).collect::<Vec<_>>().join(" ");
    let more = findings.len().saturating_sub(MAX_IN_WORDS);
    let more = if more > 0 { format!(" And {more} more.") } else { String::new() };
    Problem::new(Code::LayoutRefused, format!("{told}{more} Nothing was kept.")).with_findings(findings)
}

fn view_of(id: Uuid, layout: &Layout, remarks: Vec<Finding>, published: bool) -> LayoutView {
    let mut seats = vec![0_u32; layout.categories().len()];
    for dot in layout.dots() {
        seats[usize::from(dot.category)] += 1;
    }
    let categories = layout.categories().iter().zip(seats).map(|(category, seats)| LayoutCategory {
        name: category.name.clone(),
        label: category.label().to_owned(),
        kind: category.kind,
        seats,
    });
    LayoutView {
        id,
        name: layout.name().to_owned(),
        seats: layout.seat_count(),
        rows: u32::try_from(layout.rows().count()).unwrap_or(u32::MAX),
        sections: u32::try_from(layout.sections().count()).unwrap_or(u32::MAX),
        places: layout.areas().iter().map(|area| area.capacity).sum(),
        categories: categories.collect(),
        remarks,
        published,
    }
}

/// A room that was imported in this theatre, or that one of its screens has.
///
/// # Errors
/// 404 when there is none.
pub async fn room(state: &AppState, theatre: &str, layout: Uuid) -> Result<Room, Problem> {
    let found = sql::layouts::of_theatre(&mut *state.pg.acquire().await?, theatre, layout).await?;
    let found = found.ok_or_else(|| Problem::not_found("layout"))?;
    // An arena takes long enough to read that it would hold up every request on this thread.
    let reading = tokio::task::spawn_blocking(move || serde_json::from_str::<Layout>(&found.plan));
    let read = reading.await.map_err(|cause| Problem::internal(&cause))?;
    let read = read.map_err(|cause| Problem::internal(&cause))?;
    let view = view_of(layout, &read, found.remarks.0, found.published);
    Ok(Room { layout: read, view, is_own: found.is_own })
}
