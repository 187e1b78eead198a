//! Pages of the box office. They do what the API does, through the same services.

mod exchange;
mod forms;
mod till;

use app::language::Hindrance;
use app::staff::pages::box_office::{
    CounterBookingPage, CounterForm, CounterPage, FoundPage, PrintPage, Sale, SalePage, TakeBackForm,
};
use app::staff::pages::{Desk, Section};
use axum::Router;
use axum::extract::{DefaultBodyLimit, Path, Query, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use domain::api::box_office::{CounterBooking, DayQuery, PrintedTicket, TillView};
use domain::roles::Role;
use domain::time::{MINUTE_MS, Timestamp};
use serde::Deserialize;
use uuid::Uuid;

use super::super::booking::{drawn, facts, passing_or_fault};
use super::super::browse::days;
use super::super::{PRIVATE_CACHE, PageError, html, start_in_words};
use super::{StaffPageError, StaffPageResult, StaffResult, desk, hindrance};
use crate::AppState;
use crate::web::pages::{PathResult, QueryResult};
use backoffice::box_office::{self, CounterStaff};
use catalogue::{Show, clock_in, read_date, today_in};
use http::{Code, Problem, page_locale};
use identity::accounts::{self, Staff};
use platform::clock::from_utc;
use platform::ids;
use tickets::Ticket;

/// Largest form, bytes.
const MAX_FORM_BYTES: usize = 8 * 1024;

/// The pages.
pub fn routes() -> Router<AppState> {
    Router::new()
        .route("/staff/{theatre}/box-office", get(day))
        .route("/staff/{theatre}/box-office/till/{act}", post(till::till))
        .route("/staff/{theatre}/box-office/tills/{till}/cash-up", post(till::count_for))
        .route("/staff/{theatre}/box-office/day-close", post(till::close_day))
        .route("/staff/{theatre}/box-office/pin", post(forms::set_pin))
        .route("/staff/{theatre}/box-office/shows/{show}", get(sale))
        .route("/staff/{theatre}/box-office/bookings", get(find))
        .route("/staff/{theatre}/box-office/bookings/{booking}", get(booking))
        .route("/staff/{theatre}/box-office/bookings/{booking}/exchange", get(exchange::choose))
        .route("/staff/{theatre}/box-office/bookings/{booking}/{act}", post(forms::booking))
        .layer(DefaultBodyLimit::max(MAX_FORM_BYTES))
}

/// A member of staff at the counter, with the frame of their pages.
struct CounterContext {
    staff: Staff,
    desk: Desk,
}

impl CounterContext {
    async fn of(state: &AppState, who: StaffResult, theatre: &str) -> Result<Self, StaffPageError> {
        let (staff, desk) = desk(state, who, theatre, Section::BoxOffice).await?;
        Ok(Self { staff, desk })
    }

    fn counter(&self) -> CounterStaff<'_> {
        CounterStaff { staff: &self.staff, theatre: &self.desk.theatre }
    }

    fn is_manager(&self) -> bool {
        self.desk.roles.contains(&Role::Manager)
    }

    fn base(&self) -> String {
        Section::BoxOffice.href(&self.desk.theatre)
    }

    /// The day of the page from which a form was sent.
    fn day(&self, query: &DayQuery) -> String {
        match &query.date {
            Some(date) => format!("{}?date={date}", self.base()),
            None => self.base(),
        }
    }
}

/// A temporary problem that prevents a page.
fn away(problem: Problem) -> StaffPageError {
    StaffPageError::ErrorPage(passing_or_fault(problem))
}

async fn day(
    State(state): State<AppState>,
    who: StaffResult,
    theatre: PathResult<String>,
    query: QueryResult<DayQuery>,
) -> StaffPageResult {
    let (Path(theatre), Query(query)) = (theatre?, query?);
    let here = CounterContext::of(&state, who, &theatre).await?;
    day_page(&state, here, query, None, None).await
}

