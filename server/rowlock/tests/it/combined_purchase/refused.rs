//! A refused request writes nothing and leaves the hold unchanged.

use super::{WRITTEN, hold_seats};
use crate::accounts::guest_with_copied_cookie;
use crate::commits::{SLOW_GATHER, with_holds};
use crate::prelude::*;

/// Asserts that the hold is unchanged, is not being paid for, and can be modified.
async fn assert_unchanged(visitor: &Visitor, hold: &Value) {
    assert_eq!(visitor.current_hold().await, *hold);
    // The other tests use no seat 299.
    for (add, remove) in [([299].as_slice(), [].as_slice()), (&[], &[299])] {
        let (status, changed) = visitor.change(hold, add, remove).await;
        assert_eq!((status, &changed["expires_at_ms"]), (StatusCode::OK, &hold["expires_at_ms"]), "{changed}");
    }
    assert_eq!(visitor.current_hold().await, *hold);
}

/// Choices for late payments: a purchase with one is committed in a separate transaction, others in a batch.
const IF_LATE: [Option<&str>; 2] = [None, Some("refund")];

fn purchase_with(visitor: &Visitor, hold: &Value, if_late: Option<&str>) -> Value {
    let mut order = visitor.purchase_body(hold, Some("tok_paid"));
    if let Some(choice) = if_late {
        order["if_late"] = choice.into();
    }
    order
}

async fn assert_refused(visitor: &Visitor, order: &Value, expected: (u16, &str)) -> Value {
    let (status, refusal) = visitor.call(Method::POST, "/api/v1/bookings", order.clone()).await;
    assert_eq!((status.as_u16(), text(&refusal["code"])), expected, "{order}: {refusal}");
    refusal
}

async fn assert_sold(visitor: &Visitor, hold: &Value) -> Value {
    expect_state(visitor.buy(hold, Some("tok_paid")).await, StatusCode::CREATED, "CONFIRMED")
}

