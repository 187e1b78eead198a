//! What is shown where and what it costs: cities, theatres, films, shows, rooms, search.
//!
//! Offers [`Catalogue`] and [`Show`] to everyone, and [`Listings`], which may be a few seconds old, to
//! pages and data that decide nothing. Not here: the state of a single seat (`live`, `seat_locks`) and
//! who bought it (`bookings`). Nothing in this folder writes, except `demo`.

pub mod cdn;
mod claims;
pub mod demo;
mod endpoints;
mod known;
mod listings;
mod regions;
mod sales_window;
mod search;
mod service;
mod settings;
mod show;
mod slot;
mod sql;
mod standby;
mod state;

pub use claims::{CLAIM_GRACE_MS, alive_since};
pub use endpoints::routes;
pub use listings::Listings;
pub use regions::Regions;
pub use sales_window::{on_sale, refuse_called_off, sales_open};
pub use search::{ShowSearch, Unreadable, date as read_date, day, is_slug};
pub use service::{Catalogue, DAYS_AHEAD, Part, PlanDocument, clock_in, days_from, today_in};
pub use settings::CatalogueSettings;
pub use show::Show;
pub use slot::{slot_of, weekday_of};
pub use sql::{FilmTonight, Found, Identity, ListedShow, Replayed, Written, containing, replayed, written};
pub use standby::{ANSWER_DEADLINE, CONNECTIONS as STANDBY_CONNECTIONS, LAG_LIMIT, Standby, compare_forever};
pub use state::{CatalogueParts, CatalogueState};
