//! What is shown where and what it costs: cities, theatres, films, shows, rooms, search.
//!
//! Offers [`Catalogue`] and [`Show`] to everyone. Not here: the state of a single seat (`live`,
//! `seat_locks`) and who bought it (`bookings`). Nothing in this folder writes, except `demo`.

pub mod demo;
pub mod http;
mod known;
mod search;
mod service;
mod show;
mod sql;

pub use search::{ShowSearch, Unreadable, date as read_date, day, is_slug};
pub use service::{Catalogue, DAYS_AHEAD, Part, PlanDocument, clock_in, days_from, today_in};
pub use show::Show;
pub use sql::{FilmTonight, Found, ListedShow};
