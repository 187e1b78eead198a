//! The seats somebody had when a payment did not come off, in the address of the page of their show.
//!
//! The page of the booking writes it and the seat map reads it. It says what to offer: nothing is held by opening it.

use domain::seats::{MAX_SEATS_PER_HOLD, SeatIndex};
use uuid::Uuid;

/// What stands in front of the seats.
const AGAIN: &str = "again=";
/// Between two of them: a sign that stays as it is in every address.
const BETWEEN: &str = "-";

/// The page of a show, where these seats are to be offered again.
#[must_use]
pub fn address(show: Uuid, seats: &[SeatIndex]) -> String {
    if seats.is_empty() {
        return format!("/shows/{show}");
    }
    let numbers: Vec<String> = seats.iter().map(u32::to_string).collect();
    format!("/shows/{show}?{AGAIN}{}", numbers.join(BETWEEN))
}

/// The seats that an address asks for again, by what stands after its `?`: each once, in ascending order, no more than
/// one may hold. Whatever is no seat's number is passed over.
#[must_use]
pub fn seats_in(query: &str) -> Vec<SeatIndex> {
    let named = query.trim_start_matches('?').split('&').find_map(|part| part.strip_prefix(AGAIN));
    let mut seats: Vec<SeatIndex> =
        named.unwrap_or_default().split(BETWEEN).filter_map(|number| number.parse().ok()).collect();
    seats.sort_unstable();
    seats.dedup();
    seats.truncate(MAX_SEATS_PER_HOLD);
    seats
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_page_writes_the_other_reads() {
        let address = address(Uuid::nil(), &[31, 30]);
        assert_eq!(address, "/shows/00000000-0000-0000-0000-000000000000?again=31-30");
        let (_, query) = address.split_once('?').expect("it asks for something");
        assert_eq!(seats_in(query), [30, 31]);
        assert_eq!(seats_in(&format!("?lang=de&{query}&x=1")), [30, 31]);
    }

    #[test]
    fn without_seats_it_is_the_page_of_the_show() {
        assert_eq!(address(Uuid::nil(), &[]), "/shows/00000000-0000-0000-0000-000000000000");
        assert_eq!(seats_in(""), [0; 0]);
    }

    #[test]
    fn an_address_that_somebody_made_up_asks_for_no_more_than_one_may_hold() {
        assert_eq!(seats_in("again=7-x-7--1-99999999999-"), [1, 7]);
        let many: Vec<String> = (0..40).map(|seat| seat.to_string()).collect();
        assert_eq!(seats_in(&format!("again={}", many.join("-"))).len(), MAX_SEATS_PER_HOLD);
    }
}
