//! The waiting list box of a sold-out show: joining, the visitor's position, and offers.
//!
//! An offer is a hold of this visitor, so the cart shows it.

use domain::api::waiting_list::{OfferView, WaitingRequest, WaitingState, WaitingView};
use domain::time::Timestamp;
use language::{current, number, say};
use leptos::either::{Either, EitherOf3};
use leptos::ev::SubmitEvent;
use leptos::prelude::*;
use leptos::task::spawn_local;
use uuid::Uuid;

use super::SHOW;
use crate::browser::{self, calls, clock, events, ids, is_visible};
use crate::checkout::{WAITING_LIST, wrong_email};
use crate::seat_map::SEATS;
use crate::seat_map::notice::Notice;
use crate::seat_map::own_seats::cart::Cart;
use crate::seat_map::own_seats::own_hold;
use crate::seat_map::session::MapSession;
use crate::two_press_button::two_press_button;

/// Polling interval while waiting, milliseconds. An offer lasts minutes.
const POLL_EVERY_MS: u32 = 5_000;
/// Polling interval while the page is hidden, milliseconds. Its title announces an offer.
const POLL_HIDDEN_EVERY_MS: u32 = 30_000;
/// Focus targets after joining or leaving: the box, or the seats if it is gone.
const FOCUS_TARGETS: &[&str] = &[".waiting", SEATS];
/// Id of the address.
const EMAIL: &str = "waiting-email";
/// Id of the error.
const ERROR: &str = "waiting-error";

#[derive(Clone, Copy)]
struct WaitingEntry {
    session: MapSession,
    place: RwSignal<Option<WaitingView>>,
    quantity: RwSignal<u32>,
    email: RwSignal<String>,
    error: RwSignal<Option<String>>,
    busy: RwSignal<bool>,
    /// The last request and its key. A press after an unexplained failure repeats the same request.
    attempt: StoredValue<Option<(WaitingRequest, String)>>,
}

/// The box. Shown only while there is nothing to take.
pub fn waiting_box(session: MapSession) -> impl IntoView {
    let own = WaitingEntry {
        session,
        place: RwSignal::new(None),
        quantity: RwSignal::new(1),
        email: RwSignal::new(String::new()),
        error: RwSignal::new(None),
        busy: RwSignal::new(false),
        attempt: StoredValue::new(None),
    };
    let is_needed = Memo::new(move |_| session.is_sold_out() || session.are_others_waiting.get());
    // Announced only to visitors who were choosing. A freshly opened page says it in the cart.
    Effect::new(move |before: Option<bool>| {
        let is_sold_out = session.is_sold_out();
        if is_sold_out && before == Some(false) && session.cart.with_untracked(Cart::is_empty) {
            session.announcement.set(say!("map.sold_out"));
        }
        is_sold_out
    });
    // Read only once needed: most visitors of a show can simply take seats.
    Effect::new(move |_| {
        if is_needed.get() {
            own.poll();
        }
    });
    let poll_if = move |is_seen: bool| {
        if own.is_polled() && is_visible() == is_seen {
            own.poll();
        }
    };
    events::every(POLL_EVERY_MS, move || poll_if(true));
    events::every(POLL_HIDDEN_EVERY_MS, move || poll_if(false));
    events::on_document("visibilitychange", move |_| poll_if(true));
    // An ended hold may have been the offer.
    let held = Memo::new(move |_| session.cart.with(|cart| cart.held().map(|held| held.id)));
    Effect::new(move |before: Option<Option<Uuid>>| {
        let held = held.get();
        if held.is_none() && before.flatten().is_some() && own.is_polled() {
            own.poll();
        }
        held
    });
    // A memo, so that typed text survives all other changes.
    let is_shown = Memo::new(move |_| {
        let in_line = match own.state() {
            None | Some(WaitingState::Taken) => false,
            // During its payment the hold lasts longer than the offer.
            Some(WaitingState::Lapsed) => !session.cart.with(Cart::is_paying),
            Some(_) => true,
        };
        in_line || (is_needed.get() && session.cart.with(Cart::is_empty))
    });
    move || is_shown.get().then(|| content(own))
}

