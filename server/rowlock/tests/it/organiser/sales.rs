//! How shows are sold: opened, paused, limited, at other prices; and shows that will not take place.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{HERE, ask, done, organiser};
use crate::box_office::{at_work, holds, sales, sells};
use crate::cancel::books_balance;
use crate::world::{PRICE, UNIQUE_VIOLATION, World, refused_with, text, until};

async fn seen(olga: &mut crate::accounts::Browser, world: &World) -> Value {
    let (status, show) = olga.get(&format!("{HERE}/programme/{}", world.show)).await;
    assert_eq!(status, StatusCode::OK, "{show}");
    show
}

/// The show's terms with one thing changed, as a request.
fn changed(show: &Value, key: &str, value: Value) -> Value {
    let mut terms = show["terms"].clone();
    terms[key] = value;
    json!({ "terms": terms, "version": show["version"], "reason": "As agreed." })
}

#[tokio::test(flavor = "multi_thread")]
async fn sales_are_paused_and_opened_at_every_server_and_whoever_holds_seats_may_pay() {
    let world = World::start(2, &[]).await;
    let mut olga = organiser(&world).await;
    let (ann, ben) = (world.visitor(), world.visitor_at(1));
    let (_, hold) = ann.hold(&[1]).await;
    ben.hold(&[2]).await;
    let terms = format!("/programme/{}/terms", world.show);
    let show = seen(&mut olga, &world).await;
    done(&mut olga, &terms, changed(&show, "sales", json!("paused"))).await;
    assert_eq!(world.visitor().hold(&[3]).await.1["code"], "sales_closed", "here at once");
    until("the other server knows", || async { world.visitor_at(1).hold(&[3]).await.1["code"] == "sales_closed" })
        .await;
    let (status, booking) = ann.book(&hold).await;
    assert_eq!(status, StatusCode::CREATED, "{booking}");
    assert_eq!(ann.pay(&booking, Some("tok_paid")).await.0, StatusCode::OK);
    // What was decided on an older version is not done.
    let (status, problem) = ask(&mut olga, &terms, changed(&show, "sales", json!("open"))).await;
    assert_eq!((status, text(&problem["code"])), (StatusCode::CONFLICT, "wrong_state"));
    // With seats sold it stays where their buyers find it.
    let show = seen(&mut olga, &world).await;
    let (status, _) = ask(&mut olga, &terms, changed(&show, "sales", json!("planned"))).await;
    assert_eq!(status, StatusCode::CONFLICT);
    let mut later = changed(&show, "sales_from", json!("2099-01-01T10:00"));
    later["terms"]["sales"] = json!("open");
    done(&mut olga, &terms, later).await;
    let (_, refusal) = world.visitor().hold(&[3]).await;
    assert!(text(&refusal["detail"]).contains("10:00"), "it says from when: {refusal}");
    let show = seen(&mut olga, &world).await;
    done(&mut olga, &terms, changed(&show, "sales_from", Value::Null)).await;
    until("the other server sells", || async { world.visitor_at(1).hold(&[7]).await.0 == StatusCode::CREATED }).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_per_person_and_the_length_of_holds_are_the_shows_own() {
    let world = World::start(1, &[]).await;
    let mut olga = organiser(&world).await;
    let terms = format!("/programme/{}/terms", world.show);
    let show = seen(&mut olga, &world).await;
    let mut request = changed(&show, "per_person", json!(2));
    request["terms"]["hold_seconds"] = json!(60);
    done(&mut olga, &terms, request).await;
    let ann = world.visitor();
    assert_eq!(ann.hold(&[1, 2, 3]).await.1["code"], "person_limit");
    let (status, hold) = ann.hold(&[1, 2]).await;
    assert_eq!(status, StatusCode::CREATED);
    let now = platform::clock::now().0;
    let left = hold["expires_at_ms"].as_i64().expect("an instant") - now;
    assert!((40_000..=61_000).contains(&left), "a minute: {left} ms");
    // One after the other is no way around it.
    let (_, booking) = ann.book(&hold).await;
    assert_eq!(ann.pay(&booking, Some("tok_paid")).await.0, StatusCode::OK);
    until("what is sold counts", || async { ann.hold(&[5]).await.1["code"] == "person_limit" }).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn prices_change_only_while_nobody_can_take_seats() {
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
    let (status, problem) = ask(&mut olga, &terms, dearer(&show, 2_000)).await;
    assert_eq!((status, text(&problem["code"])), (StatusCode::CONFLICT, "wrong_state"), "it is on sale");
    done(&mut olga, &terms, changed(&show, "sales", json!("paused"))).await;
    let show = seen(&mut olga, &world).await;
    for (prices, code) in [
        (json!({ "gold": -1 }), "price_invalid"),
        (json!({ "gold": i64::MAX }), "price_invalid"),
        (json!({}), "price_invalid"),
        (json!({ "gold": 1, "silver": 1 }), "price_invalid"),
    ] {
        let mut request = changed(&show, "sales", json!("paused"));
        request["prices"] = prices;
        assert_eq!(ask(&mut olga, &terms, request).await.1["code"], code);
    }
    let (status, problem) = ask(&mut olga, &terms, dearer(&show, 2_000)).await;
    assert_eq!((status, text(&problem["code"])), (StatusCode::CONFLICT, "wrong_state"), "others may not know it yet");
    until("every server knows of the pause", || async {
        ask(&mut olga.clone(), &terms, dearer(&show, 2_000)).await.0 == StatusCode::OK
    })
    .await;
    ann.sees(1, '0').await;
    let show = seen(&mut olga, &world).await;
    done(&mut olga, &terms, changed(&show, "sales", json!("open"))).await;
    let sold = world.visitor().bought(&[1], "tok_paid").await;
    assert_eq!(sold["total"]["minor"], 2_000);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_show_nobody_is_to_see_yet_is_not_listed_nor_sold() {
    let world = World::start(1, &[]).await;
    let mut olga = organiser(&world).await;
    let terms = format!("/programme/{}/terms", world.show);
    let show = seen(&mut olga, &world).await;
    let listed =
        async || world.visitor().get("/api/v1/shows?movie=tide").await.1.to_string().contains(&world.show.to_string());
    assert!(listed().await);
    done(&mut olga, &terms, changed(&show, "sales", json!("planned"))).await;
    until("it is not listed", || async { !listed().await }).await;
    assert_eq!(world.visitor().hold(&[1]).await.1["code"], "sales_closed");
    let (status, _) = world.visitor().raw(Method::GET, &format!("/shows/{}", world.show), Value::Null, "k").await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    for part in ["", "/plan", "/seats"] {
        let (status, _) = world.visitor().get(&format!("/api/v1/shows/{}{part}", world.show)).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{part}");
    }
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_organiser_calls_a_show_off_and_every_buyer_gets_all_of_it_back() {
    let world = World::start(2, &[]).await;
    let mut olga = organiser(&world).await;
    let (ann, ben) = (world.visitor(), world.visitor_at(1));
    let (first, second) = (ann.bought(&[1, 2], "tok_paid").await, ben.bought(&[3], "tok_paid").await);
    ann.hold(&[9]).await;
    let path = format!("/programme/{}/cancel", world.show);
    let (status, problem) = ask(&mut olga, &path, json!({ "reason": " " })).await;
    assert_eq!((status, text(&problem["code"])), (StatusCode::BAD_REQUEST, "malformed"));
    let (status, told) = ask(&mut olga, &path, json!({ "reason": "The roof leaks." })).await;
    assert_eq!((status, &told["cancellation"]["left"]), (StatusCode::ACCEPTED, &json!(2)), "{told}");
    assert_eq!(ann.sees_money(&first, "REFUNDED").await["refunds"][0]["amount"]["minor"], 2 * PRICE);
    assert_eq!(ben.sees_money(&second, "REFUNDED").await["refunds"][0]["amount"]["minor"], PRICE);
    let path_of_show = format!("{HERE}/programme/{}", world.show);
    until("its page says that all is done", || async {
        let (_, show) = olga.clone().get(&path_of_show).await;
        let gone = &show["cancellation"];
        gone["finished"] == true && gone["refunds_open"] == 0 && gone["undone"] == 2 && gone["left"] == 0
    })
    .await;
    assert_eq!(ask(&mut olga, &path, json!({ "reason": "Again." })).await.1["code"], "wrong_state");
    until("they are told why", || async {
        world.mails().iter().filter(|mail| mail.contains("The roof leaks.")).count() >= 2
    })
    .await;
    books_balance(&world).await;
    // Its time is another show's now.
    let again = "INSERT INTO shows (id, screen_id, film_id, layout_id, starts_at, local_date, language, format, currency, prices)
                 SELECT gen_random_uuid(), screen_id, film_id, layout_id, starts_at, local_date, language, format, currency, prices FROM shows";
    sqlx::query(again).execute(&world.pg).await.expect("the time is free");
    let again = sqlx::query(again).execute(&world.pg).await;
    refused_with("and taken again", again, UNIQUE_VIOLATION, "shows_one_at_a_time");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_show_that_is_called_off_is_through_though_guests_paid_nothing_and_cash_waits_at_the_counter() {
    let world = World::start(1, &[]).await;
    let mut olga = organiser(&world).await;
    let mut ann = at_work(&world, "ann@example.org").await;
    let hold = holds(&mut ann, &world, &[0, 1]).await;
    let guest = json!({ "hold": hold["id"], "means": "free", "total_minor": 0, "reason": "Press.", "name": "Lu Xun" });
    let (status, free) = ann.post(&sales(&world), guest).await;
    assert_eq!(status, StatusCode::CREATED, "{free}");
    sells(&mut ann, &world, &[2], "cash").await;
    let ben = world.visitor();
    let paid = ben.bought(&[3], "tok_paid").await;

    let path = format!("/programme/{}/cancel", world.show);
    let (status, told) = ask(&mut olga, &path, json!({ "reason": "The roof leaks." })).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{told}");
    ben.sees_money(&paid, "REFUNDED").await;
    until("no gateway is waited for", || async {
        let gone = seen(&mut olga.clone(), &world).await["cancellation"].clone();
        gone["finished"] == true && gone["refunds_open"] == 0 && gone["refunds_at_counter"] == 1
    })
    .await;
    let settled = "SELECT count(*) FROM refunds WHERE booking_id = $1 AND amount_minor = 0 AND state = 'settled'";
    let free: uuid::Uuid = text(&free["id"]).parse().expect("an id");
    let settled: i64 = sqlx::query_scalar(settled).bind(free).fetch_one(&world.pg).await.expect("refunds are counted");
    assert_eq!(settled, 1, "nothing was to be paid back, and that is done");
    // The page does not look again for ever.
    let visitor = olga.visitor();
    let page = format!("{}/staff/aurora/shows/{}", visitor.base, world.show);
    let page = visitor.client.get(page).header("cookie", &visitor.cookie).send().await.expect("the server answers");
    assert_eq!((page.status(), page.headers().get("refresh")), (StatusCode::OK, None));
    assert!(page.text().await.expect("a page").contains("data-testid=\"refunds-at-counter\""));
    world.end().await;
}
