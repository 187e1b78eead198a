//! Messages to the visitor after a refusal or a change (which seat, what stays, what to do next), and the box that shows
//! them.

use domain::api::{AreaProblem, SeatProblem};
use domain::seats::{HOLD_EXTENSION_MS, SeatIndex, SeatState};
use domain::time::{MINUTE_MS, SECOND_MS};
use language::{Arg, clock, current, listed, say, tenths};
use leptos::prelude::*;
use uuid::Uuid;

use super::appearance::SeatAppearance;
use super::focus_seats;
use super::own_seats::cart::Cart;
use super::own_seats::offers::SeatOffer;
use super::own_seats::{watched, wishes};
use super::session::MapSession;
use super::signals::PageSignal;
use crate::browser::calls::Failure;

/// A message to the visitor.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Notice {
    pub text: String,
    /// True if a button requests the lost seats again.
    pub may_ask_again: bool,
    /// A booking to link to.
    pub booking: Option<Uuid>,
    /// Other seats, available with one tap.
    pub offer: Option<SeatOffer>,
    /// A locked seat that the visitor can watch with one tap.
    pub watchable: Option<SeatIndex>,
    /// True if it is good news, which a screen reader announces politely.
    pub is_good: bool,
    /// Put in front of the page title, for visitors in another tab.
    pub headline: Option<String>,
}

impl Notice {
    /// A message without buttons.
    pub fn new(text: String) -> Self {
        Self { text, ..Self::default() }
    }

    /// Seats were refused. `others` says whether the visitor holds or wants others.
    pub fn refused(seats: &[SeatProblem], others: bool) -> Self {
        let mut sentences = why_refused(seats);
        sentences.push(if others { say!("map.others_are_safe") } else { say!("map.pick_another") });
        let watchable = seats.iter().find(|seat| seat.state == SeatState::Locked).map(|seat| seat.seat);
        Self { watchable, ..Self::new(sentences.join(" ")) }
    }

    /// An exchange was refused: the visitor keeps the hold.
    pub fn not_exchanged(seats: &[SeatProblem]) -> Self {
        let mut sentences = why_refused(seats);
        sentences.push(say!("map.you_keep_yours"));
        Self::new(sentences.join(" "))
    }

    /// Seats and places of an earlier attempt: some are free and offered for one tap, others are taken.
    pub fn reoffer(free: &[&str], gone: &[SeatProblem], short: &[AreaProblem], offer: SeatOffer) -> Self {
        let count = offer.places.iter().fold(offer.seats.len(), |sum, places| sum + places.quantity as usize);
        let still_free = say!("map.still_free", count = count, seats = Arg::Ours(&listed(free)));
        let sentences: Vec<String> = [still_free].into_iter().chain(by_state(gone)).chain(shortages(short)).collect();
        Self { offer: Some(offer), is_good: true, ..Self::new(sentences.join(" ")) }
    }

    /// Adds areas with too few places left in front of the text.
    pub fn with_shortages(self, short: &[AreaProblem]) -> Self {
        let sentences: Vec<String> = shortages(short).into_iter().chain([self.text]).collect();
        Self { text: sentences.join(" "), ..self }
    }

    /// Places were refused because these areas have too few left. `others` says whether the visitor holds or wants
    /// others.
    pub fn places_refused(short: &[AreaProblem], others: bool) -> Self {
        let next = if others { say!("map.rest_is_safe") } else { say!("map.pick_another_area") };
        Self::new(next).with_shortages(short)
    }

    /// The hold expired.
    pub fn expired(seats: &[String]) -> Self {
        let names: Vec<&str> = seats.iter().map(String::as_str).collect();
        let text = if names.is_empty() {
            say!("map.time_over")
        } else {
            say!("map.time_over_for", count = names.len(), seats = Arg::Ours(&listed(&names)))
        };
        Self { may_ask_again: true, ..Self::new(text) }
    }

    /// The same visitor released the hold elsewhere.
    pub fn released_elsewhere() -> Self {
        Self { may_ask_again: true, ..Self::new(say!("map.let_go_elsewhere")) }
    }

    /// The hold ended early for an unknown reason, and its seats are not free.
    pub fn ended() -> Self {
        Self { may_ask_again: true, ..Self::new(say!("map.hold_ended")) }
    }

