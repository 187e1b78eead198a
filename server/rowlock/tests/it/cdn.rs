//! A CDN in front of the server: cache headers of answers, purges that database triggers record, and their delivery: one
//! request, a second one when no stale read is left, and failover to another server.

use http::caching::{CacheClass, FOREVER, PRIVATE, REVALIDATED, SHARED, cache_class};
use rowlock::web::authorisation::TABLE;
use rowlock::web::pages::addresses;
use sqlx::{AssertSqlSafe, PgPool};

use crate::organiser::{API, organiser, post_ok};
use crate::prelude::*;
use crate::settings::{check, state};
use crate::systems::receiver::{Receiver, ReceiverReply};

const TOKEN: &str = "a-token-of-this-test-32-bytes-or-more";

fn cdn_settings(url: &str) -> [(&str, &str); 2] {
    [("CDN_PURGE_URL", url), ("CDN_PURGE_TOKEN", TOKEN)]
}

fn tags(receiver: &Receiver) -> Vec<Vec<String>> {
    receiver
        .deliveries()
        .iter()
        .map(|call| serde_json::from_value(call.json()["tags"].clone()).expect("a list of texts"))
        .collect()
}

/// A route with its parameters filled in from the world.
fn address(route: &str, world: &World) -> String {
    let (show, unknown) = (world.show.to_string(), Uuid::nil().to_string());
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

async fn fetch(world: &World, path: &str) -> RawAnswer {
    RawAnswer::of(world.visitor().client.get(format!("{}{path}", world.servers[0].url))).await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_sends_the_cache_headers_of_its_class() {
    let world = World::start(1, &[]).await;
    let api = TABLE.iter().filter(|(method, ..)| *method == "GET").map(|(_, route, ..)| *route);
    let (mut kept, mut private) = (0, 0);
    for route in api.chain(addresses()).chain(["/api/openapi.json", "/healthz", "/readyz", "/metrics", "/nowhere"]) {
        let answer = fetch(&world, &address(route, &world)).await;
        let (status, control) = (answer.status, answer.all_headers("cache-control"));
        let has = |name: &str| answer.headers.contains_key(name);
        match cache_class(route).unwrap_or(CacheClass::Never) {
            CacheClass::Shared => {
                assert_eq!((status, control.as_str()), (StatusCode::OK, SHARED), "{route}");
                let cached = answer.all_headers("cache-tag").replace(',', " ");
                assert_eq!(cached, answer.all_headers("surrogate-key"), "{route}");
                assert_eq!(has("cache-tag"), route != "/docs/problems", "{route}");
                assert!(!has("set-cookie"), "{route}");
                let vary = answer.all_headers("vary").to_ascii_lowercase();
                let is_page = answer.all_headers("content-type").starts_with("text/html");
                assert_eq!(vary.contains("cookie") && vary.contains("accept-language"), is_page, "{route}: {vary}");
                kept += 1;
            }
            CacheClass::Revalidated => assert_eq!((status, control.as_str()), (StatusCode::OK, REVALIDATED), "{route}"),
            CacheClass::Immutable => panic!("{route} is covered by `static_files`"),
            CacheClass::Never => {
                assert_eq!(control, PRIVATE, "{route}");
                assert!(!has("cache-tag") && !has("surrogate-key"), "{route}");
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
        ("/sitemap.xml", "lists"),
        ("/sitemap.xml?city=lisbon", "lists"),
        ("/cities/lisbon", "city-lisbon,theatre-aurora"),
        ("/films/tide", "film-tide,theatre-aurora"),
        ("/api/v1/cities", "lists"),
        ("/api/v1/cities/lisbon/theatres", "city-lisbon,theatre-aurora"),
        ("/api/v1/shows?movie=tide", "lists"),
        (&format!("/api/v1/shows/{}", world.show), &show),
    ] {
        let answer = fetch(&world, path).await;
        let named = answer.all_headers("cache-tag");
        // A city also lists today's films, and whether the show is today depends on the hour.
        let named = if path == "/cities/lisbon" { named.replace("film-tide,", "") } else { named };
        assert_eq!((answer.status, named.as_str()), (StatusCode::OK, tags), "{path}");
    }
    // The listing of a day with shows names its films.
    let (_, listed) = world.visitor().get("/api/v1/shows").await;
    let day = text(&listed["shows"][0]["local_date"]).to_owned();
    for path in [format!("/theatres/aurora?date={day}"), format!("/api/v1/theatres/aurora/shows?date={day}")] {
        let tags = fetch(&world, &path).await.all_headers("cache-tag");
        assert_eq!(tags, "film-tide,theatre-aurora", "{path}");
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
        (&format!("{dots}?room={}", Uuid::nil()), PRIVATE),
    ] {
        let answer = fetch(&world, path).await;
        assert_eq!(answer.all_headers("cache-control"), control, "{path}");
        assert!(!answer.headers.contains_key("cache-tag"), "{path}");
    }
    // Clients may revalidate the map; shared caches may not.
    let first = fetch(&world, &seats).await;
    assert!(first.headers.contains_key("server-time"));
    let url = format!("{}{seats}", world.servers[0].url);
    let again = RawAnswer::of(world.visitor().client.get(url).header("if-none-match", first.header("etag"))).await;
    assert_eq!((again.status, again.all_headers("cache-control").as_str()), (StatusCode::NOT_MODIFIED, PRIVATE));
}

/// A page may be stale for this long after the first purge: replication lag, shared caches, and latency.
const STALE_READS_END_AFTER: Duration = Duration::from_secs(12);

fn show_tags(world: &World) -> Vec<String> {
    let show = format!("show-{}", world.show);
    ["city-lisbon", "film-tide", "lists", &show, "theatre-aurora"].map(ToOwned::to_owned).to_vec()
}

async fn pause_sales(world: &World) {
    let mut olga = organiser(world).await;
    let (_, show) = olga.get(&format!("{API}/programme/{}", world.show)).await;
    let mut terms: Value = show["terms"].clone();
    terms["sales"] = json!("paused");
    let request_body = json!({ "terms": terms, "version": show["version"], "reason": "As agreed." });
    post_ok(&mut olga, &format!("/programme/{}/terms", world.show), request_body).await;
}

async fn set_hold_ms(world: &World, hold_ms: i64) {
    world.run(sqlx::query("UPDATE shows SET hold_ms = $1").bind(hold_ms)).await;
}

async fn wait_until_purged(world: &World) {
    world.wait_for_count("no purge is pending", "SELECT count(*) FROM cdn_purges", 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn change_is_purged_once_with_the_token_and_again_after_stale_reads_end() {
    let receiver = Receiver::start().await;
    let world = World::start(2, &cdn_settings(&receiver.url())).await;
    pause_sales(&world).await;
    let first = receiver.wait_for_deliveries(1).await.remove(0);
    let heard = Instant::now();
    assert_eq!((first.path.as_str(), first.header("content-type")), ("/hooks", "application/json"));
    assert_eq!(first.header("authorization"), format!("Bearer {TOKEN}"));
    assert_eq!(first.json(), json!({ "tags": show_tags(&world) }));
    assert_eq!(first.header("surrogate-key"), show_tags(&world).join(" "), "for CDNs that read only headers");
    receiver.wait_for_deliveries(2).await;
    let pause = heard.elapsed();
    assert!(pause > STALE_READS_END_AFTER - Duration::from_secs(1), "purged again after {pause:?}");
    wait_until_purged(&world).await;
    assert_eq!(tags(&receiver), [show_tags(&world), show_tags(&world)], "only one of two servers purges");
}

#[tokio::test(flavor = "multi_thread")]
async fn repeated_changes_share_a_purge_and_another_server_purges_for_a_dead_one() {
    let receiver = Receiver::start().await;
    let mut world = World::start(1, &cdn_settings(&receiver.url())).await;
    world.kill(0).await;
    // Committed, but no purge was sent.
    set_hold_ms(&world, 60_000).await;
    set_hold_ms(&world, 61_000).await;
    assert_eq!(world.count("SELECT count(*) FROM cdn_purges").await, 10);
    world.add_server(&[]).await;
    receiver.wait_for_deliveries(1).await;
    world.wait_for_count("both wait for the second purge", "SELECT count(*) FROM cdn_purges WHERE round = 2", 10).await;
    wait_until_purged(&world).await;
    assert_eq!(tags(&receiver), [show_tags(&world), show_tags(&world)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn server_that_dies_during_a_purge_is_replaced_by_another() {
    let receiver = Receiver::start().await;
    let mut world = World::start(1, &cdn_settings(&receiver.url())).await;
    receiver.reply_with(&[ReceiverReply::Silence]);
    pause_sales(&world).await;
    receiver.wait_for_deliveries(1).await;
    world.kill(0).await;
    assert_eq!(world.count("SELECT count(*) FROM cdn_purges WHERE round = 1").await, 5, "no purge is marked done");
    world.add_server(&[]).await;
    receiver.wait_for_deliveries(2).await;
    assert_eq!(tags(&receiver), [show_tags(&world), show_tags(&world)]);
    world.wait_for_count("the attempt is recorded", "SELECT count(*) FROM cdn_purges WHERE round = 2", 5).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unavailable_cdn_is_retried_and_redirects_are_not_followed() {
    let receiver = Receiver::start().await;
    let world = World::start(1, &cdn_settings(&receiver.url())).await;
    receiver.reply_with(&[ReceiverReply::Status(503), ReceiverReply::Redirect, ReceiverReply::Status(429)]);
    pause_sales(&world).await;
    let calls = receiver.wait_for_deliveries(4).await;
    assert!(calls.iter().all(|call| call.path == "/hooks"), "the token is sent to no other URL");
    world.wait_for_count("the first purge is done", "SELECT count(*) FROM cdn_purges WHERE round = 2", 5).await;
    assert_eq!(tags(&receiver), vec![show_tags(&world); 4]);
}

#[tokio::test(flavor = "multi_thread")]
async fn rejected_purge_is_parked_and_reported() {
    let receiver = Receiver::start().await;
    let world = World::start(1, &cdn_settings(&receiver.url())).await;
    let flags = ["--public-url", world.servers[0].url.as_str()];
    let (good, report) = check(&world, &flags).await;
    assert!(good && state(&report, "cdn purge") == "ok", "{report:#}");
    receiver.always_reply(401);
    set_hold_ms(&world, 60_000).await;
    wait_until("the last attempt fails", || async {
        // As after half an hour of retries.
        let last = "UPDATE cdn_purges SET tries = 29, run_after = now() WHERE parked_why IS NULL AND tries < 29";
        world.execute(last).await;
        world.count("SELECT count(*) FROM cdn_purges WHERE parked_why LIKE '%401%'").await == 5
    })
    .await;
    let (good, report) = check(&world, &flags).await;
    assert!(good && state(&report, "cdn purge") == "warning", "sales are not affected: {report:#}");
    let (good, said) = world.command(&["parked"]).await;
    assert!(good && said.contains("purge of lists") && said.contains("5 wait for a person"), "{said}");

    receiver.always_reply(204);
    let (good, said) = world.command(&["parked", "retry-purges"]).await;
    assert!(good && said.contains("5 purges"), "{said}");
    world.wait_for_count("the purges are sent", "SELECT count(*) FROM cdn_purges WHERE round = 2", 5).await;
    let (_, report) = check(&world, &flags).await;
    assert_eq!(state(&report, "cdn purge"), "ok", "{report:#}");
}

const PLACE_TAGS: [&str; 2] = ["city-lisbon", "theatre-aurora"];

/// Tags recorded since the last call, sorted.
async fn take_purges(pg: &PgPool) -> Vec<String> {
    let gone = sqlx::query_scalar("DELETE FROM cdn_purges RETURNING tag").fetch_all(pg).await;
    let mut tags: Vec<String> = gone.expect("purges are read");
    tags.sort_unstable();
    tags
}

async fn execute(pg: &PgPool, statement: &str) {
    sqlx::raw_sql(AssertSqlSafe(statement.to_owned()))
        .execute(pg)
        .await
        .unwrap_or_else(|cause| panic!("{statement}: {cause}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn visible_changes_record_their_tags_and_invisible_ones_record_none() {
    let world = World::start(0, &[]).await;
    catalogue::cdn::announce(&world.pg).await.expect("the CDN is announced");
    let show = format!("show-{}", world.show);
    let changed: Vec<&str> = [&PLACE_TAGS[..], &["film-tide", "lists", &show]].concat();
    for (statement, tags) in [
        ("UPDATE shows SET prices = '{\"gold\": 900}'", &changed[..]),
        ("UPDATE shows SET sales = 'paused', terms_version = terms_version + 1", &changed),
        ("UPDATE shows SET called_off = true", &changed),
        ("UPDATE shows SET called_off = true", &[]),
        ("UPDATE shows SET blocked = '{1, 2}'", &[]),
        ("UPDATE shows SET called_off = false, sales = 'open'; UPDATE shows SET hold_ms = 60000", &changed),
        ("BEGIN; UPDATE shows SET hold_ms = 61000; UPDATE shows SET hold_ms = 62000; COMMIT", &changed),
        ("BEGIN; UPDATE shows SET hold_ms = 63000; ROLLBACK", &[]),
        ("UPDATE theatres SET name = 'Aurora Nova'", &[PLACE_TAGS[0], "lists", PLACE_TAGS[1]]),
        ("UPDATE theatres SET version = version + 1", &[]),
        (
            "INSERT INTO theatres VALUES ('foz', 'lisbon', 'Foz', 'Rua 2', 'EUR')",
            &[PLACE_TAGS[0], "lists", "theatre-foz"],
        ),
        ("UPDATE cities SET name = 'Lisboa'", &[PLACE_TAGS[0], "lists", PLACE_TAGS[1], "theatre-foz"]),
        ("INSERT INTO cities VALUES ('porto', 'Porto', 'PT', 'Europe/Lisbon')", &["city-porto", "lists"]),
        ("UPDATE films SET title = 'Ebb'", &["film-tide", "lists"]),
        ("UPDATE films SET title = 'Ebb'", &[]),
        ("UPDATE screens SET name = 'Screen 2'", &changed),
        ("UPDATE shows SET sales = 'planned'", &changed),
        ("UPDATE shows SET prices = '{\"gold\": 800}'", &[]),
    ] {
        execute(&world.pg, statement).await;
        let mut tags = tags.to_vec();
        tags.sort_unstable();
        assert_eq!(take_purges(&world.pg).await, tags, "once per transaction: {statement}");
    }
    insert_show(&world.pg, 300_000, 48 * 3_600).await;
    // Its screen and the show itself; its own page did not exist before.
    let mut once = take_purges(&world.pg).await;
    once.dedup();
    assert_eq!(once, ["city-lisbon", "film-tide", "lists", "theatre-aurora"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_cdn_no_purge_is_recorded() {
    let world = World::start(1, &[]).await;
    execute(&world.pg, "UPDATE shows SET sales = 'paused'; UPDATE theatres SET name = 'Aurora Nova'").await;
    assert_eq!(world.count("SELECT count(*) FROM cdn_purges").await, 0);
    // A CDN that was announced long ago and has expired.
    execute(&world.pg, "INSERT INTO cdn VALUES (true, now() - interval '1 second')").await;
    execute(&world.pg, "UPDATE shows SET sales = 'open'").await;
    assert_eq!(world.count("SELECT count(*) FROM cdn_purges").await, 0);
}
