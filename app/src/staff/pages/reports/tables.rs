//! Tables with bars: sales by name, the funnel, and the totals.

use domain::api::reports::{FunnelReport, SalesReport, Sold, SoldLine, SoldShow, TakingsReport};
use language::say;
use leptos::prelude::*;

use super::super::when;
use super::charts::{PART_HEADINGS, amount, has_tax_or_fee, nothing, part_cells, whole};
use crate::markup::{IntoMarkup, Markup};

/// Most rows on the page; the file has all.
const MAX_ROWS: usize = 60;
/// Length of the longest bar, in units of its drawing.
const BAR: i64 = 100;

/// A bar beside its number. Hidden from screen readers, because the number says the same.
fn bar(value: i64, most: i64) -> Markup {
    let long = i64::try_from(i128::from(value.max(0)) * i128::from(BAR) / i128::from(most.max(1))).unwrap_or(BAR);
    view! {
        <svg class="chart-bar" viewBox=format!("0 0 {BAR} 10") preserveAspectRatio="none" aria-hidden="true" focusable="false">
            <rect class="chart-up" width=long height="10" rx="1" />
        </svg>
    }
    .into_markup()
}

pub(super) fn totals(sales: &SalesReport, takings: &TakingsReport) -> Markup {
    let tickets: i64 = sales.totals.iter().map(|sold| sold.tickets).sum();
    let bookings: i64 = sales.totals.iter().map(|sold| sold.bookings).sum();
    let back: i64 = sales.totals.iter().map(|sold| sold.given_back).sum();
    let sum = |minor: fn(&Sold) -> i64| listed(sales.totals.iter().map(|sold| amount(minor(sold), &sold.currency)));
    let has_tax_or_fee = sales.totals.iter().any(has_tax_or_fee);
    let net = listed(takings.totals.iter().map(|total| amount(total.net_minor, &total.currency)));
    let under_way = takings.totals.iter().filter(|total| total.under_way_minor > 0);
    let under_way = listed(under_way.map(|total| amount(total.under_way_minor, &total.currency)));
    let is_under_way = under_way != NONE;
    let card = |test: &'static str, label: String, value: String| {
        view! { <div class="card reports-total" data-testid=test><dt>{label}</dt><dd>{value}</dd></div> }
    };
    view! {
        <dl class="reports-totals">
            {card("total-tickets", say!("reports.tickets"), whole(tickets))}
            {card("total-bookings", say!("reports.bookings"), whole(bookings))}
            {card("total-gross", say!("reports.gross"), sum(|sold| sold.gross_minor))}
            {has_tax_or_fee.then(|| view! {
                {card("total-net-sales", say!("reports.net_sales"), sum(|sold| sold.net_minor))}
                {card("total-tax", say!("booking.taxes"), sum(|sold| sold.tax_minor))}
                {card("total-fees", say!("booking.fees"), sum(|sold| sold.fee_minor))}
            })}
            {card("total-given-back", say!("reports.given_back"), whole(back))}
            {card("total-net", say!("reports.net"), net)}
            {is_under_way.then(|| card("total-under-way", say!("reports.under_way"), under_way))}
        </dl>
    }
    .into_markup()
}

/// Shown if there are no amounts.
const NONE: &str = "–";

fn listed(amounts: impl Iterator<Item = String>) -> String {
    let all: Vec<String> = amounts.collect();
    if all.is_empty() { NONE.to_owned() } else { all.join(" · ") }
}

pub(super) fn sold(title: &str, lines: &[SoldLine]) -> Markup {
    let name = |line: &SoldLine| view! { <bdi>{line.name.clone()}</bdi> }.into_markup();
    with_bars(title, lines, say!("reports.name"), name, |line| &line.sold)
}

