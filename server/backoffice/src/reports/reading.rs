//! Database access of reports: one snapshot, a timeout, and a limited number at a time; and the screens they filter by.

use std::time::Duration;

use domain::api::reports::ReportScreen;
use sqlx::{PgConnection, Postgres, Transaction};

use super::ReportSlots;
use crate::BackofficeState;
use http::{ApiResult, Code, Problem};

/// Maximum wait for a report slot.
const SLOT_DEADLINE: Duration = Duration::from_secs(5);
/// A read-only snapshot with a statement timeout. Sequential and bitmap scans and hash and merge joins are off, so that
/// tables are read by keys, starting at the theatre's shows: the cost depends on this theatre's sales, not on all
/// sales. By default the planner of a small chain scans whole tables, and continues to do so for a while after it has
/// grown.
const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL statement_timeout = '5s'; \
                     SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; \
                     SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off";

/// Days before the period from which shows are searched. Payments arrive before the start of their show or shortly
/// after; the rare worst case is a webhook that was lost for weeks.
pub(super) const LATE_DAYS: i32 = 35;

/// A report slot with its snapshot.
pub(super) struct Reading<'a> {
    pub(super) tx: Transaction<'static, Postgres>,
    _slots: ReportSlots<'a>,
}

impl<'a> Reading<'a> {
    /// Waits for a slot and begins. 503 when no slot is free in time.
    pub(super) async fn begin(state: &'a BackofficeState, theatre: &str) -> ApiResult<Self> {
        let slots = tokio::time::timeout(SLOT_DEADLINE, state.reports.wait_for_slots(theatre)).await;
        let Ok(Ok(slots)) = slots else {
            return Err(Problem::new(Code::Overloaded, "Others are reading reports. Please try again in a moment."));
        };
        Ok(Self { tx: state.pg.begin_with(BEGIN).await?, _slots: slots })
    }
}

/// Converts an error; a statement timeout becomes 503 with advice.
pub(super) fn query_error(cause: sqlx::Error) -> Problem {
    match &cause {
        sqlx::Error::Database(error) if error.code().as_deref() == Some("57014") => {
            tracing::warn!(%cause, "a report query exceeded its statement timeout");
            Problem::new(Code::Overloaded, "There is too much to read at once. Please ask for fewer days.")
        }
        _ => cause.into(),
    }
}

const SCREENS: &str = "SELECT id, name FROM screens WHERE theatre_id = $1 ORDER BY name, id LIMIT 500";
const IS_THERE: &str = "SELECT EXISTS (SELECT 1 FROM screens WHERE theatre_id = $1 AND id = $2)";

/// Returns the screens of a theatre, by name.
pub async fn screens(state: &BackofficeState, theatre: &str) -> ApiResult<Vec<ReportScreen>> {
    screens_of(&mut *state.pg.acquire().await?, theatre).await
}

/// As [`screens`], on a given connection.
pub(super) async fn screens_of(connection: &mut PgConnection, theatre: &str) -> ApiResult<Vec<ReportScreen>> {
    let rows: Vec<(String, String)> =
        sqlx::query_as(SCREENS).bind(theatre).fetch_all(connection).await.map_err(query_error)?;
    Ok(rows.into_iter().map(|(id, name)| ReportScreen { id, name }).collect())
}

/// Validates the requested screen; `None` for all screens.
///
/// # Errors
/// 404 for an unknown screen.
pub(super) async fn check_screen<'a>(
    connection: &mut PgConnection,
    theatre: &str,
    screen: Option<&'a str>,
) -> ApiResult<Option<&'a str>> {
    let Some(id) = screen.filter(|id| !id.is_empty()) else { return Ok(None) };
    let is_there: bool =
        sqlx::query_scalar(IS_THERE).bind(theatre).bind(id).fetch_one(connection).await.map_err(query_error)?;
    if is_there { Ok(Some(id)) } else { Err(Problem::not_found("screen")) }
}
