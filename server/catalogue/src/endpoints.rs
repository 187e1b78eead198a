//! Endpoints of the catalogue. All of them may be kept by a CDN (`web::caching`).

use axum::Json;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use domain::api::PlanView;
use domain::api::catalogue::{CityView, DayQuery, ShowDetail, ShowList, ShowQuery, ShowStatus, TheatreView};
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::service::today_in;
use super::{InvalidSearch, PlanPart, ShowSearch, ShowSearchResult, search};
use crate::{CatalogueState, ListedShow};
use http::cache_tags::CacheTags;
use http::caching::{CachePolicy, FOREVER, PRIVATE, REVALIDATED};
use http::problem::ApiResult;
use http::{ApiPath, ApiQuery, Code, Problem};
use platform::clock;

/// Routes under `/api/v1`.
pub fn routes() -> OpenApiRouter<CatalogueState> {
    OpenApiRouter::new()
        .routes(routes!(cities))
        .routes(routes!(theatres))
        .routes(routes!(theatre_shows))
        .routes(routes!(shows))
        .routes(routes!(show))
        .routes(routes!(plan))
        .routes(routes!(dots))
}

impl From<InvalidSearch> for Problem {
    fn from(why: InvalidSearch) -> Self {
        Self::new(Code::Malformed, why.to_string())
    }
}

/// All cities.
#[utoipa::path(get, path = "/cities", tag = "catalogue", responses((status = 200, body = [CityView])))]
async fn cities(State(state): State<CatalogueState>) -> ApiResult<Response> {
    Ok((CachePolicy::with_tags(CacheTags::lists()), Json(state.catalogue.listings().cities().await?)).into_response())
}

/// Theatres in a city.
#[utoipa::path(get, path = "/cities/{id}/theatres", tag = "catalogue",
    params(("id" = String, Path, description = "Slug of the city")), responses((status = 200, body = [TheatreView])))]
async fn theatres(State(state): State<CatalogueState>, ApiPath(id): ApiPath<String>) -> ApiResult<Response> {
    let city = state.catalogue.listings().city(&id).await?.ok_or_else(|| Problem::not_found("city"))?;
    let theatres = state.catalogue.listings().theatres(Some(&city.id)).await?;
    let tags = theatres.iter().fold(CacheTags::default().city(&city.id), |tags, theatre| tags.theatre(&theatre.id));
    Ok((CachePolicy::with_tags(tags), Json(theatres)).into_response())
}

/// Shows of a theatre on a day, from now on.
///
/// Shows of a theatre, `?date=YYYY-MM-DD` in its time zone.
#[utoipa::path(get, path = "/theatres/{id}/shows", tag = "catalogue",
    params(("id" = String, Path, description = "Slug of the theatre"), DayQuery),
    responses((status = 200, body = ShowList)))]
async fn theatre_shows(
    State(state): State<CatalogueState>,
    ApiPath(id): ApiPath<String>,
    ApiQuery(day): ApiQuery<DayQuery>,
) -> ApiResult<Response> {
    let asked = search::date(day.date.as_deref())?;
    let theatre = state.catalogue.listings().theatre(&id).await?.ok_or_else(|| Problem::not_found("theatre"))?;
    let now = clock::now();
    let date = match asked {
        Some(date) => date,
        None => today_in(&theatre.time_zone, now)?,
    };
    let tags = CacheTags::default().theatre(&theatre.id);
    let search = ShowSearch { theatre: Some(theatre.id), date: Some(date), ..ShowSearch::default() };
    let found = state.catalogue.listings().search(&search, now).await?;
    let kept =
        CachePolicy::with_tags(tags.listing(found.shows.iter().map(ListedShow::theatre_and_film))).read_at(found.asked);
    Ok((kept, Json(list(&found))).into_response())
}

/// Shows to come, by film, city, date, theatre, language, format or text.
///
/// Search: `?movie=&city=&date=&theatre=&language=&format=&q=`; `q` ignores accents and case.
#[utoipa::path(get, path = "/shows", tag = "catalogue", params(ShowQuery), responses((status = 200, body = ShowList)))]
async fn shows(State(state): State<CatalogueState>, ApiQuery(query): ApiQuery<ShowQuery>) -> ApiResult<Response> {
    let search = ShowSearch::read(&query)?;
    let found = state.catalogue.listings().search(&search, clock::now()).await?;
    let kept = CachePolicy::with_tags(CacheTags::lists()).read_at(found.asked);
    Ok((kept, Json(list(&found))).into_response())
}

/// One show.
///
/// A show; `status` says whether its seats can be taken.
#[utoipa::path(get, path = "/shows/{id}", tag = "catalogue", params(("id" = Uuid, Path, description = "The show")),
    responses((status = 200, body = ShowDetail)))]
