//! Layouts: import from a file or the editor, which sends the same format; validate, store, load and export.

use std::time::Duration;

use axum::body::Bytes;
use axum::http::StatusCode;
use domain::api::organiser::{LayoutCategory, LayoutImport, LayoutView};
use domain::layout::import::{self as files, Finding, FindingKind, Imported};
use domain::layout::{FocusChoice, Layout};
use domain::seats::MAX_SEATS_PER_SHOW;
use domain::time::Timestamp;
use serde_json::Value;
use sha2::{Digest, Sha256};
use sqlx::PgConnection;
use sqlx::types::Json;
use tokio::sync::{Semaphore, SemaphorePermit};
use uuid::Uuid;

use crate::BackofficeState;
use http::idempotency::Answer;
use http::{ApiResult, Code, Problem, describe_rejection};
use identity::accounts::StaffAction;
use platform::clock::to_utc;
use platform::database::BindAll;
use platform::ids;

/// Maximum size of a layout file, bytes: 100,000 seats with the attributes that editors add.
pub const MAX_FILE_BYTES: usize = 32 * 1024 * 1024;
/// Audit reason of an import. The reason for using a layout is given when a screen gets it.
pub const REASON: &str = "Imported from a file or drawn.";
/// Audit reason of a layout that differs from another one by its focus.
pub const FOCUS_REASON: &str = "Turned towards its stage.";
/// Limits uploads in memory to four at a time per replica. Together they take about 512 MiB: the largest is a form of
/// twice [`MAX_FILE_BYTES`], of which a second copy exists while it is received, decoded or parsed.
static UPLOADS: Semaphore = Semaphore::const_new(4);
/// Limits parsing to one file at a time per replica: a large one takes half a second of a core, and ten times its size
/// in memory.
static PARSING: Semaphore = Semaphore::const_new(1);
/// Maximum wait for the slot of an upload, and for the parsing slot.
const SLOT_DEADLINE: Duration = Duration::from_secs(5);
/// Deadline for the body of an upload, so that a slow client gives its slot back. At 14 Mbit/s, a file of
/// [`MAX_FILE_BYTES`] arrives in this time.
const BODY_DEADLINE: Duration = Duration::from_secs(20);
/// Maximum number of JSON objects and arrays in a file: two per seat, and as many again for rows and zones. Each takes
/// half a kilobyte or more of memory once parsed, however short its text.
const MAX_NODES: usize = 4 * MAX_SEATS_PER_SHOW;
/// Maximum number of commas in a file: twice what editors commonly write per seat.
const MAX_COMMAS: usize = 20 * MAX_SEATS_PER_SHOW;
/// Maximum number of unused layouts per theatre; an import deletes the oldest.
const MAX_UNPUBLISHED: i64 = 50;
/// Maximum number of findings in a problem's detail; `findings` lists all.
const MAX_LISTED: usize = 5;

/// The slot of an upload in memory.
pub type UploadSlot = SemaphorePermit<'static>;

/// Reads the body of an upload once it has a slot. The caller keeps the slot until the file is stored or refused.
///
/// # Errors
/// 503 while too many other uploads are in memory, 400 for a body that does not arrive in time.
pub async fn read_upload<T>(reading: impl Future<Output = T>) -> ApiResult<(T, UploadSlot)> {
    let slot = wait_for_slot(&UPLOADS).await?;
    let body = tokio::time::timeout(BODY_DEADLINE, reading).await.map_err(|_| {
        let detail = format!("The file did not arrive within {} seconds. Please try again.", BODY_DEADLINE.as_secs());
        Problem::new(Code::Malformed, detail)
    })?;
    Ok((body, slot))
}

