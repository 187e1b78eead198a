//! What is asked of the server once: a sale, an exchange. Where no answer came nobody knows whether it was done, so the
//! very same is asked again, under the same key, before anything else is sold; what is held and typed by then says
//! nothing about it.

use domain::api::accounts::Password;
use domain::api::box_office::{CounterBooking, ExchangeRequest, SaleRequest};
use gloo_net::http::Method;
use leptos::html::Button;
use leptos::prelude::*;
use uuid::Uuid;

use super::exchange::changed_hands;
use super::selling::Selling;
use crate::browser::calls::{self, Failure};
use crate::browser::{focus, ids};
use crate::say;
use crate::seat_map::own_seats::own_hold;

/// The button's id, for the keyboard focus: what was pressed before is gone.
const AGAIN: &str = "ask-again";

/// What is asked, under a key of its own.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    wish: Wish,
    key: String,
    /// What the customer was told, in words.
    words: String,
}

/// What is wished for.
#[derive(Clone, Debug)]
pub(super) enum Wish {
    /// A sale.
    Sale(SaleRequest),
    /// Another booking in place of this one; without the PIN, which nobody keeps.
    Exchange(Uuid, ExchangeRequest),
}

impl Wish {
    const fn hold(&self) -> Uuid {
        match self {
            Self::Sale(wish) => wish.hold,
            Self::Exchange(_, wish) => wish.hold,
        }
    }
}

/// In place of everything that sells, while an answer is missing.
pub(super) fn again(selling: Selling, asked: Asked) -> impl IntoView {
    let button = NodeRef::<Button>::new();
    Effect::new(move |_| {
        if button.get().is_some() {
            focus(AGAIN);
        }
    });
    view! {
        <div class="counter-swap" data-testid="unanswered">
            <p>{say!("box_office.unanswered")}" "<strong>{asked.words}</strong></p>
            <div class="counter-pay">
                <button type="button" class="button" id=AGAIN data-testid=AGAIN node_ref=button
                    on:click=move |_| selling.ask_again()>{say!("box_office.ask_again")}</button>
            </div>
        </div>
    }
}

impl Selling {
    /// Asks for the first time. The PIN is no part of what a key is bound to: typed wrong, it is asked for again.
    pub(super) fn ask(self, wish: Wish, words: String, pin: Option<Password>) {
        self.send(Asked { wish, key: ids::new_key(), words }, pin);
    }

    /// Asks again what was never answered. Nobody types a PIN once more: what was done is told before one is asked for.
    pub(super) fn ask_again(self) {
        if let Some(asked) = self.unanswered.get_untracked() {
            self.send(asked, None);
        }
    }

    /// Whether something else has to be asked again first; says so.
    pub(super) fn must_ask_again(self) -> bool {
        let must = self.unanswered.with_untracked(Option::is_some);
        if must {
            self.trouble.set(Some(say!("box_office.unanswered").into()));
        }
        must
    }

    fn send(self, asked: Asked, pin: Option<Password>) {
        self.act(async move {
            let sold = self.answer_to(&asked, pin).await;
            self.pin.set(String::new());
            let is_unknown = sold.as_ref().is_err_and(Failure::may_pass);
            // Told only when it changes, so that the form that is on screen stays, with the focus in it.
            if is_unknown || self.unanswered.with_untracked(Option::is_some) {
                self.unanswered.set(is_unknown.then(|| asked.clone()));
            }
            self.was_sold(&asked.wish, sold?);
            Ok(())
        });
    }

    async fn answer_to(self, asked: &Asked, pin: Option<Password>) -> Result<CounterBooking, Failure> {
        match &asked.wish {
            Wish::Sale(wish) => calls::change(Method::POST, &self.path_of_show("sales"), &asked.key, wish).await,
            Wish::Exchange(from, wish) => {
                let path = self.path(&format!("bookings/{from}/exchange"));
                let wish = ExchangeRequest { pin, ..wish.clone() };
                calls::change(Method::POST, &path, &asked.key, &wish).await
            }
        }
    }

    fn was_sold(self, wish: &Wish, sold: CounterBooking) {
        let held = self.session.cart.with_untracked(|cart| cart.held().map(|held| held.id));
        if held == Some(wish.hold()) {
            self.session.record_booking(wish.hold(), sold.id);
            own_hold::finish(self.session);
        } else {
            if held.is_none() {
                // The map saw it go before the answer came, and wondered why.
                self.session.notice.set(None);
            }
            self.ask_callers();
        }
        // What was booked, which is what changes hands; the page may have known the booking longer than it stayed so.
        let due = changed_hands(&sold);
        let told = say!("box_office.sold", reference = &sold.reference);
        self.session.announcement.set(due.as_ref().map_or_else(|| told.clone(), |due| format!("{told} {due}")));
        self.due.set(due);
        if matches!(wish, Wish::Exchange(..)) {
            self.exchange.set(None);
        }
        self.sold.set(Some(sold));
        for text in [self.name, self.email, self.reason] {
            text.set(String::new());
        }
    }
}
