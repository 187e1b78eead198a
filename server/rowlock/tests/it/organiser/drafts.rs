//! Moves of drafts to another time and screen: checks of planning, versions, and published shows, which stay.

use super::{API, post, post_ok, room, screen_of, set_prices, visitor_of, week, world_with_organiser};
use crate::booking_totals::WAITING;
use crate::prelude::*;
use crate::sql_guards::insert_booking;

/// Plans drafts on Monday, 7 January 2030, on this screen. A show and its cleaning take two hours.
async fn plan_drafts(olga: &mut Browser, screen: &Value, times: &[&str]) -> Vec<Value> {
    let mut plan = week(screen, "2030-01-07", "monday", times);
    plan["terms"] = json!({ "sales": "planned", "hold_seconds": 300, "flash_sale": false, "per_person": 10 });
    post_ok(olga, "/programme", plan).await["shows"].as_array().expect("a list").clone()
}

fn move_path(show: &Value) -> String {
    format!("/programme/{}/move", text(&show["id"]))
}

fn move_to(screen: &Value, at: &str, version: u32) -> Value {
    json!({ "screen": screen, "start": { "at": at, "version": version }, "reason": "A better time." })
}

#[tokio::test(flavor = "multi_thread")]
async fn draft_moves_to_another_time_once_per_key_and_its_prices_follow() {
    let (world, mut olga) = world_with_organiser(1).await;
    let screen = &screen_of(&mut olga, &room("A-B")).await["id"];
    set_prices(&mut olga, &["gold"]).await;
    let drafts = plan_drafts(&mut olga, screen, &["14:00"]).await;
    let path = move_path(&drafts[0]);

    let (address, her, key) = (format!("{API}{path}"), olga.visitor(), new_id().to_string());
    let evening = move_to(screen, "2030-01-08T18:00", 1);
    let first = her.raw(Method::POST, &address, evening.clone(), &key).await;
    assert_eq!(first.0, StatusCode::OK, "{}", first.1);
    assert_eq!(her.raw(Method::POST, &address, evening, &key).await, first);
    let moved: Value = serde_json::from_str(&first.1).expect("JSON");
    assert_eq!((text(&moved["starts_local"]), &moved["version"]), ("2030-01-08T18:00:00", &json!(2)));
    assert_eq!((&moved["prices"]["gold"], &moved["terms"]["sales"]), (&json!(1_250), &json!("planned")));
    assert_eq!(moved.get("kept_prices"), None);
    assert_eq!(world.count("SELECT count(*) FROM audit_list WHERE act = 'draft_moved'").await, 1);
    let (_, listed) = olga.get(&format!("{API}/programme?from=2030-01-08")).await;
    assert_eq!(listed[0]["id"], drafts[0]["id"], "it is listed on its day: {listed}");

    // It is not in its own way, and a price that the tariff did not give it stays.
    world.execute("UPDATE shows SET prices = '{\"gold\": 900}' WHERE sales = 'planned'").await;
    let moved = post_ok(&mut olga, &path, move_to(screen, "2030-01-12T17:30", 2)).await;
    assert_eq!((text(&moved["starts_local"]), &moved["prices"]["gold"]), ("2030-01-12T17:30:00", &json!(900)));
    assert_eq!(moved["kept_prices"], json!({ "gold": 900 }));
    let moved = post_ok(&mut olga, &path, move_to(screen, "2030-01-12T18:00", 3)).await;
    assert_eq!(text(&moved["starts_local"]), "2030-01-12T18:00:00");
}

