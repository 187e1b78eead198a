//! JSON of the box office: sales at the counter, and occupancy of shows.
//!
//! Requests here may contain a PIN. PINs are neither printed nor stored.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::api::accounts::{BookingSummary, Password};
use crate::api::cancelling::RefundView;
pub use crate::api::tills::{CashUp, CashUpFor, DayClose, DayView, DropRequest, OpenTill, TillRow, TillView};
use crate::api::{PlaceLine, SeatLine};
use crate::booking::{BookingState, MoneyState};
use crate::money::Money;
use crate::pricing::Breakdown;
use crate::seats::SeatIndex;
use crate::till::Means;

/// A show in the counter's list of a day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CounterShow {
    /// The show.
    pub id: Uuid,
    /// Title of the film.
    pub film: String,
    /// Name of the screen.
    pub screen: String,
    /// Start in the theatre's time zone: `20:15`.
    pub time: String,
    /// Start, milliseconds since 1970.
    pub starts_at_ms: i64,
    /// Language and format: `English, 2D`.
    pub kind: String,
    /// True if seats can be held now.
    pub is_on_sale: bool,
    /// True if booking has closed, or the show was cancelled. False before sales begin and while they are paused.
    #[serde(default)]
    pub has_closed: bool,
    /// True if it was cancelled.
    pub is_called_off: bool,
    /// Its occupancy.
    pub seats: Occupancy,
}

/// Occupancy of a show: numbered seats by state, and places in areas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Occupancy {
    /// Number of free seats.
    pub free: u32,
    /// Number of held seats.
    pub held: u32,
    /// Number of sold seats.
    pub sold: u32,
    /// Number of house seats.
    pub kept: u32,
    /// Number of free places in areas.
    pub places_free: u32,
    /// Number of all places in areas.
    pub places: u32,
}

impl Occupancy {
    /// Percentage of seats and places that are sold or held, without house seats. Rounded down.
    #[must_use]
    pub const fn percent(&self) -> u32 {
        let taken = self.held as u64 + self.sold as u64 + (self.places.saturating_sub(self.places_free)) as u64;
        let all = self.free as u64 + self.held as u64 + self.sold as u64 + self.places as u64;
        match (taken * 100).checked_div(all) {
            // At most 100.
            Some(percent) => percent as u32,
            None => 0,
        }
    }
}

/// `GET …/shows`: selects the day.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
pub struct DayQuery {
    /// `YYYY-MM-DD` in the theatre's time zone; default: today.
    #[serde(default)]
    pub date: Option<String>,
}

/// `POST …/shows/{show}/sales`: sells the seats of the seller's hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct SaleRequest {
    /// The hold.
    pub hold: Uuid,
    /// Means of payment.
    pub means: Means,
    /// Total quoted to the customer, minor units. A different total is refused.
    pub total_minor: i64,
    /// The reason for a free ticket; only with `"means": "free"`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Name on the tickets; optional.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Address that the tickets are also mailed to; optional.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub email: String,
}

/// A booking, for the counter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CounterBooking {
    /// The booking.
    pub id: Uuid,
    /// Reference of the booking.
    pub reference: String,
    /// The show.
    pub show: Uuid,
    /// Title of the film.
    pub film: String,
    /// Start in the theatre's time zone: `Sat 21 Nov, 20:15`.
    pub starts: String,
    /// Name of the screen.
    pub screen: String,
    /// State of the booking.
    pub state: BookingState,
    /// State of its money.
    pub money: MoneyState,
    /// Its seats.
    pub seats: Vec<SeatLine>,
    /// Its places in areas.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<PlaceLine>,
    /// Total price.
    pub total: Money,
    /// The parts of the total. Absent only from servers of the previous version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub breakdown: Option<Breakdown>,
    /// Name of the buyer; may be empty for a sale at the counter.
    pub name: String,
    /// `online` or `box_office`.
    pub channel: String,
    /// Means of payment, if it was paid at the counter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub means: Option<Means>,
    /// Refunds, sent or pending.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refunds: Vec<RefundView>,
    /// Amount to be paid out at the counter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_pay_out: Option<Money>,
    /// True if the pay-out needs a manager's PIN, because the buyer cancelled.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pay_out_needs_pin: bool,
    /// The booking that its money pays for after an exchange or a late payment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved_to: Option<Uuid>,
    /// Price difference in the answer to an exchange; negative if money was refunded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difference: Option<Money>,
    /// Deadline for the caller to undo the sale, milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo_until_ms: Option<i64>,
}

/// `GET …/bookings`: finds bookings by reference, or by name or address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
pub struct BookingQuery {
    /// Reference of a booking; accepts lower case and a missing hyphen.
    #[serde(default)]
    pub reference: String,
    /// Instead of a reference: part of a name or an e-mail address, 2 to 100 characters.
    #[serde(default)]
    pub q: String,
}

/// Maximum number of bookings found by name or address, the newest first.
pub const MAX_MATCHES: usize = 20;

/// A booking found by name or address.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = FoundBooking))]
pub struct BookingMatch {
    /// Summary of the booking.
    pub booking: BookingSummary,
    /// Name of the buyer; may be empty for a sale at the counter.
    pub name: String,
    /// Address of the buyer; may be empty for a sale at the counter.
    pub email: String,
    /// The ticket holder, if it is not the buyer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
}

/// Answer of `GET …/bookings`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(untagged)]
pub enum FoundAtCounter {
    /// The booking with the given reference.
    One(Box<CounterBooking>),
    /// Bookings found by name or address, newest first, at most 20.
    Many(Vec<BookingMatch>),
}

