//! Exchanges the seats of a booking for others. The difference in price is shown before. A refund needs a manager's PIN,
//! and so does a booking whose show has begun.

use domain::VariantName;
use domain::api::HoldView;
use domain::api::accounts::Password;
use domain::api::box_office::{CounterBooking, ExchangeRequest, ManagerView};
use domain::money::Money;
use domain::till::Means;
use domain::time::MINUTE_MS;
use language::say;
use leptos::ev::SubmitEvent;
use leptos::prelude::*;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;
use uuid::Uuid;

use super::panel::COUNTER_ERROR;
use super::selling::{CounterSaleState, SaleIntent};
use crate::browser::focus;
use crate::checkout::total_of;
use crate::seat_map::own_seats::own_hold;

/// Id of the field for the manager's PIN.
const PIN_FIELD: &str = "swap-pin";

/// A booking whose seats are being exchanged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BookingToExchange {
    pub booking: Uuid,
    /// Its reference for people.
    pub reference: String,
    pub total: Money,
    /// Means of payment at the counter; `None` if online.
    pub means: Option<Means>,
    /// True if its show has begun: a manager approves the exchange.
    pub has_begun: bool,
    /// Managers who can approve it.
    pub managers: Vec<ManagerView>,
}

/// The price difference of an exchange. Its name is for tests and style.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
enum PriceDifference {
    Even,
    /// The customer pays this much more.
    More(Money),
    /// The customer is refunded this much.
    Back(Money),
    /// Not allowed: a booking paid online cannot cost more.
    TooDear,
}

impl PriceDifference {
    fn of(difference: Money) -> Self {
        match difference.minor {
            0 => Self::Even,
            1.. => Self::More(difference),
            _ => Self::Back(Money::new(-difference.minor, difference.currency)),
        }
    }

    /// In words, for this means of payment; `None` is online.
    fn in_words(self, means: Option<Means>) -> String {
        match (self, means) {
            (Self::Even, _) => say!("box_office.exchange_even"),
            (Self::More(amount), _) => say!("box_office.exchange_more", amount = amount),
            (Self::Back(amount), means) => refund_in_words(amount, means),
            (Self::TooDear, _) => say!("box_office.exchange_too_dear"),
        }
    }
}

impl BookingToExchange {
    /// The price of seats that cost `total`: guests of the house pay nothing.
    fn price(&self, total: Money) -> Money {
        if self.means == Some(Means::Free) { Money::new(0, total.currency) } else { total }
    }

    fn change(&self, total: Money) -> PriceDifference {
        match PriceDifference::of(Money::new(self.price(total).minor - self.total.minor, total.currency)) {
            PriceDifference::More(_) if self.means.is_none() => PriceDifference::TooDear,
            change => change,
        }
    }

    /// True if a manager must approve this exchange with their PIN.
    const fn needs_pin(&self, change: PriceDifference) -> bool {
        match change {
            PriceDifference::Even | PriceDifference::More(_) => self.has_begun,
            PriceDifference::Back(_) => true,
            PriceDifference::TooDear => false,
        }
    }
}

/// How a refund reaches the customer, for this means of payment; `None` is online.
pub(super) fn refund_in_words(amount: Money, means: Option<Means>) -> String {
    match means {
        Some(Means::Card) => say!("box_office.exchange_back_card", amount = amount),
        Some(_) => say!("box_office.exchange_back_cash", amount = amount),
        None => say!("box_office.exchange_back_online", amount = amount),
    }
}

/// The amount that changed hands for a booking made by an exchange, in words.
pub(super) fn changed_hands(sold: &CounterBooking) -> Option<String> {
    sold.difference.map(|difference| PriceDifference::of(difference).in_words(sold.means))
}

/// The booking being exchanged, with a link to other shows.
pub(super) fn exchanged_booking(selling: CounterSaleState) -> Option<impl IntoView + use<>> {
    let BookingToExchange { booking, reference, total, .. } = selling.exchange.get()?;
    let others = format!("/staff/{}/box-office/bookings/{booking}/exchange", selling.theatre.get_value());
    Some(view! {
        <div class="counter-swap">
            <p data-testid="exchanging">{say!("box_office.exchanging", reference = &reference, total = total)}</p>
            <a class="button button-quiet" data-testid="another-show" href=others>{say!("box_office.exchange_another")}</a>
        </div>
    })
}

