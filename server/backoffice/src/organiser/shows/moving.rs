//! Moves of a show to another screen of its theatre: preview and start. `relocation` moves its bookings.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use domain::api::moving::{MovePreview, MoveRequest};
use domain::layout::{Category, Layout};
use domain::money::Currency;
use domain::pricing::{Format, PriceList, ShowSlot};
use domain::relocation::answer_until;
use sqlx::PgConnection;
use sqlx::types::Json;
use uuid::Uuid;

use super::moving_drafts::move_draft;
use super::plan::{ScreenPeriod, require_free_screen};
use super::week::{self, LOCAL_SECOND};
use super::zone_of;
use crate::BackofficeState;
use crate::organiser::{layouts, screens, tariffs};
use crate::relocation::{self, RequestedMove};
use catalogue::slot_of;
use http::idempotency::Answer;
use http::{ApiResult, Code, Problem};
use identity::accounts::StaffAction;
use platform::clock::{from_utc, to_utc};
use platform::database::BindAll;

/// Maximum number of categories without a price in a problem's detail.
const MAX_NAMED: usize = 10;

/// Previews a move to that screen. Changes nothing.
///
/// # Errors
/// 404 for another theatre's show or screen, 400 for a category without a price, 409 when another show overlaps.
pub async fn preview(state: &BackofficeState, theatre: &str, show: Uuid, screen: &str) -> ApiResult<MovePreview> {
    let mut connection = state.pg.acquire().await?;
    let known = load_show(&mut connection, theatre, show).await?;
    let place = screens::facts(&mut connection, theatre, screen).await?;
    if known.screen_id == screen {
        return Err(Problem::new(Code::WrongState, "This show is on that screen already."));
    }
    let zone = zone_of(&known.time_zone)?;
    check_screen_free(&mut connection, show, &known, (screen, &place.name), zone).await?;
    drop(connection);
    let room = layouts::room(state, theatre, place.layout_id).await?.layout;
    let prices = prices(state, theatre, &known, &room, zone).await?;
    let until = to_utc(answer_until(state.clock.now(), from_utc(known.starts_at)));
    let until = until.with_timezone(&zone).format(LOCAL_SECOND).to_string();
    let version = known.terms_version.unsigned_abs();
    relocation::preview(state, (show, version), (screen, place.name, place.layout_id), &prices, until).await
}

/// Starts the move of a show. The answer contains the progress; the move continues in the background. With a start,
/// it moves a draft at once.
///
/// # Errors
/// As [`preview`]; 409 when the show has begun, was called off or is already being moved, or when the show or the
/// layout has changed since the preview that the request names.
pub async fn begin(
    state: &BackofficeState,
    action: &StaffAction<'_>,
    show: Uuid,
    request: &MoveRequest,
) -> ApiResult<Answer> {
    if let Some(answer) = action.intent.replay(&state.pg, state.clock.now()).await? {
        return Ok(answer);
    }
    let (theatre, screen) = (action.theatre, request.screen.as_str());
    if let Some(start) = &request.start {
        return move_draft(state, action, show, screen, start).await;
    }
    let mut connection = state.pg.acquire().await?;
    let known = load_show(&mut connection, theatre, show).await?;
    let place = screens::facts(&mut connection, theatre, screen).await?;
    drop(connection);
    let zone = zone_of(&known.time_zone)?;
    let room = layouts::room(state, theatre, place.layout_id).await?.layout;
    let prices = prices(state, theatre, &known, &room, zone).await?;

    let mut begun = match action.begin(state).await? {
        Ok(begun) => begun,
        Err(answer) => return Ok(answer),
    };
    lock_screens(&mut begun.tx, theatre, &known.screen_id, (screen, place.layout_id)).await?;
    week::lock(&mut begun.tx, theatre, show).await?;
    let locked = load_show(&mut begun.tx, theatre, show).await?;
    if locked.terms_version != known.terms_version {
        return Err(Problem::new(
            Code::WrongState,
            "Someone else has changed this show in the meantime. Look at it again.",
        ));
    }
    // `lock_screens` has compared the layout with that of the screen.
    let is_previewed = request.version.is_none_or(|version| version == locked.terms_version.unsigned_abs())
        && request.layout.is_none_or(|layout| layout == place.layout_id);
    if !is_previewed {
        let detail = "The show, or the room of that screen, has changed since the preview. Look at the new preview.";
        return Err(Problem::new(Code::WrongState, detail));
    }
    let requested = RequestedMove {
        show,
        screen: screen.to_owned(),
        layout: place.layout_id,
        prices,
        reason: begun.reason.to_owned(),
    };
    relocation::begin_in(&mut begun.tx, &requested, begun.now).await?;
    check_screen_free(&mut begun.tx, show, &locked, (screen, &place.name), zone).await?;
    let row = week::find(&mut begun.tx, theatre, show).await?;
    let view = week::of_row(&mut begun.tx, row).await?;
    let answer = Answer::json(StatusCode::ACCEPTED, &view)?;
    let subject = format!("show {show} from screen {} to screen {screen}", known.screen_id);
    let answer = begun.finish("show_moved", subject, answer).await?;
    // Immediate on this replica; the others follow within a second.
    state.catalogue.evict(show).await;
    Ok(answer)
}

