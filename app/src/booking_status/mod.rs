//! How a booking stands, live: one island on the booking page.
//!
//! Asks the server, less and less often, until nothing more can happen. What is said of every state of seats and money is
//! in `wording`.

#![allow(missing_docs, reason = "the island macro makes a struct for the props and gives it no words")]

mod another_card;
mod asking;
mod cancelling;
mod seat_offer;
mod wording;

use domain::api::cancelling::{RefundView, StepView};
use domain::api::moving::SeatOffer;
use domain::api::{BookingState, BookingView, KeptHold, MoneyState, Person, PlaceLine, SeatLine};
use domain::money::Money;
use leptos::prelude::*;
use leptos::task::spawn_local;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use self::wording::{is_second, money_in_words, next_step, parts_in_words, said, words};
use crate::browser::{calls, events, ids};
use crate::language::{Language, Moment, current};
use crate::payment_retry::buyer_details;
use crate::say;

/// Groups of messages this island uses; its page carries them.
pub const WORDS: &[&str] = &["status", "story", "cancel", "move", "problem", "common", "date"];

/// First pause between two questions, milliseconds…
const FIRST_PAUSE_MS: u32 = 1_000;
/// …growing to this one.
const LONGEST_PAUSE_MS: u32 = 5_000;

/// How a booking stands: the part of [`BookingView`] that the browser reads, and so the only part it
/// carries code for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FollowedBooking {
    /// The booking.
    pub id: Uuid,
    /// Its show.
    pub show: Uuid,
    /// Where it stands.
    pub state: BookingState,
    /// How its money stands.
    pub money: MoneyState,
    /// What it costs.
    pub total: Money,
    /// Who pays.
    pub buyer: Person,
    /// Who sits there.
    pub holder: Person,
    /// Until when it must be paid, on the clocks of the theatre.
    #[serde(default)]
    pub expires_at_theatre: Option<String>,
    /// The gateway's page, while it waits for the buyer.
    pub pay_url: Option<String>,
    /// The ticket page, once confirmed.
    pub ticket_url: Option<String>,
    /// Its seats.
    pub seats: Vec<SeatLine>,
    /// Its places in areas without numbered seats.
    #[serde(default)]
    pub places: Vec<PlaceLine>,
    /// Until when they can be given back, milliseconds since 1970; absent when they cannot.
    #[serde(default)]
    pub cancel_until_ms: Option<i64>,
    /// Money that goes back.
    #[serde(default)]
    pub refunds: Vec<RefundView>,
    /// What happened so far.
    #[serde(default)]
    pub steps: Vec<StepView>,
    /// The booking its money pays for.
    #[serde(default)]
    pub moved_to: Option<Uuid>,
    /// Other places, because the show was moved; the buyer may take or leave them.
    #[serde(default)]
    pub seat_offer: Option<SeatOffer>,
    /// Its seats, still held for another card.
    #[serde(default)]
    pub kept_hold: Option<KeptHold>,
    /// Whether the buyer comes from the gateway's page, where a card was given: the answer is on its way. The address says
    /// so, the API does not.
    #[serde(default)]
    pub is_submitted: bool,
}

impl From<&BookingView> for FollowedBooking {
    fn from(booking: &BookingView) -> Self {
        Self {
            id: booking.id,
            show: booking.show,
            state: booking.state,
            money: booking.money,
            total: booking.total,
            buyer: booking.buyer.clone(),
            holder: booking.holder.clone(),
            expires_at_theatre: booking.expires_at_theatre.clone(),
            pay_url: booking.pay_url.clone(),
            ticket_url: booking.ticket_url.clone(),
            seats: booking.seats.clone(),
            places: booking.places.clone(),
            cancel_until_ms: booking.cancel_until_ms,
            refunds: booking.refunds.clone(),
            steps: booking.steps.clone(),
            moved_to: booking.moved_to,
            seat_offer: booking.seat_offer.clone(),
            kept_hold: booking.kept_hold.clone(),
            is_submitted: false,
        }
    }
}

