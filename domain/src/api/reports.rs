//! JSON of reports: a theatre's sales, occupancy, conversion funnel, takings and refunds.
//!
//! Days are days in the theatre's time zone. Money is in minor units with its currency. Sums of different currencies
//! are never added.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::csv::Separator;

/// `GET /theatres/{theatre}/reports/…`: selects the days.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
#[serde(default)]
pub struct ReportQuery {
    /// First day, `YYYY-MM-DD`, in the theatre's time zone; default: four weeks up to `to`.
    pub from: Option<String>,
    /// Last day, inclusive; default: today. The range is at most 92 days.
    pub to: Option<String>,
    /// Id of a screen that restricts the report; default: the whole theatre. Occupancy always covers one screen, by
    /// default the first.
    pub screen: Option<String>,
}

/// `GET /theatres/{theatre}/reports/csv/{table}`: selects the format of the file, besides its days.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
#[serde(default)]
pub struct CsvQuery {
    /// `comma` between cells, with a decimal point; or `semicolon`, with a decimal comma, for spreadsheets of languages
    /// such as German and Spanish. Default: `comma`.
    #[cfg_attr(feature = "openapi", param(inline))]
    pub separator: Separator,
}

/// Days that a report covers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReportDays {
    /// First day, `YYYY-MM-DD`.
    pub from: String,
    /// Last day, inclusive.
    pub to: String,
    /// The theatre's time zone, an IANA name.
    pub time_zone: String,
}

/// Sales on these days at the price paid then, including tickets that were refunded later.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Sold {
    /// Currency, ISO 4217.
    pub currency: String,
    /// Number of confirmed bookings.
    pub bookings: i64,
    /// Number of tickets: seats, and places without numbers.
    pub tickets: i64,
    /// Their price, minor units.
    pub gross_minor: i64,
    /// Their price without taxes and fees, minor units.
    pub net_minor: i64,
    /// Taxes in their price, minor units.
    pub tax_minor: i64,
    /// Fees in their price, minor units. They contain their own tax.
    pub fee_minor: i64,
    /// Number of these tickets that were returned later.
    pub given_back: i64,
}

/// Sales of one group: a day, a channel, a category or a film.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SoldLine {
    /// Name of the group: `2026-11-21`, `web`, `gold`, `Tide`.
    pub name: String,
    /// Its sales.
    #[serde(flatten)]
    pub sold: Sold,
}

/// Sales of one show.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SoldShow {
    /// Id of the show.
    pub show: Uuid,
    /// Title of its film.
    pub film: String,
    /// Name of its screen.
    pub screen: String,
    /// Start in the theatre's time zone: `2026-11-21T20:15:00`.
    pub starts_local: String,
    /// Sales on the days of the report.
    #[serde(flatten)]
    pub sold: Sold,
}

/// `GET /theatres/{theatre}/reports/sales`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SalesReport {
    /// Days covered.
    pub days: ReportDays,
    /// Totals, one line per currency.
    pub totals: Vec<Sold>,
    /// Sales by day; days without sales are omitted.
    pub by_day: Vec<SoldLine>,
    /// Sales by channel.
    pub by_channel: Vec<SoldLine>,
    /// Sales by price category. A booking with tickets of two categories counts in both.
    pub by_category: Vec<SoldLine>,
    /// Sales by film, most tickets first.
    pub by_film: Vec<SoldLine>,
    /// Sales by show, in the order of their start.
    pub by_show: Vec<SoldShow>,
}

/// `GET /theatres/{theatre}/reports/funnel`: conversion from the first hold to the ticket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FunnelReport {
    /// Days covered.
    pub days: ReportDays,
    /// Number of holds granted on these days. Servers count them in memory and store the counts every few seconds; a
    /// crash loses the counts since the last write. Changing a hold does not count again.
    pub holds: i64,
    /// Number of bookings made from holds on these days (checkouts).
    pub checked_out: i64,
    /// Number of these bookings submitted for payment.
    pub submitted: i64,
    /// Number of these bookings paid.
    pub paid: i64,
    /// Number of these bookings with tickets issued.
    pub ticketed: i64,
    /// Unpaid bookings that expired.
    pub ran_out: i64,
    /// Unpaid bookings whose payment failed.
    pub declined: i64,
    /// Unpaid bookings cancelled by the buyer or by staff.
    pub let_go: i64,
    /// Unpaid bookings that are still open.
    pub open: i64,
}

/// Takings of one day, payment method and currency.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TakingsLine {
    /// The day, `YYYY-MM-DD`.
    pub date: String,
    /// Payment method: the gateway or the till.
    pub way: String,
    /// Currency, ISO 4217.
    pub currency: String,
    /// Number of payments received.
    pub payments: i64,
    /// Amount received, minor units.
    pub taken_minor: i64,
    /// Number of refunds that reached their payers.
    pub refunds: i64,
    /// Amount refunded, minor units.
    pub refunded_minor: i64,
    /// Fees kept from these refunds, minor units.
    pub fees_minor: i64,
}

/// Totals of one currency.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TakingsTotal {
    /// Currency, ISO 4217.
    pub currency: String,
    /// Amount received, minor units.
    pub taken_minor: i64,
    /// Amount refunded, minor units.
    pub refunded_minor: i64,
    /// Received less refunded, minor units.
    pub net_minor: i64,
    /// Fees kept from refunds, minor units; part of `net_minor`.
    pub fees_minor: i64,
    /// Requested refunds of any day that have not reached their payers yet, minor units.
    pub under_way_minor: i64,
}

/// `GET /theatres/{theatre}/reports/takings`: payments and refunds by the day the money moved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TakingsReport {
    /// Days covered.
    pub days: ReportDays,
    /// Lines by day, payment method and currency; days without money are omitted.
    pub lines: Vec<TakingsLine>,
    /// Totals, one line per currency.
    pub totals: Vec<TakingsTotal>,
}

/// A screen that a report can be restricted to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReportScreen {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
}

/// `GET /theatres/{theatre}/reports/occupancy`: number of sales of each seat of a room, in the shows of these days.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct OccupancyReport {
    /// Days covered, by the start of the shows.
    pub days: ReportDays,
    /// The screens of the theatre.
    pub screens: Vec<ReportScreen>,
    /// The screen of this report; absent if the theatre has no screens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub screen: Option<ReportScreen>,
    /// Number of shows counted: those in the same room as the last show.
    pub shows: i64,
    /// Number of shows not counted because they had a different room.
    pub shows_in_other_rooms: i64,
    /// A counted show whose plan at `/shows/{id}/plan` fits the counts; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub show: Option<Uuid>,
    /// Number of sales by seat index.
    pub sold: Vec<u32>,
}

impl Sold {
    /// Adds sales of the same currency.
    pub fn add(&mut self, other: &Self) {
        self.bookings += other.bookings;
        self.tickets += other.tickets;
        self.gross_minor += other.gross_minor;
        self.net_minor += other.net_minor;
        self.tax_minor += other.tax_minor;
        self.fee_minor += other.fee_minor;
        self.given_back += other.given_back;
    }
}
