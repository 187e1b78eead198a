//! The programme: weeks, and planning them.

use app::staff::pages::organiser::{Planning, PlanningForm, Programme, Trouble};
use app::staff::pages::{Desk, Field, Section};
use axum::extract::{Form, Path, Query, State};
use chrono::{Days, NaiveDate};
use domain::api::organiser::{DayPattern, Sales, ShowsRequest, SkippedTimeHandling, TermsOfSale};
use domain::pricing::{Format, Weekday};
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::Error as ValueError;

use super::super::{StaffPageResult, StaffResult, desk};
use super::{OrganiserQuery, intent, new_key, passing_or_fault, private, see, trouble, whole, with_status};
use crate::AppState;
use crate::web::pages::{FormResult, QueryResult};
use backoffice::organiser::{self, OrganiserAction};
use http::{Code, Problem};

/// Days of a week.
const WEEK: u64 = 7;

pub(super) async fn week(
    State(state): State<AppState>,
    who: StaffResult,
    Path(theatre): Path<String>,
    asked: QueryResult<OrganiserQuery>,
) -> StaffPageResult {
    let (_, desk) = desk(&state, who, &theatre, Section::Shows).await?;
    let Query(asked) = asked?;
    let found = organiser::week(&state, &theatre, asked.from.as_deref()).await;
    let (from, shows) = found.map_err(|problem| match problem.code() {
        Code::Malformed => super::PageError::Unreadable(problem.detail().to_owned()),
        _ => passing_or_fault(problem),
    })?;
    let before = from.checked_sub_days(Days::new(WEEK)).unwrap_or(from).to_string();
    let after = from.checked_add_days(Days::new(WEEK)).unwrap_or(from).to_string();
    Ok(private(Programme { desk, from: from.to_string(), before, after, shows, done: asked.done }))
}

pub(super) async fn planning(
    State(state): State<AppState>,
    who: StaffResult,
    Path(theatre): Path<String>,
) -> StaffPageResult {
    let (_, desk) = desk(&state, who, &theatre, Section::Shows).await?;
    let (today, _) = organiser::week(&state, &theatre, None).await.map_err(passing_or_fault)?;
    let tomorrow = today.checked_add_days(Days::new(1)).unwrap_or(today);
    planning_page(&state, desk, PlanningForm::from_day(tomorrow.to_string()), None).await
}

async fn planning_page(state: &AppState, desk: Desk, form: PlanningForm, trouble: Option<Trouble>) -> StaffPageResult {
    let screens = organiser::screens(state, &desk.theatre).await.map_err(passing_or_fault)?;
    let films = organiser::films(state).await.map_err(passing_or_fault)?;
    let has_prices = organiser::tariff(state, &desk.theatre).await.map_err(passing_or_fault)?.version > 0;
    Ok(private(Planning { desk, screens, films, has_prices, form, key: new_key(), trouble }))
}

#[derive(Clone, Deserialize)]
pub(super) struct PlanForm {
    key: String,
    screen: String,
    film: String,
    language: String,
    format: String,
    from: String,
    weeks: String,
    #[serde(default)]
    monday: String,
    #[serde(default)]
    tuesday: String,
    #[serde(default)]
    wednesday: String,
    #[serde(default)]
    thursday: String,
    #[serde(default)]
    friday: String,
    #[serde(default)]
    saturday: String,
    #[serde(default)]
    sunday: String,
    cleaning: String,
    #[serde(default)]
    moves: bool,
    #[serde(flatten)]
    terms: TermsForm,
    reason: String,
}

/// The sales settings of a show, as form fields.
#[derive(Clone, Deserialize)]
pub(super) struct TermsForm {
    pub(super) sales: String,
    #[serde(default)]
    pub(super) sales_from: String,
    pub(super) hold_seconds: String,
    pub(super) per_person: String,
    #[serde(default)]
    pub(super) flash: String,
    #[serde(default)]
    pub(super) email_code: String,
    #[serde(default)]
    pub(super) per_instrument: String,
}