async fn day_page(
    state: &AppState,
    here: CounterContext,
    query: DayQuery,
    refused: Option<CounterForm>,
    trouble: Option<Hindrance>,
) -> StaffPageResult {
    let date = read_date(query.date.as_deref()).map_err(PageError::from)?;
    let counter = here.counter();
    let shows = box_office::today(state, counter, date).await.map_err(away)?;
    let theatre = state.catalogue.theatre(counter.theatre).await?.ok_or(PageError::NotFound)?;
    let zone = &theatre.time_zone;
    let today = today_in(zone, state.clock.now())?;
    let shown = date.unwrap_or(today);
    let base = here.base();
    let till = box_office::my_till(state, counter).await.map_err(away)?;
    let last_till_counted_by_manager = if till.is_none() {
        box_office::last_till_counted_by_manager(state, counter).await.map_err(away)?
    } else {
        None
    };
    let (mut tills, mut last_close) = (Vec::new(), None);
    if here.is_manager() {
        tills = box_office::of_the_day(state, counter).await.map_err(away)?;
        last_close = box_office::last_close(state, counter).await.map_err(away)?;
    }
    if let Some(day) = &mut last_close {
        day.closed_at = on_the_clock(zone, &day.closed_at);
    }
    let page = CounterPage {
        date: date.map(|date| date.to_string()).unwrap_or_default(),
        days: days(today, shown, |day| format!("{base}?date={day}")),
        shown: shown.to_string(),
        shows,
        till: till.map(|till| local(zone, till)),
        counted_for_me: last_till_counted_by_manager.map(|till| local(zone, till)),
        tills: tills.into_iter().map(|till| local(zone, till)).collect(),
        last_close,
        refused,
        trouble,
        key: ids::new_id().to_string(),
        desk: here.desk,
    };
    Ok(html(page, PRIVATE_CACHE))
}

/// The till's times on the theatre's clocks.
fn local(zone: &str, mut till: TillView) -> TillView {
    till.opened_at = on_the_clock(zone, &till.opened_at);
    till.closed_at = till.closed_at.map(|at| on_the_clock(zone, &at));
    for row in &mut till.rows {
        row.at = on_the_clock(zone, &row.at);
    }
    till
}

/// `2026-11-21T20:15:07.000Z` as `20:15` there.
fn on_the_clock(zone: &str, at: &str) -> String {
    let read = chrono::DateTime::parse_from_rfc3339(at).ok().map(|at| from_utc(at.to_utc()));
    read.and_then(|at| clock_in(zone, at).ok()).unwrap_or_default()
}

/// The query of a show's page at the counter.
#[derive(Deserialize)]
struct ExchangeQuery {
    #[serde(default)]
    exchange: Option<Uuid>,
}

