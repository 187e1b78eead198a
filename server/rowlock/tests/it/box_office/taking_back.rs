//! Refunds with a manager's PIN, sales that are undone, money that waits at the counter.

use reqwest::StatusCode;
use serde_json::{Value, json};

use super::{PIN, acts, at_work, code, desk, manager, of_booking, sells, two_theatres};
use crate::accounts::PASSWORD;
use crate::door::{codes, device, tonight};
use crate::world::{PRICE, World, text, until};

fn refund(manager: &Value, pin: &str, seats: Option<&[u32]>) -> Value {
    let mut wish = json!({ "reason": "The seat is broken.", "manager": manager, "pin": pin });
    if let Some(seats) = seats {
        wish["seats"] = json!(seats);
    }
    wish
}

#[tokio::test(flavor = "multi_thread")]
async fn cash_goes_back_out_of_the_till_with_a_managers_pin_and_no_gateway_hears_of_it() {
    let world = World::start(1, &[]).await;
    let (_, max) = manager(&world).await;
    let mut ann = at_work(&world, "ann@example.org").await;
    let sold = sells(&mut ann, &world, &[4, 5], "cash").await;
    world.visitor().sees(4, '2').await;
    let wrong = ann.post(&of_booking(&sold, "/refund"), refund(&max, "123456", None)).await;
    assert_eq!(code(&wrong), (422, "pin_wrong".into()));
    let (status, part) = ann.post(&of_booking(&sold, "/refund"), refund(&max, PIN, Some(&[4]))).await;
    assert_eq!((status, &part["state"], &part["total"]["minor"]), (StatusCode::OK, &json!("CONFIRMED"), &json!(PRICE)));
    let (status, all) = ann.post(&of_booking(&sold, "/refund"), refund(&max, PIN, None)).await;
    assert_eq!((status, &all["state"], &all["money"]), (StatusCode::OK, &json!("CANCELLED"), &json!("REFUNDED")));
    let visitor = world.visitor();
    visitor.sees(4, '0').await;
    visitor.sees(5, '0').await;
    let (_, till) = ann.get(&desk("till")).await;
    assert_eq!((&till["expected"]["minor"], &till["cash"]["minor"]), (&json!(10_000), &json!(0)));
    // The relay has done what was left to do, and asked nobody.
    until("the outbox is empty", || async { world.count("SELECT count(*) FROM outbox").await == 0 }).await;
    assert_eq!(world.count("SELECT count(*) FROM refunds WHERE state = 'settled'").await, 2);
    assert_eq!(world.count("SELECT count(*) FROM tickets WHERE revoked_at IS NULL").await, 0);
    let again = ann.post(&of_booking(&sold, "/refund"), refund(&max, PIN, None)).await;
    assert_eq!(code(&again), (409, "wrong_state".into()));
    assert_eq!(acts(&world).await, ["pin_set", "till_opened", "sold", "refunded", "refunded"]);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_paid_online_goes_back_through_its_gateway_and_concerns_no_till() {
    let world = World::start(1, &[]).await;
    let (mut max, account) = manager(&world).await;
    let buyer = world.visitor();
    let bought = buyer.bought(&[3], "tok_paid").await;
    let (status, back) = max.post(&of_booking(&bought, "/refund"), refund(&account, PIN, None)).await;
    assert_eq!((status, &back["state"]), (StatusCode::OK, &json!("CANCELLED")), "{back}");
    buyer.sees_money(&bought, "REFUNDED").await;
    assert_eq!(world.count("SELECT count(*) FROM till_rows").await, 0);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pin_is_guessed_by_nobody_and_another_theatres_manager_stands_for_nothing_here() {
    let world = World::start(1, &[]).await;
    let mut rita = two_theatres(&world).await;
    let ritas = rita.post("/api/v1/theatres/rialto/box-office/pin", json!({ "pin": PIN, "password": PASSWORD })).await;
    assert_eq!(ritas.0, StatusCode::NO_CONTENT);
    let rita_is = rita.me().await.1["id"].clone();
    let (_, max) = manager(&world).await;
    let mut ann = at_work(&world, "ann@example.org").await;
    let sold = sells(&mut ann, &world, &[4], "cash").await;
    let path = of_booking(&sold, "/refund");
    assert_eq!(code(&ann.post(&path, refund(&rita_is, PIN, None)).await), (422, "pin_wrong".into()));
    assert_eq!(rita.post(&path, refund(&rita_is, PIN, None)).await.0, StatusCode::NOT_FOUND);
    let mut said = Vec::new();
    for guess in 0..6 {
        said.push(code(&ann.post(&path, refund(&max, &format!("00000{guess}"), None)).await).0);
    }
    assert_eq!(said.last(), Some(&429), "{said:?}");
    assert_eq!(code(&ann.post(&path, refund(&max, PIN, None)).await).0, 429, "the right one is not tried either");
    let (_, managers) = ann.get(&desk("managers")).await;
    assert_eq!(managers.as_array().map(Vec::len), Some(1));
    let stored: String =
        sqlx::query_scalar("SELECT pin_hash FROM manager_pins LIMIT 1").fetch_one(&world.pg).await.expect("a hash");
    assert!(stored.starts_with("$argon2id$") && !stored.contains(PIN));
    for pin in ["12345", "111111", "abcdef", "1234567890123"] {
        let answer =
            rita.post("/api/v1/theatres/rialto/box-office/pin", json!({ "pin": pin, "password": PASSWORD })).await;
        assert_eq!(code(&answer), (400, "password_unusable".into()), "{pin}");
    }
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_colleague_who_types_wrong_pins_shuts_out_themselves_and_not_the_manager() {
    let world = World::start(1, &[]).await;
    let (_, max) = manager(&world).await;
    let (mut ann, mut sam) = (at_work(&world, "ann@example.org").await, at_work(&world, "sam@example.org").await);
    let path = of_booking(&sells(&mut sam, &world, &[4], "cash").await, "/refund");
    let mut wrong = 0;
    while code(&ann.post(&path, refund(&max, "123456", None)).await).0 == 422 {
        wrong += 1;
        assert!(wrong <= 5, "five tries are enough");
    }
    // Signing in anew brings no tries.
    assert_eq!(ann.log_in("ann@example.org", PASSWORD).await.0, StatusCode::OK);
    assert_eq!(code(&ann.post(&path, refund(&max, PIN, None)).await), (429, "too_many_attempts".into()));
    let (status, all) = sam.post(&path, refund(&max, PIN, None)).await;
    assert_eq!((status, &all["state"]), (StatusCode::OK, &json!("CANCELLED")), "{all}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sale_of_a_moment_ago_is_undone_by_who_made_it_out_of_the_same_till() {
    let world = World::start(1, &[]).await;
    let mut ann = at_work(&world, "ann@example.org").await;
    let mut ben = at_work(&world, "ben@example.org").await;
    let why = json!({ "reason": "The wrong show." });
    let first = sells(&mut ann, &world, &[4], "cash").await;
    assert!(first["undo_until_ms"].is_i64(), "{first}");
    assert_eq!(code(&ben.post(&of_booking(&first, "/undo"), why.clone()).await), (409, "undo_too_late".into()));
    let (status, undone) = ann.post(&of_booking(&first, "/undo"), why.clone()).await;
    assert_eq!((status, &undone["money"]), (StatusCode::OK, &json!("REFUNDED")), "{undone}");
    world.visitor().sees(4, '0').await;
    let second = sells(&mut ann, &world, &[4], "card").await;
    // Counted meanwhile: another till is another shift.
    assert_eq!(ann.post(&desk("till/cash-up"), json!({ "counted_minor": 10_000 })).await.0, StatusCode::OK);
    assert_eq!(code(&ann.post(&of_booking(&second, "/undo"), why.clone()).await), (409, "till_closed".into()));
    ann.post(&desk("till"), json!({ "float_minor": 0 })).await;
    assert_eq!(code(&ann.post(&of_booking(&second, "/undo"), why).await), (409, "undo_too_late".into()));
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_somebody_came_in_with_is_taken_back_by_a_manager_only() {
    let mut world = World::start(1, &[]).await;
    world.show = tonight(&world).await.show;
    let (_, max) = manager(&world).await;
    let mut ann = at_work(&world, "ann@example.org").await;
    let door = device(&world, world.show, "Left door").await;
    let sold = sells(&mut ann, &world, &[4], "cash").await;
    assert_eq!(door.outcome(&codes(&world, &sold).await[0]).await, "admitted");
    let why = json!({ "reason": "The wrong show." });
    assert_eq!(code(&ann.post(&of_booking(&sold, "/undo"), why).await), (409, "undo_too_late".into()));
    let (_, till) = ann.get(&desk("till")).await;
    assert_eq!(till["cash"]["minor"], PRICE, "nothing was paid out");
    world.visitor().sees(4, '2').await;
    let (status, back) = ann.post(&of_booking(&sold, "/refund"), refund(&max, PIN, None)).await;
    assert_eq!((status, &back["money"]), (StatusCode::OK, &json!("REFUNDED")), "{back}");
    // A buyer at home gives back the seats nobody sits in.
    let buyer = world.visitor();
    let bought = buyer.bought(&[6, 7], "tok_paid").await;
    assert_eq!(door.outcome(&codes(&world, &bought).await[0]).await, "admitted");
    assert_eq!(code(&buyer.cancel(&bought, None).await), (409, "wrong_state".into()));
    assert_eq!(code(&buyer.cancel(&bought, Some(&[6])).await), (409, "wrong_state".into()));
    let (status, left) = buyer.cancel(&bought, Some(&[7])).await;
    assert_eq!((status, &left["state"]), (StatusCode::OK, &json!("CONFIRMED")), "{left}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn money_of_a_show_that_is_called_off_waits_at_the_counter() {
    let world = World::start(1, &[]).await;
    let mut ann = at_work(&world, "ann@example.org").await;
    let sold = sells(&mut ann, &world, &[4, 5], "cash").await;
    let show = world.show.to_string();
    let (good, said) = world.command(&["cancel-show", &show, "--reason", "The projector is broken."]).await;
    assert!(good, "{said}");
    let standing = async || {
        let mut ann = ann.clone();
        ann.get(&of_booking(&sold, "")).await.1
    };
    until("it is undone", || async { standing().await["state"] == "CANCELLED" }).await;
    assert_eq!(standing().await["to_pay_out"]["minor"], 2 * PRICE);
    until("the outbox is empty", || async { world.count("SELECT count(*) FROM outbox").await == 0 }).await;
    let why = json!({ "reason": "With the ticket in hand." });
    let (status, paid) = ann.post(&of_booking(&sold, "/pay-out"), why.clone()).await;
    assert_eq!((status, text(&paid["money"])), (StatusCode::OK, "REFUNDED"), "{paid}");
    assert_eq!(code(&ann.post(&of_booking(&sold, "/pay-out"), why).await), (409, "wrong_state".into()));
    let (_, till) = ann.get(&desk("till")).await;
    assert_eq!(till["expected"]["minor"], 10_000);
    world.end().await;
}
