//! Plans weeks of shows by a pattern, all or none; a refusal lists every conflict.

use axum::http::StatusCode;
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use chrono_tz::Tz;
use domain::api::organiser::{PlannedShow, PlannedShows, ShowsRequest, TermsOfSale};
use domain::layout::{Category, Layout};
use domain::money::Currency;
use domain::pricing::Tariff;
use uuid::Uuid;

use super::overlap::{ScreenPeriod, conflicts};
use super::pattern::{self, Start};
use super::{SaleTerms, checked, zone_of};
use crate::organiser::films::MAX_RUNNING_MINUTES;
use crate::organiser::sql::shows as sql;
use crate::organiser::sql::shows::NewShow;
use crate::organiser::standing::{self, ScreenHouseSeat};
use crate::organiser::{OrganiserAction, StartedAction, name_of, sql as queries};
use crate::{BackofficeState, box_office};
use catalogue::slot_of;
use http::idempotency::Answer;
use http::{Code, Problem};
use identity::audit::{self, AuditEntry};
use platform::clock::{from_utc, rfc3339, to_utc};
use platform::ids;

/// Maximum cleaning time, minutes.
const MAX_CLEANING_MINUTES: u32 = 240;
/// Maximum number of conflicts in a problem's detail.
const MAX_NAMED: usize = 10;

/// Plans the shows.
///
/// # Errors
/// 400 for an invalid plan, 404 for an unknown screen or film, 409 for overlapping shows.
pub async fn plan(
    state: &BackofficeState,
    action: &OrganiserAction<'_>,
    request: &ShowsRequest,
) -> Result<Answer, Problem> {
    if let Some(answer) = action.intent.replay(&state.pg, state.clock.now()).await? {
        return Ok(answer);
    }
    let PlanInput { zone, currency, layout_id, running_minutes, title, tariff, screen_name } =
        load_input(state, action.theatre, request).await?;
    let language = name_of(&request.language, "the language")?;
    if request.cleaning_minutes > MAX_CLEANING_MINUTES {
        let detail = format!("Cleaning takes at most {MAX_CLEANING_MINUTES} minutes.");
        return Err(Problem::new(Code::Malformed, detail));
    }
    let terms = checked(&request.terms, zone)?;
    let starts = pattern::starts(zone, day(&request.from)?, request.weeks, &request.pattern, request.in_gap)?;
    require_future(&starts, to_utc(state.clock.now()))?;
    let layout = super::super::layouts::room(state, action.theatre, layout_id).await?.layout;
    let shows = starts.iter().map(|start| {
        let prices = prices(&tariff, &layout, start, request, currency)?;
        Ok(NewShow { id: ids::new_id(), start: *start, prices })
    });
    let shows = shows.collect::<Result<Vec<_>, Problem>>()?;

    let mut begun = match action.begin(state).await? {
        Ok(begun) => begun,
        Err(answer) => return Ok(answer),
    };
    // The lock prevents concurrent planning and layout changes on this screen.
    let room = queries::screens::lock(&mut begun.tx, action.theatre, &request.screen).await?;
    if room != Some(layout_id) {
        let detail = "The screen was given another room just now. Please plan again.";
        return Err(Problem::new(Code::WrongState, detail));
    }
    let taken = |start: &Start| ScreenPeriod::new(&title, start.at, running_minutes, request.cleaning_minutes);
    let wanted: Vec<ScreenPeriod> = starts.iter().map(taken).collect();
    require_free_screen(&mut begun.tx, (&request.screen, &screen_name), zone, &wanted, None).await?;
    let standing = standing::of_room(&mut begun.tx, &request.screen, layout_id).await?;
    let house: Vec<i32> = standing.iter().map(|kept| kept.seat.cast_signed()).collect();
    let common = sql::PlanValues {
        screen: &request.screen,
        film: &request.film,
        layout: layout_id,
        language,
        format: request.format,
        currency,
        cleaning_minutes: request.cleaning_minutes,
        terms,
        house: &house,
    };
    sql::insert(&mut begun.tx, &common, &shows, layout.areas()).await?;
    if !standing.is_empty() {
        keep_from_start(&mut begun, request, &shows, &standing).await?;
    }
    let planned = PlannedShows { shows: shows.iter().map(planned_show_view).collect() };
    let answer = Answer::json(StatusCode::CREATED, &planned)?;
    let subject = format!("{} shows of {} on screen {}", shows.len(), request.film, request.screen);
    begun.finish("shows_planned", subject, answer).await
}

/// Records standing house seats of new shows, also in the audit list.
async fn keep_from_start(
    begun: &mut StartedAction<'_>,
    request: &ShowsRequest,
    shows: &[NewShow],
    standing: &[ScreenHouseSeat],
) -> Result<(), Problem> {
    let ids: Vec<Uuid> = shows.iter().map(|show| show.id).collect();
    box_office::keep_from_start(&mut begun.tx, &ids, standing, begun.now).await?;
    let subject = format!("{} shows of {} on screen {}", shows.len(), request.film, request.screen);
    let words = standing::format_reasons(standing);
    let entry = AuditEntry::by(begun.action.staff.session.account, "seats_kept_from_start", subject, &words);
    Ok(audit::record(&mut begun.tx, &entry.at(begun.action.theatre), begun.now).await?)
}

/// The loaded data a plan depends on.
struct PlanInput {
    zone: Tz,
    currency: Currency,
    layout_id: Uuid,
    screen_name: String,
    running_minutes: u32,
    title: String,
    tariff: Tariff,
}

