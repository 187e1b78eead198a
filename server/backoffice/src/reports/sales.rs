//! Sales over time, and by channel, category, film and show.
//!
//! A ticket counts on the day of its booking's confirmation, at its sale price, even if it was refunded later. Refunded
//! tickets are counted beside it; their money is in the takings of the day of the refund. Taxes and fees follow from
//! each line's price and the tax and fee of its show.

use std::collections::{BTreeMap, HashMap};

use chrono::{DateTime, NaiveDate, Utc};
use domain::api::reports::{SalesReport, Sold, SoldLine, SoldShow};
use uuid::Uuid;

use super::range::Range;
use super::reading::{LATE_DAYS, Reading, check_screen, query_error};
use crate::BackofficeState;
use http::{ApiResult, Code, Problem};
use platform::database::BindAll;

/// Maximum number of lines in a report: a quarter of a year of a theatre with thirty screens.
const MAX_LINES: usize = 20_000;

/// Bookings confirmed in a theatre or on one of its screens between two instants, with tickets by category.
const SALES: &str = "
    WITH sold AS MATERIALIZED (
        SELECT booking.id, booking.show_id, booking.state, booking.currency::text AS currency,
               (event.at AT TIME ZONE $4)::date AS day,
               booking.channel, show.tax_basis_points AS rate, show.fee_minor AS fee
        FROM screens screen
        JOIN shows show ON show.screen_id = screen.id AND show.starts_at >= $2 - $5 * interval '1 day'
        JOIN bookings booking ON booking.show_id = show.id AND NOT booking.is_open
        JOIN booking_events event ON event.booking_id = booking.id AND event.to_state = 'CONFIRMED'
             AND event.from_state IS DISTINCT FROM 'CONFIRMED' AND event.at >= $2 AND event.at < $3
        WHERE screen.theatre_id = $1 AND ($7::text IS NULL OR screen.id = $7)
    ), lines AS (
        SELECT sold.id, sold.show_id, sold.currency, sold.day, sold.channel, line.category, line.tickets, line.minor,
               line.tax, line.fees,
               CASE WHEN sold.state = 'CANCELLED' THEN line.tickets ELSE line.given_back END AS given_back
        FROM sold CROSS JOIN LATERAL (
            SELECT category, count(*) AS tickets, sum(price_minor) AS minor,
                   sum(contained_tax(price_minor, sold.rate, sold.fee)) AS tax,
                   sum(least(sold.fee, price_minor)) AS fees, 0::bigint AS given_back
            FROM booking_seats WHERE booking_id = sold.id GROUP BY category
            UNION ALL
            SELECT category, count(*), sum(price_minor),
                   sum(contained_tax(price_minor, sold.rate, sold.fee)), sum(least(sold.fee, price_minor)), count(*)
            FROM returned_seats WHERE booking_id = sold.id GROUP BY category
            UNION ALL
            SELECT category, sum(quantity)::bigint, sum(quantity * price_minor),
                   sum(quantity * contained_tax(price_minor, sold.rate, sold.fee)),
                   sum(quantity * least(sold.fee, price_minor)), 0
            FROM booking_places WHERE booking_id = sold.id GROUP BY category
        ) line
    )
    SELECT day, channel, category, show_id, currency, count(DISTINCT id) AS bookings, sum(tickets)::bigint AS tickets,
           sum(minor)::bigint AS gross_minor, sum(tax)::bigint AS tax_minor, sum(fees)::bigint AS fee_minor,
           sum(given_back)::bigint AS given_back
    FROM lines
    GROUP BY GROUPING SETS ((currency), (day, currency), (channel, currency), (category, currency), (show_id, currency))
    ORDER BY day, channel, category, show_id, currency
    LIMIT $6";

const SHOWS: &str = "
    SELECT show.id, film.title AS film, screen.name AS screen, show.starts_at
    FROM shows show JOIN screens screen ON screen.id = show.screen_id JOIN films film ON film.id = show.film_id
    WHERE show.id = ANY($1)";

#[derive(platform::FromRow)]
struct SalesRow {
    day: Option<NaiveDate>,
    channel: Option<String>,
    category: Option<String>,
    show_id: Option<Uuid>,
    currency: String,
    bookings: i64,
    tickets: i64,
    gross_minor: i64,
    tax_minor: i64,
    fee_minor: i64,
    given_back: i64,
}

