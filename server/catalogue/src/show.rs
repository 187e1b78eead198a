//! A show as it sells: everything about it that does not change meanwhile, ready in memory.
//!
//! Not here: the state of its seats.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime, Timelike, Utc};
use chrono_tz::Tz;
use domain::VariantName;
use domain::api::organiser::Sales;
use domain::api::{AreaView, CategoryView, PlaceLine, SeatKind, SeatLine};
use domain::booking::SALES_CLOSE_BEFORE_START_MS;
use domain::layout::{Layout, SeatRef};
use domain::money::{Currency, Money};
use domain::pricing::{Breakdown, ContainedTaxAndFee, Format, PriceList, ShowSlot, Weekday};
use domain::rehearsal;
use domain::seats::{AreaIndex, FLASH_HOLD_MS, HOLD_EXTENSION_MS, MAX_SEATS_PER_PERSON, Places, SeatIndex};
use domain::time::{MINUTE_MS, Timestamp};
use serde::Deserialize;
use sqlx::types::Json;
use uuid::Uuid;

use http::{ApiResult, Code, Problem};
use platform::clock;

/// A show with its room and its prices.
#[derive(Debug)]
pub struct Show {
    /// The show.
    pub id: Uuid,
    /// Slug of the film.
    pub film_id: String,
    /// Title of the film.
    pub film: String,
    /// Hue of the film's poster, degrees.
    pub hue: u16,
    /// Running time, minutes.
    pub running_minutes: u32,
    /// Age rating as printed.
    pub rating: String,
    /// Slug of the theatre.
    pub theatre_id: String,
    /// Name of the theatre.
    pub theatre: String,
    /// Street address of the theatre.
    pub address: String,
    /// Name of the screen.
    pub screen: String,
    /// Slug of the city.
    pub city_id: String,
    /// Name of the city.
    pub city: String,
    /// IANA name of the theatre's zone.
    pub time_zone: String,
    /// Start of the show.
    pub starts_at: Timestamp,
    /// Start on the theatre's clocks, for people: `Sat 21 Nov, 20:15`.
    pub starts_local: String,
    /// Language spoken.
    pub language: String,
    /// `2D`, `3D`, `IMAX` or `LIVE`.
    pub format: String,
    /// Currency of all its prices.
    pub currency: Currency,
    /// Id of its room.
    pub layout_id: Uuid,
    /// Its room; shared by all shows in that room.
    pub layout: Arc<Layout>,
    /// Its prices by the name of the category.
    pub prices: PriceList,
    /// The tax rate and the fee in all its prices.
    pub tax_and_fee: ContainedTaxAndFee,
    /// Categories of the room with the prices of this show, in the order of the layout.
    pub categories: Vec<CategoryView>,
    /// Its areas without numbered seats, sorted by area.
    pub areas: Vec<AreaView>,
    /// House seats, in ascending order.
    pub blocked: Vec<SeatIndex>,
    /// Lifetime of a hold, milliseconds.
    pub hold_ms: i64,
    /// Lifetime of a hold with extensions, milliseconds.
    pub hold_life_ms: i64,
    /// True for an on-sale rush: the settings of a flash sale.
    pub flash_sale: bool,
    /// Maximum number of seats per person.
    pub per_person: usize,
    /// True if guests must verify their address by a code before checkout.
    pub email_code: bool,
    /// Maximum number of seats per card, if there is a cap.
    pub per_instrument: Option<usize>,
    /// State of its sales.
    pub sales: Sales,
    /// Start of its sales, if it is set.
    pub sales_from: Option<Timestamp>,
    /// Number of its seats; their indices are `0..seat_count`.
    pub seat_count: u32,
    /// True for the show of a rehearsal: only simulated visitors hold its seats, and it has no row in `shows`.
    pub is_rehearsal: bool,
    /// Set when the show is called off, so that all holders of its `Arc` see that.
    called_off: AtomicBool,
}

impl Show {
    /// Street address with the city, which many addresses end with already.
    #[must_use]
    pub fn postal_address(&self) -> String {
        with_city(&self.address, &self.city)
    }