/// Waits for a slot.
///
/// # Errors
/// 503 when none is free in time.
async fn wait_for_slot(slots: &'static Semaphore) -> ApiResult<SemaphorePermit<'static>> {
    tokio::time::timeout(SLOT_DEADLINE, slots.acquire())
        .await
        .map_err(|_| Problem::new(Code::Overloaded, "Another file is being read. Please try again in a moment."))?
        .map_err(|cause| Problem::internal(&cause))
}

/// An uploaded layout file, not parsed yet.
#[derive(Debug)]
pub enum File {
    /// A [`LayoutImport`] in JSON.
    Request(Bytes),
    /// A submitted form.
    Form {
        /// Name of the layout, for a file without one.
        name: String,
        /// Allows the import to change printed seat labels.
        may_relabel: bool,
        /// The plan, JSON.
        plan: String,
    },
}

impl File {
    /// Returns the file with the SHA-256 digest of its bytes, which identifies it in the idempotency intent.
    ///
    /// # Errors
    /// When the server stops.
    pub async fn digested(self) -> ApiResult<(Self, [u8; 32])> {
        let hashing = tokio::task::spawn_blocking(move || {
            let mut hash = Sha256::new();
            match &self {
                Self::Request(bytes) => hash.update(bytes),
                Self::Form { name, may_relabel, plan } => {
                    hash.update([u8::from(*may_relabel)]);
                    // The length prefix separates the fields: ("ab", "c") and ("a", "bc") differ.
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

    /// Parses the file, after a check of its number of objects and commas.
    fn read(self) -> ApiResult<LayoutImport> {
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
            Self::Request(bytes) => Ok(axum::Json::<LayoutImport>::from_bytes(&bytes)?.0),
            Self::Form { name, may_relabel, plan } => {
                Ok(LayoutImport { name, may_relabel, focus: None, plan: parse_plan(&plan)? })
            }
        }
    }
}

/// A layout with its facts.
#[derive(Debug)]
pub struct LayoutDetails {
    /// The layout.
    pub layout: Layout,
    /// Its facts.
    pub view: LayoutView,
    /// The layout was imported in this theatre, and may be given to a screen.
    pub is_own: bool,
}

/// Imports a layout. A refused file is not stored.
///
/// # Errors
/// 400 with all errors of the file.
pub async fn import(state: &BackofficeState, action: &StaffAction<'_>, file: File) -> ApiResult<Answer> {
    if let Some(answer) = action.intent.replay(&state.pg, state.clock.now()).await? {
        return Ok(answer);
    }
    let Imported { layout, remarks } = read(file).await?;
    store(state, action, &layout, remarks).await
}

/// Stores a layout with another focus beside the first one, which stays as it is.
///
/// # Errors
/// 404 without such a layout, 400 if it is too large with this focus.
pub async fn set_focus(
    state: &BackofficeState,
    action: &StaffAction<'_>,
    layout: Uuid,
    focus: FocusChoice,
) -> ApiResult<Answer> {
    if let Some(answer) = action.intent.replay(&state.pg, state.clock.now()).await? {
        return Ok(answer);
    }
    let LayoutDetails { layout, view, .. } = room(state, action.theatre, layout).await?;
    let turning = tokio::task::spawn_blocking(move || layout.with_focus(focus));
    let turned = turning.await.map_err(|cause| Problem::internal(&cause))?;
    let turned = turned.map_err(|why| refused(vec![Finding::of_error(&why)]))?;
    store(state, action, &turned, view.remarks).await
}

async fn store(
    state: &BackofficeState,
    action: &StaffAction<'_>,
    layout: &Layout,
    remarks: Vec<Finding>,
) -> ApiResult<Answer> {
    let stored = serde_json::to_string(layout).map_err(|cause| Problem::internal(&cause))?;
    let id = ids::new_id();
    let view = view_of(id, layout, remarks, false);
    let mut begun = match action.begin(state).await? {
        Ok(begun) => begun,
        Err(answer) => return Ok(answer),
    };
    let (who, now) = (action.staff.session.account, begun.now);
    delete_oldest(&mut begun.tx, action.theatre, MAX_UNPUBLISHED - 1).await?;
    insert(&mut begun.tx, action.theatre, &view, &stored, who, now).await?;
    let answer = Answer::json(StatusCode::CREATED, &view)?;
    begun.finish("layout_imported", format!("layout {id}"), answer).await
}

/// Parses a file on a blocking thread, one file at a time.
async fn read(file: File) -> ApiResult<Imported> {
    let slot = wait_for_slot(&PARSING).await?;
    let reading = tokio::task::spawn_blocking(move || {
        // The slot is held until parsing ends, even if the client disconnects earlier.
        let _slot = slot;
        let LayoutImport { name, may_relabel, focus, plan } = file.read()?;
        let name = if name.trim().is_empty() { "Room".to_owned() } else { name };
        let mut imported = files::import(plan, &name, may_relabel).map_err(refused)?;
        if let Some(focus) = focus {
            let turned = imported.layout.with_focus(focus);
            imported.layout = turned.map_err(|why| refused(vec![Finding::of_error(&why)]))?;
        }
        Ok(imported)
    });
    reading.await.map_err(|cause| Problem::internal(&cause))?
}

/// Parses a plan sent as the text of a form.
fn parse_plan(text: &str) -> ApiResult<Value> {
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
            describe_rejection(&finding.place).trim_end_matches('.').clone_into(&mut finding.place);
        }
    }
    let listed = findings.iter().take(MAX_LISTED).map(ToString::to_string).collect::<Vec<_>>().join(" ");
    let more = findings.len().saturating_sub(MAX_LISTED);
    let more = if more > 0 { format!(" And {more} more.") } else { String::new() };
    Problem::new(Code::LayoutRefused, format!("{listed}{more} Nothing was kept.")).with_findings(findings)
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
        focus: layout.known_focus(),
        categories: categories.collect(),
        remarks,
        published,
    }
}

/// Returns a layout that was imported in this theatre, or that one of its screens has.
///
/// # Errors
/// 404 when there is none.
pub async fn room(state: &BackofficeState, theatre: &str, layout: Uuid) -> ApiResult<LayoutDetails> {
    let found = of_theatre(&mut *state.pg.acquire().await?, theatre, layout).await?;
    let found = found.ok_or_else(|| Problem::not_found("layout"))?;
    // Parsing the layout of an arena is slow: a blocking thread keeps the other requests of this thread responsive.
    let reading = tokio::task::spawn_blocking(move || serde_json::from_str::<Layout>(&found.plan));
    let read = reading.await.map_err(|cause| Problem::internal(&cause))?;
    let read = read.map_err(|cause| Problem::internal(&cause))?;
    let view = view_of(layout, &read, found.remarks.0, found.published);
    Ok(LayoutDetails { layout: read, view, is_own: found.is_own })
}

/// Returns the indices of seats of a layout that are sold in future shows of this theatre. For information only: those
/// shows keep their layout.
pub async fn sold_seats(state: &BackofficeState, theatre: &str, layout: Uuid) -> ApiResult<Vec<u32>> {
    // OFFSET 0 keeps the planner from flattening the subquery: each show then reads its own partition of the claims.
    let seats: Vec<i32> = sqlx::query_scalar(
        "SELECT DISTINCT claim.seat_no
         FROM shows show
         JOIN screens screen ON screen.id = show.screen_id
         CROSS JOIN LATERAL (SELECT seat_no FROM seat_claims WHERE show_id = show.id AND state = 'sold' OFFSET 0) claim
         WHERE screen.theatre_id = $1 AND show.layout_id = $2 AND show.starts_at > $3 AND NOT show.called_off
         ORDER BY claim.seat_no LIMIT $4",
    )
    .bind_all((theatre, layout, to_utc(state.clock.now()), MAX_SEATS_PER_SHOW as i64))
    .fetch_all(&state.pg)
    .await?;
    // A table constraint excludes negative numbers.
    Ok(seats.into_iter().map(i32::unsigned_abs).collect())
}

/// A layout as stored.
#[derive(platform::FromRow)]
pub(super) struct LayoutRow {
    /// JSON of `domain::layout::Layout`.
    pub plan: String,
    pub remarks: Json<Vec<Finding>>,
    pub published: bool,
    pub is_own: bool,
}

async fn insert(
    tx: &mut PgConnection,
    theatre: &str,
    view: &LayoutView,
    plan: &str,
    who: Uuid,
    now: Timestamp,
) -> sqlx::Result<()> {
    let sql = "INSERT INTO layouts (id, name, plan, seat_count) VALUES ($1, $2, $3::text::jsonb, $4)";
    sqlx::query(sql).bind_all((view.id, &view.name, plan, view.seats.cast_signed())).execute(&mut *tx).await?;
    sqlx::query(
        "INSERT INTO theatre_layouts (layout_id, theatre_id, remarks, imported_by, imported_at) VALUES ($1, $2, $3, $4, $5)",
    )
    .bind_all((view.id, theatre, Json(&view.remarks), who, to_utc(now)))
    .execute(tx)
    .await?;
    Ok(())
}

/// Deletes layouts of a theatre that were never used, except the newest `keep`.
async fn delete_oldest(tx: &mut PgConnection, theatre: &str, keep: i64) -> sqlx::Result<()> {
    let sql = "DELETE FROM theatre_layouts WHERE layout_id IN (
                   SELECT layout_id FROM theatre_layouts WHERE theatre_id = $1 AND published_at IS NULL
                   ORDER BY imported_at DESC OFFSET $2 FOR UPDATE SKIP LOCKED)
               RETURNING layout_id";
    let old: Vec<Uuid> = sqlx::query_scalar(sql).bind_all((theatre, keep)).fetch_all(&mut *tx).await?;
    if !old.is_empty() {
        sqlx::query("DELETE FROM layouts WHERE id = ANY($1)").bind(old).execute(tx).await?;
    }
    Ok(())
}

/// Returns a layout that was imported in a theatre, or that one of its screens has.
pub(super) async fn of_theatre(
    connection: &mut PgConnection,
    theatre: &str,
    layout: Uuid,
) -> sqlx::Result<Option<LayoutRow>> {
    let sql = "SELECT room.plan::text AS plan, coalesce(brought.remarks, '[]') AS remarks,
                      (brought.layout_id IS NULL OR brought.published_at IS NOT NULL) AS published,
                      brought.layout_id IS NOT NULL AS is_own
               FROM layouts room
               LEFT JOIN theatre_layouts brought ON brought.layout_id = room.id AND brought.theatre_id = $1
               WHERE room.id = $2
                 AND (brought.layout_id IS NOT NULL
                      OR EXISTS (SELECT 1 FROM screens WHERE theatre_id = $1 AND layout_id = room.id))";
    sqlx::query_as(sql).bind_all((theatre, layout)).fetch_optional(connection).await
}

/// Locks a layout that was imported in a theatre; `false` when there is none.
pub(super) async fn lock(tx: &mut PgConnection, theatre: &str, layout: Uuid) -> sqlx::Result<bool> {
    let sql = "SELECT 1 FROM theatre_layouts WHERE theatre_id = $1 AND layout_id = $2 FOR UPDATE";
    let found: Option<i32> = sqlx::query_scalar(sql).bind_all((theatre, layout)).fetch_optional(tx).await?;
    Ok(found.is_some())
}

/// Marks a layout as used by a screen.
pub(super) async fn mark_published(tx: &mut PgConnection, layout: Uuid, now: Timestamp) -> sqlx::Result<()> {
    let sql = "UPDATE theatre_layouts SET published_at = $2 WHERE layout_id = $1 AND published_at IS NULL";
    sqlx::query(sql).bind_all((layout, to_utc(now))).execute(tx).await.map(drop)
}
