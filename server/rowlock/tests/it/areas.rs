//! General admission: places in an area are held, paid for and given back like seats, and never too many.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::world::{CHECK_VIOLATION, PRICE, Visitor, World, refused_with, text, until};

/// A world with a floor of so many places.
async fn with_floor(servers: usize, capacity: i32) -> World {
    let world = World::start(servers, &[]).await;
    world.open_floor(capacity).await;
    world
}

async fn checked_out(visitor: &Visitor, quantity: u32) -> (Value, Value) {
    let (status, hold) = visitor.stand(quantity).await;
    assert_eq!(status, StatusCode::CREATED, "{hold}");
    let (status, booking) = visitor.book(&hold).await;
    assert_eq!(status, StatusCode::CREATED, "{booking}");
    (hold, booking)
}

/// Places being paid for, and sold.
async fn stock(world: &World) -> (i32, i32) {
    sqlx::query_as("SELECT claimed, sold FROM area_stock").fetch_one(&world.pg).await.expect("a row")
}

/// The books: what the stock says is what the claims add up to.
async fn the_books_agree(world: &World) {
    let claims: (i64, i64) = sqlx::query_as(
        "SELECT coalesce(sum(quantity) FILTER (WHERE state = 'claimed'), 0),
                coalesce(sum(quantity) FILTER (WHERE state = 'sold'), 0) FROM area_claims",
    )
    .fetch_one(&world.pg)
    .await
    .expect("sums");
    let (claimed, sold) = stock(world).await;
    assert_eq!((i64::from(claimed), i64::from(sold)), claims);
}