    /// A show from its row and its room. The error names an invalid column: an unknown currency or zone, or a category
    /// without a price.
    pub(super) fn new(row: ShowRow, layout: Arc<Layout>) -> sqlx::Result<Self> {
        let currency = Currency::parse(&row.currency).ok_or_else(|| wrong_row("shows", "currency", &row.id))?;
        let prices = PriceList { currency, by_category: row.prices.0 };
        let tax_and_fee =
            ContainedTaxAndFee { tax_basis_points: row.tax_basis_points.unsigned_abs(), fee_minor: row.fee_minor };
        let categories = layout
            .categories()
            .iter()
            .map(|category| {
                Some(CategoryView {
                    name: category.name.clone(),
                    label: category.label().to_owned(),
                    kind: category.kind,
                    price: prices.price(&category.name)?,
                })
            })
            .collect::<Option<Vec<_>>>()
            .ok_or_else(|| wrong_row("shows", "prices", &row.id))?;
        let areas = row
            .areas
            .0
            .into_iter()
            .map(|stock| stock.priced(&prices, &categories))
            .collect::<Option<Vec<_>>>()
            .ok_or_else(|| wrong_row("area_stock", "category", &row.id))?;
        let (hold_ms, hold_life_ms) = if row.flash_sale {
            let short = row.hold_ms.min(FLASH_HOLD_MS);
            (short, short)
        } else {
            (row.hold_ms, row.hold_ms + HOLD_EXTENSION_MS)
        };
        let seat_count = layout.seat_count();
        let mut blocked = row
            .blocked
            .iter()
            .map(|seat| u32::try_from(*seat).ok().filter(|seat| *seat < seat_count))
            .collect::<Option<Vec<_>>>()
            .ok_or_else(|| wrong_row("shows", "blocked", &row.id))?;
        blocked.sort_unstable();
        blocked.dedup();
        let starts_local = local_start(row.starts_at, &row.time_zone)?.format("%a %-d %b, %H:%M").to_string();
        Ok(Self {
            id: row.id,
            film_id: row.film_id,
            film: row.film_title,
            hue: row.hue.unsigned_abs(),
            running_minutes: row.running_minutes.unsigned_abs(),
            rating: row.rating,
            theatre_id: row.theatre_id,
            theatre: row.theatre,
            address: row.address,
            screen: row.screen,
            city_id: row.city_id,
            city: row.city,
            time_zone: row.time_zone,
            starts_at: clock::from_utc(row.starts_at),
            starts_local,
            language: row.language,
            format: row.format,
            currency,
            layout_id: row.layout_id,
            layout,
            prices,
            tax_and_fee,
            categories,
            areas,
            blocked,
            hold_ms,
            hold_life_ms,
            flash_sale: row.flash_sale,
            per_person: row.per_person.map_or(MAX_SEATS_PER_PERSON, |most| usize::from(most.unsigned_abs())),
            email_code: row.email_code,
            per_instrument: row.per_instrument.map(|most| usize::from(most.unsigned_abs())),
            sales: row.sales.parse().map_err(|_| wrong_row("shows", "sales", &row.id))?,
            sales_from: row.sales_from.map(clock::from_utc),
            seat_count,
            is_rehearsal: row.is_rehearsal,
            called_off: AtomicBool::new(row.called_off),
        })
    }

    /// An instant for people there: `Sat 21 Nov, 20:15`.
    #[must_use]
    pub fn local_time(&self, at: Timestamp) -> String {
        // The zone was read when the show was.
        local_start(clock::to_utc(at), &self.time_zone)
            .map_or_else(|_| clock::rfc3339(at), |local| local.format("%a %-d %b, %H:%M").to_string())
    }

    /// An instant on the theatre's clocks, for programs that put it into words: `2026-11-21T20:15:07`.
    #[must_use]
    pub fn local_iso(&self, at: Timestamp) -> String {
        let local = local_start(clock::to_utc(at), &self.time_zone).expect("the zone was read when the show was");
        local.format("%Y-%m-%dT%H:%M:%S").to_string()
    }

    /// An instant on the theatre's clocks with their offset (RFC 3339): `2026-11-21T20:15:00+05:30`.
    #[must_use]
    pub fn local_rfc3339(&self, at: Timestamp) -> String {
        let local = local_start(clock::to_utc(at), &self.time_zone).expect("the zone was read when the show was");
        local.to_rfc3339_opts(chrono::SecondsFormat::Secs, false)
    }

    /// True if it is cancelled.
    #[must_use]
    pub fn is_called_off(&self) -> bool {
        self.called_off.load(Ordering::Relaxed)
    }

