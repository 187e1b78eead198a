//! Offers the seats of a failed payment again. The address of the page names them
//! ([`crate::payment_retry`]).
//!
//! Free seats are offered for one tap; opening the page holds nothing. Seats that are taken are named. After the rest
//! was taken, or if nothing is free, other seats nearby are offered, as after any refusal. All of this loads after the
//! map, with the notice box.

use domain::api::{AreaProblem, PlaceLine, SeatLine, SeatProblem};
use domain::seats::{SeatIndex, SeatState, sort_for_display};
use leptos::prelude::*;
use leptos::task::spawn_local;

use super::cart::Cart;
use super::offers::{SeatOffer, quantity_of};
use crate::browser::{self, events};
use crate::payment_retry::{self, RequestedSeats};
use crate::seat_map::appearance::SeatAppearance;
use crate::seat_map::live::connection;
use crate::seat_map::loading;
use crate::seat_map::notice::Notice;
use crate::seat_map::own_seats::offers;
use crate::seat_map::room_plan::RoomPlan;
use crate::seat_map::session::MapSession;
use crate::seat_map::signals::PageSignal;

/// Pause before the first notice, milliseconds: a screen reader announces only changes of a box that exists already.
const FIRST_NOTICE_MS: u32 = 200;
/// Seats are not reported as taken for this long after that, milliseconds: the failed payment may still be releasing
/// them.
const PATIENCE_MS: u32 = 2_000;

#[derive(Default)]
struct ReofferState {
    /// True if the sections of the seats were requested, in a large room.
    is_requested: bool,
    offered: Option<Notice>,
    /// True if the offer has ended.
    is_over: bool,
}

/// The next action for the seats' current states.
#[derive(Debug, PartialEq)]
enum ReofferAction {
    /// Nothing yet: locked seats may become free.
    Wait,
    /// Some are free.
    Offer(SeatStatus),
    /// None are free and some are taken.
    ReportTaken(SeatStatus),
    /// All are the visitor's own.
    Finish,
}

/// The states of the seats and places that are not the visitor's own.
#[derive(Clone, Debug, Default, PartialEq)]
struct SeatStatus {
    free: Vec<SeatIndex>,
    gone: Vec<(SeatIndex, SeatState)>,
    places: Vec<PlaceLine>,
    /// Areas with too few places left.
    short: Vec<AreaProblem>,
}

/// Offers the seats that the address names, once their states are known.
pub fn offer(session: MapSession) {
    let wanted = payment_retry::parse_seats(&browser::query());
    if wanted.is_empty() {
        return;
    }
    let (may_show, is_waiting) = (PageSignal::new(false), PageSignal::new(true));
    spawn_local(async move {
        events::after(FIRST_NOTICE_MS).await;
        may_show.set(true);
        events::after(PATIENCE_MS).await;
        is_waiting.set(false);
    });
    Effect::new(move |before: Option<ReofferState>| {
        let state = before.unwrap_or_default();
        if state.is_over || !may_show.get() {
            return state;
        }
        // The running payment may be for these very seats.
        if session.cart.with(Cart::is_paying) {
            return withdraw_offer(session, state);
        }
        match session.room.get().filter(|_| session.is_map_known.get()) {
            Some(room) => advance(session, state, &room, &wanted, is_waiting.get()),
            None => state,
        }
    });
}

