//! Data for search engines: `robots.txt`, the sitemap, and a show as an event.

use std::collections::BTreeSet;

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use domain::VariantName;
use domain::api::catalogue::ShowStatus;
use domain::money::Money;
use domain::pricing::Format;
use domain::time::{MINUTE_MS, Timestamp};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Page, PageError, PageQuery, PageResult};
use crate::AppState;
use crate::web::budget::{BROWSING, NEVER};
use catalogue::Show;
use http::cache_tags::CacheTags;
use http::caching::{CachePolicy, REVALIDATED};
use platform::clock;

pub(super) fn pages() -> [Page; 2] {
    [("/sitemap.xml", get(sitemap), BROWSING), ("/robots.txt", get(robots), NEVER)]
}

/// Rules for all crawlers (RFC 9309). Pages that must not be found forbid indexing themselves, which a crawler must read to
/// obey. So these rules keep crawlers only from data, from endless combinations of filters, and from links into a queue.
const RULES: &str = "User-agent: *\nDisallow: /api/\nDisallow: /search?\nDisallow: /shows/*/place/\n";

async fn robots(State(state): State<AppState>) -> Response {
    let headers = [(header::CONTENT_TYPE, "text/plain; charset=utf-8"), (header::CACHE_CONTROL, REVALIDATED)];
    (headers, format!("{RULES}\nSitemap: {}/sitemap.xml\n", state.site.origin())).into_response()
}

#[derive(Deserialize)]
struct SitemapQuery {
    city: Option<String>,
}

/// The index of all sitemaps; or that of one city: its page, theatres, films and shows.
async fn sitemap(State(state): State<AppState>, PageQuery(query): PageQuery<SitemapQuery>) -> PageResult {
    let (listings, origin) = (state.catalogue.listings(), state.site.origin());
    let Some(city) = query.city else {
        let cities = listings.cities().await?;
        let parts = cities.iter().map(|city| format!("{origin}/sitemap.xml?city={}", city.id));
        return Ok(xml("sitemapindex", "sitemap", parts));
    };
    let city = listings.city(&city).await?.ok_or(PageError::NotFound)?;
    let theatres = listings.theatres(Some(&city.id)).await?;
    let shows = listings.shows_for_sitemap(&city.id, clock::now()).await?;
    let films: BTreeSet<&str> = shows.iter().map(|(_, film)| film.as_str()).collect();
    let pages = std::iter::once(format!("{origin}/cities/{}", city.id))
        .chain(theatres.iter().map(|theatre| format!("{origin}/theatres/{}", theatre.id)))
        .chain(films.iter().map(|film| format!("{origin}/films/{film}")))
        .chain(shows.iter().map(|(show, _)| format!("{origin}/shows/{show}")));
    Ok(xml("urlset", "url", pages))
}

/// A document of the sitemap protocol (sitemaps.org). Addresses are an origin, slugs and ids, so nothing needs escaping.
fn xml(root: &str, entry: &str, addresses: impl Iterator<Item = String>) -> Response {
    let entries: String = addresses.map(|address| format!("<{entry}><loc>{address}</loc></{entry}>\n")).collect();
    let document = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<{root} xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n{entries}</{root}>\n"
    );
    let kept = CachePolicy::with_tags(CacheTags::lists());
    (kept, [(header::CONTENT_TYPE, "application/xml")], document).into_response()
}

/// A show as an event of schema.org (JSON-LD). `seats_left` is `None` if it is unknown.
pub(super) fn event(show: &Show, seats_left: Option<u32>, origin: &str, now: Timestamp) -> String {
    let status = ShowStatus::of(show.is_called_off(), show.sales, show.sales_from, show.starts_at, now);
    let is_live = show.format == Format::Live.as_str();
    let page = format!("{origin}/shows/{}", show.id);
    let theatre_page = format!("{origin}/theatres/{}", show.theatre_id);
    let film_page = format!("{origin}/films/{}", show.film_id);
    let ends = show.starts_at.plus_ms(i64::from(show.running_minutes) * MINUTE_MS);
    let mut event = json!({
        "@context": "https://schema.org",
        "@type": if is_live { "Event" } else { "ScreeningEvent" },
        "name": show.film,
        "url": page,
        "startDate": show.local_rfc3339(show.starts_at),
        "endDate": show.local_rfc3339(ends),
        "eventStatus": schema(if show.is_called_off() { "EventCancelled" } else { "EventScheduled" }),
        "eventAttendanceMode": schema("OfflineEventAttendanceMode"),
        "location": {
            "@type": if is_live { "EventVenue" } else { "MovieTheater" },
            "name": show.theatre,
            "url": theatre_page,
            "address": { "@type": "PostalAddress", "streetAddress": show.address, "addressLocality": show.city },
        },
        "organizer": { "@type": "Organization", "name": show.theatre, "url": theatre_page },
    });
    if !is_live {
        event["videoFormat"] = json!(show.format);
        event["workPresented"] = json!({ "@type": "Movie", "name": show.film, "url": film_page });
    }
    if let Some(price) = show.lowest_price() {
        event["offers"] = offer(show, price, &page, availability(status, seats_left));
    }
    event.to_string()
}

/// The offer of the cheapest seats.
fn offer(show: &Show, price: Money, page: &str, availability: Option<&str>) -> Value {
    let mut offer = json!({
        "@type": "Offer",
        "url": page,
        "price": price.decimal(),
        "priceCurrency": price.currency.code(),
    });
    if let Some(availability) = availability {
        offer["availability"] = schema(availability);
    }
    if let Some(from) = show.sales_from {
        offer["validFrom"] = json!(show.local_rfc3339(from));
    }
    offer
}

/// The availability of seats as schema.org names it; `None` if it is unknown.
fn availability(status: ShowStatus, seats_left: Option<u32>) -> Option<&'static str> {
    match status {
        ShowStatus::OnSale => seats_left.map(|left| if left == 0 { "SoldOut" } else { "InStock" }),
        ShowStatus::Upcoming => Some("PreOrder"),
        ShowStatus::Paused | ShowStatus::Closed | ShowStatus::CalledOff => Some("OutOfStock"),
    }
}

/// A term of schema.org as a value.
fn schema(term: &str) -> Value {
    json!(format!("https://schema.org/{term}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn availability_is_that_of_online_sales() {
        assert_eq!(availability(ShowStatus::OnSale, Some(1)), Some("InStock"));
        assert_eq!(availability(ShowStatus::OnSale, Some(0)), Some("SoldOut"));
        assert_eq!(availability(ShowStatus::OnSale, None), None);
        assert_eq!(availability(ShowStatus::Upcoming, Some(9)), Some("PreOrder"));
        for status in [ShowStatus::Paused, ShowStatus::Closed, ShowStatus::CalledOff] {
            assert_eq!(availability(status, Some(9)), Some("OutOfStock"), "{status:?}");
        }
    }
}
