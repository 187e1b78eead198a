//! The seller's actions on held seats: sell, give away, keep for the house, hold for a caller, undo. `exchange` has
//! exchanges. One action at a time.
//!
//! Sales and exchanges are idempotent. Without an answer the outcome is unknown, so the same request is repeated under the
//! same key before anything else is sold, regardless of later holds and input.

use domain::api::HoldView;
use domain::api::accounts::Password;
use domain::api::box_office::{
    CallerHold, CallerHoldView, CounterBooking, ExchangeRequest, GuestSeats, HouseSeats, Reason, SaleRequest,
    SeatHolder,
};
use domain::money::Money;
use domain::seats::SeatIndex;
use domain::till::Means;
use language::{StaffError, current, money, say};
use leptos::html::Button;
use leptos::prelude::*;
use leptos::task::spawn_local;
use uuid::Uuid;

use super::exchange::{BookingToExchange, changed_hands, focus_pin};
use super::payment::CounterPayment;
use super::{means_words, newest_refund_in_words};
use crate::browser::calls::{self, Failure};
use crate::browser::{clock, events, focus, has_focus_in, ids, is_visible, keep_focus};
use crate::seat_map::SEATS;
use crate::seat_map::own_seats::{own_hold, wishes};
use crate::seat_map::session::MapSession;
use crate::staff::islands::failure_words;

/// Duration of a caller hold, minutes.
pub(super) const CALLER_MINUTES: u32 = 60;

/// Polling interval of the caller holds, milliseconds. The live map would not do: colleagues hold seats for callers
/// too, and a released seat is free on the map before its hold has ended in the database.
const POLL_CALLERS_EVERY_MS: u32 = 3_000;

/// Id of the retry button, which gets the focus after the pressed button disappeared.
const RETRY_BUTTON: &str = "ask-again";

/// Focus targets after an action that removed its button. An exchange has no button for cash.
pub(super) const FOCUS_AFTER_ACTION: &[&str] = &["#sell-cash", SEATS];

/// Selector of the list of caller holds.
const CALLERS: &str = ".counter-callers";

/// Id of the field for the name on the tickets.
pub(super) const NAME_FIELD: &str = "counter-name";
/// Id of the field for the reason of free tickets and house seats.
pub(super) const REASON_FIELD: &str = "counter-reason";
/// Id of the field for the reason beside a house seat.
pub(super) const HOUSE_REASON_FIELD: &str = "put-back-reason";

#[derive(Clone, Debug)]
pub(super) struct PendingSale {
    intent: SaleIntent,
    key: String,
    /// The price and payment as announced to the customer.
    words: String,
    /// The change that the seller hands over, in words.
    change: Option<String>,
}

#[derive(Clone, Debug)]
pub(super) enum SaleIntent {
    Sale(SaleRequest),
    /// An exchange of this booking; without the PIN, which is never stored.
    Exchange(Uuid, ExchangeRequest),
}

impl SaleIntent {
    const fn hold(&self) -> Uuid {
        match self {
            Self::Sale(intent) => intent.hold,
            Self::Exchange(_, intent) => intent.hold,
        }
    }
}

/// The retry panel, shown instead of the sale while an answer is missing.
pub(super) fn retry_panel(selling: CounterSaleState, pending: PendingSale) -> impl IntoView {
    let button = NodeRef::<Button>::new();
    Effect::new(move |_| {
        if button.get().is_some() {
            focus(RETRY_BUTTON);
        }
    });
    view! {
        <div class="counter-swap" data-testid="unanswered">
            <p>{say!("box_office.unanswered")}" "<strong>{pending.words}</strong></p>
            <div class="counter-pay">
                <button type="button" class="button" id=RETRY_BUTTON data-testid=RETRY_BUTTON node_ref=button
                    aria-disabled=move || selling.disabled_while_busy()
                    on:click=move |_| selling.retry()>{say!("box_office.ask_again")}</button>
            </div>
        </div>
    }
}

