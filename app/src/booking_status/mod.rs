//! How a booking stands, live: one island on the booking page.
//!
//! Asks the server, less and less often, until nothing more can happen; the words for every state of
//! seats and money are here, so that nobody ever pays and is left without one.

#![allow(missing_docs, reason = "the island macro makes a struct for the props and gives it no words")]

mod asking;
mod cancelling;
mod seat_offer;

use domain::api::cancelling::{RefundView, StepView};
use domain::api::moving::SeatOffer;
use domain::api::{BookingState, BookingView, MoneyState, SeatLine};
use domain::money::Money;
use leptos::prelude::*;
use leptos::task::spawn_local;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::browser::{calls, events, ids};
use crate::buyer_details;
use crate::language::{Language, Moment, current};
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
pub struct Standing {
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
    /// The gateway's page, while it waits for the buyer.
    pub pay_url: Option<String>,
    /// The ticket page, once confirmed.
    pub ticket_url: Option<String>,
    /// Its seats.
    pub seats: Vec<SeatLine>,
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
}

impl From<&BookingView> for Standing {
    fn from(booking: &BookingView) -> Self {
        Self {
            id: booking.id,
            show: booking.show,
            state: booking.state,
            money: booking.money,
            total: booking.total,
            pay_url: booking.pay_url.clone(),
            ticket_url: booking.ticket_url.clone(),
            seats: booking.seats.clone(),
            cancel_until_ms: booking.cancel_until_ms,
            refunds: booking.refunds.clone(),
            steps: booking.steps.clone(),
            moved_to: booking.moved_to,
            seat_offer: booking.seat_offer.clone(),
        }
    }
}

/// State, money and what to do next, followed until final.
#[island]
pub fn BookingStatus(
    /// The booking as the page was rendered.
    booking: Standing,
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
    view! {
        <section class="booking-status" data-tone=move || words.get().tone>
            <p class="booking-mark" aria-hidden="true">{move || words.get().mark}</p>
            // Around the heading, not on it: a heading with a role of its own is no heading any more.
            <div class="booking-said" role="status">
                <h1 data-testid="booking-state" data-state=move || booking.with(|booking| booking.state.as_str())
                    data-money=move || booking.with(|booking| booking.money.as_str())>
                    {move || say!(words.get().title)}
                </h1>
                <p class="booking-words">{move || say!(words.get().text)}</p>
                <p class="booking-money" data-testid="booking-money">{move || booking.with(money_in_words)}</p>
                {move || booking.with(parts_in_words).into_iter().map(|words| view! {
                    <p class="booking-money quiet" data-testid="booking-fee">{words}</p>
                }).collect_view()}
            </div>
            <p class="booking-next">{move || booking.with(next_step).map(|(href, words, name)| view! {
                <a class="button" data-testid=name href=href>{say!(words)}</a>
            })}</p>
            // What waits for an answer comes before what is over.
            {seat_offer::choice(booking)}
            <ol class="booking-story" data-testid="booking-story">{move || booking.with(story)}</ol>
            {cancelling::offer(booking)}
        </section>
    }
}

/// What happened, with times.
fn story(booking: &Standing) -> impl IntoView + use<> {
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
        ("issued", ..) => say!("story.issued"),
        ("failed", ..) => say!("story.failed"),
        ("expired", ..) => say!("story.expired"),
        ("moved", ..) => say!("story.moved"),
        ("relocated", Some(note), ..) => say!("story.relocated", note = note),
        ("other_seats_taken", ..) => say!("story.other_seats_taken"),
        // The API says in English which seats it was.
        ("lost", ..) if current() != Language::English => say!("story.lost"),
        _ => told.words.clone(),
    }
}

fn time_in_words(told: &StepView) -> String {
    Moment::parse(&told.at_theatre).map_or_else(|| told.at_local.clone(), |at| at.to_the_second(current()))
}

/// What it means to the one who bought. A payment that was stopped because somebody cancelled did not fail.
fn words(booking: &Standing) -> Words {
    let cancelled = booking.steps.iter().any(|step| step.step == "cancelled");
    let money = if cancelled && booking.money == MoneyState::Failed { MoneyState::None } else { booking.money };
    Words::of(booking.state, money)
}

/// What a state means to the one who bought: a tone, a mark, and the keys of a title and a text.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Words {
    tone: &'static str,
    mark: &'static str,
    title: &'static str,
    text: &'static str,
}

