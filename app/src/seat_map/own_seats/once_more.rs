//! Seats that somebody had when a payment did not come off, offered once more: the address of the page names them
//! ([`crate::again`]).
//!
//! What of them is free is one tap away, and nothing is held before it. What is not is named; once the rest was taken,
//! or where nothing is free, other seats are offered near them, as for any seat that went to another. All of it comes
//! after the map, with the box it is said in.

use domain::api::{SeatLine, SeatProblem};
use domain::seats::{MAX_SEATS_PER_HOLD, SeatIndex, SeatState, put_as_read};
use leptos::prelude::*;
use leptos::task::spawn_local;

use super::cart::Cart;
use super::party::Offer;
use crate::again::{self, Wanted};
use crate::browser::{self, events};
use crate::seat_map::live::board::Look;
use crate::seat_map::room::Room;
use crate::seat_map::session::Session;
use crate::seat_map::signals::told::Told;
use crate::seat_map::telling::notices::Notice;

/// Nothing is said before this, milliseconds: a screen reader hears what is put into a box that is there already.
const FIRST_WORD_MS: u32 = 200;
/// For so long after that no seat is said to be another's, milliseconds: it may be on its way back from that payment.
const PATIENCE_MS: u32 = 2_000;

/// How far it is.
#[derive(Default)]
struct Course {
    /// Whether the sections of these seats were asked for, in a large room.
    asked: bool,
    /// What was offered last.
    offered: Option<Notice>,
    /// Whether there is nothing more to say.
    over: bool,
}

/// What to do about the seats as they look.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    /// Nothing yet: they may be free in a moment.
    Wait,
    /// Some can be had, others perhaps not.
    Offer { free: Vec<SeatIndex>, gone: Vec<(SeatIndex, SeatState)> },
    /// All that are not one's own are another's.
    Name { gone: Vec<(SeatIndex, SeatState)> },
    /// All are one's own.
    Over,
}

/// Offers the seats that the address names, as soon as it is known how they stand.
pub(in crate::seat_map) fn offer(session: Session) {
    let wanted = again::wanted_in(&browser::query());
    if wanted.seats.is_empty() {
        return;
    }
    let (may_speak, is_patient) = (Told::new(false), Told::new(true));
    spawn_local(async move {
        events::after(FIRST_WORD_MS).await;
        may_speak.set(true);
        events::after(PATIENCE_MS).await;
        is_patient.set(false);
    });
    Effect::new(move |before: Option<Course>| {
        let course = before.unwrap_or_default();
        if course.over || !may_speak.get() {
            return course;
        }
        // A payment that is not over yet may be for these very seats.
        if session.cart.with(Cart::is_paying) {
            return without_offer(session, course);
        }
        match session.room.get().filter(|_| session.known.get()) {
            Some(room) => go_on(session, course, &room, &wanted, is_patient.get()),
            None => course,
        }
    });
}

/// The next step, which hears of every change of these seats.
fn go_on(session: Session, course: Course, room: &Room, wanted: &Wanted, is_patient: bool) -> Course {
    let seats = &wanted.seats;
    let mut missing: Vec<usize> = seats.iter().filter_map(|seat| room.section_of(*seat)).collect();
    missing.retain(|section| !room.is_loaded(*section));
    missing.dedup();
    if !missing.is_empty() {
        if !course.asked {
            missing.into_iter().for_each(|section| session.load_section(section, || true, || ()));
        }
        return Course { asked: true, ..course };
    }
    let names: Vec<String> = seats.iter().filter_map(|seat| Some(room.line(*seat)?.label)).collect();
    if !wanted.are_named(names.iter().map(String::as_str)) {
        // The show is in another room by now.
        without_offer(session, course);
        return over();
    }
    let known = seats.iter().copied().filter(|seat| room.seat(*seat).is_some());
    let looks: Vec<(SeatIndex, Look)> = known.map(|seat| (seat, session.look_of(seat).get())).collect();
    let on_show = session.notice.get();
    if course.offered.is_some() && course.offered != on_show {
        if looks.iter().any(|(_, look)| *look == Look::Asked) {
            // Taken, if the answer says so.
            return course;
        }
        let is_taken = looks.iter().any(|(_, look)| *look == Look::Mine);
        if let (true, None, Step::Name { gone }) = (is_taken, on_show, step(&looks, false)) {
            name(session, &gone);
        }
        return over();
    }
    match step(&looks, is_patient) {
        Step::Wait => course,
        Step::Over => {
            without_offer(session, course);
            over()
        }
        Step::Name { gone } => {
            name(session, &gone);
            over()
        }
        Step::Offer { free, gone } => {
            let Some(notice) = offer_of(session, room, &free, &gone) else {
                without_offer(session, course);
                return over();
            };
            if on_show.as_ref() != Some(&notice) {
                session.notice.set(Some(notice.clone()));
                session.follow_sections();
            }
            Course { offered: Some(notice), ..course }
        }
    }
}

