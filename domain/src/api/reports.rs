//! The JSON of reports: what a theatre sold, where, how far people came, and what was taken and given back.
//!
//! Days are days in the theatre's own zone. Money is in minor units beside its currency; sums of different currencies
//! are never added.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

#[cfg(feature = "openapi")]
use utoipa::{IntoParams, ToSchema};

/// `GET /theatres/{theatre}/reports/…`: which days.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(IntoParams))]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
#[serde(default)]
pub struct ReportQuery {
    /// First day, `YYYY-MM-DD`, in the theatre's zone; four weeks up to `to` when absent.
    pub from: Option<String>,
    /// Last day, which counts too; today when absent. At most 92 days in all.
    pub to: Option<String>,
    /// Only what is of this screen, by its id; all of the theatre when absent. The occupancy is always of one screen: the
    /// first when absent.
    pub screen: Option<String>,
}

/// The days a report is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct ReportDays {
    /// First day, `YYYY-MM-DD`.
    pub from: String,
    /// Last day; it counts too.
    pub to: String,
    /// The zone whose days they are, IANA.
    pub time_zone: String,
}

/// What was sold: counts what was sold on these days, by what it cost then, whatever became of it since.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct Sold {
    /// ISO 4217.
    pub currency: String,
    /// Bookings that were confirmed.
    pub bookings: i64,
    /// Tickets in them: seats, and places without numbers.
    pub tickets: i64,
    /// What those cost, minor units.
    pub gross_minor: i64,
    /// How many of the tickets were given back since.
    pub given_back: i64,
}

/// What was sold under one name: a day, a channel, a category or a film.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct SoldLine {
    /// The name: `2026-11-21`, `web`, `gold`, `Tide`.
    pub name: String,
    /// What was sold.
    #[serde(flatten)]
    pub sold: Sold,
}

/// What was sold of one show.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct SoldShow {
    /// The show.
    pub show: Uuid,
    /// Its film.
    pub film: String,
    /// Its screen.
    pub screen: String,
    /// When it starts, on the clocks there: `2026-11-21T20:15:00`.
    pub starts_local: String,
    /// What was sold on the days of the report.
    #[serde(flatten)]
    pub sold: Sold,
}

/// `GET /theatres/{theatre}/reports/sales`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct SalesReport {
    /// Which days.
    pub days: ReportDays,
    /// In all, a line a currency.
    pub totals: Vec<Sold>,
    /// By the day of the sale; days without one are left out.
    pub by_day: Vec<SoldLine>,
    /// By where it was bought.
    pub by_channel: Vec<SoldLine>,
    /// By price category. A booking with tickets of two counts in both.
    pub by_category: Vec<SoldLine>,
    /// By film, most tickets first.
    pub by_film: Vec<SoldLine>,
    /// By show, in the order of their start.
    pub by_show: Vec<SoldShow>,
}

/// `GET /theatres/{theatre}/reports/funnel`: how far people came who took seats, from the first hold to the ticket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct FunnelReport {
    /// Which days.
    pub days: ReportDays,
    /// Holds that were granted on these days. Counted by the servers and written down every few seconds: what a
    /// server counted in the last of them before it crashed is missing. Changing a hold is no new one.
    pub holds: i64,
    /// Bookings made of holds on these days (checking out).
    pub checked_out: i64,
    /// How many of these bookings were submitted for payment.
    pub submitted: i64,
    /// How many of them were paid.
    pub paid: i64,
    /// How many of them became tickets.
    pub ticketed: i64,
    /// Of those that were not paid: the time ran out.
    pub ran_out: i64,
    /// Of those that were not paid: the payment failed.
    pub declined: i64,
    /// Of those that were not paid: let go by the buyer, or by staff.
    pub let_go: i64,
    /// Of those that were not paid: still open.
    pub open: i64,
}

/// A day's money of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct TakingsLine {
    /// The day, `YYYY-MM-DD`.
    pub date: String,
    /// How it was paid: the gateway, or the till.
    pub way: String,
    /// ISO 4217.
    pub currency: String,
    /// Payments that came in.
    pub payments: i64,
    /// What they brought, minor units.
    pub taken_minor: i64,
    /// Refunds that reached their payers.
    pub refunds: i64,
    /// What they took, minor units.
    pub refunded_minor: i64,
    /// What was kept of the price with those refunds, minor units.
    pub fees_minor: i64,
}

/// Sums of one currency.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct TakingsTotal {
    /// ISO 4217.
    pub currency: String,
    /// What came in, minor units.
    pub taken_minor: i64,
    /// What went back, minor units.
    pub refunded_minor: i64,
    /// The difference, minor units.
    pub net_minor: i64,
    /// Kept of prices with refunds, minor units: part of the difference.
    pub fees_minor: i64,
    /// Refunds that are asked for and have not reached their payers yet, of any day, minor units.
    pub under_way_minor: i64,
}

/// `GET /theatres/{theatre}/reports/takings`: money by the day it moved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct TakingsReport {
    /// Which days.
    pub days: ReportDays,
    /// By day, way and currency; days without money are left out.
    pub lines: Vec<TakingsLine>,
    /// In all, a line a currency.
    pub totals: Vec<TakingsTotal>,
}

/// A screen one may ask about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct ReportScreen {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
}

/// `GET /theatres/{theatre}/reports/occupancy`: how often each seat of a room was sold, in the shows of these days.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct OccupancyReport {
    /// Which days: those the shows are on.
    pub days: ReportDays,
    /// The screens of the theatre.
    pub screens: Vec<ReportScreen>,
    /// The one this is about; none when the theatre has no screen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub screen: Option<ReportScreen>,
    /// Shows that were counted: those in the room as the last of them has it.
    pub shows: i64,
    /// Shows that were not, because the room was another one then.
    pub shows_in_other_rooms: i64,
    /// One of those counted, for its plan at `/shows/{id}/plan`; none when there was no show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub show: Option<Uuid>,
    /// How often each seat is sold, by its index.
    pub sold: Vec<u32>,
}

impl Sold {
    /// Adds what was sold elsewhere in the same currency.
    pub fn add(&mut self, other: &Self) {
        self.bookings += other.bookings;
        self.tickets += other.tickets;
        self.gross_minor += other.gross_minor;
        self.given_back += other.given_back;
    }
}
