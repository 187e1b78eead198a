//! Every query of the catalogue. All of them read.

mod films;
mod listing;
mod one_show;
mod places;
mod replication;

pub use films::FilmTonight;
pub(super) use films::{film, films_between, languages};
pub use listing::{ListedShow, ShowSearchResult, containing};
pub(super) use listing::{listed, shows, shows_of_day};
pub(super) use one_show::{plan, region_of, show};
pub(super) use places::{cities, theatres};
pub use replication::{DatabaseIdentity, PrimaryPosition, StandbyPosition, primary_position, standby_position};

/// Most rows of a list of places or films.
const PLACE_LIMIT: i64 = 500;

/// Converts a count: Postgres counts in i64; ours fit u32 by the limits on the rows.
fn count(rows: i64) -> u32 {
    u32::try_from(rows).unwrap_or(u32::MAX)
}