#[tokio::test(flavor = "multi_thread")]
async fn draft_stays_where_a_move_is_refused_and_published_shows_and_shows_of_others_do_not_move() {
    let (world, mut olga) = world_with_organiser(1).await;
    let screen = &screen_of(&mut olga, &room("A-B")).await["id"];
    set_prices(&mut olga, &["gold"]).await;
    let drafts = plan_drafts(&mut olga, screen, &["14:00", "20:00"]).await;
    let path = move_path(&drafts[0]);
    let before = "SELECT count(*) FROM shows WHERE starts_at = '2030-01-07T14:00Z' AND terms_version = 1";
    for (screen, at, version, status, code) in [
        (screen, "2030-01-07T18:01", 1, StatusCode::CONFLICT, "shows_overlap"),
        (screen, "2030-01-07T21:59", 1, StatusCode::CONFLICT, "shows_overlap"),
        (screen, "2030-01-08T14:00", 2, StatusCode::CONFLICT, "wrong_state"),
        (screen, "2030-03-31T01:30", 1, StatusCode::BAD_REQUEST, "no_such_time"),
        (screen, "2020-01-01T14:00", 1, StatusCode::BAD_REQUEST, "malformed"),
        (screen, "tomorrow", 1, StatusCode::BAD_REQUEST, "malformed"),
        (&json!("nowhere"), "2030-01-08T14:00", 1, StatusCode::NOT_FOUND, "not_found"),
    ] {
        let (answered, problem) = post(&mut olga, &path, move_to(screen, at, version)).await;
        assert_eq!((answered, text(&problem["code"])), (status, code), "{at}: {problem}");
        assert_eq!(world.count(before).await, 1, "{at}");
    }

    let published = json!({ "id": world.show });
    let on_its_screen = move_to(&json!(world.screen), "2030-01-08T14:00", 1);
    let refused = post(&mut olga, &move_path(&published), on_its_screen).await;
    expect_problem(refused, StatusCode::CONFLICT, "wrong_state");
    assert_eq!(world.count("SELECT count(*) FROM shows WHERE starts_at = '2030-01-08T14:00Z'").await, 0);

    another_theatre(&world).await;
    let theirs = "INSERT INTO screens SELECT 'rialto-1', 'rialto', 'Screen 1', layout_id FROM screens LIMIT 1";
    world.execute(theirs).await;
    let mut rita = register_and_log_in(&world, "rita@example.org").await;
    grant(&world, "rita@example.org", "rialto", "organiser").await;
    expect_answer(rita.log_in("rita@example.org", PASSWORD).await, StatusCode::OK);
    for (theatre, screen) in [("rialto", "rialto-1"), ("aurora", text(screen))] {
        let wanted = move_to(&json!(screen), "2030-01-08T14:00", 1);
        let refused = rita.post(&format!("/api/v1/theatres/{theatre}{path}"), wanted).await;
        expect_problem(refused, StatusCode::NOT_FOUND, "not_found");
    }
    assert_eq!(world.count(before).await, 1);
    // Cleaning ends when the next show begins.
    post_ok(&mut olga, &path, move_to(screen, "2030-01-07T18:00", 1)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_two_concurrent_moves_succeeds_of_one_draft_and_of_two_drafts_to_one_time() {
    let (_world, mut olga) = world_with_organiser(1).await;
    let screen = &screen_of(&mut olga, &room("A-B")).await["id"];
    set_prices(&mut olga, &["gold"]).await;
    let drafts = plan_drafts(&mut olga, screen, &["10:00", "13:00", "16:00"]).await;
    let [first, second, third] = [0, 1, 2].map(|number: usize| move_path(&drafts[number]));
    for (one, one_at, two, two_at) in [
        (&first, "2030-01-08T10:00", &first, "2030-01-09T10:00"),
        (&second, "2030-01-10T18:00", &third, "2030-01-10T19:00"),
    ] {
        let (mut ann, mut ben) = (olga.clone(), olga.clone());
        let (left, right) = tokio::join!(
            post(&mut ann, one, move_to(screen, one_at, 1)),
            post(&mut ben, two, move_to(screen, two_at, 1))
        );
        let mut statuses = [left.0, right.0];
        statuses.sort();
        assert_eq!(statuses, [StatusCode::OK, StatusCode::CONFLICT], "{} {}", left.1, right.1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn draft_moves_to_another_screen_and_time_at_once_and_is_sold_there() {
    let (world, mut olga) = world_with_organiser(2).await;
    let from = &screen_of(&mut olga, &room("A-B")).await["id"];
    let to = &screen_of(&mut olga, &room("A-C")).await["id"];
    set_prices(&mut olga, &["gold"]).await;
    let draft = &plan_drafts(&mut olga, from, &["14:00"]).await[0];
    // Each screen has another show at the other's time.
    plan_drafts(&mut olga, from, &["20:00"]).await;
    plan_drafts(&mut olga, to, &["14:00"]).await;
    let moved = post_ok(&mut olga, &move_path(draft), move_to(to, "2030-01-07T20:00", 1)).await;
    assert_eq!((&moved["screen"], text(&moved["starts_local"])), (to, "2030-01-07T20:00:00"));
    assert_eq!((&moved["seats"], &moved["prices"]["gold"]), (&json!(30), &json!(1_250)));

    let address = format!("/programme/{}", text(&draft["id"]));
    wait_until("it can be published", || async {
        let mut olga = olga.clone();
        let (_, show) = olga.get(&format!("{API}{address}")).await;
        let mut terms = show["terms"].clone();
        terms["sales"] = json!("open");
        let change = json!({ "terms": terms, "version": show["version"], "reason": "On sale." });
        post(&mut olga, &format!("{address}/terms"), change).await.0 == StatusCode::OK
    })
    .await;
    let (ann, ben) = (visitor_of(&world, draft), visitor_of(&world, draft).moved_to(&world, 1));
    wait_until("the other server sells it", || async { ben.hold(&[29]).await.0 == StatusCode::CREATED }).await;
    let sold = ann.buy_seats(&[25], "tok_paid").await;
    assert_eq!((text(&sold["seats"][0]["label"]), &sold["total"]["minor"]), ("C6", &json!(1_250)));
    world.wait_until_books_balance().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn draft_moves_again_from_the_version_of_its_last_move_to_a_screen_and_no_webhook_is_sent() {
    let (world, mut olga) = world_with_organiser(1).await;
    let from = &screen_of(&mut olga, &room("A-B")).await["id"];
    let to = &screen_of(&mut olga, &room("A-C")).await["id"];
    set_prices(&mut olga, &["gold"]).await;
    let endpoint = "INSERT INTO webhook_endpoints (id, theatre_id, url, events, secret, state, made_at)
                    VALUES (gen_random_uuid(), 'aurora', 'https://localhost/', '{show.moved}', 'secret', 'on', now())";
    world.execute(endpoint).await;
    let path = move_path(&plan_drafts(&mut olga, from, &["14:00"]).await[0]);
    let mut version = 1;
    for (screen, at) in [(to, "2030-01-08T14:00"), (from, "2030-01-09T14:00")] {
        let moved = post_ok(&mut olga, &path, move_to(screen, at, version)).await;
        version = moved["version"].as_u64().expect("a number") as u32;
        // As if every server had read the move.
        let read = "UPDATE show_moves SET carried_at = carried_at - interval '1 minute' WHERE state = 'carried'";
        world.execute(read).await;
        world.wait_for_count("the move is done", "SELECT count(*) FROM shows WHERE is_moving", 0).await;
    }
    let moved = post_ok(&mut olga, &path, move_to(&json!(""), "2030-01-10T14:00", version)).await;
    assert_eq!((&moved["screen"], text(&moved["starts_local"])), (from, "2030-01-10T14:00:00"));
    assert_eq!(world.count("SELECT count(*) FROM show_moves WHERE state = 'done'").await, 2);
    assert_eq!(world.count("SELECT times_moved::bigint FROM shows WHERE sales = 'planned'").await, 1);
    assert_eq!(world.count("SELECT count(*) FROM webhook_messages").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn draft_with_a_waiting_room_starts_after_its_opening_and_every_server_knows_its_start() {
    let (world, mut olga) = world_with_organiser(2).await;
    let screen = &screen_of(&mut olga, &room("A-B")).await["id"];
    set_prices(&mut olga, &["gold"]).await;
    let draft = &plan_drafts(&mut olga, screen, &["14:00"]).await[0];
    let (path, of_room) = (move_path(draft), format!("{API}/shows/{}/waiting-room", text(&draft["id"])));
    let open = |at: &str| json!({ "on": true, "opens_at": at, "per_second": 10, "reason": "On sale." });
    let mut there = olga.moved_to(&world, 1);
    assert_eq!(there.post(&of_room, open("2030-01-07T13:00:00Z")).await.0, StatusCode::NO_CONTENT);
    // Booking closes five minutes before the start.
    let refused = post(&mut olga, &path, move_to(screen, "2030-01-07T13:05", 1)).await;
    let problem = expect_problem(refused, StatusCode::CONFLICT, "wrong_state");
    assert!(text(&problem["detail"]).contains("waiting room opens on Mon 7 Jan 13:00"), "{problem}");
    post_ok(&mut olga, &path, move_to(screen, "2030-01-07T13:06", 1)).await;
    let refused = there.post(&of_room, open("2030-01-07T13:01:00Z")).await;
    expect_problem(refused, StatusCode::CONFLICT, "sales_closed");
    post_ok(&mut olga, &path, move_to(screen, "2030-01-09T14:00", 2)).await;
    assert_eq!(there.post(&of_room, open("2030-01-09T13:00:00Z")).await.0, StatusCode::NO_CONTENT);
}

#[tokio::test(flavor = "multi_thread")]
async fn draft_that_changes_after_it_was_read_is_not_moved() {
    let (world, mut olga) = world_with_organiser(1).await;
    let screen = &screen_of(&mut olga, &room("A-B")).await["id"];
    set_prices(&mut olga, &["gold"]).await;
    let path = move_path(&plan_drafts(&mut olga, screen, &["14:00"]).await[0]);
    let mut other = world.pg.begin().await.expect("a transaction");
    let lock = sqlx::query("SELECT FROM screens FOR NO KEY UPDATE").execute(&mut *other).await;
    lock.expect("the screens are locked");
    let change = async {
        world.wait_for_count("the move waits for the screen", WAITING, 1).await;
        let prices = "UPDATE shows SET prices = '{\"gold\": 900}', terms_version = 2 WHERE sales = 'planned'";
        sqlx::query(prices).execute(&mut *other).await.expect("the prices change");
        other.commit().await.expect("the change is committed");
    };
    let (refused, ()) = tokio::join!(post(&mut olga, &path, move_to(screen, "2030-01-08T14:00", 2)), change);
    expect_problem(refused, StatusCode::CONFLICT, "wrong_state");
    let moved = post_ok(&mut olga, &path, move_to(screen, "2030-01-08T14:00", 2)).await;
    assert_eq!(moved["prices"]["gold"], 900);
}

#[tokio::test(flavor = "multi_thread")]
async fn draft_changes_its_screen_only_when_its_earlier_sales_are_settled() {
    let (world, mut olga) = world_with_organiser(1).await;
    let from = &screen_of(&mut olga, &room("A-B")).await["id"];
    let to = &screen_of(&mut olga, &room("A-C")).await["id"];
    set_prices(&mut olga, &["gold"]).await;
    let draft = &plan_drafts(&mut olga, from, &["14:00"]).await[0];
    let booking = insert_booking(&world.pg, text(&draft["id"]).parse().expect("an id"), "CANCELLED").await;
    let effect = "INSERT INTO outbox (booking_id, effect, run_after, created_at)
                  VALUES ($1, 'release_part', now() + interval '1 hour', now())";
    world.run(sqlx::query(effect).bind(booking)).await;
    let spaced = move_to(to, "2030-01-08T 18:\n00", 1);
    let refused = post(&mut olga, &move_path(draft), spaced.clone()).await;
    expect_problem(refused, StatusCode::CONFLICT, "wrong_state");
    assert_eq!(world.count("SELECT count(*) FROM show_moves").await, 0, "nothing was written");

    world.execute("DELETE FROM outbox").await;
    post_ok(&mut olga, &move_path(draft), spaced).await;
    let subject = sqlx::query_scalar("SELECT subject FROM audit_list WHERE act = 'draft_moved'");
    let subject: String = world.value(subject).await;
    let expected = format!("show {} to 2030-01-08T18:00 on screen {}", text(&draft["id"]), text(to));
    assert_eq!(subject, expected);
}
