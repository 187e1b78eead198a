//! The JSON of the box office: sales at the counter, and shows as they fill.
//!
//! Requests here may hold a PIN: it is neither printed nor kept.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::api::accounts::{BookingSummary, Password};
use crate::api::cancelling::RefundView;
pub use crate::api::tills::{CashUp, CashUpFor, DayClose, DayView, DropRequest, OpenTill, TillRow, TillView};
use crate::api::{PlaceLine, SeatLine};
use crate::booking::{BookingState, MoneyState};
use crate::money::Money;
use crate::seats::SeatIndex;
use crate::till::Means;

#[cfg(feature = "openapi")]
use utoipa::{IntoParams, ToSchema};

/// A show of the day at the counter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct CounterShow {
    /// The show.
    pub id: Uuid,
    /// Title of the film.
    pub film: String,
    /// Name of the screen.
    pub screen: String,
    /// When it starts on the theatre's clocks: `20:15`.
    pub time: String,
    /// When it starts, milliseconds since 1970.
    pub starts_at_ms: i64,
    /// Language and format: `English, 2D`.
    pub kind: String,
    /// Whether it can be booked at this moment.
    pub is_on_sale: bool,
    /// Whether it will not take place.
    pub is_called_off: bool,
    /// How full it is.
    pub seats: Occupancy,
}

/// How full a show is: numbered seats by their state, and places in areas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct Occupancy {
    /// Seats anyone may take.
    pub free: u32,
    /// Seats in somebody's hold.
    pub held: u32,
    /// Seats that are sold.
    pub sold: u32,
    /// Seats the house keeps.
    pub kept: u32,
    /// Places in areas nobody has.
    pub places_free: u32,
    /// Places in areas, in all.
    pub places: u32,
}

impl Occupancy {
    /// Of a hundred seats and places, how many are sold or held; house seats aside. Rounded down.
    #[must_use]
    pub const fn percent(&self) -> u32 {
        let taken = self.held as u64 + self.sold as u64 + (self.places.saturating_sub(self.places_free)) as u64;
        let all = self.free as u64 + self.held as u64 + self.sold as u64 + self.places as u64;
        match (taken * 100).checked_div(all) {
            // At most a hundred.
            Some(percent) => percent as u32,
            None => 0,
        }
    }
}

/// `GET …/shows`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(IntoParams))]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
pub struct DayQuery {
    /// `YYYY-MM-DD` in the theatre's own zone; today where it is missing.
    #[serde(default)]
    pub date: Option<String>,
}

/// `POST …/shows/{show}/sales`: what the seller's hold in the show has is sold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct SaleRequest {
    /// The hold.
    pub hold: Uuid,
    /// How it is paid.
    pub means: Means,
    /// What the customer was told it costs, minor units: another sum is refused.
    pub total_minor: i64,
    /// Why it is free; only with `"means": "free"`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Whose name the tickets carry; may be left out.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Where the tickets are mailed besides; may be left out.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub email: String,
}

/// A booking as the counter sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct CounterBooking {
    /// The booking.
    pub id: Uuid,
    /// Its name for people.
    pub reference: String,
    /// The show.
    pub show: Uuid,
    /// Title of the film.
    pub film: String,
    /// When it starts, there: `Sat 21 Nov, 20:15`.
    pub starts: String,
    /// Name of the screen.
    pub screen: String,
    /// Where it stands.
    pub state: BookingState,
    /// How its money stands.
    pub money: MoneyState,
    /// Seats it has.
    pub seats: Vec<SeatLine>,
    /// Places it has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<PlaceLine>,
    /// What they cost.
    pub total: Money,
    /// Who bought; may be empty at the counter.
    pub name: String,
    /// `online` or `box_office`.
    pub channel: String,
    /// How it was paid, where that was at the counter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub means: Option<Means>,
    /// What went back or is to go back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refunds: Vec<RefundView>,
    /// What waits at the counter to be paid out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_pay_out: Option<Money>,
    /// The booking that its money pays for now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved_to: Option<Uuid>,
    /// In the answer to an exchange: what it cost more; below zero, what went back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difference: Option<Money>,
    /// Until when the caller may undo the sale, milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo_until_ms: Option<i64>,
}

/// `GET …/bookings`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(IntoParams))]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
pub struct BookingQuery {
    /// The booking's name for people; small letters and a missing dash are understood.
    #[serde(default)]
    pub reference: String,
    /// In place of a reference: a part of a name or an e-mail address, 2 to 100 characters.
    #[serde(default)]
    pub q: String,
}

/// Bookings of somebody that are told at once, at most: the newest.
pub const MAX_FOUND: usize = 20;

/// A booking in the list of those that were looked for by name or address.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct FoundBooking {
    /// What one recognises it by.
    pub booking: BookingSummary,
    /// Who bought; may be empty at the counter.
    pub name: String,
    /// Their address; may be empty at the counter.
    pub email: String,
    /// Who comes with it, where that is somebody else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
}

