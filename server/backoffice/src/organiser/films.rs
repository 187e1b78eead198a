//! Films: any theatre may add one; all theatres may show it.

use axum::http::StatusCode;
use domain::api::organiser::{FilmChoice, FilmRequest};
use sha2::{Digest, Sha256};
use sqlx::PgConnection;

use super::{MAX_TEXT_CHARS, slug_of, text_of, title_of};
use crate::BackofficeState;
use http::idempotency::Answer;
use http::{ApiResult, Code, Problem};
use identity::accounts::StaffAction;
use platform::database::BindAll;

/// Maximum running time of a film or concert, minutes.
pub(super) const MAX_RUNNING_MINUTES: u32 = 24 * 60;
/// Maximum number of films in the list.
const MAX_CHOICES: i64 = 1_000;
/// Number of poster hues: degrees of a circle.
const HUES: u16 = 360;

/// Lists all films, by title.
pub async fn list(state: &BackofficeState) -> ApiResult<Vec<FilmChoice>> {
    Ok(load_all(&mut *state.pg.acquire().await?).await?)
}

/// Adds a film.
///
/// # Errors
/// 400 for an invalid title, text or running time.
pub async fn add(state: &BackofficeState, action: &StaffAction<'_>, request: &FilmRequest) -> ApiResult<Answer> {
    let title = title_of(&request.title)?;
    let text = |text, what| text_of(text, MAX_TEXT_CHARS, what);
    let (tagline, synopsis) = (text(&request.tagline, "The tagline")?, text(&request.synopsis, "The synopsis")?);
    let (rating, genre) = (text_of(&request.rating, 20, "The rating")?, text_of(&request.genre, 60, "The genre")?);
    if !(1..=MAX_RUNNING_MINUTES).contains(&request.running_minutes) {
        let detail = format!("A film runs 1 to {MAX_RUNNING_MINUTES} minutes.");
        return Err(Problem::new(Code::Malformed, detail));
    }
    let choice = FilmChoice { id: slug_of(title), title: title.to_owned(), running_minutes: request.running_minutes };
    let mut begun = match action.begin(state).await? {
        Ok(begun) => begun,
        Err(answer) => return Ok(answer),
    };
    sqlx::query(
        "INSERT INTO films (id, title, tagline, synopsis, running_minutes, rating, genre, hue)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
    )
    .bind_all((&choice.id, title, tagline, synopsis))
    .bind_all((choice.running_minutes.cast_signed(), rating, genre, hue_of(title)))
    .execute(&mut *begun.tx)
    .await?;
    let answer = Answer::json(StatusCode::CREATED, &choice)?;
    begun.finish("film_added", format!("film {}", choice.id), answer).await
}

/// Derives the hue of the generated poster from the title.
fn hue_of(title: &str) -> i16 {
    let digest = Sha256::digest(title.as_bytes());
    let number = u16::from_be_bytes([digest[0], digest[1]]);
    (number % HUES).cast_signed()
}

fn choice((id, title, minutes): (String, String, i32)) -> FilmChoice {
    FilmChoice { id, title, running_minutes: minutes.unsigned_abs() }
}

async fn load_all(connection: &mut PgConnection) -> sqlx::Result<Vec<FilmChoice>> {
    let sql = "SELECT id, title, running_minutes FROM films ORDER BY title, id LIMIT $1";
    let rows: Vec<(String, String, i32)> = sqlx::query_as(sql).bind(MAX_CHOICES).fetch_all(connection).await?;
    Ok(rows.into_iter().map(choice).collect())
}

pub(super) async fn find(connection: &mut PgConnection, film: &str) -> sqlx::Result<Option<FilmChoice>> {
    let sql = "SELECT id, title, running_minutes FROM films WHERE id = $1";
    let row: Option<(String, String, i32)> = sqlx::query_as(sql).bind(film).fetch_optional(connection).await?;
    Ok(row.map(choice))
}
