//! Refunds with a manager's PIN, undone sales, and refunds that wait at the counter.

use reqwest::StatusCode;
use serde_json::{Value, json};

use super::{PIN, acts, booking_path, code, desk_path, manager, sell_seats, seller_with_open_till, two_theatres};
use crate::accounts::PASSWORD;
use crate::door::{codes, device, tonight};
use crate::world::{PRICE, World, text, wait_until};

fn refund(manager: &Value, pin: &str, seats: Option<&[u32]>) -> Value {
    let mut request_body = json!({ "reason": "The seat is broken.", "manager": manager, "pin": pin });
    if let Some(seats) = seats {
        request_body["seats"] = json!(seats);
    }
    request_body
}

#[tokio::test(flavor = "multi_thread")]
async fn cash_refund_leaves_the_till_with_a_managers_pin_and_calls_no_gateway() {
    let world = World::start(1, &[]).await;
    let (_, max) = manager(&world).await;
    let mut ann = seller_with_open_till(&world, "ann@example.org").await;
    let sold = sell_seats(&mut ann, &world, &[4, 5], "cash").await;
    world.visitor().wait_for_seat(4, '2').await;
    let wrong = ann.post(&booking_path(&sold, "/refund"), refund(&max, "123456", None)).await;
    assert_eq!(code(&wrong), (422, "pin_wrong".into()));
    let (status, part) = ann.post(&booking_path(&sold, "/refund"), refund(&max, PIN, Some(&[4]))).await;
    assert_eq!((status, &part["state"], &part["total"]["minor"]), (StatusCode::OK, &json!("CONFIRMED"), &json!(PRICE)));
    let (status, all) = ann.post(&booking_path(&sold, "/refund"), refund(&max, PIN, None)).await;
    assert_eq!((status, &all["state"], &all["money"]), (StatusCode::OK, &json!("CANCELLED"), &json!("REFUNDED")));
    let visitor = world.visitor();
    visitor.wait_for_seat(4, '0').await;
    visitor.wait_for_seat(5, '0').await;
    let (_, till) = ann.get(&desk_path("till")).await;
    assert_eq!((&till["expected"]["minor"], &till["cash"]["minor"]), (&json!(10_000), &json!(0)));
    // The relay has finished the outbox and called no gateway.
    world.wait_for_empty_outbox().await;
    assert_eq!(world.count("SELECT count(*) FROM refunds WHERE state = 'settled'").await, 2);
    assert_eq!(world.count("SELECT count(*) FROM tickets WHERE revoked_at IS NULL").await, 0);
    let again = ann.post(&booking_path(&sold, "/refund"), refund(&max, PIN, None)).await;
    assert_eq!(code(&again), (409, "wrong_state".into()));
    assert_eq!(acts(&world).await, ["pin_set", "till_opened", "sold", "refunded", "refunded"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn online_payment_is_refunded_through_its_gateway_and_no_till() {
    let world = World::start(1, &[]).await;
    let (mut max, account) = manager(&world).await;
    let buyer = world.visitor();
    let bought = buyer.buy_seats(&[3], "tok_paid").await;
    let (status, back) = max.post(&booking_path(&bought, "/refund"), refund(&account, PIN, None)).await;
    assert_eq!((status, &back["state"]), (StatusCode::OK, &json!("CANCELLED")), "{back}");
    buyer.wait_for_money(&bought, "REFUNDED").await;
    assert_eq!(world.count("SELECT count(*) FROM till_rows").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn pin_attempts_are_limited_and_another_theatres_manager_cannot_approve() {
    let world = World::start(1, &[]).await;
    let mut rita = two_theatres(&world).await;
    let ritas = rita.post("/api/v1/theatres/rialto/box-office/pin", json!({ "pin": PIN, "password": PASSWORD })).await;
    assert_eq!(ritas.0, StatusCode::NO_CONTENT);
    let rita_is = rita.me().await.1["id"].clone();
    let (_, max) = manager(&world).await;
    let mut ann = seller_with_open_till(&world, "ann@example.org").await;
    let sold = sell_seats(&mut ann, &world, &[4], "cash").await;
    let path = booking_path(&sold, "/refund");
    assert_eq!(code(&ann.post(&path, refund(&rita_is, PIN, None)).await), (422, "pin_wrong".into()));
    assert_eq!(rita.post(&path, refund(&rita_is, PIN, None)).await.0, StatusCode::NOT_FOUND);
    let mut statuses = Vec::new();
    for guess in 0..6 {
        statuses.push(code(&ann.post(&path, refund(&max, &format!("00000{guess}"), None)).await).0);
    }
    assert_eq!(statuses.last(), Some(&429), "{statuses:?}");
    assert_eq!(code(&ann.post(&path, refund(&max, PIN, None)).await).0, 429, "the correct PIN is not checked either");
    let (_, managers) = ann.get(&desk_path("managers")).await;
    assert_eq!(managers.as_array().map(Vec::len), Some(1));
    let stored: String =
        sqlx::query_scalar("SELECT pin_hash FROM manager_pins LIMIT 1").fetch_one(&world.pg).await.expect("a hash");
    assert!(stored.starts_with("$argon2id$") && !stored.contains(PIN));
    for pin in ["12345", "111111", "abcdef", "1234567890123"] {
        let answer =
            rita.post("/api/v1/theatres/rialto/box-office/pin", json!({ "pin": pin, "password": PASSWORD })).await;
        assert_eq!(code(&answer), (400, "password_unusable".into()), "{pin}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_pins_lock_out_the_seller_and_not_the_manager() {
    let world = World::start(1, &[]).await;
    let (_, max) = manager(&world).await;
    let (mut ann, mut sam) = (
        seller_with_open_till(&world, "ann@example.org").await,
        seller_with_open_till(&world, "sam@example.org").await,
    );
    let path = booking_path(&sell_seats(&mut sam, &world, &[4], "cash").await, "/refund");
    let mut wrong = 0;
    while code(&ann.post(&path, refund(&max, "123456", None)).await).0 == 422 {
        wrong += 1;
        assert!(wrong <= 5, "five attempts reach the limit");
    }
    // A new login resets no counter.
    assert_eq!(ann.log_in("ann@example.org", PASSWORD).await.0, StatusCode::OK);
    assert_eq!(code(&ann.post(&path, refund(&max, PIN, None)).await), (429, "too_many_attempts".into()));
    let (status, all) = sam.post(&path, refund(&max, PIN, None)).await;
    assert_eq!((status, &all["state"]), (StatusCode::OK, &json!("CANCELLED")), "{all}");
}

#[tokio::test(flavor = "multi_thread")]
async fn recent_sale_is_undone_by_its_seller_from_the_same_till() {
    let world = World::start(1, &[]).await;
    let mut ann = seller_with_open_till(&world, "ann@example.org").await;
    let mut ben = seller_with_open_till(&world, "ben@example.org").await;
    let why = json!({ "reason": "The wrong show." });
    let first = sell_seats(&mut ann, &world, &[4], "cash").await;
    assert!(first["undo_until_ms"].is_i64(), "{first}");
    assert_eq!(code(&ben.post(&booking_path(&first, "/undo"), why.clone()).await), (409, "undo_too_late".into()));
    let (status, undone) = ann.post(&booking_path(&first, "/undo"), why.clone()).await;
    assert_eq!((status, &undone["money"]), (StatusCode::OK, &json!("REFUNDED")), "{undone}");
    world.visitor().wait_for_seat(4, '0').await;
    let second = sell_seats(&mut ann, &world, &[4], "card").await;
    // After the count the till belongs to another shift.
    assert_eq!(ann.post(&desk_path("till/cash-up"), json!({ "counted_minor": 10_000 })).await.0, StatusCode::OK);
    assert_eq!(code(&ann.post(&booking_path(&second, "/undo"), why.clone()).await), (409, "till_closed".into()));
    ann.post(&desk_path("till"), json!({ "float_minor": 0 })).await;
    assert_eq!(code(&ann.post(&booking_path(&second, "/undo"), why).await), (409, "undo_too_late".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn scanned_tickets_are_refunded_by_a_manager_only() {
    let mut world = World::start(1, &[]).await;
    world.show = tonight(&world).await.show;
    let (_, max) = manager(&world).await;
    let mut ann = seller_with_open_till(&world, "ann@example.org").await;
    let door = device(&world, world.show, "Left door").await;
    let sold = sell_seats(&mut ann, &world, &[4], "cash").await;
    assert_eq!(door.outcome(&codes(&world, &sold).await[0]).await, "admitted");
    let why = json!({ "reason": "The wrong show." });
    assert_eq!(code(&ann.post(&booking_path(&sold, "/undo"), why).await), (409, "undo_too_late".into()));
    let (_, till) = ann.get(&desk_path("till")).await;
    assert_eq!(till["cash"]["minor"], PRICE, "nothing was paid out");
    world.visitor().wait_for_seat(4, '2').await;
    let (status, back) = ann.post(&booking_path(&sold, "/refund"), refund(&max, PIN, None)).await;
    assert_eq!((status, &back["money"]), (StatusCode::OK, &json!("REFUNDED")), "{back}");
    // An online buyer cancels the seats that were not scanned.
    let buyer = world.visitor();
    let bought = buyer.buy_seats(&[6, 7], "tok_paid").await;
    assert_eq!(door.outcome(&codes(&world, &bought).await[0]).await, "admitted");
    assert_eq!(code(&buyer.cancel(&bought, None).await), (409, "wrong_state".into()));
    assert_eq!(code(&buyer.cancel(&bought, Some(&[6])).await), (409, "wrong_state".into()));
    let (status, left) = buyer.cancel(&bought, Some(&[7])).await;
    assert_eq!((status, &left["state"]), (StatusCode::OK, &json!("CONFIRMED")), "{left}");
}

#[tokio::test(flavor = "multi_thread")]
async fn refunds_of_a_cancelled_show_wait_at_the_counter() {
    let world = World::start(1, &[]).await;
    let mut ann = seller_with_open_till(&world, "ann@example.org").await;
    let sold = sell_seats(&mut ann, &world, &[4, 5], "cash").await;
    let show = world.show.to_string();
    let (good, statuses) = world.command(&["cancel-show", &show, "--reason", "The projector is broken."]).await;
    assert!(good, "{statuses}");
    let standing = async || {
        let mut ann = ann.clone();
        ann.get(&booking_path(&sold, "")).await.1
    };
    wait_until("the booking is cancelled", || async { standing().await["state"] == "CANCELLED" }).await;
    assert_eq!(standing().await["to_pay_out"]["minor"], 2 * PRICE);
    world.wait_for_empty_outbox().await;
    let why = json!({ "reason": "With the ticket in hand." });
    let (status, paid) = ann.post(&booking_path(&sold, "/pay-out"), why.clone()).await;
    assert_eq!((status, text(&paid["money"])), (StatusCode::OK, "REFUNDED"), "{paid}");
    assert_eq!(code(&ann.post(&booking_path(&sold, "/pay-out"), why).await), (409, "wrong_state".into()));
    let (_, till) = ann.get(&desk_path("till")).await;
    assert_eq!(till["expected"]["minor"], 10_000);
}