/// The answer of `GET …/bookings`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(untagged)]
pub enum FoundAtCounter {
    /// The booking of a reference.
    One(Box<CounterBooking>),
    /// Those of a name or an address, the newest first, at most 20.
    Of(Vec<FoundBooking>),
}

/// A ticket to be printed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct PrintedTicket {
    /// The seat's or area's name for people.
    pub label: String,
    /// Its category's name for people.
    pub category: String,
    /// What opens the door.
    pub code: String,
}

/// A reason, and nothing else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Reason {
    /// Why.
    pub reason: String,
}

/// `POST …/bookings/{booking}/refund`: with a manager's PIN.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct RefundRequest {
    /// Seats that go back; all of the booking where it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seats: Option<Vec<SeatIndex>>,
    /// Why.
    pub reason: String,
    /// The manager who stands for it.
    pub manager: Uuid,
    /// Their PIN.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub pin: Password,
}

/// `POST …/bookings/{booking}/exchange`: other seats in place of those of a booking.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ExchangeRequest {
    /// The show of the new seats.
    pub show: Uuid,
    /// The seller's hold of them.
    pub hold: Uuid,
    /// What the new seats cost in all, as the customer was told, minor units.
    pub total_minor: i64,
    /// What the booking cost, as the customer was told, minor units: another sum is refused. Not compared where it is
    /// missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_total_minor: Option<i64>,
    /// Why.
    pub reason: String,
    /// The manager who stands for it, where the new seats cost less and money goes back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manager: Option<Uuid>,
    /// Their PIN.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub pin: Option<Password>,
}

impl ExchangeRequest {
    /// The same without the PIN: what may be kept of it.
    #[must_use]
    pub fn without_pin(&self) -> Self {
        Self { pin: None, ..self.clone() }
    }
}

/// `POST …/pin`: a manager sets their own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct PinRequest {
    /// 6 to 12 digits.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub pin: Password,
    /// The password they sign in with.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub password: Password,
}

/// A manager who has a PIN.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct ManagerView {
    /// Their account.
    pub account: Uuid,
    /// Their name.
    pub name: String,
}

/// `POST …/shows/{show}/house-seats`: seats are kept off sale, or put back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct HouseSeats {
    /// The seats.
    pub seats: Vec<SeatIndex>,
    /// Whether the house keeps them.
    pub kept: bool,
    /// Why.
    pub reason: String,
}

/// `POST …/shows/{show}/house-seats/hold`: seats the house keeps are held by the seller, for a guest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct GuestSeats {
    /// The seats, 1 to 10.
    pub seats: Vec<SeatIndex>,
    /// Why.
    pub reason: String,
}

/// `POST …/shows/{show}/caller-holds`: seats for somebody at the telephone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct CallerHold {
    /// The seats, 1 to 10.
    pub seats: Vec<SeatIndex>,
    /// Whom they are for.
    pub name: String,
    /// For how long, 5 to 240; never beyond the end of sales.
    pub minutes: u32,
}

/// Seats that are held for somebody at the telephone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct CallerHoldView {
    /// The hold: what is sold when they come.
    pub hold: Uuid,
    /// Whom they are for.
    pub name: String,
    /// The seats.
    pub seats: Vec<SeatLine>,
    /// What they cost.
    pub total: Money,
    /// Until when, milliseconds since 1970.
    pub until_ms: i64,
    /// The same on the theatre's clocks: `20:15`.
    pub until: String,
}

/// Who has a seat, for staff.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum SeatHolder {
    /// A booking.
    Booking {
        /// Its id.
        booking: Uuid,
        /// Its name for people.
        reference: String,
        /// Who bought; may be empty at the counter.
        name: String,
    },
    /// The house.
    House {
        /// Why; empty where it always was so.
        reason: String,
        /// Who said so; empty likewise.
        name: String,
    },
    /// Somebody at the telephone.
    Caller {
        /// Their name.
        name: String,
    },
    /// Somebody who is choosing.
    Hold {
        /// Their name, once they have said it; else empty.
        name: String,
    },
    /// Nobody.
    Nobody,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_house_is_as_full_as_what_is_on_sale_is_taken() {
        let full = |free, held, sold, kept| Occupancy { free, held, sold, kept, ..Occupancy::default() }.percent();
        assert_eq!(full(0, 0, 0, 300), 0, "nothing is on sale");
        assert_eq!(full(3, 0, 1, 0), 25);
        assert_eq!(full(1, 1, 1, 97), 66, "house seats do not count");
        assert_eq!(full(0, 0, u32::MAX, 0), 100);
        let floor = Occupancy { free: 50, places: 50, places_free: 0, ..Occupancy::default() };
        assert_eq!(floor.percent(), 50);
    }
}
