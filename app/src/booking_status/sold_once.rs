//! Checks in the browser that each seat of the booking was sold once: the public list of sold seats must have it once,
//! with the digest of this booking (`domain::sold_seats`).

use domain::api::BookingState;
use domain::sold_seats::{SeatListing, find_seats, list_digest};
use language::say;
use leptos::prelude::*;
use leptos::task::spawn_local;

use super::FollowedBooking;
use crate::browser::calls::{self, Failure};
use crate::browser::events;

/// Deadline of the list, milliseconds: that of an arena has two megabytes.
const DEADLINE_MS: u32 = 30_000;
/// Pause before the list is read again because a seat is missing, milliseconds. The server's list is up to two seconds
/// old.
const REREAD_PAUSE_MS: u32 = 3_000;
/// Digits in a group of a displayed digest.
const GROUP: usize = 4;

/// The state of the check.
#[derive(PartialEq)]
enum CheckState {
    NotStarted,
    Running,
    /// The list could not be read; the reason in words.
    Failed(String),
    Done(CheckedSeats),
}

/// The result of the check for all seats of a booking.
#[derive(Debug, PartialEq)]
struct CheckedSeats {
    /// The label of each seat, and its listing.
    seats: Vec<(String, SeatListing)>,
    /// Digest of the whole list, in groups of digits.
    digest: String,
}

impl CheckState {
    fn checked(&self) -> Option<&CheckedSeats> {
        if let Self::Done(checked) = self { Some(checked) } else { None }
    }

    /// The result in a sentence.
    fn sentence(&self) -> Option<String> {
        match self {
            Self::NotStarted => None,
            Self::Running => Some(say!("sold_once.running")),
            Self::Failed(words) => Some(words.clone()),
            Self::Done(checked) => Some(checked.sentence()),
        }
    }
}

impl CheckedSeats {
    /// `None` if the text is not a list of sold seats.
    fn of(booking: &FollowedBooking, list: &str) -> Option<Self> {
        let labels: Vec<&str> = booking.seats.iter().map(|line| line.label.as_str()).collect();
        let found = find_seats(list, booking.show, booking.id, &labels)?;
        let seats = labels.into_iter().map(str::to_owned).zip(found).collect();
        Some(Self { seats, digest: in_groups(&list_digest(list)) })
    }

    /// The worst of the listings.
    fn worst(&self) -> SeatListing {
        self.seats.iter().map(|(_, listing)| *listing).max().unwrap_or(SeatListing::NotListed)
    }

    fn sentence(&self) -> String {
        match self.worst() {
            SeatListing::SoldOnce => say!("sold_once.all", seats = self.seats.len()),
            SeatListing::NotListed => say!("sold_once.missing"),
            SeatListing::ListedForAnother | SeatListing::ListedTwice => say!("sold_once.mismatch"),
        }
    }
}

/// The message about one seat.
fn words_of(listing: SeatListing) -> &'static str {
    match listing {
        SeatListing::SoldOnce => "sold_once.once",
        SeatListing::NotListed => "sold_once.not_listed",
        SeatListing::ListedForAnother => "sold_once.another",
        SeatListing::ListedTwice => "sold_once.twice",
    }
}

/// Groups the digits of a digest, so that people can compare it.
fn in_groups(digest: &str) -> String {
    let mut grouped = String::new();
    for (at, digit) in digest.chars().enumerate() {
        if at > 0 && at.is_multiple_of(GROUP) {
            grouped.push(' ');
        }
        grouped.push(digit);
    }
    grouped
}

fn list_path(booking: &FollowedBooking) -> String {
    format!("/api/v1/shows/{}/sold-seats", booking.show)
}

/// Returns true if the booking has sold seats with numbers, and no open offer to replace them.
fn has_sold_seats(booking: &FollowedBooking) -> bool {
    booking.state == BookingState::Confirmed && !booking.seats.is_empty() && booking.seat_offer.is_none()
}

async fn read_list(booking: &FollowedBooking) -> Result<CheckedSeats, Failure> {
    let list = calls::text(&list_path(booking), DEADLINE_MS).await?;
    // Anything else is not the server's answer, but for example the page of a network that asks for a sign-in.
    CheckedSeats::of(booking, &list).ok_or(Failure::Unreachable)
}

fn start(booking: RwSignal<FollowedBooking>, check: RwSignal<CheckState>) {
    if check.with_untracked(|check| *check == CheckState::Running) {
        return;
    }
    check.set(CheckState::Running);
    let booking = booking.get_untracked();
    spawn_local(async move {
        let mut read = read_list(&booking).await;
        if read.as_ref().is_ok_and(|checked| checked.worst() == SeatListing::NotListed) {
            events::after(REREAD_PAUSE_MS).await;
            read = read_list(&booking).await;
        }
        check.set(match read {
            Ok(checked) => CheckState::Done(checked),
            Err(failure) => CheckState::Failed(failure.in_words("sold_once.unreachable")),
        });
    });
}

/// The check, while the booking has sold seats.
pub(super) fn seat_check(booking: RwSignal<FollowedBooking>) -> impl IntoView {
    let check = RwSignal::new(CheckState::NotStarted);
    let is_offered = Memo::new(move |_| booking.with(has_sold_seats));
    move || is_offered.get().then(|| section(booking, check))
}