async fn show(State(state): State<CatalogueState>, ApiPath(id): ApiPath<Uuid>) -> ApiResult<Response> {
    let show = state.catalogue.find_public_show(id).await?;
    let listed =
        state.catalogue.listings().listed(id, clock::now()).await?.ok_or_else(|| Problem::not_found("show"))?;
    let tags = CacheTags::default().show(id).listing([listed.theatre_and_film()]);
    // The first read after the show was called off marks it for this server, which is notified within a second otherwise.
    // A standby may be later than that.
    if listed.show.status == ShowStatus::CalledOff {
        show.call_off();
    }
    let listed_show = if show.is_called_off() { listed.show.called_off() } else { listed.show };
    let detail = ShowDetail { show: listed_show, categories: show.categories.clone(), hold_ms: show.hold_ms };
    Ok((CachePolicy::with_tags(tags), Json(detail)).into_response())
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct SectionQuery {
    /// Which section of a large room; without it, the whole room or its overview.
    section: Option<u32>,
}

/// The room of a show with its prices.
///
/// The layout of a show with its prices; `?section=N` for one section of a large layout. `ETag`; caches revalidate
/// before each use.
#[utoipa::path(get, path = "/shows/{id}/plan", tag = "catalogue",
    params(("id" = Uuid, Path, description = "The show"), SectionQuery),
    responses((status = 200, body = PlanView, headers(("etag" = String, description = "Names this content"))),
        (status = 304, description = "What `If-None-Match` names is still right")))]
async fn plan(
    State(state): State<CatalogueState>,
    ApiPath(id): ApiPath<Uuid>,
    ApiQuery(query): ApiQuery<SectionQuery>,
    headers: HeaderMap,
) -> ApiResult<Response> {
    let part = query.section.map_or(PlanPart::Room, PlanPart::Section);
    part_of_room(&state, id, (part, "application/json"), |_| REVALIDATED, &headers).await
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct RoomQuery {
    /// The room the caller has: at its address the dots are immutable.
    room: Option<Uuid>,
}

/// The position of every seat, for painting a large room at once: bytes, see docs/api.md.
///
/// The positions of all seats, as bytes. `ETag`; immutable with the plan's `?room=`.
#[utoipa::path(get, path = "/shows/{id}/dots", tag = "catalogue",
    params(("id" = Uuid, Path, description = "The show"), RoomQuery),
    responses((status = 200, body = Vec<u8>, content_type = "application/octet-stream",
            headers(("etag" = String, description = "Names this content"))),
        (status = 304, description = "What `If-None-Match` names is still right")))]
async fn dots(
    State(state): State<CatalogueState>,
    ApiPath(id): ApiPath<Uuid>,
    ApiQuery(query): ApiQuery<RoomQuery>,
    headers: HeaderMap,
) -> ApiResult<Response> {
    // A room never changes, but a show may be moved to another: then its dots are not those of the requested room, and must
    // not be cached under its address.
    let cache = |room: Uuid| match query.room {
        Some(asked) if asked == room => FOREVER,
        Some(_) => PRIVATE,
        None => REVALIDATED,
    };
    part_of_room(&state, id, (PlanPart::Dots, "application/octet-stream"), cache, &headers).await
}

async fn part_of_room(
    state: &CatalogueState,
    id: Uuid,
    (part, kind): (PlanPart, &'static str),
    cache: impl Fn(Uuid) -> &'static str,
    headers: &HeaderMap,
) -> ApiResult<Response> {
    let show = state.catalogue.find_public_show(id).await?;
    let document = state.catalogue.plan_document(&show, part).await?;
    let document = document.ok_or_else(|| Problem::not_found("section"))?;
    let tag = (ETAG, document.etag.clone());
    let cache = (CACHE_CONTROL, cache(show.layout_id));
    if knows(headers, &document.etag) {
        return Ok((StatusCode::NOT_MODIFIED, [cache], [tag]).into_response());
    }
    Ok(([cache], [tag], [(CONTENT_TYPE, kind)], document.content.clone()).into_response())
}

/// True if the client has this content already. The entity tag of a compressed answer is weak.
fn knows(headers: &HeaderMap, etag: &str) -> bool {
    let tags = headers.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    tags.flat_map(|value| value.split(',')).any(|tag| tag.trim().trim_start_matches("W/") == etag)
}

fn list(found: &ShowSearchResult) -> ShowList {
    ShowList { shows: found.shows.iter().map(|listed| listed.show.clone()).collect(), more: found.more }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn a_tag_matches_strong_or_weak_and_among_others() {
        let mut headers = HeaderMap::new();
        headers.insert(IF_NONE_MATCH, HeaderValue::from_static("\"x\", W/\"abc\""));
        assert!(knows(&headers, "\"abc\""));
        assert!(!knows(&headers, "\"ab\""));
    }
}