/// Takes the next step. Subscribes to the seats' signals.
fn advance(
    session: MapSession,
    state: ReofferState,
    room: &RoomPlan,
    wanted: &RequestedSeats,
    is_waiting: bool,
) -> ReofferState {
    let seats = &wanted.seats;
    let mut missing: Vec<usize> = seats.iter().filter_map(|seat| room.section_of(*seat)).collect();
    missing.retain(|section| !room.is_loaded(*section));
    missing.dedup();
    if !missing.is_empty() {
        if !state.is_requested {
            missing.into_iter().for_each(|section| loading::load_section(session, section, || true, || ()));
        }
        return ReofferState { is_requested: true, ..state };
    }
    let names: Vec<String> = seats.iter().filter_map(|seat| Some(room.line(*seat)?.label)).collect();
    let places: Vec<PlaceLine> =
        wanted.places.iter().filter_map(|places| room.place_line(places.area, places.quantity)).collect();
    let names = names.iter().map(String::as_str).chain(places.iter().map(|line| line.label.as_str()));
    if !wanted.has_checksum_of(names) {
        // The show has moved to another room.
        withdraw_offer(session, state);
        return finish();
    }
    let known = seats.iter().copied().filter(|seat| room.seat(*seat).is_some());
    let current = |seat| {
        // The signal only notifies: while the map moves or the page is hidden, it is older than the board.
        session.appearance_signal(seat).track();
        (seat, session.current_appearance(seat))
    };
    let looks: Vec<(SeatIndex, SeatAppearance)> = known.map(current).collect();
    // Only the places still to be added. Places of our hold do not count as left.
    let missing = |line: PlaceLine| {
        let quantity = line.quantity.saturating_sub(session.cart.with(|cart| cart.wanted_in(line.area)));
        let left = session.places_left_in(line.area).unwrap_or_default();
        (PlaceLine { quantity, ..line }, left)
    };
    let places: Vec<(PlaceLine, u32)> = places.into_iter().map(missing).collect();
    let on_show = session.notice.get();
    if state.offered.is_some() && state.offered != on_show {
        let is_awaited_in =
            |cart: &Cart| wanted.places.iter().any(|of| cart.wanted_in(of.area) != cart.held_in(of.area));
        if session.cart.with(is_awaited_in) || looks.iter().any(|(_, look)| *look == SeatAppearance::Asked) {
            // The offer was accepted and its request is in flight.
            return state;
        }
        let held_in = |cart: &Cart| wanted.places.iter().any(|of| cart.held_in(of.area) > 0);
        let is_taken =
            session.cart.with_untracked(held_in) || looks.iter().any(|(_, look)| *look == SeatAppearance::Mine);
        if let (true, None, ReofferAction::ReportTaken(status)) =
            (is_taken, on_show, next_action(&looks, &places, false))
        {
            report_taken(session, &status);
        }
        return finish();
    }
    match next_action(&looks, &places, is_waiting) {
        ReofferAction::Wait => state,
        ReofferAction::Finish => {
            withdraw_offer(session, state);
            finish()
        }
        ReofferAction::ReportTaken(status) => {
            report_taken(session, &status);
            finish()
        }
        ReofferAction::Offer(status) => {
            let Some(notice) = notice_for(session, room, &status) else {
                withdraw_offer(session, state);
                return finish();
            };
            if on_show.as_ref() != Some(&notice) {
                session.notice.set(Some(notice.clone()));
                connection::subscribe_sections(session);
            }
            ReofferState { offered: Some(notice), ..state }
        }
    }
}

/// Removes the offer: another tab took the seats, or they are not free.
fn withdraw_offer(session: MapSession, state: ReofferState) -> ReofferState {
    if let Some(offered) = &state.offered {
        session.dismiss(offered);
    }
    ReofferState { offered: None, ..state }
}

/// Ends the offer and removes it from the address, so that a reload does not repeat it.
fn finish() -> ReofferState {
    browser::forget_query();
    ReofferState { is_over: true, ..ReofferState::default() }
}

/// The next action for seats, and for places with the number left.
fn next_action(looks: &[(SeatIndex, SeatAppearance)], places: &[(PlaceLine, u32)], is_waiting: bool) -> ReofferAction {
    let free: Vec<SeatIndex> =
        looks.iter().filter(|(_, look)| *look == SeatAppearance::Available).map(|(seat, _)| *seat).collect();
    let gone: Vec<(SeatIndex, SeatState)> =
        looks.iter().filter_map(|(seat, look)| Some((*seat, state_if_taken(*look)?))).collect();
    let short: Vec<AreaProblem> = places
        .iter()
        .filter(|(line, left)| *left < line.quantity)
        .map(|(line, left)| AreaProblem { area: line.area, label: line.label.clone(), left: *left })
        .collect();
    let to_be_had = places.iter().map(|(line, left)| PlaceLine { quantity: line.quantity.min(*left), ..line.clone() });
    let places: Vec<PlaceLine> = to_be_had.filter(|line| line.quantity > 0).collect();
    let may_come_back = is_waiting && (!short.is_empty() || gone.iter().any(|(_, state)| *state == SeatState::Locked));
    let (none_free, none_gone) = (free.is_empty() && places.is_empty(), gone.is_empty() && short.is_empty());
    let status = SeatStatus { free, gone, places, short };
    match (may_come_back, none_free, none_gone) {
        (true, ..) => ReofferAction::Wait,
        (_, false, _) => ReofferAction::Offer(status),
        (_, true, false) => ReofferAction::ReportTaken(status),
        (_, true, true) => ReofferAction::Finish,
    }
}

/// The state of a seat that cannot be taken.
const fn state_if_taken(look: SeatAppearance) -> Option<SeatState> {
    match look {
        SeatAppearance::Locked => Some(SeatState::Locked),
        SeatAppearance::Booked => Some(SeatState::Booked),
        SeatAppearance::Blocked => Some(SeatState::Blocked),
        SeatAppearance::Available | SeatAppearance::Proposed | SeatAppearance::Mine | SeatAppearance::Asked => None,
    }
}