    /// The hold was paid for, or its payment ended: nothing was lost.
    pub fn sale_finished(booking: Option<Uuid>) -> Self {
        let text = if booking.is_some() { say!("map.moved_on") } else { say!("map.sale_finished") };
        Self { booking, ..Self::new(text) }
    }

    pub fn limit_reached(limit: usize) -> Self {
        Self::new(say!("map.full", most = limit))
    }

    pub fn payment_pending() -> Self {
        Self::new(say!("map.paying"))
    }

    /// The browser solves a puzzle before the seats are taken.
    pub fn solving_puzzle() -> Self {
        Self { is_good: true, ..Self::new(say!("map.proving")) }
    }

    /// A tapped seat is not free. `watchable` if it may become free.
    pub fn unavailable(name: &str, look: SeatAppearance, watchable: Option<SeatIndex>) -> Self {
        let text = match look {
            SeatAppearance::Booked => say!("map.is_sold", seat = name),
            SeatAppearance::Blocked => about_seats("map.is_blocked", &[name]),
            _ => about_seats("map.is_held", &[name]),
        };
        Self { watchable, ..Self::new(text) }
    }

    pub fn watching(name: &str) -> Self {
        Self { is_good: true, ..Self::new(say!("map.watching", seat = name)) }
    }

    /// A watched seat became free. Without an offer if it cannot be taken now.
    pub fn watched_seat_free(name: &str, offer: Option<SeatOffer>) -> Self {
        let headline = Some(say!("map.free_now_short", seat = name));
        let text = say!("map.free_now", seat = name);
        Self { offer, is_good: true, headline, ..Self::new(text) }
    }

    /// The extension was shorter than usual: `given_ms` instead of up to `left_ms`. `None` if nothing was cut.
    pub fn shorter_extension(given_ms: i64, left_ms: i64) -> Option<Self> {
        let full_ms = HOLD_EXTENSION_MS.min(left_ms);
        // Both times are the lock store's own: a difference is a cut, not rounding.
        if given_ms <= 0 || given_ms >= full_ms {
            return None;
        }
        let [given, full] = [given_ms, full_ms].map(|ms| clock(ms / MINUTE_MS, ms / SECOND_MS % 60));
        let text = say!("map.less_time", given = Arg::Ours(&given), full = Arg::Ours(&full));
        Some(Self { is_good: true, ..Self::new(text) })
    }

    pub fn watched_seat_sold(name: &str) -> Self {
        Self { is_good: true, ..Self::new(say!("map.sold_after_all", seat = name)) }
    }

    /// A request failed for a reason other than seats.
    pub fn failed(failure: &Failure) -> Self {
        Self::new(failure.in_words("map.unreachable"))
    }
}

/// Sentences for refused seats; at least one.
fn why_refused(seats: &[SeatProblem]) -> Vec<String> {
    let mut sentences = taken_before_you(seats);
    sentences.extend(by_state(seats));
    if sentences.is_empty() {
        sentences.push(say!("map.gone"));
    }
    sentences
}

/// A sentence per delay by which seats were lost: `C7 and C8 were taken 0.4 s before you.`
fn taken_before_you(seats: &[SeatProblem]) -> Vec<String> {
    let mut delays: Vec<(String, Vec<&str>)> = Vec::new();
    for seat in seats {
        let Some(ago) = seat.taken_ms_ago.map(in_seconds) else { continue };
        match delays.iter_mut().find(|(known, _)| *known == ago) {
            Some((_, names)) => names.push(&seat.label),
            None => delays.push((ago, vec![&seat.label])),
        }
    }
    let sentence = |(ago, names): (String, Vec<&str>)| {
        let (count, seats) = (names.len(), listed(&names));
        say!("map.was_taken_before_you", count = count, seats = Arg::Ours(&seats), ago = Arg::Ours(&ago))
    };
    delays.into_iter().map(sentence).collect()
}

/// A sentence per state of the other refused seats.
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
    taken.into_iter().filter(|(names, _)| !names.is_empty()).map(|(names, key)| about_seats(key, &names)).collect()
}

