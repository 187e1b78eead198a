//! The live status of a booking: an island on the booking page.
//!
//! Polls the server at growing intervals until nothing can change any more. `wording` has the texts of all states of
//! seats and money.

#![allow(missing_docs, reason = "the island macro makes a struct for the props and does not document it")]

mod actions;
mod cancelling;
mod sold_once;
mod wording;

use domain::VariantName;
use domain::api::cancelling::{RefundView, StepView};
use domain::api::moving::SeatOffer;
use domain::api::{BookingState, BookingView, KeptHold, MoneyState, Person, PlaceLine, SeatLine};
use domain::money::Money;
use domain::time::SECOND_MS;
use language::{Language, Moment, current, say};
use leptos::prelude::*;
use leptos::task::spawn_local;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub use self::actions::seat_offer_card;
use self::wording::{
    booking_message, has_priority_action, money_in_words, next_step, parts_in_words, time_left, until_ms, words,
};
use crate::browser::{self, calls, clock, events, ids};
use crate::payment_retry;

/// Groups of messages this island uses. Its page carries them.
pub const WORDS: &[&str] = &["status", "story", "cancel", "move", "sold_once", "problem", "common", "date"];

/// First polling interval, milliseconds…
const FIRST_PAUSE_MS: u32 = 1_000;
/// …growing to this one.
const LONGEST_PAUSE_MS: u32 = 5_000;

/// The part of [`BookingView`] that the browser reads, so that the module has no code for the rest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FollowedBooking {
    pub id: Uuid,
    pub show: Uuid,
    pub state: BookingState,
    pub money: MoneyState,
    pub total: Money,
    pub buyer: Person,
    pub holder: Person,
    /// Payment deadline, milliseconds since 1970.
    #[serde(default)]
    pub expires_at_ms: i64,
    /// The same in the theatre's time zone; absent unless it can still be paid.
    pub expires_at_theatre: Option<String>,
    /// The gateway's payment page, while a payment is awaited.
    pub pay_url: Option<String>,
    /// The ticket page, once confirmed.
    pub ticket_url: Option<String>,
    pub seats: Vec<SeatLine>,
    /// Its places in areas without numbered seats.
    #[serde(default)]
    pub places: Vec<PlaceLine>,
    /// Cancellation deadline, milliseconds since 1970; absent if it cannot be cancelled.
    pub cancel_until_ms: Option<i64>,
    #[serde(default)]
    pub refunds: Vec<RefundView>,
    #[serde(default)]
    pub steps: Vec<StepView>,
    /// The booking that its money was moved to.
    pub moved_to: Option<Uuid>,
    /// Other places after a move of the show, which the buyer may accept or refuse.
    pub seat_offer: Option<SeatOffer>,
    /// Its seats, still held for another card.
    pub kept_hold: Option<KeptHold>,
    /// True if the buyer has just given a card on the gateway's page, so that the answer is pending. From the page's
    /// address, not from the API.
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
            expires_at_ms: booking.expires_at_ms,
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

/// State, money and next step of a booking, polled until final.
#[island]
pub fn BookingStatus(
    /// The booking as the page was rendered.
    booking: FollowedBooking,
) -> impl IntoView {
    let booking = RwSignal::new(booking);
    Effect::new(move |_| {
        follow(booking);
        check_when_shown(booking);
    });
    let left_s = RwSignal::new(None);
    Effect::new(move |_| events::every(1_000, move || left_s.set(count_down(booking))));
    Effect::new(move |_| {
        if booking.with(|booking| booking.state == BookingState::Confirmed) {
            payment_retry::forget_buyer();
        }
    });
    let words = Memo::new(move |_| booking.with(words));
    let is_cancelling = RwSignal::new(false);
    let text = move |key: &'static str| booking.with(|booking| booking_message(key, booking));
    let has_priority_action = move || {
        let is_cancelling = is_cancelling.get();
        booking.with(|booking| has_priority_action(booking, is_cancelling))
    };
    view! {
        <section class="booking-status" data-tone=move || words.get().tone>
            <p class="booking-mark" aria-hidden="true">{move || words.get().mark}</p>
            // Around the heading, because a role on the heading itself would replace its role.
            <div class="booking-said" role="status">
                <h1 data-testid="booking-state" data-state=move || booking.with(|booking| booking.state.as_str())
                    data-money=move || booking.with(|booking| booking.money.as_str())>
                    {move || text(words.get().title)}
                </h1>
                <p class="booking-words">{move || text(words.get().text)}</p>
                <p class="booking-money" data-testid="booking-money">{move || booking.with(money_in_words)}</p>
                {move || booking.with(parts_in_words).into_iter().map(|words| view! {
                    <p class="booking-money quiet" data-testid="booking-fee">{words}</p>
                }).collect_view()}
            </div>
            // Outside the status, so that its seconds are not announced.
            {move || left_s.get().map(|left| view! { <p class="countdown" role="timer" data-testid="time-left">{time_left(left)}</p> })}
            {actions::another_card(booking)}
            <p class="booking-next">{move || booking.with(next_step).map(|(href, words, name)| view! {
                <a class=move || if has_priority_action() { "button button-quiet" } else { "button" } data-testid=name href=href>{say!(words)}</a>
            })}</p>
            {actions::seat_offer(booking)}
            {cancelling::offer(booking, is_cancelling)}
            {sold_once::seat_check(booking)}
            // The history comes last, after everything that the buyer can do.
            <ol class="booking-story" data-testid="booking-story">{move || booking.with(story)}</ol>
        </section>
    }
}

