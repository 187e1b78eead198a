//! The programme: films, weeks of shows, and planning them.

use app::staff::pages::Form;
use app::staff::pages::organiser::{
    CalendarPage, draft_request, film_request, films_page, new_plan, new_show, planning_page, refused_move,
    show_request, shows_request,
};
use axum::response::Response;
use chrono::{Days, NaiveDate};
use domain::api::organiser::OrganisedShow;
use domain::money::Money;
use serde::Deserialize;
use uuid::Uuid;

use super::super::{PageError, PageQuery, SignedInPageResult};
use super::prices::currency_of;
use super::visit::{SentForm, StaffVisit, malformed};
use backoffice::organiser::{self, WeekOfShows};
use http::{Code, Problem};

const WEEK: u64 = 7;

/// A week of the calendar, and the place of a new show in its form.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct CalendarQuery {
    /// First of seven days; default: today.
    from: Option<String>,
    screen: String,
    day: String,
    time: String,
    /// The draft that was just moved and kept prices.
    kept: Option<Uuid>,
}

pub(super) async fn calendar(visit: StaffVisit, PageQuery(query): PageQuery<CalendarQuery>) -> SignedInPageResult {
    let CalendarQuery { from, screen, day, time, kept } = query;
    // A reload does not show the result again.
    let kept_prices = match kept.filter(|_| visit.desk.done) {
        Some(show) => load_kept_prices(&visit, show).await?,
        None => Vec::new(),
    };
    show_calendar(visit, from.as_deref(), new_show(screen, day, time), kept_prices).await
}

/// The prices of a moved draft that the tariff does not have for its start, by label.
async fn load_kept_prices(visit: &StaffVisit, show: Uuid) -> Result<Vec<(String, Money)>, PageError> {
    let (state, theatre) = (&visit.state, &visit.desk.theatre);
    let prices = organiser::own_prices(state, theatre, show).await?;
    let price_input = organiser::load_price_input(state, theatre).await?;
    let currency = currency_of(&price_input.currency)?;
    let labelled = |(category, minor): (String, i64)| (price_input.label_of(&category), Money::new(minor, currency));
    Ok(prices.into_iter().map(labelled).collect())
}

async fn show_calendar(
    visit: StaffVisit,
    from: Option<&str>,
    form: Form,
    kept_prices: Vec<(String, Money)>,
) -> SignedInPageResult {
    let (state, theatre) = (&visit.state, &visit.desk.theatre);
    let found = organiser::week(state, theatre, from).await;
    let WeekOfShows { from, shows, is_cut } = found.map_err(|problem| match problem.code() {
        Code::Malformed => PageError::Unreadable(problem.detail().to_owned()),
        _ => problem.into(),
    })?;
    let days: Vec<String> = from.iter_days().take(WEEK as usize).map(|day| day.to_string()).collect();
    let before = from.checked_sub_days(Days::new(WEEK)).unwrap_or(from).to_string();
    let after = from.checked_add_days(Days::new(WEEK)).unwrap_or(from).to_string();
    let screens = organiser::screens(state, theatre).await?;
    let films = organiser::films(state, theatre).await?;
    let has_prices = organiser::tariff(state, theatre).await?.version > 0;
    Ok(visit.show(|desk| CalendarPage {
        desk,
        days,
        before,
        after,
        screens,
        shows,
        is_cut,
        films,
        has_prices,
        form,
        kept_prices,
    }))
}

/// The first day of the calendar that a form was sent from.
fn week_of(form: &Form) -> Option<String> {
    form.filled("from").filter(|from| catalogue::day(from).is_some())
}

/// The calendar after a form was saved; `kept` is a moved draft that kept prices.
fn redirect_to_calendar(visit: &StaffVisit, from: Option<String>, kept: Option<Uuid>) -> Response {
    let from = from.map(|day| format!("from={day}&")).unwrap_or_default();
    let kept = kept.map(|show| format!("&kept={show}")).unwrap_or_default();
    visit.redirect_to(&format!("shows?{from}done=true{kept}"))
}

