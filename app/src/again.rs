//! The seats somebody had when a payment did not come off, in the address of the page of their show.
//!
//! The page of the booking writes it and the seat map reads it. It says what to offer: nothing is held by opening it.
//! Seats go by number, and a show that was moved to another screen has other seats by these numbers: so a sum over their
//! names goes along, and where it is not theirs any more, nothing is offered.

use domain::api::SeatLine;
use domain::seats::{MAX_SEATS_PER_HOLD, SeatIndex};
use uuid::Uuid;

/// What stands in front of the seats.
const AGAIN: &str = "again=";
/// Between two of them, and in front of the sum: a sign that stays as it is in every address.
const BETWEEN: &str = "-";
/// What the sum begins with, which no number does.
const SUM: &str = "n";

/// Seats that an address asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Each once, in ascending order, no more than one may hold.
    pub seats: Vec<SeatIndex>,
    sum: Option<u32>,
}

impl Wanted {
    /// Whether these, in ascending order, are the names they had.
    pub fn are_named<'a>(&self, names: impl Iterator<Item = &'a str>) -> bool {
        self.sum == Some(sum_of(names))
    }
}

/// The page of a show, where these seats are to be offered again.
#[must_use]
pub fn address(show: Uuid, seats: &[SeatLine]) -> String {
    if seats.is_empty() {
        return format!("/shows/{show}");
    }
    let mut lines: Vec<&SeatLine> = seats.iter().collect();
    lines.sort_unstable_by_key(|line| line.seat);
    let numbers: Vec<String> = lines.iter().map(|line| line.seat.to_string()).collect();
    let sum = sum_of(lines.iter().map(|line| line.label.as_str()));
    format!("/shows/{show}?{AGAIN}{}{BETWEEN}{SUM}{sum:x}", numbers.join(BETWEEN))
}

/// The seats that an address asks for again, by what stands after its `?`. Whatever is no seat's number is passed over.
#[must_use]
pub fn wanted_in(query: &str) -> Wanted {
    let named = query.trim_start_matches('?').split('&').find_map(|part| part.strip_prefix(AGAIN));
    let parts = || named.unwrap_or_default().split(BETWEEN);
    let mut seats: Vec<SeatIndex> = parts().filter_map(|number| number.parse().ok()).collect();
    seats.sort_unstable();
    seats.dedup();
    seats.truncate(MAX_SEATS_PER_HOLD);
    let sum = parts().filter_map(|part| part.strip_prefix(SUM)).find_map(|sum| u32::from_str_radix(sum, 16).ok());
    Wanted { seats, sum }
}

/// FNV-1a over names, each with its end. It keeps no secret: whoever makes one up is offered seats they could tap.
fn sum_of<'a>(names: impl Iterator<Item = &'a str>) -> u32 {
    let bytes = names.flat_map(|name| name.bytes().chain([0]));
    bytes.fold(0x811c_9dc5, |sum, byte| (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use domain::money::{Currency, Money};

    use super::*;

    fn line(seat: SeatIndex, label: &str) -> SeatLine {
        let price = Money::new(1_250, Currency::parse("EUR").expect("a code"));
        SeatLine { seat, label: label.to_owned(), category: "Gold".to_owned(), price }
    }

    #[test]
    fn what_one_page_writes_the_other_reads() {
        let address = address(Uuid::nil(), &[line(31, "Circle C8"), line(30, "Circle C7")]);
        assert!(address.starts_with("/shows/00000000-0000-0000-0000-000000000000?again=30-31-n"), "{address}");
        let (_, query) = address.split_once('?').expect("it asks for something");
        for query in [query.to_owned(), format!("?lang=de&{query}&x=1")] {
            let wanted = wanted_in(&query);
            assert_eq!(wanted.seats, [30, 31]);
            assert!(wanted.are_named(["Circle C7", "Circle C8"].into_iter()));
            assert!(!wanted.are_named(["D1", "D2"].into_iter()), "another room has other seats by these numbers");
        }
    }

    #[test]
    fn without_seats_it_is_the_page_of_the_show() {
        assert_eq!(address(Uuid::nil(), &[]), "/shows/00000000-0000-0000-0000-000000000000");
        assert_eq!(wanted_in(""), Wanted::default());
    }

    #[test]
    fn an_address_that_somebody_made_up_asks_for_no_more_than_one_may_hold() {
        let wanted = wanted_in("again=7-x-7--1-99999999999-nothing-");
        assert_eq!(wanted.seats, [1, 7]);
        assert!(!wanted.are_named(["A1", "A7"].into_iter()), "nor is it believed");
        let many: Vec<String> = (0..40).map(|seat| seat.to_string()).collect();
        assert_eq!(wanted_in(&format!("again={}", many.join("-"))).seats.len(), MAX_SEATS_PER_HOLD);
    }
}