async fn load_input(state: &BackofficeState, theatre: &str, request: &ShowsRequest) -> Result<PlanInput, Problem> {
    let mut connection = state.pg.acquire().await?;
    let place = sql::screen(&mut connection, theatre, &request.screen).await?;
    let place = place.ok_or_else(|| Problem::not_found("screen"))?;
    let film = queries::programme::film(&mut connection, &request.film).await?;
    let film = film.ok_or_else(|| Problem::not_found("film"))?;
    let tariff = queries::programme::tariff(&mut connection, theatre).await?;
    let Some((tariff, _)) = tariff else {
        let detail = "The theatre has no prices yet. Set them first, by category.";
        return Err(Problem::new(Code::PriceInvalid, detail));
    };
    let currency = Currency::parse(&place.currency);
    Ok(PlanInput {
        zone: zone_of(&place.time_zone)?,
        currency: currency.ok_or_else(|| Problem::internal(&"a theatre's currency is none"))?,
        layout_id: place.layout_id,
        screen_name: place.name,
        running_minutes: film.running_minutes,
        title: film.title,
        tariff,
    })
}

fn day(text: &str) -> Result<NaiveDate, Problem> {
    let no_day = || Problem::new(Code::Malformed, format!("{text:?} is no day like 2026-12-07."));
    catalogue::day(text.trim()).ok_or_else(no_day)
}

fn require_future(starts: &[Start], now: DateTime<Utc>) -> Result<(), Problem> {
    let over: Vec<String> = starts
        .iter()
        .filter(|start| start.at <= now)
        .map(|start| start.local.format("%Y-%m-%d %H:%M").to_string())
        .collect();
    if over.is_empty() {
        return Ok(());
    }
    let named = over.iter().take(MAX_NAMED).cloned().collect::<Vec<_>>().join(", ");
    Err(Problem::new(Code::Malformed, format!("These times are over: {named}. Nothing was planned.")))
}

/// Returns the prices of one show as JSON; every category of the layout has one.
fn prices(
    tariff: &Tariff,
    layout: &Layout,
    start: &Start,
    request: &ShowsRequest,
    currency: Currency,
) -> Result<String, Problem> {
    let names = layout.categories().iter().map(|category| category.name.as_str());
    let unpriced = layout.categories().iter().filter(|category| !tariff.base.contains_key(&category.name));
    let unpriced: Vec<&str> = unpriced.map(Category::label).collect();
    if !unpriced.is_empty() {
        let named = unpriced.iter().take(MAX_NAMED).copied().collect::<Vec<_>>().join(", ");
        let detail = format!("The tariff has no price for {named}. Add it first.");
        return Err(Problem::new(Code::PriceInvalid, detail));
    }
    let list = tariff.price_list(names, slot_of(start.local, request.format), currency);
    let list = list.map_err(|why| Problem::new(Code::PriceInvalid, format!("{why}.")))?;
    serde_json::to_string(&list.by_category).map_err(|cause| Problem::internal(&cause))
}

/// Fails when another show is on the screen (slug and name) at these times.
pub(super) async fn require_free_screen(
    tx: &mut sqlx::PgConnection,
    (screen, screen_name): (&str, &str),
    zone: Tz,
    wanted: &[ScreenPeriod],
    except: Option<Uuid>,
) -> Result<(), Problem> {
    let (Some(first), Some(last)) = (wanted.first(), wanted.last()) else { return Ok(()) };
    let longest = TimeDelta::minutes(i64::from(MAX_RUNNING_MINUTES + MAX_CLEANING_MINUTES));
    let there = sql::on_screen(tx, screen, (first.from - longest, last.until), except).await?;
    let there: Vec<ScreenPeriod> = there
        .into_iter()
        .map(|show| {
            let (running, cleaning) = (show.running_minutes.unsigned_abs(), show.cleaning_minutes.unsigned_abs());
            ScreenPeriod::new(&show.title, show.starts_at, running, cleaning)
        })
        .collect();
    let found = conflicts(wanted, &there);
    if found.is_empty() {
        return Ok(());
    }
    let local = |at: DateTime<Utc>| at.with_timezone(&zone).format("%a %-d %b %H:%M").to_string();
    let named = found
        .iter()
        .take(MAX_NAMED)
        .map(|(new, old)| format!("{} is in the way of “{}” at {}", local(new.from), old.title, local(old.from)));
    let named = named.collect::<Vec<_>>().join("; ");
    let more = found.len().saturating_sub(MAX_NAMED);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    let detail = format!("On {screen_name}: {named}{more}. Nothing was planned.");
    Err(Problem::new(Code::ShowsOverlap, detail))
}

fn planned_show_view(show: &NewShow) -> PlannedShow {
    PlannedShow {
        id: show.id,
        starts_at: rfc3339(from_utc(show.start.at)),
        starts_local: show.start.local.format("%Y-%m-%dT%H:%M:%S").to_string(),
        moved: show.start.moved,
    }
}

/// Converts stored terms to the form's view.
#[must_use]
pub(super) fn terms_view(terms: SaleTerms, zone: Tz) -> TermsOfSale {
    let local = |at| to_utc(at).with_timezone(&zone).format(super::LOCAL_MINUTE).to_string();
    TermsOfSale {
        sales: terms.sales,
        sales_from: terms.sales_from.map(local),
        hold_seconds: u32::try_from(terms.hold_ms / domain::time::SECOND_MS).unwrap_or(0),
        flash_sale: terms.flash_sale,
        per_person: u32::from(terms.per_person.unsigned_abs()),
        email_code: terms.email_code,
        per_instrument: terms.per_instrument.map(|most| u32::from(most.unsigned_abs())),
    }
}
