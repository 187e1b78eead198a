//! The till of a shift, and the manager's overview of the day.

use domain::api::box_office::{DayView, TillRow, TillView};
use domain::money::Money;
use domain::till::{Means, TillEntryKind};
use leptos::prelude::*;
use uuid::Uuid;

use super::super::Field;
use super::super::fields::{amount_field, reason_field};
use super::DayForm;
use crate::language::{current, money};
use crate::pages::accounts::username;
use crate::say;

/// An action on a till, or on all tills of a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TillAct {
    /// Opens it with its float.
    Open,
    /// Moves cash to the safe.
    Drop,
    /// Counts and closes it.
    CashUp,
    /// A manager counts and closes another seller's till.
    CashUpFor(Uuid),
    /// Closes the day.
    CloseDay,
}

/// The values of a till form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TillForm {
    /// The amount; empty if the form has none.
    pub amount: Field,
    /// The reason; empty if the form has none.
    pub reason: Field,
}

impl TillForm {
    /// Returns true if a field has an error.
    #[must_use]
    pub const fn is_refused(&self) -> bool {
        self.amount.is_refused() || self.reason.is_refused()
    }
}

/// The errors of a PIN form. Its fields have no value: PIN and password are never sent back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PinForm {
    /// The new PIN.
    pub pin: Field,
    /// The manager's password.
    pub password: Field,
}

impl PinForm {
    /// Returns true if a field has an error.
    #[must_use]
    pub const fn is_refused(&self) -> bool {
        self.pin.is_refused() || self.password.is_refused()
    }
}

/// A form of the day's page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CounterForm {
    /// A till form or the day's close.
    Till(TillAct, TillForm),
    /// A manager's PIN.
    Pin(PinForm),
}

/// The refused form with its values.
type Refused<'a> = Option<&'a CounterForm>;

/// Returns whether the refused form is this one, and its values.
fn form_of(act: TillAct, refused: Refused<'_>) -> (bool, TillForm) {
    match refused {
        Some(CounterForm::Till(known, form)) if *known == act => (true, form.clone()),
        _ => (false, TillForm::default()),
    }
}

fn sum_field(id: &str, label: String, field: Field) -> AnyView {
    amount_field((id.to_owned(), "amount".to_owned()), label, None, field, true)
}

/// The form that opens a till. Shows the last till if a manager counted it.
pub(super) fn opening(
    from: DayForm<'_>,
    counted_for_me: Option<TillView>,
    refused: Refused<'_>,
) -> impl IntoView + use<> {
    let (_, form) = form_of(TillAct::Open, refused);
    view! {
        {counted_for_me.map(|till| view! {
            <div class="card counter-till" data-testid="counted-for-me">{in_place(&till)}{sums(&till)}</div>
        })}
        <form class="card counter-form" action=format!("{}/till/open", from.base) method="post">
            {from.hidden_inputs()}
            <p class="quiet">{say!("box_office.till_closed")}</p>
            {sum_field("float", say!("box_office.float"), form.amount)}
            <button class="button" type="submit" data-testid="open-till">{say!("box_office.open_till")}</button>
        </form>
    }
}