pub(super) async fn add_show(visit: StaffVisit, SentForm(form): SentForm) -> SignedInPageResult {
    let from = week_of(&form);
    let done = async {
        let day = catalogue::day(form.get("day").trim());
        let day = day.ok_or_else(|| malformed("Choose a day like 2026-12-07."))?;
        let request = show_request(&form, catalogue::weekday_of(day)).map_err(malformed)?;
        let intent = visit.intent(&form, &request)?;
        organiser::plan_shows(&visit.state, &visit.action(&intent, &request.reason), &request).await
    };
    match done.await {
        Ok(_) => Ok(redirect_to_calendar(&visit, from, None)),
        Err(problem) => show_calendar(visit.refuse(&problem)?, from.as_deref(), form, Vec::new()).await,
    }
}

pub(super) async fn move_draft(visit: StaffVisit, SentForm(form): SentForm) -> SignedInPageResult {
    let from = week_of(&form);
    let done = async {
        let (show, request) = draft_request(&form).map_err(malformed)?;
        let intent = visit.intent(&form, &(show, &request))?;
        organiser::move_show(&visit.state, &visit.action(&intent, &request.reason), show, &request).await
    };
    match done.await {
        Ok(answer) => {
            let moved: OrganisedShow =
                serde_json::from_slice(answer.body()).map_err(|cause| Problem::internal(&cause))?;
            let kept = (!moved.kept_prices.is_empty()).then_some(moved.id);
            Ok(redirect_to_calendar(&visit, from, kept))
        }
        Err(problem) => show_calendar(visit.refuse(&problem)?, from.as_deref(), refused_move(&form), Vec::new()).await,
    }
}

pub(super) async fn planning(visit: StaffVisit) -> SignedInPageResult {
    let today = organiser::week(&visit.state, &visit.desk.theatre, None).await?.from;
    let tomorrow = today.checked_add_days(Days::new(1)).unwrap_or(today);
    page(visit, new_plan(tomorrow.to_string())).await
}

async fn page(visit: StaffVisit, form: Form) -> SignedInPageResult {
    let (state, theatre) = (&visit.state, &visit.desk.theatre);
    let screens = organiser::screens(state, theatre).await?;
    let films = organiser::films(state, theatre).await?;
    let has_prices = organiser::tariff(state, theatre).await?.version > 0;
    Ok(visit.show(|desk| planning_page(desk, screens, films, has_prices, form)))
}

pub(super) async fn plan(visit: StaffVisit, SentForm(form): SentForm) -> SignedInPageResult {
    let done = async {
        let request = shows_request(&form).map_err(malformed)?;
        let intent = visit.intent(&form, &request)?;
        organiser::plan_shows(&visit.state, &visit.action(&intent, &request.reason), &request).await
    };
    match done.await {
        Ok(_) => {
            // The service has read the day.
            let from = form.get("from").trim().parse::<NaiveDate>();
            let from = from.map(|day| format!("from={day}&")).unwrap_or_default();
            Ok(visit.redirect_to(&format!("shows?{from}done=true")))
        }
        Err(problem) => page(visit.refuse(&problem)?, form).await,
    }
}

pub(super) async fn films(visit: StaffVisit) -> SignedInPageResult {
    list_films(visit, Form::default()).await
}

async fn list_films(visit: StaffVisit, form: Form) -> SignedInPageResult {
    let films = organiser::films(&visit.state, &visit.desk.theatre).await?;
    Ok(visit.show(|desk| films_page(desk, films, form)))
}

pub(super) async fn add_film(visit: StaffVisit, SentForm(form): SentForm) -> SignedInPageResult {
    let done = async {
        let request = film_request(&form).map_err(malformed)?;
        let intent = visit.intent(&form, &request)?;
        organiser::add_film(&visit.state, &visit.action(&intent, &request.reason), &request).await
    };
    match done.await {
        Ok(_) => Ok(visit.redirect_to("films?done=true")),
        Err(problem) => list_films(visit.refuse(&problem)?, form).await,
    }
}
