//! Pages of the box office. They do what the API does, through the same services.

pub(super) mod forms;

use app::staff::islands::box_office::BookingToExchange;
use app::staff::pages::box_office::{
    CounterPage, Sale, SalePage, counter_booking_page, exchange_page, found_page, print_page,
};
use app::staff::pages::{Form, Section};
use domain::api::Receipt;
use domain::api::box_office::{CounterBooking, DayQuery, PrintedTicket, TillView};
use domain::booking::BookingState;
use domain::roles::Role;
use domain::time::{MINUTE_MS, Timestamp};
use language::say;
use serde::Deserialize;
use uuid::Uuid;

use super::super::booking::{drawn, facts};
use super::super::browse::days;
use super::super::{PageError, PageQuery, SignedInPageError, SignedInPageResult, start_in_words};
use super::visit::{StaffVisit, VisitOf};
use backoffice::box_office::{self, CounterStaff};
use catalogue::{Show, clock_in, read_date, today_in};
use http::{Code, page_locale};
use identity::accounts;
use platform::clock::from_utc;
use tickets::Ticket;

fn counter<P>(visit: &StaffVisit<P>) -> CounterStaff<'_> {
    CounterStaff { staff: &visit.staff, theatre: &visit.desk.theatre }
}

fn is_manager<P>(visit: &StaffVisit<P>) -> bool {
    visit.desk.roles.contains(&Role::Manager)
}

fn base(visit: &StaffVisit) -> String {
    Section::BoxOffice.href(&visit.desk.theatre)
}

pub(super) async fn day(visit: StaffVisit, PageQuery(query): PageQuery<DayQuery>) -> SignedInPageResult {
    day_page(visit, query, Form::default()).await
}

async fn day_page(visit: StaffVisit, query: DayQuery, refused: Form) -> SignedInPageResult {
    let date = read_date(query.date.as_deref()).map_err(PageError::from)?;
    let (state, counter) = (&visit.state, counter(&visit));
    let shows = box_office::today(state, counter, date).await?;
    let theatre = state.catalogue.theatre(counter.theatre).await?.ok_or(PageError::NotFound)?;
    let zone = &theatre.time_zone;
    let today = today_in(zone, state.clock.now())?;
    let shown = date.unwrap_or(today);
    let base = base(&visit);
    let till = box_office::my_till(state, counter).await?;
    let counted_for_me =
        if till.is_none() { box_office::last_till_counted_by_manager(state, counter).await? } else { None };
    let (mut tills, mut last_close) = (Vec::new(), None);
    if is_manager(&visit) {
        tills = box_office::of_the_day(state, counter).await?;
        last_close = box_office::last_close(state, counter).await?;
    }
    if let Some(day) = &mut last_close {
        day.closed_at = local_clock_time(zone, &day.closed_at);
    }
    Ok(visit.show(|desk| CounterPage {
        date: date.map(|date| date.to_string()).unwrap_or_default(),
        days: days(today, shown, |day| format!("{base}?date={day}")),
        shown: shown.to_string(),
        shows,
        till: till.map(|till| with_local_times(zone, till)),
        counted_for_me: counted_for_me.map(|till| with_local_times(zone, till)),
        tills: tills.into_iter().map(|till| with_local_times(zone, till)).collect(),
        last_close,
        refused,
        desk,
    }))
}

/// Converts the till's times to the theatre's time zone.
fn with_local_times(zone: &str, mut till: TillView) -> TillView {
    till.opened_at = local_clock_time(zone, &till.opened_at);
    till.closed_at = till.closed_at.map(|at| local_clock_time(zone, &at));
    for row in &mut till.rows {
        row.at = local_clock_time(zone, &row.at);
    }
    till
}

/// Converts `2026-11-21T20:15:07.000Z` to the time of day in a time zone, `20:15`.
fn local_clock_time(zone: &str, at: &str) -> String {
    let read = chrono::DateTime::parse_from_rfc3339(at).ok().map(|at| from_utc(at.to_utc()));
    read.and_then(|at| clock_in(zone, at).ok()).unwrap_or_default()
}

