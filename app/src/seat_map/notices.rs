//! What the visitor is told when something did not go as hoped: which seat, what stays, what to do.

use domain::api::{ProblemView, SeatProblem};
use domain::seats::{MAX_SEATS_PER_HOLD, SeatIndex, SeatState};
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
    /// A seat of somebody else: one tap, and the visitor is told when it is free.
    pub watchable: Option<SeatIndex>,
    /// No trouble: nobody is interrupted for it.
    pub is_good: bool,
    /// Goes in front of the page's title, for whoever looks at another tab.
    pub headline: Option<String>,
}

impl Notice {
    /// These words, nothing to press.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            may_ask_again: false,
            booking: None,
            offer: None,
            watchable: None,
            is_good: false,
            headline: None,
        }
    }

    /// Seats were refused; `others` says whether the visitor holds or wants others.
    #[must_use]
    pub fn refused(seats: &[SeatProblem], others: bool) -> Self {
        let of_state = |state: SeatState| -> Vec<&str> {
            let seats = seats.iter().filter(|seat| seat.state == state && seat.taken_ms_ago.is_none());
            seats.map(|seat| seat.label.as_str()).collect()
        };
        let taken = [
            (of_state(SeatState::Locked), "is held by someone else.", "are held by someone else."),
            (of_state(SeatState::Booked), "has just been sold.", "have just been sold."),
            (of_state(SeatState::Blocked), "is not for sale.", "are not for sale."),
        ];
        let in_state = taken
            .into_iter()
            .filter(|(names, ..)| !names.is_empty())
            .map(|(names, one, many)| format!("{} {}", listed(&names), if names.len() == 1 { one } else { many }));
        let mut sentences: Vec<String> = lost_by_a_moment(seats).into_iter().chain(in_state).collect();
        if sentences.is_empty() {
            sentences.push("That seat is gone.".to_owned());
        }
        sentences.push(if others { "Your other seats are safe." } else { "Please pick another seat." }.to_owned());
        let watchable = seats.iter().find(|seat| seat.state == SeatState::Locked).map(|seat| seat.seat);
        Self { watchable, ..Self::new(sentences.join(" ")) }
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

    /// A seat that cannot be tapped, and why; `watchable` when it may come back.
    #[must_use]
    pub fn not_free(name: &str, why: &str, watchable: Option<SeatIndex>) -> Self {
        Self { watchable, ..Self::new(format!("{name} is {why}.")) }
    }

    /// The visitor will be told.
    #[must_use]
    pub fn watching(name: &str) -> Self {
        Self { is_good: true, ..Self::new(format!("We tell you here when {name} is free.")) }
    }

    /// What the visitor waited for has come.
    #[must_use]
    pub fn free_now(name: &str, offer: Offer) -> Self {
        let headline = Some(format!("{name} is free"));
        let text = format!("{name} is free now. It is whose tap comes first.");
        Self { offer: Some(offer), is_good: true, headline, ..Self::new(text) }
    }

    /// It will not come.
    #[must_use]
    pub fn sold_after_all(name: &str) -> Self {
        Self { is_good: true, ..Self::new(format!("{name} has been sold. Perhaps another seat is as good.")) }
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

/// A sentence for each moment by which seats were lost: `C7 and C8 were taken 0.4 s before you.`
fn lost_by_a_moment(seats: &[SeatProblem]) -> Vec<String> {
    let mut moments: Vec<(String, Vec<&str>)> = Vec::new();
    for seat in seats {
        let Some(ago) = seat.taken_ms_ago.map(in_seconds) else { continue };
        match moments.iter_mut().find(|(known, _)| *known == ago) {
            Some((_, names)) => names.push(&seat.label),
            None => moments.push((ago, vec![&seat.label])),
        }
    }
    let sentence = |(ago, names): (String, Vec<&str>)| {
        let verb = if names.len() == 1 { "was" } else { "were" };
        format!("{} {verb} taken {ago} before you.", listed(&names))
    };
    moments.into_iter().map(sentence).collect()
}

/// `0.4 s`; what is shorter than a tenth is said so.
fn in_seconds(ms: u32) -> String {
    match (ms + 50) / 100 {
        0 => "less than 0.1 s".to_owned(),
        tenths => format!("{}.{} s", tenths / 10, tenths % 10),
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
        SeatProblem { seat: 1, label: label.to_owned(), state, taken_ms_ago: None }
    }

    #[test]
    fn a_refusal_names_the_seat_and_says_what_stays() {
        let notice = Notice::refused(&[problem("C7", SeatState::Locked)], true);
        assert_eq!(notice.text, "C7 is held by someone else. Your other seats are safe.");
        assert_eq!(notice.watchable, Some(1));
        assert_eq!(Notice::refused(&[problem("C7", SeatState::Booked)], true).watchable, None);
    }

    #[test]
    fn who_was_slower_is_told_by_how_much() {
        let lost = |label, ms| SeatProblem { taken_ms_ago: Some(ms), ..problem(label, SeatState::Locked) };
        let notice = Notice::refused(&[lost("C7", 380), lost("C8", 420), lost("D1", 3), lost("D2", 1_260)], true);
        assert_eq!(
            notice.text,
            "C7 and C8 were taken 0.4 s before you. D1 was taken less than 0.1 s before you. \
             D2 was taken 1.3 s before you. Your other seats are safe."
        );
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
            "C7 and C8 are held by someone else. D1 has just been sold. A1 is not for sale. Please pick another seat."
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
