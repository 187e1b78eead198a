//! What the visitor is told when something did not go as hoped: which seat, what stays, what to do.

use domain::api::{AreaProblem, SeatProblem};
use domain::seats::{HOLD_EXTENSION_MS, MAX_SEATS_PER_HOLD, SeatIndex, SeatState};
use domain::time::{MINUTE_MS, SECOND_MS};
use uuid::Uuid;

use crate::browser::calls::Failure;
use crate::language::{Arg, clock, current, listed, problem_in_words, tenths};
use crate::say;
use crate::seat_map::appearance::Look;
use crate::seat_map::own_seats::offer::Offer;

/// Something to tell.
#[derive(Clone, Debug, PartialEq)]
pub struct Notice {
    /// The words.
    pub text: String,
    /// Whether a button offers to ask for the lost seats again.
    pub may_ask_again: bool,
    /// The booking that has more to say.
    pub booking: Option<Uuid>,
    /// Other seats, available with one tap.
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
        let mut sentences = why_refused(seats);
        sentences.push(if others { say!("map.others_are_safe") } else { say!("map.pick_another") });
        let watchable = seats.iter().find(|seat| seat.state == SeatState::Locked).map(|seat| seat.seat);
        Self { watchable, ..Self::new(sentences.join(" ")) }
    }

    /// Seats were refused that were to take the place of what the visitor holds, which stays theirs.
    #[must_use]
    pub fn not_exchanged(seats: &[SeatProblem]) -> Self {
        let mut sentences = why_refused(seats);
        sentences.push(say!("map.you_keep_yours"));
        Self::new(sentences.join(" "))
    }

    /// Seats and places that the visitor had before: these are free and can be had in one tap, those are not.
    #[must_use]
    pub fn once_more(free: &[&str], gone: &[SeatProblem], short: &[AreaProblem], offer: Offer) -> Self {
        let count = offer.places.iter().fold(offer.seats.len(), |sum, places| sum + places.quantity as usize);
        let still_free = say!("map.still_free", count = count, seats = Arg::Ours(&listed(free)));
        let sentences: Vec<String> = [still_free].into_iter().chain(by_state(gone)).chain(too_few(short)).collect();
        Self { offer: Some(offer), is_good: true, ..Self::new(sentences.join(" ")) }
    }

    /// Areas that the visitor had places in before have too few left; `others` as in [`Notice::refused`].
    #[must_use]
    pub fn and_too_few(self, short: &[AreaProblem]) -> Self {
        let sentences: Vec<String> = too_few(short).into_iter().chain([self.text]).collect();
        Self { text: sentences.join(" "), ..self }
    }

    /// Whether the visitor's other seats are safe, where there is nothing else to say.
    #[must_use]
    pub fn what_stays(others: bool) -> Self {
        Self::new(if others { say!("map.others_are_safe") } else { say!("map.pick_another") })
    }

    /// The hold ended by itself.
    #[must_use]
    pub fn expired(seats: &[String]) -> Self {
        let names: Vec<&str> = seats.iter().map(String::as_str).collect();
        let text = if names.is_empty() {
            say!("map.time_over")
        } else {
            say!("map.time_over_for", count = names.len(), seats = Arg::Ours(&listed(&names)))
        };
        Self { may_ask_again: true, ..Self::new(text) }
    }

    /// The hold was given back elsewhere, by the same visitor.
    #[must_use]
    pub fn let_go_elsewhere() -> Self {
        Self { may_ask_again: true, ..Self::new(say!("map.let_go_elsewhere")) }
    }

    /// The hold is over before its time, nobody said why, and its seats are not free.
    #[must_use]
    pub fn ended() -> Self {
        Self { may_ask_again: true, ..Self::new(say!("map.hold_ended")) }
    }

    /// The hold is over because the seats were paid for, or the payment came to an end: nothing was lost.
    #[must_use]
    pub fn moved_on(booking: Option<Uuid>) -> Self {
        let text = if booking.is_some() { say!("map.moved_on") } else { say!("map.sale_finished") };
        Self { booking, ..Self::new(text) }
    }

    /// The limit of a hold.
    #[must_use]
    pub fn full() -> Self {
        Self::new(say!("map.full", most = MAX_SEATS_PER_HOLD))
    }

    /// A payment is in progress.
    #[must_use]
    pub fn paying() -> Self {
        Self::new(say!("map.paying"))
    }

    /// The browser solves a puzzle before the seats are taken.
    #[must_use]
    pub fn proving() -> Self {
        Self { is_good: true, ..Self::new(say!("map.proving")) }
    }

    /// A seat that cannot be tapped, and why; `watchable` when it may come back.
    #[must_use]
    pub fn not_free(name: &str, look: Look, watchable: Option<SeatIndex>) -> Self {
        let text = match look {
            Look::Booked => say!("map.is_sold", seat = name),
            Look::Blocked => about("map.is_blocked", &[name]),
            _ => about("map.is_held", &[name]),
        };
        Self { watchable, ..Self::new(text) }
    }

    /// The visitor will be told.
    #[must_use]
    pub fn watching(name: &str) -> Self {
        Self { is_good: true, ..Self::new(say!("map.watching", seat = name)) }
    }

    /// What the visitor waited for has come; with no offer where it cannot be taken now.
    #[must_use]
    pub fn free_now(name: &str, offer: Option<Offer>) -> Self {
        let headline = Some(say!("map.free_now_short", seat = name));
        let text = say!("map.free_now", seat = name);
        Self { offer, is_good: true, headline, ..Self::new(text) }
    }

    /// The hold lasts longer, though not by as much as others' do: that much was given, where so much would have been
    /// left. `None`: it was all one gets.
    #[must_use]
    pub fn less_time(given_ms: i64, left_ms: i64) -> Option<Self> {
        let full_ms = HOLD_EXTENSION_MS.min(left_ms);
        // The answer's instants are the store's own: what is missing was taken off, not rounded.
        if given_ms <= 0 || given_ms >= full_ms {
            return None;
        }
        let [given, full] = [given_ms, full_ms].map(|ms| clock(ms / MINUTE_MS, ms / SECOND_MS % 60));
        let text = say!("map.less_time", given = Arg::Ours(&given), full = Arg::Ours(&full));
        Some(Self { is_good: true, ..Self::new(text) })
    }

    /// It will not come.
    #[must_use]
    pub fn sold_after_all(name: &str) -> Self {
        Self { is_good: true, ..Self::new(say!("map.sold_after_all", seat = name)) }
    }

    /// A request failed and nobody's seat stood in the way.
    #[must_use]
    pub fn failed(failure: &Failure) -> Self {
        match failure {
            Failure::Unreachable => Self::new(say!("map.unreachable")),
            Failure::Problem(problem) => Self::new(problem_in_words(problem)),
        }
    }
}

