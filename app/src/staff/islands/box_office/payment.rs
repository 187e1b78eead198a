//! The customer's payment, confirmed before the sale: the amount, and the change for cash.

use domain::api::box_office::CallerHoldView;
use domain::money::Money;
use domain::till::{Means, parse_amount};
use language::say;
use leptos::ev::SubmitEvent;
use leptos::html;
use leptos::prelude::*;

use super::selling::{CounterSaleState, FOCUS_AFTER_ACTION};
use crate::browser::{focus, keep_focus};
use crate::checkout::total_of;
use crate::seat_map::own_seats::own_hold;

/// Id of the amount of cash, which gets the focus of a cash payment.
const CASH_GIVEN: &str = "cash-given";
/// Id of the button that confirms, which gets the focus of a card payment.
const CONFIRM: &str = "confirm-payment";
/// A hold with less time left is extended before the customer is asked for money, milliseconds.
const PAYMENT_TIME_MS: i64 = 180_000;

/// A sale that waits for its payment.
#[derive(Clone, Debug)]
pub(super) struct CounterPayment {
    pub(super) means: Means,
    /// The caller who collects seats; `None` for the seats in the cart.
    pub(super) caller: Option<CallerHoldView>,
}

/// Cash in the customer's hand, compared with the amount to pay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CashGiven {
    Untyped,
    NoAmount,
    /// This much is missing.
    Short(Money),
    /// This much is handed back.
    Change(Money),
}

impl CashGiven {
    /// Reads a typed amount in the currency of the total.
    fn read(text: &str, total: Money) -> Self {
        if text.trim().is_empty() {
            return Self::Untyped;
        }
        // Both amounts are at least 0, so their difference fits.
        match parse_amount(text, total.currency.minor_digits()).map(|given| given - total.minor) {
            None => Self::NoAmount,
            Some(change @ 0..) => Self::Change(Money::new(change, total.currency)),
            Some(missing) => Self::Short(Money::new(-missing, total.currency)),
        }
    }

    /// Returns true if the sale may go ahead. The seller need not type the cash.
    const fn is_enough(self) -> bool {
        matches!(self, Self::Untyped | Self::Change(_))
    }

    fn in_words(self) -> String {
        match self {
            Self::Untyped => String::new(),
            Self::NoAmount => say!("box_office.no_amount"),
            Self::Short(missing) => say!("box_office.cash_short", amount = missing),
            Self::Change(change) if change.minor == 0 => say!("box_office.no_change"),
            Self::Change(change) => say!("box_office.hand_over", amount = change),
        }
    }

    /// The change to hand over, in words; `None` without change.
    fn change_in_words(self) -> Option<String> {
        matches!(self, Self::Change(change) if change.minor > 0).then(|| self.in_words())
    }
}

/// The form that confirms a payment, instead of cash and card.
pub(super) fn payment_form(selling: CounterSaleState, payment: CounterPayment) -> impl IntoView {
    let is_cash = payment.means == Means::Cash;
    let of_caller = payment.caller.map(|caller| caller.total);
    let total = move || of_caller.or_else(|| total_of(selling.session));
    let given = RwSignal::new(String::new());
    let cash = move || total().map_or(CashGiven::Untyped, |total| given.with(|text| CashGiven::read(text, total)));
    let is_ready = move || {
        let can_sell = if of_caller.is_some() { !selling.busy.get() } else { selling.ready().is_some() };
        can_sell && cash().is_enough()
    };
    let is_idle = move || if is_ready() { "false" } else { "true" };
    let words = move || {
        total().map(|total| {
            if is_cash {
                say!("box_office.take_cash", amount = total)
            } else {
                say!("box_office.take_card", amount = total)
            }
        })
    };
    let submit = move |event: SubmitEvent| {
        event.prevent_default();
        if untrack(is_ready) {
            selling.confirm_payment(untrack(cash).change_in_words());
        }
    };
    let form = NodeRef::<html::Form>::new();
    Effect::new(move |_| {
        if form.get().is_some() {
            focus(if is_cash { CASH_GIVEN } else { CONFIRM });
        }
    });
    // The customer may have paid this amount: after a change of the cart the seller asks for the new one.
    let asked_for = untrack(|| total_of(selling.session));
    Effect::new(move |_| {
        if of_caller.is_none() && total_of(selling.session) != asked_for {
            selling.close_payment();
        }
    });
    let cash_field = is_cash.then(|| {
        view! {
            <div class="field">
                <label for=CASH_GIVEN>{say!("box_office.cash_given")}</label>
                <input id=CASH_GIVEN type="text" inputmode="decimal" autocomplete="off" maxlength="20" dir="ltr"
                    aria-describedby="cash-change" prop:value=move || given.get()
                    on:input=move |event| given.set(event_target_value(&event)) />
            </div>
            <p class="counter-change" id="cash-change" role="status" data-testid="cash-change">{move || cash().in_words()}</p>
        }
    });
    view! {
        <form class="counter-swap" novalidate node_ref=form data-testid="payment" on:submit=submit>
            <p><strong data-testid="to-pay">{words}</strong></p>
            {cash_field}
            <div class="counter-pay">
                <button type="submit" class="button" id=CONFIRM data-testid=CONFIRM aria-disabled=is_idle>{say!("box_office.confirm_sale")}</button>
                <button type="button" class="button button-quiet" data-testid="payment-back"
                    on:click=move |_| selling.close_payment()>{say!("box_office.payment_back")}</button>
            </div>
        </form>
    }
}

