//! Column charts over days, of sales and of takings: a drawing with title and description, and a table of the same numbers.

use std::collections::BTreeMap;

use domain::api::reports::{SalesReport, Sold, TakingsLine, TakingsReport};
use domain::money::{Currency, Money};
use domain::till::Means;
use language::{money, number, say};
use leptos::prelude::*;

use super::super::wide_table;
use super::day_words;
use crate::markup::{IntoMarkup, Markup};
use crate::staff::islands::box_office::means_words;

/// Height of the columns, pixels.
const HEIGHT: i64 = 180;
/// Space for half a label above the highest column, pixels.
const HEAD: i64 = 10;
/// Space for the days below, pixels.
const FOOT: i64 = 26;
/// Width of the scale beside the columns, pixels.
const SCALE_WIDTH: i64 = 88;
/// Pixels between the scale's labels and the columns.
const SCALE_GAP: i64 = 6;
/// Most ticks in one direction, without zero.
const MAX_TICKS: i64 = 4;

/// A day of a chart, with a value up and a value down.
pub(super) struct Column {
    /// The day.
    pub day: String,
    /// Tooltip of the column.
    pub words: String,
    pub up: i64,
    pub down: i64,
}

/// A chart with one column per day and a scale, whose labels `value_words` writes. The drawing has pixels in height and
/// shares of the page in width, so that it is as wide as the page and its text keeps its size.
pub(super) fn columns(
    id: &'static str,
    title: String,
    description: String,
    columns: &[Column],
    value_words: impl Fn(i64) -> String,
) -> Markup {
    let most_up = columns.iter().map(|column| column.up).max().unwrap_or(0).max(0);
    let most_down = columns.iter().map(|column| column.down).max().unwrap_or(0).max(0);
    // Small columns stay visible beside large ones.
    let whole = most_up.saturating_add(most_down).max(1);
    let tall = |value: i64| scaled(value, whole);
    let axis = HEAD + tall(most_up);
    let count = i64::try_from(columns.len()).unwrap_or(0);
    let height = axis + tall(most_down) + FOOT;
    let step = tick_step(most_up.max(most_down));
    let ticks = (-(most_down / step)..=most_up / step).map(|tick| {
        let value = tick * step;
        (value, axis - tall(value) + tall(-value))
    });
    let ticks: Vec<(i64, i64)> = ticks.collect();
    let lines = ticks.iter().map(|&(_, y)| view! { <line class="chart-tick" x1="0" x2="100%" y1=y y2=y /> });
    let lines = lines.collect_view();
    let end = SCALE_WIDTH - SCALE_GAP;
    let labels = ticks.iter().map(|&(value, y)| {
        view! { <text class="chart-text chart-text-last" x=end y=y dy="0.35em">{value_words(value)}</text> }
    });
    let labels = labels.collect_view();
    // A column has eight tenths of its day.
    let bars = columns.iter().zip(0..).map(|(column, place): (&Column, i64)| {
        let (up, down) = (tall(column.up), tall(column.down));
        let (x, wide, top) = (share(place * 10 + 1, count * 10), share(8, count * 10), axis - up);
        view! {
            <g>
                <title>{column.words.clone()}</title>
                <rect class="chart-up" x=x.clone() y=top width=wide.clone() height=up />
                <rect class="chart-down" x=x y=axis width=wide height=down />
            </g>
        }
    });
    let bars = bars.collect_view();
    let foot = height - 6;
    let day = |place: i64, x: String, class: &'static str| {
        let column = usize::try_from(place).ok().and_then(|place| columns.get(place));
        column.map(|column| view! { <text class=class x=x y=foot>{day_words(&column.day)}</text> })
    };
    let middle = count / 2;
    let days = view! {
        {day(0, share(0, 1), "chart-text")}
        {(count > 2).then(|| day(middle, share(middle * 2 + 1, count * 2), "chart-text chart-text-middle"))}
        {(count > 1).then(|| day(count - 1, share(1, 1), "chart-text chart-text-last"))}
    };
    // Leptos evaluates children before the attributes of their parent.
    let (title_id, description_id) = (format!("{id}-name"), format!("{id}-description"));
    let (named_by, described_by) = (title_id.clone(), description_id.clone());
    view! {
        <div class="chart-frame">
            <svg width=SCALE_WIDTH height=height aria-hidden="true" data-testid="chart-scale">{labels}</svg>
            <svg class="chart" height=height role="img" aria-labelledby=named_by aria-describedby=described_by data-testid=id>
                <title id=title_id>{title}</title>
                <desc id=description_id>{description}</desc>
                {lines}
                {bars}
                <line class="chart-axis" x1="0" x2="100%" y1=axis y2=axis />
                {days}
            </svg>
        </div>
    }
    .into_markup()
}