/// A sentence per area with too few places left.
fn shortages(areas: &[AreaProblem]) -> Vec<String> {
    areas.iter().map(|area| say!("map.places_short", area = &area.label, left = area.left)).collect()
}

/// `0.4 s`. Less than a tenth is worded as such.
fn in_seconds(ms: u32) -> String {
    match (ms + 50) / 100 {
        0 => say!("map.less_than_seconds", seconds = Arg::Ours(&tenths(1, current()))),
        number => say!("map.seconds", seconds = Arg::Ours(&tenths(number, current()))),
    }
}

/// A sentence about seats.
fn about_seats(key: &str, names: &[&str]) -> String {
    say!(key, count = names.len(), seats = Arg::Ours(&listed(names)))
}

/// `one place in Standing floor`, `3 places in Standing floor`.
pub fn places_in_words(count: u32, area: &str) -> String {
    say!("map.places_in_area", count = count, area = area)
}

/// The text, and true if it is good news; empty without a notice.
fn text_and_tone(notice: &Option<Notice>) -> (String, bool) {
    notice.as_ref().map(|notice| (notice.text.clone(), notice.is_good)).unwrap_or_default()
}

/// The notice box. Present without a notice too, so that screen readers announce its changes.
pub fn notice_view(session: MapSession) -> impl IntoView {
    let shown_text = PageSignal::new((String::new(), false));
    Effect::new(move |_| {
        let text = session.notice.with(text_and_tone);
        // Screen readers announce changes only, so a repeated text disappears for a frame.
        if !text.0.is_empty() && shown_text.with_untracked(|shown| *shown == text) {
            shown_text.set(Default::default());
            request_animation_frame(move || shown_text.set(session.notice.with_untracked(text_and_tone)));
        } else {
            shown_text.set(text);
        }
    });
    // Good news is announced politely, an error at once.
    let text = move |is_good: bool| {
        shown_text.with(|(text, is_shown_good)| if *is_shown_good == is_good { text.clone() } else { String::new() })
    };
    let tone = move || session.notice.with(|notice| notice.as_ref().is_some_and(|notice| notice.is_good));
    let watchable = move || session.notice.with(|notice| notice.as_ref().and_then(|notice| notice.watchable));
    let may_ask = move || {
        session.notice.with(|notice| notice.as_ref().is_some_and(|notice| notice.may_ask_again))
            && session.cart.with(Cart::has_lost)
    };
    let booking = move || session.notice.with(|notice| notice.as_ref().and_then(|notice| notice.booking));
    let offer = move || session.notice.with(|notice| notice.as_ref().and_then(|notice| notice.offer.clone()));
    let shown = move || session.notice.with(Option::is_some);
    // The buttons disappear with the notice: without a target the focus would fall to the page's top.
    let close = move |_| {
        focus_seats();
        session.notice.set(None);
    };
    let ask_again = move |_| {
        focus_seats();
        wishes::reclaim_lost_seats(session);
    };
    view! {
        <div class="notice" tabindex="-1" data-shown=move || if shown() { "true" } else { "false" }
            data-tone=move || if tone() { "good" } else { "trouble" }>
            <p role="alert" data-testid="message">{move || text(false)}</p>
            <p role="status" data-testid="news">{move || text(true)}</p>
            {move || offer().map(|offer| {
                let words = offer.words.clone();
                let accept = move |_| {
                    focus_seats();
                    wishes::accept_offer(session, &offer);
                };
                view! { <button type="button" class="notice-action" data-testid="accept-offer" on:click=accept>{words}</button> }
            })}
            {move || watchable().map(|seat| {
                let watch = move |_| {
                    focus_seats();
                    watched::watch_seat(session, seat);
                };
                view! { <button type="button" class="notice-action" data-testid="watch-seat" on:click=watch>{say!("map.watch")}</button> }
            })}
            {move || may_ask().then(|| view! {
                <button type="button" class="notice-action" data-testid="ask-again" on:click=ask_again>{say!("map.ask_again")}</button>
            })}
            {move || booking().map(|booking| view! {
                <a class="notice-action" data-testid="notice-booking" href=format!("/bookings/{booking}")>{say!("map.see_booking")}</a>
            })}
            {move || shown().then(|| view! {
                <button type="button" class="notice-close" aria-label=say!("map.close_message") on:click=close>"×"</button>
            })}
        </div>
    }
}