impl Words {
    fn of(state: BookingState, money: MoneyState) -> Self {
        use BookingState as S;
        let (tone, mark, title, text) = match (state, money) {
            (S::Created | S::SeatsLocked, _) => ("waiting", "…", "status.not_paid_title", "status.not_paid_text"),
            (S::PaymentPending, _) => ("waiting", "…", "status.waiting_title", "status.waiting_text"),
            (S::PaymentSucceeded, _) => ("waiting", "…", "status.issuing_title", "status.issuing_text"),
            (S::Confirmed, _) => ("done", "✓", "status.done_title", "status.done_text"),
            (S::Cancelled | S::Expired, MoneyState::Paid) => ("waiting", "…", "status.late_title", "status.late_text"),
            (S::Cancelled | S::Expired, MoneyState::Moved) => ("done", "✓", "status.moved_title", "status.moved_text"),
            (S::Cancelled | S::Expired, MoneyState::Refunding) => {
                ("sorry", "×", "status.refunding_title", "status.refunding_text")
            }
            (S::Cancelled | S::Expired, MoneyState::Refunded) => {
                ("sorry", "×", "status.refunded_title", "status.refunded_text")
            }
            (S::Cancelled, MoneyState::Failed) => ("sorry", "×", "status.failed_title", "status.failed_text"),
            (S::Cancelled, _) => ("sorry", "×", "status.cancelled_title", "status.cancelled_text"),
            (S::Expired, _) => ("sorry", "×", "status.expired_title", "status.expired_text"),
        };
        Self { tone, mark, title, text }
    }
}

fn money_in_words(booking: &Standing) -> String {
    let total = booking.total;
    // All that was left of it; parts that were given back before have lines of their own below.
    let whole = booking.refunds.iter().find(|refund| refund.number == 0);
    match (booking.money, whole) {
        (MoneyState::None, _) => say!("status.money_none", total = total),
        (MoneyState::Pending, _) => say!("status.money_pending", total = total),
        (MoneyState::Paid, _) => say!("status.money_paid", total = total),
        (MoneyState::Failed, _) => say!("status.money_failed"),
        (MoneyState::Refunding, Some(refund)) => say!("status.money_refunding", amount = refund.amount),
        (MoneyState::Refunding, None) => say!("status.money_refunding_all"),
        (MoneyState::Refunded, Some(refund)) if refund.fee.minor > 0 => {
            say!("status.money_refunded_less_fee", amount = refund.amount, fee = refund.fee)
        }
        (MoneyState::Refunded, Some(refund)) => say!("status.money_refunded", amount = refund.amount),
        (MoneyState::Refunded, None) => say!("status.money_refunded_all"),
        (MoneyState::Moved, _) => say!("status.money_moved", total = total),
    }
}

/// What came back of each part that was given back, and what was kept of it.
fn parts_in_words(booking: &Standing) -> Vec<String> {
    let parts = booking.refunds.iter().filter(|refund| refund.number > 0 && refund.fee.minor > 0);
    parts
        .map(|part| say!("status.part_back", seats = &part.seats.join(", "), amount = part.amount, fee = part.fee))
        .collect()
}

/// The one thing to do now: where it leads, the key of what it is called, and its name for tests.
fn next_step(booking: &Standing) -> Option<(String, &'static str, &'static str)> {
    let show = format!("/shows/{}", booking.show);
    if let Some(other) = booking.moved_to {
        return Some((format!("/bookings/{other}"), "status.next_moved", "moved-to"));
    }
    Some(match (booking.state, &booking.ticket_url, &booking.pay_url) {
        (BookingState::Confirmed, Some(ticket), _) => (ticket.clone(), "status.next_tickets", "ticket-link"),
        (BookingState::Created | BookingState::SeatsLocked | BookingState::PaymentPending, _, Some(pay)) => {
            (pay.clone(), "status.next_pay", "pay-link")
        }
        (BookingState::Created | BookingState::SeatsLocked, _, None) => {
            (show, "status.next_back_to_pay", "back-to-show")
        }
        (state, ..) if state.is_final() => (show, "status.next_back", "back-to-show"),
        _ => return None,
    })
}

