//! A declined card ends its booking; its hold is kept for a second attempt.

use futures::future::join_all;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::sale::deliver;
use crate::world::{PRICE, Visitor, World, expect_answer, expect_problem, text};

/// Seats of a visitor whose first card was declined. Returns the ended booking.
async fn decline_first_card(visitor: &Visitor, seats: &[u32]) -> Value {
    let hold = expect_answer(visitor.hold(seats).await, StatusCode::CREATED);
    let (_, over) = visitor.buy(&hold, Some("tok_declined")).await;
    assert_eq!((&over["state"], &over["money"]), (&json!("CANCELLED"), &json!("FAILED")), "{over}");
    over
}

/// The kept hold, as a purchase body needs it.
fn kept_hold(over: &Value) -> Value {
    assert!(over["kept_hold"]["hold"].is_string(), "no hold is kept: {over}");
    json!({ "id": over["kept_hold"]["hold"], "total": over["total"] })
}

#[tokio::test(flavor = "multi_thread")]
async fn seats_of_a_declined_card_stay_held_and_a_second_card_buys_them() {
    let world = World::start(2, &[]).await;
    let (ann, bob) = (world.visitor(), world.visitor_at(1));
    let (_, first) = ann.hold(&[46, 47]).await;
    let tries = async {
        let (_, over) = ann.buy(&first, Some("tok_declined")).await;
        let (status, sold) = ann.buy(&kept_hold(&over), Some("tok_paid")).await;
        assert_eq!((status, &sold["state"]), (StatusCode::CREATED, &json!("CONFIRMED")), "{sold}");
        (over, sold)
    };
    tokio::pin!(tries);
    // Meanwhile another visitor keeps trying to hold one of them.
    let (over, sold) = loop {
        tokio::select! {
            done = &mut tries => break done,
            (status, answer) = bob.hold(&[47]) => {
                // Held or, later, sold.
                assert!(matches!(status, StatusCode::LOCKED | StatusCode::CONFLICT), "{status} {answer}");
            }
        }
    };
    assert_ne!(sold["id"], over["id"]);
    assert_eq!((&sold["seats"], &sold["total"]["minor"]), (&over["seats"], &json!(2 * PRICE)));
    // The first id of the hold is expired.
    let (status, refused) = ann.buy(&first, Some("tok_paid")).await;
    assert_eq!((status, text(&refused["code"])), (StatusCode::GONE, "hold_expired"), "{refused}");
    let (_, last) = ann.get(&format!("/api/v1/bookings/{}", text(&over["id"]))).await;
    assert_eq!(last["state"], "CANCELLED");
    ann.wait_for_seat(46, '2').await;
    world.wait_until_books_balance().await;
    for (query, count) in [
        ("SELECT count(*) FROM tickets", 2),
        ("SELECT count(*) FROM payments WHERE state = 'succeeded'", 1),
        ("SELECT count(*) FROM seat_claims WHERE state = 'sold'", 2),
    ] {
        assert_eq!(world.count(query).await, count, "{query}");
    }
    // The first booking's release runs again, as after a crash, and frees no seat of the second booking.
    let again = "INSERT INTO outbox (booking_id, effect, run_after, created_at)
                 SELECT id, 'release_seats', now(), now() FROM bookings WHERE state = 'CANCELLED'";
    world.execute(again).await;
    world.wait_until_books_balance().await;
    ann.wait_for_seat(46, '2').await;
    assert_eq!(bob.hold(&[47]).await.0, StatusCode::CONFLICT);
}

