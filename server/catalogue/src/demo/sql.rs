//! Writing the demo chain: one transaction, one statement a table, arrays through UNNEST.

use std::collections::HashMap;

use chrono::{DateTime, NaiveDate, Utc};
use domain::VariantName;
use domain::pricing::Tariff;
use domain::seats::DEFAULT_HOLD_MS;
use domain::time::Timestamp;
use sqlx::types::Json;
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use super::chain::{Chain, ChainRoom};
use super::timetable::PlannedShow;
use platform::clock::to_utc;
use platform::database::BindAll;

/// The prices that organisers saved, by theatre. Until one does, the row has version 1 and is the demo's own.
pub(super) async fn saved_tariffs(pool: &PgPool, chain: &Chain) -> sqlx::Result<HashMap<String, Tariff>> {
    let sql = "SELECT theatre_id, tariff FROM theatre_tariffs WHERE version > 1 AND theatre_id = ANY ($1)";
    let saved: Vec<(String, Json<Tariff>)> =
        sqlx::query_as(sql).bind(column(&chain.file.theatres, |theatre| theatre.id.as_str())).fetch_all(pool).await?;
    Ok(saved.into_iter().map(|(theatre, tariff)| (theatre, tariff.0)).collect())
}

/// The rooms that organisers gave screens of the chain, by screen: a room's id, and how it is stored.
pub(super) async fn given_rooms(pool: &PgPool, chain: &Chain) -> sqlx::Result<HashMap<String, (Uuid, String)>> {
    let screens: Vec<&str> =
        chain.file.theatres.iter().flat_map(|theatre| &theatre.screens).map(|screen| screen.id.as_str()).collect();
    let sql = "SELECT screen.id, room.id, room.plan::text
               FROM screens screen JOIN layouts room ON room.id = screen.layout_id
               WHERE screen.id = ANY ($1) AND EXISTS (SELECT 1 FROM screen_layouts WHERE screen_id = screen.id)";
    let given: Vec<(String, Uuid, String)> = sqlx::query_as(sql).bind(screens).fetch_all(pool).await?;
    Ok(given.into_iter().map(|(screen, room, plan)| (screen, (room, plan))).collect())
}

/// Writes everything and answers how many shows are new.
pub(super) async fn write(pool: &PgPool, chain: &Chain, shows: &[PlannedShow], now: Timestamp) -> sqlx::Result<usize> {
    let mut transaction = pool.begin().await?;
    cities(&mut transaction, chain).await?;
    theatres(&mut transaction, chain).await?;
    layouts(&mut transaction, chain).await?;
    screens(&mut transaction, chain).await?;
    films(&mut transaction, chain).await?;
    let new_shows = insert_shows(&mut transaction, shows).await?;
    areas(&mut transaction, shows).await?;
    standing_seats(&mut transaction, &new_shows, now).await?;
    transaction.commit().await?;
    Ok(new_shows.len())
}

/// One column of many rows.
fn column<'a, T, U>(rows: &'a [T], value: impl Fn(&'a T) -> U) -> Vec<U> {
    rows.iter().map(value).collect()
}

async fn cities(connection: &mut PgConnection, chain: &Chain) -> sqlx::Result<()> {
    let cities = &chain.file.cities;
    sqlx::query(
        "INSERT INTO cities (id, name, country, time_zone)
         SELECT * FROM UNNEST($1::text[], $2::text[], $3::text[], $4::text[])
         ON CONFLICT (id) DO UPDATE
         SET name = EXCLUDED.name, country = EXCLUDED.country, time_zone = EXCLUDED.time_zone",
    )
    .bind(column(cities, |city| city.id.as_str()))
    .bind(column(cities, |city| city.name.as_str()))
    .bind(column(cities, |city| city.country.as_str()))
    .bind(column(cities, |city| city.time_zone.name()))
    .execute(connection)
    .await?;
    Ok(())
}

async fn theatres(connection: &mut PgConnection, chain: &Chain) -> sqlx::Result<()> {
    let theatres = &chain.file.theatres;
    sqlx::query(
        "INSERT INTO theatres (id, city_id, name, address, currency)
         SELECT * FROM UNNEST($1::text[], $2::text[], $3::text[], $4::text[], $5::text[])
         ON CONFLICT (id) DO UPDATE
         SET city_id = EXCLUDED.city_id, name = EXCLUDED.name, address = EXCLUDED.address,
             currency = EXCLUDED.currency
         -- What a manager changed stays.
         WHERE theatres.version = 1",
    )
    .bind(column(theatres, |theatre| theatre.id.as_str()))
    .bind(column(theatres, |theatre| theatre.city.as_str()))
    .bind(column(theatres, |theatre| theatre.name.as_str()))
    .bind(column(theatres, |theatre| theatre.address.as_str()))
    .bind(column(theatres, |theatre| theatre.currency.code()))
    .execute(&mut *connection)
    .await?;
    sqlx::query(
        "INSERT INTO theatre_tariffs (theatre_id, tariff, updated_at)
         SELECT theatre_id, tariff, now() FROM UNNEST($1::text[], $2::jsonb[]) AS new (theatre_id, tariff)
         ON CONFLICT (theatre_id) DO UPDATE
         SET tariff = EXCLUDED.tariff, updated_at = EXCLUDED.updated_at
         -- Prices that an organiser set stay. Those of an unedited file are not written again: this runs at
         -- every start, and the time beside them says when they changed.
         WHERE theatre_tariffs.version = 1 AND theatre_tariffs.tariff <> EXCLUDED.tariff",
    )
    .bind_all((column(theatres, |theatre| theatre.id.as_str()), column(theatres, |theatre| Json(&theatre.tariff))))
    .execute(connection)
    .await?;
    Ok(())
}