/// Whether nothing more can happen without somebody's doing.
fn is_settled(booking: &Standing) -> bool {
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

fn follow(booking: RwSignal<Standing>) {
    let path = booking.with_untracked(|booking| format!("/api/v1/bookings/{}", booking.id));
    spawn_local(async move {
        let mut pause_ms = FIRST_PAUSE_MS;
        while !booking.with_untracked(is_settled) {
            events::after(pause_ms / 2 + ids::jitter(pause_ms / 2)).await;
            if let Ok(now) = calls::get::<Standing>(&path).await
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
    use domain::booking::ALL_STATES;

    #[test]
    fn paid_without_seats_always_says_that_the_money_comes_back() {
        for state in [BookingState::Cancelled, BookingState::Expired] {
            for money in [MoneyState::Paid, MoneyState::Refunding, MoneyState::Refunded, MoneyState::Moved] {
                assert!(say!(Words::of(state, money).text).contains("money"), "{state:?} {money:?}");
            }
        }
    }

    #[test]
    fn following_ends_only_where_seats_and_money_rest() {
        let standing = |state, money, ticket_url: Option<&str>| Standing {
            id: Uuid::nil(),
            show: Uuid::nil(),
            state,
            money,
            total: Money::new(1_250, domain::money::Currency::parse("EUR").expect("a code")),
            pay_url: None,
            ticket_url: ticket_url.map(str::to_owned),
            seats: vec![],
            cancel_until_ms: None,
            refunds: vec![],
            steps: vec![],
            moved_to: None,
            seat_offer: None,
        };
        assert!(is_settled(&standing(BookingState::Confirmed, MoneyState::Paid, Some("/ticket"))));
        assert!(is_settled(&standing(BookingState::Cancelled, MoneyState::Failed, None)));
        assert!(is_settled(&standing(BookingState::Expired, MoneyState::Refunded, None)));
        assert!(!is_settled(&standing(BookingState::PaymentPending, MoneyState::Pending, None)));
        assert!(!is_settled(&standing(BookingState::Cancelled, MoneyState::Paid, None)), "it has to come back");
        assert!(!is_settled(&standing(BookingState::Cancelled, MoneyState::Refunding, None)));
        assert!(is_settled(&standing(BookingState::Expired, MoneyState::Moved, None)));
        let mut part = standing(BookingState::Confirmed, MoneyState::Paid, Some("/ticket"));
        let euro = |minor| Money::new(minor, domain::money::Currency::parse("EUR").expect("a code"));
        part.refunds = vec![RefundView { number: 1, amount: euro(9), fee: euro(1), seats: vec![], settled: false }];
        assert!(!is_settled(&part), "one seat's money is still on its way");
        part.refunds[0].settled = true;
        assert!(is_settled(&part));
    }

    #[test]
    fn what_somebody_cancelled_is_not_said_to_have_failed() {
        let mut booking = Standing {
            id: Uuid::nil(),
            show: Uuid::nil(),
            state: BookingState::Cancelled,
            money: MoneyState::Failed,
            total: Money::new(1_250, domain::money::Currency::parse("EUR").expect("a code")),
            pay_url: None,
            ticket_url: None,
            seats: vec![],
            cancel_until_ms: None,
            refunds: vec![],
            steps: vec![],
            moved_to: None,
            seat_offer: None,
        };
        assert_eq!(say!(words(&booking).title), "The payment did not go through");
        let step = |step: &str| StepView {
            step: step.to_owned(),
            words: String::new(),
            at: String::new(),
            at_local: String::new(),
            at_theatre: String::new(),
            amount: None,
            seats: None,
            note: None,
        };
        booking.steps = vec![step("paying"), step("cancelled")];
        assert_eq!(say!(words(&booking).title), "Cancelled");
    }

    #[test]
    fn every_state_has_words() {
        for state in ALL_STATES {
            assert!(!Words::of(state, MoneyState::None).title.is_empty());
        }
    }

    #[test]
    fn the_story_is_told_in_the_language_of_the_page() {
        let step = |step: &str, amount, note: Option<&str>| StepView {
            step: step.to_owned(),
            words: "In English".to_owned(),
            at: String::new(),
            at_local: "Sat 21 Nov, 20:15:07".to_owned(),
            at_theatre: "2026-11-21T20:15:07".to_owned(),
            amount,
            seats: None,
            note: note.map(str::to_owned),
        };
        let german = |told: StepView| speaking(Language::German, || (step_in_words(&told), time_in_words(&told)));
        let back = Money::new(1_125, domain::money::Currency::parse("EUR").expect("a code"));
        let (words, time) = german(step("refunded", Some(back), None));
        assert_eq!((words.as_str(), time.as_str()), ("11,25\u{a0}€ zurückgezahlt", "Sa., 21. Nov., 20:15:07"));
        let (words, _) = german(step("cancelled", None, Some("Der Projektor ist defekt.")));
        assert_eq!(words, "Vom Kino storniert. Der Projektor ist defekt.");
        assert_eq!(german(step("paid", None, None)).0, "Bezahlt");
        assert_eq!(german(step("brand_new", None, None)).0, "In English");
    }
}
