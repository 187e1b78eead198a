//! Rehearsals of an on-sale: real requests of simulated visitors, of which nothing is left but figures.

use seats::seat_locks::Keys;

use super::organiser;
use super::pages::{PAGES, send};
use crate::prelude::*;

/// The limits of a real site, which a world without them switches off.
const LIMITS: [(&str, &str); 4] = [
    ("HOLDS_PER_VISITOR_MIN", "60"),
    ("HOLDS_PER_ADDRESS_MIN", "1200"),
    ("QUEUE_TICKETS_PER_ADDRESS", "120"),
    ("PUZZLE_HOLDS_PER_S", "1"),
];

/// Seats for sale, of three hundred.
const SEATS: [i32; 12] = [40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51];

async fn world_with_organiser() -> (World, Browser) {
    let world = World::start(1, &LIMITS).await;
    world.sell_only(&SEATS).await;
    let olga = organiser(&world).await;
    (world, olga)
}

fn page_of(show: Uuid) -> String {
    format!("{PAGES}/shows/{show}/rehearsal")
}

async fn start(olga: &Browser, show: Uuid, people: &str, minutes: &str) -> (StatusCode, String) {
    start_at(olga, &page_of(show), people, minutes).await
}

async fn start_at(organiser: &Browser, page: &str, people: &str, minutes: &str) -> (StatusCode, String) {
    let key = new_id().to_string();
    let fields = [("key", key.as_str()), ("people", people), ("minutes", minutes), ("reason", "Before Friday.")];
    send(organiser, page, &fields).await
}

/// Starts a rehearsal whose visitors arrive within ten minutes, and returns its id once it runs.
async fn start_long(world: &World, olga: &Browser) -> Uuid {
    expect_answer(start(olga, world.show, "2", "10").await, StatusCode::SEE_OTHER);
    world.wait_for_count("it runs", "SELECT count(*) FROM rehearsals WHERE seen_at IS NOT NULL", 1).await;
    world.value(sqlx::query_scalar("SELECT id FROM rehearsals")).await
}

async fn wait_for_end(world: &World, olga: &Browser, end: &str) -> String {
    let query = "SELECT coalesce(end_reason, '') FROM rehearsals";
    wait_until(&format!("the rehearsal is {end}"), || async {
        world.value::<String>(sqlx::query_scalar(query)).await == end
    })
    .await;
    let state = format!("data-state=\"{end}\"");
    expect_page(olga.page(&page_of(world.show)).await, StatusCode::OK, &[&state])
}

