//! The receipt of a booking: its lines, the parts of the total, and the total.

use domain::api::Receipt;
use language::{current, money, say};
use leptos::prelude::*;

/// Messages with the names of the parts of a total: subtotal, taxes, fees.
pub(crate) const PRICE_PARTS: [&str; 3] = ["booking.subtotal", "booking.taxes", "booking.fees"];

/// Seats and places with their prices, and the total with its taxes and fees.
pub(super) fn receipt_lines(receipt: Receipt) -> impl IntoView {
    let language = current();
    let lines = receipt.lines().map(|(name, category, price)| {
        view! {
            <li>
                <bdi class="booking-seat">{name}</bdi>
                <bdi class="quiet">{category.to_owned()}</bdi>
                <span class="booking-price">{money(price, language)}</span>
            </li>
        }
    });
    let lines = lines.collect_view();
    let breakdown = receipt.breakdown;
    let parts = breakdown.parts(PRICE_PARTS).map(|(part, amount)| {
        view! { <div class="booking-part" data-testid="price-part"><dt>{say!(part)}</dt><dd>{money(amount, language)}</dd></div> }
    });
    let parts = parts.collect_view();
    view! {
        <ul class="booking-seats">{lines}</ul>
        <dl>
            {parts}
            <div class="booking-total"><dt>{say!("booking.total")}</dt><dd data-testid="price-total">{money(breakdown.total, language)}</dd></div>
        </dl>
    }
}

/// The receipt, on the pages of tickets.
pub(crate) fn receipt_card(receipt: Receipt) -> impl IntoView {
    view! {
        <section class="receipt card" aria-labelledby="receipt" data-testid="receipt">
            <h2 id="receipt">{say!("ticket.receipt")}</h2>
            {receipt_lines(receipt)}
        </section>
    }
}
