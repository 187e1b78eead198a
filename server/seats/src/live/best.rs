//! Best available seats by the live map, for a visitor without a choice or whose choice was taken.

use axum::Json;
use axum::extract::State;
use domain::api::{BestView, SuggestionView};
use domain::best_available::{MAX_SUGGESTIONS, SeatRequest, best_available};
use domain::money::Money;
use domain::seats::{MAX_SEATS_PER_HOLD, SeatIndex, SeatState};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::SeatsState;
use catalogue::Show;
use http::problem::ApiResult;
use http::{ApiPath, ApiQuery, Code, Problem};

/// Suggestions without `most` in the query.
const USUAL_SUGGESTIONS: usize = 3;

/// The route, under `/api/v1`.
pub(super) fn routes() -> OpenApiRouter<SeatsState> {
    OpenApiRouter::new().routes(routes!(best))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BestQuery {
    count: usize,
    category: Option<String>,
    most: Option<usize>,
}

/// The best seats that are free just now, together where that can be. Nothing is held by asking.
///
/// Best available: `?count=3&category=gold&most=3` adjacent seats, best first; holds nothing.
#[utoipa::path(get, path = "/shows/{show}/best", tag = "live",
    params(("show" = Uuid, Path), ("count" = usize, Query, description = "How many seats, 1 to 10"),
        ("category" = Option<String>, Query, description = "Name of a category, `gold`: only its seats"),
        ("most" = Option<usize>, Query, description = "Suggestions at most, 1 to 8; 3 unless said")),
    responses((status = 200, body = BestView), (status = 400, description = "malformed, seat_count"), (status = 404),
        (status = 409, description = "sales_closed: the show was called off")))]
async fn best(
    State(state): State<SeatsState>,
    ApiPath(show): ApiPath<Uuid>,
    ApiQuery(query): ApiQuery<BestQuery>,
) -> ApiResult<Json<BestView>> {
    let show = state.catalogue.find_public_show(show).await?;
    catalogue::refuse_called_off(&show)?;
    if !(1..=MAX_SEATS_PER_HOLD).contains(&query.count) {
        return Err(Problem::new(Code::SeatCount, format!("Ask for 1 to {MAX_SEATS_PER_HOLD} seats.")));
    }
    let category = query.category.as_deref().map(|name| category_of(&show, name)).transpose()?;
    let most = query.most.unwrap_or(USUAL_SUGGESTIONS).clamp(1, MAX_SUGGESTIONS);
    let reader = state.hubs.open(&state, &show).await?;
    let (at, states) = reader.hub.states().ok_or_else(|| Problem::internal(&"an open hub has no map"))?;
    let state_of = |seat: SeatIndex| states.get(seat as usize).copied().unwrap_or(SeatState::Blocked);
    let found = best_available(&show.layout, state_of, SeatRequest { count: query.count, category }, most);
    let suggestions = found.into_iter().map(|suggestion| {
        let seats: Vec<_> = suggestion.seats.iter().map(|seat| show.line(*seat)).collect();
        let total = seats.iter().fold(0_i64, |sum, line| sum.saturating_add(line.price.minor));
        SuggestionView {
            seats,
            total: Money::new(total, show.currency),
            together: suggestion.together,
            orphans: suggestion.orphans as u32,
        }
    });
    Ok(Json(BestView { epoch: at.epoch, version: at.version, suggestions: suggestions.collect() }))
}

fn category_of(show: &Show, name: &str) -> Result<u8, Problem> {
    let place = show.categories.iter().position(|category| category.name == name);
    place.and_then(|place| u8::try_from(place).ok()).ok_or_else(|| {
        let known = show.categories.iter().map(|category| category.name.as_str()).collect::<Vec<_>>().join(", ");
        Problem::new(Code::Malformed, format!("This show has no category {name:?}; it has {known}."))
    })
}
