//! Rooms from files and from the drawing board, which sends a file like any other: read, told about, kept; drawn and written out again.

use std::time::Duration;

use axum::Json;
use axum::body::Bytes;
use axum::http::StatusCode;
use domain::api::organiser::{LayoutCategory, LayoutImport, LayoutView};
use domain::layout::Layout;
use domain::layout::import::{self as files, Finding, FindingKind, Imported};
use domain::seats::MAX_SEATS_PER_SHOW;
use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;
use uuid::Uuid;

use super::{Act, sql};
use crate::BackofficeState;
use http::idempotency::Answer;
use http::{Code, Problem, unreadable};
use platform::ids;

/// Largest file of a room, bytes: 100,000 seats with all that editors write about them.
pub const MAX_FILE_BYTES: usize = 32 * 1024 * 1024;
/// Why a room came in is said when a screen gets it.
pub const REASON: &str = "Imported from a file or drawn.";
/// Files read at a time by one replica: a large one takes half a second of a core, and ten times its size in memory.
static READING: Semaphore = Semaphore::const_new(1);
/// Nobody waits longer than this for their file's turn.
const TURN_DEADLINE: Duration = Duration::from_secs(10);
/// Objects and lists in a file: two of a seat, and as much again for rows and zones. Each takes half a kilobyte or more
/// once it is read, however few bytes it is written in.
const MAX_NODES: usize = 4 * MAX_SEATS_PER_SHOW;
/// Commas in a file: what editors write about a seat is seldom half of that.
const MAX_COMMAS: usize = 20 * MAX_SEATS_PER_SHOW;
/// Rooms a theatre may have imported and not used; the oldest go.
const MAX_UNPUBLISHED: i64 = 50;
/// Findings told in the sentence of a problem; the list has all.
const MAX_IN_WORDS: usize = 5;

/// A room in a file, as it was sent: nothing of it is read before it is its turn.
#[derive(Debug)]
pub enum File {
    /// A [`LayoutImport`] in JSON.
    Request(Bytes),
    /// Of a form.
    Form {
        /// The room's name where the file has none.
        name: String,
        /// Whether what is printed on seats may be changed.
        mend: bool,
        /// The plan, JSON.
        plan: String,
    },
}

impl File {
    /// The file with what makes two of them the same: a digest of its very bytes.
    ///
    /// # Errors
    /// When the server stops.
    pub async fn digested(self) -> Result<(Self, [u8; 32]), Problem> {
        let hashing = tokio::task::spawn_blocking(move || {
            let mut hash = Sha256::new();
            match &self {
                Self::Request(bytes) => hash.update(bytes),
                Self::Form { name, mend, plan } => {
                    hash.update([u8::from(*mend)]);
                    // The length goes in as well: ("ab", "c") is not ("a", "bc").
                    hash.update((name.len() as u64).to_le_bytes());
                    hash.update(name);
                    hash.update(plan);
                }
            }
            let digest: [u8; 32] = hash.finalize().into();
            (self, digest)
        });
        hashing.await.map_err(|cause| Problem::internal(&cause))
    }

    /// What is in it, if that is little enough to be read.
    fn read(self) -> Result<LayoutImport, Problem> {
        let bytes = match &self {
            Self::Request(bytes) => &bytes[..],
            Self::Form { plan, .. } => plan.as_bytes(),
        };
        let (nodes, commas) = bytes.iter().fold((0, 0), |(nodes, commas), byte| match byte {
            b'{' | b'[' => (nodes + 1, commas),
            b',' => (nodes, commas + 1),
            _ => (nodes, commas),
        });
        if nodes > MAX_NODES || commas > MAX_COMMAS {
            let finding = Finding { kind: FindingKind::TooManySeats, place: String::new(), count: 1 };
            return Err(refused(vec![finding]));
        }
        match self {
            Self::Request(bytes) => Ok(Json::<LayoutImport>::from_bytes(&bytes)?.0),
            Self::Form { name, mend, plan } => Ok(LayoutImport { name, mend, plan: take_plan(&plan)? }),
        }
    }
}

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
pub async fn import(state: &BackofficeState, act: &Act<'_>, file: File) -> Result<Answer, Problem> {
    if let Some(answer) = act.intent.replay(&state.pg, state.clock.now()).await? {
        return Ok(answer);
    }
    let Imported { layout, remarks } = read(file).await?;
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
async fn read(file: File) -> Result<Imported, Problem> {
    let turn = tokio::time::timeout(TURN_DEADLINE, READING.acquire()).await;
    let turn = turn
        .map_err(|_| Problem::new(Code::Overloaded, "Another file is being read. Please try again in a moment."))?
        .map_err(|cause| Problem::internal(&cause))?;
    let reading = tokio::task::spawn_blocking(move || {
        // Over when the file is read, also when whoever sent it has left before.
        let _turn = turn;
        let LayoutImport { name, mend, plan } = file.read()?;
        let name = if name.trim().is_empty() { "Room".to_owned() } else { name };
        files::import(plan, &name, mend).map_err(refused)
    });
    reading.await.map_err(|cause| Problem::internal(&cause))?
}

/// A plan as text, as forms have it.
fn take_plan(text: &str) -> Result<Value, Problem> {
    serde_json::from_str(text.trim_start_matches('\u{feff}')).map_err(|cause| {
        let place = format!("it is no JSON (line {} column {})", cause.line(), cause.column());
        let finding = Finding { kind: FindingKind::NotAPlan, place, count: 1 };
        refused(vec![finding])
    })
}

fn refused(mut findings: Vec<Finding>) -> Problem {
    for finding in findings.iter_mut().filter(|finding| finding.kind == FindingKind::NotAPlan) {
        let is_of_a_reader = ["missing field", "unknown ", "invalid ", "duplicate field", "data did not match"];
        if is_of_a_reader.iter().any(|words| finding.place.contains(words)) {
            unreadable::describe(&finding.place).trim_end_matches('.').clone_into(&mut finding.place);
        }
    }
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
pub async fn room(state: &BackofficeState, theatre: &str, layout: Uuid) -> Result<Room, Problem> {
    let found = sql::layouts::of_theatre(&mut *state.pg.acquire().await?, theatre, layout).await?;
    let found = found.ok_or_else(|| Problem::not_found("layout"))?;
    // An arena takes long enough to read that it would hold up every request on this thread.
    let reading = tokio::task::spawn_blocking(move || serde_json::from_str::<Layout>(&found.plan));
    let read = reading.await.map_err(|cause| Problem::internal(&cause))?;
    let read = read.map_err(|cause| Problem::internal(&cause))?;
    let view = view_of(layout, &read, found.remarks.0, found.published);
    Ok(Room { layout: read, view, is_own: found.is_own })
}

/// Seats of a room that are sold in shows of this theatre to come, by index. For looking: such a show keeps its room,
/// whatever becomes of the next one.
///
/// # Errors
/// When the database does not answer.
pub async fn sold_seats(state: &BackofficeState, theatre: &str, layout: Uuid) -> Result<Vec<u32>, Problem> {
    let now = state.clock.now();
    Ok(sql::layouts::sold_seats(&mut *state.pg.acquire().await?, theatre, layout, now, MAX_SEATS_PER_SHOW as i64)
        .await?)
}