/// The notice of the offer. `None` if the visitor's other seats leave no room for these.
fn notice_for(session: MapSession, room: &RoomPlan, status: &SeatStatus) -> Option<Notice> {
    let count = status.places.iter().fold(status.free.len(), |sum, line| sum + line.quantity as usize);
    if !session.cart.with_untracked(|cart| cart.has_room_for(count)) {
        return None;
    }
    let mut lines: Vec<SeatLine> = status.free.iter().filter_map(|seat| room.line(*seat)).collect();
    sort_for_display(&mut lines, |line| line.label.as_str());
    let places: Vec<String> = status.places.iter().map(quantity_of).collect();
    let names: Vec<&str> =
        lines.iter().map(|line| line.label.as_str()).chain(places.iter().map(String::as_str)).collect();
    let offer = SeatOffer::again(&lines, &status.places)?;
    Some(Notice::reoffer(&names, &problems(session, &status.gone), &status.short, offer))
}

/// Reports taken seats and offers others.
fn report_taken(session: MapSession, SeatStatus { gone, short, .. }: &SeatStatus) {
    let has_others = !session.cart.with_untracked(Cart::is_empty);
    if gone.is_empty() {
        session.notice.set(Some(Notice::places_refused(short, has_others)));
        return;
    }
    session.notice.set(Some(Notice::refused(&problems(session, gone), has_others).with_shortages(short)));
    let seats: Vec<SeatIndex> = gone.iter().map(|(seat, _)| *seat).collect();
    offers::offer_alternatives(session, &seats);
}

fn problems(session: MapSession, gone: &[(SeatIndex, SeatState)]) -> Vec<SeatProblem> {
    let problem = |(seat, state): &(SeatIndex, SeatState)| SeatProblem {
        seat: *seat,
        label: session.seat_name(*seat),
        state: *state,
        taken_ms_ago: None,
    };
    let mut problems: Vec<SeatProblem> = gone.iter().map(problem).collect();
    sort_for_display(&mut problems, |problem| problem.label.as_str());
    problems
}

#[cfg(test)]
mod tests {
    use domain::money::{Currency, Money};

    use super::*;

    #[test]
    fn free_seats_are_offered_and_taken_seats_are_reported() {
        let looks = [(7, SeatAppearance::Available), (8, SeatAppearance::Booked), (9, SeatAppearance::Available)];
        let gone = vec![(8, SeatState::Booked)];
        let status = SeatStatus { free: vec![7, 9], gone: gone.clone(), ..SeatStatus::default() };
        assert_eq!(next_action(&looks, &[], true), ReofferAction::Offer(status));
        let status = SeatStatus { gone, ..SeatStatus::default() };
        assert_eq!(
            next_action(
                &[(7, SeatAppearance::Asked), (8, SeatAppearance::Booked), (9, SeatAppearance::Mine)],
                &[],
                true
            ),
            ReofferAction::ReportTaken(status)
        );
        let status = SeatStatus { gone: vec![(7, SeatState::Blocked)], ..SeatStatus::default() };
        assert_eq!(next_action(&[(7, SeatAppearance::Blocked)], &[], true), ReofferAction::ReportTaken(status));
    }

    #[test]
    fn a_locked_seat_is_not_reported_before_the_wait_is_over() {
        let looks = [(7, SeatAppearance::Available), (8, SeatAppearance::Locked)];
        assert_eq!(next_action(&looks, &[], true), ReofferAction::Wait);
        let status = SeatStatus { free: vec![7], gone: vec![(8, SeatState::Locked)], ..SeatStatus::default() };
        assert_eq!(next_action(&looks, &[], false), ReofferAction::Offer(status));
    }

    #[test]
    fn an_offer_is_limited_to_the_places_left() {
        let floor = |quantity| PlaceLine {
            area: 0,
            label: "Floor".to_owned(),
            category: "Floor".to_owned(),
            price: Money::new(1_250, Currency::parse("EUR").expect("a code")),
            quantity,
        };
        let all = SeatStatus { places: vec![floor(3)], ..SeatStatus::default() };
        assert_eq!(next_action(&[], &[(floor(3), 3)], true), ReofferAction::Offer(all));
        let short = |left| vec![AreaProblem { area: 0, label: "Floor".to_owned(), left }];
        assert_eq!(next_action(&[], &[(floor(3), 2)], true), ReofferAction::Wait, "a place may be released");
        let some = SeatStatus { places: vec![floor(2)], short: short(2), ..SeatStatus::default() };
        assert_eq!(next_action(&[], &[(floor(3), 2)], false), ReofferAction::Offer(some));
        let none = SeatStatus { short: short(0), ..SeatStatus::default() };
        assert_eq!(next_action(&[], &[(floor(3), 0)], false), ReofferAction::ReportTaken(none));
        assert_eq!(next_action(&[], &[(floor(0), 0)], false), ReofferAction::Finish, "the visitor has them");
    }

    #[test]
    fn nothing_is_offered_to_a_visitor_with_all_seats() {
        assert_eq!(
            next_action(&[(7, SeatAppearance::Mine), (8, SeatAppearance::Asked)], &[], true),
            ReofferAction::Finish
        );
        assert_eq!(next_action(&[], &[], true), ReofferAction::Finish, "the room has no such seats");
    }
}