#[derive(Deserialize)]
pub(super) struct ExchangeQuery {
    #[serde(default)]
    exchange: Option<Uuid>,
}

pub(super) async fn sale(visit: VisitOf<Uuid>, PageQuery(query): PageQuery<ExchangeQuery>) -> SignedInPageResult {
    let (visit, (_, show)) = visit.split();
    let show = visit.state.catalogue.show(show).await?.filter(|show| show.theatre_id == visit.desk.theatre);
    let show = show.ok_or(PageError::NotFound)?;
    let till = box_office::my_till(&visit.state, counter(&visit)).await?;
    let mut exchange = None;
    if let Some(booking) = query.exchange {
        exchange = booking_to_exchange(&visit, booking).await?;
        if exchange.is_none() {
            // The page may be reloaded after the exchange, and must not start another sale then.
            return Ok(visit.redirect_to(&format!("box-office/bookings/{booking}")));
        }
    }
    let now = visit.state.clock.now();
    let (date, today) = (today_in(&show.time_zone, show.starts_at)?, today_in(&show.time_zone, now)?);
    Ok(visit.show(|desk| SalePage {
        exchange,
        date: if date == today { String::new() } else { date.to_string() },
        show: show.id,
        film: show.film.clone(),
        when: format!("{}, {}", start_in_words(&show), show.screen),
        sale: sale_of(&show, now),
        has_till: till.is_some(),
        desk,
    }))
}

/// The state of a show's sale at the counter: seats are sold until the show ends.
fn sale_of(show: &Show, now: Timestamp) -> Sale {
    let ends_at = show.starts_at.plus_ms(i64::from(show.running_minutes) * MINUTE_MS);
    match catalogue::sales_open(show, now) {
        Ok(()) => Sale::Open,
        Err(_) if show.is_called_off() || ends_at <= now => Sale::Over,
        Err(_) => Sale::Closed,
    }
}

/// The booking, if it can be exchanged; otherwise its own page explains why not.
async fn sold(visit: &StaffVisit, booking: Uuid) -> Result<Option<CounterBooking>, SignedInPageError> {
    let found = box_office::by_id(&visit.state, counter(visit), booking).await?;
    Ok((found.state == BookingState::Confirmed).then_some(found))
}

/// The data of a booking whose seats are exchanged at the counter; none after the exchange.
async fn booking_to_exchange(
    visit: &StaffVisit,
    booking: Uuid,
) -> Result<Option<BookingToExchange>, SignedInPageError> {
    let Some(found) = sold(visit, booking).await? else { return Ok(None) };
    let managers = accounts::managers_with_pin(&visit.state, &visit.desk.theatre).await?;
    let has_begun = visit.state.catalogue.find_show(found.show).await?.starts_at <= visit.state.clock.now();
    let CounterBooking { id, reference, total, means, .. } = found;
    Ok(Some(BookingToExchange { booking: id, reference, total, means, has_begun, managers }))
}

/// The shows of a day that a booking may be exchanged for.
pub(super) async fn choose_show(visit: VisitOf<Uuid>, PageQuery(query): PageQuery<DayQuery>) -> SignedInPageResult {
    let (visit, (_, booking)) = visit.split();
    let Some(found) = sold(&visit, booking).await? else {
        return Ok(visit.redirect_to(&format!("box-office/bookings/{booking}")));
    };
    let show = visit.state.catalogue.find_show(found.show).await?;
    let requested = read_date(query.date.as_deref()).map_err(PageError::from)?;
    let today = today_in(&show.time_zone, visit.state.clock.now())?;
    let date = requested.unwrap_or(today);
    let shows = box_office::today(&visit.state, counter(&visit), Some(date)).await?;
    let own = format!("{}/bookings/{booking}", base(&visit));
    let (starts, days) = (start_in_words(&show), days(today, date, |day| format!("{own}/exchange?date={day}")));
    Ok(visit.show(|desk| exchange_page(desk, found, starts, days, date.to_string(), shows)))
}

