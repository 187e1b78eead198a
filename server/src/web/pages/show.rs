//! The page of a show. It sets the visitor's cookie, so that the island's first calls, made side by
//! side, all come from the same visitor.

use app::Place;
use app::pages::show::Show as ShowPage;
use axum::Router;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use domain::api_organiser::Sales;
use domain::booking::SALES_CLOSE_BEFORE_START_MS;
use uuid::Uuid;

use super::booking::passing_or_fault;
use super::{PRIVATE_CACHE, PageError, html, in_words, start_in_words};
use crate::web::Visitor;
use crate::{AppState, accounts, clock};

/// The page.
pub fn routes() -> Router<AppState> {
    Router::new().route("/shows/{id}", get(show))
}

async fn show(
    State(state): State<AppState>,
    visitor: Visitor,
    id: Result<Path<Uuid>, PathRejection>,
) -> Result<Response, PageError> {
    let Path(id) = id?;
    let show = state.catalogue.show(id).await?.ok_or(PageError::NotFound)?;
    if show.sales == Sales::Planned {
        return Err(PageError::NotFound);
    }
    let now = state.locks.now();
    let opens = show.sales_from.filter(|from| *from > now && show.sales == Sales::Open && !show.is_called_off());
    let buyer = accounts::named(&state, visitor.account).await.map_err(passing_or_fault)?;
    let page = ShowPage {
        id,
        buyer,
        film: Place::new(&show.film, format!("/films/{}", show.film_id)),
        theatre: Place::new(&show.theatre, format!("/theatres/{}", show.theatre_id)),
        screen: show.screen.clone(),
        city: Place::new(&show.city, format!("/cities/{}", show.city_id)),
        starts: start_in_words(&show),
        starts_at: clock::rfc3339(show.starts_at),
        format: show.format.clone(),
        language: show.language.clone(),
        rating: show.rating.clone(),
        running_minutes: show.running_minutes,
        is_on_sale: show.starts_at.since(now) > SALES_CLOSE_BEFORE_START_MS
            && show.sales == Sales::Open
            && opens.is_none(),
        opens: opens.map(|from| in_words(&show, from)),
        is_paused: show.sales == Sales::Paused && show.starts_at > now,
    };
    Ok((visitor, html(page, PRIVATE_CACHE)).into_response())
}