#[tokio::test(flavor = "multi_thread")]
async fn places_become_a_ticket_each_beside_seats() {
    let world = with_floor(1, 5).await;
    let ann = world.visitor();
    let (_, plan) = ann.get(&format!("/api/v1/shows/{}/plan", world.show)).await;
    assert_eq!((&plan["areas"][0]["name"], &plan["areas"][0]["capacity"]), (&json!("Floor"), &json!(5)));
    let path = format!("/api/v1/shows/{}/holds", world.show);
    let (status, hold) = ann.call(Method::POST, &path, json!({ "seats": [7], "area": 0, "quantity": 3 })).await;
    assert_eq!((status, &hold["total"]["minor"]), (StatusCode::CREATED, &json!(4 * PRICE)), "{hold}");
    let line = json!([{ "area": 0, "label": "Floor", "category": "Gold", "quantity": 3,
                        "price": { "minor": PRICE, "currency": "EUR" } }]);
    assert_eq!(hold["places"], line);
    until("everyone sees it", || async { ann.places_left().await == 2 }).await;
    let (_, booking) = ann.book(&hold).await;
    assert_eq!((&booking["places"], &booking["total"]["minor"]), (&line, &json!(4 * PRICE)));
    let (_, paid) = ann.pay(&booking, Some("tok_paid")).await;
    assert_eq!(paid["state"], "CONFIRMED", "{paid}");
    assert_eq!(stock(&world).await, (0, 3));
    assert_eq!(world.count("SELECT count(*) FROM place_tickets").await, 3);
    assert_eq!(world.count("SELECT count(*) FROM tickets").await, 1);
    until("the outbox is empty", || async { world.count("SELECT count(*) FROM outbox").await == 0 }).await;
    assert_eq!((ann.places_left().await, &ann.states().await[7..8]), (json!(2), "2"));
    let (_, page) = ann.raw(Method::GET, text(&paid["ticket_url"]), Value::Null, "page").await;
    assert_eq!(page.matches("data-testid=\"ticket\"").count(), 4, "one ticket a seat or place");
    let (_, listed) = ann.get(&format!("/api/v1/shows/{}", world.show)).await;
    assert_eq!((&listed["seat_count"], &listed["seats_left"]), (&json!(305), &json!(301)));
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_twelve_at_once_five_get_a_place_and_the_others_hear_what_is_left() {
    let world = with_floor(2, 5).await;
    let answers = futures::future::join_all((0..12).map(|number| {
        let visitor = world.visitor_at(number % 2);
        async move { visitor.stand(1).await }
    }))
    .await;
    let refused: Vec<_> = answers.iter().filter(|(status, _)| *status == StatusCode::CONFLICT).collect();
    assert_eq!((answers.len() - refused.len(), refused.len()), (5, 7), "{answers:?}");
    for (_, problem) in refused {
        assert_eq!(problem["code"], "seats_taken");
        assert_eq!(problem["areas"], json!([{ "area": 0, "label": "Floor", "left": 0 }]));
    }
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wish_for_places_is_read_as_strictly_as_one_for_seats() {
    let world = with_floor(1, 50).await;
    let ann = world.visitor();
    let path = format!("/api/v1/shows/{}/holds", world.show);
    for (body, code) in [
        (json!({ "area": 0 }), "malformed"),
        (json!({ "quantity": 1 }), "malformed"),
        (json!({ "area": -1, "quantity": 1 }), "malformed"),
        (json!({ "area": 0, "quantity": 0 }), "seat_count"),
        (json!({ "area": 0, "quantity": 11 }), "seat_count"),
        (json!({ "area": 0, "quantity": 4_294_967_295_u32 }), "seat_count"),
        (json!({ "seats": [1, 2, 3, 4, 5], "area": 0, "quantity": 6 }), "seat_count"),
        (json!({ "area": 1, "quantity": 1 }), "unknown_area"),
        (json!({}), "seat_count"),
    ] {
        let (status, problem) = ann.call(Method::POST, &path, body.clone()).await;
        assert_eq!((status, text(&problem["code"])), (StatusCode::BAD_REQUEST, code), "{body}");
    }
    let (_, hold) = ann.stand(6).await;
    let own = format!("{path}/{}", text(&hold["id"]));
    let twice = json!({ "add_places": [{ "area": 0, "quantity": 1 }, { "area": 0, "quantity": 1 }] });
    assert_eq!(ann.call(Method::PATCH, &own, twice).await.1["code"], "seat_twice");
    let more = json!({ "add_places": [{ "area": 0, "quantity": 5 }] });
    let (status, problem) = ann.call(Method::PATCH, &own, more).await;
    assert_eq!((status, text(&problem["code"])), (StatusCode::TOO_MANY_REQUESTS, "person_limit"));
    let swap = json!({ "add": [4], "remove_places": [{ "area": 0, "quantity": 4 }] });
    let (status, changed) = ann.call(Method::PATCH, &own, swap).await;
    assert_eq!((status, &changed["places"][0]["quantity"]), (StatusCode::OK, &json!(2)));
    let rest = json!({ "remove": [4], "remove_places": [{ "area": 0, "quantity": 2 }] });
    assert_eq!(ann.call(Method::PATCH, &own, rest).await.0, StatusCode::NO_CONTENT);
    until("all are back", || async { ann.places_left().await == 50 }).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn places_bought_count_towards_what_one_person_may_have() {
    let world = with_floor(1, 50).await;
    let ann = world.visitor();
    let (_, booking) = checked_out(&ann, 8).await;
    assert_eq!(ann.pay(&booking, Some("tok_paid")).await.1["state"], "CONFIRMED");
    until("the outbox is empty", || async { world.count("SELECT count(*) FROM outbox").await == 0 }).await;
    assert_eq!(ann.stand(3).await.0, StatusCode::TOO_MANY_REQUESTS);
    world.forget_redis().await;
    assert_eq!(ann.stand(3).await.0, StatusCode::TOO_MANY_REQUESTS, "Postgres knows it as well");
    assert_eq!(ann.stand(2).await.0, StatusCode::CREATED);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn places_kept_through_a_declined_card_come_back_when_they_are_let_go() {
    let world = with_floor(1, 5).await;
    let ann = world.visitor();
    let (_, booking) = checked_out(&ann, 4).await;
    let (_, declined) = ann.pay(&booking, Some("tok_declined")).await;
    assert_eq!(declined["state"], "CANCELLED", "{declined}");
    until("no place is claimed", || async { stock(&world).await == (0, 0) }).await;
    assert_eq!(ann.places_left().await, 1, "they are held for another card");
    ann.lets_kept_hold_go(&declined).await;
    until("they are back", || async { ann.places_left().await == 5 }).await;
    assert_eq!(stock(&world).await, (0, 0));
    the_books_agree(&world).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn all_who_pay_at_once_for_the_last_places_get_theirs() {
    let world = with_floor(2, 8).await;
    let sold = futures::future::join_all((0..8).map(|number| {
        let visitor = world.visitor_at(number % 2);
        async move {
            let (_, booking) = checked_out(&visitor, 1).await;
            visitor.pay(&booking, Some("tok_paid")).await
        }
    }))
    .await;
    for (status, answer) in sold {
        assert_eq!((status, text(&answer["state"])), (StatusCode::OK, "CONFIRMED"), "{answer}");
    }
    assert_eq!(stock(&world).await, (0, 8));
    the_books_agree(&world).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_map_is_built_again_with_what_is_sold_and_being_paid_for() {
    let world = with_floor(1, 10).await;
    let (ann, bob) = (world.visitor(), world.visitor());
    let (_, sold) = checked_out(&ann, 3).await;
    assert_eq!(ann.pay(&sold, Some("tok_paid")).await.1["state"], "CONFIRMED");
    let (_, pending) = checked_out(&bob, 4).await;
    assert_eq!(bob.pay(&pending, None).await.1["state"], "PAYMENT_PENDING");
    assert_eq!(stock(&world).await, (4, 3));
    until("the outbox is empty", || async { world.count("SELECT count(*) FROM outbox").await <= 1 }).await;
    world.forget_redis().await;
    let (status, problem) = world.visitor().stand(4).await;
    assert_eq!((status, &problem["areas"][0]["left"]), (StatusCode::CONFLICT, &json!(3)), "{problem}");
    assert_eq!(world.visitor().stand(3).await.0, StatusCode::CREATED);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn places_granted_twice_after_a_loss_are_charged_once_and_the_map_learns_it() {
    let world = with_floor(1, 5).await;
    let (ann, bob) = (world.visitor(), world.visitor());
    let (_, pending) = checked_out(&ann, 4).await;
    assert_eq!(ann.pay(&pending, None).await.1["state"], "PAYMENT_PENDING");
    world.forget_holds(5).await;
    let (hold, booking) = checked_out(&bob, 4).await;
    let (status, refusal) = bob.pay(&booking, Some("tok_paid")).await;
    assert_eq!((status, text(&refusal["code"])), (StatusCode::CONFLICT, "seats_taken"), "{refusal}");
    assert_eq!(refusal["areas"], json!([{ "area": 0, "label": "Floor", "left": 1 }]));
    assert_eq!(world.count("SELECT count(*) FROM payments").await, 1, "nobody was charged for nothing");
    // The map tells the truth again, and one of the four is still his to buy.
    let own = format!("/api/v1/shows/{}/holds/{}", world.show, text(&hold["id"]));
    let fewer = json!({ "remove_places": [{ "area": 0, "quantity": 3 }] });
    assert_eq!(bob.call(Method::PATCH, &own, fewer).await.0, StatusCode::OK);
    assert_eq!(world.visitor().stand(1).await.0, StatusCode::CONFLICT);
    let (_, revised) = bob.book(&hold).await;
    assert_eq!(bob.pay(&revised, Some("tok_paid")).await.1["state"], "CONFIRMED");
    assert_eq!(stock(&world).await, (4, 1));
    the_books_agree(&world).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_that_ran_out_long_ago_is_taken_over_and_its_late_money_goes_back() {
    let world = with_floor(1, 5).await;
    let (ann, bob) = (world.visitor(), world.visitor());
    let (_, booking) = checked_out(&ann, 4).await;
    let (_, pending) = ann.pay(&booking, None).await;
    let long_ago = "UPDATE area_claims SET expires_at = now() - interval '2 minutes'";
    sqlx::query(long_ago).execute(&world.pg).await.expect("time passes");
    world.forget_holds(5).await;
    let (_, taken) = checked_out(&bob, 5).await;
    assert_eq!(bob.pay(&taken, Some("tok_paid")).await.1["state"], "CONFIRMED");
    let paid = ann
        .client
        .post(text(&pending["pay_url"]))
        .header("content-type", "application/x-www-form-urlencoded")
        .body("card=paid")
        .send()
        .await
        .expect("the gateway answers");
    assert_eq!(paid.status(), StatusCode::SEE_OTHER);
    let lost = ann.sees_booking(&booking, "CANCELLED").await;
    assert!(matches!(text(&lost["money"]), "REFUNDING" | "REFUNDED"), "{lost}");
    assert_eq!(stock(&world).await, (0, 5));
    the_books_agree(&world).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_table_itself_refuses_too_many_too_few_and_a_skipped_version() {
    let world = with_floor(0, 5).await;
    let (stock, step) = ("area_stock_check", "area_stock must step from version 1 to 2");
    for (wrong, why) in [
        ("UPDATE area_stock SET version = version + 1, sold = 6", stock),
        ("UPDATE area_stock SET version = version + 1, sold = 3, claimed = 3", stock),
        ("UPDATE area_stock SET version = version + 1, claimed = -1", stock),
        ("UPDATE area_stock SET sold = 1", step),
        ("UPDATE area_stock SET version = version + 2, sold = 1", step),
    ] {
        refused_with(wrong, sqlx::query(wrong).execute(&world.pg).await, CHECK_VIOLATION, why);
    }
    let right = "UPDATE area_stock SET version = version + 1, sold = 5";
    assert!(sqlx::query(right).execute(&world.pg).await.is_ok());
    world.end_despite(&["0 claimed and 5 sold, where its claims are 0 and 0"]).await;
}