/// State, money and what to do next, followed until final.
#[island]
pub fn BookingStatus(
    /// The booking as the page was rendered.
    booking: FollowedBooking,
) -> impl IntoView {
    let booking = RwSignal::new(booking);
    Effect::new(move |_| {
        follow(booking);
    });
    Effect::new(move |_| {
        if booking.with(|booking| booking.state == BookingState::Confirmed) {
            buyer_details::forget();
        }
    });
    let words = Memo::new(move |_| booking.with(words));
    let giving_back = RwSignal::new(false);
    let told = move |key: &'static str| booking.with(|booking| said(key, booking));
    let is_second = move || {
        let giving_back = giving_back.get();
        booking.with(|booking| is_second(booking, giving_back))
    };
    view! {
        <section class="booking-status" data-tone=move || words.get().tone>
            <p class="booking-mark" aria-hidden="true">{move || words.get().mark}</p>
            // Around the heading, not on it: a heading with a role of its own is no heading any more.
            <div class="booking-said" role="status">
                <h1 data-testid="booking-state" data-state=move || booking.with(|booking| booking.state.as_str())
                    data-money=move || booking.with(|booking| booking.money.as_str())>
                    {move || told(words.get().title)}
                </h1>
                <p class="booking-words">{move || told(words.get().text)}</p>
                <p class="booking-money" data-testid="booking-money">{move || booking.with(money_in_words)}</p>
                {move || booking.with(parts_in_words).into_iter().map(|words| view! {
                    <p class="booking-money quiet" data-testid="booking-fee">{words}</p>
                }).collect_view()}
            </div>
            {another_card::button(booking)}
            <p class="booking-next">{move || booking.with(next_step).map(|(href, words, name)| view! {
                <a class=move || if is_second() { "button button-quiet" } else { "button" } data-testid=name href=href>{say!(words)}</a>
            })}</p>
            // What waits for an answer comes before what is over.
            {seat_offer::choice(booking)}
            <ol class="booking-story" data-testid="booking-story">{move || booking.with(story)}</ol>
            {cancelling::offer(booking, giving_back)}
        </section>
    }
}

/// Tone of what is said of a booking, for the colour of its mark: `done`, `waiting` or `sorry`.
#[must_use]
pub fn tone(booking: &FollowedBooking) -> &'static str {
    words(booking).tone
}

/// State, money and story of a booking as text, without a script that follows it.
pub fn standing(booking: &FollowedBooking) -> impl IntoView + use<> {
    let words = words(booking);
    let (title, text) = (said(words.title, booking), said(words.text, booking));
    let parts = parts_in_words(booking).into_iter().map(|words| view! { <p class="booking-money quiet">{words}</p> });
    view! {
        <p class="booking-mark" aria-hidden="true">{words.mark}</p>
        <div class="booking-said">
            <h1 data-testid="booking-state" data-state=booking.state.as_str() data-money=booking.money.as_str()>{title}</h1>
            <p class="booking-words">{text}</p>
            <p class="booking-money" data-testid="booking-money">{money_in_words(booking)}</p>
            {parts.collect_view()}
        </div>
        <ol class="booking-story" data-testid="booking-story">{story(booking)}</ol>
    }
}

/// What happened, with times.
fn story(booking: &FollowedBooking) -> impl IntoView + use<> {
    let line = |told: &StepView| {
        let (words, time) = (step_in_words(told), time_in_words(told));
        let (step, at) = (told.step.clone(), told.at.clone());
        view! { <li data-step=step><span>{words}</span><time class="quiet" datetime=at>{time}</time></li> }
    };
    booking.steps.iter().map(line).collect_view()
}

/// A step in the language of the page; one that is not known here, in the API's own words.
fn step_in_words(told: &StepView) -> String {
    match (told.step.as_str(), &told.note, &told.seats, told.amount) {
        ("cancelled" | "part_cancelled", Some(note), ..) => say!("story.by_cinema", note = note),
        ("cancelled", ..) => say!("story.cancelled"),
        ("part_cancelled", _, Some(seats), _) => say!("story.part_cancelled", seats = seats),
        ("refunding", .., Some(amount)) => say!("story.refunding", amount = amount),
        ("refunded", .., Some(amount)) => say!("story.refunded", amount = amount),
        ("paying", ..) => say!("story.paying"),
        ("paid", ..) => say!("story.paid"),
        ("paid_late", ..) => say!("story.paid_late"),
        ("came_back", ..) => say!("story.came_back"),
        ("sent_again", ..) => say!("story.sent_again"),
        ("paid_otherwise", ..) => say!("story.paid_otherwise"),
        ("issued", ..) => say!("story.issued"),
        ("failed", ..) => say!(match told.why.as_deref() {
            Some("declined") => "story.declined",
            Some("stopped") => "story.stopped",
            _ => "story.failed",
        }),
        ("expired", ..) => say!("story.expired"),
        ("moved", ..) => say!("story.moved"),
        ("relocated", Some(note), ..) => say!("story.relocated", note = note),
        ("other_seats_taken", ..) => say!("story.other_seats_taken"),
        ("lost", ..) if told.why.as_deref() == Some("card_limit") => say!("story.card_limit"),
        // The API says in English which seats it was.
        ("lost", ..) if current() != Language::English => say!("story.lost"),
        _ => told.words.clone(),
    }
}

fn time_in_words(told: &StepView) -> String {
    Moment::parse(&told.at_theatre).map_or_else(|| told.at_local.clone(), |at| at.to_the_second(current()))
}

/// Whether nothing more can happen without somebody's doing.
fn is_settled(booking: &FollowedBooking) -> bool {
    let money_moves = match booking.money {
        MoneyState::Pending | MoneyState::Refunding => true,
        // Paid for nothing: it goes back.
        MoneyState::Paid => booking.state.is_final(),
        MoneyState::None | MoneyState::Failed | MoneyState::Refunded | MoneyState::Moved => false,
    };
    if booking.refunds.iter().any(|refund| !refund.settled) {
        return false;
    }
    match booking.state {
        BookingState::Confirmed => booking.ticket_url.is_some(),
        state => state.is_final() && !money_moves,
    }
}

