//! The catalogue: cities, theatres, films, shows, rooms, prices, search, and the CDN's purges.
//!
//! [`Catalogue`] and [`Show`] are current, for every decision; [`Listings`] may be a few seconds old, for pages and
//! data that decide nothing. Not here: the state of a single seat (`seats`) and its buyer (`selling`). In this crate
//! only [`demo`] writes the tables of the programme, and only [`cdn`] writes `cdn` and `cdn_purges`; `backoffice` edits
//! the programme.
//!
//! It may use `platform`, `http` and `domain`.
//!
//! A new query goes into `sql.rs`, with its function in [`Listings`] (public, may be stale) or [`Catalogue`] (current);
//! a new route goes into [`endpoints`]; a new field of a show into [`Show`] and the query of its row.

pub mod cdn;
mod claims;
pub mod demo;
mod endpoints;
mod listings;
mod regions;
mod search;
mod service;
mod settings;
mod show;
mod sql;
mod standby;
mod state;

pub use claims::{CLAIM_GRACE_MS, alive_since};
pub use endpoints::routes;
pub use listings::Listings;
pub use regions::Regions;
pub use search::{InvalidSearch, ShowSearch, date as read_date, day, is_slug};
pub use service::{Catalogue, DAYS_AHEAD, PlanDocument, PlanPart, clock_in, days_from, load_once, today_in};
pub use settings::CatalogueSettings;
pub use show::{Show, is_before_close, on_sale, refuse_called_off, refuse_planned, sales_open, slot_of, weekday_of};
pub use sql::{FilmTonight, ListedShow, ShowSearchResult, containing};
pub use standby::{
    ANSWER_DEADLINE, CONNECTIONS as STANDBY_CONNECTIONS, DatabaseIdentity, LAG_LIMIT, PrimaryPosition, Standby,
    StandbyPosition, compare_forever, primary_position, standby_position,
};
pub use state::{CatalogueParts, CatalogueState};
