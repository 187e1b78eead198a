//! What the visitor is told when something did not go as hoped: which seat, what stays, what to do.

use domain::api::{ProblemView, SeatProblem};
use domain::seats::{MAX_SEATS_PER_HOLD, SeatState};
use uuid::Uuid;

use super::party::Offer;
use crate::browser::calls::Failure;

/// Something to tell.
#[derive(Clone, Debug, PartialEq)]
pub struct Notice {
    /// The words.
    pub text: String,
    /// Whether a button offers to ask for the lost seats again.
    pub may_ask_again: bool,
    /// The booking that has more to say.
    pub booking: Option<Uuid>,
    /// Other seats, to be had with one tap.
    pub offer: Option<Offer>,
}

impl Notice {
    /// These words, nothing to press.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), may_ask_again: false, booking: None, offer: None }
    }

    /// Seats were refused; `others` says whether the visitor holds or wants others.
    #[must_use]
    pub fn refused(seats: &[SeatProblem], others: bool) -> Self {
        let of_state = |state: SeatState| -> Vec<&str> {
            seats.iter().filter(|seat| seat.state == state).map(|seat| seat.label.as_str()).collect()
        };
        let taken = [
            (of_state(SeatState::Locked), "was just taken by someone else.", "were just taken by someone else."),
            (of_state(SeatState::Booked), "has just been sold.", "have just been sold."),
            (of_state(SeatState::Blocked), "is not for sale.", "are not for sale."),
        ];
        let mut sentences: Vec<String> = taken
            .into_iter()
            .filter(|(names, ..)| !names.is_empty())
            .map(|(names, one, many)| format!("{} {}", listed(&names), if names.len() == 1 { one } else { many }))
            .collect();
        if sentences.is_empty() {
            sentences.push("That seat is gone.".to_owned());
        }
        sentences.push(if others { "Your other seats are safe." } else { "Please pick another seat." }.to_owned());
        Self::new(sentences.join(" "))
    }

    /// The hold ended by itself.
    #[must_use]
    pub fn expired(seats: &[String]) -> Self {
        let names: Vec<&str> = seats.iter().map(String::as_str).collect();
        let text = if names.is_empty() {
            "Your time is over, and the seats are free for others again.".to_owned()
        } else {
            let verb = if names.len() == 1 { "is" } else { "are" };
            format!("Your time is over: {} {verb} free for others again.", listed(&names))
        };
        Self { may_ask_again: true, ..Self::new(text) }
    }

    /// The hold was given back elsewhere, by the same visitor.
    #[must_use]
    pub fn let_go_elsewhere() -> Self {
        Self { may_ask_again: true, ..Self::new("Your seats were given back in another window.") }
    }

    /// The hold is over before its time, nobody said why, and its seats are not free.
    #[must_use]
    pub fn ended() -> Self {
        Self { may_ask_again: true, ..Self::new("Your hold of these seats has ended.") }
    }

    /// The hold is over because the seats were paid for, or the payment came to an end: nothing was lost.
    #[must_use]
    pub fn moved_on(booking: Option<Uuid>) -> Self {
        let text = if booking.is_some() {
            "These seats have gone on to your booking. It says how they stand."
        } else {
            "These seats are not held any more: their sale was finished. If you paid for them in another window, your booking is there and in your mail."
        };
        Self { booking, ..Self::new(text) }
    }

    /// The limit of a hold.
    #[must_use]
    pub fn full() -> Self {
        Self::new(format!(
            "You have {MAX_SEATS_PER_HOLD} seats or places, the most one person can hold. Let one go to take another."
        ))
    }

    /// A payment is in progress.
    #[must_use]
    pub fn paying() -> Self {
        Self::new("You have begun to pay for these seats, so they cannot be changed now.")
    }

    /// A seat that cannot be tapped, and why.
    #[must_use]
    pub fn not_free(name: &str, why: &str) -> Self {
        Self::new(format!("{name} is {why}."))
    }

    /// A request failed and nobody's seat stood in the way.
    #[must_use]
    pub fn failed(failure: &Failure) -> Self {
        match failure {
            Failure::Unreachable => Self::new(
                "We cannot reach the box office right now. Please check your connection and try again; what you hold stays yours until its time is over.",
            ),
            Failure::Problem(problem) => Self::new(in_words(problem)),
        }
    }
}

/// The problem's own words: its detail is written for people.
fn in_words(problem: &ProblemView) -> String {
    if problem.detail.is_empty() { format!("{}.", problem.title) } else { problem.detail.clone() }
}

/// `one place in Standing floor`, `3 places in Standing floor`.
#[must_use]
pub fn places_in_words(count: u32, area: &str) -> String {
    if count == 1 { format!("one place in {area}") } else { format!("{count} places in {area}") }
}

/// `C7`, `C7 and C8`, `C7, C8 and C9`.
#[must_use]
pub fn listed(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(label: &str, state: SeatState) -> SeatProblem {
        SeatProblem { seat: 1, label: label.to_owned(), state }
    }

    #[test]
    fn a_refusal_names_the_seat_and_says_what_stays() {
        let notice = Notice::refused(&[problem("C7", SeatState::Locked)], true);
        assert_eq!(notice.text, "C7 was just taken by someone else. Your other seats are safe.");
    }

    #[test]
    fn every_seat_is_named_by_what_happened_to_it() {
        let seats = [
            problem("C7", SeatState::Locked),
            problem("C8", SeatState::Locked),
            problem("D1", SeatState::Booked),
            problem("A1", SeatState::Blocked),
        ];
        assert_eq!(
            Notice::refused(&seats, false).text,
            "C7 and C8 were just taken by someone else. D1 has just been sold. A1 is not for sale. Please pick another seat."
        );
    }

    #[test]
    fn seats_that_were_bought_are_not_offered_again() {
        let booking = Uuid::from_u128(3);
        let notice = Notice::moved_on(Some(booking));
        assert_eq!((notice.may_ask_again, notice.booking), (false, Some(booking)));
        assert!(!Notice::moved_on(None).may_ask_again);
    }

    #[test]
    fn lists_read_as_spoken() {
        assert_eq!(listed(&[]), "");
        assert_eq!(listed(&["C7", "C8", "C9"]), "C7, C8 and C9");
    }
}
