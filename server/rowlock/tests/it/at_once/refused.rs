//! What is refused has written nothing, and the hold is as it was.

use futures::future::join_all;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{WRITTEN, held};
use crate::accounts::{Browser, PASSWORD, signed_up};
use crate::cancel::books_balance;
use crate::commits::{GATHERING, with_holds};
use crate::world::{PRICE, Visitor, World, text, until};

/// That nobody pays for a hold and that it can be changed; then it is as it was.
async fn is_as_it_was(visitor: &Visitor, hold: &Value) {
    assert_eq!(visitor.held().await, *hold);
    // Nothing else is where the tests look.
    for (add, remove) in [([299].as_slice(), [].as_slice()), (&[], &[299])] {
        let (status, changed) = visitor.change(hold, add, remove).await;
        assert_eq!((status, &changed["expires_at_ms"]), (StatusCode::OK, &hold["expires_at_ms"]), "{changed}");
    }
    assert_eq!(visitor.held().await, *hold);
}

/// That an order is refused so.
async fn is_refused(visitor: &Visitor, order: &Value, expected: (u16, &str)) -> Value {
    let (status, refusal) = visitor.call(Method::POST, "/api/v1/bookings", order.clone()).await;
    assert_eq!((status.as_u16(), text(&refusal["code"])), expected, "{order}: {refusal}");
    refusal
}

async fn is_sold(visitor: &Visitor, hold: &Value) -> Value {
    let (status, paid) = visitor.buy(hold, Some("tok_paid")).await;
    assert_eq!((status, &paid["state"]), (StatusCode::CREATED, &json!("CONFIRMED")), "{paid}");
    paid
}