#[cfg(test)]
mod tests {
    use domain::api::AreaQuantity;

    use super::*;

    fn problem(label: &str, state: SeatState) -> SeatProblem {
        SeatProblem { seat: 1, label: label.to_owned(), state, taken_ms_ago: None }
    }

    #[test]
    fn a_refusal_names_the_seat_and_the_remaining_seats() {
        let notice = Notice::refused(&[problem("C7", SeatState::Locked)], true);
        assert_eq!(notice.text, "C7 is held by someone else. You still have your other seats.");
        assert_eq!(notice.watchable, Some(1));
        assert_eq!(Notice::refused(&[problem("C7", SeatState::Booked)], true).watchable, None);
    }

    #[test]
    fn a_refused_exchange_keeps_the_seats_and_offers_nothing() {
        let notice = Notice::not_exchanged(&[problem("D4", SeatState::Locked)]);
        assert_eq!(notice.text, "D4 is held by someone else. You keep the seats you have.");
        assert_eq!((notice.watchable, notice.offer), (None, None));
    }

    #[test]
    fn a_lost_race_is_reported_with_its_delay() {
        let lost = |label, ms| SeatProblem { taken_ms_ago: Some(ms), ..problem(label, SeatState::Locked) };
        let notice = Notice::refused(&[lost("C7", 380), lost("C8", 420), lost("D1", 3), lost("D2", 1_260)], true);
        assert_eq!(
            notice.text,
            "C7 and C8 were taken 0.4 s before you. D1 was taken less than 0.1 s before you. \
             D2 was taken 1.3 s before you. You still have your other seats."
        );
    }

    #[test]
    fn refused_seats_are_grouped_by_their_state() {
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
    fn a_reoffer_lists_free_seats_and_the_state_of_the_others() {
        let offer = SeatOffer { seats: [7].into(), places: [].into(), words: "Take C7 again".to_owned() };
        let both = Notice::reoffer(&["C7"], &[problem("C8", SeatState::Locked)], &[], offer.clone());
        assert_eq!(both.text, "C7 is still free. C8 is held by someone else.");
        assert_eq!((both.is_good, both.offer.as_ref()), (true, Some(&offer)), "announced politely");
        let two = SeatOffer { seats: [7, 8].into(), ..offer.clone() };
        assert_eq!(Notice::reoffer(&["C7", "C8"], &[], &[], two).text, "C7 and C8 are still free.");
        let places = SeatOffer { seats: [].into(), places: [AreaQuantity { area: 0, quantity: 2 }].into(), ..offer };
        let short = [AreaProblem { area: 0, label: "Floor".to_owned(), left: 2 }];
        let some = Notice::reoffer(&["2 × Floor"], &[], &short, places);
        assert_eq!(some.text, "2 × Floor are still free. Floor has only 2 places left.");
    }

    #[test]
    fn refused_places_lead_to_another_area_or_keep_the_rest() {
        let floor = |left| [AreaProblem { area: 0, label: "Floor".to_owned(), left }];
        let said = |left, others| Notice::places_refused(&floor(left), others).text;
        assert_eq!(said(0, false), "Floor has no places left. Please choose another area.");
        assert_eq!(said(1, true), "Floor has only 1 place left. You keep the rest of your selection.");
    }

    #[test]
    fn a_shorter_extension_is_reported_with_its_reason() {
        let notice = Notice::shorter_extension(90_000, 180_000).expect("it is half");
        assert!(notice.text.starts_with("You have 1:30 more, not 3:00, because"), "{}", notice.text);
        assert_eq!(Notice::shorter_extension(180_000, 180_000), None);
        assert_eq!(Notice::shorter_extension(60_000, 60_000), None, "the show allows no more");
        assert_eq!(Notice::shorter_extension(0, 180_000), None, "a replay");
    }

    #[test]
    fn a_finished_sale_does_not_offer_its_seats_again() {
        let booking = Uuid::from_u128(3);
        let notice = Notice::sale_finished(Some(booking));
        assert_eq!((notice.may_ask_again, notice.booking), (false, Some(booking)));
        assert!(!Notice::sale_finished(None).may_ask_again);
    }
}