fn follow(booking: RwSignal<FollowedBooking>) {
    let path = booking.with_untracked(|booking| format!("/api/v1/bookings/{}", booking.id));
    spawn_local(async move {
        let mut pause_ms = FIRST_PAUSE_MS;
        while !booking.with_untracked(is_settled) {
            events::after(pause_ms / 2 + ids::jitter(pause_ms / 2)).await;
            let now = calls::get::<FollowedBooking>(&path).await;
            let is_submitted = booking.with_untracked(|before| before.is_submitted);
            if let Ok(now) = now.map(|now| FollowedBooking { is_submitted, ..now })
                && booking.with_untracked(|before| *before != now)
            {
                booking.set(now);
                pause_ms = FIRST_PAUSE_MS;
            } else {
                pause_ms = (pause_ms + pause_ms / 4).min(LONGEST_PAUSE_MS);
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::speaking;

    pub(super) fn followed(state: BookingState, money: MoneyState) -> FollowedBooking {
        let anna = Person { name: "Anna".to_owned(), email: "anna@example.org".to_owned() };
        FollowedBooking {
            id: Uuid::nil(),
            show: Uuid::nil(),
            state,
            money,
            total: Money::new(1_250, domain::money::Currency::parse("EUR").expect("a code")),
            buyer: anna.clone(),
            holder: anna,
            expires_at_theatre: None,
            pay_url: None,
            ticket_url: None,
            seats: vec![],
            places: vec![],
            cancel_until_ms: None,
            refunds: vec![],
            steps: vec![],
            moved_to: None,
            seat_offer: None,
            kept_hold: None,
            is_submitted: false,
        }
    }

    pub(super) fn step(step: &str) -> StepView {
        StepView {
            step: step.to_owned(),
            words: "In English".to_owned(),
            at: String::new(),
            at_local: "Sat 21 Nov, 20:15:07".to_owned(),
            at_theatre: "2026-11-21T20:15:07".to_owned(),
            amount: None,
            seats: None,
            note: None,
            why: None,
        }
    }

    #[test]
    fn following_ends_only_where_seats_and_money_rest() {
        let confirmed = FollowedBooking {
            ticket_url: Some("/ticket".to_owned()),
            ..followed(BookingState::Confirmed, MoneyState::Paid)
        };
        assert!(is_settled(&confirmed));
        assert!(is_settled(&followed(BookingState::Cancelled, MoneyState::Failed)));
        assert!(is_settled(&followed(BookingState::Expired, MoneyState::Refunded)));
        assert!(!is_settled(&followed(BookingState::PaymentPending, MoneyState::Pending)));
        assert!(!is_settled(&followed(BookingState::Cancelled, MoneyState::Paid)), "it has to come back");
        assert!(!is_settled(&followed(BookingState::Cancelled, MoneyState::Refunding)));
        assert!(is_settled(&followed(BookingState::Expired, MoneyState::Moved)));
        let mut part = confirmed;
        let euro = |minor| Money::new(minor, domain::money::Currency::parse("EUR").expect("a code"));
        let (amount, fee) = (euro(9), euro(1));
        part.refunds = vec![RefundView { number: 1, amount, fee, seats: vec![], settled: false, came_back: false }];
        assert!(!is_settled(&part), "one seat's money is still on its way");
        part.refunds[0].settled = true;
        assert!(is_settled(&part));
    }

    #[test]
    fn the_story_is_told_in_the_language_of_the_page() {
        let german = |told: StepView| speaking(Language::German, || (step_in_words(&told), time_in_words(&told)));
        let back = Money::new(1_125, domain::money::Currency::parse("EUR").expect("a code"));
        let (words, time) = german(StepView { amount: Some(back), ..step("refunded") });
        assert_eq!((words.as_str(), time.as_str()), ("11,25\u{a0}€ zurückgezahlt", "Sa., 21. Nov., 20:15:07"));
        let (words, _) = german(StepView { note: Some("Der Projektor ist defekt.".to_owned()), ..step("cancelled") });
        assert_eq!(words, "Vom Kino storniert. Der Projektor ist defekt.");
        assert_eq!(german(step("paid")).0, "Bezahlt");
        assert_eq!(german(step("brand_new")).0, "In English");
        let failed = |why: Option<&str>| german(StepView { why: why.map(str::to_owned), ..step("failed") }).0;
        let told = [Some("declined"), Some("stopped"), Some("who_knows"), None].map(failed);
        let unknown = "Die Zahlung hat nicht geklappt";
        assert_eq!(told, ["Die Bank hat die Karte abgelehnt", "Sie haben die Zahlung abgebrochen", unknown, unknown]);
    }
}
