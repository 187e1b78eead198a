//! Plans weeks of shows by a pattern, all or none; a refusal lists every conflict.

use axum::http::StatusCode;
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use chrono_tz::Tz;
use domain::VariantName;
use domain::api::organiser::{PlannedShow, PlannedShows, ShowsRequest, TermsOfSale};
use domain::layout::{Area, Category, Layout};
use domain::money::Currency;
use domain::pricing::{ContainedTaxAndFee, Format, Tariff};
use sqlx::PgConnection;
use uuid::Uuid;

use super::pattern::{self, Start};
use super::{SaleTerms, checked, zone_of};
use crate::organiser::films::{self, MAX_RUNNING_MINUTES};
use crate::organiser::standing::{self, ScreenHouseSeat};
use crate::organiser::{layouts, name_of, screens, tariffs};
use crate::{BackofficeState, box_office};
use catalogue::slot_of;
use http::idempotency::Answer;
use http::{ApiResult, Code, Problem};
use identity::accounts::{StaffAction, StartedAction};
use identity::audit::{self, AuditEntry};
use platform::clock::{from_utc, rfc3339, to_utc};
use platform::database::BindAll;
use platform::ids;

/// Maximum cleaning time, minutes.
const MAX_CLEANING_MINUTES: u32 = 240;
/// Maximum number of conflicts in a problem's detail.
const MAX_NAMED: usize = 10;

