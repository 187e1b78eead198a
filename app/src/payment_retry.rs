//! The start of a payment, and the data that survives a failed one. Shared by the seat map, the checkout and the booking
//! page, which are in different modules of the client.
//!
//! The buyer's form of the checkout is stored for this tab, so that it survives a reload or a declined card: names and
//! addresses only, nothing of a card. It is removed after a purchase, and with the tab. For a signed-in buyer only the
//! other fields are stored, because the page has the account's. They are restored for the same account only, as another
//! person may use the computer next.
//!
//! The seats and places are a query of the show's address, which the booking page writes and the seat map reads. It names
//! what to offer; opening the address holds nothing. Seats are numbers, which mean other seats after a move to another
//! screen. A checksum of the seat names detects that, and nothing is offered then. Places without numbers are named by
//! their area.

use domain::api::cancelling::LatePaymentHandling;
use domain::api::{AreaQuantity, PlaceLine, SeatLine};
use domain::seats::{MAX_SEATS_PER_HOLD, SeatIndex};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::browser::{self, storage};

/// Path of the bookings.
pub const BOOKINGS: &str = "/api/v1/bookings";

/// The part of a booking needed to open its payment page.
#[derive(Deserialize)]
pub struct StartedPayment {
    /// The booking.
    pub id: Uuid,
    pay_url: Option<String>,
}

impl StartedPayment {
    /// Leaves for the payment page, or for the booking's without one.
    pub fn open(self) {
        browser::go_to(&self.pay_url.unwrap_or_else(|| format!("/bookings/{}", self.id)));
    }
}

const STORAGE_KEY: &str = "typed-details";

/// The fields as typed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BuyerDetails {
    /// Of the buyer.
    pub name: String,
    /// Of the buyer.
    pub email: String,
    /// True if the tickets are for a friend.
    pub for_friend: bool,
    /// Of the friend.
    pub friend_name: String,
    /// Of the friend.
    pub friend_email: String,
    /// The choice for a late payment.
    pub if_late: LatePaymentHandling,
    /// The e-mail address of the signed-in account.
    pub account: Option<String>,
}

impl BuyerDetails {
    /// Loads the stored fields if they are readable and for this account.
    pub fn load_for(account: Option<&str>) -> Option<Self> {
        Self::load().filter(|typed| typed.is_for(account))
    }

    fn load() -> Option<Self> {
        serde_json::from_str(&storage::TAB.read(STORAGE_KEY)?).ok()
    }

    /// Returns true if the fields may be shown to this account. A guest may have signed in since.
    fn is_for(&self, account: Option<&str>) -> bool {
        self.account.is_none() || self.account.as_deref() == account
    }

    /// Returns true if nothing was typed.
    fn is_empty(&self) -> bool {
        *self == Self { account: self.account.clone(), ..Self::default() }
    }

    /// Stores the fields.
    pub fn save(&self) {
        if self.is_empty() {
            forget_buyer();
        } else if let Ok(text) = serde_json::to_string(self) {
            storage::TAB.write(STORAGE_KEY, &text);
        }
    }
}

/// The stored choice for a late payment, of any account: it names no one.
pub fn late_choice() -> LatePaymentHandling {
    BuyerDetails::load().unwrap_or_default().if_late
}

/// Removes the stored fields.
pub fn forget_buyer() {
    storage::TAB.remove(STORAGE_KEY);
}

const PARAMETER: &str = "again=";
/// Separates the parts: a character that addresses never escape.
const SEPARATOR: &str = "-";
/// Prefix of the checksum. No seat number starts with it.
const CHECKSUM: &str = "n";
/// Prefix of places, and the sign between area and quantity: `a0x3`.
const PLACES: &str = "a";
const TIMES: char = 'x';

/// The seats and places that an address requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestedSeats {
    /// Ascending, without duplicates, at most as many as a hold may have.
    pub seats: Vec<SeatIndex>,
    /// Ascending by area, without duplicates; with the seats at most as many as a hold may have.
    pub places: Vec<AreaQuantity>,
    checksum: Option<u32>,
}