/// Waits until the lock store has no key of a rehearsal.
async fn wait_until_forgotten(world: &World, rehearsal: Uuid) {
    let keys = Keys::of(world.setting("REDIS_PREFIX"), rehearsal).0;
    let redis = world.redis().await;
    wait_until("the lock store has forgotten it", || async {
        let left = redis::cmd("EXISTS").arg(&keys).query_async::<i64>(&mut redis.clone()).await;
        left.expect("Redis answers") == 0
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rehearsal_sells_out_without_a_booking_payment_mail_or_webhook() {
    let (world, olga) = world_with_organiser().await;
    let path = format!("{PAGES}/shows/{}", world.show);
    expect_page(olga.page(&path).await, StatusCode::OK, &[&page_of(world.show)]);
    expect_answer(start(&olga, world.show, "40", "0").await, StatusCode::SEE_OTHER);
    let html = wait_for_end(&world, &olga, "sold_out").await;
    assert!(html.contains(">12 of 12<") && html.contains("data-testid=\"rehearsal-sold-out\""), "{html}");
    let served: i64 = world.count("SELECT (figures->>'served')::bigint FROM rehearsals").await;
    let refused = "SELECT (figures->>'no_seats')::bigint + (figures->>'lost_race')::bigint FROM rehearsals";
    assert_eq!(served + world.count(refused).await, 40, "no limit and no error refused a visitor");
    for table in ["bookings", "payments", "seat_claims", "outbox", "webhook_messages", "hold_counts", "unusual_flags"] {
        let count = sqlx::AssertSqlSafe(format!("SELECT count(*) FROM {table}"));
        assert_eq!(world.value::<i64>(sqlx::query_scalar(count)).await, 0, "{table}");
    }
    assert!(world.mails().iter().all(|mail| mail.contains("olga@example.org")), "only staff has mail");
    assert!(!world.visitor().seat_states().await.contains(['1', '2']), "the show itself has every seat");
    let rehearsal: Uuid = world.value(sqlx::query_scalar("SELECT id FROM rehearsals")).await;
    wait_until_forgotten(&world, rehearsal).await;
    expect_answer(send(&olga, &format!("{}/delete", page_of(world.show)), &[]).await, StatusCode::SEE_OTHER);
    assert_eq!(world.count("SELECT count(*) FROM rehearsals").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn rehearsal_is_found_by_no_public_address_and_stops_on_request() {
    let (world, olga) = world_with_organiser().await;
    let rehearsal = start_long(&world, &olga).await;
    let parts = ["data-testid=\"rehearsal-map\"", "data-testid=\"rehearsal-refresh\"", "live-figures.js"];
    expect_page(olga.page(&page_of(world.show)).await, StatusCode::OK, &parts);
    let ann = world.visitor();
    for path in ["", "/seats", "/plan", "/hold", "/waiting-list"] {
        let (status, answer) = ann.get(&format!("/api/v1/shows/{rehearsal}{path}")).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{path}: {answer}");
    }
    expect_page(ann.page(&format!("/shows/{rehearsal}")).await, StatusCode::NOT_FOUND, &[]);
    expect_page(olga.page(&format!("{PAGES}/shows/{rehearsal}")).await, StatusCode::NOT_FOUND, &[]);
    let hold = ann.call(Method::POST, &format!("/api/v1/shows/{rehearsal}/holds"), json!({ "seats": [40] })).await;
    let hold = expect_answer(hold, StatusCode::CREATED);
    let booking =
        json!({ "show": rehearsal, "hold": hold["id"], "buyer": { "name": "Ann", "email": "ann@example.org" } });
    expect_answer(ann.call(Method::POST, "/api/v1/bookings", booking).await, StatusCode::NOT_FOUND);
    let listed = expect_answer(ann.get("/api/v1/shows?city=lisbon").await, StatusCode::OK);
    let listed: Vec<&Value> = listed["shows"].as_array().expect("a list").iter().map(|show| &show["id"]).collect();
    assert_eq!(listed, [&json!(world.show)]);
    expect_answer(send(&olga, &format!("{}/stop", page_of(world.show)), &[]).await, StatusCode::SEE_OTHER);
    wait_for_end(&world, &olga, "stopped").await;
    wait_until_forgotten(&world, rehearsal).await;
    let path = format!("/api/v1/shows/{rehearsal}/best?count=1");
    assert_eq!(ann.get(&path).await.0, StatusCode::NOT_FOUND, "it has ended");
}

#[tokio::test(flavor = "multi_thread")]
async fn stop_and_deletion_of_a_rehearsal_are_each_audited_once() {
    let (world, olga) = world_with_organiser().await;
    start_long(&world, &olga).await;
    let submit = async |act: &str| {
        let path = format!("{}/{act}", page_of(world.show));
        expect_answer(send(&olga, &path, &[]).await, StatusCode::SEE_OTHER);
    };
    // A running rehearsal is not deleted.
    submit("delete").await;
    submit("stop").await;
    submit("stop").await;
    wait_for_end(&world, &olga, "stopped").await;
    for act in ["stop", "delete", "delete"] {
        submit(act).await;
    }
    let sql = "SELECT act FROM audit_list WHERE theatre_id = 'aurora' AND subject = $1
               AND actor = (SELECT id FROM accounts WHERE email = 'olga@example.org') ORDER BY number";
    let acts: Vec<String> = world.values(sqlx::query_scalar(sql).bind(format!("show {}", world.show))).await;
    assert_eq!(acts, ["show_rehearsed", "rehearsal_stopped", "rehearsal_deleted"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn second_rehearsal_of_a_theatre_is_refused_while_one_runs() {
    let (world, olga) = world_with_organiser().await;
    let other = insert_show(&world.pg, 300_000, 24 * 3_600).await;
    start_long(&world, &olga).await;
    for show in [world.show, other] {
        expect_page(start(&olga, show, "5", "0").await, StatusCode::CONFLICT, &["organiser-trouble"]);
    }
    expect_answer(start(&olga, other, "0", "0").await, StatusCode::BAD_REQUEST);
    assert_eq!(world.count("SELECT count(*) FROM rehearsals").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_two_rehearsals_that_two_theatres_start_at_once_is_refused() {
    let (world, olga) = world_with_organiser().await;
    another_theatre(&world).await;
    let other = insert_show(&world.pg, 300_000, 24 * 3_600).await;
    let screen = "UPDATE screens SET theatre_id = 'rialto' WHERE id = (SELECT screen_id FROM shows WHERE id = $1)";
    assert_eq!(world.run(sqlx::query(screen).bind(other)).await, 1);
    let mut rita = register_and_log_in(&world, "rita@example.org").await;
    grant(&world, "rita@example.org", "rialto", "organiser").await;
    expect_answer(rita.log_in("rita@example.org", PASSWORD).await, StatusCode::OK);
    let page = format!("/staff/rialto/shows/{other}/rehearsal");
    let (one, two) = tokio::join!(start(&olga, world.show, "2", "10"), start_at(&rita, &page, "2", "10"));
    let mut answers = [one, two];
    answers.sort_by_key(|(status, _)| status.as_u16());
    let [(begun, _), (refused, html)] = &answers;
    assert_eq!((*begun, *refused), (StatusCode::SEE_OTHER, StatusCode::CONFLICT), "{html}");
    assert!(html.contains("Only one runs at a time"), "{html}");
    assert_eq!(world.count("SELECT count(*) FROM rehearsals").await, 1);
}

/// Gives a show a waiting room that opens after that time.
async fn switch_room_on(world: &World, show: Uuid, opens_in_ms: i64) {
    let opens_at = platform::clock::rfc3339(platform::clock::now().plus_ms(opens_in_ms));
    let show = show.to_string();
    let words = ["waiting-room", "on", &show, "--opens-at", &opens_at, "--per-second", "50", "--reason", "On sale."];
    let (is_done, said) = world.command(&words).await;
    assert!(is_done, "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn rehearsal_ends_before_an_on_sale_and_none_starts_until_an_hour_after_it() {
    let (world, olga) = world_with_organiser().await;
    let other = insert_show(&world.pg, 300_000, 24 * 3_600).await;
    start_long(&world, &olga).await;
    switch_room_on(&world, other, 4 * 60_000).await;
    wait_for_end(&world, &olga, "gave_way").await;
    expect_page(start(&olga, world.show, "2", "10").await, StatusCode::CONFLICT, &["goes on sale soon"]);
    world.execute("UPDATE waiting_rooms SET opens_at = opens_at - interval '65 minutes'").await;
    expect_answer(start(&olga, world.show, "2", "10").await, StatusCode::SEE_OTHER);
}

/// Waits for one more report of the running rehearsal.
async fn wait_for_report(world: &World) {
    let seen_ms = "SELECT (extract(epoch FROM seen_at) * 1000)::bigint FROM rehearsals";
    let before = world.count(seen_ms).await;
    wait_until("the rehearsal reports", || async { world.count(seen_ms).await > before }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rooms_of_a_draft_and_of_a_called_off_show_neither_refuse_nor_end_a_rehearsal() {
    let (world, olga) = world_with_organiser().await;
    let draft = insert_show(&world.pg, 300_000, 24 * 3_600).await;
    let cancelled = insert_show(&world.pg, 300_000, 24 * 3_600).await;
    for show in [draft, cancelled] {
        switch_room_on(&world, show, 4 * 60_000).await;
    }
    world.run(sqlx::query("UPDATE shows SET sales = 'planned' WHERE id = $1").bind(draft)).await;
    world.run(sqlx::query("UPDATE shows SET called_off = true WHERE id = $1").bind(cancelled)).await;
    start_long(&world, &olga).await;
    // The second report begins after the first one has looked for an opening.
    wait_for_report(&world).await;
    wait_for_report(&world).await;
    assert_eq!(world.count("SELECT count(*) FROM rehearsals WHERE ended_at IS NULL").await, 1);
    world.run(sqlx::query("UPDATE shows SET sales = 'open' WHERE id = $1").bind(draft)).await;
    wait_for_end(&world, &olga, "gave_way").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rehearsal_has_a_waiting_room_like_that_of_its_show() {
    let (world, olga) = world_with_organiser().await;
    switch_room_on(&world, world.show, 3 * 3_600_000).await;
    expect_answer(start(&olga, world.show, "30", "0").await, StatusCode::SEE_OTHER);
    let html = wait_for_end(&world, &olga, "sold_out").await;
    assert!(html.contains("data-testid=\"rehearsal-in-turn\""), "{html}");
    assert_eq!(world.count("SELECT (figures->>'turned_away')::bigint FROM rehearsals").await, 0);
    let own: Vec<Uuid> = world.values(sqlx::query_scalar("SELECT show_id FROM waiting_rooms")).await;
    assert_eq!(own, [world.show], "the room of the rehearsal is deleted");
    assert_eq!(world.count("SELECT joined FROM waiting_rooms").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn rehearsal_of_a_crashed_server_is_ended_by_another_one() {
    let (mut world, olga) = world_with_organiser().await;
    let rehearsal = start_long(&world, &olga).await;
    world.kill(0).await;
    // In place of waiting until its lease has run out.
    world.execute("UPDATE rehearsals SET seen_at = seen_at - interval '1 hour'").await;
    let server = world.add_server(&[]).await;
    wait_for_end(&world, &olga.moved_to(&world, server), "interrupted").await;
    wait_until_forgotten(&world, rehearsal).await;
}