/// Plans the shows.
///
/// # Errors
/// 400 for an invalid plan, 404 for an unknown screen or film, 409 for overlapping shows.
pub async fn plan(state: &BackofficeState, action: &StaffAction<'_>, request: &ShowsRequest) -> ApiResult<Answer> {
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
    let layout = layouts::room(state, action.theatre, layout_id).await?.layout;
    let shows = starts.iter().map(|start| {
        let prices = prices(&tariff, &layout, start, request, currency)?;
        Ok(NewShow { id: ids::new_id(), start: *start, prices })
    });
    let shows = shows.collect::<ApiResult<Vec<_>>>()?;

    let mut begun = match action.begin(state).await? {
        Ok(begun) => begun,
        Err(answer) => return Ok(answer),
    };
    // The lock prevents concurrent planning and layout changes on this screen.
    let room = screens::lock(&mut begun.tx, action.theatre, &request.screen).await?;
    if room != Some(layout_id) {
        let detail = "The screen was given another room just now. Please plan again.";
        return Err(Problem::new(Code::WrongState, detail));
    }
    let taken = |start: &Start| ScreenPeriod::new(&title, start.at, running_minutes, request.cleaning_minutes);
    let wanted: Vec<ScreenPeriod> = starts.iter().map(taken).collect();
    require_free_screen(&mut begun.tx, (&request.screen, &screen_name), zone, &wanted, None).await?;
    let standing = standing::of_room(&mut begun.tx, &request.screen, layout_id).await?;
    let house: Vec<i32> = standing.iter().map(|kept| kept.seat.cast_signed()).collect();
    let common = PlanValues {
        screen: &request.screen,
        film: &request.film,
        layout: layout_id,
        language,
        format: request.format,
        currency,
        tax_and_fee: tariff.tax_and_fee.contained(),
        cleaning_minutes: request.cleaning_minutes,
        terms,
        house: &house,
    };
    insert(&mut begun.tx, &common, &shows, layout.areas()).await?;
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
) -> ApiResult<()> {
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

async fn load_input(state: &BackofficeState, theatre: &str, request: &ShowsRequest) -> ApiResult<PlanInput> {
    let mut connection = state.pg.acquire().await?;
    let place = screens::facts(&mut connection, theatre, &request.screen).await?;
    let film = films::find(&mut connection, &request.film).await?;
    let film = film.ok_or_else(|| Problem::not_found("film"))?;
    let tariff = tariffs::find_tariff(&mut connection, theatre).await?;
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

fn day(text: &str) -> ApiResult<NaiveDate> {
    let no_day = || Problem::new(Code::Malformed, format!("{text:?} is no day like 2026-12-07."));
    catalogue::day(text.trim()).ok_or_else(no_day)
}

fn require_future(starts: &[Start], now: DateTime<Utc>) -> ApiResult<()> {
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
) -> ApiResult<String> {
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
) -> ApiResult<()> {
    let (Some(first), Some(last)) = (wanted.first(), wanted.last()) else { return Ok(()) };
    let longest = TimeDelta::minutes(i64::from(MAX_RUNNING_MINUTES + MAX_CLEANING_MINUTES));
    let there = on_screen(tx, screen, (first.from - longest, last.until), except).await?;
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
    let detail = format!("On {screen_name}: {named}{more}. Nothing was changed.");
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

struct NewShow {
    pub id: Uuid,
    pub start: Start,
    /// Category to minor units, JSON.
    pub prices: String,
}

/// The common values of a plan's shows.
struct PlanValues<'a> {
    pub screen: &'a str,
    pub film: &'a str,
    pub layout: Uuid,
    pub language: &'a str,
    pub format: Format,
    pub currency: Currency,
    pub tax_and_fee: ContainedTaxAndFee,
    pub cleaning_minutes: u32,
    pub terms: SaleTerms,
    /// House seats from the start.
    pub house: &'a [i32],
}

async fn insert(tx: &mut PgConnection, common: &PlanValues<'_>, shows: &[NewShow], areas: &[Area]) -> sqlx::Result<()> {
    let ids: Vec<Uuid> = shows.iter().map(|show| show.id).collect();
    sqlx::query(
        "INSERT INTO shows (id, screen_id, film_id, layout_id, starts_at, local_date, language, format, currency, prices,
                            hold_ms, flash_sale, sales, sales_from, per_person, cleaning_minutes,
                            email_code, per_instrument, blocked, tax_basis_points, fee_minor)
         SELECT new.id, $5, $6, $7, new.starts_at, new.local_date, $8, $9, $10, new.prices::jsonb,
                $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21
         FROM UNNEST($1::uuid[], $2::timestamptz[], $3::date[], $4::text[]) AS new (id, starts_at, local_date, prices)",
    )
    .bind(&ids)
    .bind(shows.iter().map(|show| show.start.at).collect::<Vec<_>>())
    .bind(shows.iter().map(|show| show.start.local.date()).collect::<Vec<NaiveDate>>())
    .bind(shows.iter().map(|show| show.prices.as_str()).collect::<Vec<_>>())
    .bind(common.screen)
    .bind(common.film)
    .bind(common.layout)
    .bind(common.language)
    .bind(common.format.as_str())
    .bind(common.currency.code())
    .bind(common.terms.hold_ms)
    .bind(common.terms.flash_sale)
    .bind(common.terms.sales.as_str())
    .bind(common.terms.sales_from.map(to_utc))
    .bind(common.terms.per_person)
    .bind(common.cleaning_minutes.cast_signed())
    .bind(common.terms.email_code)
    .bind(common.terms.per_instrument)
    .bind(common.house)
    .bind(common.tax_and_fee.tax_basis_points.cast_signed())
    .bind(common.tax_and_fee.fee_minor)
    .execute(&mut *tx)
    .await?;
    let numbers: Vec<i16> = (0_i16..).take(areas.len()).collect();
    sqlx::query(
        "INSERT INTO area_stock (show_id, area_no, name, category, capacity)
         SELECT show.id, area.area_no, area.name, area.category, area.capacity
         FROM UNNEST($1::uuid[]) AS show (id)
         CROSS JOIN UNNEST($2::smallint[], $3::text[], $4::text[], $5::integer[])
                    AS area (area_no, name, category, capacity)",
    )
    .bind(&ids)
    .bind(&numbers)
    .bind(areas.iter().map(|area| area.name.as_str()).collect::<Vec<_>>())
    .bind(areas.iter().map(|area| area.category.as_str()).collect::<Vec<_>>())
    .bind(areas.iter().map(|area| area.capacity.cast_signed()).collect::<Vec<_>>())
    .execute(tx)
    .await?;
    Ok(())
}

/// Returns shows that start on a screen between two instants and are not called off, including shows being moved to it,
/// excluding `except`.
async fn on_screen(
    tx: &mut PgConnection,
    screen: &str,
    (from, until): (DateTime<Utc>, DateTime<Utc>),
    except: Option<Uuid>,
) -> sqlx::Result<Vec<ScreenPeriod>> {
    let sql = "SELECT film.title, show.starts_at, film.running_minutes, show.cleaning_minutes
               FROM shows show JOIN films film ON film.id = show.film_id
               WHERE (show.screen_id = $1
                      OR EXISTS (SELECT 1 FROM show_moves
                                 WHERE show_id = show.id AND to_screen = $1 AND state = 'closing'))
                 AND NOT show.called_off AND show.starts_at BETWEEN $2 AND $3 AND show.id IS DISTINCT FROM $4
               ORDER BY show.starts_at";
    let shows: Vec<(String, DateTime<Utc>, i32, i32)> =
        sqlx::query_as(sql).bind_all((screen, from, until, except)).fetch_all(tx).await?;
    let period = |(title, starts_at, running, cleaning): (String, _, i32, i32)| {
        ScreenPeriod::new(&title, starts_at, running.unsigned_abs(), cleaning.unsigned_abs())
    };
    Ok(shows.into_iter().map(period).collect())
}

/// The period a show occupies a screen: from its start until the cleaning ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ScreenPeriod {
    /// The film's title.
    pub title: String,
    /// The start of the show.
    pub from: DateTime<Utc>,
    /// The earliest start of the next show.
    pub until: DateTime<Utc>,
}

