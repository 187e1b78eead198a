//! The page of a show. It sets the visitor's cookie, so that the island's first calls, made side by
//! side, all come from the same visitor.

use std::time::Duration;

use app::PageLink;
use app::pages::place_link::PlaceLinkPage;
use app::pages::show::{QueuePage, SeatMapPage};
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use domain::api::organiser::Sales;
use domain::booking::SALES_CLOSE_BEFORE_START_MS;
use domain::seats::MAX_SEATS_PER_HOLD;
use domain::time::MINUTE_MS;
use uuid::Uuid;

use super::booking::facts;
use super::{
    Page, PageError, PagePath, PageResult, in_words, private_page, redirect_to, search_engines, start_in_words,
};
use crate::AppState;
use crate::web::budget::{CHOOSING, OPENING};
use admission::waiting_room::{self, TicketImport, VisitorPage};
use http::caching::PRIVATE;
use http::page_locale;
use identity::{Visitor, accounts};
use platform::clock;

/// Minimum delay before the page of a paused show reloads, seconds: sales may resume at any moment…
const RELOAD_S: u64 = 4;
/// …and the range of its addition, which differs by visitor, so that they do not all reload at once.
const SPREAD_S: u64 = 8;

/// Longest wait for the number of seats left: only search engines read it here, and the page works without the database.
const SEATS_LEFT_DEADLINE: Duration = Duration::from_millis(200);

pub(super) fn pages() -> [Page; 2] {
    let place_link = get(confirm_import).post(import_ticket);
    [("/shows/{id}", get(show), OPENING), ("/shows/{id}/place/{ticket}", place_link, CHOOSING)]
}

async fn show(
    State(state): State<AppState>,
    visitor: Visitor,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
    PagePath(id): PagePath<Uuid>,
) -> PageResult {
    let Some(show) = state.catalogue.show(id).await? else { return redirect_to_region(&state, id).await };
    if show.sales == Sales::Planned {
        return Err(PageError::NotFound);
    }
    let now = state.clock.now();
    let opens = show.sales_from.filter(|from| *from > now && show.sales == Sales::Open && !show.is_called_off());
    let buyer = accounts::name_and_address(&state, visitor.account).await?;
    let event = if show.starts_at > now {
        // The task continues after the deadline, so that pages do not repeat the query to a slow database.
        let catalogue = state.catalogue.clone();
        let loading = state.tasks.spawn(async move { catalogue.listings().seats_left(id, now).await });
        let loaded = tokio::time::timeout(SEATS_LEFT_DEADLINE, loading).await.ok().and_then(Result::ok);
        let seats_left = loaded.and_then(Result::ok).flatten();
        Some(search_engines::event(&show, seats_left, state.site.origin(), now))
    } else {
        None
    };
    let page = SeatMapPage {
        id,
        buyer,
        film: PageLink::new(&show.film, format!("/films/{}", show.film_id)),
        theatre: PageLink::new(&show.theatre, format!("/theatres/{}", show.theatre_id)),
        screen: show.screen.clone(),
        city: PageLink::new(&show.city, format!("/cities/{}", show.city_id)),
        starts: start_in_words(&show),
        starts_at: clock::rfc3339(show.starts_at),
        format: show.format.clone(),
        language: show.language.clone(),
        rating: show.rating.clone(),
        running_minutes: show.running_minutes,
        is_on_sale: show.starts_at.since(now) > SALES_CLOSE_BEFORE_START_MS
            && show.sales == Sales::Open
            && !show.is_called_off()
            && opens.is_none(),
        opens: opens.map(|from| in_words(&show, from)),
        is_paused: show.sales == Sales::Paused && show.starts_at > now && !show.is_called_off(),
        is_called_off: show.is_called_off(),
        has_demo_crowd: state.config.demo_crowd,
        event,
        offer_minutes: (state.config.selling.waiting_offer_ms / MINUTE_MS).max(1),
        per_person: show.per_person.min(MAX_SEATS_PER_HOLD),
    };
    // Visitors may wait in the waiting room before the sale begins.
    let may_be_sold = catalogue::sales_open(&show, now).is_ok() && show.sales == Sales::Open;
    let gets_queue = is_queue_requested(&state, id, query.as_deref())
        || waiting_room::page_of(&state, id, &visitor.owner, &headers) == VisitorPage::WaitingRoom;
    if may_be_sold && gets_queue {
        let opens = opening_in_words(&state, &show);
        return Ok((visitor, private_page(QueuePage { show: page, opens })).into_response());
    }
    let again = page.is_paused.then(|| {
        let later = visitor.owner.bytes().map(u64::from).sum::<u64>() % SPREAD_S;
        [(header::REFRESH, HeaderValue::from(RELOAD_S + later))]
    });
    Ok((visitor, again, private_page(page)).into_response())
}

/// Returns true if the address asks for the waiting room (`?queue`) and the show has one. The map opens this address
/// after a refusal, because the plain one shows the map for a while after a pass has ended.
fn is_queue_requested(state: &AppState, show: Uuid, query: Option<&str>) -> bool {
    query.is_some_and(|query| query.split('&').any(|part| part == "queue")) && state.waiting_rooms.of(show).is_some()
}

/// Redirects to the region of the show, in the reader's language.
async fn redirect_to_region(state: &AppState, id: Uuid) -> PageResult {
    let address = state.catalogue.other_region_of(id).await?.ok_or(PageError::NotFound)?;
    let here = page_locale::current().address_in(page_locale::language());
    let location = HeaderValue::try_from(format!("{address}{here}")).map_err(|_| PageError::NotFound)?;
    let headers = [(header::LOCATION, location), (header::CACHE_CONTROL, HeaderValue::from_static(PRIVATE))];
    Ok((StatusCode::TEMPORARY_REDIRECT, headers).into_response())
}

/// The opening of a show's waiting room in its theatre's time zone and the reader's language; empty without one.
fn opening_in_words(state: &AppState, show: &catalogue::Show) -> String {
    state.waiting_rooms.of(show.id).map(|room| in_words(show, room.settings().opens_at)).unwrap_or_default()
}

/// Asks the visitor before a place in the queue moves to their device. Opening the link moves nothing: otherwise many
/// who open a stranger's link would share one place, which lets in two devices.
async fn confirm_import(
    State(state): State<AppState>,
    headers: HeaderMap,
    PagePath((id, ticket)): PagePath<(Uuid, String)>,
) -> PageResult {
    let show_path = format!("/shows/{id}");
    match waiting_room::check_ticket_import(&state, id, &headers, &ticket) {
        TicketImport::Possible(_) => {
            let show = state.catalogue.show(id).await?.ok_or(PageError::NotFound)?;
            let action = format!("/shows/{id}/place/{ticket}");
            Ok(private_page(PlaceLinkPage { show: facts(&show), show_path, action }))
        }
        TicketImport::HasTicket => Ok(redirect_to(&show_path)),
        TicketImport::Invalid => Err(PageError::NotFound),
    }
}

/// Transfers a place in the queue to the device of a visitor who confirmed it.
async fn import_ticket(
    State(state): State<AppState>,
    headers: HeaderMap,
    PagePath((show, ticket)): PagePath<(Uuid, String)>,
) -> PageResult {
    let to_show = redirect_to(&format!("/shows/{show}"));
    match waiting_room::check_ticket_import(&state, show, &headers, &ticket) {
        TicketImport::Possible(cookie) => Ok(([(header::SET_COOKIE, cookie)], to_show).into_response()),
        TicketImport::HasTicket => Ok(to_show),
        TicketImport::Invalid => Err(PageError::NotFound),
    }
}
