//! Weeks of shows from a pattern: all or none, no overlap on a screen, no skipped local time, with prices. Sales settings:
//! opening, pausing, limits, other prices; and cancelled shows.

use super::{API, post, post_ok, screen_of, set_prices, visitor_of, week, world_with_organiser};
use crate::box_office::{desk_path, hold_seats, sale, sales_path, sell_seats, seller_with_open_till};
use crate::prelude::*;

async fn seen(olga: &mut crate::accounts::Browser, world: &World) -> Value {
    expect_answer(olga.get(&format!("{API}/programme/{}", world.show)).await, StatusCode::OK)
}

fn changed(show: &Value, key: &str, value: Value) -> Value {
    let mut terms = show["terms"].clone();
    terms[key] = value;
    json!({ "terms": terms, "version": show["version"], "reason": "As agreed." })
}

#[tokio::test(flavor = "multi_thread")]
async fn sales_pause_and_open_at_every_server_and_existing_holds_can_be_paid() {
    let (world, mut olga) = world_with_organiser(2).await;
    let (ann, ben) = (world.visitor(), world.visitor_at(1));
    let (_, hold) = ann.hold(&[1]).await;
    ben.hold(&[2]).await;
    let terms = format!("/programme/{}/terms", world.show);
    let show = seen(&mut olga, &world).await;
    post_ok(&mut olga, &terms, changed(&show, "sales", json!("paused"))).await;
    assert_eq!(world.visitor().hold(&[3]).await.1["code"], "sales_closed", "at this server at once");
    wait_until("the other server sees the pause", || async {
        world.visitor_at(1).hold(&[3]).await.1["code"] == "sales_closed"
    })
    .await;
    let booking = expect_answer(ann.book(&hold).await, StatusCode::CREATED);
    assert_eq!(ann.pay(&booking, Some("tok_paid")).await.0, StatusCode::OK);
    let answer = post(&mut olga, &terms, changed(&show, "sales", json!("open"))).await;
    expect_problem(answer, StatusCode::CONFLICT, "wrong_state");
    let show = seen(&mut olga, &world).await;
    assert_eq!(post(&mut olga, &terms, changed(&show, "sales", json!("planned"))).await.0, StatusCode::CONFLICT);
    let mut later = changed(&show, "sales_from", json!("2099-01-01T10:00"));
    later["terms"]["sales"] = json!("open");
    post_ok(&mut olga, &terms, later).await;
    let (_, refusal) = world.visitor().hold(&[3]).await;
    assert!(text(&refusal["detail"]).contains("10:00"), "the detail names the time: {refusal}");
    let show = seen(&mut olga, &world).await;
    post_ok(&mut olga, &terms, changed(&show, "sales_from", Value::Null)).await;
    wait_until("the other server sells", || async { world.visitor_at(1).hold(&[7]).await.0 == StatusCode::CREATED })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn counter_takes_new_holds_of_shows_on_sale_only_and_sells_existing_ones_during_a_pause() {
    let (world, mut olga) = world_with_organiser(1).await;
    let mut ann = seller_with_open_till(&world, "ann@example.org").await;
    let holds = desk_path(&format!("shows/{}/caller-holds", world.show));
    let caller = |seat: u32| json!({ "seats": [seat], "name": "Mrs Ortega", "minutes": 60 });
    let own = hold_seats(&mut ann, &world, &[1]).await;
    let called = expect_answer(ann.post(&holds, caller(2)).await, StatusCode::CREATED);
    let called = json!({ "id": called["hold"], "total": called["total"] });

    let terms = format!("/programme/{}/terms", world.show);
    let show = seen(&mut olga, &world).await;
    post_ok(&mut olga, &terms, changed(&show, "sales", json!("paused"))).await;
    expect_problem(ann.post(&holds, caller(3)).await, StatusCode::CONFLICT, "sales_closed");
    for hold in [&own, &called] {
        expect_answer(ann.post(&sales_path(&world), sale(hold, "cash")).await, StatusCode::CREATED);
    }
    let show = seen(&mut olga, &world).await;
    let mut later = changed(&show, "sales_from", json!("2099-01-01T10:00"));
    later["terms"]["sales"] = json!("open");
    post_ok(&mut olga, &terms, later).await;
    expect_problem(ann.post(&holds, caller(3)).await, StatusCode::CONFLICT, "sales_closed");

    let draft = insert_show(&world.pg, 300_000, 30 * 3_600).await;
    world.run(sqlx::query("UPDATE shows SET sales = 'planned' WHERE id = $1").bind(draft)).await;
    let at_draft = |rest: &str| desk_path(&format!("shows/{draft}/{rest}"));
    expect_problem(ann.post(&at_draft("caller-holds"), caller(3)).await, StatusCode::CONFLICT, "sales_closed");
    expect_problem(ann.post(&at_draft("sales"), sale(&own, "cash")).await, StatusCode::CONFLICT, "sales_closed");
    let day: String =
        world.value(sqlx::query_scalar("SELECT local_date::text FROM shows WHERE id = $1").bind(world.show)).await;
    let shows = expect_answer(ann.get(&desk_path(&format!("shows?date={day}"))).await, StatusCode::OK);
    let listed: Vec<_> =
        shows.as_array().expect("a list").iter().map(|show| (&show["id"], &show["is_on_sale"])).collect();
    assert_eq!(listed, [(&json!(world.show), &json!(false))], "the draft of the same day is not listed");
}

#[tokio::test(flavor = "multi_thread")]
async fn show_has_its_own_person_limit_and_hold_length() {
    let (world, mut olga) = world_with_organiser(1).await;
    let terms = format!("/programme/{}/terms", world.show);
    let show = seen(&mut olga, &world).await;
    let mut request = changed(&show, "per_person", json!(2));
    request["terms"]["hold_seconds"] = json!(60);
    post_ok(&mut olga, &terms, request).await;
    let ann = world.visitor();
    assert_eq!(ann.hold(&[1, 2, 3]).await.1["code"], "person_limit");
    let hold = expect_answer(ann.hold(&[1, 2]).await, StatusCode::CREATED);
    let now = platform::clock::now().0;
    let left = hold["expires_at_ms"].as_i64().expect("an instant") - now;
    assert!((40_000..=61_000).contains(&left), "a minute: {left} ms");
    let (_, booking) = ann.book(&hold).await;
    assert_eq!(ann.pay(&booking, Some("tok_paid")).await.0, StatusCode::OK);
    wait_until("sold seats count", || async { ann.hold(&[5]).await.1["code"] == "person_limit" }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn prices_change_only_while_no_seat_can_be_held() {
    let (world, mut olga) = world_with_organiser(1).await;
    let terms = format!("/programme/{}/terms", world.show);
    let ann = world.visitor();
    ann.hold(&[1]).await;
    let show = seen(&mut olga, &world).await;
    let dearer = |show: &Value, minor: i64| {
        let mut request = changed(show, "sales", show["terms"]["sales"].clone());
        request["prices"] = json!({ "gold": minor });
        request
    };
    let (status, problem) = post(&mut olga, &terms, dearer(&show, 2_000)).await;
    assert_eq!((status, text(&problem["code"])), (StatusCode::CONFLICT, "wrong_state"), "the show is on sale");
    post_ok(&mut olga, &terms, changed(&show, "sales", json!("paused"))).await;
    let show = seen(&mut olga, &world).await;
    for (prices, code) in [
        (json!({ "gold": -1 }), "price_invalid"),
        (json!({ "gold": i64::MAX }), "price_invalid"),
        (json!({}), "price_invalid"),
        (json!({ "gold": 1, "silver": 1 }), "price_invalid"),
    ] {
        let mut request = changed(&show, "sales", json!("paused"));
        request["prices"] = prices;
        assert_eq!(post(&mut olga, &terms, request).await.1["code"], code);
    }
    let (status, problem) = post(&mut olga, &terms, dearer(&show, 2_000)).await;
    assert_eq!((status, text(&problem["code"])), (StatusCode::CONFLICT, "wrong_state"), "a stale read is possible");
    wait_until("every server sees the pause", || async {
        post(&mut olga.clone(), &terms, dearer(&show, 2_000)).await.0 == StatusCode::OK
    })
    .await;
    ann.wait_for_seat(1, '0').await;
    let show = seen(&mut olga, &world).await;
    post_ok(&mut olga, &terms, changed(&show, "sales", json!("open"))).await;
    let sold = world.visitor().buy_seats(&[1], "tok_paid").await;
    assert_eq!(sold["total"]["minor"], 2_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn planned_show_is_neither_listed_nor_sold() {
    let (world, mut olga) = world_with_organiser(1).await;
    let terms = format!("/programme/{}/terms", world.show);
    let show = seen(&mut olga, &world).await;
    let listed =
        async || world.visitor().get("/api/v1/shows?movie=tide").await.1.to_string().contains(&world.show.to_string());
    assert!(listed().await);
    post_ok(&mut olga, &terms, changed(&show, "sales", json!("planned"))).await;
    wait_until("the show is not listed", || async { !listed().await }).await;
    assert_eq!(world.visitor().hold(&[1]).await.1["code"], "sales_closed");
    assert_eq!(world.visitor().page(&format!("/shows/{}", world.show)).await.0, StatusCode::NOT_FOUND);
    for part in ["", "/plan", "/seats"] {
        let (status, _) = world.visitor().get(&format!("/api/v1/shows/{}{part}", world.show)).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{part}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn organiser_cancels_a_show_and_every_buyer_gets_a_full_refund() {
    let (world, mut olga) = world_with_organiser(2).await;
    let (ann, ben) = (world.visitor(), world.visitor_at(1));
    let (first, second) = (ann.buy_seats(&[1, 2], "tok_paid").await, ben.buy_seats(&[3], "tok_paid").await);
    ann.hold(&[9]).await;
    let path = format!("/programme/{}/cancel", world.show);
    expect_problem(post(&mut olga, &path, json!({ "reason": " " })).await, StatusCode::BAD_REQUEST, "malformed");
    let (status, answer) = post(&mut olga, &path, json!({ "reason": "The roof leaks." })).await;
    assert_eq!((status, &answer["cancellation"]["left"]), (StatusCode::ACCEPTED, &json!(2)), "{answer}");
    assert_eq!(ann.wait_for_money(&first, "REFUNDED").await["refunds"][0]["amount"]["minor"], 2 * PRICE);
    assert_eq!(ben.wait_for_money(&second, "REFUNDED").await["refunds"][0]["amount"]["minor"], PRICE);
    let path_of_show = format!("{API}/programme/{}", world.show);
    wait_until("its page reports that everything is finished", || async {
        let (_, show) = olga.clone().get(&path_of_show).await;
        let gone = &show["cancellation"];
        gone["finished"] == true && gone["refunds_open"] == 0 && gone["undone"] == 2 && gone["left"] == 0
    })
    .await;
    assert_eq!(post(&mut olga, &path, json!({ "reason": "Again." })).await.1["code"], "wrong_state");
    wait_until("the reason is mailed", || async {
        world.mails().iter().filter(|mail| mail.contains("The roof leaks.")).count() >= 2
    })
    .await;
    world.wait_until_books_balance().await;
    // Another show may take its time.
    let again = "INSERT INTO shows (id, screen_id, film_id, layout_id, starts_at, local_date, language, format, currency, prices)
                 SELECT gen_random_uuid(), screen_id, film_id, layout_id, starts_at, local_date, language, format, currency, prices FROM shows";
    world.execute(again).await;
    let again = sqlx::query(again).execute(&world.pg).await;
    assert_refused("the time is taken", again, UNIQUE_VIOLATION, "shows_one_at_a_time");
}

#[tokio::test(flavor = "multi_thread")]
async fn show_that_has_begun_is_cancelled_by_operators_only() {
    let (world, mut olga) = world_with_organiser(1).await;
    let ann = world.visitor();
    let sold = ann.buy_seats(&[1, 2], "tok_paid").await;
    world.execute("UPDATE shows SET starts_at = now() - interval '1 day'").await;
    let path = format!("/programme/{}/cancel", world.show);
    let answer = post(&mut olga, &path, json!({ "reason": "The roof leaked." })).await;
    expect_problem(answer, StatusCode::CONFLICT, "sales_closed");
    assert_eq!(world.count("SELECT count(*) FROM show_cancellations").await, 0);
    assert_eq!(world.count("SELECT count(*) FROM refunds").await, 0);
    assert_eq!(ann.booking(&sold).await["state"], "CONFIRMED");

    let show = world.show.to_string();
    let (well, said) = world.command(&["cancel-show", &show, "--reason", "The roof leaked."]).await;
    assert!(well, "{said}");
    ann.wait_for_money(&sold, "REFUNDED").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelled_show_finishes_with_guest_bookings_and_cash_refunds_open() {
    let (world, mut olga) = world_with_organiser(1).await;
    let mut ann = seller_with_open_till(&world, "ann@example.org").await;
    let hold = hold_seats(&mut ann, &world, &[0, 1]).await;
    let guest = json!({ "hold": hold["id"], "means": "free", "total_minor": 0, "reason": "Press.", "name": "Lu Xun" });
    let free = expect_answer(ann.post(&sales_path(&world), guest).await, StatusCode::CREATED);
    sell_seats(&mut ann, &world, &[2], "cash").await;
    let ben = world.visitor();
    let paid = ben.buy_seats(&[3], "tok_paid").await;

    let path = format!("/programme/{}/cancel", world.show);
    expect_answer(post(&mut olga, &path, json!({ "reason": "The roof leaks." })).await, StatusCode::ACCEPTED);
    ben.wait_for_money(&paid, "REFUNDED").await;
    wait_until("no gateway refund is pending", || async {
        let gone = seen(&mut olga.clone(), &world).await["cancellation"].clone();
        gone["finished"] == true && gone["refunds_open"] == 0 && gone["refunds_at_counter"] == 1
    })
    .await;
    let settled = "SELECT count(*) FROM refunds WHERE booking_id = $1 AND amount_minor = 0 AND state = 'settled'";
    let free: Uuid = text(&free["id"]).parse().expect("an id");
    let settled: i64 = world.value(sqlx::query_scalar(settled).bind(free)).await;
    assert_eq!(settled, 1, "the refund of nothing is settled");
    let path = format!("/staff/aurora/shows/{}", world.show);
    let page = RawAnswer::of(olga.visitor().request(Method::GET, &path)).await;
    assert_eq!((page.status, page.headers.get("refresh")), (StatusCode::OK, None));
    assert!(page.body.contains("data-testid=\"refunds-at-counter\""));
}

fn small() -> Value {
    json!({ "sketch": 1, "name": "Small", "categories": [{ "name": "gold", "label": "Gold" }, { "name": "floor" }],
        "zones": [{ "category": "gold", "rows": [{ "rows": "A-B", "seats": "1-10" }] }],
        "areas": [{ "name": "Floor", "category": "floor", "capacity": 30 }] })
}

fn starts(planned: &Value) -> Vec<&str> {
    planned["shows"].as_array().expect("a list").iter().map(|show| text(&show["starts_local"])).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn week_is_planned_priced_by_rules_and_sold() {
    let (world, mut olga) = world_with_organiser(1).await;
    let screen = screen_of(&mut olga, &small()).await;
    set_prices(&mut olga, &["gold", "floor"]).await;
    let mut plan = week(&screen["id"], "2030-01-04", "friday", &["20:15", "14:00"]);
    plan["pattern"].as_array_mut().expect("a list").push(json!({ "weekday": "saturday", "times": ["20:15"] }));
    plan["weeks"] = json!(2);
    plan["format"] = json!("3D");
    let planned = post_ok(&mut olga, "/programme", plan).await;
    let expected = [
        "2030-01-04T14:00:00",
        "2030-01-04T20:15:00",
        "2030-01-05T20:15:00",
        "2030-01-11T14:00:00",
        "2030-01-11T20:15:00",
        "2030-01-12T20:15:00",
    ];
    assert_eq!(starts(&planned), expected);
    let programme = expect_answer(olga.get(&format!("{API}/programme?from=2030-01-04")).await, StatusCode::OK);
    let prices: Vec<i64> = programme
        .as_array()
        .expect("a list")
        .iter()
        .map(|show| show["prices"]["gold"].as_i64().expect("a price"))
        .collect();
    // Matinee, evening, weekend; 3D costs two euros more.
    assert_eq!(prices, [1_200, 1_450, 1_700]);
    let ann = visitor_of(&world, &planned["shows"][1]);
    let sold = ann.buy_seats(&[0, 1], "tok_paid").await;
    assert_eq!(sold["total"]["minor"], 2 * 1_450);
    let (status, held) = world
        .visitor()
        .call(Method::POST, &format!("/api/v1/shows/{}/holds", ann.show), json!({ "area": 0, "quantity": 2 }))
        .await;
    assert_eq!(status, StatusCode::CREATED, "the area is on sale: {held}");
    let (_, seen) = olga.get(&format!("{API}/programme/{}", ann.show)).await;
    assert_eq!((&seen["sold"], &seen["seats"]), (&json!(2), &json!(50)));
    let (_, listed) = ann.get("/api/v1/theatres/aurora/shows?date=2030-01-04").await;
    assert_eq!(listed["shows"].as_array().expect("a list").len(), 2, "{listed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn overlapping_shows_are_refused_by_name_and_nothing_is_planned() {
    let (world, mut olga) = world_with_organiser(1).await;
    let screen = screen_of(&mut olga, &small()).await;
    set_prices(&mut olga, &["gold", "floor"]).await;
    post_ok(&mut olga, "/programme", week(&screen["id"], "2030-01-07", "monday", &["18:00"])).await;
    let count = "SELECT count(*) FROM shows";
    let before = world.count(count).await;
    // The film runs 100 minutes, and cleaning takes 20.
    for times in [&["19:59"][..], &["16:01"], &["18:00"], &["08:00", "10:00", "18:30"], &["08:00", "09:30"]] {
        let (status, problem) = post(&mut olga, "/programme", week(&screen["id"], "2030-01-07", "monday", times)).await;
        assert_eq!((status, text(&problem["code"])), (StatusCode::CONFLICT, "shows_overlap"), "{times:?}");
        assert!(
            text(&problem["detail"]).contains("Tide") && text(&problem["detail"]).contains("New screen"),
            "{problem}"
        );
    }
    assert_eq!(world.count(count).await, before);
    post_ok(&mut olga, "/programme", week(&screen["id"], "2030-01-07", "monday", &["16:00", "20:00"])).await;
    // Two concurrent organisers: one succeeds.
    let (mut one, mut two) = (olga.clone(), olga.clone());
    let plan = || week(&screen["id"], "2030-01-07", "tuesday", &["18:00"]);
    let (first, second) = tokio::join!(post(&mut one, "/programme", plan()), post(&mut two, "/programme", plan()));
    let mut statuses = [first.0, second.0];
    statuses.sort();
    assert_eq!(statuses, [StatusCode::CREATED, StatusCode::CONFLICT]);
}

#[tokio::test(flavor = "multi_thread")]
async fn time_skipped_by_daylight_saving_is_refused_or_moved_with_a_note() {
    let (_world, mut olga) = world_with_organiser(1).await;
    let screen = screen_of(&mut olga, &small()).await;
    set_prices(&mut olga, &["gold", "floor"]).await;
    // In Lisbon the clocks go from 1:00 to 2:00 on 31 March 2030.
    let mut plan = week(&screen["id"], "2030-03-31", "sunday", &["01:30", "20:00"]);
    let problem =
        expect_problem(post(&mut olga, "/programme", plan.clone()).await, StatusCode::BAD_REQUEST, "no_such_time");
    assert!(text(&problem["detail"]).contains("2030-03-31 01:30"), "{problem}");
    plan["in_gap"] = json!("move");
    let planned = post_ok(&mut olga, "/programme", plan).await;
    assert_eq!(starts(&planned), ["2030-03-31T02:00:00", "2030-03-31T20:00:00"]);
    assert_eq!((&planned["shows"][0]["moved"], &planned["shows"][1]["moved"]), (&json!(true), &json!(false)));
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_plans_and_prices_are_refused_with_a_reason() {
    let (world, mut olga) = world_with_organiser(1).await;
    let screen = screen_of(&mut olga, &small()).await;
    let usual = || week(&screen["id"], "2030-01-07", "monday", &["18:00"]);
    let (status, problem) = post(&mut olga, "/programme", usual()).await;
    assert_eq!((status, text(&problem["code"])), (StatusCode::BAD_REQUEST, "price_invalid"), "no prices yet");
    set_prices(&mut olga, &["gold"]).await;
    let (_, problem) = post(&mut olga, "/programme", usual()).await;
    assert!(text(&problem["detail"]).contains("floor"), "the category without a price is named: {problem}");
    set_prices(&mut olga, &["gold", "floor"]).await;
    let with = |key: &str, value: Value| {
        let mut plan = usual();
        plan[key] = value;
        plan
    };
    let terms = |key: &str, value: Value| {
        let mut terms = json!({ "sales": "open", "hold_seconds": 300, "flash_sale": false, "per_person": 10 });
        terms[key] = value;
        with("terms", terms)
    };
    for (plan, expected) in [
        (with("from", json!("2020-01-06")), (StatusCode::BAD_REQUEST, "malformed")),
        (with("from", json!("soon")), (StatusCode::BAD_REQUEST, "malformed")),
        (with("weeks", json!(0)), (StatusCode::BAD_REQUEST, "malformed")),
        (with("weeks", json!(-1)), (StatusCode::BAD_REQUEST, "malformed")),
        (with("format", json!("4D")), (StatusCode::BAD_REQUEST, "malformed")),
        (with("language", json!(" ")), (StatusCode::BAD_REQUEST, "malformed")),
        (with("film", json!("nothing")), (StatusCode::NOT_FOUND, "not_found")),
        (with("screen", json!("nowhere")), (StatusCode::NOT_FOUND, "not_found")),
        (with("cleaning_minutes", json!(100_000)), (StatusCode::BAD_REQUEST, "malformed")),
        (with("pattern", json!([{ "weekday": "monday", "times": ["24:30"] }])), (StatusCode::BAD_REQUEST, "malformed")),
        (with("reason", json!("")), (StatusCode::BAD_REQUEST, "malformed")),
        (terms("hold_seconds", json!(1)), (StatusCode::BAD_REQUEST, "malformed")),
        (terms("per_person", json!(11)), (StatusCode::BAD_REQUEST, "malformed")),
        (terms("sales_from", json!("2030-03-31T01:30")), (StatusCode::BAD_REQUEST, "no_such_time")),
    ] {
        let (status, problem) = post(&mut olga, "/programme", plan.clone()).await;
        assert_eq!((status, text(&problem["code"])), expected, "{plan}");
    }
    let (_, before) = olga.get(&format!("{API}/tariff")).await;
    for wrong in [json!(-1), json!(i64::MIN), json!(i64::MAX), json!(1_000_000_001)] {
        let mut tariff = before.clone();
        tariff["base"]["gold"] = wrong.clone();
        let (status, problem) = post(&mut olga, "/tariff", json!({ "tariff": tariff, "reason": "Wrong." })).await;
        assert_eq!((status, text(&problem["code"])), (StatusCode::BAD_REQUEST, "price_invalid"), "{wrong}");
    }
    let mut tariff = before.clone();
    tariff["base"]["gold"] = json!(99_999_999_999_999_999_999_u128.to_string().parse::<f64>().expect("a number"));
    let answer = post(&mut olga, "/tariff", json!({ "tariff": tariff, "reason": "Overflows." })).await;
    assert_eq!(answer.0, StatusCode::BAD_REQUEST);
    let mut old = before.clone();
    old["version"] = json!(before["version"].as_u64().expect("a version") - 1);
    let answer = post(&mut olga, "/tariff", json!({ "tariff": old, "reason": "Too late." })).await;
    expect_problem(answer, StatusCode::CONFLICT, "wrong_state");
    assert_eq!(olga.get(&format!("{API}/tariff")).await.1, before, "nothing changed");
    assert_eq!(world.count("SELECT count(*) FROM shows").await, 1, "the world's own");
}

#[tokio::test(flavor = "multi_thread")]
async fn film_is_added_and_every_act_is_audited() {
    let (world, mut olga) = world_with_organiser(1).await;
    let film = json!({ "title": "Ночь — La nuit", "running_minutes": 90, "reason": "Premiere." });
    let added = post_ok(&mut olga, "/films", film.clone()).await;
    let (_, films) = olga.get(&format!("{API}/films")).await;
    assert!(films.as_array().expect("a list").contains(&added), "{films}");
    for (key, value) in [
        ("title", json!("")),
        ("running_minutes", json!(0)),
        ("running_minutes", json!(100_000)),
        ("reason", json!("\n")),
    ] {
        let mut wrong = film.clone();
        wrong[key] = value;
        assert_eq!(post(&mut olga, "/films", wrong).await.0, StatusCode::BAD_REQUEST, "{key}");
    }
    let screen = screen_of(&mut olga, &small()).await;
    set_prices(&mut olga, &["gold", "floor"]).await;
    post_ok(&mut olga, "/programme", week(&screen["id"], "2030-01-07", "monday", &["18:00"])).await;
    let sql = "SELECT act FROM audit_list WHERE theatre_id = 'aurora' AND actor IS NOT NULL ORDER BY number";
    let acts: Vec<String> = world.values(sqlx::query_scalar(sql)).await;
    assert_eq!(acts, ["film_added", "layout_imported", "screen_created", "tariff_set", "shows_planned"]);
}

fn film(title: &str) -> Value {
    json!({ "title": title, "running_minutes": 90, "reason": "Premiere." })
}

/// A theatre without shows, and an organiser of it.
async fn organiser_of_another_theatre(world: &World) -> Browser {
    another_theatre(world).await;
    let mut rita = register_and_log_in(world, "rita@example.org").await;
    grant(world, "rita@example.org", "rialto", "organiser").await;
    expect_answer(rita.log_in("rita@example.org", PASSWORD).await, StatusCode::OK);
    rita
}

const FILMS_OF_RIALTO: &str = "/api/v1/theatres/rialto/films";

#[tokio::test(flavor = "multi_thread")]
async fn films_that_a_theatre_adds_are_limited_and_a_repeated_request_is_answered_again() {
    let (world, mut olga) = world_with_organiser(1).await;
    let mut rita = organiser_of_another_theatre(&world).await;
    let (path, key) = (format!("{API}/films"), new_id().to_string());
    let add_first = async |olga: &mut Browser| {
        let (status, _, added) =
            olga.send_with(Method::POST, &path, &film("First"), &[("idempotency-key", &key)]).await;
        (status, added)
    };
    let first = expect_answer(add_first(&mut olga).await, StatusCode::CREATED);
    for number in 1..100 {
        post_ok(&mut olga, "/films", film(&format!("Film {number}"))).await;
    }
    let refused = post(&mut olga, "/films", film("Last")).await;
    expect_problem(refused, StatusCode::TOO_MANY_REQUESTS, "too_many_attempts");
    assert_eq!(world.count("SELECT count(*) FROM films WHERE title LIKE 'Film %' OR title = 'First'").await, 100);
    assert_eq!(add_first(&mut olga).await, (StatusCode::CREATED, first), "the replay is not limited");
    expect_answer(rita.post(FILMS_OF_RIALTO, film("Other")).await, StatusCode::CREATED);
}

#[tokio::test(flavor = "multi_thread")]
async fn list_of_more_films_than_it_can_hold_keeps_those_of_the_theatre() {
    let (world, mut olga) = world_with_organiser(1).await;
    let mut rita = organiser_of_another_theatre(&world).await;
    let others = "INSERT INTO films (id, title, tagline, synopsis, running_minutes, rating, genre, hue)
                  SELECT 'a-' || n, 'A ' || n, '', '', 90, '', '', 0 FROM generate_series(1, 1100) n";
    world.execute(others).await;
    post_ok(&mut olga, "/films", film("Zebra")).await;
    let titles = async |browser: &mut Browser, path: &str| {
        let films = expect_answer(browser.get(path).await, StatusCode::OK);
        let films = films.as_array().expect("a list");
        films.iter().map(|film| text(&film["title"]).to_owned()).collect::<Vec<_>>()
    };
    let own = titles(&mut olga, &format!("{API}/films")).await;
    assert_eq!((own.len(), &own[998..]), (1_000, &["Tide".to_owned(), "Zebra".to_owned()][..]), "by title");
    let of_rialto = titles(&mut rita, FILMS_OF_RIALTO).await;
    assert_eq!(of_rialto.len(), 1_000);
    assert_eq!(of_rialto.last().map(String::as_str), Some("Tide"), "it has a show, and Zebra none");
}