impl ScreenPeriod {
    /// The period of a show that starts at `from`.
    pub fn new(title: &str, from: DateTime<Utc>, running_minutes: u32, cleaning_minutes: u32) -> Self {
        let minutes = TimeDelta::minutes(i64::from(running_minutes) + i64::from(cleaning_minutes));
        // The overflow is unreachable for real dates.
        Self { title: title.to_owned(), from, until: from.checked_add_signed(minutes).unwrap_or(from) }
    }
}

/// Returns each new show that overlaps an existing show or the new show before it, with that show. `wanted` is sorted
/// by start.
fn conflicts<'a>(wanted: &'a [ScreenPeriod], there: &'a [ScreenPeriod]) -> Vec<(&'a ScreenPeriod, &'a ScreenPeriod)> {
    let overlap = |one: &ScreenPeriod, other: &ScreenPeriod| one.from < other.until && other.from < one.until;
    let mut found = Vec::new();
    for (number, new) in wanted.iter().enumerate() {
        found.extend(there.iter().filter(|old| overlap(new, old)).map(|old| (new, old)));
        let before = number.checked_sub(1).map(|before| &wanted[before]);
        found.extend(before.filter(|before| overlap(new, before)).map(|before| (new, before)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(minute: i64, running: u32, cleaning: u32) -> ScreenPeriod {
        let from = DateTime::from_timestamp(minute * 60, 0).expect("an instant");
        ScreenPeriod::new(&minute.to_string(), from, running, cleaning)
    }

    #[test]
    fn a_show_may_start_when_the_previous_one_and_its_cleaning_end() {
        let there = [at(0, 100, 20), at(300, 100, 20)];
        let named = |wanted: &[ScreenPeriod]| {
            conflicts(wanted, &there)
                .iter()
                .map(|(new, old)| format!("{} {}", new.title, old.title))
                .collect::<Vec<_>>()
        };
        assert_eq!(named(&[at(120, 100, 20)]), [""; 0]);
        assert_eq!(named(&[at(119, 100, 20)]), ["119 0"]);
        assert_eq!(named(&[at(181, 100, 20)]), ["181 300"]);
        assert_eq!(named(&[at(180, 100, 20)]), [""; 0]);
        assert_eq!(named(&[at(110, 300, 0)]), ["110 0", "110 300"]);
        // Two new shows overlap each other.
        assert_eq!(named(&[at(120, 60, 10), at(185, 60, 10)]), ["185 120"]);
        assert_eq!(named(&[at(0, 10, 0)]), ["0 0"], "the same time is no other time");
    }
}