/// The exchange button, instead of cash and card: only the difference is paid.
pub(super) fn exchange_form(selling: CounterSaleState, exchange: BookingToExchange) -> impl IntoView {
    let begun = exchange.has_begun.then(|| {
        view! { <p class="quiet" data-testid="exchange-begun">{say!("box_office.exchange_begun")}</p> }
    });
    let exchange = StoredValue::new(exchange);
    let change = Memo::new(move |_| {
        total_of(selling.session).map(|total| exchange.with_value(|exchange| exchange.change(total)))
    });
    let needs_pin = Memo::new(move |_| {
        change.get().is_some_and(|change| exchange.with_value(|exchange| exchange.needs_pin(change)))
    });
    let is_allowed = move || match change.get() {
        None | Some(PriceDifference::TooDear) => false,
        Some(_) => !needs_pin.get() || exchange.with_value(|exchange| !exchange.managers.is_empty()),
    };
    let short_minutes = Memo::new(move |_| {
        let is_paid = matches!(change.get(), Some(PriceDifference::More(_))) && selling.ready().is_some();
        let left_ms = selling.session.countdown_ms.get().filter(|_| is_paid && selling.is_short_of_time());
        left_ms.map(|left_ms| left_ms / MINUTE_MS)
    });
    // The customer pays while the difference is shown. An extension that failed is repeated a minute later.
    Effect::new(move |_| {
        if short_minutes.get().is_some() {
            own_hold::extend_hold(selling.session);
        }
    });
    let is_idle = move || if is_allowed() && selling.ready().is_some() { "false" } else { "true" };
    let words = move || change.get().map(|change| change.in_words(exchange.with_value(|exchange| exchange.means)));
    let submit = move |event: SubmitEvent| {
        event.prevent_default();
        selling.exchange_held();
    };
    view! {
        <form class="counter-swap" novalidate on:submit=submit>
            <p hidden=move || change.get().is_none()>
                <strong data-testid="difference" data-change=move || change.get().map(|change| change.as_str())>{words}</strong>
            </p>
            {begun}
            {move || needs_pin.get().then(|| approval_fields(selling, exchange.with_value(|exchange| exchange.managers.clone())))}
            <div class="counter-pay">
                <button type="submit" class="button" data-testid="swap" aria-disabled=is_idle>{say!("box_office.exchange_now")}</button>
            </div>
        </form>
    }
}

/// Focuses the PIN with the next frame, because the form may have to return first.
pub(super) fn focus_pin() {
    request_animation_frame(|| focus(PIN_FIELD));
}

fn approval_fields(selling: CounterSaleState, managers: Vec<ManagerView>) -> AnyView {
    if managers.is_empty() {
        return view! { <p class="quiet" data-testid="no-managers">{say!("box_office.no_pins")}</p> }.into_any();
    }
    let options = managers.into_iter().map(|ManagerView { account, name }| {
        let is_chosen = move || selling.manager.get() == Some(account);
        view! { <option value=account.to_string() selected=is_chosen>{name}</option> }
    });
    view! {
        <div class="field">
            <label for="swap-manager">{say!("box_office.manager")}</label>
            <select id="swap-manager" on:change=move |event| selling.manager.set(event_target_value(&event).parse().ok())>
                {options.collect_view()}
            </select>
        </div>
        <div class="field">
            <label for=PIN_FIELD>{say!("box_office.pin")}</label>
            <input id=PIN_FIELD type="password" inputmode="numeric" autocomplete="off" maxlength="12"
                aria-invalid=move || selling.is_missing(PIN_FIELD, selling.pin).then_some("true")
                aria-describedby=COUNTER_ERROR prop:value=move || selling.pin.get()
                on:input=move |event| selling.pin.set(event_target_value(&event)) />
        </div>
    }
    .into_any()
}

