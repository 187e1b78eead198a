//! Reports as CSV files, one table each (format: `domain::csv`).

use domain::VariantName;
use domain::api::reports::{FunnelReport, OccupancyReport, Sold, SoldLine, SoldShow, TakingsLine};
use domain::csv::{self, Cell, Separator};
use domain::money::{Currency, Money};
use strum::{EnumString, IntoStaticStr};

use super::range::Range;
use super::{funnel, occupancy, sales, takings};
use crate::BackofficeState;
use catalogue::Show;
use http::{ApiResult, Problem};

/// A table that can be exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, EnumString)]
#[strum(serialize_all = "snake_case")]
pub(super) enum Table {
    Days,
    Channels,
    Categories,
    Films,
    Shows,
    Funnel,
    Takings,
    Seats,
}

impl Table {
    /// Parses the name of a table. 404 for an unknown name.
    pub(super) fn parse(name: &str) -> ApiResult<Self> {
        name.parse().map_err(|_| Problem::not_found("table"))
    }

    /// Returns the file name: only slugs and dates, so it is safe in a header.
    pub(super) fn file_name(self, theatre: &str, range: &Range) -> String {
        format!("{theatre}-{}-{}-{}.csv", self.as_str(), range.from, range.to)
    }
}

/// The columns of a sale. New ones are appended: programs may read columns by position.
const SOLD: [&str; 12] = [
    "currency",
    "bookings",
    "tickets",
    "gross_minor",
    "given_back",
    "net_minor",
    "tax_minor",
    "fee_minor",
    "gross",
    "net",
    "tax",
    "fee",
];

/// Returns the CSV file of a table. As the report of the table.
pub(super) async fn file(
    state: &BackofficeState,
    theatre: &str,
    table: Table,
    range: &Range,
    screen: Option<&str>,
    separator: Separator,
) -> ApiResult<String> {
    match table {
        Table::Funnel => Ok(of_funnel(separator, &funnel(state, theatre, range, screen).await?)),
        Table::Takings => Ok(of_takings(separator, &takings(state, theatre, range, screen).await?.lines)),
        Table::Seats => {
            let report = occupancy(state, theatre, range, screen).await?;
            let show = match report.show {
                Some(show) => Some(state.catalogue.find_show(show).await?),
                None => None,
            };
            Ok(of_seats(separator, &report, show.as_deref()))
        }
        Table::Days | Table::Channels | Table::Categories | Table::Films | Table::Shows => {
            let report = sales(state, theatre, range, screen).await?;
            Ok(match table {
                Table::Days => of_lines(separator, "date", &report.by_day),
                Table::Channels => of_lines(separator, "channel", &report.by_channel),
                Table::Categories => of_lines(separator, "category", &report.by_category),
                Table::Films => of_lines(separator, "film", &report.by_film),
                _ => of_shows(separator, &report.by_show),
            })
        }
    }
}

fn of_lines(separator: Separator, what: &str, lines: &[SoldLine]) -> String {
    let names: Vec<&str> = std::iter::once(what).chain(SOLD).collect();
    let row = |line: &SoldLine| std::iter::once(Cell::from(&line.name)).chain(cells(&line.sold)).collect::<Vec<_>>();
    csv::write(separator, &names, lines.iter().map(row))
}

fn of_shows(separator: Separator, shows: &[SoldShow]) -> String {
    let names: Vec<&str> = ["starts", "film", "screen", "show"].into_iter().chain(SOLD).collect();
    let row = |show: &SoldShow| {
        let named = [
            Cell::from(&show.starts_local),
            Cell::from(&show.film),
            Cell::from(&show.screen),
            Cell::from(show.show.to_string().as_str()),
        ];
        named.into_iter().chain(cells(&show.sold)).collect::<Vec<_>>()
    };
    csv::write(separator, &names, shows.iter().map(row))
}

/// The cells of [`SOLD`].
fn cells(sold: &Sold) -> impl Iterator<Item = Cell> {
    let Sold { bookings, tickets, gross_minor, given_back, net_minor, tax_minor, fee_minor, .. } = sold;
    let numbers = [bookings, tickets, gross_minor, given_back, net_minor, tax_minor, fee_minor];
    let amounts = [gross_minor, net_minor, tax_minor, fee_minor].map(|minor| amount(*minor, &sold.currency));
    std::iter::once(Cell::from(&sold.currency)).chain(numbers.map(|number| Cell::from(*number))).chain(amounts)
}

/// An amount with its decimals. The cell of an unknown currency is empty: its number of decimals is unknown.
fn amount(minor: i64, currency: &str) -> Cell {
    Currency::parse(currency).map_or_else(|| Cell::from(""), |currency| Cell::from(Money::new(minor, currency)))
}

fn of_funnel(separator: Separator, report: &FunnelReport) -> String {
    let rows = [
        ("holds", report.holds),
        ("checked_out", report.checked_out),
        ("submitted", report.submitted),
        ("paid", report.paid),
        ("ticketed", report.ticketed),
        ("ran_out", report.ran_out),
        ("declined", report.declined),
        ("let_go", report.let_go),
        ("open", report.open),
    ];
    csv::write(separator, &["step", "number"], rows.map(|(step, number)| vec![Cell::from(step), Cell::from(number)]))
}

fn of_takings(separator: Separator, lines: &[TakingsLine]) -> String {
    let names = [
        "date",
        "way",
        "currency",
        "payments",
        "taken_minor",
        "refunds",
        "refunded_minor",
        "net_minor",
        "fees_minor",
        "taken",
        "refunded",
        "net",
        "fees",
    ];
    let row = |line: &TakingsLine| {
        let net_minor = line.taken_minor - line.refunded_minor;
        vec![
            Cell::from(&line.date),
            Cell::from(&line.way),
            Cell::from(&line.currency),
            Cell::from(line.payments),
            Cell::from(line.taken_minor),
            Cell::from(line.refunds),
            Cell::from(line.refunded_minor),
            Cell::from(net_minor),
            Cell::from(line.fees_minor),
            amount(line.taken_minor, &line.currency),
            amount(line.refunded_minor, &line.currency),
            amount(net_minor, &line.currency),
            amount(line.fees_minor, &line.currency),
        ]
    };
    csv::write(separator, &names, lines.iter().map(row))
}

fn of_seats(separator: Separator, report: &OccupancyReport, show: Option<&Show>) -> String {
    let rows = show.into_iter().flat_map(|show| {
        show.layout.seats().zip(&report.sold).map(move |(seat, sold)| {
            let category = show.layout.categories()[usize::from(seat.category)].label();
            vec![Cell::from(&seat.label), Cell::from(category), Cell::from(i64::from(*sold)), Cell::from(report.shows)]
        })
    });
    csv::write(separator, &["seat", "category", "sold", "shows"], rows)
}
