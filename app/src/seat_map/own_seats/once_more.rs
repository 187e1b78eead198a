//! Seats and places that somebody had when a payment did not come off, offered once more: the address of the page names
//! them ([`crate::payment_retry::seats_query`]).
//!
//! What of them is free is one tap away, and nothing is held before it. What is not is named; once the rest was taken,
//! or where nothing is free, other seats are offered near them, as for any seat that went to another. All of it comes
//! after the map, with the box it is said in.

use domain::api::{AreaProblem, AreaView, PlaceLine, SeatLine, SeatProblem};
use domain::seats::{AreaIndex, MAX_SEATS_PER_HOLD, SeatIndex, SeatState, put_as_read};
use leptos::prelude::*;
use leptos::task::spawn_local;

use super::cart::Cart;
use super::offer::{Offer, quantity_of};
use crate::browser::{self, events};
use crate::payment_retry::seats_query::{self, Wanted};
use crate::seat_map::appearance::Look;
use crate::seat_map::live::connection;
use crate::seat_map::loading;
use crate::seat_map::own_seats::alternatives;
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
#[derive(Debug, PartialEq)]
enum Step {
    /// Nothing yet: they may be free in a moment.
    Wait,
    /// Some can be had, others perhaps not.
    Offer(Found),
    /// All that are not one's own are another's.
    Name(Found),
    /// All are one's own.
    Over,
}

/// How what is not one's own stands.
#[derive(Clone, Debug, Default, PartialEq)]
struct Found {
    free: Vec<SeatIndex>,
    gone: Vec<(SeatIndex, SeatState)>,
    /// Places that can be had.
    places: Vec<PlaceLine>,
    /// Areas with too few.
    short: Vec<AreaProblem>,
}

/// Offers the seats that the address names, as soon as it is known how they stand.
pub(in crate::seat_map) fn offer(session: Session) {
    let wanted = seats_query::wanted_in(&browser::query());
    if wanted.is_empty() {
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
        match session.room.get().filter(|_| session.is_map_known.get()) {
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
            missing.into_iter().for_each(|section| loading::load_section(session, section, || true, || ()));
        }
        return Course { asked: true, ..course };
    }
    let names: Vec<String> = seats.iter().filter_map(|seat| Some(room.line(*seat)?.label)).collect();
    let areas: Vec<&AreaView> = wanted.places.iter().filter_map(|places| area_of(room, places.area)).collect();
    let names = names.iter().map(String::as_str).chain(areas.iter().map(|area| area.name.as_str()));
    if !wanted.are_named(names) {
        // The show is in another room by now.
        without_offer(session, course);
        return over();
    }
    let known = seats.iter().copied().filter(|seat| room.seat(*seat).is_some());
    let looks: Vec<(SeatIndex, Look)> = known.map(|seat| (seat, session.look_signal(seat).get())).collect();
    let places: Vec<(PlaceLine, u32)> = areas
        .into_iter()
        .zip(&wanted.places)
        .map(|(area, places)| missing_in(session, area, places.quantity))
        .collect();
    let on_show = session.notice.get();
    if course.offered.is_some() && course.offered != on_show {
        let asked_in = |cart: &Cart| wanted.places.iter().any(|of| cart.wanted_in(of.area) != cart.held_in(of.area));
        if session.cart.with(asked_in) || looks.iter().any(|(_, look)| *look == Look::Asked) {
            // Taken, if the answer says so.
            return course;
        }
        let held_in = |cart: &Cart| wanted.places.iter().any(|of| cart.held_in(of.area) > 0);
        let is_taken = session.cart.with_untracked(held_in) || looks.iter().any(|(_, look)| *look == Look::Mine);
        if let (true, None, Step::Name(found)) = (is_taken, on_show, step(&looks, &places, false)) {
            name(session, &found);
        }
        return over();
    }
    match step(&looks, &places, is_patient) {
        Step::Wait => course,
        Step::Over => {
            without_offer(session, course);
            over()
        }
        Step::Name(found) => {
            name(session, &found);
            over()
        }
        Step::Offer(found) => {
            let Some(notice) = offer_of(session, room, &found) else {
                without_offer(session, course);
                return over();
            };
            if on_show.as_ref() != Some(&notice) {
                session.notice.set(Some(notice.clone()));
                connection::subscribe_sections(session);
            }
            Course { offered: Some(notice), ..course }
        }
    }
}