/// The state of the sale in one show. A bundle of handles: copy it.
#[derive(Clone, Copy)]
pub(super) struct CounterSaleState {
    pub(super) session: MapSession,
    pub(super) theatre: StoredValue<String>,
    pub(super) busy: RwSignal<bool>,
    pub(super) error: RwSignal<Option<StaffError>>,
    /// Id of the field that was empty at the last attempt.
    missing: RwSignal<Option<&'static str>>,
    pub(super) sold: RwSignal<Option<CounterBooking>>,
    /// Holder of the seat that was tapped last and is not free.
    pub(super) holder: RwSignal<Option<(SeatIndex, SeatHolder)>>,
    pub(super) lookup_error: RwSignal<Option<StaffError>>,
    /// Caller holds of this show.
    pub(super) callers: RwSignal<Vec<CallerHoldView>>,
    pub(super) exchange: RwSignal<Option<BookingToExchange>>,
    /// The money that changes hands after the last sale, exchange or undo, in words. Shown until the next sale.
    pub(super) due: RwSignal<Option<String>>,
    /// The manager who approves an exchange.
    pub(super) manager: RwSignal<Option<Uuid>>,
    pub(super) pin: RwSignal<String>,
    /// Name for the tickets; may be empty.
    pub(super) name: RwSignal<String>,
    /// Address for the tickets; may be empty.
    pub(super) email: RwSignal<String>,
    /// The reason for free tickets and house seats.
    pub(super) reason: RwSignal<String>,
    /// The sale that waits for its payment.
    pub(super) payment: RwSignal<Option<CounterPayment>>,
    /// The sale or exchange without an answer.
    pub(super) unanswered: RwSignal<Option<PendingSale>>,
}

impl CounterSaleState {
    pub(super) fn new(theatre: String, session: MapSession, exchange: Option<BookingToExchange>) -> Self {
        let manager = exchange.as_ref().and_then(|exchange| exchange.managers.first()).map(|first| first.account);
        let selling = Self {
            session,
            theatre: StoredValue::new(theatre),
            busy: RwSignal::new(false),
            error: RwSignal::new(None),
            missing: RwSignal::new(None),
            sold: RwSignal::new(None),
            holder: RwSignal::new(None),
            lookup_error: RwSignal::new(None),
            callers: RwSignal::new(Vec::new()),
            exchange: RwSignal::new(exchange),
            due: RwSignal::new(None),
            manager: RwSignal::new(manager),
            pin: RwSignal::new(String::new()),
            name: RwSignal::new(String::new()),
            email: RwSignal::new(String::new()),
            reason: RwSignal::new(String::new()),
            payment: RwSignal::new(None),
            unanswered: RwSignal::new(None),
        };
        Effect::new(move |_| {
            if let Some(seat) = session.unavailable_tap.get() {
                selling.look_up_holder(seat);
            }
        });
        Effect::new(move |_| selling.close_payment_without_hold());
        if !session.is_read_only {
            selling.poll_callers();
        }
        selling
    }

    /// Address of a box office resource of the theatre.
    pub(super) fn path(&self, rest: &str) -> String {
        format!("/api/v1/theatres/{}/box-office/{rest}", self.theatre.get_value())
    }

    pub(super) fn path_of_show(&self, rest: &str) -> String {
        self.path(&format!("shows/{}/{rest}", self.session.show))
    }