fn section(booking: RwSignal<FollowedBooking>, check: RwSignal<CheckState>) -> impl IntoView {
    let (seats, list) = booking.with_untracked(|booking| (booking.seats.len(), list_path(booking)));
    let is_running = move || check.with(|check| *check == CheckState::Running);
    let button_words = move || {
        if check.with(|check| *check == CheckState::NotStarted) {
            say!("sold_once.check", seats = seats)
        } else {
            say!("sold_once.again")
        }
    };
    let digest = move || check.with(|check| check.checked().map(|checked| checked.digest.clone()));
    view! {
        <section class="booking-proof" aria-labelledby="sold-once" data-testid="sold-once">
            <h2 id="sold-once">{say!("sold_once.title")}</h2>
            <p class="quiet">{say!("sold_once.lead")}</p>
            <div class="booking-proof-result" role="status" data-testid="sold-once-result">{move || check.with(result)}</div>
            // Outside the status, so that its digits are not announced.
            {move || digest().map(|digest| view! {
                <p class="quiet small">
                    {say!("sold_once.digest")}" "<bdi class="booking-proof-digest" dir="ltr" data-testid="sold-once-digest">{digest}</bdi>
                </p>
            })}
            <p class="booking-proof-acts">
                <button type="button" class="button button-quiet" data-testid="sold-once-check"
                    aria-disabled=move || is_running().to_string() on:click=move |_| start(booking, check)>
                    {button_words}
                </button>
                <a href=list data-testid="sold-once-list">{say!("sold_once.list")}</a>
            </p>
        </section>
    }
}

/// The result in words, with a line for each seat.
fn result(check: &CheckState) -> impl IntoView + use<> {
    let sentence = check.sentence().map(|words| view! { <p class="booking-proof-words">{words}</p> });
    let line = |(label, listing): &(String, SeatListing)| {
        let (label, words) = (label.clone(), say!(words_of(*listing)));
        view! { <li><bdi class="booking-seat">{label}</bdi>" "<span class="quiet">{words}</span></li> }
    };
    let lines = check.checked().map(|checked| {
        let lines = checked.seats.iter().map(line).collect_view();
        view! { <ul class="booking-proof-seats">{lines}</ul> }
    });
    view! { {sentence}{lines} }
}

#[cfg(test)]
mod tests {
    use domain::api::{MoneyState, SeatLine};
    use domain::sold_seats::push_line;
    use language::{Language, with_language};
    use uuid::Uuid;

    use super::*;
    use crate::booking_status::tests::followed;

    /// A confirmed booking of C7 and C8.
    fn sold() -> FollowedBooking {
        let booking = followed(BookingState::Confirmed, MoneyState::Paid);
        let line = |seat, label: &str| SeatLine {
            seat,
            label: label.to_owned(),
            category: "Gold".to_owned(),
            price: booking.total,
        };
        FollowedBooking { seats: vec![line(30, "C7"), line(31, "C8")], ..booking }
    }

    /// The list of these seats, each of this booking.
    fn list_of(booking: &FollowedBooking, seats: &[(&str, Uuid)]) -> String {
        let mut list = String::new();
        for (label, id) in seats {
            push_line(&mut list, booking.show, label, *id);
        }
        list
    }

    #[test]
    fn the_worst_seat_decides_the_sentence() {
        let (booking, other) = (sold(), Uuid::from_u128(7));
        let own = booking.id;
        for (seats, sentence, second) in [
            (&[("C7", own), ("C8", own), ("C9", other)][..], "Each of your seats was sold once", "sold_once.once"),
            (&[("C7", own)][..], "A sale takes a few seconds", "sold_once.not_listed"),
            (&[("C8", other)][..], "The list does not match", "sold_once.another"),
            (&[("C7", own), ("C8", own), ("C8", own)][..], "The list does not match", "sold_once.twice"),
        ] {
            let checked = CheckedSeats::of(&booking, &list_of(&booking, seats)).expect("a list");
            assert!(checked.sentence().starts_with(sentence), "{}", checked.sentence());
            assert_eq!(words_of(checked.seats[1].1), second);
        }
        assert_eq!(CheckedSeats::of(&booking, "<html>Sign in to this network</html>"), None);
    }

    #[test]
    fn every_result_has_words_in_every_language() {
        let booking = sold();
        let listings =
            [SeatListing::SoldOnce, SeatListing::NotListed, SeatListing::ListedForAnother, SeatListing::ListedTwice];
        for (language, listing) in Language::ALL.into_iter().flat_map(|language| listings.map(|one| (language, one))) {
            let seats = vec![("C7".to_owned(), listing)];
            let checked = CheckedSeats { seats, ..CheckedSeats::of(&booking, "").expect("an empty list") };
            for words in with_language(language, || [checked.sentence(), say!(words_of(listing))]) {
                assert!(!words.contains(['{', '}']) && !words.starts_with("sold_once."), "{language:?}: {words}");
            }
        }
    }

    #[test]
    fn the_check_is_offered_for_sold_seats_with_numbers() {
        assert!(has_sold_seats(&sold()));
        assert!(!has_sold_seats(&FollowedBooking { seats: Vec::new(), ..sold() }), "places only");
        assert!(!has_sold_seats(&FollowedBooking { state: BookingState::Cancelled, ..sold() }));
        assert!(!has_sold_seats(&FollowedBooking { state: BookingState::PaymentPending, ..sold() }));
    }

    #[test]
    fn digits_are_grouped_for_comparison() {
        assert_eq!(in_groups("0123456789abcdef"), "0123 4567 89ab cdef");
        let checked = CheckedSeats::of(&sold(), "").expect("an empty list");
        // The first 16 bytes of the SHA-256 of nothing.
        assert_eq!(checked.digest, "e3b0 c442 98fc 1c14 9afb f4c8 996f b924");
        assert_eq!(checked.worst(), SeatListing::NotListed);
    }
}