impl WaitingEntry {
    /// Returns true if the entry may change by itself. Not polled during a payment.
    fn is_polled(self) -> bool {
        self.place.with_untracked(|place| place.as_ref().is_some_and(may_change)) && !self.session.is_paying()
    }

    /// The entry's current state, if known.
    fn state(self) -> Option<WaitingState> {
        let held = self.session.cart.with(|cart| cart.held().map(|held| held.id));
        self.place.with(|place| place.as_ref().map(|place| state_at(place, held, clock::server_now())))
    }

    /// Returns true if the cart's hold is the offer.
    fn is_in_cart(self) -> bool {
        let held = self.session.cart.with_untracked(|cart| cart.held().map(|held| held.id));
        self.place.with_untracked(|place| held.is_some() && held == offered_hold(place.as_ref()))
    }

    fn path(self) -> String {
        format!("/api/v1/shows/{}/waiting-list", self.session.show)
    }

    fn poll(self) {
        spawn_local(async move {
            // Without an answer the next poll tries again.
            if let Ok(place) = calls::get::<Option<WaitingView>>(&self.path()).await {
                self.update(place);
            }
        });
    }

    fn update(self, place: Option<WaitingView>) {
        let is_new_offer = self.place.with_untracked(|known| is_new_offer(known.as_ref(), place.as_ref()));
        // A freshly opened page shows the offer in the box.
        let should_notify = is_new_offer && self.place.with_untracked(Option::is_some);
        if self.place.with_untracked(|known| *known != place) {
            self.place.set(place);
        }
        if should_notify {
            // The visitor may be looking at another tab.
            let headline = Some(say!("wait.your_turn_short"));
            self.session.notice.set(Some(Notice { headline, is_good: true, ..Notice::new(say!("wait.your_turn")) }));
        }
        if is_new_offer {
            own_hold::refresh(self.session);
        }
    }

    fn join(self) {
        // In a show that is not sold out, they want what was refused.
        let category = self.session.waited_category.get_value().filter(|_| !self.session.is_sold_out());
        let email = self.email.get_untracked().trim().to_owned();
        let request = WaitingRequest { quantity: self.quantity.get_untracked(), email, category };
        if let Some(wrong) = wrong_email(&request.email) {
            self.error.set(Some(say!(wrong)));
            browser::focus(EMAIL);
            return;
        }
        if self.busy.get_untracked() {
            return;
        }
        self.busy.set(true);
        self.error.set(None);
        let same = self.attempt.get_value().filter(|(earlier, _)| *earlier == request);
        let (request, key) = same.unwrap_or_else(|| (request, ids::new_key()));
        self.attempt.set_value(Some((request.clone(), key.clone())));
        spawn_local(async move {
            match calls::change::<WaitingView>(&self.path(), &key, &request).await {
                Ok(place) => {
                    self.attempt.set_value(None);
                    self.update(Some(place));
                    browser::keep_focus(FOCUS_TARGETS);
                }
                Err(failure) if failure.code() == "already_waiting" => self.poll(),
                Err(failure) if failure.code() == "waiting_room" => {
                    browser::go_to(&format!("/shows/{}?queue", self.session.show));
                }
                Err(failure) => {
                    if (400..500).contains(&failure.status()) {
                        self.attempt.set_value(None);
                    }
                    self.error.set(Some(failure.in_words("common.unreachable")));
                }
            }
            self.busy.set(false);
        });
    }

    fn leave(self) {
        if self.is_in_cart() {
            // Cleared at once: the live map may report the release before the answer, and a release by this button
            // needs neither an explanation nor an offer to reclaim.
            own_hold::finish(self.session);
            self.place.set(None);
            browser::keep_focus(FOCUS_TARGETS);
        }
        spawn_local(async move {
            match calls::remove(&self.path(), &ids::new_key()).await {
                Err(failure) if failure.status() != 404 => {
                    self.error.set(Some(failure.in_words("common.unreachable")));
                    self.poll();
                }
                _ => self.place.set(None),
            }
            own_hold::refresh(self.session);
            browser::keep_focus(FOCUS_TARGETS);
        });
    }
}

