//! The till of a shift, and the manager's overview of the day.

use domain::VariantName;
use domain::api::box_office::{DayView, TillRow, TillView};
use domain::money::Money;
use domain::till::TillEntryKind;
use language::{current, money, say};
use leptos::prelude::*;
use uuid::Uuid;

use super::super::Form;
use super::super::fields::{Field, amount_field, error_attributes};
use super::DayForm;
use crate::markup::Markup;
use crate::pages::accounts::username;
use crate::staff::islands::box_office::means_words;

const WHY_COUNT: Field = Field::reason("cash-up-reason", "box_office.difference_reason").optional();
const WHY_COUNT_FOR: Field = Field::reason("", "box_office.cash_up_for_reason");
const WHY_CLOSE: Field = Field::reason("day-reason", "box_office.day_word").optional();

fn sum_field(id: &str, label: String, form: &Form) -> Markup {
    amount_field(form, (id.to_owned(), "amount".to_owned()), label, None, true)
}

/// The form that opens a till. Shows the last till if a manager counted it.
pub(super) fn opening(from: DayForm<'_>, counted_for_me: Option<TillView>, refused: &Form) -> impl IntoView + use<> {
    let form = refused.only("till/open");
    view! {
        {counted_for_me.map(|till| view! {
            <div class="card counter-till" data-testid="counted-for-me">{counted_by_manager(&till)}{sums(&till)}</div>
        })}
        <form class="card counter-form" action=format!("{}/till/open", from.base) method="post">
            {from.hidden_inputs()}
            <p class="quiet">{say!("box_office.till_closed")}</p>
            {sum_field("float", say!("box_office.float"), &form)}
            <button class="button" type="submit" data-testid="open-till">{say!("box_office.open_till")}</button>
        </form>
    }
}

/// The open till: sums, ledger, drop and cash-up.
pub(super) fn open(from: DayForm<'_>, till: TillView, refused: &Form) -> impl IntoView + use<> {
    let rows = till.rows.clone();
    let (drop, count) = (refused.only("till/drop"), refused.only("till/cash-up"));
    view! {
        <div class="card counter-till" data-testid="till" data-expected=till.expected.minor>
            {sums(&till)}
            <details open=refused.is("till/drop")>
                <summary>{say!("box_office.drop")}</summary>
                <form class="counter-form" action=format!("{}/till/drop", from.base) method="post">
                    {from.hidden_inputs()}
                    {sum_field("drop", say!("box_office.drop_amount"), &drop)}
                    <button class="button button-quiet" type="submit" data-testid="drop">{say!("box_office.drop_now")}</button>
                </form>
            </details>
            <details open=refused.is("till/cash-up")>
                <summary data-testid="cash-up-open">{say!("box_office.cash_up")}</summary>
                <form class="counter-form" action=format!("{}/till/cash-up", from.base) method="post">
                    {from.hidden_inputs()}
                    {sum_field("counted", say!("box_office.counted_cash"), &count)}
                    {WHY_COUNT.view(&count)}
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
fn counted_by_manager(till: &TillView) -> Option<impl IntoView + use<>> {
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
    let booking = row.booking.zip(row.reference).map(|(booking, reference)| {
        view! { <a href=format!("{base}/bookings/{booking}")>{reference}</a> }
    });
    view! {
        <li data-kind=row.kind.as_str() data-amount=row.amount.minor>
            <span>{row.at}</span>
            <span>{what}" · "{means_words(row.means)}</span>
            {booking}
            <bdi class="quiet small">{row.reason}</bdi>
            <strong>{money(row.amount, current())}</strong>
        </li>
    }
}

/// The form with which a manager counts a till whose seller has left.
fn counting_for(from: DayForm<'_>, till: &TillView, refused: &Form) -> impl IntoView + use<> {
    let id = till.id;
    let name = format!("tills/{id}/cash-up");
    let form = refused.only(&name);
    view! {
        <details open=refused.is(&name)>
            <summary data-testid="cash-up-for-open">{say!("box_office.cash_up_for", name = &till.person)}</summary>
            <form class="counter-form" action=format!("{}/tills/{id}/cash-up", from.base) method="post">
                {from.hidden_inputs()}
                <p class="quiet small">{say!("box_office.cash_up_for_hint")}</p>
                {sum_field(&format!("counted-{id}"), say!("box_office.counted_cash"), &form)}
                {WHY_COUNT_FOR.with_id(format!("reason-{id}"), &form)}
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
    refused: &Form,
) -> impl IntoView + use<> {
    let form = refused.only("day-close");
    let can_close = !tills.is_empty() && tills.iter().all(|till| till.closed_at.is_some());
    let list = tills.into_iter().map(|till| {
        let state = if till.closed_at.is_some() { "counted" } else { "open" };
        let count = (till.closed_at.is_none() && own != Some(till.id)).then(|| counting_for(from, &till, refused));
        view! {
            <li class="card counter-till" data-testid="day-till" data-state=state data-till=till.id.to_string()>
                {sums(&till)}
                {counted_by_manager(&till)}
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
                    {WHY_CLOSE.view(&form)}
                    <button class="button" type="submit" data-testid="close-day">{say!("box_office.close_day")}</button>
                </form>
            })}
            {pin(from, refused)}
        </section>
    }
}

/// For managers: their own PIN. An error replaces the hint.
fn pin(from: DayForm<'_>, refused: &Form) -> impl IntoView + use<> {
    let form = refused.only("pin");
    let (pin_invalid, pin_error, below_pin) = error_attributes(&form, "pin", "pin");
    let (password_invalid, password_error, below_password) = error_attributes(&form, "password", "pin-password");
    let pin_described_by = pin_error.unwrap_or_else(|| "pin-hint".to_owned());
    let hint =
        below_pin.is_none().then(|| view! { <p class="quiet small" id="pin-hint">{say!("box_office.pin_hint")}</p> });
    view! {
        <details class="card" open=refused.is("pin")>
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