impl TermsForm {
    pub(super) fn read(&self) -> Result<TermsOfSale, Problem> {
        let per_instrument = Some(self.per_instrument.as_str()).filter(|text| !text.trim().is_empty());
        let sales = Sales::parse(&self.sales);
        Ok(TermsOfSale {
            sales: sales.ok_or_else(|| Problem::new(Code::Malformed, "Say whether it is on sale."))?,
            sales_from: Some(self.sales_from.clone()).filter(|text| !text.trim().is_empty()),
            hold_seconds: whole(&self.hold_seconds, "Seats are held for")?,
            flash_sale: !self.flash.is_empty(),
            per_person: whole(&self.per_person, "Seats one person may have")?,
            email_code: !self.email_code.is_empty(),
            per_instrument: per_instrument.map(|most| whole(most, "Seats one card may pay for")).transpose()?,
        })
    }
}

impl PlanForm {
    /// The fields as sent, for the page with the problem.
    fn shown(self) -> PlanningForm {
        PlanningForm {
            screen: self.screen,
            film: self.film,
            language: self.language,
            format: self.format,
            from: self.from,
            weeks: self.weeks,
            times: [self.monday, self.tuesday, self.wednesday, self.thursday, self.friday, self.saturday, self.sunday],
            cleaning: self.cleaning,
            moves: self.moves,
            sales: self.terms.sales,
            sales_from: self.terms.sales_from,
            hold_seconds: self.terms.hold_seconds,
            per_person: self.terms.per_person,
            flash: !self.terms.flash.is_empty(),
            email_code: !self.terms.email_code.is_empty(),
            per_instrument: self.terms.per_instrument,
            reason: Field::reason(self.reason),
        }
    }

    fn read(&self) -> Result<ShowsRequest, Problem> {
        let format: Result<Format, ValueError> = Format::deserialize(self.format.as_str().into_deserializer());
        let days = [
            (Weekday::Monday, &self.monday),
            (Weekday::Tuesday, &self.tuesday),
            (Weekday::Wednesday, &self.wednesday),
            (Weekday::Thursday, &self.thursday),
            (Weekday::Friday, &self.friday),
            (Weekday::Saturday, &self.saturday),
            (Weekday::Sunday, &self.sunday),
        ];
        let pattern = days.into_iter().filter(|(_, times)| !times.trim().is_empty()).map(|(weekday, times)| {
            let times = times.split([',', ' ', ';']).map(str::trim).filter(|time| !time.is_empty());
            DayPattern { weekday, times: times.map(str::to_owned).collect() }
        });
        Ok(ShowsRequest {
            screen: self.screen.clone(),
            film: self.film.clone(),
            language: self.language.clone(),
            format: format.map_err(|_| Problem::new(Code::Malformed, "Say how it is shown: 2D, 3D, IMAX or LIVE."))?,
            from: self.from.clone(),
            weeks: whole(&self.weeks, "Weeks")?,
            pattern: pattern.collect(),
            cleaning_minutes: whole(&self.cleaning, "Minutes between two shows")?,
            in_gap: if self.moves { SkippedTimeHandling::Move } else { SkippedTimeHandling::Refuse },
            terms: self.terms.read()?,
            reason: self.reason.clone(),
        })
    }
}

pub(super) async fn plan(
    State(state): State<AppState>,
    who: StaffResult,
    Path(theatre): Path<String>,
    form: FormResult<PlanForm>,
) -> StaffPageResult {
    let (staff, desk) = desk(&state, who, &theatre, Section::Shows).await?;
    let Form(form) = form?;
    let done = async {
        let request = form.read()?;
        let intent = intent(&staff, &form.key, &format!("form /staff/{theatre}/shows/plan"), &request)?;
        let act = OrganiserAction { staff: &staff, theatre: &theatre, intent: &intent, reason: &request.reason };
        organiser::plan_shows(&state, &act, &request).await
    };
    match done.await {
        Ok(_) => {
            // It was a day a moment ago.
            let from = form.from.trim().parse::<NaiveDate>().map(|day| format!("from={day}&")).unwrap_or_default();
            Ok(see(&format!("/staff/{theatre}/shows?{from}done=true")))
        }
        Err(problem) => {
            let (status, trouble) = trouble(problem)?;
            Ok(with_status(status, planning_page(&state, desk, form.shown(), Some(trouble)).await?))
        }
    }
}
