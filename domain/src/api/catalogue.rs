//! JSON of the catalogue: cities, theatres, films, shows, and search queries.
//!
//! The room of a show ([`crate::api::PlanView`]) and the state of its seats are not part of it.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::api::CategoryView;
use crate::api::organiser::Sales;
use crate::booking::SALES_CLOSE_BEFORE_START_MS;
use crate::money::Money;
use crate::time::Timestamp;

/// A city with theatres in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CityView {
    /// Slug, for example `lisbon`.
    pub id: String,
    /// Display name.
    pub name: String,
    /// ISO 3166-1 alpha-2.
    pub country: String,
    /// IANA name of its time zone.
    pub time_zone: String,
    /// Number of theatres.
    pub theatres: u32,
}

/// A theatre.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TheatreView {
    /// Slug, for example `aurora-lisbon`.
    pub id: String,
    /// Display name.
    pub name: String,
    /// Street address.
    pub address: String,
    /// Slug of its city.
    pub city: String,
    /// Name of its city.
    pub city_name: String,
    /// IANA name of its time zone. Dates and times of its shows are in this zone.
    pub time_zone: String,
    /// Number of screens.
    pub screens: u32,
}

/// A film or another kind of event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FilmView {
    /// Slug.
    pub id: String,
    /// Title.
    pub title: String,
    /// One line about it.
    pub tagline: String,
    /// A paragraph about it.
    pub synopsis: String,
    /// Running time, minutes.
    pub running_minutes: u32,
    /// Age rating as printed, for example `PG-13`.
    pub rating: String,
    /// Genre.
    pub genre: String,
    /// Hue of the generated poster, degrees 0 to 359.
    pub hue: u16,
}

/// Availability of seats in a show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Availability {
    /// More than one seat in five is left.
    Available,
    /// At most one seat in five is left.
    FillingFast,
    /// No seat is left.
    SoldOut,
}

impl Availability {
    /// Divisor of the "filling fast" threshold: it starts when at most one seat in this many is left.
    pub const FILLING_FAST_ONE_IN: u32 = 5;

    /// Returns the availability of a show with `left` of `count` seats left.
    #[must_use]
    pub const fn of(left: u32, count: u32) -> Self {
        if left == 0 {
            Self::SoldOut
        } else if left <= count / Self::FILLING_FAST_ONE_IN {
            Self::FillingFast
        } else {
            Self::Available
        }
    }
}

/// Sales status of a show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ShowStatus {
    /// Seats can be taken.
    OnSale,
    /// Sales begin later.
    Upcoming,
    /// The organiser has paused sales.
    Paused,
    /// The show begins within minutes, or has begun.
    Closed,
    /// The show is cancelled and all payments for it are refunded.
    CalledOff,
}

impl ShowStatus {
    /// Returns the status of a show at `now`.
    #[must_use]
    pub fn of(is_called_off: bool, sales: Sales, from: Option<Timestamp>, starts: Timestamp, now: Timestamp) -> Self {
        match sales {
            _ if is_called_off => Self::CalledOff,
            _ if starts.since(now) <= SALES_CLOSE_BEFORE_START_MS => Self::Closed,
            Sales::Planned => Self::Upcoming,
            Sales::Open if from.is_some_and(|from| from > now) => Self::Upcoming,
            Sales::Open => Self::OnSale,
            Sales::Paused => Self::Paused,
        }
    }
}