async fn layouts(connection: &mut PgConnection, chain: &Chain) -> sqlx::Result<()> {
    let mut rooms: Vec<&ChainRoom> = chain.rooms.values().collect();
    // In one order, so that two loaders never wait for each other in a circle.
    rooms.sort_by_key(|room| room.id);
    sqlx::query(
        "INSERT INTO layouts (id, name, plan, seat_count)
         SELECT id, name, plan::jsonb, seat_count
         FROM UNNEST($1::uuid[], $2::text[], $3::text[], $4::integer[]) AS new (id, name, plan, seat_count)
         ON CONFLICT (id) DO NOTHING",
    )
    .bind(column(&rooms, |room| room.id))
    .bind(column(&rooms, |room| room.layout.name()))
    .bind(column(&rooms, |room| room.json.as_str()))
    .bind(column(&rooms, |room| room.layout.seat_count().cast_signed()))
    .execute(connection)
    .await?;
    Ok(())
}

async fn screens(connection: &mut PgConnection, chain: &Chain) -> sqlx::Result<()> {
    let theatres = &chain.file.theatres;
    let screens: Vec<_> =
        theatres.iter().flat_map(|theatre| theatre.screens.iter().map(move |screen| (theatre, screen))).collect();
    sqlx::query(
        "INSERT INTO screens (id, theatre_id, name, layout_id)
         SELECT * FROM UNNEST($1::text[], $2::text[], $3::text[], $4::uuid[])
         ON CONFLICT (id) DO UPDATE
         SET theatre_id = EXCLUDED.theatre_id, name = EXCLUDED.name,
             -- A room that its organiser chose stays.
             layout_id = CASE WHEN EXISTS (SELECT 1 FROM screen_layouts WHERE screen_id = EXCLUDED.id)
                              THEN screens.layout_id ELSE EXCLUDED.layout_id END",
    )
    .bind(column(&screens, |(_, screen)| screen.id.as_str()))
    .bind(column(&screens, |(theatre, _)| theatre.id.as_str()))
    .bind(column(&screens, |(_, screen)| screen.name.as_str()))
    .bind(column(&screens, |(_, screen)| chain.rooms[&screen.layout].id))
    .execute(connection)
    .await?;
    Ok(())
}

async fn films(connection: &mut PgConnection, chain: &Chain) -> sqlx::Result<()> {
    let films = &chain.file.films;
    sqlx::query(
        "INSERT INTO films (id, title, tagline, synopsis, running_minutes, rating, genre, hue)
         SELECT * FROM UNNEST($1::text[], $2::text[], $3::text[], $4::text[],
                              $5::integer[], $6::text[], $7::text[], $8::smallint[])
         ON CONFLICT (id) DO UPDATE
         SET title = EXCLUDED.title, tagline = EXCLUDED.tagline, synopsis = EXCLUDED.synopsis,
             running_minutes = EXCLUDED.running_minutes, rating = EXCLUDED.rating,
             genre = EXCLUDED.genre, hue = EXCLUDED.hue",
    )
    .bind(column(films, |film| film.id.as_str()))
    .bind(column(films, |film| film.title.as_str()))
    .bind(column(films, |film| film.tagline.as_str()))
    .bind(column(films, |film| film.synopsis.as_str()))
    .bind(column(films, |film| film.running_minutes))
    .bind(column(films, |film| film.rating.as_str()))
    .bind(column(films, |film| film.genre.as_str()))
    .bind(column(films, |film| film.hue))
    .execute(connection)
    .await?;
    Ok(())
}