/// The open till: sums, ledger, drop and cash-up.
pub(super) fn open(from: DayForm<'_>, till: TillView, refused: Refused<'_>) -> impl IntoView + use<> {
    let rows = till.rows.clone();
    let (is_drop_refused, drop) = form_of(TillAct::Drop, refused);
    let (is_count_refused, count) = form_of(TillAct::CashUp, refused);
    view! {
        <div class="card counter-till" data-testid="till" data-expected=till.expected.minor>
            {sums(&till)}
            <details open=is_drop_refused>
                <summary>{say!("box_office.drop")}</summary>
                <form class="counter-form" action=format!("{}/till/drop", from.base) method="post">
                    {from.hidden_inputs()}
                    {sum_field("drop", say!("box_office.drop_amount"), drop.amount)}
                    {reason_field("drop-reason", say!("box_office.reason"), drop.reason, true)}
                    <button class="button button-quiet" type="submit" data-testid="drop">{say!("box_office.drop_now")}</button>
                </form>
            </details>
            <details open=is_count_refused>
                <summary data-testid="cash-up-open">{say!("box_office.cash_up")}</summary>
                <form class="counter-form" action=format!("{}/till/cash-up", from.base) method="post">
                    {from.hidden_inputs()}
                    {sum_field("counted", say!("box_office.counted_cash"), count.amount)}
                    {reason_field("cash-up-reason", say!("box_office.difference_reason"), count.reason, false)}
                    <button class="button" type="submit" data-testid="cash-up">{say!("box_office.cash_up_now")}</button>
                </form>
            </details>
            <details>
                <summary>{say!("box_office.ledger")}</summary>
                <ol class="counter-ledger" data-testid="ledger">
                    {rows.into_iter().map(|row| line(from.base, row)).collect_view()}
                </ol>
            </details>
        </div>
    }
}

fn sums(till: &TillView) -> impl IntoView + use<> {
    let fact = |words: String, sum: Money| {
        view! { <div><dt>{words}</dt><dd>{money(sum, current())}</dd></div> }
    };
    view! {
        <p><bdi>{till.person.clone()}</bdi>" · "{say!("box_office.since", time = &till.opened_at)}</p>
        <dl class="counter-sums">
            {fact(say!("box_office.float"), till.float)}
            {fact(say!("box_office.cash_sum"), till.cash)}
            {fact(say!("box_office.card_sum"), till.card)}
            {fact(say!("box_office.dropped"), till.dropped)}
            {fact(say!("box_office.expected"), till.expected)}
            {till.counted.map(|counted| fact(say!("box_office.counted"), counted))}
            {till.difference.map(|difference| fact(say!("box_office.difference"), difference))}
        </dl>
    }
}

/// The manager who counted the till for its seller, with time and reason.
fn in_place(till: &TillView) -> Option<impl IntoView + use<>> {
    let (by, why) = till.counted_by.as_ref().zip(till.counted_why.as_ref())?;
    let time = till.closed_at.clone().unwrap_or_default();
    let words = say!("box_office.counted_by", by = by, time = &time, reason = why);
    Some(view! { <p class="quiet" data-testid="counted-by">{words}</p> })
}

fn line(base: &str, row: TillRow) -> impl IntoView + use<> {
    let what = match row.kind {
        TillEntryKind::Float => say!("box_office.row_float"),
        TillEntryKind::Sale => say!("box_office.row_sale"),
        TillEntryKind::Refund => say!("box_office.row_refund"),
        TillEntryKind::Exchange => say!("box_office.row_exchange"),
        TillEntryKind::Drop => say!("box_office.row_drop"),
    };
    let means = match row.means {
        Means::Cash => say!("box_office.cash"),
        Means::Card => say!("box_office.card"),
        Means::Free => say!("box_office.free"),
    };
    let booking = row.booking.zip(row.reference).map(|(booking, reference)| {
        view! { <a href=format!("{base}/bookings/{booking}")>{reference}</a> }
    });
    view! {
        <li data-kind=row.kind.as_str() data-amount=row.amount.minor>
            <span>{row.at}</span>
            <span>{what}" · "{means}</span>
            {booking}
            <bdi class="quiet small">{row.reason}</bdi>
            <strong>{money(row.amount, current())}</strong>
        </li>
    }
}

/// The form with which a manager counts a till whose seller has left.
fn counting_for(from: DayForm<'_>, till: &TillView, refused: Refused<'_>) -> impl IntoView + use<> {
    let id = till.id;
    let (is_refused, form) = form_of(TillAct::CashUpFor(id), refused);
    view! {
        <details open=is_refused>
            <summary data-testid="cash-up-for-open">{say!("box_office.cash_up_for", name = &till.person)}</summary>
            <form class="counter-form" action=format!("{}/tills/{id}/cash-up", from.base) method="post">
                {from.hidden_inputs()}
                <p class="quiet small">{say!("box_office.cash_up_for_hint")}</p>
                {sum_field(&format!("counted-{id}"), say!("box_office.counted_cash"), form.amount)}
                {reason_field(format!("reason-{id}"), say!("box_office.cash_up_for_reason"), form.reason, true)}
                <button class="button button-quiet" type="submit" data-testid="cash-up-for">
                    {say!("box_office.cash_up_now")}
                </button>
            </form>
        </details>
    }
}