impl CounterSaleState {
    pub(super) fn exchange_held(self) {
        if self.is_blocked_by_pending() {
            return;
        }
        let (Some(held), Some(from)) = (untrack(|| self.ready()), self.exchange.get_untracked()) else { return };
        let change = from.change(held.total);
        let Some((request, pin)) = self.exchange_request(&held, &from, change) else { return };
        self.send_new(SaleIntent::Exchange(from.booking, request), change.in_words(from.means), None, pin);
    }

    /// The request and the PIN. `None`, with an error shown, if it would be refused.
    fn exchange_request(
        &self,
        held: &HoldView,
        from: &BookingToExchange,
        change: PriceDifference,
    ) -> Option<(ExchangeRequest, Option<Password>)> {
        if change == PriceDifference::TooDear {
            return None;
        }
        let (mut manager, mut pin) = (None, None);
        if from.needs_pin(change) {
            let typed = self.pin.get_untracked();
            manager = self.manager.get_untracked();
            if manager.is_none() || typed.is_empty() {
                let is_refund = matches!(change, PriceDifference::Back(_));
                let words =
                    if is_refund { say!("box_office.exchange_pin_first") } else { say!("box_office.exchange_begun") };
                self.refuse_missing(PIN_FIELD, words);
                return None;
            }
            pin = Some(Password::new(typed));
        }
        let written = self.reason.get_untracked().trim().to_owned();
        let reason = if written.is_empty() { say!("box_office.exchange_reason") } else { written };
        let request = ExchangeRequest {
            show: self.session.show,
            hold: held.id,
            total_minor: from.price(held.total).minor,
            from_total_minor: Some(from.total.minor),
            reason,
            manager,
            pin: None,
        };
        Some((request, pin))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::money::Currency;
    use language::{Language, with_language};

    fn euro(minor: i64) -> Money {
        Money::new(minor, Currency::parse("EUR").expect("a code"))
    }

    fn exchanging(means: Option<Means>, total: i64) -> BookingToExchange {
        let reference = "K7QM-2XPA".to_owned();
        BookingToExchange {
            booking: Uuid::nil(),
            reference,
            total: euro(total),
            means,
            has_begun: false,
            managers: vec![],
        }
    }

    #[test]
    fn an_exchange_costs_the_difference_and_never_more_for_online_bookings() {
        for (means, total, expected) in [
            (Some(Means::Cash), 1_250, PriceDifference::Even),
            (Some(Means::Cash), 2_500, PriceDifference::More(euro(1_250))),
            (Some(Means::Card), 1_000, PriceDifference::Back(euro(250))),
            (None, 1_250, PriceDifference::Even),
            (None, 1_251, PriceDifference::TooDear),
            (None, 1_249, PriceDifference::Back(euro(1))),
        ] {
            assert_eq!(exchanging(means, 1_250).change(euro(total)), expected, "{means:?} {total}");
        }
        let guest = exchanging(Some(Means::Free), 0);
        assert_eq!((guest.change(euro(5_000)), guest.price(euro(5_000))), (PriceDifference::Even, euro(0)));
    }

    #[test]
    fn a_refund_and_a_show_that_has_begun_need_a_pin() {
        let coming = exchanging(Some(Means::Cash), 1_250);
        let begun = BookingToExchange { has_begun: true, ..coming.clone() };
        for (change, expected) in [
            (PriceDifference::Even, [false, true]),
            (PriceDifference::More(euro(1)), [false, true]),
            (PriceDifference::Back(euro(1)), [true, true]),
            (PriceDifference::TooDear, [false, false]),
        ] {
            assert_eq!([&coming, &begun].map(|booking| booking.needs_pin(change)), expected, "{change:?}");
        }
    }

    #[test]
    fn a_refund_is_worded_by_means_of_payment() {
        with_language(Language::English, || {
            let said = |means| PriceDifference::of(euro(-250)).in_words(means);
            let words = [Some(Means::Cash), Some(Means::Card), None].map(said);
            assert!(words.iter().all(|words| words.contains("2.50")), "{words:?}");
            assert!(words[0] != words[1] && words[1] != words[2] && words[0] != words[2], "{words:?}");
        });
    }
}
