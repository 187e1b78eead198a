//! The till of a shift, and the day of a manager.

use domain::api::box_office::{DayView, TillRow, TillView};
use domain::money::Money;
use domain::till::{Entry, Means};
use leptos::prelude::*;
use uuid::Uuid;

use super::super::Field;
use super::super::fields::{amount_field, reason_field};
use super::DayForm;
use crate::language::{current, money};
use crate::pages::accounts::username;
use crate::say;

/// What is asked of a till by a form, or of all tills of a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TillAct {
    /// It is opened with its float.
    Open,
    /// Cash goes to the safe.
    Drop,
    /// It is counted and closed.
    CashUp,
    /// It is counted and closed by a manager, in place of whose it is.
    CashUpFor(Uuid),
    /// The day is closed.
    CloseDay,
}

/// What stands in such a form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TillForm {
    /// The sum; empty where none is asked for.
    pub amount: Field,
    /// The reason; empty where none is asked for.
    pub reason: Field,
}

impl TillForm {
    /// Whether something is wrong with one of the fields.
    #[must_use]
    pub const fn is_refused(&self) -> bool {
        self.amount.is_refused() || self.reason.is_refused()
    }
}

/// What is wrong with what was typed for a new PIN. The fields have no value: neither PIN nor password comes back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PinForm {
    /// The new PIN.
    pub pin: Field,
    /// The password of whoever sets it.
    pub password: Field,
}

impl PinForm {
    /// Whether something is wrong with one of the fields.
    #[must_use]
    pub const fn is_refused(&self) -> bool {
        self.pin.is_refused() || self.password.is_refused()
    }
}

/// A form of the day's page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CounterForm {
    /// Of a till, or of the day.
    Till(TillAct, TillForm),
    /// Of a manager's PIN.
    Pin(PinForm),
}

/// The form that was refused, as it was typed.
type Refused<'a> = Option<&'a CounterForm>;

/// Whether it was this one, and what stands in it.
fn form_of(act: TillAct, refused: Refused<'_>) -> (bool, TillForm) {
    match refused {
        Some(CounterForm::Till(known, form)) if *known == act => (true, form.clone()),
        _ => (false, TillForm::default()),
    }
}

fn sum_field(id: &str, label: String, field: Field) -> AnyView {
    amount_field((id.to_owned(), "amount".to_owned()), label, None, field, true)
}

/// No till is open: say what is in it. Somebody else may have counted the last one.
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
            {from.sent()}
            <p class="quiet">{say!("box_office.till_closed")}</p>
            {sum_field("float", say!("box_office.float"), form.amount)}
            <button class="button" type="submit" data-testid="open-till">{say!("box_office.open_till")}</button>
        </form>
    }
}

/// The open till: its sums, its ledger, what goes to the safe, and its end.
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
                    {from.sent()}
                    {sum_field("drop", say!("box_office.drop_amount"), drop.amount)}
                    {reason_field("drop-reason", say!("box_office.reason"), drop.reason, true)}
                    <button class="button button-quiet" type="submit" data-testid="drop">{say!("box_office.drop_now")}</button>
                </form>
            </details>
            <details open=is_count_refused>
                <summary data-testid="cash-up-open">{say!("box_office.cash_up")}</summary>
                <form class="counter-form" action=format!("{}/till/cash-up", from.base) method="post">
                    {from.sent()}
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

/// Who counted it in place of whose it was, when and why.
fn in_place(till: &TillView) -> Option<impl IntoView + use<>> {
    let (by, why) = till.counted_by.as_ref().zip(till.counted_why.as_ref())?;
    let time = till.closed_at.clone().unwrap_or_default();
    let words = say!("box_office.counted_by", by = by, time = &time, reason = why);
    Some(view! { <p class="quiet" data-testid="counted-by">{words}</p> })
}

fn line(base: &str, row: TillRow) -> impl IntoView + use<> {
    let what = match row.kind {
        Entry::Float => say!("box_office.row_float"),
        Entry::Sale => say!("box_office.row_sale"),
        Entry::Refund => say!("box_office.row_refund"),
        Entry::Exchange => say!("box_office.row_exchange"),
        Entry::Drop => say!("box_office.row_drop"),
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

/// Somebody went without counting their till: a manager counts it.
fn counting_for(from: DayForm<'_>, till: &TillView, refused: Refused<'_>) -> impl IntoView + use<> {
    let id = till.id;
    let (is_refused, form) = form_of(TillAct::CashUpFor(id), refused);
    view! {
        <details open=is_refused>
            <summary data-testid="cash-up-for-open">{say!("box_office.cash_up_for", name = &till.person)}</summary>
            <form class="counter-form" action=format!("{}/tills/{id}/cash-up", from.base) method="post">
                {from.sent()}
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

/// For managers: every till of the day, those that are open and not their own to be counted, the day's end, and their PIN.
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
                    {from.sent()}
                    {reason_field("day-reason", say!("box_office.day_word"), form.reason, true)}
                    <button class="button" type="submit" data-testid="close-day">{say!("box_office.close_day")}</button>
                </form>
            })}
            {pin(from, refused)}
        </section>
    }
}

/// For managers: their own PIN. What is wrong with it stands where it was said what one is.
fn pin(from: DayForm<'_>, refused: Refused<'_>) -> impl IntoView + use<> {
    let (is_refused, form) = match refused {
        Some(CounterForm::Pin(form)) => (true, form.clone()),
        _ => (false, PinForm::default()),
    };
    let (pin_invalid, pin_error, below_pin) = form.pin.told("pin");
    let (password_invalid, password_error, below_password) = form.password.told("pin-password");
    let pin_told_by = pin_error.unwrap_or_else(|| "pin-hint".to_owned());
    let hint =
        below_pin.is_none().then(|| view! { <p class="quiet small" id="pin-hint">{say!("box_office.pin_hint")}</p> });
    view! {
        <details class="card" open=is_refused>
            <summary>{say!("box_office.pin_title")}</summary>
            <form class="counter-form" action=format!("{}/pin", from.base) method="post">
                {from.sent()}
                {username(String::new())}
                <div class="field">
                    <label for="pin">{say!("box_office.pin")}</label>
                    <input id="pin" name="pin" type="password" inputmode="numeric" autocomplete="off" required
                        minlength="6" maxlength="12" aria-invalid=pin_invalid aria-describedby=pin_told_by />
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
