//! Data for search engines: a show as an event, the preview of a link, the sitemap, and `robots.txt`.

use crate::organiser::{organiser, post};
use crate::prelude::*;

/// The public address of the world's server.
fn origin(world: &World) -> &str {
    &world.servers[0].url
}

async fn show_page(world: &World) -> String {
    expect_page(world.visitor().page(&format!("/shows/{}", world.show)).await, StatusCode::OK, &[])
}

/// The event on a show's page.
async fn event(world: &World) -> Value {
    let html = show_page(world).await;
    let (_, rest) = html.split_once("<script type=\"application/ld+json\">").expect("the event");
    let (data, _) = rest.split_once("</script>").expect("its end");
    serde_json::from_str(data).expect("JSON")
}

async fn sitemap(world: &World, query: &str) -> String {
    expect_page(world.visitor().page(&format!("/sitemap.xml{query}")).await, StatusCode::OK, &["<?xml version=\"1.0\""])
}

#[tokio::test(flavor = "multi_thread")]
async fn show_is_an_event_with_time_place_and_offer() {
    let world = World::start(1, &[]).await;
    let origin = origin(&world);
    // The number of seats left is missing while the database is slow.
    wait_until("seats are in stock", || async {
        event(&world).await["offers"]["availability"] == "https://schema.org/InStock"
    })
    .await;
    let event = event(&world).await;
    let page = format!("{origin}/shows/{}", world.show);
    assert_eq!(event["@context"], "https://schema.org");
    assert_eq!((text(&event["@type"]), text(&event["name"])), ("ScreeningEvent", "Tide"));
    assert_eq!(text(&event["url"]), page);
    assert_eq!(event["eventStatus"], "https://schema.org/EventScheduled");
    assert_eq!((text(&event["location"]["name"]), text(&event["location"]["@type"])), ("Aurora", "MovieTheater"));
    assert_eq!(event["location"]["address"]["streetAddress"], "Rua 1");
    assert_eq!(event["location"]["address"]["addressLocality"], "Lisbon");
    assert_eq!(event["workPresented"]["url"], format!("{origin}/films/tide"));
    let offer = &event["offers"];
    assert_eq!((text(&offer["price"]), text(&offer["priceCurrency"])), ("12.50", "EUR"));
    assert_eq!(text(&offer["url"]), page);

    let (_, listed) = world.visitor().get(&format!("/api/v1/shows/{}", world.show)).await;
    let starts_at_ms = listed["starts_at_ms"].as_i64().expect("a time");
    for (key, minutes) in [("startDate", 0), ("endDate", 100)] {
        let at = chrono::DateTime::parse_from_rfc3339(text(&event[key])).expect("a time with an offset");
        assert_eq!(at.timestamp(), starts_at_ms / 1_000 + minutes * 60, "{key}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelled_show_stays_in_the_sitemap_and_its_event_is_cancelled() {
    let world = World::start(1, &[]).await;
    let origin = origin(&world);
    let mut olga = organiser(&world).await;
    let path = format!("/programme/{}/cancel", world.show);
    expect_answer(post(&mut olga, &path, json!({ "reason": "The roof leaks." })).await, StatusCode::ACCEPTED);
    wait_until("the event is cancelled", || async {
        event(&world).await["eventStatus"] == "https://schema.org/EventCancelled"
    })
    .await;
    assert_eq!(event(&world).await["offers"]["availability"], "https://schema.org/OutOfStock");
    assert!(!show_page(&world).await.contains("Choose your seats"));
    assert!(sitemap(&world, "?city=lisbon").await.contains(&format!("{origin}/shows/{}<", world.show)));
}

#[tokio::test(flavor = "multi_thread")]
async fn show_page_has_a_preview_and_may_be_indexed_until_it_begins() {
    let world = World::start(1, &[]).await;
    let origin = origin(&world);
    let html = show_page(&world).await;
    let page = format!("{origin}/shows/{}", world.show);
    assert!(!html.contains("noindex") && html.contains(&format!("<link rel=\"canonical\" href=\"{page}\">")), "{html}");
    let picture = format!("{origin}/films/tide/poster.png");
    assert!(html.contains(&format!("<meta content=\"{picture}\" property=\"og:image\">")), "{html}");
    let film = expect_page(world.visitor().page("/films/tide").await, StatusCode::OK, &[]);
    assert!(film.contains(&format!("<meta content=\"{picture}\" property=\"og:image\">")), "{film}");
    let loaded = world.visitor().client.get(&picture).send().await.expect("an answer");
    assert_eq!((loaded.status(), loaded.headers()["content-type"].as_bytes()), (StatusCode::OK, &b"image/png"[..]));
    assert!(loaded.bytes().await.expect("a file").starts_with(b"\x89PNG\r\n"));
    assert_eq!(world.visitor().page("/films/unknown/poster.png").await.0, StatusCode::NOT_FOUND);
    assert!(html.contains("property=\"og:title\"") && html.contains("Choose your seats for Tide at Aurora"), "{html}");

    let begun = insert_show(&world.pg, 300_000, -60).await;
    for path in ["/login", "/bookings/find", &format!("/shows/{begun}")] {
        let html = expect_page(world.visitor().page(path).await, StatusCode::OK, &["noindex"]);
        assert!(!html.contains("\"og:") && !html.contains("canonical") && !html.contains("ld+json"), "{path}: {html}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sitemaps_list_cities_theatres_films_and_visible_shows_to_come() {
    let world = World::start(1, &[]).await;
    let origin = origin(&world);
    let begun = insert_show(&world.pg, 300_000, -60).await;
    let planned = insert_show(&world.pg, 300_000, 3_600).await;
    world.run(sqlx::query("UPDATE shows SET sales = 'planned' WHERE id = $1").bind(planned)).await;
    let index = sitemap(&world, "").await;
    assert!(index.contains(&format!("<sitemap><loc>{origin}/sitemap.xml?city=lisbon</loc></sitemap>")), "{index}");

    let listed = sitemap(&world, "?city=lisbon").await;
    for path in ["cities/lisbon", "theatres/aurora", "films/tide", &format!("shows/{}", world.show)] {
        assert!(listed.contains(&format!("<url><loc>{origin}/{path}</loc></url>")), "{path}: {listed}");
    }
    assert!(!listed.contains(&begun.to_string()) && !listed.contains(&planned.to_string()), "{listed}");
    assert_eq!(world.visitor().page("/sitemap.xml?city=nowhere").await.0, StatusCode::NOT_FOUND);
}

#[tokio::test(flavor = "multi_thread")]
async fn robots_txt_names_the_sitemap_and_hides_no_page_that_forbids_indexing_itself() {
    let world = World::start(1, &[]).await;
    let origin = origin(&world);
    let rules = expect_page(world.visitor().page("/robots.txt").await, StatusCode::OK, &["User-agent: *"]);
    assert!(rules.ends_with(&format!("\nSitemap: {origin}/sitemap.xml\n")), "{rules}");
    for path in
        ["/shows/", "/films/", "/theatres/", "/cities/", "/bookings", "/tickets", "/account", "/staff", "/login"]
    {
        assert!(!rules.contains(&format!("Disallow: {path}\n")), "{path}: {rules}");
    }
}