impl CounterSaleState {
    /// Asks for the payment of the cart or of a caller's seats.
    pub(super) fn ask_for_payment(self, means: Means, caller: Option<CallerHoldView>) {
        let can_sell = if caller.is_some() { !self.busy.get_untracked() } else { untrack(|| self.ready()).is_some() };
        if can_sell && !self.is_blocked_by_pending() {
            self.error.set(None);
            self.due.set(None);
            if caller.is_none() && untrack(|| self.is_short_of_time()) {
                own_hold::extend_hold(self.session);
            }
            self.payment.set(Some(CounterPayment { means, caller }));
        }
    }

    /// True if the hold may end before a customer has paid, and can be extended.
    pub(super) fn is_short_of_time(self) -> bool {
        self.session.countdown_ms.get().is_some_and(|left| left < PAYMENT_TIME_MS)
            && self.session.cart.with(|cart| cart.held().is_some_and(|held| held.expires_at_ms < held.latest_ms))
    }

    /// Closes the form of a payment, if it is open. The focus goes to the buttons in its place.
    pub(super) fn close_payment(self) {
        if self.payment.with_untracked(Option::is_some) {
            self.payment.set(None);
            keep_focus(FOCUS_AFTER_ACTION);
        }
    }

    /// Closes the form of a caller's payment once the caller's seats are sold or released elsewhere.
    pub(super) fn close_payment_without_hold(self) {
        let caller = self.payment.with(|payment| payment.as_ref()?.caller.clone());
        let is_held =
            |caller: &CallerHoldView| self.callers.with(|held| held.iter().any(|one| one.hold == caller.hold));
        // During the caller's own sale the hold ends before its answer arrives.
        if let Some(caller) = caller.filter(|caller| !is_held(caller) && !self.busy.get()) {
            self.close_payment();
            self.error.set(Some(say!("box_office.caller_ended", name = &caller.name).into()));
        }
    }

    /// Sells what was paid. `change` is what the seller hands over, in words.
    fn confirm_payment(self, change: Option<String>) {
        match self.payment.get_untracked() {
            Some(CounterPayment { means, caller: Some(caller) }) => self.sell_to_caller(&caller, means, change),
            Some(CounterPayment { means, caller: None }) => self.sell(means, change),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::money::Currency;
    use language::{Language, with_language};

    fn money(minor: i64, code: &str) -> Money {
        Money::new(minor, Currency::parse(code).expect("a code"))
    }

    #[test]
    fn change_is_in_minor_units_of_the_currency() {
        for (text, code, total, expected) in [
            ("20", "EUR", 1_180, CashGiven::Change(money(820, "EUR"))),
            ("11,80", "EUR", 1_180, CashGiven::Change(money(0, "EUR"))),
            ("11.79", "EUR", 1_180, CashGiven::Short(money(1, "EUR"))),
            ("2000", "JPY", 1_800, CashGiven::Change(money(200, "JPY"))),
            ("10", "KWD", 9_750, CashGiven::Change(money(250, "KWD"))),
            ("20.5", "JPY", 1_800, CashGiven::NoAmount),
            ("twenty", "EUR", 1_180, CashGiven::NoAmount),
            (" ", "EUR", 1_180, CashGiven::Untyped),
        ] {
            let cash = CashGiven::read(text, money(total, code));
            assert_eq!(cash, expected, "{text} {code}");
            let is_enough = matches!(expected, CashGiven::Untyped | CashGiven::Change(_));
            assert_eq!(cash.is_enough(), is_enough, "{text} {code}");
        }
    }

    #[test]
    fn cash_given_is_worded_as_change_or_missing_amount() {
        with_language(Language::English, || {
            let said = |text| CashGiven::read(text, money(1_180, "EUR")).in_words();
            assert_eq!(said("20"), "Hand over €8.20");
            assert_eq!(said("10"), "€1.80 missing");
            assert_eq!(said("11.80"), "No change to give");
            let change = |text| CashGiven::read(text, money(1_180, "EUR")).change_in_words();
            assert_eq!(change("20").as_deref(), Some("Hand over €8.20"));
            assert_eq!(["11.80", "10", ""].map(change), [None, None, None]);
        });
    }
}
