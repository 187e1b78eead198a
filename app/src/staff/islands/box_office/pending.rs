//! Idempotent sales and exchanges. Without an answer the outcome is unknown, so the same request is repeated under the
//! same key before anything else is sold, regardless of later holds and input.

use domain::api::accounts::Password;
use domain::api::box_office::{CounterBooking, ExchangeRequest, SaleRequest};
use gloo_net::http::Method;
use leptos::html::Button;
use leptos::prelude::*;
use uuid::Uuid;

use super::exchange::changed_hands;
use super::selling::CounterSaleState;
use crate::browser::calls::{self, Failure};
use crate::browser::{focus, ids};
use crate::say;
use crate::seat_map::own_seats::own_hold;

/// Id of the retry button, which gets the focus after the pressed button disappeared.
const RETRY_BUTTON: &str = "ask-again";

#[derive(Clone, Debug)]
pub(super) struct PendingSale {
    intent: SaleIntent,
    key: String,
    /// The price and payment as announced to the customer.
    words: String,
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
                    on:click=move |_| selling.retry()>{say!("box_office.ask_again")}</button>
            </div>
        </div>
    }
}

impl CounterSaleState {
    /// Sends a request for the first time. The PIN is not bound to the key, so a wrong one can be corrected.
    pub(super) fn send_new(self, intent: SaleIntent, words: String, pin: Option<Password>) {
        self.send(PendingSale { intent, key: ids::new_key(), words }, pin);
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
            self.trouble.set(Some(say!("box_office.unanswered").into()));
        }
        must
    }

    fn send(self, pending: PendingSale, pin: Option<Password>) {
        self.act(async move {
            let sold = self.request(&pending, pin).await;
            self.pin.set(String::new());
            let is_unknown = sold.as_ref().is_err_and(Failure::may_pass);
            // Set only on a change, so that the form on screen keeps its focus.
            if is_unknown || self.unanswered.with_untracked(Option::is_some) {
                self.unanswered.set(is_unknown.then(|| pending.clone()));
            }
            self.complete(&pending.intent, sold?);
            Ok(())
        });
    }

    async fn request(self, pending: &PendingSale, pin: Option<Password>) -> Result<CounterBooking, Failure> {
        match &pending.intent {
            SaleIntent::Sale(intent) => {
                calls::change(Method::POST, &self.path_of_show("sales"), &pending.key, intent).await
            }
            SaleIntent::Exchange(from, intent) => {
                let path = self.path(&format!("bookings/{from}/exchange"));
                let intent = ExchangeRequest { pin, ..intent.clone() };
                calls::change(Method::POST, &path, &pending.key, &intent).await
            }
        }
    }

    fn complete(self, intent: &SaleIntent, sold: CounterBooking) {
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
        let due = changed_hands(&sold);
        let announcement = say!("box_office.sold", reference = &sold.reference);
        self.session
            .announcement
            .set(due.as_ref().map_or_else(|| announcement.clone(), |due| format!("{announcement} {due}")));
        self.due.set(due);
        if matches!(intent, SaleIntent::Exchange(..)) {
            self.exchange.set(None);
        }
        self.sold.set(Some(sold));
        for text in [self.name, self.email, self.reason] {
            text.set(String::new());
        }
    }
}