/// Tone of a booking's status, for the colour of its mark: `done`, `waiting` or `sorry`.
pub fn tone(booking: &FollowedBooking) -> &'static str {
    words(booking).tone
}

/// The status of a booking as static text, for pages without a script.
pub fn static_status(booking: &FollowedBooking) -> impl IntoView + use<> {
    let words = words(booking);
    let (title, text) = (booking_message(words.title, booking), booking_message(words.text, booking));
    let parts = parts_in_words(booking).into_iter().map(|words| view! { <p class="booking-money quiet">{words}</p> });
    view! {
        <p class="booking-mark" aria-hidden="true">{words.mark}</p>
        <div class="booking-said">
            <h1 data-testid="booking-state" data-state=booking.state.as_str() data-money=booking.money.as_str()>{title}</h1>
            <p class="booking-words">{text}</p>
            <p class="booking-money" data-testid="booking-money">{money_in_words(booking)}</p>
            {parts.collect_view()}
        </div>
    }
}

/// The history of a booking as static text.
pub fn static_history(booking: &FollowedBooking) -> impl IntoView + use<> {
    view! { <ol class="booking-story" data-testid="booking-story">{story(booking)}</ol> }
}

/// The history, with times.
fn story(booking: &FollowedBooking) -> impl IntoView + use<> {
    let line = |entry: &StepView| {
        let (words, time) = (step_in_words(entry), time_in_words(entry));
        let (step, at) = (entry.step.clone(), entry.at.clone());
        view! { <li data-step=step><span>{words}</span><time class="quiet" datetime=at>{time}</time></li> }
    };
    booking.steps.iter().map(line).collect_view()
}

/// A step in the language of the page. Unknown steps keep the API's words.
fn step_in_words(step: &StepView) -> String {
    match (step.step.as_str(), &step.note, &step.seats, step.amount) {
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
        ("failed", ..) => say!(match step.why.as_deref() {
            Some("declined") => "story.declined",
            Some("stopped") => "story.stopped",
            _ => "story.failed",
        }),
        ("expired", ..) => say!("story.expired"),
        ("moved", ..) => say!("story.moved"),
        ("relocated", Some(note), ..) => say!("story.relocated", note = note),
        ("other_seats_taken", ..) => say!("story.other_seats_taken"),
        ("lost", ..) if step.why.as_deref() == Some("card_limit") => say!("story.card_limit"),
        // The API's words name the seats, in English.
        ("lost", ..) if current() != Language::English => say!("story.lost"),
        _ => step.words.clone(),
    }
}

fn time_in_words(step: &StepView) -> String {
    Moment::parse(&step.at_theatre).map_or_else(|| step.at_local.clone(), |at| at.to_the_second(current()))
}