    pub(super) fn call_off(&self) {
        self.called_off.store(true, Ordering::Relaxed);
    }

    /// An instant on the theatre's clocks, for people: `Sat 21 Nov, 20:15:07`.
    #[must_use]
    pub fn local(&self, at: Timestamp) -> String {
        let local = local_start(clock::to_utc(at), &self.time_zone).expect("the zone was read when the show was");
        local.format("%a %-d %b, %H:%M:%S").to_string()
    }

    /// The category of a seat, with its price in this show.
    ///
    /// # Panics
    /// When the room has no such seat: ask [`Show::has`] about numbers from outside first.
    #[must_use]
    pub fn category(&self, seat: SeatIndex) -> &CategoryView {
        self.category_of(&self.seat(seat))
    }

    /// True if the room has this seat.
    #[must_use]
    pub const fn has(&self, seat: SeatIndex) -> bool {
        seat < self.seat_count
    }

    fn seat(&self, seat: SeatIndex) -> SeatRef<'_> {
        self.layout.seat(seat).expect("callers ask `has` about numbers from outside")
    }

    fn category_of(&self, seat: &SeatRef<'_>) -> &CategoryView {
        &self.categories[usize::from(seat.category)]
    }

    /// The price of a seat in this show.
    ///
    /// # Panics
    /// When the room has no such seat: check untrusted numbers with [`Show::has`] first.
    #[must_use]
    pub fn price_of(&self, seat: SeatIndex) -> Money {
        self.category_of(&self.seat(seat)).price
    }

    /// The price of the cheapest seats for everyone; `None` if it has none.
    #[must_use]
    pub fn lowest_price(&self) -> Option<Money> {
        lowest_price(self.categories.iter().map(|category| (category.kind, category.price)))
    }

    /// A seat's name for people, for example `C7`.
    ///
    /// # Panics
    /// When the room has no such seat.
    #[must_use]
    pub fn label_of(&self, seat: SeatIndex) -> String {
        self.seat(seat).label
    }

    /// A seat as holds and bookings list it.
    ///
    /// # Panics
    /// When the room has no such seat.
    #[must_use]
    pub fn line(&self, seat: SeatIndex) -> SeatLine {
        let found = self.seat(seat);
        let category = self.category_of(&found);
        SeatLine { seat, category: category.label.clone(), price: category.price, label: found.label }
    }

    /// An area of this show; `None` when it has no such area.
    #[must_use]
    pub fn area(&self, area: AreaIndex) -> Option<&AreaView> {
        let place = self.areas.binary_search_by_key(&area, |known| known.area).ok()?;
        self.areas.get(place)
    }

    /// An area's name for people.
    #[must_use]
    pub fn area_label(&self, area: AreaIndex) -> String {
        self.area(area).map_or_else(|| format!("area {area}"), |known| known.name.clone())
    }

    /// The parts of the total of these lines.
    #[must_use]
    pub fn breakdown(&self, seats: &[SeatLine], places: &[PlaceLine]) -> Breakdown {
        let seats = seats.iter().map(|line| (line.price.minor, 1));
        let places = places.iter().map(|line| (line.price.minor, line.quantity));
        self.tax_and_fee.breakdown(seats.chain(places), self.currency)
    }

    /// Places as holds and bookings list them; `None` when the show has no such area.
    #[must_use]
    pub fn place_line(&self, places: Places) -> Option<PlaceLine> {
        let area = self.area(places.area)?;
        Some(PlaceLine {
            area: area.area,
            label: area.name.clone(),
            category: area.category_label.clone(),
            price: area.price,
            quantity: places.count,
        })
    }
}

/// The lowest of the prices of seats for everyone. A companion's seat is often free, but only beside a wheelchair space.
pub(super) fn lowest_price(prices: impl Iterator<Item = (SeatKind, Money)>) -> Option<Money> {
    let for_all = prices.filter(|(kind, _)| kind.rules().is_offered_unasked);
    for_all.map(|(_, price)| price).min_by_key(|price| price.minor)
}

/// A row of `area_stock` without the number of sold places.
#[derive(Debug, Deserialize)]
struct StockRow {
    area: AreaIndex,
    name: String,
    category: String,
    capacity: u32,
}