#[tokio::test(flavor = "multi_thread")]
async fn decline_by_webhook_keeps_the_hold() {
    let (world, ann) = World::with_visitor(&[]).await;
    let (_, hold) = ann.hold(&[5]).await;
    let (_, pending) = ann.buy(&hold, Some("tok_pending_failed")).await;
    assert_eq!(pending["state"], "PAYMENT_PENDING", "{pending}");
    let over = ann.wait_for_booking(&pending, "CANCELLED").await;
    let next = kept_hold(&over);
    let until_ms = over["kept_hold"]["until_ms"].as_i64().expect("an instant");
    let end = hold["expires_at_ms"].as_i64().expect("an instant");
    assert!((until_ms - end).abs() < 2_000, "the hold ends as it would have without the payment: {until_ms} {end}");
    assert_eq!(world.visitor().hold(&[5]).await.0, StatusCode::LOCKED);
    let (_, sold) = ann.buy(&next, Some("tok_paid")).await;
    assert_eq!(sold["state"], "CONFIRMED", "{sold}");
    world.wait_until_books_balance().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fifth_declined_card_ends_the_hold() {
    let (world, ann) = World::with_visitor(&[]).await;
    let mut over = decline_first_card(&ann, &[8, 9]).await;
    for number in 2..=5 {
        let last = kept_hold(&over);
        over = ann.buy(&last, Some("tok_declined")).await.1;
        assert_eq!(over["state"], "CANCELLED", "decline {number}: {over}");
        assert_eq!(over["kept_hold"].is_null(), number == 5, "decline {number}: {over}");
    }
    ann.wait_for_seat(8, '0').await;
    assert_eq!(world.visitor().hold(&[8, 9]).await.0, StatusCode::CREATED);
    assert!(!ann.has_hold().await);
    assert_eq!(world.count("SELECT count(*) FROM declined_payments").await, 5);
    world.wait_until_books_balance().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_tabs_with_the_second_card_are_one_sale() {
    let world = World::start(2, &[]).await;
    let ann = world.visitor();
    let there = Visitor { base: world.servers[1].url.clone(), ..ann.clone() };
    let next = kept_hold(&decline_first_card(&ann, &[12]).await);
    let tabs = (0..8).map(|tab| if tab % 2 == 0 { &ann } else { &there });
    let answers = join_all(tabs.map(|tab| tab.buy(&next, Some("tok_paid")))).await;
    for (status, answer) in &answers {
        assert!(status.is_success() || *status == StatusCode::CONFLICT, "{status} {answer}");
    }
    world.wait_for_count("the booking is confirmed", "SELECT count(*) FROM tickets", 1).await;
    assert_eq!(world.count("SELECT count(*) FROM bookings").await, 2);
    assert_eq!(world.count("SELECT count(*) FROM payments WHERE state = 'succeeded'").await, 1);
    world.wait_until_books_balance().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kept_hold_is_refused_to_other_visitors() {
    let world = World::start(1, &[]).await;
    let (ann, eve) = (world.visitor(), world.visitor());
    let over = decline_first_card(&ann, &[20]).await;
    expect_problem(eve.buy(&kept_hold(&over), Some("tok_paid")).await, StatusCode::GONE, "hold_expired");
    assert_eq!(eve.get(&format!("/api/v1/bookings/{}", text(&over["id"]))).await.0, StatusCode::NOT_FOUND);
    let (_, sold) = ann.buy(&kept_hold(&over), Some("tok_paid")).await;
    assert_eq!(sold["state"], "CONFIRMED", "{sold}");
}

#[tokio::test(flavor = "multi_thread")]
async fn payment_stopped_by_its_payer_keeps_no_hold() {
    let (_world, ann) = World::with_visitor(&[]).await;
    let (_, hold) = ann.hold(&[30]).await;
    let (_, pending) = ann.buy(&hold, None).await;
    let page = ann.client.post(text(&pending["pay_url"]));
    let form = page.header("content-type", "application/x-www-form-urlencoded").body("card=paid&action=cancel");
    assert_eq!(form.send().await.expect("a page").status(), StatusCode::SEE_OTHER);
    let over = ann.wait_for_booking(&pending, "CANCELLED").await;
    assert!(over["kept_hold"].is_null(), "{over}");
    ann.wait_for_seat(30, '0').await;
}

#[tokio::test(flavor = "multi_thread")]
async fn late_payment_of_a_declined_booking_takes_the_kept_hold() {
    let (world, ann) = World::with_visitor(&[]).await;
    let over = decline_first_card(&ann, &[40, 41]).await;
    let next = kept_hold(&over);
    let paid = json!({
        "id": "evt_after_all", "type": "payment.succeeded", "created_ms": 0,
        "payment": { "id": "p", "reference": over["id"], "amount_minor": 2 * PRICE, "currency": "EUR",
                     "status": "succeeded", "refunded_minor": 0 },
    });
    assert_eq!(deliver(&ann, &paid).await.0, StatusCode::OK);
    let seen = ann.wait_for_money(&over, "MOVED").await;
    let fresh = ann.booking(&json!({ "id": seen["moved_to"] })).await;
    assert_eq!((&fresh["state"], &fresh["seats"]), (&json!("CONFIRMED"), &over["seats"]), "{fresh}");
    expect_problem(ann.buy(&next, Some("tok_paid")).await, StatusCode::GONE, "hold_expired");
    ann.wait_for_seat(40, '2').await;
    assert_eq!(world.count("SELECT count(*) FROM tickets").await, 2);
    // The gateway's ledger has the payment as declined.
    world.end_with_known_findings(&["CONFIRMED; 0 were taken"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn seats_of_a_kept_hold_are_free_after_the_map_was_lost() {
    let (world, ann) = World::with_visitor(&[]).await;
    let next = kept_hold(&decline_first_card(&ann, &[50]).await);
    world.wait_for_empty_outbox().await;
    world.delete_redis_keys().await;
    expect_problem(ann.buy(&next, Some("tok_paid")).await, StatusCode::GONE, "hold_expired");
    let path = format!("/api/v1/shows/{}/holds", world.show);
    let bob = world.visitor();
    let hold = expect_answer(bob.call(Method::POST, &path, json!({ "seats": [50] })).await, StatusCode::CREATED);
    assert_eq!(bob.buy(&hold, Some("tok_paid")).await.1["state"], "CONFIRMED");
    world.wait_until_books_balance().await;
}