async fn sale(
    State(state): State<AppState>,
    who: StaffResult,
    path: PathResult<(String, Uuid)>,
    query: QueryResult<ExchangeQuery>,
) -> StaffPageResult {
    let (Path((theatre, show)), Query(query)) = (path?, query?);
    let here = CounterContext::of(&state, who, &theatre).await?;
    let show =
        state.catalogue.show(show).await?.filter(|show| show.theatre_id == theatre).ok_or(PageError::NotFound)?;
    let till = box_office::my_till(&state, here.counter()).await.map_err(away)?;
    let mut exchange = None;
    if let Some(booking) = query.exchange {
        exchange = exchange::at_counter(&state, &here, booking).await?;
        if exchange.is_none() {
            // Reloaded after the exchange, say: it must not start another sale.
            return Ok(see(&format!("{}/bookings/{booking}", here.base())));
        }
    }
    let now = state.clock.now();
    let (date, today) = (today_in(&show.time_zone, show.starts_at)?, today_in(&show.time_zone, now)?);
    let page = SalePage {
        exchange,
        date: if date == today { String::new() } else { date.to_string() },
        show: show.id,
        film: show.film.clone(),
        when: format!("{}, {}", start_in_words(&show), show.screen),
        sale: sale_of(&show, now),
        has_till: till.is_some(),
        desk: here.desk,
    };
    Ok(html(page, PRIVATE_CACHE))
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

/// The search form for bookings.
#[derive(Deserialize)]
struct FindQuery {
    /// Of links: nothing else is meant.
    #[serde(default)]
    reference: String,
    /// A reference, or a part of a name or an address.
    #[serde(default)]
    q: String,
    #[serde(default)]
    date: Option<String>,
}

async fn find(
    State(state): State<AppState>,
    who: StaffResult,
    theatre: PathResult<String>,
    query: QueryResult<FindQuery>,
) -> StaffPageResult {
    let (Path(theatre), Query(query)) = (theatre?, query?);
    let here = CounterContext::of(&state, who, &theatre).await?;
    let is_of_link = !query.reference.trim().is_empty();
    let asked = if is_of_link { &query.reference } else { &query.q };
    match box_office::by_reference(&state, here.counter(), asked).await {
        Ok(found) => Ok(see(&format!("{}/bookings/{}", here.base(), found.id))),
        Err(problem) if problem.code() == Code::NotFound && !is_of_link => find_person(&state, here, query).await,
        Err(problem) if problem.code() == Code::NotFound => {
            let words = hindrance(&problem);
            let mut page = day_page(&state, here, DayQuery { date: query.date }, None, Some(words)).await?;
            *page.status_mut() = StatusCode::NOT_FOUND;
            Ok(page)
        }
        Err(problem) => Err(away(problem)),
    }
}

async fn find_person(state: &AppState, here: CounterContext, query: FindQuery) -> StaffPageResult {
    let date = read_date(query.date.as_deref()).map_err(PageError::from)?;
    match box_office::by_person(state, here.counter(), &query.q).await {
        Ok(found) => {
            let date = date.map(|date| date.to_string()).unwrap_or_default();
            Ok(html(FoundPage { asked: query.q.trim().to_owned(), date, found, desk: here.desk }, PRIVATE_CACHE))
        }
        Err(problem) if problem.code() == Code::Malformed => {
            let (least, most) = box_office::ASKED_CHARS;
            let words =
                app::say!(in page_locale::language(), "box_office.person_hint", least = least, most = most).into();
            let mut page = day_page(state, here, DayQuery { date: query.date }, None, Some(words)).await?;
            *page.status_mut() = StatusCode::BAD_REQUEST;
            Ok(page)
        }
        Err(problem) => Err(away(problem)),
    }
}

async fn booking(State(state): State<AppState>, who: StaffResult, path: PathResult<(String, Uuid)>) -> StaffPageResult {
    let Path((theatre, booking)) = path?;
    let here = CounterContext::of(&state, who, &theatre).await?;
    booking_page(&state, here, booking, TakeBackForm::default(), None).await
}

async fn booking_page(
    state: &AppState,
    here: CounterContext,
    booking: Uuid,
    form: TakeBackForm,
    trouble: Option<Hindrance>,
) -> StaffPageResult {
    let found = box_office::by_id(state, here.counter(), booking).await.map_err(away)?;
    let show = state.catalogue.show(found.show).await?.ok_or(PageError::NotFound)?;
    let moved_to = match found.moved_to {
        Some(next) => Some(box_office::by_id(state, here.counter(), next).await.map_err(away)?),
        None => None,
    };
    let page = CounterBookingPage {
        moved_to,
        starts: start_in_words(&show),
        managers: accounts::managers_with_pin(state, &here.desk.theatre).await?,
        booking: found,
        form,
        trouble,
        key: ids::new_id().to_string(),
        desk: here.desk,
    };
    Ok(html(page, PRIVATE_CACHE))
}

async fn paper(
    state: &AppState,
    here: CounterContext,
    found: CounterBooking,
    printed: Vec<PrintedTicket>,
) -> StaffPageResult {
    let show = state.catalogue.show(found.show).await?.ok_or(PageError::NotFound)?;
    let draw = |ticket: PrintedTicket| {
        let ticket = Ticket { label: ticket.label, category: ticket.category, code: ticket.code };
        drawn(ticket, &found.name)
    };
    let page = PrintPage {
        tickets: printed.into_iter().map(draw).collect::<Result<_, _>>()?,
        booking: format!("{}/bookings/{}", here.base(), found.id),
        reference: found.reference.clone(),
        show: facts(&show),
        desk: here.desk,
    };
    Ok(html(page, PRIVATE_CACHE))
}

/// The way on after a form, as browsers take it: with GET.
fn see(path: &str) -> Response {
    let location = HeaderValue::try_from(path).unwrap_or(HeaderValue::from_static("/staff"));
    let headers = [(header::LOCATION, location), (header::CACHE_CONTROL, HeaderValue::from_static(PRIVATE_CACHE))];
    (StatusCode::SEE_OTHER, headers).into_response()
}
