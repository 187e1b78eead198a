//! The JSON of the catalogue: cities, theatres, films, shows, and what one may search by.
//!
//! Not here: the room of a show ([`crate::api::PlanView`]) and the state of its seats.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::api::CategoryView;
use crate::api::organiser::Sales;
use crate::booking::SALES_CLOSE_BEFORE_START_MS;
use crate::money::Money;
use crate::time::Timestamp;

#[cfg(feature = "openapi")]
use utoipa::{IntoParams, ToSchema};

/// A city with theatres in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct CityView {
    /// Slug, for example `lisbon`.
    pub id: String,
    /// Name for people.
    pub name: String,
    /// ISO 3166-1 alpha-2.
    pub country: String,
    /// IANA name of its time zone.
    pub time_zone: String,
    /// How many theatres it has.
    pub theatres: u32,
}

/// A theatre.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct TheatreView {
    /// Slug, for example `aurora-lisbon`.
    pub id: String,
    /// Name for people.
    pub name: String,
    /// Street address.
    pub address: String,
    /// Slug of its city.
    pub city: String,
    /// Name of its city.
    pub city_name: String,
    /// IANA name of its time zone: dates and times of its shows are told in it.
    pub time_zone: String,
    /// How many screens it has.
    pub screens: u32,
}

/// A film, or whatever else is shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
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
    /// Hue of the poster we draw, degrees 0 to 359.
    pub hue: u16,
}

/// How a show is selling, in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Availability {
    /// Plenty left.
    Available,
    /// At most one seat in five is left.
    FillingFast,
    /// None left.
    SoldOut,
}

impl Availability {
    /// "Filling fast" begins when at most one seat in this many is left.
    pub const FILLING_FAST_ONE_IN: u32 = 5;

    /// Judges `left` of `count` seats.
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

/// The sales status of a show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ShowStatus {
    /// Seats can be taken.
    OnSale,
    /// The sale begins later.
    Upcoming,
    /// The organiser has paused the sale.
    Paused,
    /// The show begins within minutes, or has begun.
    Closed,
    /// The show will not take place; everything paid for it goes back.
    CalledOff,
}

impl ShowStatus {
    /// Judges a show that is sold like this, `now`.
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
#[cfg_attr(feature = "openapi", derive(ToSchema))]
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
    /// Its cheapest seat.
    pub from_price: Money,
    /// How many seats the room has, places in areas included.
    pub seat_count: u32,
    /// How many of them can still be sold: neither sold, being paid for, nor kept by the house. Seats merely
    /// held are counted as left; the live map knows those.
    pub seats_left: u32,
    /// The same in a word.
    pub availability: Availability,
    /// The sales status. A show that was called off has no seat left.
    pub status: ShowStatus,
}

impl ShowView {
    /// The same show, called off: nothing of it is for sale.
    #[must_use]
    pub fn called_off(self) -> Self {
        Self { seats_left: 0, availability: Availability::SoldOut, status: ShowStatus::CalledOff, ..self }
    }
}

/// Shows found, in the order they start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct ShowList {
    /// The shows.
    pub shows: Vec<ShowView>,
    /// Whether there are more than fit: narrow the question.
    pub more: bool,
}

/// One show with what it costs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct ShowDetail {
    /// The show as in a list.
    #[serde(flatten)]
    pub show: ShowView,
    /// Its categories with prices.
    pub categories: Vec<CategoryView>,
    /// How long its seats are held, milliseconds.
    pub hold_ms: i64,
}

/// `GET /theatres/{id}/shows`: the day.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(IntoParams))]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
#[serde(default)]
pub struct DayQuery {
    /// Date in the theatre's zone, `YYYY-MM-DD`; today when absent.
    pub date: Option<String>,
}

/// `GET /shows`: each field narrows the answer, an empty one counts as absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(IntoParams))]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
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
    /// Language, as the shows name it; case does not matter.
    pub language: Option<String>,
    /// `2D`, `3D`, `IMAX` or `LIVE`; case does not matter.
    pub format: Option<String>,
    /// Text in the film's title or genre or in the theatre's name; case and accents do not matter. At most 80
    /// characters.
    pub q: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_show_is_on_sale_only_while_its_seats_can_be_taken() {
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
    fn a_show_fills_fast_when_one_seat_in_five_is_left() {
        assert_eq!(Availability::of(0, 300), Availability::SoldOut);
        assert_eq!(Availability::of(60, 300), Availability::FillingFast);
        assert_eq!(Availability::of(61, 300), Availability::Available);
        assert_eq!(Availability::of(1, 3), Availability::Available);
    }
}
