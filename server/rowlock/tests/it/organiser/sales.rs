//! Sales settings: opening, pausing, limits, other prices; and cancelled shows.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{API, organiser, post, post_ok};
use crate::box_office::{hold_seats, sales_path, sell_seats, seller_with_open_till};
use crate::world::{PRICE, UNIQUE_VIOLATION, World, assert_refused, expect_answer, expect_problem, text, wait_until};

async fn seen(olga: &mut crate::accounts::Browser, world: &World) -> Value {
    expect_answer(olga.get(&format!("{API}/programme/{}", world.show)).await, StatusCode::OK)
}

/// The show's terms with one change, as a request.
fn changed(show: &Value, key: &str, value: Value) -> Value {
    let mut terms = show["terms"].clone();
    terms[key] = value;
    json!({ "terms": terms, "version": show["version"], "reason": "As agreed." })
}

#[tokio::test(flavor = "multi_thread")]
async fn sales_pause_and_open_at_every_server_and_existing_holds_can_be_paid() {
    let world = World::start(2, &[]).await;
    let mut olga = organiser(&world).await;
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
    // A change based on an older version is refused.
    expect_problem(
        post(&mut olga, &terms, changed(&show, "sales", json!("open"))).await,
        StatusCode::CONFLICT,
        "wrong_state",
    );
    // With sold seats the show cannot be hidden.
    let show = seen(&mut olga, &world).await;
    let (status, _) = post(&mut olga, &terms, changed(&show, "sales", json!("planned"))).await;
    assert_eq!(status, StatusCode::CONFLICT);
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
async fn show_has_its_own_person_limit_and_hold_length() {
    let world = World::start(1, &[]).await;
    let mut olga = organiser(&world).await;
    let terms = format!("/programme/{}/terms", world.show);
    let show = seen(&mut olga, &world).await;
    let mut request = changed(&show, "per_person", json!(2));
    request["terms"]["hold_seconds"] = json!(60);
    post_ok(&mut olga, &terms, request).await;
    let ann = world.visitor();
    assert_eq!(ann.hold(&[1, 2, 3]).await.1["code"], "person_limit");
    let (status, hold) = ann.hold(&[1, 2]).await;
    assert_eq!(status, StatusCode::CREATED);
    let now = platform::clock::now().0;
    let left = hold["expires_at_ms"].as_i64().expect("an instant") - now;
    assert!((40_000..=61_000).contains(&left), "a minute: {left} ms");
    // Consecutive bookings do not avoid the limit.
    let (_, booking) = ann.book(&hold).await;
    assert_eq!(ann.pay(&booking, Some("tok_paid")).await.0, StatusCode::OK);
    wait_until("sold seats count", || async { ann.hold(&[5]).await.1["code"] == "person_limit" }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn prices_change_only_while_no_seat_can_be_held() {
    let world = World::start(1, &[]).await;
    let mut olga = organiser(&world).await;
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
    assert_eq!(
        (status, text(&problem["code"])),
        (StatusCode::CONFLICT, "wrong_state"),
        "other servers may have a stale read"
    );
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
    let world = World::start(1, &[]).await;
    let mut olga = organiser(&world).await;
    let terms = format!("/programme/{}/terms", world.show);
    let show = seen(&mut olga, &world).await;
    let listed =
        async || world.visitor().get("/api/v1/shows?movie=tide").await.1.to_string().contains(&world.show.to_string());
    assert!(listed().await);
    post_ok(&mut olga, &terms, changed(&show, "sales", json!("planned"))).await;
    wait_until("the show is not listed", || async { !listed().await }).await;
    assert_eq!(world.visitor().hold(&[1]).await.1["code"], "sales_closed");
    let (status, _) = world.visitor().raw(Method::GET, &format!("/shows/{}", world.show), Value::Null, "k").await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    for part in ["", "/plan", "/seats"] {
        let (status, _) = world.visitor().get(&format!("/api/v1/shows/{}{part}", world.show)).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{part}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn organiser_cancels_a_show_and_every_buyer_gets_a_full_refund() {
    let world = World::start(2, &[]).await;
    let mut olga = organiser(&world).await;
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
async fn cancelled_show_finishes_with_guest_bookings_and_cash_refunds_open() {
    let world = World::start(1, &[]).await;
    let mut olga = organiser(&world).await;
    let mut ann = seller_with_open_till(&world, "ann@example.org").await;
    let hold = hold_seats(&mut ann, &world, &[0, 1]).await;
    let guest = json!({ "hold": hold["id"], "means": "free", "total_minor": 0, "reason": "Press.", "name": "Lu Xun" });
    let free = expect_answer(ann.post(&sales_path(&world), guest).await, StatusCode::CREATED);
    sell_seats(&mut ann, &world, &[2], "cash").await;
    let ben = world.visitor();
    let paid = ben.buy_seats(&[3], "tok_paid").await;

    let path = format!("/programme/{}/cancel", world.show);
    let (status, answer) = post(&mut olga, &path, json!({ "reason": "The roof leaks." })).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{answer}");
    ben.wait_for_money(&paid, "REFUNDED").await;
    wait_until("no gateway refund is pending", || async {
        let gone = seen(&mut olga.clone(), &world).await["cancellation"].clone();
        gone["finished"] == true && gone["refunds_open"] == 0 && gone["refunds_at_counter"] == 1
    })
    .await;
    let settled = "SELECT count(*) FROM refunds WHERE booking_id = $1 AND amount_minor = 0 AND state = 'settled'";
    let free: uuid::Uuid = text(&free["id"]).parse().expect("an id");
    let settled: i64 = sqlx::query_scalar(settled).bind(free).fetch_one(&world.pg).await.expect("refunds are counted");
    assert_eq!(settled, 1, "the refund of nothing is settled");
    // The page stops polling.
    let visitor = olga.visitor();
    let page = format!("{}/staff/aurora/shows/{}", visitor.base, world.show);
    let page = visitor.client.get(page).header("cookie", &visitor.cookie).send().await.expect("the server answers");
    assert_eq!((page.status(), page.headers().get("refresh")), (StatusCode::OK, None));
    assert!(page.text().await.expect("a page").contains("data-testid=\"refunds-at-counter\""));
}