async fn pay_on_page(visitor: &Visitor, pending: &Value) {
    if pending["state"] == "PAYMENT_PENDING" {
        let paid = visitor.post_form(text(&pending["pay_url"]), "card=paid").await;
        assert_eq!(paid.status(), StatusCode::SEE_OTHER);
    }
    visitor.wait_for_booking(pending, "CONFIRMED").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn payment_of_another_total_is_refused() {
    for if_late in IF_LATE {
        let (world, ann) = World::with_visitor(1, &[]).await;
        let hold = hold_seats(&ann, &[20, 21]).await;
        let mut order = purchase_with(&ann, &hold, if_late);
        for total in [0, 1, -2 * PRICE, PRICE, 2 * PRICE - 1, 2 * PRICE + 1, i64::MAX, i64::MIN] {
            order["pay"]["total_minor"] = total.into();
            let refusal = assert_refused(&ann, &order, (409, "price_changed")).await;
            assert!(text(&refusal["detail"]).contains("25"), "the detail names the price: {refusal}");
        }
        assert_eq!(world.count(WRITTEN).await, 0);
        assert_unchanged(&ann, &hold).await;
        // The key of the refused request can be reused.
        for (total, expected) in [(1, StatusCode::CONFLICT), (2 * PRICE, StatusCode::CREATED)] {
            order["pay"]["total_minor"] = total.into();
            let (status, answer) = ann.call_with_key(Method::POST, "/api/v1/bookings", order.clone(), "buy").await;
            assert_eq!(status, expected, "{answer}");
        }
        assert_eq!(world.count("SELECT sum(amount_minor)::bigint FROM payments").await, 2 * PRICE);
        world.wait_until_books_balance().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn price_change_after_the_hold_is_reported_and_not_charged() {
    let (mut world, ann) = World::with_visitor(1, &[]).await;
    let hold = hold_seats(&ann, &[20, 21]).await;
    // Checked out at the old price, which a booking keeps until the next checkout.
    let (_, booking) = ann.book(&hold).await;
    world.run(sqlx::query("UPDATE shows SET prices = $1").bind(json!({ "gold": 2 * PRICE }))).await;
    // The other server caches the show for a while.
    let fresh = world.add_server(&[]).await;
    let ann = ann.moved_to(&world, fresh);
    assert_refused(&ann, &ann.purchase_body(&hold, Some("tok_paid")), (409, "price_changed")).await;
    let seen = ann.booking(&booking).await;
    let agreed = (text(&seen["state"]), &seen["total"]["minor"]);
    assert_eq!(agreed, ("SEATS_LOCKED", &json!(2 * PRICE)), "unchanged: {seen}");
    let now = ann.current_hold().await;
    assert_eq!(now["total"]["minor"], 4 * PRICE);
    let paid = assert_sold(&ann, &now).await;
    assert_eq!((&paid["id"], &paid["total"]["minor"]), (&booking["id"], &json!(4 * PRICE)));
    assert_eq!(world.count("SELECT sum(amount_minor)::bigint FROM payments").await, 4 * PRICE);
    world.wait_until_books_balance().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn purchase_body_is_validated_strictly() {
    let (world, ann) = World::with_visitor(1, &[]).await;
    let hold = hold_seats(&ann, &[5]).await;
    let right = ann.purchase_body(&hold, Some("tok_paid"));
    let pay = |pay: Value| {
        let mut order = right.clone();
        order["pay"] = pay;
        order
    };
    let token = |token: &str| pay(json!({ "total_minor": PRICE, "payment_token": token }));
    let mut unknown = right.clone();
    unknown["paid"] = true.into();
    let mut no_name = right.clone();
    no_name["buyer"]["name"] = "".into();
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
        (no_name, (400, "person_invalid")),
    ] {
        assert_refused(&ann, &order, expected).await;
    }
    assert_eq!(world.count(WRITTEN).await, 0);
    assert_unchanged(&ann, &hold).await;
    let used = ann.call_with_key(Method::POST, "/api/v1/bookings", ann.checkout_body(&hold), "used").await;
    assert_eq!(used.0, StatusCode::CREATED);
    let (status, refusal) = ann.call_with_key(Method::POST, "/api/v1/bookings", right.clone(), "used").await;
    assert_eq!((status.as_u16(), text(&refusal["code"])), (422, "key_reused"));
    assert!(!ann.current_hold().await["paying"].as_bool().expect("yes or no"));
    let paid = assert_sold(&ann, &hold).await;
    // A malformed request is not answered with the sale.
    for order in [token(""), pay(json!({}))] {
        assert_refused(&ann, &order, (400, "malformed")).await;
    }
    let (status, again) = ann.buy(&hold, None).await;
    assert_eq!((status, &again["id"]), (StatusCode::OK, &paid["id"]), "{again}");
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_lock_sells_no_seat_twice_and_costs_only_that_seat() {
    for if_late in IF_LATE {
        let (world, [ann, bob]) = World::with_visitors(1, &[]).await;
        assert_sold(&ann, &hold_seats(&ann, &[100]).await).await;
        ann.wait_for_seat(100, '2').await;
        world.wait_for_empty_outbox().await;
        world.mark_seat_free_in_redis(100).await;
        let hold = hold_seats(&bob, &[100, 101]).await;
        let order = purchase_with(&bob, &hold, if_late);
        let before = world.count(WRITTEN).await;
        let refusal = assert_refused(&bob, &order, (409, "seats_taken")).await;
        assert_eq!(refusal["seats"], json!([{ "seat": 100, "label": "F1", "state": "BOOKED" }]));
        assert_eq!(world.count(WRITTEN).await, before, "nothing was written");
        // The map is correct again, and Bob can still buy his other seat.
        bob.wait_for_seat(100, '2').await;
        bob.wait_for_seat(101, '1').await;
        assert_eq!(world.visitor().hold(&[100]).await.0, StatusCode::CONFLICT);
        let left = bob.current_hold().await;
        let answer = (&left["id"], &left["total"]["minor"], &left["paying"]);
        assert_eq!(answer, (&hold["id"], &json!(PRICE), &json!(false)), "{left}");
        assert_refused(&bob, &order, (409, "price_changed")).await;
        assert_sold(&bob, &left).await;
        assert_eq!(world.count("SELECT count(*) FROM payments").await, 2, "a refused payment is not charged");
        world.wait_until_books_balance().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_lock_of_a_checked_out_booking_leaves_it_unchanged() {
    let (world, [ann, bob]) = World::with_visitors(1, &[]).await;
    assert_sold(&ann, &hold_seats(&ann, &[100]).await).await;
    world.wait_for_empty_outbox().await;
    let (hold, booking) = bob.check_out(&[101]).await;
    world.mark_seat_free_in_redis(100).await;
    let (status, hold) = bob.change(&hold, &[100], &[]).await;
    assert_eq!(status, StatusCode::OK, "Redis has lost the sale: {hold}");
    let before = world.count(WRITTEN).await;
    assert_refused(&bob, &bob.purchase_body(&hold, Some("tok_paid")), (409, "seats_taken")).await;
    assert_eq!(world.count(WRITTEN).await, before);
    let seen = bob.booking(&booking).await;
    assert_eq!((text(&seen["state"]), &seen["total"]["minor"]), ("SEATS_LOCKED", &json!(PRICE)), "{seen}");
    let paid = assert_sold(&bob, &bob.current_hold().await).await;
    assert_eq!((&paid["id"], &paid["seats"]), (&booking["id"], &booking["seats"]));
    world.wait_until_books_balance().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unavailable_gateway_writes_nothing_and_keeps_the_seats() {
    let no_name = format!("http://{}", crate::replicas::free_address());
    let world = World::start(1, &[("SIMULATOR_URL", &no_name)]).await;
    let (mut seats, mut calls_before_open) = (0.., 0);
    let (ann, hold) = loop {
        let visitor = world.visitor();
        let hold = hold_seats(&visitor, &[seats.next().expect("a seat")]).await;
        let before = world.count("SELECT count(*) FROM bookings").await;
        let (status, answer) = visitor.buy(&hold, Some("tok_paid")).await;
        if status == StatusCode::SERVICE_UNAVAILABLE {
            assert_eq!(answer["code"], "gateway_unavailable", "{answer}");
            assert_eq!(world.count("SELECT count(*) FROM bookings").await, before, "no booking");
            break (visitor, hold);
        }
        // The circuit breaker is still closed.
        assert_eq!((status, text(&answer["state"])), (StatusCode::CREATED, "PAYMENT_PENDING"), "{answer}");
        calls_before_open += 1;
        assert!(calls_before_open < 50, "the breaker opens after the first few");
    };
    assert_unchanged(&ann, &hold).await;
    assert_eq!(world.count("SELECT count(*) FROM idempotency_keys").await, calls_before_open);
    assert_eq!(world.count("SELECT count(*) FROM payments").await, calls_before_open);
}

#[tokio::test(flavor = "multi_thread")]
async fn person_and_card_limits_are_checked_before_any_write() {
    let world = World::start(1, &[]).await;
    world.execute("UPDATE shows SET per_instrument = 9").await;
    let (ann, bob) = (world.visitor(), world.visitor());
    assert_sold(&bob, &hold_seats(&bob, &[0, 1, 2, 3, 4, 5, 6, 7]).await).await;
    world.wait_for_empty_outbox().await;
    let hold = hold_seats(&ann, &[10, 11, 12]).await;
    // Only Postgres counts these eight seats for Ann; Redis does not.
    let secret = ann.cookie.split_once('=').expect("a cookie").1;
    let hers = "UPDATE bookings SET version = version + 1,
                    owner = left(encode(sha256($1::text::bytea), 'hex'), 32)";
    world.run(sqlx::query(hers).bind(secret)).await;
    let before = world.count(WRITTEN).await;
    assert_refused(&ann, &ann.purchase_body(&hold, Some("tok_paid@1")), (429, "person_limit")).await;
    assert_eq!(world.count(WRITTEN).await, before);
    assert_unchanged(&ann, &hold).await;
    let (_, fewer) = ann.change(&hold, &[], &[12]).await;
    expect_state(ann.buy(&fewer, Some("tok_paid@1")).await, StatusCode::CREATED, "CONFIRMED");
    // A card that has paid for eight seats.
    let (cem, dan) = (world.visitor(), world.visitor());
    let answer = cem.buy(&hold_seats(&cem, &[40, 41, 42, 43, 44, 45, 46, 47]).await, Some("tok_paid@7.a")).await;
    expect_state(answer, StatusCode::CREATED, "CONFIRMED");
    world.wait_for_empty_outbox().await;
    let hold = hold_seats(&dan, &[50, 51]).await;
    let before = world.count(WRITTEN).await;
    assert_refused(&dan, &dan.purchase_body(&hold, Some("tok_paid@7.b")), (429, "instrument_limit")).await;
    assert_eq!(world.count(WRITTEN).await, before);
    assert_unchanged(&dan, &hold).await;
    expect_state(dan.buy(&hold, Some("tok_paid@8")).await, StatusCode::CREATED, "CONFIRMED");
}

#[tokio::test(flavor = "multi_thread")]
async fn copied_guest_cookie_is_not_answered_with_the_sale_after_sign_in() {
    let world = World::start(1, &[]).await;
    let (mut phone, copy) = guest_with_copied_cookie(&world).await;
    let hold = hold_seats(&phone.visitor(), &[1]).await;
    assert_eq!(phone.log_in("ann@example.org", PASSWORD).await.0, StatusCode::OK);
    // Not while the seats are held, nor during the payment, nor after the sale.
    let (ann, eve) = (phone.visitor(), copy.visitor());
    for step in 0..3 {
        let (status, answer) = eve.buy(&hold, Some("tok_paid")).await;
        assert!(matches!(status, StatusCode::NOT_FOUND | StatusCode::GONE), "{step}: {status} {answer}");
        match step {
            0 => assert_eq!(ann.buy(&hold, None).await.1["state"], "PAYMENT_PENDING"),
            1 => {
                let (_, pending) = ann.buy(&hold, None).await;
                pay_on_page(&ann, &pending).await;
            }
            _ => {}
        }
    }
    assert_eq!(world.count("SELECT count(*) FROM bookings").await, 1);
}

const BOOKINGS_OF_EVE: &str = "SELECT count(*) FROM bookings WHERE buyer_email = 'eve@example.org'";

#[tokio::test(flavor = "multi_thread")]
async fn copied_guest_cookie_checks_nothing_out_after_sign_in() {
    let world = World::start(1, &[]).await;
    let (mut phone, copy) = guest_with_copied_cookie(&world).await;
    let hold = hold_seats(&phone.visitor(), &[1]).await;
    // Before she signs in, both browsers are the same visitor.
    let booking = expect_answer(copy.visitor().book(&hold).await, StatusCode::CREATED);
    assert_eq!(phone.log_in("ann@example.org", PASSWORD).await.0, StatusCode::OK);
    let (ann, eve) = (phone.visitor(), copy.visitor());
    let mut request_body = eve.checkout_body(&hold);
    request_body["buyer"] = json!({ "name": "Eve", "email": "eve@example.org" });
    for step in ["held", "being paid for", "paid for"] {
        let (status, answer) = eve.call(Method::POST, "/api/v1/bookings", request_body.clone()).await;
        // After the sale there may be no hold left to check out.
        let is_over = step == "paid for" && status == StatusCode::GONE;
        assert!(status == StatusCode::NOT_FOUND || is_over, "{step}: {status} {answer}");
        assert_eq!(world.count(BOOKINGS_OF_EVE).await, 0, "{step}");
        let (_, hers) = ann.buy(&hold, None).await;
        assert_eq!(hers["id"], booking["id"], "{step}: {hers}");
        if step == "held" {
            assert_eq!(hers["state"], "PAYMENT_PENDING", "{hers}");
        } else {
            pay_on_page(&ann, &hers).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelled_or_moved_show_charges_nothing_at_a_server_with_a_stale_read() {
    // Sent together, they are in one batch.
    let world = World::start(1, &[SLOW_GATHER]).await;
    let buyers = with_holds(&world, 3).await;
    for off in ["called_off = true, is_moving = false", "called_off = false, is_moving = true"] {
        let answer = format!("UPDATE shows SET {off}");
        world.run(sqlx::query(sqlx::AssertSqlSafe(answer))).await;
        let orders = buyers.iter().map(|(buyer, hold)| buyer.buy(hold, Some("tok_paid")));
        for (status, refusal) in join_all(orders).await {
            assert_eq!((status.as_u16(), &refusal["code"]), (409, &json!("sales_closed")), "{off}: {refusal}");
            assert!(text(&refusal["detail"]).contains("Nothing was charged"), "Postgres refused it: {refusal}");
        }
        assert_eq!(world.count(WRITTEN).await, 0, "{off}");
        for (buyer, hold) in &buyers {
            assert_eq!(buyer.current_hold().await, *hold, "{off}");
        }
    }
    world.execute("UPDATE shows SET called_off = false, is_moving = false").await;
    for (buyer, hold) in &buyers {
        assert_sold(buyer, hold).await;
    }
}