/// For managers: all tills of the day, the count of others' open tills, the day close, and the manager's PIN.
pub(super) fn day(
    from: DayForm<'_>,
    own: Option<Uuid>,
    tills: Vec<TillView>,
    last: Option<DayView>,
    refused: Refused<'_>,
) -> impl IntoView + use<> {
    let (_, form) = form_of(TillAct::CloseDay, refused);
    let can_close = !tills.is_empty() && tills.iter().all(|till| till.closed_at.is_some());
    let list = tills.into_iter().map(|till| {
        let state = if till.closed_at.is_some() { "counted" } else { "open" };
        let count = (till.closed_at.is_none() && own != Some(till.id)).then(|| counting_for(from, &till, refused));
        view! {
            <li class="card counter-till" data-testid="day-till" data-state=state data-till=till.id.to_string()>
                {sums(&till)}
                {in_place(&till)}
                {count}
            </li>
        }
    });
    view! {
        <section class="counter-manager" aria-labelledby="counter-day-end">
            <h2 id="counter-day-end">{say!("box_office.day")}</h2>
            {last.map(|day| view! {
                <p class="quiet small" data-testid="last-close">
                    {say!("box_office.last_close", number = day.number, time = &day.closed_at, difference = day.difference)}
                </p>
            })}
            <ul class="counter-tills">{list.collect_view()}</ul>
            {can_close.then(|| view! {
                <form class="card counter-form" action=format!("{}/day-close", from.base) method="post">
                    {from.hidden_inputs()}
                    {reason_field("day-reason", say!("box_office.day_word"), form.reason, true)}
                    <button class="button" type="submit" data-testid="close-day">{say!("box_office.close_day")}</button>
                </form>
            })}
            {pin(from, refused)}
        </section>
    }
}

/// For managers: their own PIN. An error replaces the hint.
fn pin(from: DayForm<'_>, refused: Refused<'_>) -> impl IntoView + use<> {
    let (is_refused, form) = match refused {
        Some(CounterForm::Pin(form)) => (true, form.clone()),
        _ => (false, PinForm::default()),
    };
    let (pin_invalid, pin_error, below_pin) = form.pin.error_attributes("pin");
    let (password_invalid, password_error, below_password) = form.password.error_attributes("pin-password");
    let pin_described_by = pin_error.unwrap_or_else(|| "pin-hint".to_owned());
    let hint =
        below_pin.is_none().then(|| view! { <p class="quiet small" id="pin-hint">{say!("box_office.pin_hint")}</p> });
    view! {
        <details class="card" open=is_refused>
            <summary>{say!("box_office.pin_title")}</summary>
            <form class="counter-form" action=format!("{}/pin", from.base) method="post">
                {from.hidden_inputs()}
                {username(String::new())}
                <div class="field">
                    <label for="pin">{say!("box_office.pin")}</label>
                    <input id="pin" name="pin" type="password" inputmode="numeric" autocomplete="off" required
                        minlength="6" maxlength="12" aria-invalid=pin_invalid aria-describedby=pin_described_by />
                    {below_pin}
                    {hint}
                </div>
                <div class="field">
                    <label for="pin-password">{say!("box_office.password")}</label>
                    <input id="pin-password" name="password" type="password" autocomplete="current-password" required
                        maxlength="256" aria-invalid=password_invalid aria-describedby=password_error />
                    {below_password}
                </div>
                <button class="button button-quiet" type="submit" data-testid="set-pin">{say!("box_office.set_pin")}</button>
            </form>
        </details>
    }
}