impl RequestedSeats {
    /// Returns true if nothing is requested.
    pub const fn is_empty(&self) -> bool {
        self.seats.is_empty() && self.places.is_empty()
    }

    /// Returns true if the checksum matches these names: seats before areas, each in ascending order.
    pub fn has_checksum_of<'a>(&self, names: impl Iterator<Item = &'a str>) -> bool {
        self.checksum == Some(checksum_of(names))
    }
}

/// The address of a show's page that offers these seats and places again.
pub fn seats_address(show: Uuid, seats: &[SeatLine], places: &[PlaceLine]) -> String {
    if seats.is_empty() && places.is_empty() {
        return format!("/shows/{show}");
    }
    let (mut seats, mut places): (Vec<&SeatLine>, Vec<&PlaceLine>) = (seats.iter().collect(), places.iter().collect());
    seats.sort_unstable_by_key(|line| line.seat);
    places.sort_unstable_by_key(|line| line.area);
    let numbers = seats.iter().map(|line| line.seat.to_string());
    let quantities = places.iter().map(|line| format!("{PLACES}{}{TIMES}{}", line.area, line.quantity));
    let parts: Vec<String> = numbers.chain(quantities).collect();
    let names = seats.iter().map(|line| line.label.as_str()).chain(places.iter().map(|line| line.label.as_str()));
    format!("/shows/{show}?{PARAMETER}{}{SEPARATOR}{CHECKSUM}{:x}", parts.join(SEPARATOR), checksum_of(names))
}

/// Parses the request from a query. Parts that are neither seats nor places are ignored.
pub fn parse_seats(query: &str) -> RequestedSeats {
    let named = query.trim_start_matches('?').split('&').find_map(|part| part.strip_prefix(PARAMETER));
    let parts = || named.unwrap_or_default().split(SEPARATOR);
    let mut seats: Vec<SeatIndex> = parts().filter_map(|number| number.parse().ok()).collect();
    seats.sort_unstable();
    seats.dedup();
    seats.truncate(MAX_SEATS_PER_HOLD);
    let mut places: Vec<AreaQuantity> = parts().filter_map(places_in).collect();
    places.sort_unstable_by_key(|places| places.area);
    places.dedup_by_key(|places| places.area);
    let mut room = MAX_SEATS_PER_HOLD - seats.len();
    places.retain(|places| {
        let fits = places.quantity as usize <= room;
        room -= if fits { places.quantity as usize } else { 0 };
        fits
    });
    let checksum = parts()
        .filter_map(|part| part.strip_prefix(CHECKSUM))
        .find_map(|checksum| u32::from_str_radix(checksum, 16).ok());
    RequestedSeats { seats, places, checksum }
}

/// Parses places: `a0x3` is three places in the first area.
fn places_in(part: &str) -> Option<AreaQuantity> {
    let (area, quantity) = part.strip_prefix(PLACES)?.split_once(TIMES)?;
    let places = AreaQuantity { area: area.parse().ok()?, quantity: quantity.parse().ok()? };
    (places.quantity > 0).then_some(places)
}

