//! The demo chain: reads the folder `demo/` and puts its cinemas and a week of shows into the catalogue.
//!
//! It runs at every start and may run concurrently: ids are derived from content, so a second load changes nothing and a load
//! on the next day adds a day. A day of a screen that has shows stays as it is, also when prices in the folder were edited
//! since. New shows of a theatre whose organiser has saved prices have those prices, and new shows on a screen with a new
//! room are in that room: none is planned there while a category has no price, as in the organiser's pages. House seats of a
//! screen are applied to them. Nothing is ever deleted here.

mod chain;
mod sql;
#[cfg(test)]
mod tests;
mod timetable;

use std::path::Path;

use anyhow::Context;
use domain::time::Timestamp;
use sqlx::PgPool;

/// Counts after loading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loaded {
    /// Cities of the chain.
    pub cities: usize,
    /// Theatres of the chain.
    pub theatres: usize,
    /// Screens of the chain.
    pub screens: usize,
    /// Films of the chain.
    pub films: usize,
    /// Rooms of the chain.
    pub layouts: usize,
    /// Shows that were not there before.
    pub new_shows: usize,
}

/// Loads the chain in `demo_dir` with the shows of `days` days, today included, that start after `now`.
///
/// # Errors
/// A file that cannot be read or makes no sense, named; or Postgres.
pub async fn load(pool: &PgPool, demo_dir: &Path, now: Timestamp, days: u32) -> anyhow::Result<Loaded> {
    let folder = demo_dir.to_owned();
    let read = tokio::task::spawn_blocking(move || chain::Chain::read(&folder));
    let mut chain = read.await.context("reading the demo chain was interrupted")??;
    chain.price_by(sql::saved_tariffs(pool, &chain).await.context("reading what organisers ask for")?);
    let given = sql::given_rooms(pool, &chain).await.context("reading which rooms organisers gave their screens")?;
    let planned = tokio::task::spawn_blocking(move || {
        chain.give_rooms(given)?;
        let shows = timetable::shows(&chain, now, days)?;
        anyhow::Ok((chain, shows))
    });
    let (chain, shows) = planned.await.context("planning the shows of the demo chain was interrupted")??;
    let new_shows = sql::write(pool, &chain, &shows, now).await.context("writing the demo chain")?;
    Ok(Loaded {
        cities: chain.file.cities.len(),
        theatres: chain.file.theatres.len(),
        screens: chain.file.theatres.iter().map(|theatre| theatre.screens.len()).sum(),
        films: chain.file.films.len(),
        layouts: chain.rooms.len(),
        new_shows,
    })
}