impl StockRow {
    /// The area with its price; `None` when the show has no price for its category.
    fn priced(self, prices: &PriceList, categories: &[CategoryView]) -> Option<AreaView> {
        let price = prices.price(&self.category)?;
        let known = categories.iter().find(|category| category.name == self.category);
        let category_label = known.map_or_else(|| self.category.clone(), |category| category.label.clone());
        let Self { area, name, category, capacity } = self;
        Some(AreaView { area, name, category, category_label, price, capacity })
    }
}

#[derive(platform::FromRow)]
pub(super) struct ShowRow {
    pub(super) id: Uuid,
    pub(super) layout_id: Uuid,
    starts_at: DateTime<Utc>,
    language: String,
    format: String,
    currency: String,
    prices: Json<BTreeMap<String, i64>>,
    tax_basis_points: i16,
    fee_minor: i64,
    blocked: Vec<i32>,
    areas: Json<Vec<StockRow>>,
    hold_ms: i64,
    flash_sale: bool,
    per_person: Option<i16>,
    email_code: bool,
    per_instrument: Option<i16>,
    sales: String,
    sales_from: Option<DateTime<Utc>>,
    called_off: bool,
    is_rehearsal: bool,
    film_id: String,
    film_title: String,
    hue: i16,
    running_minutes: i32,
    rating: String,
    screen: String,
    theatre_id: String,
    theatre: String,
    address: String,
    city_id: String,
    city: String,
    time_zone: String,
}

impl ShowRow {
    /// The same show as the rehearsal of that id sells it: at once, in holds that outlast the rehearsal, and without
    /// areas, whose places Postgres counts.
    pub(super) fn rehearsed_as(self, id: Uuid) -> Self {
        Self {
            id,
            is_rehearsal: true,
            sales: Sales::Open.as_str().to_owned(),
            sales_from: None,
            hold_ms: rehearsal::HOLD_MS,
            flash_sale: false,
            areas: Json(Vec::new()),
            ..self
        }
    }
}

#[cfg(test)]
impl Show {
    /// A show in this room, with one price for all seats.
    pub(super) fn in_room(layout: Layout) -> Self {
        let prices = layout.categories().iter().map(|category| (category.name.clone(), 1_000)).collect();
        let row = ShowRow {
            id: Uuid::nil(),
            layout_id: Uuid::nil(),
            starts_at: DateTime::UNIX_EPOCH,
            language: String::new(),
            format: String::new(),
            currency: "EUR".to_owned(),
            prices: Json(prices),
            tax_basis_points: 0,
            fee_minor: 0,
            blocked: Vec::new(),
            areas: Json(Vec::new()),
            hold_ms: HOLD_EXTENSION_MS,
            flash_sale: false,
            per_person: None,
            email_code: false,
            per_instrument: None,
            sales: Sales::Open.as_str().to_owned(),
            sales_from: None,
            called_off: false,
            is_rehearsal: false,
            film_id: String::new(),
            film_title: String::new(),
            hue: 0,
            running_minutes: 90,
            rating: String::new(),
            screen: String::new(),
            theatre_id: String::new(),
            theatre: String::new(),
            address: String::new(),
            city_id: String::new(),
            city: String::new(),
            time_zone: "Europe/Berlin".to_owned(),
        };
        Self::new(row, Arc::new(layout)).expect("a valid row")
    }
}

/// An instant on the clocks of a zone.
pub(super) fn local_start(at: DateTime<Utc>, zone: &str) -> sqlx::Result<DateTime<Tz>> {
    let zone: Tz = zone.parse().map_err(|_| wrong_row("cities", "time_zone", &zone))?;
    Ok(at.with_timezone(&zone))
}

/// The error of an invalid row: its table, column and key.
pub(super) fn wrong_row(table: &str, column: &str, key: &dyn std::fmt::Display) -> sqlx::Error {
    sqlx::Error::Decode(format!("{table}.{column} of {key} holds what it never may").into())
}

/// Minimum number of digits of a postcode; nearly all house numbers have fewer.
const POSTCODE_DIGITS: usize = 4;

/// The address with the city, once. After a postcode the address has the city in the local language, which may differ from
/// ours: `1200-469 Lisboa` is in Lisbon.
fn with_city(address: &str, city: &str) -> String {
    let last = address.rsplit_once(", ").map_or("", |(_, last)| last);
    let names_town = last.split_once(' ').is_some_and(|(code, town)| {
        let digits = code.chars().filter(char::is_ascii_digit).count();
        digits >= POSTCODE_DIGITS && town.chars().any(char::is_alphabetic)
    });
    if names_town || address.to_lowercase().contains(&city.to_lowercase()) {
        address.to_owned()
    } else {
        format!("{address}, {city}")
    }
}

