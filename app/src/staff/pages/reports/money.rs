//! Takings and refunds by day.

use std::collections::BTreeMap;

use domain::api::reports::{TakingsLine, TakingsReport};
use domain::money::{Currency, Money};
use domain::till::Means;
use leptos::prelude::*;

use super::charts::{self, Column, numbers, whole};
use super::day_words;
use crate::language::{self, money};
use crate::say;

/// A formatted amount. Unknown currencies are shown in minor units.
pub(super) fn amount(minor: i64, currency: &str) -> String {
    match Currency::parse(currency) {
        Some(currency) => money(Money::new(minor, currency), language::current()),
        None => format!("{} {currency}", whole(minor)),
    }
}

/// A chart per currency, and one table.
pub(super) fn view(calendar: &[String], takings: &TakingsReport) -> AnyView {
    if takings.lines.is_empty() {
        return charts::nothing();
    }
    let drawings = takings.totals.iter().enumerate().map(|(place, total)| {
        let mut days: BTreeMap<&str, (i64, i64)> = BTreeMap::new();
        for line in takings.lines.iter().filter(|line| line.currency == total.currency) {
            let day = days.entry(&line.date).or_default();
            *day = (day.0 + line.taken_minor, day.1 + line.refunded_minor);
        }
        let drawn: Vec<Column> = calendar
            .iter()
            .map(|day| {
                let (up, down) = days.get(day.as_str()).copied().unwrap_or_default();
                let (taken, back) = (amount(up, &total.currency), amount(down, &total.currency));
                let words = say!("reports.day_takings", day = &day_words(day), taken = &taken, back = &back);
                Column { day: day.clone(), words, up, down }
            })
            .collect();
        let described = say!(
            "reports.takings_described",
            taken = &amount(total.taken_minor, &total.currency),
            back = &amount(total.refunded_minor, &total.currency),
            net = &amount(total.net_minor, &total.currency)
        );
        // Nearly always there is one currency; further drawings need another id.
        let id = if place == 0 { "chart-takings" } else { "chart-takings-other" };
        view! {
            {(place < 2).then(|| charts::columns(id, say!("reports.takings"), described.clone(), &drawn))}
            <p class="quiet small">{described}</p>
        }
        .into_any()
    });
    let drawings = drawings.collect_view();
    let rows = takings.lines.iter().map(row).collect_view();
    view! {
        {drawings}
        {numbers(say!("reports.takings"), view! {
            <thead>
                <tr>
                    <th scope="col">{say!("reports.day")}</th>
                    <th scope="col">{say!("reports.way")}</th>
                    <th scope="col">{say!("reports.payments")}</th>
                    <th scope="col">{say!("reports.taken")}</th>
                    <th scope="col">{say!("reports.refunds")}</th>
                    <th scope="col">{say!("reports.refunded")}</th>
                    <th scope="col">{say!("reports.net")}</th>
                    <th scope="col">{say!("reports.fees")}</th>
                </tr>
            </thead>
            <tbody>{rows}</tbody>
        }.into_any())}
    }
    .into_any()
}

/// The name of a payment method. Gateways keep their own name.
fn way_words(way: &str) -> String {
    let means = match Means::parse_gateway_name(way) {
        Some(Means::Cash) => say!("box_office.cash"),
        Some(Means::Card) => say!("box_office.card"),
        Some(Means::Free) => say!("box_office.free"),
        None => return way.to_owned(),
    };
    format!("{} · {means}", say!("reports.channel_box_office"))
}

fn row(line: &TakingsLine) -> impl IntoView + use<> {
    let of = |minor| amount(minor, &line.currency);
    view! {
        <tr>
            <th scope="row">{day_words(&line.date)}</th>
            <td>{way_words(&line.way)}</td>
            <td>{whole(line.payments)}</td>
            <td>{of(line.taken_minor)}</td>
            <td>{whole(line.refunds)}</td>
            <td>{of(line.refunded_minor)}</td>
            <td>{of(line.taken_minor - line.refunded_minor)}</td>
            <td>{of(line.fees_minor)}</td>
        </tr>
    }
}