impl SalesRow {
    fn sold(&self) -> Sold {
        let &Self { bookings, tickets, gross_minor, tax_minor, fee_minor, given_back, .. } = self;
        let (currency, net_minor) = (self.currency.clone(), gross_minor - tax_minor - fee_minor);
        Sold { currency, bookings, tickets, gross_minor, net_minor, tax_minor, fee_minor, given_back }
    }
}

#[derive(platform::FromRow)]
struct SalesShowRow {
    id: Uuid,
    film: String,
    screen: String,
    starts_at: DateTime<Utc>,
}

/// Returns the sales of a theatre, or of one of its screens, on these days.
///
/// # Errors
/// 404 for an unknown screen, 503 on a timeout or when no report slot is free.
pub async fn sales(
    state: &BackofficeState,
    theatre: &str,
    range: &Range,
    screen: Option<&str>,
) -> ApiResult<SalesReport> {
    let mut reading = Reading::begin(state, theatre).await?;
    let screen = check_screen(&mut reading.tx, theatre, screen).await?;
    let groups: Vec<SalesRow> = sqlx::query_as(SALES)
        .bind_all((theatre, range.begins, range.ends, range.zone.name(), LATE_DAYS, MAX_LINES as i64, screen))
        .fetch_all(&mut *reading.tx)
        .await
        .map_err(query_error)?;
    if groups.len() >= MAX_LINES {
        return Err(Problem::new(Code::Overloaded, "There is too much to tell at once. Please ask for fewer days."));
    }
    let shows: Vec<Uuid> = groups.iter().filter_map(|group| group.show_id).collect();
    let shows: Vec<SalesShowRow> =
        sqlx::query_as(SHOWS).bind(shows).fetch_all(&mut *reading.tx).await.map_err(query_error)?;
    Ok(build_report(groups, shows, range))
}

fn build_report(groups: Vec<SalesRow>, shows: Vec<SalesShowRow>, range: &Range) -> SalesReport {
    let mut report = SalesReport {
        days: range.view(),
        totals: Vec::new(),
        by_day: Vec::new(),
        by_channel: Vec::new(),
        by_category: Vec::new(),
        by_film: Vec::new(),
        by_show: Vec::new(),
    };
    let shows: HashMap<Uuid, SalesShowRow> = shows.into_iter().map(|show| (show.id, show)).collect();
    let mut films: BTreeMap<(String, String), Sold> = BTreeMap::new();
    let mut starts: Vec<(DateTime<Utc>, SoldShow)> = Vec::new();
    for group in groups {
        let sold = group.sold();
        let SalesRow { day, channel, category, show_id, .. } = group;
        let line = |name: String, sold| SoldLine { name, sold };
        match (day, channel, category, show_id) {
            (Some(day), ..) => report.by_day.push(line(day.to_string(), sold)),
            (_, Some(channel), ..) => report.by_channel.push(line(channel, sold)),
            (_, _, Some(category), _) => report.by_category.push(line(category, sold)),
            (_, _, _, Some(show)) => {
                let Some(row) = shows.get(&show) else { continue };
                let of_film = films
                    .entry((row.film.clone(), sold.currency.clone()))
                    .or_insert_with(|| Sold { currency: sold.currency.clone(), ..Sold::default() });
                of_film.add(&sold);
                let starts_local = range.local(row.starts_at);
                let (film, screen) = (row.film.clone(), row.screen.clone());
                starts.push((row.starts_at, SoldShow { show, film, screen, starts_local, sold }));
            }
            (None, None, None, None) => report.totals.push(sold),
        }
    }
    report.by_film = films.into_iter().map(|((name, _), sold)| SoldLine { name, sold }).collect();
    report.by_film.sort_by(|one, other| other.sold.tickets.cmp(&one.sold.tickets).then(one.name.cmp(&other.name)));
    starts.sort_by(|one, other| (one.0, &one.1.screen).cmp(&(other.0, &other.1.screen)));
    report.by_show = starts.into_iter().map(|(_, show)| show).collect();
    report
}