/// Returns true if the entry can change without the visitor: an offer comes or lapses.
fn may_change(place: &WaitingView) -> bool {
    matches!(place.state, WaitingState::Waiting | WaitingState::Offered)
}

/// Returns true if a hold is offered that was not offered before. The same offer again is not new.
fn is_new_offer(known: Option<&WaitingView>, place: Option<&WaitingView>) -> bool {
    offered_hold(place).is_some() && offered_hold(place) != offered_hold(known)
}

/// The entry's state now, with this hold in the cart. An offer past its time has lapsed even without an answer from the
/// server. One still in the cart is being paid for.
fn state_at(place: &WaitingView, held: Option<Uuid>, now: Option<Timestamp>) -> WaitingState {
    let is_over = |offer: &OfferView| held != Some(offer.hold) && now.is_some_and(|now| now.0 >= offer.expires_at_ms);
    match &place.offer {
        Some(offer) if is_over(offer) => WaitingState::Lapsed,
        _ => place.state,
    }
}

fn offered_hold(place: Option<&WaitingView>) -> Option<Uuid> {
    place?.offer.as_ref().map(|offer| offer.hold)
}

fn content(own: WaitingEntry) -> impl IntoView {
    let state = Memo::new(move |_| own.state());
    view! {
        <section class="waiting" id=WAITING_LIST tabindex="-1" data-testid="waiting-list" aria-label=say!("wait.label")>
            {move || match state.get() {
                Some(WaitingState::Waiting) => EitherOf3::A(in_line(own)),
                Some(WaitingState::Offered) => EitherOf3::B(offered(own)),
                other => EitherOf3::C(form(own, other == Some(WaitingState::Lapsed))),
            }}
            <p class="field-error" role="alert" id=ERROR>{move || own.error.get()}</p>
        </section>
    }
}

fn in_line(own: WaitingEntry) -> impl IntoView {
    let place = move || own.place.with(|place| place.as_ref().map(place_in_words).unwrap_or_default());
    view! {
        <p role="status" data-testid="waiting-place">{place}</p>
        {leave_button(own, "wait.leave", "wait.leave_sure")}
        {other_times()}
    }
}

/// The link to other shows of the film, from the page of the show.
fn other_times() -> Option<impl IntoView> {
    let film = browser::element(SHOW)?.get_attribute("data-film")?;
    Some(view! { <p><a data-testid="other-times" href=film>{say!("wait.other_times")}</a></p> })
}

/// The duration of an offer, from the page of the show.
fn offer_minutes() -> Option<i64> {
    browser::element(SHOW)?.get_attribute("data-offer-minutes")?.parse().ok()
}

fn offered(own: WaitingEntry) -> impl IntoView {
    view! {
        <p role="status" data-testid="waiting-offer">{say!("wait.offer")}</p>
        {leave_button(own, "wait.let_go", "wait.let_go_sure")}
    }
}

fn leave_button(own: WaitingEntry, label: &'static str, question: &'static str) -> impl IntoView {
    two_press_button("waiting-leave", "button button-quiet waiting-leave", label, question, move || own.leave())
}