/// FNV-1a over zero-terminated names. Not a secret: a forged sum only offers seats that anyone can tap.
fn checksum_of<'a>(names: impl Iterator<Item = &'a str>) -> u32 {
    let bytes = names.flat_map(|name| name.bytes().chain([0]));
    bytes.fold(0x811c_9dc5, |checksum, byte| (checksum ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use domain::money::{Currency, Money};

    use super::*;

    #[test]
    fn stored_details_include_the_late_choice_and_older_ones_without_it_are_read() {
        let typed = BuyerDetails { for_friend: true, if_late: LatePaymentHandling::Refund, ..BuyerDetails::default() };
        let text = serde_json::to_string(&typed).expect("text and choices are JSON");
        assert_eq!(serde_json::from_str::<BuyerDetails>(&text).expect("stored"), typed);
        let earlier: BuyerDetails = serde_json::from_str(r#"{"name":"Ana"}"#).expect("stored by an earlier version");
        assert_eq!(earlier, BuyerDetails { name: "Ana".to_owned(), ..BuyerDetails::default() });
    }

    #[test]
    fn details_of_an_account_are_restored_for_that_account_only() {
        let of =
            |account: Option<&str>| BuyerDetails { account: account.map(str::to_owned), ..BuyerDetails::default() };
        let (guest, ana) = (of(None), of(Some("ana@example.org")));
        assert!(ana.is_for(Some("ana@example.org")));
        assert!(!ana.is_for(Some("ben@example.org")) && !ana.is_for(None));
        assert!(guest.is_for(None) && guest.is_for(Some("ana@example.org")), "a guest who has signed in since");
        assert!(guest.is_empty() && ana.is_empty(), "an account alone is nothing typed");
        assert!(!BuyerDetails { for_friend: true, ..ana }.is_empty());
    }

    fn price() -> Money {
        Money::new(1_250, Currency::parse("EUR").expect("a code"))
    }

    fn line(seat: SeatIndex, label: &str) -> SeatLine {
        SeatLine { seat, label: label.to_owned(), category: "Gold".to_owned(), price: price() }
    }

    fn places(area: u16, quantity: u32, label: &str) -> PlaceLine {
        PlaceLine { area, label: label.to_owned(), category: "Floor".to_owned(), price: price(), quantity }
    }

    #[test]
    fn an_address_is_parsed_back_into_its_seats() {
        let address = seats_address(Uuid::nil(), &[line(31, "Circle C8"), line(30, "Circle C7")], &[]);
        assert!(address.starts_with("/shows/00000000-0000-0000-0000-000000000000?again=30-31-n"), "{address}");
        let (_, query) = address.split_once('?').expect("it asks for something");
        for query in [query.to_owned(), format!("?lang=de&{query}&x=1")] {
            let requested = parse_seats(&query);
            assert_eq!(requested.seats, [30, 31]);
            assert!(requested.has_checksum_of(["Circle C7", "Circle C8"].into_iter()));
            assert!(
                !requested.has_checksum_of(["D1", "D2"].into_iter()),
                "another room has other seats by these numbers"
            );
        }
    }

    #[test]
    fn places_are_written_and_parsed_by_area() {
        let address = seats_address(Uuid::nil(), &[line(30, "C7")], &[places(1, 2, "Terrace"), places(0, 3, "Floor")]);
        assert!(address.contains("?again=30-a0x3-a1x2-n"), "{address}");
        let requested = parse_seats(address.split_once('?').expect("it asks for something").1);
        let quantities: Vec<_> = requested.places.iter().map(|places| (places.area, places.quantity)).collect();
        assert_eq!((requested.seats.as_slice(), quantities), (&[30][..], vec![(0, 3), (1, 2)]));
        assert!(requested.has_checksum_of(["C7", "Floor", "Terrace"].into_iter()));
        assert!(!requested.has_checksum_of(["C7", "Balcony", "Terrace"].into_iter()));
    }

    #[test]
    fn without_seats_the_address_is_the_page_of_the_show() {
        assert_eq!(seats_address(Uuid::nil(), &[], &[]), "/shows/00000000-0000-0000-0000-000000000000");
        assert_eq!(parse_seats(""), RequestedSeats::default());
    }

    #[test]
    fn a_forged_address_requests_no_more_than_a_hold_may_have() {
        let requested = parse_seats("again=7-x-7--1-99999999999-nothing-");
        assert_eq!(requested.seats, [1, 7]);
        assert!(!requested.has_checksum_of(["A1", "A7"].into_iter()), "the checksum is missing");
        let many: Vec<String> = (0..40).map(|seat| seat.to_string()).collect();
        let requested = parse_seats(&format!("again={}-a0x1", many.join("-")));
        assert_eq!((requested.seats.len(), requested.places.len()), (MAX_SEATS_PER_HOLD, 0));
        for query in ["again=a0x0", "again=a0x11", "again=ax1-a0x-a", "again=a99999999x1"] {
            assert!(parse_seats(query).is_empty(), "{query}");
        }
        assert_eq!(parse_seats("again=a0x4-a0x2-a1x7").places.len(), 1, "an area counts once, and eleven are too many");
    }
}