/// Refuses a show that was called off.
///
/// # Errors
/// 409 then.
pub fn refuse_called_off(show: &Show) -> ApiResult<()> {
    if show.is_called_off() {
        let detail = "This show will not take place. Everything paid for it goes back in full.";
        return Err(Problem::new(Code::SalesClosed, detail));
    }
    Ok(())
}

/// True if booking of a show with this start has not closed: [`SALES_CLOSE_BEFORE_START_MS`] before it.
#[must_use]
pub fn is_before_close(starts_at: Timestamp, now: Timestamp) -> bool {
    starts_at.since(now) > SALES_CLOSE_BEFORE_START_MS
}

/// Refuses a show that can no longer be booked.
///
/// # Errors
/// 409 within [`SALES_CLOSE_BEFORE_START_MS`] of the start, after it, and when the show was called off.
pub fn sales_open(show: &Show, now: Timestamp) -> ApiResult<()> {
    refuse_called_off(show)?;
    if is_before_close(show.starts_at, now) {
        return Ok(());
    }
    let minutes = SALES_CLOSE_BEFORE_START_MS / MINUTE_MS;
    let detail = format!("Booking closes {minutes} minutes before the start. The box office may help.");
    Err(Problem::new(Code::SalesClosed, detail))
}

/// Refuses a planned show, which is a draft.
///
/// # Errors
/// 409 then.
pub fn refuse_planned(show: &Show) -> ApiResult<()> {
    if show.sales == Sales::Planned {
        return Err(Problem::new(Code::SalesClosed, "This show is not for sale yet."));
    }
    Ok(())
}

/// Refuses a show that is not on sale: [`sales_open`] refuses it, or its organiser has not opened it.
///
/// # Errors
/// 409 as [`sales_open`], and before sales begin or while they are paused.
pub fn on_sale(show: &Show, now: Timestamp) -> ApiResult<()> {
    sales_open(show, now)?;
    match (show.sales, show.sales_from) {
        (Sales::Open, Some(from)) if from > now => {
            let detail = format!("Seats of this show are sold from {} on.", show.local_time(from));
            Err(Problem::new(Code::SalesClosed, detail))
        }
        (Sales::Open, _) => Ok(()),
        (Sales::Planned, _) => refuse_planned(show),
        (Sales::Paused, _) => {
            let detail = "Sales of this show are paused. What you hold you may still pay for.";
            Err(Problem::new(Code::SalesClosed, detail))
        }
    }
}

/// The day of the week.
#[must_use]
pub fn weekday_of(date: NaiveDate) -> Weekday {
    Weekday::after_monday(date.weekday().num_days_from_monday())
}

/// When and how a show plays that starts then on the clocks of its theatre.
#[must_use]
pub fn slot_of(local: NaiveDateTime, format: Format) -> ShowSlot {
    ShowSlot::at(weekday_of(local.date()), local.hour(), local.minute(), format)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lowest_price_leaves_out_wheelchair_spaces_and_companions() {
        let currency = Currency::parse("EUR").expect("a code");
        let room = [
            (SeatKind::Companion, 0),
            (SeatKind::Wheelchair, 900),
            (SeatKind::Recliner, 1_800),
            (SeatKind::Standard, 1_250),
        ]
        .map(|(kind, minor)| (kind, Money::new(minor, currency)));
        assert_eq!(lowest_price(room.into_iter()), Some(Money::new(1_250, currency)));
        assert_eq!(lowest_price(room[..2].iter().copied()), None);
    }

    #[test]
    fn an_address_names_its_city_once() {
        assert_eq!(with_city("Hill Road 112", "Mumbai"), "Hill Road 112, Mumbai");
        assert_eq!(with_city("Schönhauser Allee 180, 10119 BERLIN", "Berlin"), "Schönhauser Allee 180, 10119 BERLIN");
        assert_eq!(with_city("Rua da Trindade 41, 1200-469 Lisboa", "Lisbon"), "Rua da Trindade 41, 1200-469 Lisboa");
        assert_eq!(with_city("Unit 4, 12 High Street", "Leeds"), "Unit 4, 12 High Street, Leeds");
    }
}