/// What was offered, another tab has taken, or it cannot be had as things are: it is said no more.
fn without_offer(session: Session, course: Course) -> Course {
    if let Some(offered) = &course.offered {
        session.dismiss(offered);
    }
    Course { offered: None, ..course }
}

/// The end. Whoever reads the page again, or comes back to it with the seats bought, is not asked once more.
fn over() -> Course {
    browser::forget_query();
    Course { over: true, ..Course::default() }
}

fn area_of(room: &Room, area: AreaIndex) -> Option<&AreaView> {
    room.plan().areas.iter().find(|known| known.area == area)
}

/// Places in an area that are not wanted yet, and how many can be had. Places one holds are not among those left.
fn missing_in(session: Session, area: &AreaView, quantity: u32) -> (PlaceLine, u32) {
    let missing = quantity.saturating_sub(session.cart.with(|cart| cart.wanted_in(area.area)));
    let left =
        session.places_left.with(|left| left.iter().find(|(known, _)| *known == area.area).map(|(_, left)| *left));
    let line = PlaceLine {
        area: area.area,
        label: area.name.clone(),
        category: area.category_label.clone(),
        price: area.price,
        quantity: missing,
    };
    (line, left.unwrap_or_default())
}

/// What to do about seats, and places with how many are left of them.
fn step(looks: &[(SeatIndex, Look)], places: &[(PlaceLine, u32)], is_patient: bool) -> Step {
    let free: Vec<SeatIndex> =
        looks.iter().filter(|(_, look)| *look == Look::Available).map(|(seat, _)| *seat).collect();
    let gone: Vec<(SeatIndex, SeatState)> =
        looks.iter().filter_map(|(seat, look)| Some((*seat, of_another(*look)?))).collect();
    let short: Vec<AreaProblem> = places
        .iter()
        .filter(|(line, left)| *left < line.quantity)
        .map(|(line, left)| AreaProblem { area: line.area, label: line.label.clone(), left: *left })
        .collect();
    let to_be_had = places.iter().map(|(line, left)| PlaceLine { quantity: line.quantity.min(*left), ..line.clone() });
    let places: Vec<PlaceLine> = to_be_had.filter(|line| line.quantity > 0).collect();
    let may_come_back = is_patient && (!short.is_empty() || gone.iter().any(|(_, state)| *state == SeatState::Locked));
    let (none_free, none_gone) = (free.is_empty() && places.is_empty(), gone.is_empty() && short.is_empty());
    let found = Found { free, gone, places, short };
    match (may_come_back, none_free, none_gone) {
        (true, ..) => Step::Wait,
        (_, false, _) => Step::Offer(found),
        (_, true, false) => Step::Name(found),
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
fn offer_of(session: Session, room: &Room, found: &Found) -> Option<Notice> {
    let count = found.places.iter().fold(found.free.len(), |sum, line| sum + line.quantity as usize);
    if session.cart.with_untracked(Cart::count) + count > MAX_SEATS_PER_HOLD {
        return None;
    }
    let mut lines: Vec<SeatLine> = found.free.iter().filter_map(|seat| room.line(*seat)).collect();
    put_as_read(&mut lines, |line| line.label.as_str());
    let places: Vec<String> = found.places.iter().map(quantity_of).collect();
    let names: Vec<&str> =
        lines.iter().map(|line| line.label.as_str()).chain(places.iter().map(String::as_str)).collect();
    let offer = Offer::again(&lines, &found.places)?;
    Some(Notice::once_more(&names, &problems(session, &found.gone), &found.short, offer))
}

/// Says whose they are, and looks for others.
fn name(session: Session, Found { gone, short, .. }: &Found) {
    let has_others = !session.cart.with_untracked(Cart::is_empty);
    if gone.is_empty() {
        session.notice.set(Some(Notice::what_stays(has_others).and_too_few(short)));
        return;
    }
    session.notice.set(Some(Notice::refused(&problems(session, gone), has_others).and_too_few(short)));
    let seats: Vec<SeatIndex> = gone.iter().map(|(seat, _)| *seat).collect();
    alternatives::offer_alternatives(session, &seats);
}

fn problems(session: Session, gone: &[(SeatIndex, SeatState)]) -> Vec<SeatProblem> {
    let problem = |(seat, state): &(SeatIndex, SeatState)| SeatProblem {
        seat: *seat,
        label: session.seat_name(*seat),
        state: *state,
        taken_ms_ago: None,
    };
    let mut problems: Vec<SeatProblem> = gone.iter().map(problem).collect();
    put_as_read(&mut problems, |problem| problem.label.as_str());
    problems
}

#[cfg(test)]
mod tests {
    use domain::money::{Currency, Money};

    use super::*;

    #[test]
    fn what_is_free_is_offered_and_what_is_not_is_named() {
        let looks = [(7, Look::Available), (8, Look::Booked), (9, Look::Available)];
        let gone = vec![(8, SeatState::Booked)];
        let found = Found { free: vec![7, 9], gone: gone.clone(), ..Found::default() };
        assert_eq!(step(&looks, &[], true), Step::Offer(found));
        let found = Found { gone, ..Found::default() };
        assert_eq!(step(&[(7, Look::Asked), (8, Look::Booked), (9, Look::Mine)], &[], true), Step::Name(found));
        let found = Found { gone: vec![(7, SeatState::Blocked)], ..Found::default() };
        assert_eq!(step(&[(7, Look::Blocked)], &[], true), Step::Name(found));
    }

    #[test]
    fn a_seat_that_may_be_on_its_way_back_is_not_said_to_be_anothers_at_once() {
        let looks = [(7, Look::Available), (8, Look::Locked)];
        assert_eq!(step(&looks, &[], true), Step::Wait);
        let found = Found { free: vec![7], gone: vec![(8, SeatState::Locked)], ..Found::default() };
        assert_eq!(step(&looks, &[], false), Step::Offer(found));
    }

    #[test]
    fn as_many_places_are_offered_as_there_are() {
        let floor = |quantity| PlaceLine {
            area: 0,
            label: "Floor".to_owned(),
            category: "Floor".to_owned(),
            price: Money::new(1_250, Currency::parse("EUR").expect("a code")),
            quantity,
        };
        let all = Found { places: vec![floor(3)], ..Found::default() };
        assert_eq!(step(&[], &[(floor(3), 3)], true), Step::Offer(all));
        let short = |left| vec![AreaProblem { area: 0, label: "Floor".to_owned(), left }];
        assert_eq!(step(&[], &[(floor(3), 2)], true), Step::Wait, "one may be on its way back");
        let some = Found { places: vec![floor(2)], short: short(2), ..Found::default() };
        assert_eq!(step(&[], &[(floor(3), 2)], false), Step::Offer(some));
        let none = Found { short: short(0), ..Found::default() };
        assert_eq!(step(&[], &[(floor(3), 0)], false), Step::Name(none));
        assert_eq!(step(&[], &[(floor(0), 0)], false), Step::Over, "they are one's own");
    }

    #[test]
    fn whoever_has_them_all_is_asked_nothing() {
        assert_eq!(step(&[(7, Look::Mine), (8, Look::Asked)], &[], true), Step::Over);
        assert_eq!(step(&[], &[], true), Step::Over, "the room has no such seats");
    }
}
