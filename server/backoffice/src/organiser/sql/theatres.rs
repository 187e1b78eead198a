//! Queries of theatres and cities.

use domain::api::theatres::{ManagedTheatre, NewCity};
use sqlx::PgConnection;

#[derive(sqlx::FromRow)]
struct TheatreRow {
    id: String,
    name: String,
    address: String,
    city: String,
    city_name: String,
    time_zone: String,
    currency: String,
    version: i32,
}

pub(in crate::organiser) async fn one(
    connection: &mut PgConnection,
    theatre: &str,
) -> Result<Option<ManagedTheatre>, sqlx::Error> {
    let row: Option<TheatreRow> = sqlx::query_as(
        "SELECT theatre.id, theatre.name, theatre.address, city.id AS city, city.name AS city_name, city.time_zone,
                theatre.currency::text AS currency, theatre.version
         FROM theatres theatre JOIN cities city ON city.id = theatre.city_id WHERE theatre.id = $1",
    )
    .bind(theatre)
    .fetch_optional(connection)
    .await?;
    Ok(row.map(|row| ManagedTheatre {
        id: row.id,
        name: row.name,
        address: row.address,
        city: row.city,
        city_name: row.city_name,
        time_zone: row.time_zone,
        currency: row.currency,
        version: row.version.unsigned_abs(),
    }))
}

/// Locks the table and counts the theatres: no theatre is added while a caller's right to manage all of them is
/// checked.
pub(in crate::organiser) async fn lock_all(tx: &mut PgConnection) -> Result<i64, sqlx::Error> {
    sqlx::query("LOCK TABLE theatres IN SHARE ROW EXCLUSIVE MODE").execute(&mut *tx).await?;
    sqlx::query_scalar("SELECT count(*) FROM theatres").fetch_one(tx).await
}

pub(in crate::organiser) async fn has_city(tx: &mut PgConnection, city: &str) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM cities WHERE id = $1)").bind(city).fetch_one(tx).await
}

pub(in crate::organiser) async fn insert_city(
    tx: &mut PgConnection,
    id: &str,
    city: &NewCity,
) -> Result<(), sqlx::Error> {
    sqlx::query("INSERT INTO cities (id, name, country, time_zone) VALUES ($1, $2, $3, $4)")
        .bind(id)
        .bind(&city.name)
        .bind(&city.country)
        .bind(&city.time_zone)
        .execute(tx)
        .await?;
    Ok(())
}

/// A new theatre.
pub(in crate::organiser) struct NewTheatre<'a> {
    pub id: &'a str,
    pub city: &'a str,
    pub name: &'a str,
    pub address: &'a str,
    pub currency: &'a str,
}

pub(in crate::organiser) async fn insert(tx: &mut PgConnection, new: &NewTheatre<'_>) -> Result<(), sqlx::Error> {
    sqlx::query("INSERT INTO theatres (id, city_id, name, address, currency) VALUES ($1, $2, $3, $4, $5)")
        .bind(new.id)
        .bind(new.city)
        .bind(new.name)
        .bind(new.address)
        .bind(new.currency)
        .execute(tx)
        .await?;
    Ok(())
}

/// Returns `true` when shows, tariffs or tills use the theatre's currency.
pub(in crate::organiser) async fn has_money(tx: &mut PgConnection, theatre: &str) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar(
        "SELECT EXISTS (SELECT 1 FROM shows JOIN screens ON screens.id = shows.screen_id WHERE screens.theatre_id = $1)
             OR EXISTS (SELECT 1 FROM theatre_tariffs WHERE theatre_id = $1)
             OR EXISTS (SELECT 1 FROM tills WHERE theatre_id = $1)",
    )
    .bind(theatre)
    .fetch_one(tx)
    .await
}

/// Changes the details of a theatre; `false` when its version differs.
pub(in crate::organiser) async fn change(
    tx: &mut PgConnection,
    theatre: &str,
    version: i32,
    (name, address, currency): (&str, &str, &str),
) -> Result<bool, sqlx::Error> {
    let done = sqlx::query(
        "UPDATE theatres SET name = $3, address = $4, currency = $5, version = version + 1
         WHERE id = $1 AND version = $2",
    )
    .bind(theatre)
    .bind(version)
    .bind(name)
    .bind(address)
    .bind(currency)
    .execute(tx)
    .await?;
    Ok(done.rows_affected() == 1)
}