#[derive(Deserialize)]
pub(super) struct FindQuery {
    /// A reference from a link, never a name or an address.
    #[serde(default)]
    reference: String,
    /// A reference, or a part of a name or an address.
    #[serde(default)]
    q: String,
    #[serde(default)]
    date: Option<String>,
}

pub(super) async fn find(visit: StaffVisit, PageQuery(query): PageQuery<FindQuery>) -> SignedInPageResult {
    let is_of_link = !query.reference.trim().is_empty();
    let reference = if is_of_link { &query.reference } else { &query.q };
    match box_office::by_reference(&visit.state, counter(&visit), reference).await {
        Ok(found) => Ok(visit.redirect_to(&format!("box-office/bookings/{}", found.id))),
        Err(problem) if problem.code() == Code::NotFound && !is_of_link => find_person(visit, query).await,
        Err(problem) if problem.code() == Code::NotFound => {
            day_page(visit.fail(&problem, None), DayQuery { date: query.date }, Form::default()).await
        }
        Err(problem) => Err(problem.into()),
    }
}

async fn find_person(visit: StaffVisit, query: FindQuery) -> SignedInPageResult {
    let date = read_date(query.date.as_deref()).map_err(PageError::from)?;
    match box_office::by_person(&visit.state, counter(&visit), &query.q).await {
        Ok(found) => {
            let (term, date) = (query.q.trim().to_owned(), date.map(|date| date.to_string()).unwrap_or_default());
            Ok(visit.show(|desk| found_page(desk, term, date, found)))
        }
        Err(problem) if problem.code() == Code::Malformed => {
            let (least, most) = box_office::SEARCH_TERM_CHARS;
            let words = say!(in page_locale::language(), "box_office.person_hint", least = least, most = most);
            day_page(visit.fail(&problem, Some(words)), DayQuery { date: query.date }, Form::default()).await
        }
        Err(problem) if problem.code() == Code::TooManyAttempts => {
            day_page(visit.fail(&problem, None), DayQuery { date: query.date }, Form::default()).await
        }
        Err(problem) => Err(problem.into()),
    }
}

pub(super) async fn booking(visit: VisitOf<Uuid>) -> SignedInPageResult {
    let (visit, (_, booking)) = visit.split();
    booking_page(visit, booking, Form::default()).await
}

async fn booking_page(visit: StaffVisit, booking: Uuid, form: Form) -> SignedInPageResult {
    let (state, counter) = (&visit.state, counter(&visit));
    let found = box_office::by_id(state, counter, booking).await?;
    let show = state.catalogue.show(found.show).await?.ok_or(PageError::NotFound)?;
    let moved_to = match found.moved_to {
        Some(next) => Some(box_office::by_id(state, counter, next).await?),
        None => None,
    };
    let managers = accounts::managers_with_pin(state, counter.theatre).await?;
    let starts = start_in_words(&show);
    Ok(visit.show(|desk| counter_booking_page(desk, found, moved_to, starts, managers, form)))
}

async fn print_tickets_page(
    visit: StaffVisit,
    found: CounterBooking,
    printed: Vec<PrintedTicket>,
) -> SignedInPageResult {
    let show = visit.state.catalogue.show(found.show).await?.ok_or(PageError::NotFound)?;
    let draw = |ticket: PrintedTicket| {
        let ticket = Ticket { label: ticket.label, category: ticket.category, code: ticket.code };
        drawn(ticket, &found.name)
    };
    let tickets = printed.into_iter().map(draw).collect::<Result<_, _>>()?;
    let booking = format!("{}/bookings/{}", base(&visit), found.id);
    let CounterBooking { reference, seats, places, breakdown, .. } = found;
    let receipt = breakdown.map(|breakdown| Receipt { seats, places, breakdown });
    let show = facts(&show);
    Ok(visit.show(|desk| print_page(desk, reference, booking, show, tickets, receipt)))
}
