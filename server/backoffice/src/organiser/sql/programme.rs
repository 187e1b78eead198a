//! Queries of films and tariffs.

use domain::api::organiser::FilmChoice;
use domain::pricing::Tariff;
use domain::time::Timestamp;
use sqlx::PgConnection;
use sqlx::types::Json;

use platform::clock::to_utc;

/// The texts of a film.
pub(in crate::organiser) struct FilmTexts<'a> {
    pub tagline: &'a str,
    pub synopsis: &'a str,
    pub rating: &'a str,
    pub genre: &'a str,
}

fn choice((id, title, minutes): (String, String, i32)) -> FilmChoice {
    FilmChoice { id, title, running_minutes: minutes.unsigned_abs() }
}

/// Returns films by title.
pub(in crate::organiser) async fn films(
    connection: &mut PgConnection,
    limit: i64,
) -> Result<Vec<FilmChoice>, sqlx::Error> {
    let rows: Vec<(String, String, i32)> =
        sqlx::query_as("SELECT id, title, running_minutes FROM films ORDER BY title, id LIMIT $1")
            .bind(limit)
            .fetch_all(connection)
            .await?;
    Ok(rows.into_iter().map(choice).collect())
}

pub(in crate::organiser) async fn film(
    connection: &mut PgConnection,
    film: &str,
) -> Result<Option<FilmChoice>, sqlx::Error> {
    let row: Option<(String, String, i32)> =
        sqlx::query_as("SELECT id, title, running_minutes FROM films WHERE id = $1")
            .bind(film)
            .fetch_optional(connection)
            .await?;
    Ok(row.map(choice))
}

pub(in crate::organiser) async fn insert_film(
    tx: &mut PgConnection,
    film: &FilmChoice,
    texts: &FilmTexts<'_>,
    hue: i16,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO films (id, title, tagline, synopsis, running_minutes, rating, genre, hue)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
    )
    .bind(&film.id)
    .bind(&film.title)
    .bind(texts.tagline)
    .bind(texts.synopsis)
    .bind(film.running_minutes.cast_signed())
    .bind(texts.rating)
    .bind(texts.genre)
    .bind(hue)
    .execute(tx)
    .await?;
    Ok(())
}

/// Returns the tariff of a theatre with its version.
pub(in crate::organiser) async fn tariff(
    connection: &mut PgConnection,
    theatre: &str,
) -> Result<Option<(Tariff, i32)>, sqlx::Error> {
    let row: Option<(Json<Tariff>, i32)> =
        sqlx::query_as("SELECT tariff, version FROM theatre_tariffs WHERE theatre_id = $1")
            .bind(theatre)
            .fetch_optional(connection)
            .await?;
    Ok(row.map(|(tariff, version)| (tariff.0, version)))
}

/// Writes the tariff after version `before` (0 for the first); `false` when a newer version exists.
pub(in crate::organiser) async fn set_tariff(
    tx: &mut PgConnection,
    theatre: &str,
    tariff: &Tariff,
    before: i32,
    now: Timestamp,
) -> Result<bool, sqlx::Error> {
    let done = if before == 0 {
        sqlx::query(
            "INSERT INTO theatre_tariffs (theatre_id, tariff, version, updated_at) VALUES ($1, $2, $3 + 1, $4)
             ON CONFLICT DO NOTHING",
        )
    } else {
        sqlx::query(
            "UPDATE theatre_tariffs SET tariff = $2, version = $3 + 1, updated_at = $4
             WHERE theatre_id = $1 AND version = $3",
        )
    };
    let done = done.bind(theatre).bind(Json(tariff)).bind(before).bind(to_utc(now)).execute(tx).await?;
    Ok(done.rows_affected() == 1)
}

/// Returns the currency of a theatre.
pub(in crate::organiser) async fn currency(
    connection: &mut PgConnection,
    theatre: &str,
) -> Result<Option<String>, sqlx::Error> {
    sqlx::query_scalar("SELECT currency FROM theatres WHERE id = $1").bind(theatre).fetch_optional(connection).await
}

/// Returns the price categories of the layouts of a theatre's screens, each with its label; different labels of one
/// category are joined.
pub(in crate::organiser) async fn categories(
    connection: &mut PgConnection,
    theatre: &str,
    limit: i64,
) -> Result<Vec<(String, String)>, sqlx::Error> {
    sqlx::query_as(
        "SELECT category ->> 'name' AS name,
                string_agg(DISTINCT coalesce(category ->> 'label', category ->> 'name'), ' / ') AS label
         FROM screens screen
         JOIN layouts room ON room.id = screen.layout_id
         CROSS JOIN LATERAL jsonb_array_elements(room.plan -> 'categories') AS category
         WHERE screen.theatre_id = $1
         GROUP BY 1
         ORDER BY 1 LIMIT $2",
    )
    .bind(theatre)
    .bind(limit)
    .fetch_all(connection)
    .await
}