/// A ticket to print.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PrintedTicket {
    /// Display name of the seat or area.
    pub label: String,
    /// Display name of the category.
    pub category: String,
    /// Code that is scanned at the door.
    pub code: String,
}

/// A reason without further data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Reason {
    /// The reason.
    pub reason: String,
}

/// `POST …/bookings/{booking}/refund`: refunds seats with a manager's PIN.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct RefundRequest {
    /// Seats to refund; absent: all of the booking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seats: Option<Vec<SeatIndex>>,
    /// Labels of the seats as the caller saw them, in the order of `seats`: a show that moved to another room has other
    /// seats under these numbers, and the request is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<Vec<String>>,
    /// The reason.
    pub reason: String,
    /// The manager who authorises it.
    pub manager: Uuid,
    /// The manager's PIN.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub pin: Password,
}

/// `POST …/bookings/{booking}/pay-out`: pays out the waiting refund.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct PayOutRequest {
    /// The reason.
    pub reason: String,
    /// The manager who authorises it; required if the buyer cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manager: Option<Uuid>,
    /// The manager's PIN.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub pin: Option<Password>,
}

impl PayOutRequest {
    /// Returns a copy without the PIN, which may be stored.
    #[must_use]
    pub fn without_pin(&self) -> Self {
        Self { pin: None, ..self.clone() }
    }
}

/// `POST …/bookings/{booking}/exchange`: exchanges the seats of a booking for others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ExchangeRequest {
    /// The show of the new seats.
    pub show: Uuid,
    /// The seller's hold of the new seats.
    pub hold: Uuid,
    /// Total of the new seats quoted to the customer, minor units.
    pub total_minor: i64,
    /// Total of the original booking quoted to the customer, minor units. A different total is refused; absent: not
    /// compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_total_minor: Option<i64>,
    /// The reason.
    pub reason: String,
    /// The manager who authorises it; required if money is refunded because the new seats cost less, and if the show of
    /// the booking has begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manager: Option<Uuid>,
    /// The manager's PIN.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub pin: Option<Password>,
}

impl ExchangeRequest {
    /// Returns a copy without the PIN, which may be stored.
    #[must_use]
    pub fn without_pin(&self) -> Self {
        Self { pin: None, ..self.clone() }
    }
}

/// `POST …/pin`: sets the caller's PIN as a manager.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct PinRequest {
    /// 6 to 12 digits.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub pin: Password,
    /// The manager's password.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub password: Password,
}

/// A manager with a PIN.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ManagerView {
    /// Id of the account.
    pub account: Uuid,
    /// Name of the manager.
    pub name: String,
}

/// `POST …/shows/{show}/house-seats`: keeps seats for the house or releases them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct HouseSeats {
    /// The seats.
    pub seats: Vec<SeatIndex>,
    /// Labels of the seats as the caller saw them, in the order of `seats`: a show that moved to another room has other
    /// seats under these numbers, and the request is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<Vec<String>>,
    /// True keeps them, false releases them.
    pub kept: bool,
    /// The reason.
    pub reason: String,
}

/// `POST …/shows/{show}/house-seats/hold`: moves house seats into the seller's hold, for a guest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct GuestSeats {
    /// The seats, 1 to 10.
    pub seats: Vec<SeatIndex>,
    /// The reason.
    pub reason: String,
}

/// `POST …/shows/{show}/caller-holds`: holds seats for a customer on the phone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct CallerHold {
    /// The seats, 1 to 10.
    pub seats: Vec<SeatIndex>,
    /// Name of the customer.
    pub name: String,
    /// Duration of the hold, 5 to 240 minutes. It ends with sales at the latest.
    pub minutes: u32,
}

/// Seats held for a customer on the phone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CallerHoldView {
    /// The hold, which is sold when the customer collects.
    pub hold: Uuid,
    /// Name of the customer.
    pub name: String,
    /// The seats.
    pub seats: Vec<SeatLine>,
    /// Total price.
    pub total: Money,
    /// The parts of the total. Absent only from servers of the previous version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub breakdown: Option<Breakdown>,
    /// Expiry, milliseconds since 1970.
    pub until_ms: i64,
    /// The same in the theatre's time zone: `20:15`.
    pub until: String,
}

/// Owner of a seat, for staff.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum SeatHolder {
    /// A booking.
    Booking {
        /// Its id.
        booking: Uuid,
        /// Its reference.
        reference: String,
        /// Name of the buyer; may be empty for a sale at the counter.
        name: String,
    },
    /// The house.
    House {
        /// The reason; empty for seats kept from the beginning.
        reason: String,
        /// The member of staff; empty likewise.
        name: String,
    },
    /// A customer on the phone.
    Caller {
        /// Name of the customer.
        name: String,
    },
    /// A customer choosing seats.
    Hold {
        /// Name of the customer, if known; otherwise empty.
        name: String,
    },
    /// The seat is free.
    #[serde(rename = "nobody")]
    Free,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn occupancy_percentage_counts_seats_on_sale() {
        let full = |free, held, sold, kept| Occupancy { free, held, sold, kept, ..Occupancy::default() }.percent();
        assert_eq!(full(0, 0, 0, 300), 0, "nothing is on sale");
        assert_eq!(full(3, 0, 1, 0), 25);
        assert_eq!(full(1, 1, 1, 97), 66, "house seats do not count");
        assert_eq!(full(0, 0, u32::MAX, 0), 100);
        let floor = Occupancy { free: 50, places: 50, places_free: 0, ..Occupancy::default() };
        assert_eq!(floor.percent(), 50);
    }
}