fn form(own: WaitingEntry, has_lapsed: bool) -> impl IntoView {
    let intro = if has_lapsed {
        Either::Left(view! { <p data-testid="waiting-lapsed">{say!("wait.lapsed")}</p> })
    } else {
        let intro = move |minutes| {
            if own.session.is_sold_out() {
                say!("wait.intro", minutes = minutes)
            } else {
                say!("problem.waiting_list_first")
            }
        };
        Either::Right(offer_minutes().map(|minutes| view! { <p>{move || intro(minutes)}</p> }))
    };
    let submit = move |event: SubmitEvent| {
        event.prevent_default();
        own.join();
    };
    let most = u32::try_from(own.session.cart.with_untracked(Cart::limit)).unwrap_or(u32::MAX);
    let step = move |by: i32| {
        own.quantity.update(|quantity| *quantity = quantity.saturating_add_signed(by).clamp(1, most));
    };
    view! {
        {intro}
        <form class="waiting-form" novalidate on:submit=submit>
            <div class="waiting-quantity">
                <span id="waiting-quantity-label">{say!("wait.how_many")}</span>
                <span class="stepper" role="group" aria-labelledby="waiting-quantity-label">
                    <button type="button" class="stepper-button" aria-label=say!("wait.less") on:click=move |_| step(-1)>"−"</button>
                    <output class="stepper-count" data-testid="waiting-quantity">{move || number(i64::from(own.quantity.get()), current())}</output>
                    <button type="button" class="stepper-button" aria-label=say!("wait.more") on:click=move |_| step(1)>"+"</button>
                </span>
            </div>
            <div class="field">
                <label for=EMAIL>{say!("wait.email")}</label>
                <input id=EMAIL name=EMAIL type="email" autocomplete="email" inputmode="email" required aria-describedby=ERROR
                    prop:value=own.email.get_untracked()
                    on:input=move |event| own.email.set(event_target_value(&event)) />
            </div>
            <button type="submit" class="button" data-testid="waiting-join"
                aria-disabled=move || if own.busy.get() { "true" } else { "false" }>{say!("wait.join")}</button>
        </form>
        {other_times()}
    }
}

fn place_in_words(place: &WaitingView) -> String {
    say!("wait.place", ahead = place.ahead, seats = place.quantity, email = &place.email)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(ahead: u32, quantity: u32) -> WaitingView {
        WaitingView {
            id: Uuid::nil(),
            show: Uuid::nil(),
            quantity,
            category: None,
            email: "a@example.org".to_owned(),
            state: WaitingState::Waiting,
            ahead,
            offer: None,
            joined_at: String::new(),
        }
    }

    fn offered(hold: u128) -> WaitingView {
        let offer = OfferView {
            hold: Uuid::from_u128(hold),
            seats: Vec::new(),
            places: Vec::new(),
            expires_at: String::new(),
            expires_at_ms: 1,
        };
        WaitingView { state: WaitingState::Offered, offer: Some(offer), ..place(0, 1) }
    }

    #[test]
    fn an_entry_is_polled_until_its_end_and_an_offer_is_new_once() {
        assert!(may_change(&place(3, 1)) && may_change(&offered(1)));
        for state in [WaitingState::Taken, WaitingState::Lapsed, WaitingState::Over] {
            assert!(!may_change(&WaitingView { state, ..place(0, 1) }), "{state:?}");
        }
        let (waiting, first, second) = (place(0, 1), offered(1), offered(2));
        assert!(is_new_offer(Some(&waiting), Some(&first)) && is_new_offer(None, Some(&first)));
        assert!(!is_new_offer(Some(&first), Some(&first)), "the same offer, read again");
        assert!(is_new_offer(Some(&first), Some(&second)));
        assert!(!is_new_offer(Some(&first), Some(&waiting)) && !is_new_offer(Some(&first), None));
    }

    #[test]
    fn an_offer_lapses_with_its_time_unless_it_is_being_paid_for() {
        // It lasts until 1.
        let (offer, hold) = (offered(7), Some(Uuid::from_u128(7)));
        let state = |held, now: Option<i64>| state_at(&offer, held, now.map(Timestamp));
        assert_eq!(state(None, Some(0)), WaitingState::Offered, "the cart has not loaded it yet");
        assert_eq!(state(None, None), WaitingState::Offered, "the time is unknown");
        assert_eq!(state(hold, Some(1)), WaitingState::Offered);
        assert_eq!(state(None, Some(1)), WaitingState::Lapsed);
        assert_eq!(state(Some(Uuid::from_u128(8)), Some(1)), WaitingState::Lapsed, "another hold");
        assert_eq!(state_at(&place(0, 1), None, Some(Timestamp(1))), WaitingState::Waiting);
    }

    #[test]
    fn a_position_is_worded_for_next_one_and_many() {
        assert!(place_in_words(&place(0, 1)).starts_with("You are next in line, waiting for one seat."));
        assert!(place_in_words(&place(1, 2)).starts_with("One person is ahead of you, waiting for 2 seats together."));
        assert!(place_in_words(&place(7, 2)).starts_with("7 people are ahead of you"));
    }
}
