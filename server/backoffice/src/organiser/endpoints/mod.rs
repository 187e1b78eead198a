//! Endpoints of organisers, all but one under `/theatres/{theatre}`.

mod programme;
mod rooms;
mod standing;
mod theatres;

use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;

use crate::BackofficeState;

/// The path of a screen.
#[derive(Deserialize)]
struct ScreenPath {
    screen: String,
}

/// The routes, under `/api/v1`.
pub fn routes() -> OpenApiRouter<BackofficeState> {
    rooms::routes().merge(standing::routes()).merge(programme::routes()).merge(theatres::routes())
}
