//! Screens for the filter of reports.

use domain::api::reports::ReportScreen;
use sqlx::PgConnection;

use super::reading::query_error;
use crate::BackofficeState;
use http::Problem;

const SCREENS: &str = "SELECT id, name FROM screens WHERE theatre_id = $1 ORDER BY name, id LIMIT 500";
const IS_THERE: &str = "SELECT EXISTS (SELECT 1 FROM screens WHERE theatre_id = $1 AND id = $2)";

/// Returns the screens of a theatre, by name.
pub async fn screens(state: &BackofficeState, theatre: &str) -> Result<Vec<ReportScreen>, Problem> {
    of_theatre(&mut *state.pg.acquire().await?, theatre).await
}

/// As [`screens`], on a given connection.
pub(super) async fn of_theatre(connection: &mut PgConnection, theatre: &str) -> Result<Vec<ReportScreen>, Problem> {
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
) -> Result<Option<&'a str>, Problem> {
    let Some(id) = screen.filter(|id| !id.is_empty()) else { return Ok(None) };
    let is_there: bool =
        sqlx::query_scalar(IS_THERE).bind(theatre).bind(id).fetch_one(connection).await.map_err(query_error)?;
    if is_there { Ok(Some(id)) } else { Err(Problem::not_found("screen")) }
}