/// Distance of the ticks of a scale: 1, 2 or 5 times a power of ten, the smallest with at most [`MAX_TICKS`] up to `most`.
fn tick_step(most: i64) -> i64 {
    let mut power = 1_i64;
    loop {
        let steps = [1, 2, 5].map(|factor| power.saturating_mul(factor));
        if let Some(step) = steps.into_iter().find(|step| most / step <= MAX_TICKS) {
            return step;
        }
        power = power.saturating_mul(10);
    }
}

/// A part of the width in percent: `12.500%`.
fn share(part: i64, whole: i64) -> String {
    let thousandths = part * 100_000 / whole.max(1);
    format!("{}.{:03}%", thousandths / 1_000, thousandths % 1_000)
}

/// Height of a value. Positive values are at least one unit high.
fn scaled(value: i64, whole: i64) -> i64 {
    if value <= 0 {
        return 0;
    }
    let height = i128::from(value) * i128::from(HEIGHT) / i128::from(whole);
    i64::try_from(height).unwrap_or(HEIGHT).clamp(1, HEIGHT)
}

/// Tickets by day of sale.
pub(super) fn over_time(calendar: &[String], sales: &SalesReport) -> Markup {
    if sales.by_day.is_empty() {
        return nothing();
    }
    let mut tickets: BTreeMap<&str, i64> = BTreeMap::new();
    for line in &sales.by_day {
        *tickets.entry(&line.name).or_default() += line.sold.tickets;
    }
    let sold_on = |day: &str| tickets.get(day).copied().unwrap_or(0);
    let all: i64 = tickets.values().sum();
    let best = tickets.iter().max_by_key(|(_, tickets)| **tickets).map(|(day, _)| day_words(day)).unwrap_or_default();
    let most = tickets.values().copied().max().unwrap_or(0);
    let described = say!("reports.over_time_described", tickets = all, day = &best, most = most);
    let drawn: Vec<Column> = calendar
        .iter()
        .map(|day| {
            let up = sold_on(day);
            let words = say!("reports.day_tickets", day = &day_words(day), tickets = up);
            Column { day: day.clone(), words, up, down: 0 }
        })
        .collect();
    let has_tax_or_fee = sales.by_day.iter().any(|line| has_tax_or_fee(&line.sold));
    let rows = sales.by_day.iter().map(|line| {
        let sold = &line.sold;
        view! {
            <tr>
                <th scope="row">{day_words(&line.name)}</th>
                <td>{whole(sold.bookings)}</td>
                <td>{whole(sold.tickets)}</td>
                <td>{amount(sold.gross_minor, &sold.currency)}</td>
                {has_tax_or_fee.then(|| part_cells(sold))}
                <td>{whole(sold.given_back)}</td>
            </tr>
        }
    });
    let rows = rows.collect_view();
    let sums = ["reports.day", "reports.bookings", "reports.tickets", "reports.gross"];
    let part_headings = PART_HEADINGS.into_iter().filter(|_| has_tax_or_fee);
    let headings: Vec<_> = sums.into_iter().chain(part_headings).chain(["reports.given_back"]).collect();
    view! {
        {columns("chart-days", say!("reports.over_time"), described.clone(), &drawn, whole)}
        <p class="quiet small">{described}</p>
        {numbers("reports.over_time", &headings, rows)}
    }
    .into_markup()
}