/// What happened to these seats; never nothing.
fn why_refused(seats: &[SeatProblem]) -> Vec<String> {
    let mut sentences = lost_by_a_moment(seats);
    sentences.extend(by_state(seats));
    if sentences.is_empty() {
        sentences.push(say!("map.gone"));
    }
    sentences
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
        let (count, seats) = (names.len(), listed(&names));
        say!("map.was_taken_before_you", count = count, seats = Arg::Ours(&seats), ago = Arg::Ours(&ago))
    };
    moments.into_iter().map(sentence).collect()
}

/// A sentence for each way in which seats are not free, apart from those that were lost by a moment.
fn by_state(seats: &[SeatProblem]) -> Vec<String> {
    let of_state = |state: SeatState| -> Vec<&str> {
        let seats = seats.iter().filter(|seat| seat.state == state && seat.taken_ms_ago.is_none());
        seats.map(|seat| seat.label.as_str()).collect()
    };
    let taken = [
        (of_state(SeatState::Locked), "map.is_held"),
        (of_state(SeatState::Booked), "map.was_sold"),
        (of_state(SeatState::Blocked), "map.is_blocked"),
    ];
    taken.into_iter().filter(|(names, _)| !names.is_empty()).map(|(names, key)| about(key, &names)).collect()
}