/// Pays for what is pending, on the gateway's page.
async fn pays_on_the_page(visitor: &Visitor, pending: &Value) {
    if pending["state"] == "PAYMENT_PENDING" {
        let page = visitor.client.post(text(&pending["pay_url"]));
        let form = page.header("content-type", "application/x-www-form-urlencoded").body("card=paid");
        assert_eq!(form.send().await.expect("the gateway answers").status(), StatusCode::SEE_OTHER);
    }
    visitor.sees_booking(pending, "CONFIRMED").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_pays_another_sum_than_they_were_told() {
    for mode in ["batched", "interactive"] {
        let world = World::start(1, &[("COMMITS", mode)]).await;
        let ann = world.visitor();
        let hold = held(&ann, &[20, 21]).await;
        let mut order = ann.order(&hold, Some("tok_paid"));
        for total in [0, 1, -2 * PRICE, PRICE, 2 * PRICE - 1, 2 * PRICE + 1, i64::MAX, i64::MIN] {
            order["pay"]["total_minor"] = total.into();
            let refusal = is_refused(&ann, &order, (409, "price_changed")).await;
            assert!(text(&refusal["detail"]).contains("25"), "it says what it costs: {refusal}");
        }
        assert_eq!(world.count(WRITTEN).await, 0, "{mode}");
        is_as_it_was(&ann, &hold).await;
        // The key that was refused is free.
        for (total, expected) in [(1, StatusCode::CONFLICT), (2 * PRICE, StatusCode::CREATED)] {
            order["pay"]["total_minor"] = total.into();
            let (status, told) = ann.call_with_key(Method::POST, "/api/v1/bookings", order.clone(), "buy").await;
            assert_eq!(status, expected, "{mode}: {told}");
        }
        assert_eq!(world.count("SELECT sum(amount_minor)::bigint FROM payments").await, 2 * PRICE);
        books_balance(&world).await;
        world.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_price_that_changes_after_the_hold_is_told_and_not_charged() {
    let mut world = World::start(1, &[]).await;
    let ann = world.visitor();
    let hold = held(&ann, &[20, 21]).await;
    // Checked out at the old price, which a booking keeps until it is checked out again.
    let (_, booking) = ann.book(&hold).await;
    let dearer = sqlx::query("UPDATE shows SET prices = $1").bind(json!({ "gold": 2 * PRICE }));
    dearer.execute(&world.pg).await.expect("the price is changed");
    // The other server believes what it knows of the show for a while.
    let fresh = world.add_server(&[]).await;
    let ann = Visitor { base: world.servers[fresh].url.clone(), ..ann };
    is_refused(&ann, &ann.order(&hold, Some("tok_paid")), (409, "price_changed")).await;
    let seen = ann.booking(&booking).await;
    let agreed = (text(&seen["state"]), &seen["total"]["minor"]);
    assert_eq!(agreed, ("SEATS_LOCKED", &json!(2 * PRICE)), "as it was: {seen}");
    let now = ann.held().await;
    assert_eq!(now["total"]["minor"], 4 * PRICE);
    let paid = is_sold(&ann, &now).await;
    assert_eq!((&paid["id"], &paid["total"]["minor"]), (&booking["id"], &json!(4 * PRICE)));
    assert_eq!(world.count("SELECT sum(amount_minor)::bigint FROM payments").await, 4 * PRICE);
    books_balance(&world).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_is_read_strictly() {
    let world = World::start(1, &[]).await;
    let ann = world.visitor();
    let hold = held(&ann, &[5]).await;
    let right = ann.order(&hold, Some("tok_paid"));
    let pay = |pay: Value| {
        let mut order = right.clone();
        order["pay"] = pay;
        order
    };
    let token = |token: &str| pay(json!({ "total_minor": PRICE, "payment_token": token }));
    let mut unknown = right.clone();
    unknown["paid"] = true.into();
    let mut nobody = right.clone();
    nobody["buyer"]["name"] = "".into();
    for (order, expected) in [
        (pay(json!({})), (400, "malformed")),
        (pay(json!({ "payment_token": "tok_paid" })), (400, "malformed")),
        (pay(json!({ "total_minor": null })), (400, "malformed")),
        (pay(json!({ "total_minor": "1250" })), (400, "malformed")),
        (pay(json!({ "total_minor": 1250.5 })), (400, "malformed")),
        (pay(json!({ "total_minor": PRICE, "currency": "EUR" })), (400, "malformed")),
        (pay(json!({ "total_minor": PRICE, "payment_token": 1 })), (400, "malformed")),
        (pay(json!(true)), (400, "malformed")),
        (unknown, (400, "malformed")),
        (token(""), (400, "malformed")),
        (token("a\u{0}b"), (400, "malformed")),
        (token("a b"), (400, "malformed")),
        (token("tök"), (400, "malformed")),
        (token(&"t".repeat(256)), (400, "malformed")),
        (nobody, (400, "person_invalid")),
    ] {
        is_refused(&ann, &order, expected).await;
    }
    assert_eq!(world.count(WRITTEN).await, 0);
    is_as_it_was(&ann, &hold).await;
    // A key that belongs to another request.
    let (status, _) = ann.call_with_key(Method::POST, "/api/v1/bookings", ann.wish(&hold), "used").await;
    assert_eq!(status, StatusCode::CREATED);
    let (status, refusal) = ann.call_with_key(Method::POST, "/api/v1/bookings", right.clone(), "used").await;
    assert_eq!((status.as_u16(), text(&refusal["code"])), (422, "key_reused"));
    assert!(!ann.held().await["paying"].as_bool().expect("yes or no"));
    let paid = is_sold(&ann, &hold).await;
    // What nobody can read is not answered with what was bought.
    for order in [token(""), pay(json!({}))] {
        is_refused(&ann, &order, (400, "malformed")).await;
    }
    let (status, again) = ann.buy(&hold, None).await;
    assert_eq!((status, &again["id"]), (StatusCode::OK, &paid["id"]), "{again}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_lock_sells_nothing_twice_and_costs_only_the_seat_it_was_about() {
    for mode in ["batched", "interactive"] {
        let world = World::start(1, &[("COMMITS", mode)]).await;
        let (ann, bob) = (world.visitor(), world.visitor());
        is_sold(&ann, &held(&ann, &[100]).await).await;
        ann.sees(100, '2').await;
        until("the outbox is empty", || async { world.count("SELECT count(*) FROM outbox").await == 0 }).await;
        world.forget_lock(100).await;
        let hold = held(&bob, &[100, 101]).await;
        let before = world.count(WRITTEN).await;
        let refusal = is_refused(&bob, &bob.order(&hold, Some("tok_paid")), (409, "seats_taken")).await;
        assert_eq!(refusal["seats"], json!([{ "seat": 100, "label": "F1", "state": "BOOKED" }]));
        assert_eq!(world.count(WRITTEN).await, before, "{mode}: nothing was written");
        // The map tells the truth again, and Bob's other seat is still his to buy.
        bob.sees(100, '2').await;
        bob.sees(101, '1').await;
        assert_eq!(world.visitor().hold(&[100]).await.0, StatusCode::CONFLICT);
        let left = bob.held().await;
        let told = (&left["id"], &left["total"]["minor"], &left["paying"]);
        assert_eq!(told, (&hold["id"], &json!(PRICE), &json!(false)), "{mode}: {left}");
        is_refused(&bob, &bob.order(&hold, Some("tok_paid")), (409, "price_changed")).await;
        is_sold(&bob, &left).await;
        assert_eq!(
            world.count("SELECT count(*) FROM payments").await,
            2,
            "nobody was charged for what they did not get"
        );
        books_balance(&world).await;
        world.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_lock_of_a_booking_that_was_checked_out_leaves_it_as_it_was() {
    let world = World::start(1, &[]).await;
    let (ann, bob) = (world.visitor(), world.visitor());
    is_sold(&ann, &held(&ann, &[100]).await).await;
    until("the outbox is empty", || async { world.count("SELECT count(*) FROM outbox").await == 0 }).await;
    let hold = held(&bob, &[101]).await;
    let (_, booking) = bob.book(&hold).await;
    world.forget_lock(100).await;
    let (status, hold) = bob.change(&hold, &[100], &[]).await;
    assert_eq!(status, StatusCode::OK, "Redis knows no better: {hold}");
    let before = world.count(WRITTEN).await;
    is_refused(&bob, &bob.order(&hold, Some("tok_paid")), (409, "seats_taken")).await;
    assert_eq!(world.count(WRITTEN).await, before);
    let seen = bob.booking(&booking).await;
    assert_eq!((text(&seen["state"]), &seen["total"]["minor"]), ("SEATS_LOCKED", &json!(PRICE)), "{seen}");
    let paid = is_sold(&bob, &bob.held().await).await;
    assert_eq!((&paid["id"], &paid["seats"]), (&booking["id"], &booking["seats"]));
    books_balance(&world).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_gateway_is_away_nothing_is_written_and_the_seats_are_kept() {
    let nobody = format!("http://{}", crate::ports::free());
    let world = World::start(1, &[("SIMULATOR_URL", &nobody)]).await;
    let (mut seats, mut found_out) = (0.., 0);
    let (ann, hold) = loop {
        let visitor = world.visitor();
        let hold = held(&visitor, &[seats.next().expect("a seat")]).await;
        let before = world.count("SELECT count(*) FROM bookings").await;
        let (status, told) = visitor.buy(&hold, Some("tok_paid")).await;
        if status == StatusCode::SERVICE_UNAVAILABLE {
            assert_eq!(told["code"], "gateway_unavailable", "{told}");
            assert_eq!(world.count("SELECT count(*) FROM bookings").await, before, "no booking");
            break (visitor, hold);
        }
        // Before anybody knew that it is away.
        assert_eq!((status, text(&told["state"])), (StatusCode::CREATED, "PAYMENT_PENDING"), "{told}");
        found_out += 1;
        assert!(found_out < 50, "the first few find out, the others are told at once");
    };
    is_as_it_was(&ann, &hold).await;
    assert_eq!(world.count("SELECT count(*) FROM idempotency_keys").await, found_out);
    assert_eq!(world.count("SELECT count(*) FROM payments").await, found_out);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_limits_of_a_person_and_of_a_card_are_told_before_anything_is_written() {
    let world = World::start(1, &[]).await;
    let limit = sqlx::query("UPDATE shows SET per_instrument = 9").execute(&world.pg).await;
    limit.expect("it is set");
    let (ann, bob) = (world.visitor(), world.visitor());
    is_sold(&bob, &held(&bob, &[0, 1, 2, 3, 4, 5, 6, 7]).await).await;
    until("the map knows", || async { world.count("SELECT count(*) FROM outbox").await == 0 }).await;
    let hold = held(&ann, &[10, 11, 12]).await;
    // Redis knows nothing of it: those eight were Ann's.
    let secret = ann.cookie.split_once('=').expect("a cookie").1;
    let hers = "UPDATE bookings SET version = version + 1,
                    owner = left(encode(sha256($1::text::bytea), 'hex'), 32)";
    sqlx::query(hers).bind(secret).execute(&world.pg).await.expect("the owner is changed");
    let before = world.count(WRITTEN).await;
    is_refused(&ann, &ann.order(&hold, Some("tok_paid@1")), (429, "person_limit")).await;
    assert_eq!(world.count(WRITTEN).await, before);
    is_as_it_was(&ann, &hold).await;
    let (_, fewer) = ann.change(&hold, &[], &[12]).await;
    let (status, paid) = ann.buy(&fewer, Some("tok_paid@1")).await;
    assert_eq!((status, &paid["state"]), (StatusCode::CREATED, &json!("CONFIRMED")), "{paid}");
    // A card that has paid for eight.
    let (cem, dan) = (world.visitor(), world.visitor());
    let (status, paid) = cem.buy(&held(&cem, &[40, 41, 42, 43, 44, 45, 46, 47]).await, Some("tok_paid@7.a")).await;
    assert_eq!((status, text(&paid["state"])), (StatusCode::CREATED, "CONFIRMED"), "{paid}");
    until("the outbox is empty", || async { world.count("SELECT count(*) FROM outbox").await == 0 }).await;
    let hold = held(&dan, &[50, 51]).await;
    let before = world.count(WRITTEN).await;
    is_refused(&dan, &dan.order(&hold, Some("tok_paid@7.b")), (429, "instrument_limit")).await;
    assert_eq!(world.count(WRITTEN).await, before);
    is_as_it_was(&dan, &hold).await;
    let (status, paid) = dan.buy(&hold, Some("tok_paid@8")).await;
    assert_eq!((status, text(&paid["state"])), (StatusCode::CREATED, "CONFIRMED"), "{paid}");
    world.end().await;
}

/// A guest with a hold, who has an account; and a browser with a copy of their cookie.
async fn a_guest_who_is_copied(world: &World) -> (Browser, Browser, Value) {
    signed_up(world, "ann@example.org").await;
    let mut phone = Browser::new(world);
    phone.put_cookie("rowlock_visitor", &platform::ids::new_id().simple().to_string());
    let mut copy = Browser::new(world);
    copy.put_cookie("rowlock_visitor", phone.cookie("rowlock_visitor").expect("a guest"));
    let hold = held(&phone.visitor(), &[1]).await;
    (phone, copy, hold)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_of_a_cookie_from_before_signing_in_is_not_told_what_was_bought() {
    let world = World::start(1, &[]).await;
    let (mut phone, copy, hold) = a_guest_who_is_copied(&world).await;
    assert_eq!(phone.log_in("ann@example.org", PASSWORD).await.0, StatusCode::OK);
    // Neither while it is held, nor while it is paid for, nor when it is hers.
    let (ann, eve) = (phone.visitor(), copy.visitor());
    for step in 0..3 {
        let (status, told) = eve.buy(&hold, Some("tok_paid")).await;
        assert!(matches!(status, StatusCode::NOT_FOUND | StatusCode::GONE), "{step}: {status} {told}");
        match step {
            0 => assert_eq!(ann.buy(&hold, None).await.1["state"], "PAYMENT_PENDING"),
            1 => {
                let (_, pending) = ann.buy(&hold, None).await;
                pays_on_the_page(&ann, &pending).await;
            }
            _ => {}
        }
    }
    assert_eq!(world.count("SELECT count(*) FROM bookings").await, 1);
    world.end().await;
}

/// Bookings that bear her name.
const EVES: &str = "SELECT count(*) FROM bookings WHERE buyer_email = 'eve@example.org'";

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_of_a_cookie_from_before_signing_in_checks_nothing_out() {
    for mode in ["batched", "interactive"] {
        let world = World::start(1, &[("COMMITS", mode)]).await;
        let (mut phone, copy, hold) = a_guest_who_is_copied(&world).await;
        // Until she signs in they are the same person.
        let (status, booking) = copy.visitor().book(&hold).await;
        assert_eq!(status, StatusCode::CREATED, "{mode}: {booking}");
        assert_eq!(phone.log_in("ann@example.org", PASSWORD).await.0, StatusCode::OK);
        let (ann, eve) = (phone.visitor(), copy.visitor());
        let mut wish = eve.wish(&hold);
        wish["buyer"] = json!({ "name": "Eve", "email": "eve@example.org" });
        for step in ["held", "being paid for", "paid for"] {
            let (status, told) = eve.call(Method::POST, "/api/v1/bookings", wish.clone()).await;
            // Once it is sold there may be no hold any more to check out.
            let is_over = step == "paid for" && status == StatusCode::GONE;
            assert!(status == StatusCode::NOT_FOUND || is_over, "{mode}, {step}: {status} {told}");
            assert_eq!(world.count(EVES).await, 0, "{mode}, {step}");
            let (_, hers) = ann.buy(&hold, None).await;
            assert_eq!(hers["id"], booking["id"], "{mode}, {step}: {hers}");
            if step == "held" {
                assert_eq!(hers["state"], "PAYMENT_PENDING", "{mode}: {hers}");
            } else {
                pays_on_the_page(&ann, &hers).await;
            }
        }
        world.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_pays_at_a_server_that_has_not_heard_that_the_show_is_off_or_moves() {
    // Sent together, they are in one batch.
    let world = World::start(1, &[GATHERING]).await;
    let buyers = with_holds(&world, 3).await;
    for off in ["called_off = true, is_moving = false", "called_off = false, is_moving = true"] {
        let told = format!("UPDATE shows SET {off}");
        sqlx::query(sqlx::AssertSqlSafe(told)).execute(&world.pg).await.expect("the show is told so");
        let orders = buyers.iter().map(|(buyer, hold)| buyer.buy(hold, Some("tok_paid")));
        for (status, refusal) in join_all(orders).await {
            assert_eq!((status.as_u16(), &refusal["code"]), (409, &json!("sales_closed")), "{off}: {refusal}");
            assert!(text(&refusal["detail"]).contains("Nothing was charged"), "Postgres has said it: {refusal}");
        }
        assert_eq!(world.count(WRITTEN).await, 0, "{off}");
        for (buyer, hold) in &buyers {
            assert_eq!(buyer.held().await, *hold, "{off}");
        }
    }
    let on = sqlx::query("UPDATE shows SET called_off = false, is_moving = false").execute(&world.pg).await;
    on.expect("it takes place where it was");
    for (buyer, hold) in &buyers {
        is_sold(buyer, hold).await;
    }
    world.end().await;
}
