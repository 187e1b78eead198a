//! General admission: places of an area are held, paid for and released like seats, and never oversold.

use crate::prelude::*;

async fn world_with_area(servers: usize, capacity: i32) -> World {
    let world = World::start(servers, &[]).await;
    world.open_floor(capacity).await;
    world
}

async fn check_out(visitor: &Visitor, quantity: u32) -> (Value, Value) {
    let hold = expect_answer(visitor.hold_places(quantity).await, StatusCode::CREATED);
    let booking = expect_answer(visitor.book(&hold).await, StatusCode::CREATED);
    (hold, booking)
}

async fn stock(world: &World) -> (i32, i32) {
    sqlx::query_as("SELECT claimed, sold FROM area_stock").fetch_one(&world.pg).await.expect("a row")
}

async fn stock_matches_claims(world: &World) {
    let sql = "SELECT coalesce(sum(quantity) FILTER (WHERE state = 'claimed'), 0),
                      coalesce(sum(quantity) FILTER (WHERE state = 'sold'), 0) FROM area_claims";
    let claims: (i64, i64) = sqlx::query_as(sql).fetch_one(&world.pg).await.expect("sums");
    let (claimed, sold) = stock(world).await;
    assert_eq!((i64::from(claimed), i64::from(sold)), claims);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_place_becomes_a_ticket_beside_seats() {
    let world = world_with_area(1, 5).await;
    let ann = world.visitor();
    let (_, plan) = ann.get(&format!("/api/v1/shows/{}/plan", world.show)).await;
    assert_eq!((&plan["areas"][0]["name"], &plan["areas"][0]["capacity"]), (&json!("Floor"), &json!(5)));
    let path = format!("/api/v1/shows/{}/holds", world.show);
    let (status, hold) = ann.call(Method::POST, &path, json!({ "seats": [7], "area": 0, "quantity": 3 })).await;
    assert_eq!((status, &hold["total"]["minor"]), (StatusCode::CREATED, &json!(4 * PRICE)), "{hold}");
    let line = json!([{ "area": 0, "label": "Floor", "category": "Gold", "quantity": 3,
                        "price": { "minor": PRICE, "currency": "EUR" } }]);
    assert_eq!(hold["places"], line);
    wait_until("the map shows two places left", || async { ann.places_left().await == 2 }).await;
    let (_, booking) = ann.book(&hold).await;
    assert_eq!((&booking["places"], &booking["total"]["minor"]), (&line, &json!(4 * PRICE)));
    let paid = expect_state(ann.pay(&booking, Some("tok_paid")).await, StatusCode::OK, "CONFIRMED");
    assert_eq!(stock(&world).await, (0, 3));
    assert_eq!(world.count("SELECT count(*) FROM place_tickets").await, 3);
    assert_eq!(world.count("SELECT count(*) FROM tickets").await, 1);
    world.wait_for_empty_outbox().await;
    assert_eq!((ann.places_left().await, &ann.seat_states().await[7..8]), (json!(2), "2"));
    let (_, page) = ann.raw(Method::GET, text(&paid["ticket_url"]), Value::Null, "page").await;
    assert_eq!(page.matches("data-testid=\"ticket\"").count(), 4, "one ticket a seat or place");
    let (_, listed) = ann.get(&format!("/api/v1/shows/{}", world.show)).await;
    assert_eq!((&listed["seat_count"], &listed["seats_left"]), (&json!(305), &json!(301)));
}

#[tokio::test(flavor = "multi_thread")]
async fn five_of_twelve_concurrent_holds_get_a_place_and_others_get_the_count_left() {
    let world = world_with_area(2, 5).await;
    let answers = join_all((0..12).map(|number| {
        let visitor = world.visitor_at(number % 2);
        async move { visitor.hold_places(1).await }
    }))
    .await;
    let refused: Vec<_> = answers.iter().filter(|(status, _)| *status == StatusCode::CONFLICT).collect();
    assert_eq!((answers.len() - refused.len(), refused.len()), (5, 7), "{answers:?}");
    for (_, problem) in refused {
        assert_eq!(problem["code"], "seats_taken");
        assert_eq!(problem["areas"], json!([{ "area": 0, "label": "Floor", "left": 0 }]));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn holds_of_places_are_validated_like_holds_of_seats() {
    let world = world_with_area(1, 50).await;
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
    let (_, hold) = ann.hold_places(6).await;
    let own = format!("{path}/{}", text(&hold["id"]));
    let twice = json!({ "add_places": [{ "area": 0, "quantity": 1 }, { "area": 0, "quantity": 1 }] });
    assert_eq!(ann.call(Method::PATCH, &own, twice).await.1["code"], "seat_twice");
    let more = json!({ "add_places": [{ "area": 0, "quantity": 5 }] });
    expect_problem(ann.call(Method::PATCH, &own, more).await, StatusCode::TOO_MANY_REQUESTS, "person_limit");
    let swap = json!({ "add": [4], "remove_places": [{ "area": 0, "quantity": 4 }] });
    let (status, changed) = ann.call(Method::PATCH, &own, swap).await;
    assert_eq!((status, &changed["places"][0]["quantity"]), (StatusCode::OK, &json!(2)));
    let rest = json!({ "remove": [4], "remove_places": [{ "area": 0, "quantity": 2 }] });
    assert_eq!(ann.call(Method::PATCH, &own, rest).await.0, StatusCode::NO_CONTENT);
    wait_until("all places are free again", || async { ann.places_left().await == 50 }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bought_places_count_towards_the_person_limit() {
    let world = world_with_area(1, 50).await;
    let ann = world.visitor();
    let (_, booking) = check_out(&ann, 8).await;
    assert_eq!(ann.pay(&booking, Some("tok_paid")).await.1["state"], "CONFIRMED");
    world.wait_for_empty_outbox().await;
    assert_eq!(ann.hold_places(3).await.0, StatusCode::TOO_MANY_REQUESTS);
    world.delete_redis_keys().await;
    assert_eq!(ann.hold_places(3).await.0, StatusCode::TOO_MANY_REQUESTS, "Postgres counts them too");
    assert_eq!(ann.hold_places(2).await.0, StatusCode::CREATED);
}

#[tokio::test(flavor = "multi_thread")]
async fn places_kept_after_a_declined_card_are_freed_on_release() {
    let world = world_with_area(1, 5).await;
    let ann = world.visitor();
    let (_, booking) = check_out(&ann, 4).await;
    let declined = expect_state(ann.pay(&booking, Some("tok_declined")).await, StatusCode::OK, "CANCELLED");
    wait_until("no place is claimed", || async { stock(&world).await == (0, 0) }).await;
    assert_eq!(ann.places_left().await, 1, "the places are held for another payment attempt");
    ann.release_kept_hold(&declined).await;
    wait_until("the places are free again", || async { ann.places_left().await == 5 }).await;
    assert_eq!(stock(&world).await, (0, 0));
    stock_matches_claims(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_payments_for_the_last_places_all_succeed() {
    let world = world_with_area(2, 8).await;
    let sold = join_all((0..8).map(|number| {
        let visitor = world.visitor_at(number % 2);
        async move {
            let (_, booking) = check_out(&visitor, 1).await;
            visitor.pay(&booking, Some("tok_paid")).await
        }
    }))
    .await;
    for (status, answer) in sold {
        assert_eq!((status, text(&answer["state"])), (StatusCode::OK, "CONFIRMED"), "{answer}");
    }
    assert_eq!(stock(&world).await, (0, 8));
    stock_matches_claims(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_map_is_rebuilt_from_sold_and_claimed_places() {
    let world = world_with_area(1, 10).await;
    let (ann, bob) = (world.visitor(), world.visitor());
    let (_, sold) = check_out(&ann, 3).await;
    assert_eq!(ann.pay(&sold, Some("tok_paid")).await.1["state"], "CONFIRMED");
    let (_, pending) = check_out(&bob, 4).await;
    assert_eq!(bob.pay(&pending, None).await.1["state"], "PAYMENT_PENDING");
    assert_eq!(stock(&world).await, (4, 3));
    wait_until("the outbox is empty", || async { world.count("SELECT count(*) FROM outbox").await <= 1 }).await;
    world.delete_redis_keys().await;
    let (status, problem) = world.visitor().hold_places(4).await;
    assert_eq!((status, &problem["areas"][0]["left"]), (StatusCode::CONFLICT, &json!(3)), "{problem}");
    assert_eq!(world.visitor().hold_places(3).await.0, StatusCode::CREATED);
}

#[tokio::test(flavor = "multi_thread")]
async fn places_granted_twice_after_a_loss_are_charged_once_and_the_map_is_repaired() {
    let world = world_with_area(1, 5).await;
    let (ann, bob) = (world.visitor(), world.visitor());
    let (_, pending) = check_out(&ann, 4).await;
    assert_eq!(ann.pay(&pending, None).await.1["state"], "PAYMENT_PENDING");
    world.delete_holds(5).await;
    let (hold, booking) = check_out(&bob, 4).await;
    let refusal = expect_problem(bob.pay(&booking, Some("tok_paid")).await, StatusCode::CONFLICT, "seats_taken");
    assert_eq!(refusal["areas"], json!([{ "area": 0, "label": "Floor", "left": 1 }]));
    assert_eq!(world.count("SELECT count(*) FROM payments").await, 1, "the refused payment is not charged");
    // The map is correct again, and one of the four places is still free for him.
    let own = format!("/api/v1/shows/{}/holds/{}", world.show, text(&hold["id"]));
    let fewer = json!({ "remove_places": [{ "area": 0, "quantity": 3 }] });
    assert_eq!(bob.call(Method::PATCH, &own, fewer).await.0, StatusCode::OK);
    assert_eq!(world.visitor().hold_places(1).await.0, StatusCode::CONFLICT);
    let (_, revised) = bob.book(&hold).await;
    assert_eq!(bob.pay(&revised, Some("tok_paid")).await.1["state"], "CONFIRMED");
    assert_eq!(stock(&world).await, (4, 1));
    stock_matches_claims(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn expired_claim_is_taken_over_and_its_late_payment_is_refunded() {
    let world = world_with_area(1, 5).await;
    let (ann, bob) = (world.visitor(), world.visitor());
    let (_, booking) = check_out(&ann, 4).await;
    let (_, pending) = ann.pay(&booking, None).await;
    let long_ago = "UPDATE area_claims SET expires_at = now() - interval '2 minutes'";
    world.execute(long_ago).await;
    world.delete_holds(5).await;
    let (_, taken) = check_out(&bob, 5).await;
    assert_eq!(bob.pay(&taken, Some("tok_paid")).await.1["state"], "CONFIRMED");
    let paid = ann.post_form(text(&pending["pay_url"]), "card=paid").await;
    assert_eq!(paid.status(), StatusCode::SEE_OTHER);
    let lost = ann.wait_for_booking(&booking, "CANCELLED").await;
    assert!(matches!(text(&lost["money"]), "REFUNDING" | "REFUNDED"), "{lost}");
    assert_eq!(stock(&world).await, (0, 5));
    stock_matches_claims(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn area_stock_table_rejects_overselling_negatives_and_skipped_versions() {
    let world = world_with_area(0, 5).await;
    let (stock, step) = ("area_stock_check", "area_stock must step from version 1 to 2");
    for (wrong, why) in [
        ("UPDATE area_stock SET version = version + 1, sold = 6", stock),
        ("UPDATE area_stock SET version = version + 1, sold = 3, claimed = 3", stock),
        ("UPDATE area_stock SET version = version + 1, claimed = -1", stock),
        ("UPDATE area_stock SET sold = 1", step),
        ("UPDATE area_stock SET version = version + 2, sold = 1", step),
    ] {
        assert_refused(wrong, sqlx::query(wrong).execute(&world.pg).await, CHECK_VIOLATION, why);
    }
    let right = "UPDATE area_stock SET version = version + 1, sold = 5";
    assert!(sqlx::query(right).execute(&world.pg).await.is_ok());
    world.end_with_known_findings(&["0 claimed and 5 sold, but its claims sum up to 0 and 0"]).await;
}
