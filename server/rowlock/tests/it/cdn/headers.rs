//! Cache headers of answers.

use http::caching::{CacheClass, FOREVER, PRIVATE, REVALIDATED, SHARED, cache_class};
use reqwest::StatusCode;
use reqwest::header::{HeaderMap, HeaderName};
use rowlock::web::authorisation::TABLE;
use rowlock::web::pages::addresses;

use crate::world::{World, text};

/// A route with its parameters filled in from the world.
fn address(route: &str, world: &World) -> String {
    let (show, unknown) = (world.show.to_string(), uuid::Uuid::nil().to_string());
    let filled = route.split('/').scan("", |before, segment| {
        let of = std::mem::replace(before, segment);
        Some(match (of, segment) {
            ("cities", "{id}") => "lisbon",
            ("theatres" | "staff", part) if part.starts_with('{') => "aurora",
            ("films", "{id}") => "tide",
            ("shows", part) if part.starts_with('{') => show.as_str(),
            (_, part) if part.starts_with('{') => unknown.as_str(),
            (_, part) => part,
        })
    });
    let filled: Vec<String> = filled.map(ToOwned::to_owned).collect();
    filled.join("/")
}

async fn fetch(world: &World, path: &str) -> (StatusCode, HeaderMap) {
    let answer = world.visitor().client.get(format!("{}{path}", world.servers[0].url)).send().await;
    let answer = answer.expect("an answer");
    (answer.status(), answer.headers().clone())
}

/// A header of an answer, all values joined.
fn header(headers: &HeaderMap, name: &str) -> String {
    let lines = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    lines.collect::<Vec<_>>().join(", ")
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_sends_the_cache_headers_of_its_class() {
    let world = World::start(1, &[]).await;
    let api = TABLE.iter().filter(|(method, ..)| *method == "GET").map(|(_, route, ..)| *route);
    let (mut kept, mut private) = (0, 0);
    for route in api.chain(addresses()).chain(["/api/openapi.json", "/healthz", "/readyz", "/metrics", "/nowhere"]) {
        let (status, headers) = fetch(&world, &address(route, &world)).await;
        let control = header(&headers, "cache-control");
        match cache_class(route).unwrap_or(CacheClass::Never) {
            CacheClass::Shared => {
                assert_eq!((status, control.as_str()), (StatusCode::OK, SHARED), "{route}");
                assert_eq!(
                    header(&headers, "cache-tag").replace(',', " "),
                    header(&headers, "surrogate-key"),
                    "{route}"
                );
                assert_eq!(headers.contains_key("cache-tag"), route != "/docs/problems", "{route}");
                assert!(!headers.contains_key("set-cookie"), "{route}");
                let vary = header(&headers, "vary").to_ascii_lowercase();
                let is_page = !route.starts_with("/api/");
                assert_eq!(vary.contains("cookie") && vary.contains("accept-language"), is_page, "{route}: {vary}");
                kept += 1;
            }
            CacheClass::Revalidated => assert_eq!((status, control.as_str()), (StatusCode::OK, REVALIDATED), "{route}"),
            CacheClass::Immutable => panic!("{route} is covered by `static_files`"),
            CacheClass::Never => {
                assert_eq!(control, PRIVATE, "{route}");
                assert!(!headers.contains_key("cache-tag") && !headers.contains_key("surrogate-key"), "{route}");
                private += 1;
            }
        }
    }
    assert!(kept > 8 && private > 60, "too few routes were requested: {kept} and {private}");
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_carry_tags_of_their_content() {
    let world = World::start(1, &[]).await;
    let show = format!("film-tide,show-{},theatre-aurora", world.show);
    for (path, tags) in [
        ("/", "lists"),
        ("/search?q=tide", "lists"),
        ("/cities/lisbon", "city-lisbon,theatre-aurora"),
        ("/films/tide", "film-tide,theatre-aurora"),
        ("/api/v1/cities", "lists"),
        ("/api/v1/cities/lisbon/theatres", "city-lisbon,theatre-aurora"),
        ("/api/v1/shows?movie=tide", "lists"),
        (&format!("/api/v1/shows/{}", world.show), &show),
    ] {
        let (status, headers) = fetch(&world, path).await;
        let named = header(&headers, "cache-tag");
        // A city also lists today's films, and whether the show is today depends on the hour.
        let named = if path == "/cities/lisbon" { named.replace("film-tide,", "") } else { named };
        assert_eq!((status, named.as_str()), (StatusCode::OK, tags), "{path}");
    }
    // The listing of a day with shows names its films.
    let (_, listed) = world.visitor().get("/api/v1/shows").await;
    let day = text(&listed["shows"][0]["local_date"]).to_owned();
    for path in [format!("/theatres/aurora?date={day}"), format!("/api/v1/theatres/aurora/shows?date={day}")] {
        let (_, headers) = fetch(&world, &path).await;
        assert_eq!(header(&headers, "cache-tag"), "film-tide,theatre-aurora", "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn personal_and_missing_answers_are_not_cached() {
    let world = World::start(1, &[]).await;
    let seats = format!("/api/v1/shows/{}/seats", world.show);
    let dots = format!("/api/v1/shows/{}/dots", world.show);
    for (path, control) in [
        ("/?lang=de", PRIVATE),
        ("/cities/nowhere", PRIVATE),
        ("/theatres/aurora?date=never", PRIVATE),
        ("/api/v1/cities/nowhere/theatres", PRIVATE),
        ("/api/v1/shows?date=never", PRIVATE),
        (&seats, PRIVATE),
        (&dots, REVALIDATED),
        (&format!("{dots}?room={}", world.layout), FOREVER),
        // A moved show, and an old page that requests its previous layout.
        (&format!("{dots}?room={}", uuid::Uuid::nil()), PRIVATE),
    ] {
        let (_, headers) = fetch(&world, path).await;
        assert_eq!(header(&headers, "cache-control"), control, "{path}");
        assert!(!headers.contains_key("cache-tag"), "{path}");
    }
    // Clients may revalidate the map; shared caches may not.
    let (_, headers) = fetch(&world, &seats).await;
    let etag = headers["etag"].clone();
    assert!(headers.contains_key(HeaderName::from_static("server-time")));
    let url = format!("{}{seats}", world.servers[0].url);
    let again = world.visitor().client.get(url).header("if-none-match", etag).send().await.expect("an answer");
    assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
    assert_eq!(header(again.headers(), "cache-control"), PRIVATE);
}