    /// The value of `aria-disabled` of a button that does nothing while an action runs.
    pub(super) fn disabled_while_busy(self) -> &'static str {
        if self.busy.get() { "true" } else { "false" }
    }

    /// The held seats that can be sold: settled, with no action running.
    pub(super) fn ready(&self) -> Option<HoldView> {
        let is_free = !self.busy.get();
        self.session.cart.with(|cart| cart.held().filter(|_| is_free && cart.is_settled()).cloned())
    }

    pub(super) fn sell(self, means: Means, change: Option<String>) {
        let Some(held) = untrack(|| self.ready()) else { return };
        self.sell_hold((held.id, held.total), means, None, change);
    }

    pub(super) fn sell_to_caller(self, caller: &CallerHoldView, means: Means, change: Option<String>) {
        if !self.busy.get_untracked() {
            self.sell_hold((caller.hold, caller.total), means, Some(&caller.name), change);
        }
    }

    /// Sells a hold. A caller's tickets bear the caller's name, others the typed one.
    fn sell_hold(self, (hold, total): (Uuid, Money), means: Means, caller: Option<&str>, change: Option<String>) {
        if self.is_blocked_by_pending() {
            return;
        }
        let request = SaleRequest {
            hold,
            means,
            total_minor: if means == Means::Free { 0 } else { total.minor },
            reason: if means == Means::Free { self.reason.get_untracked().trim().to_owned() } else { String::new() },
            name: caller.map_or_else(|| self.name.get_untracked().trim().to_owned(), str::to_owned),
            email: self.email.get_untracked().trim().to_owned(),
        };
        if means == Means::Free && request.reason.is_empty() {
            self.refuse_missing(REASON_FIELD, say!("box_office.say_why"));
            return;
        }
        let sum = money(Money::new(request.total_minor, total.currency), current());
        let words = [caller.map(str::to_owned), Some(sum), Some(means_words(means))];
        let words = words.into_iter().flatten().collect::<Vec<_>>().join(" · ");
        self.send_new(SaleIntent::Sale(request), words, change, None);
    }

    /// Sends a request for the first time. The PIN is not bound to the key, so a wrong one can be corrected.
    pub(super) fn send_new(self, intent: SaleIntent, words: String, change: Option<String>, pin: Option<Password>) {
        self.send(PendingSale { intent, key: ids::new_key(), words, change }, pin);
    }

    /// Repeats an unanswered request. No PIN is needed: a completed request is answered before the PIN is checked.
    pub(super) fn retry(self) {
        if let Some(pending) = self.unanswered.get_untracked() {
            self.send(pending, None);
        }
    }

    /// Returns true if another request must be repeated first. Shows that as an error.
    pub(super) fn is_blocked_by_pending(self) -> bool {
        let must = self.unanswered.with_untracked(Option::is_some);
        if must {
            self.error.set(Some(say!("box_office.unanswered").into()));
        }
        must
    }

    fn send(self, pending: PendingSale, pin: Option<Password>) {
        self.act(async move {
            let sold = self.request(&pending, pin).await;
            self.pin.set(String::new());
            self.close_payment();
            let is_unknown = sold.as_ref().is_err_and(Failure::may_pass);
            // Set only on a change, so that the form on screen keeps its focus.
            if is_unknown || self.unanswered.with_untracked(Option::is_some) {
                self.unanswered.set(is_unknown.then(|| pending.clone()));
            }
            if sold.as_ref().is_err_and(|failure| failure.code() == "pin_wrong") {
                focus_pin();
            }
            self.complete(pending, sold?);
            Ok(())
        });
    }

    async fn request(self, pending: &PendingSale, pin: Option<Password>) -> Result<CounterBooking, Failure> {
        match &pending.intent {
            SaleIntent::Sale(intent) => calls::change(&self.path_of_show("sales"), &pending.key, intent).await,
            SaleIntent::Exchange(from, intent) => {
                let path = self.path(&format!("bookings/{from}/exchange"));
                let intent = ExchangeRequest { pin, ..intent.clone() };
                calls::change(&path, &pending.key, &intent).await
            }
        }
    }

    fn complete(self, PendingSale { intent, change, .. }: PendingSale, sold: CounterBooking) {
        let held = self.session.cart.with_untracked(|cart| cart.held().map(|held| held.id));
        if held == Some(intent.hold()) {
            self.session.record_booking(intent.hold(), sold.id);
            own_hold::finish(self.session);
        } else {
            if held.is_none() {
                // The map saw the hold end before the answer, and showed a notice.
                self.session.notice.set(None);
            }
            self.load_callers();
        }
        // From the booking as sold. The page may have loaded it later, after a further change.
        let due = changed_hands(&sold).or(change);
        self.announce(say!("box_office.sold", reference = &sold.reference), due);
        if matches!(intent, SaleIntent::Exchange(..)) {
            self.exchange.set(None);
        }
        self.sold.set(Some(sold));
        for text in [self.name, self.email, self.reason] {
            text.set(String::new());
        }
    }

    /// Announces an action, and the money that changes hands after it.
    fn announce(self, done: String, due: Option<String>) {
        let words = [Some(done), due.clone()].into_iter().flatten().collect::<Vec<_>>().join(" ");
        self.session.announcement.set(words);
        self.due.set(due);
    }

    /// Undoes the last sale.
    pub(super) fn undo(self, booking: Uuid) {
        let request = Reason { reason: say!("box_office.undo_reason") };
        self.act(async move {
            let path = self.path(&format!("bookings/{booking}/undo"));
            let undone = calls::change::<CounterBooking>(&path, &ids::new_key(), &request).await?;
            self.sold.set(None);
            self.announce(say!("box_office.undone"), newest_refund_in_words(&undone));
            Ok(())
        });
    }

    pub(super) fn keep_for_house(self) {
        let Some(held) = untrack(|| self.ready()) else { return };
        let Some(seats) = self.seats_without_places(&held) else { return };
        let Some(request) = self.house_request(seats.clone(), true, REASON_FIELD) else { return };
        self.act(async move {
            self.release_hold(held.id).await?;
            let result = self.change_house_seats(request).await;
            self.restore_on_failure(&seats, result)
        });
    }

    pub(super) fn hold_for_caller(self) {
        let Some(held) = untrack(|| self.ready()) else { return };
        let name = self.name.get_untracked().trim().to_owned();
        if name.is_empty() {
            self.refuse_missing(NAME_FIELD, say!("box_office.say_who"));
            return;
        }
        let Some(seats) = self.seats_without_places(&held) else { return };
        let request = CallerHold { seats: seats.clone(), name, minutes: CALLER_MINUTES };
        self.act(async move {
            self.release_hold(held.id).await?;
            let path = self.path_of_show("caller-holds");
            let taken = calls::change::<CallerHoldView>(&path, &ids::new_key(), &request).await;
            // Without an answer they may be held all the same; the list shows it.
            self.load_callers();
            self.restore_on_failure(&seats, taken)?;
            self.name.set(String::new());
            Ok(())
        });
    }

    /// The held seats, if there are no places without numbers. Those would be lost with the released hold, so an error
    /// is shown instead.
    fn seats_without_places(self, held: &HoldView) -> Option<Vec<SeatIndex>> {
        let seats = numbered_seats(held);
        if seats.is_none() {
            self.error.set(Some(say!("box_office.only_seats").into()));
        }
        seats
    }

    pub(super) fn release_caller_hold(self, hold: Uuid) {
        let request = Reason { reason: say!("box_office.caller_gone") };
        self.act(async move {
            let path = self.path_of_show(&format!("caller-holds/{hold}/release"));
            calls::change::<()>(&path, &ids::new_key(), &request).await?;
            self.load_callers();
            Ok(())
        });
    }

    fn poll_callers(self) {
        self.load_callers();
        events::every(POLL_CALLERS_EVERY_MS, move || {
            if is_visible() {
                self.load_callers();
            }
        });
    }

    /// Loads the caller holds. Without an answer the list stays, without the holds whose time is over.
    fn load_callers(self) {
        spawn_local(async move {
            let answer = calls::get::<Vec<CallerHoldView>>(&self.path_of_show("caller-holds")).await;
            let mut callers = answer.unwrap_or_else(|_| self.callers.get_untracked());
            if let Some(now) = clock::server_now() {
                callers.retain(|caller| now.0 < caller.until_ms);
            }
            // Set only on a change. The line with the focus may be gone then.
            if self.callers.with_untracked(|known| *known != callers) {
                let had_focus = has_focus_in(CALLERS);
                self.callers.set(callers);
                if had_focus {
                    keep_focus(FOCUS_AFTER_ACTION);
                }
            }
        });
    }

    /// Releases the hold, because a held seat cannot be given to anyone, not even under another name.
    async fn release_hold(self, hold: Uuid) -> Result<(), Failure> {
        calls::remove(&format!("/api/v1/shows/{}/holds/{hold}", self.session.show), &ids::new_key()).await?;
        own_hold::finish(self.session);
        Ok(())
    }

    /// Holds the seats again after a failure. Seats taken meanwhile stay lost.
    fn restore_on_failure<T>(self, seats: &[SeatIndex], done: Result<T, Failure>) -> Result<T, Failure> {
        if done.is_err() {
            wishes::replace_wish(self.session, seats);
        }
        done
    }

    /// Puts a house seat back on sale.
    pub(super) fn put_back(self, seat: SeatIndex) {
        let Some(request) = self.house_request(vec![seat], false, HOUSE_REASON_FIELD) else { return };
        self.act(async move {
            self.change_house_seats(request).await?;
            self.holder.set(None);
            self.session.notice.set(None);
            Ok(())
        });
    }

    /// Holds a house seat for its guest, without putting it on sale in between.
    pub(super) fn take_for_guest(self, seat: SeatIndex) {
        let Some(reason) = self.house_reason(HOUSE_REASON_FIELD) else { return };
        let request = GuestSeats { seats: vec![seat], reason };
        self.act(async move {
            let path = self.path_of_show("house-seats/hold");
            let taken = calls::change::<HoldView>(&path, &ids::new_key(), &request).await;
            if taken.is_err() {
                // It may no longer be a house seat: look it up again.
                self.look_up_holder(seat);
            }
            taken?;
            self.reason.set(String::new());
            self.holder.set(None);
            self.session.notice.set(None);
            own_hold::refresh(self.session);
            self.session.notify_tabs();
            Ok(())
        });
    }

    fn house_request(self, seats: Vec<SeatIndex>, kept: bool, field: &'static str) -> Option<HouseSeats> {
        let reason = self.house_reason(field)?;
        let labels = seats.iter().map(|seat| self.session.label(*seat)).collect();
        (!seats.is_empty()).then_some(HouseSeats { seats, labels, kept, reason })
    }

    /// The reason typed into the field with this id. Shows an error without one.
    fn house_reason(self, field: &'static str) -> Option<String> {
        let reason = self.reason.get_untracked().trim().to_owned();
        if reason.is_empty() {
            self.refuse_missing(field, say!("box_office.say_why"));
            return None;
        }
        Some(reason)
    }

    async fn change_house_seats(self, request: HouseSeats) -> Result<(), Failure> {
        let path = self.path_of_show("house-seats");
        calls::change::<()>(&path, &ids::new_key(), &request).await?;
        self.reason.set(String::new());
        Ok(())
    }

    fn look_up_holder(self, seat: SeatIndex) {
        self.holder.set(None);
        self.lookup_error.set(None);
        spawn_local(async move {
            let path = self.path_of_show(&format!("seats/{seat}"));
            let result = calls::get::<SeatHolder>(&path).await;
            if self.session.unavailable_tap.get_untracked() != Some(seat) {
                return;
            }
            match result {
                Ok(holder) => self.holder.set(Some((seat, holder))),
                Err(failure) => self.lookup_error.set(Some(failure_words(&failure))),
            }
        });
    }

    /// Shows the error of an empty field, and marks and focuses the field.
    pub(super) fn refuse_missing(self, field: &'static str, error: String) {
        self.error.set(Some(error.into()));
        self.missing.set(Some(field));
        focus(field);
    }

    /// True if the field with this id was empty at the last attempt and still is. `text` is its value.
    pub(super) fn is_missing(self, field: &'static str, text: RwSignal<String>) -> bool {
        self.missing.get() == Some(field) && text.with(|text| text.trim().is_empty())
    }

    pub(super) fn act(self, work: impl Future<Output = Result<(), Failure>> + 'static) {
        if self.busy.get_untracked() {
            return;
        }
        self.busy.set(true);
        self.error.set(None);
        self.missing.set(None);
        spawn_local(async move {
            if let Err(failure) = work.await {
                self.error.set(Some(failure_words(&failure)));
                // The hold may have ended or changed.
                own_hold::refresh(self.session);
                self.load_callers();
            }
            self.busy.set(false);
            // The pressed button may be gone.
            keep_focus(FOCUS_AFTER_ACTION);
        });
    }
}

/// The seats of a hold without places.
fn numbered_seats(held: &HoldView) -> Option<Vec<SeatIndex>> {
    held.places.is_empty().then(|| held.seats.iter().map(|line| line.seat).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::api::{PlaceLine, SeatLine};
    use domain::money::Currency;

    #[test]
    fn a_hold_with_places_has_no_seats_alone() {
        let price = Money::new(1_250, Currency::parse("EUR").expect("a code"));
        let (label, category) = (String::new(), String::new());
        let seat = |seat| SeatLine { seat, label: label.clone(), category: category.clone(), price };
        let place = PlaceLine { area: 0, label: label.clone(), category: category.clone(), price, quantity: 2 };
        let mut held = HoldView {
            id: Uuid::nil(),
            show: Uuid::nil(),
            seats: vec![seat(4), seat(5)],
            places: Vec::new(),
            total: price,
            breakdown: None,
            expires_at: String::new(),
            expires_at_ms: 0,
            latest_ms: 0,
            paying: false,
            booking: None,
        };
        assert_eq!(numbered_seats(&held), Some(vec![4, 5]));
        held.places = vec![place];
        assert_eq!(numbered_seats(&held), None);
    }
}