/// A sentence for each area with too few places left.
fn too_few(areas: &[AreaProblem]) -> Vec<String> {
    areas.iter().map(|area| say!("map.places_short", area = &area.label, left = area.left)).collect()
}

/// `0.4 s`; what is shorter than a tenth is said so.
fn in_seconds(ms: u32) -> String {
    match (ms + 50) / 100 {
        0 => say!("map.less_than_seconds", seconds = Arg::Ours(&tenths(1, current()))),
        number => say!("map.seconds", seconds = Arg::Ours(&tenths(number, current()))),
    }
}

/// A sentence about seats.
fn about(key: &str, names: &[&str]) -> String {
    say!(key, count = names.len(), seats = Arg::Ours(&listed(names)))
}

/// `one place in Standing floor`, `3 places in Standing floor`.
#[must_use]
pub fn places_in_words(count: u32, area: &str) -> String {
    say!("map.places_in_area", count = count, area = area)
}

#[cfg(test)]
mod tests {
    use domain::api::AreaQuantity;

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
    fn whoever_keeps_their_seats_is_told_so_and_offered_nothing_else() {
        let notice = Notice::not_exchanged(&[problem("D4", SeatState::Locked)]);
        assert_eq!(notice.text, "D4 is held by someone else. You keep the seats you have.");
        assert_eq!((notice.watchable, notice.offer), (None, None));
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
    fn seats_one_had_before_are_said_to_be_free_or_whose_they_are() {
        let offer = Offer { seats: [7].into(), places: [].into(), words: "Take C7 again".to_owned() };
        let both = Notice::once_more(&["C7"], &[problem("C8", SeatState::Locked)], &[], offer.clone());
        assert_eq!(both.text, "C7 is still free. C8 is held by someone else.");
        assert_eq!((both.is_good, both.offer.as_ref()), (true, Some(&offer)), "nobody is interrupted for it");
        let two = Offer { seats: [7, 8].into(), ..offer.clone() };
        assert_eq!(Notice::once_more(&["C7", "C8"], &[], &[], two).text, "C7 and C8 are still free.");
        let places = Offer { seats: [].into(), places: [AreaQuantity { area: 0, quantity: 2 }].into(), ..offer };
        let short = [AreaProblem { area: 0, label: "Floor".to_owned(), left: 2 }];
        let some = Notice::once_more(&["2 × Floor"], &[], &short, places);
        assert_eq!(some.text, "2 × Floor are still free. Floor has only 2 places left.");
        let none = [AreaProblem { area: 0, label: "Floor".to_owned(), left: 0 }];
        let none = Notice::what_stays(false).and_too_few(&none);
        assert_eq!(none.text, "Floor has no places left. Please pick another seat.");
    }

    #[test]
    fn whoever_gets_less_time_than_others_is_told_how_much_and_why() {
        let notice = Notice::less_time(90_000, 180_000).expect("it is half");
        assert!(notice.text.starts_with("You have 1:30 more, not 3:00, because"), "{}", notice.text);
        assert_eq!(Notice::less_time(180_000, 180_000), None);
        assert_eq!(Notice::less_time(60_000, 60_000), None, "the show allows no more");
        assert_eq!(Notice::less_time(0, 180_000), None, "a repeat");
    }

    #[test]
    fn seats_that_were_bought_are_not_offered_again() {
        let booking = Uuid::from_u128(3);
        let notice = Notice::moved_on(Some(booking));
        assert_eq!((notice.may_ask_again, notice.booking), (false, Some(booking)));
        assert!(!Notice::moved_on(None).may_ask_again);
    }
}
