//! Films: any theatre may add one; all theatres may show it. However many a theatre adds, the list of another theatre
//! keeps the films that it shows or has added.

use axum::http::StatusCode;
use domain::api::organiser::{FilmChoice, FilmRequest};
use domain::time::MINUTE_MS;
use sha2::{Digest, Sha256};
use sqlx::PgConnection;

use super::{MAX_TEXT_CHARS, slug_of, text_of, title_of};
use crate::BackofficeState;
use http::idempotency::Answer;
use http::{ApiResult, Code, Problem};
use identity::accounts::StaffAction;
use identity::audit;
use platform::database::BindAll;
use platform::rate_limits::Allowance;

/// Maximum running time of a film or concert, minutes.
pub(super) const MAX_RUNNING_MINUTES: u32 = 24 * 60;
/// Maximum number of films in the list.
const MAX_CHOICES: i64 = 1_000;
/// Films that a theatre may add: a hundred at once, as for a festival, and a hundred a day.
const ADDED_BY_THEATRE: Allowance = Allowance { name: "films-theatre", burst: 100, each_ms: 24 * 60 * MINUTE_MS / 100 };
/// Audit action of an added film.
const ADDED: &str = "film_added";
/// Prefix of the subject of its audit entry; the id follows.
const SUBJECT: &str = "film ";
/// Number of a theatre's latest audit entries that are searched for the films it added.
const MAX_AUDIT_ENTRIES: i64 = 5_000;
/// Number of poster hues: degrees of a circle.
const HUES: u16 = 360;

/// Lists the films that a theatre can choose from, by title. If there are too many, those that the theatre has
/// lately added or shows take precedence, then those with the latest shows anywhere.
pub async fn list(state: &BackofficeState, theatre: &str) -> ApiResult<Vec<FilmChoice>> {
    Ok(load_choices(&mut *state.pg.acquire().await?, theatre).await?)
}

/// Adds a film.
///
/// # Errors
/// 400 for an invalid title, text or running time, 429 when the theatre has added too many films.
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
    // After the replay of the key: a repeated request adds no film.
    state.rate_limits.take(&ADDED_BY_THEATRE, action.theatre).await?;
    sqlx::query(
        "INSERT INTO films (id, title, tagline, synopsis, running_minutes, rating, genre, hue)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
    )
    .bind_all((&choice.id, title, tagline, synopsis))
    .bind_all((choice.running_minutes.cast_signed(), rating, genre, hue_of(title)))
    .execute(&mut *begun.tx)
    .await?;
    let answer = Answer::json(StatusCode::CREATED, &choice)?;
    begun.finish(ADDED, format!("{SUBJECT}{}", choice.id), answer).await
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

async fn load_choices(connection: &mut PgConnection, theatre: &str) -> sqlx::Result<Vec<FilmChoice>> {
    let subjects = audit::recent_subjects(connection, theatre, ADDED, MAX_AUDIT_ENTRIES).await?;
    let added: Vec<&str> = subjects.iter().filter_map(|subject| subject.strip_prefix(SUBJECT)).collect();
    let sql = "SELECT id, title, running_minutes FROM (
                   SELECT film.id, film.title, film.running_minutes
                   FROM films film
                   LEFT JOIN (SELECT DISTINCT show.film_id
                              FROM shows show JOIN screens screen ON screen.id = show.screen_id
                              -- The condition of the index by screen.
                              WHERE screen.theatre_id = $1 AND NOT show.called_off) own ON own.film_id = film.id
                   ORDER BY (film.id = ANY($2)) DESC, (own.film_id IS NOT NULL) DESC,
                            (SELECT max(local_date) FROM shows WHERE film_id = film.id) DESC NULLS LAST,
                            film.title, film.id
                   LIMIT $3) chosen
               ORDER BY title, id";
    let rows: Vec<(String, String, i32)> =
        sqlx::query_as(sql).bind_all((theatre, added, MAX_CHOICES)).fetch_all(connection).await?;
    Ok(rows.into_iter().map(choice).collect())
}

pub(super) async fn find(connection: &mut PgConnection, film: &str) -> sqlx::Result<Option<FilmChoice>> {
    let sql = "SELECT id, title, running_minutes FROM films WHERE id = $1";
    let row: Option<(String, String, i32)> = sqlx::query_as(sql).bind(film).fetch_optional(connection).await?;
    Ok(row.map(choice))
}