/// Returns true if nothing can change any more without a request.
fn is_settled(booking: &FollowedBooking) -> bool {
    let money_moves = match booking.money {
        MoneyState::Pending | MoneyState::Refunding => true,
        // Paid without seats: it will be refunded.
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

/// The seconds until the payment deadline. After it, the seats are not shown as the buyer's any more.
fn count_down(booking: RwSignal<FollowedBooking>) -> Option<i64> {
    let left_ms = booking.with_untracked(until_ms)? - clock::server_now()?.0;
    if left_ms <= 0 {
        booking.update(|booking| {
            booking.kept_hold = None;
            booking.expires_at_theatre = None;
        });
        return None;
    }
    Some(left_ms / SECOND_MS)
}

/// Reads the booking, which also sets the clock. `None` without an answer, or if nothing has changed.
async fn read_change(booking: RwSignal<FollowedBooking>) -> Option<FollowedBooking> {
    let (id, is_submitted) = booking.with_untracked(|shown| (shown.id, shown.is_submitted));
    let now = calls::get::<FollowedBooking>(&format!("/api/v1/bookings/{id}")).await.ok()?;
    let now = FollowedBooking { is_submitted, ..now };
    booking.with_untracked(|shown| *shown != now).then_some(now)
}

/// Reads a settled booking again when its tab is shown: meanwhile its show may have moved, or its kept hold ended. The
/// clock may have stopped while the device slept.
fn check_when_shown(booking: RwSignal<FollowedBooking>) {
    let check = move || {
        if browser::is_visible() && booking.with_untracked(is_settled) {
            spawn_local(async move {
                if read_change(booking).await.is_some() {
                    // The seats, the screen and the total are outside of the island.
                    browser::reload();
                }
            });
        }
    };
    events::on_document("visibilitychange", move |_| check());
    events::on_restored(check);
}

fn follow(booking: RwSignal<FollowedBooking>) {
    spawn_local(async move {
        if booking.with_untracked(|booking| booking.kept_hold.is_some()) {
            // Nothing changes any more, but the answer sets the clock of the countdown.
            drop(read_change(booking).await);
        }
        let mut pause_ms = FIRST_PAUSE_MS;
        while !booking.with_untracked(is_settled) {
            events::after(pause_ms / 2 + ids::jitter(pause_ms / 2)).await;
            if let Some(now) = read_change(booking).await {
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
    use serde_json::json;

    use super::*;
    use language::with_language;

    pub(super) fn followed(state: BookingState, money: MoneyState) -> FollowedBooking {
        let anna = json!({ "name": "Anna", "email": "anna@example.org" });
        let booking = json!({
            "id": Uuid::nil(), "show": Uuid::nil(), "state": state, "money": money, "buyer": anna, "holder": anna,
            "total": { "minor": 1_250, "currency": "EUR" }, "seats": [],
        });
        serde_json::from_value(booking).expect("the fields without a default")
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
    fn polling_ends_once_seats_and_money_are_final() {
        let confirmed = FollowedBooking {
            ticket_url: Some("/ticket".to_owned()),
            ..followed(BookingState::Confirmed, MoneyState::Paid)
        };
        assert!(is_settled(&confirmed));
        assert!(is_settled(&followed(BookingState::Cancelled, MoneyState::Failed)));
        assert!(is_settled(&followed(BookingState::Expired, MoneyState::Refunded)));
        assert!(!is_settled(&followed(BookingState::PaymentPending, MoneyState::Pending)));
        assert!(!is_settled(&followed(BookingState::Cancelled, MoneyState::Paid)), "a refund is due");
        assert!(!is_settled(&followed(BookingState::Cancelled, MoneyState::Refunding)));
        assert!(is_settled(&followed(BookingState::Expired, MoneyState::Moved)));
        let mut part = confirmed;
        let euro = |minor| Money::new(minor, domain::money::Currency::parse("EUR").expect("a code"));
        let (amount, fee) = (euro(9), euro(1));
        part.refunds = vec![RefundView { number: 1, amount, fee, seats: vec![], settled: false, came_back: false }];
        assert!(!is_settled(&part), "one refund is pending");
        part.refunds[0].settled = true;
        assert!(is_settled(&part));
    }

    #[test]
    fn the_history_is_in_the_language_of_the_page() {
        let german = |step: StepView| with_language(Language::German, || (step_in_words(&step), time_in_words(&step)));
        let back = Money::new(1_125, domain::money::Currency::parse("EUR").expect("a code"));
        let (words, time) = german(StepView { amount: Some(back), ..step("refunded") });
        assert_eq!((words.as_str(), time.as_str()), ("11,25\u{a0}€ erstattet", "Sa., 21. Nov., 20:15:07"));
        let (words, _) = german(StepView { note: Some("Der Projektor ist defekt.".to_owned()), ..step("cancelled") });
        assert_eq!(words, "Vom Kino storniert. Der Projektor ist defekt.");
        assert_eq!(german(step("paid")).0, "Bezahlt");
        assert_eq!(german(step("brand_new")).0, "In English");
        let failed = |why: Option<&str>| german(StepView { why: why.map(str::to_owned), ..step("failed") }).0;
        let texts = [Some("declined"), Some("stopped"), Some("who_knows"), None].map(failed);
        let unknown = "Die Zahlung ist fehlgeschlagen";
        assert_eq!(texts, ["Ihre Bank hat die Karte abgelehnt", "Sie haben die Zahlung abgebrochen", unknown, unknown]);
    }
}
