//! Weeks of shows from a pattern: all or none, no overlap on a screen, no skipped local time, with prices.

use reqwest::StatusCode;
use serde_json::{Value, json};

use super::{API, organiser, post, post_ok, screen_of, set_prices, visitor_of, week};
use crate::world::{World, expect_problem, text};

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
    let world = World::start(1, &[]).await;
    let mut olga = organiser(&world).await;
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
    let (status, programme) = olga.get(&format!("{API}/programme?from=2030-01-04")).await;
    assert_eq!(status, StatusCode::OK);
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
        .call(reqwest::Method::POST, &format!("/api/v1/shows/{}/holds", ann.show), json!({ "area": 0, "quantity": 2 }))
        .await;
    assert_eq!(status, StatusCode::CREATED, "the area is on sale: {held}");
    let (_, seen) = olga.get(&format!("{API}/programme/{}", ann.show)).await;
    assert_eq!((&seen["sold"], &seen["seats"]), (&json!(2), &json!(50)));
    let (_, listed) = ann.get("/api/v1/theatres/aurora/shows?date=2030-01-04").await;
    assert_eq!(listed["shows"].as_array().expect("a list").len(), 2, "{listed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn overlapping_shows_are_refused_by_name_and_nothing_is_planned() {
    let world = World::start(1, &[]).await;
    let mut olga = organiser(&world).await;
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
    let world = World::start(1, &[]).await;
    let mut olga = organiser(&world).await;
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
    let world = World::start(1, &[]).await;
    let mut olga = organiser(&world).await;
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
    let (status, _) = post(&mut olga, "/tariff", json!({ "tariff": tariff, "reason": "Overflows." })).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    let mut old = before.clone();
    old["version"] = json!(before["version"].as_u64().expect("a version") - 1);
    expect_problem(
        post(&mut olga, "/tariff", json!({ "tariff": old, "reason": "Too late." })).await,
        StatusCode::CONFLICT,
        "wrong_state",
    );
    assert_eq!(olga.get(&format!("{API}/tariff")).await.1, before, "nothing changed");
    assert_eq!(world.count("SELECT count(*) FROM shows").await, 1, "the world's own");
}

#[tokio::test(flavor = "multi_thread")]
async fn film_is_added_and_every_act_is_audited() {
    let world = World::start(1, &[]).await;
    let mut olga = organiser(&world).await;
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
    let acts: Vec<String> = sqlx::query_scalar(
        "SELECT act FROM audit_list WHERE theatre_id = 'aurora' AND actor IS NOT NULL ORDER BY number",
    )
    .fetch_all(&world.pg)
    .await
    .expect("lines");
    assert_eq!(acts, ["film_added", "layout_imported", "screen_created", "tariff_set", "shows_planned"]);
}