/// A show in a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ShowView {
    /// The show.
    pub id: Uuid,
    /// Slug of the film.
    pub film: String,
    /// Title of the film.
    pub film_title: String,
    /// Running time, minutes.
    pub running_minutes: u32,
    /// Slug of the theatre.
    pub theatre: String,
    /// Name of the theatre.
    pub theatre_name: String,
    /// Name of the screen.
    pub screen: String,
    /// Slug of the city.
    pub city: String,
    /// Name of the city.
    pub city_name: String,
    /// When it starts, RFC 3339 in UTC.
    pub starts_at: String,
    /// The same in milliseconds since 1970.
    pub starts_at_ms: i64,
    /// Date in the theatre's zone, `YYYY-MM-DD`.
    pub local_date: String,
    /// Time of day in the theatre's zone, `HH:MM`.
    pub local_time: String,
    /// Language spoken.
    pub language: String,
    /// `2D`, `3D`, `IMAX` or `LIVE`.
    pub format: String,
    /// Price of its cheapest seat, wheelchair spaces and companions' seats left out.
    pub from_price: Money,
    /// Number of seats in the room, including places in areas.
    pub seat_count: u32,
    /// Number of seats that can still be sold: not sold, not in payment, not kept by the house. Held seats count as
    /// left; only the live map knows about holds.
    pub seats_left: u32,
    /// Availability, derived from `seats_left`.
    pub availability: Availability,
    /// Sales status. A cancelled show has no seats left.
    pub status: ShowStatus,
}

impl ShowView {
    /// Returns the show as cancelled, with no seats for sale.
    #[must_use]
    pub fn called_off(self) -> Self {
        Self { seats_left: 0, availability: Availability::SoldOut, status: ShowStatus::CalledOff, ..self }
    }
}

/// Matching shows in the order of their start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ShowList {
    /// The shows.
    pub shows: Vec<ShowView>,
    /// True if the result was truncated. A narrower query returns the rest.
    pub more: bool,
}

/// A show with its prices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ShowDetail {
    /// The show, as in a list.
    #[serde(flatten)]
    pub show: ShowView,
    /// Its categories with prices.
    pub categories: Vec<CategoryView>,
    /// Duration of a hold, milliseconds.
    pub hold_ms: i64,
}

/// `GET /theatres/{id}/shows`: selects the day.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
#[serde(default)]
pub struct DayQuery {
    /// Date in the theatre's time zone, `YYYY-MM-DD`; default: today.
    pub date: Option<String>,
}

/// `GET /shows`: search filters. An empty filter counts as absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
#[serde(default)]
pub struct ShowQuery {
    /// Slug of a film.
    pub movie: Option<String>,
    /// Slug of a city.
    pub city: Option<String>,
    /// Date in the theatre's zone, `YYYY-MM-DD`.
    pub date: Option<String>,
    /// Slug of a theatre.
    pub theatre: Option<String>,
    /// Language, as in the shows; case-insensitive.
    pub language: Option<String>,
    /// `2D`, `3D`, `IMAX` or `LIVE`; case-insensitive.
    pub format: Option<String>,
    /// Text to find in the film's title or genre or in the theatre's name. Ignores case and accents. At most 80
    /// characters.
    pub q: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_is_on_sale_only_while_seats_can_be_taken() {
        let (now, starts) = (Timestamp(1_000_000), Timestamp(1_000_000 + 60 * 60_000));
        let status = |is_called_off, sales, from, starts| ShowStatus::of(is_called_off, sales, from, starts, now);
        assert_eq!(status(false, Sales::Open, None, starts), ShowStatus::OnSale);
        assert_eq!(status(false, Sales::Open, Some(now), starts), ShowStatus::OnSale);
        assert_eq!(status(false, Sales::Open, Some(now.plus_ms(1)), starts), ShowStatus::Upcoming);
        assert_eq!(status(false, Sales::Paused, None, starts), ShowStatus::Paused);
        assert_eq!(status(false, Sales::Open, None, now.plus_ms(SALES_CLOSE_BEFORE_START_MS)), ShowStatus::Closed);
        assert_eq!(status(true, Sales::Paused, None, now), ShowStatus::CalledOff);
    }

    #[test]
    fn filling_fast_begins_at_one_seat_in_five() {
        assert_eq!(Availability::of(0, 300), Availability::SoldOut);
        assert_eq!(Availability::of(60, 300), Availability::FillingFast);
        assert_eq!(Availability::of(61, 300), Availability::Available);
        assert_eq!(Availability::of(1, 3), Availability::Available);
    }
}