/// What was offered, another tab has taken, or it cannot be had as things are: it is said no more.
fn without_offer(session: Session, course: Course) -> Course {
    if let Some(offered) = &course.offered {
        session.unsay(offered);
    }
    Course { offered: None, ..course }
}

/// The end. Whoever reads the page again, or comes back to it with the seats bought, is not asked once more.
fn over() -> Course {
    browser::forget_query();
    Course { over: true, ..Course::default() }
}

fn step(looks: &[(SeatIndex, Look)], is_patient: bool) -> Step {
    let free: Vec<SeatIndex> =
        looks.iter().filter(|(_, look)| *look == Look::Available).map(|(seat, _)| *seat).collect();
    let gone: Vec<(SeatIndex, SeatState)> =
        looks.iter().filter_map(|(seat, look)| Some((*seat, of_another(*look)?))).collect();
    let may_come_back = is_patient && gone.iter().any(|(_, state)| *state == SeatState::Locked);
    match (may_come_back, free.is_empty(), gone.is_empty()) {
        (true, ..) => Step::Wait,
        (_, false, _) => Step::Offer { free, gone },
        (_, true, false) => Step::Name { gone },
        (_, true, true) => Step::Over,
    }
}

/// How a seat stands that cannot be had.
const fn of_another(look: Look) -> Option<SeatState> {
    match look {
        Look::Locked => Some(SeatState::Locked),
        Look::Booked => Some(SeatState::Booked),
        Look::Blocked => Some(SeatState::Blocked),
        Look::Available | Look::Mine | Look::Asked => None,
    }
}

/// What is said of them; nothing where somebody holds too many others to take these as well.
fn offer_of(session: Session, room: &Room, free: &[SeatIndex], gone: &[(SeatIndex, SeatState)]) -> Option<Notice> {
    if session.cart.with_untracked(Cart::count) + free.len() > MAX_SEATS_PER_HOLD {
        return None;
    }
    let mut lines: Vec<SeatLine> = free.iter().filter_map(|seat| room.line(*seat)).collect();
    put_as_read(&mut lines, |line| line.label.as_str());
    let names: Vec<&str> = lines.iter().map(|line| line.label.as_str()).collect();
    Some(Notice::once_more(&names, &problems(session, gone), Offer::again(&lines)?))
}

/// Says whose they are, and looks for others.
fn name(session: Session, gone: &[(SeatIndex, SeatState)]) {
    let has_others = !session.cart.with_untracked(Cart::is_empty);
    session.notice.set(Some(Notice::refused(&problems(session, gone), has_others)));
    let seats: Vec<SeatIndex> = gone.iter().map(|(seat, _)| *seat).collect();
    session.offer_instead_of(&seats);
}

fn problems(session: Session, gone: &[(SeatIndex, SeatState)]) -> Vec<SeatProblem> {
    let problem = |(seat, state): &(SeatIndex, SeatState)| SeatProblem {
        seat: *seat,
        label: session.name_of(*seat),
        state: *state,
        taken_ms_ago: None,
    };
    let mut problems: Vec<SeatProblem> = gone.iter().map(problem).collect();
    put_as_read(&mut problems, |problem| problem.label.as_str());
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_free_is_offered_and_what_is_not_is_named() {
        let looks = [(7, Look::Available), (8, Look::Booked), (9, Look::Available)];
        let gone = vec![(8, SeatState::Booked)];
        assert_eq!(step(&looks, true), Step::Offer { free: vec![7, 9], gone: gone.clone() });
        assert_eq!(step(&[(7, Look::Asked), (8, Look::Booked), (9, Look::Mine)], true), Step::Name { gone });
        assert_eq!(step(&[(7, Look::Blocked)], true), Step::Name { gone: vec![(7, SeatState::Blocked)] });
    }

    #[test]
    fn a_seat_that_may_be_on_its_way_back_is_not_said_to_be_anothers_at_once() {
        let looks = [(7, Look::Available), (8, Look::Locked)];
        assert_eq!(step(&looks, true), Step::Wait);
        let gone = vec![(8, SeatState::Locked)];
        assert_eq!(step(&looks, false), Step::Offer { free: vec![7], gone });
    }

    #[test]
    fn whoever_has_them_all_is_asked_nothing() {
        assert_eq!(step(&[(7, Look::Mine), (8, Look::Asked)], true), Step::Over);
        assert_eq!(step(&[], true), Step::Over, "the room has no such seats");
    }
}
