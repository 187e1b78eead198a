//! The page that the mail about an offer of a waiting list opens.

use app::pages::offer::OfferPage;
use axum::Router;
use axum::extract::{Path, State};
use axum::response::IntoResponse;
use axum::routing::get;
use domain::time::Timestamp;

use super::accounts::{once_more, private, see};
use super::booking::{facts, passing_or_fault};
use super::in_words;
use crate::AppState;
use crate::web::pages::{PageResult, PathResult};
use http::ClientAddress;
use identity::Visitor;
use selling::waiting_list::{self, OpenedOffer};

/// The page.
pub fn routes() -> Router<AppState> {
    Router::new().route("/waiting-list/{key}", get(opened).post(take))
}

async fn opened(State(state): State<AppState>, visitor: Visitor, key: PathResult<String>) -> PageResult {
    let Path(key) = key?;
    let opened = waiting_list::open_offer(&state, &visitor, &key).await.map_err(passing_or_fault)?;
    if opened.is_own && opened.can_be_taken() {
        return Ok(see(&format!("/shows/{}", opened.show.id)));
    }
    Ok(private(page(opened, &key)))
}

fn page(opened: OpenedOffer, key: &str) -> OfferPage {
    let OpenedOffer { place, show, .. } = opened;
    let until = place.offer.as_ref().map(|offer| in_words(&show, Timestamp(offer.expires_at_ms)));
    OfferPage {
        until: until.unwrap_or_default(),
        offer: place.offer,
        show: facts(&show),
        show_path: format!("/shows/{}", show.id),
        action: format!("/waiting-list/{key}"),
        trouble: None,
    }
}

/// Takes the offer. The redirect sets the cookie of a new device: the offer is its visitor's then.
async fn take(
    State(state): State<AppState>,
    visitor: Visitor,
    address: ClientAddress,
    key: PathResult<String>,
) -> PageResult {
    let Path(key) = key?;
    let problem = match waiting_list::take_offer(&state, &visitor, &address, &key).await {
        Ok(show) => return Ok((visitor, see(&format!("/shows/{show}"))).into_response()),
        Err(problem) => problem,
    };
    let opened = waiting_list::open_offer(&state, &visitor, &key).await.map_err(passing_or_fault)?;
    let page = page(opened, &key);
    Ok(once_more(problem, |trouble| private(OfferPage { trouble: Some(trouble), ..page })))
}