/// Adds shows to days that have none. A day that has some was planned by an earlier run, perhaps from
/// another timetable: two timetables in one room would overlap. A screen that was given another room since they were
/// planned gets none this time. What the box office has the screen keep for the house is kept in these too. Answers those
/// that are new.
async fn insert_shows(connection: &mut PgConnection, shows: &[PlannedShow]) -> sqlx::Result<Vec<Uuid>> {
    sqlx::query_scalar(
        "INSERT INTO shows (id, screen_id, film_id, layout_id, starts_at, local_date,
                            language, format, currency, prices, tax_basis_points, fee_minor, blocked, hold_ms)
         SELECT new.id, new.screen_id, new.film_id, new.layout_id, new.starts_at, new.local_date,
                new.language, new.format, new.currency, new.prices::jsonb, new.tax_basis_points, new.fee_minor,
                ARRAY (SELECT unnest(new.blocked::integer[])
                       UNION
                       SELECT kept.seat_no FROM standing_house_seats kept
                       WHERE kept.screen_id = new.screen_id AND kept.layout_id = new.layout_id
                         AND kept.seat_no IS NOT NULL
                       ORDER BY 1),
                $14
         FROM UNNEST($1::uuid[], $2::text[], $3::text[], $4::uuid[], $5::timestamptz[], $6::date[],
                     $7::text[], $8::text[], $9::text[], $10::text[], $11::smallint[], $12::bigint[], $13::text[])
              AS new (id, screen_id, film_id, layout_id, starts_at, local_date,
                      language, format, currency, prices, tax_basis_points, fee_minor, blocked)
         WHERE NOT EXISTS (
             SELECT 1 FROM shows old WHERE old.screen_id = new.screen_id AND old.local_date = new.local_date
         )
         AND EXISTS (SELECT 1 FROM screens WHERE screens.id = new.screen_id AND screens.layout_id = new.layout_id)
         ON CONFLICT DO NOTHING
         RETURNING id",
    )
    .bind(column::<_, Uuid>(shows, |show| show.id))
    .bind(column(shows, |show| show.screen.as_str()))
    .bind(column(shows, |show| show.film.as_str()))
    .bind(column::<_, Uuid>(shows, |show| show.layout))
    .bind(column::<_, DateTime<Utc>>(shows, |show| show.starts_at))
    .bind(column::<_, NaiveDate>(shows, |show| show.local_date))
    .bind(column(shows, |show| show.language.as_str()))
    .bind(column(shows, |show| show.format.as_str()))
    .bind(column(shows, |show| show.currency.as_str()))
    .bind(column(shows, |show| show.prices.as_str()))
    .bind(column(shows, |show| show.tax_and_fee.tax_basis_points.cast_signed()))
    .bind(column(shows, |show| show.tax_and_fee.fee_minor))
    .bind(column(shows, |show| array_literal(&show.house_seats)))
    .bind(DEFAULT_HOLD_MS)
    .fetch_all(connection)
    .await
}

/// Records the reason and holder of a new show's house seats, as for shows that an organiser plans.
async fn standing_seats(connection: &mut PgConnection, new_shows: &[Uuid], now: Timestamp) -> sqlx::Result<()> {
    let sql = "INSERT INTO house_seats (show_id, seat_no, reason, kept_by, kept_at, is_standing)
               SELECT show.id, kept.seat_no, kept.reason, kept.kept_by, $2, true
               FROM shows show
               JOIN standing_house_seats kept ON kept.screen_id = show.screen_id AND kept.layout_id = show.layout_id
               WHERE show.id = ANY ($1) AND kept.seat_no IS NOT NULL";
    sqlx::query(sql).bind_all((new_shows, to_utc(now))).execute(connection).await.map(drop)
}

/// Opens the areas of shows in this room; those that are open stay as they are.
async fn areas(connection: &mut PgConnection, shows: &[PlannedShow]) -> sqlx::Result<()> {
    let areas: Vec<_> = shows
        .iter()
        .flat_map(|show| show.areas.iter().zip(0_i16..).map(move |(area, number)| (show, number, area)))
        .collect();
    sqlx::query(
        "INSERT INTO area_stock (show_id, area_no, name, category, capacity)
         SELECT new.show_id, new.area_no, new.name, new.category, new.capacity
         FROM UNNEST($1::uuid[], $2::uuid[], $3::smallint[], $4::text[], $5::text[], $6::integer[])
              AS new (show_id, layout_id, area_no, name, category, capacity)
         JOIN shows ON shows.id = new.show_id AND shows.layout_id = new.layout_id
         ON CONFLICT DO NOTHING",
    )
    .bind(column(&areas, |(show, ..)| show.id))
    .bind(column(&areas, |(show, ..)| show.layout))
    .bind(column(&areas, |(_, number, _)| *number))
    .bind(column(&areas, |(.., area)| area.name.as_str()))
    .bind(column(&areas, |(.., area)| area.category.as_str()))
    .bind(column(&areas, |(.., area)| area.capacity.cast_signed()))
    .execute(connection)
    .await?;
    Ok(())
}

/// `{3,7}`: an array of arrays would have to be rectangular, so each travels as text.
fn array_literal(seats: &[u32]) -> String {
    let numbers: Vec<String> = seats.iter().map(u32::to_string).collect();
    format!("{{{}}}", numbers.join(","))
}