/// Locks both screens, which prevents concurrent planning and layout changes on them. Fails when the target has another
/// layout by now.
pub(super) async fn lock_screens(
    tx: &mut PgConnection,
    theatre: &str,
    from: &str,
    (to, layout): (&str, Uuid),
) -> ApiResult<()> {
    // Sorted: two shows may swap screens.
    let mut both = [from, to];
    both.sort_unstable();
    for each in both {
        let room = screens::lock(tx, theatre, each).await?.ok_or_else(|| Problem::not_found("screen"))?;
        if each == to && room != layout {
            let detail = "The screen was given another room just now. Please look at the move again.";
            return Err(Problem::new(Code::WrongState, detail));
        }
    }
    Ok(())
}

/// Fails when another show is on the screen at that time.
pub(super) async fn check_screen_free(
    tx: &mut PgConnection,
    id: Uuid,
    show: &MovingShow,
    screen: (&str, &str),
    zone: Tz,
) -> ApiResult<()> {
    let (running, cleaning) = (show.running_minutes.unsigned_abs(), show.cleaning_minutes.unsigned_abs());
    let wanted = [ScreenPeriod::new(&show.title, show.starts_at, running, cleaning)];
    require_free_screen(tx, screen, zone, &wanted, Some(id)).await
}

/// Returns the prices for the new layout's categories: the show's own where it has one, else the theatre's tariff.
pub(super) async fn prices(
    state: &BackofficeState,
    theatre: &str,
    show: &MovingShow,
    room: &Layout,
    zone: Tz,
) -> ApiResult<BTreeMap<String, i64>> {
    let known = |name: &str| show.prices.0.get(name).map(|minor| (name.to_owned(), *minor));
    let new: Vec<&str> =
        room.categories().iter().map(|category| category.name.as_str()).filter(|name| known(name).is_none()).collect();
    let mut prices: BTreeMap<String, i64> =
        room.categories().iter().filter_map(|category| known(&category.name)).collect();
    if new.is_empty() {
        return Ok(prices);
    }
    let tariff = tariffs::find_tariff(&mut *state.pg.acquire().await?, theatre).await?.map(|(tariff, _)| tariff);
    let is_priced = |name: &str| tariff.as_ref().is_some_and(|tariff| tariff.base.contains_key(name));
    let unpriced = room.categories().iter().filter(|one| known(&one.name).is_none() && !is_priced(&one.name));
    let unpriced: Vec<&str> = unpriced.map(Category::label).take(MAX_NAMED).collect();
    let (Some(tariff), true) = (tariff, unpriced.is_empty()) else {
        let detail = format!("The tariff has no price for {}. Add it first.", unpriced.join(", "));
        return Err(Problem::new(Code::PriceInvalid, detail));
    };
    let PriceList { by_category, .. } = tariff
        .price_list(new, slot(show.starts_at, zone, &show.format)?, currency(&show.currency)?)
        .map_err(|why| Problem::new(Code::PriceInvalid, format!("{why}.")))?;
    prices.extend(by_category);
    Ok(prices)
}

pub(super) fn slot(starts_at: DateTime<Utc>, zone: Tz, format: &str) -> ApiResult<ShowSlot> {
    let format = format.parse::<Format>().map_err(|_| Problem::internal(&"a show's format is none"))?;
    Ok(slot_of(starts_at.with_timezone(&zone).naive_local(), format))
}

fn currency(code: &str) -> ApiResult<Currency> {
    Currency::parse(code).ok_or_else(|| Problem::internal(&"a show's currency is none"))
}

/// The facts of a show that a move depends on.
#[derive(platform::FromRow)]
pub(super) struct MovingShow {
    /// The current screen.
    pub screen_id: String,
    /// The current layout.
    pub layout_id: Uuid,
    pub title: String,
    pub running_minutes: i32,
    pub cleaning_minutes: i32,
    pub starts_at: DateTime<Utc>,
    pub time_zone: String,
    pub format: String,
    pub currency: String,
    pub prices: Json<BTreeMap<String, i64>>,
    /// Version of all these.
    pub terms_version: i32,
}

pub(super) async fn load_show(connection: &mut PgConnection, theatre: &str, show: Uuid) -> ApiResult<MovingShow> {
    let found: Option<MovingShow> = sqlx::query_as(
        "SELECT show.screen_id, show.layout_id, film.title, film.running_minutes, show.cleaning_minutes, show.starts_at,
                city.time_zone, show.format, show.currency, show.prices, show.terms_version
         FROM shows show
         JOIN films film ON film.id = show.film_id
         JOIN screens screen ON screen.id = show.screen_id
         JOIN theatres theatre ON theatre.id = screen.theatre_id
         JOIN cities city ON city.id = theatre.city_id
         WHERE theatre.id = $1 AND show.id = $2",
    )
    .bind_all((theatre, show))
    .fetch_optional(connection)
    .await?;
    found.ok_or_else(|| Problem::not_found("show"))
}