pub(super) fn shows(title: &str, shows: &[SoldShow]) -> Markup {
    let name = |show: &SoldShow| {
        view! {
            <a href=format!("/shows/{}", show.show)><bdi>{show.film.clone()}</bdi></a>
            <span class="quiet small">{when(&show.starts_local)}" · "<bdi>{show.screen.clone()}</bdi></span>
        }
        .into_markup()
    };
    with_bars(title, shows, say!("reports.show_column"), name, |show| &show.sold)
}

/// A table with a name column and a bar for the tickets of each line. `title` labels the table.
fn with_bars<L>(title: &str, lines: &[L], column: String, name: fn(&L) -> Markup, sold: fn(&L) -> &Sold) -> Markup {
    if lines.is_empty() {
        return nothing();
    }
    let most = lines.iter().map(|line| sold(line).tickets).max().unwrap_or(0);
    let has_tax_or_fee = lines.iter().any(|line| has_tax_or_fee(sold(line)));
    let rows = lines.iter().take(MAX_ROWS).map(|line| {
        let sold = sold(line);
        view! {
            <tr>
                <th scope="row">{name(line)}</th>
                <td>{whole(sold.tickets)}</td>
                <td class="reports-bar">{bar(sold.tickets, most)}</td>
                <td>{amount(sold.gross_minor, &sold.currency)}</td>
                {has_tax_or_fee.then(|| part_cells(sold))}
            </tr>
        }
    });
    let rows = rows.collect_view();
    let part_headings = PART_HEADINGS.into_iter().filter(|_| has_tax_or_fee);
    let part_headings = part_headings.map(|heading| view! { <th scope="col">{say!(heading)}</th> }).collect_view();
    let left = lines.len().checked_sub(MAX_ROWS).filter(|left| *left > 0);
    let label = title.to_owned();
    view! {
        // Wider than a tablet, so it scrolls, also by keyboard.
        <div class="reports-scroll" tabindex="0" role="group" aria-label=label>
            <table class="reports-table">
                <thead>
                    <tr>
                        <th scope="col">{column}</th>
                        <th scope="col">{say!("reports.tickets")}</th>
                        <td></td>
                        <th scope="col">{say!("reports.gross")}</th>
                        {part_headings}
                    </tr>
                </thead>
                <tbody>{rows}</tbody>
            </table>
        </div>
        {left.map(|left| view! { <p class="quiet small">{say!("reports.more", count = left)}</p> })}
    }
    .into_markup()
}

/// The funnel from hold to ticket, and why the others were lost.
pub(super) fn funnel(report: &FunnelReport) -> Markup {
    if report.holds == 0 && report.checked_out == 0 {
        return nothing();
    }
    let most = report.holds.max(report.checked_out);
    let row = |label: String, value: i64, test: &'static str| {
        view! {
            <tr data-testid=test>
                <th scope="row">{label}</th>
                <td>{whole(value)}</td>
                <td class="reports-bar">{bar(value, most)}</td>
            </tr>
        }
    };
    view! {
        <table class="reports-table">
            <caption class="visually-hidden">{say!("reports.funnel")}</caption>
            <tbody>
                {row(say!("reports.step_holds"), report.holds, "step-holds")}
                {row(say!("reports.step_checked_out"), report.checked_out, "step-checked-out")}
                {row(say!("reports.step_submitted"), report.submitted, "step-submitted")}
                {row(say!("reports.step_paid"), report.paid, "step-paid")}
                {row(say!("reports.step_ticketed"), report.ticketed, "step-ticketed")}
            </tbody>
        </table>
        <h3>{say!("reports.abandoned")}</h3>
        <table class="reports-table">
            <caption class="visually-hidden">{say!("reports.abandoned")}</caption>
            <tbody>
                {row(say!("reports.lost_ran_out"), report.ran_out, "lost-ran-out")}
                {row(say!("reports.lost_declined"), report.declined, "lost-declined")}
                {row(say!("reports.lost_let_go"), report.let_go, "lost-let-go")}
                {row(say!("reports.lost_open"), report.open, "lost-open")}
            </tbody>
        </table>
        <p class="quiet small">{say!("reports.funnel_note")}</p>
    }
    .into_markup()
}
