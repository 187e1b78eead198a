//! The programme: films, weeks of shows, and planning them.

use app::staff::pages::Form;
use app::staff::pages::organiser::{film_request, films_page, new_plan, planning_page, programme_page, shows_request};
use chrono::{Days, NaiveDate};
use domain::api::organiser::WeekQuery;

use super::super::{PageError, PageQuery, SignedInPageResult};
use super::visit::{SentForm, StaffVisit, malformed};
use backoffice::organiser;
use http::Code;

const WEEK: u64 = 7;

pub(super) async fn week(visit: StaffVisit, PageQuery(asked): PageQuery<WeekQuery>) -> SignedInPageResult {
    let found = organiser::week(&visit.state, &visit.desk.theatre, asked.from.as_deref()).await;
    let (from, shows) = found.map_err(|problem| match problem.code() {
        Code::Malformed => PageError::Unreadable(problem.detail().to_owned()),
        _ => problem.into(),
    })?;
    let before = from.checked_sub_days(Days::new(WEEK)).unwrap_or(from).to_string();
    let after = from.checked_add_days(Days::new(WEEK)).unwrap_or(from).to_string();
    Ok(visit.show(|desk| programme_page(desk, from.to_string(), before, after, shows)))
}

pub(super) async fn planning(visit: StaffVisit) -> SignedInPageResult {
    let (today, _) = organiser::week(&visit.state, &visit.desk.theatre, None).await?;
    let tomorrow = today.checked_add_days(Days::new(1)).unwrap_or(today);
    page(visit, new_plan(tomorrow.to_string())).await
}

async fn page(visit: StaffVisit, form: Form) -> SignedInPageResult {
    let (state, theatre) = (&visit.state, &visit.desk.theatre);
    let screens = organiser::screens(state, theatre).await?;
    let films = organiser::films(state).await?;
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
            Ok(visit.see(&format!("shows?{from}done=true")))
        }
        Err(problem) => page(visit.refuse(&problem)?, form).await,
    }
}

pub(super) async fn films(visit: StaffVisit) -> SignedInPageResult {
    list_films(visit, Form::default()).await
}

async fn list_films(visit: StaffVisit, form: Form) -> SignedInPageResult {
    let films = organiser::films(&visit.state).await?;
    Ok(visit.show(|desk| films_page(desk, films, form)))
}

pub(super) async fn add_film(visit: StaffVisit, SentForm(form): SentForm) -> SignedInPageResult {
    let done = async {
        let request = film_request(&form).map_err(malformed)?;
        let intent = visit.intent(&form, &request)?;
        organiser::add_film(&visit.state, &visit.action(&intent, &request.reason), &request).await
    };
    match done.await {
        Ok(_) => Ok(visit.see("films?done=true")),
        Err(problem) => list_films(visit.refuse(&problem)?, form).await,
    }
}