/// Takings and refunds by day: a chart per currency, and one table.
pub(super) fn takings(calendar: &[String], takings: &TakingsReport) -> Markup {
    if takings.lines.is_empty() {
        return nothing();
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
        let money_words = |minor: i64| amount(minor, &total.currency);
        // Nearly always there is one currency; further drawings need another id.
        let id = if place == 0 { "chart-takings" } else { "chart-takings-other" };
        view! {
            {(place < 2).then(|| columns(id, say!("reports.takings"), described.clone(), &drawn, money_words))}
            <p class="quiet small">{described}</p>
        }
        .into_markup()
    });
    let drawings = drawings.collect_view();
    let rows = takings.lines.iter().map(row).collect_view();
    let headings = [
        "reports.day",
        "reports.way",
        "reports.payments",
        "reports.taken",
        "reports.refunds",
        "reports.refunded",
        "reports.net",
        "reports.fees",
    ];
    view! {
        {drawings}
        {numbers("reports.takings", &headings, rows)}
    }
    .into_markup()
}

/// The name of a payment method. Gateways keep their own name.
fn way_words(way: &str) -> String {
    match Means::parse_gateway_name(way) {
        Some(means) => format!("{} · {}", say!("reports.channel_box_office"), means_words(means)),
        None => way.to_owned(),
    }
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

/// A table of a chart's numbers, in a disclosure. Caption and columns are messages.
pub(super) fn numbers(caption: &'static str, columns: &[&'static str], rows: impl IntoView) -> Markup {
    let columns: Vec<_> = columns.iter().map(|message| (*message, false)).collect();
    view! {
        <details class="reports-numbers">
            <summary>{say!("reports.numbers")}</summary>
            {wide_table(say!(caption), &columns, rows)}
        </details>
    }
    .into_markup()
}

/// Headings of [`part_cells`].
pub(super) const PART_HEADINGS: [&str; 3] = ["reports.net_sales", "booking.taxes", "booking.fees"];

/// True if prices contained taxes or fees: tables have columns for them only then.
pub(super) const fn has_tax_or_fee(sold: &Sold) -> bool {
    sold.tax_minor != 0 || sold.fee_minor != 0
}

/// The gross amount without taxes and fees, the taxes, the fees.
pub(super) fn part_cells(sold: &Sold) -> impl IntoView + use<> {
    let [net, tax, fees] = [sold.net_minor, sold.tax_minor, sold.fee_minor].map(|minor| amount(minor, &sold.currency));
    view! { <td>{net}</td><td>{tax}</td><td>{fees}</td> }
}

/// A formatted amount. Unknown currencies are shown in minor units.
pub(super) fn amount(minor: i64, currency: &str) -> String {
    match Currency::parse(currency) {
        Some(currency) => money(Money::new(minor, currency), language::current()),
        None => format!("{} {currency}", whole(minor)),
    }
}

pub(super) fn nothing() -> Markup {
    view! { <p class="quiet">{say!("reports.nothing")}</p> }.into_markup()
}

pub(super) fn whole(value: i64) -> String {
    number(value, language::current())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_scaled_to_the_height_and_small_ones_stay_visible() {
        assert_eq!([0, 1, 500_000, 1_000_000].map(|value| scaled(value, 1_000_000)), [0, 1, 90, 180]);
        assert_eq!(scaled(i64::MAX, i64::MAX), HEIGHT);
        assert_eq!(scaled(-5, 10), 0);
    }

    #[test]
    fn ticks_are_round_numbers_and_few() {
        for (most, step) in [(0, 1), (4, 1), (5, 2), (9, 2), (24, 5), (25, 10), (125_000, 50_000)] {
            assert_eq!(tick_step(most), step, "{most}");
        }
        assert!(i64::MAX / tick_step(i64::MAX) <= MAX_TICKS);
    }

    #[test]
    fn shares_of_the_width_are_percentages() {
        assert_eq!([share(0, 1), share(1, 8), share(31, 31)], ["0.000%", "12.500%", "100.000%"]);
    }
}
