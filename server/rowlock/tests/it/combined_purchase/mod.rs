//! Checkout and payment in one request: the same sale, under one idempotency key.

mod refused;
mod tabs;

use crate::commits::{SLOW_GATHER, SUBMISSIONS, with_holds};
use crate::prelude::*;
use crate::sale::event_names;

/// Rows that a refused request must not write.
const WRITTEN: &str = "
    SELECT (SELECT count(*) FROM bookings) + (SELECT count(*) FROM booking_events) + (SELECT count(*) FROM payments)
         + (SELECT count(*) FROM idempotency_keys) + (SELECT count(*) FROM seat_claims) + (SELECT count(*) FROM outbox)";

async fn hold_seats(visitor: &Visitor, seats: &[u32]) -> Value {
    expect_answer(visitor.hold(seats).await, StatusCode::CREATED)
}

async fn booking_events(visitor: &Visitor, booking: &Value) -> Value {
    visitor.get(&format!("/api/v1/bookings/{}/events", text(&booking["id"]))).await.1
}

/// Number, event, state after it, and actor of a sale in one request.
const SALE_EVENTS: [(u64, &str, &str, &str); 5] = [
    (1, "created", "CREATED", "buyer"),
    (2, "hold_taken", "SEATS_LOCKED", "system"),
    (3, "payment_submitted", "PAYMENT_PENDING", "buyer"),
    (4, "payment_succeeded", "PAYMENT_SUCCEEDED", "gateway"),
    (5, "seats_sold", "CONFIRMED", "system"),
];

async fn assert_sale_events(visitor: &Visitor, booking: &Value) {
    let events = booking_events(visitor, booking).await;
    let actual: Vec<_> = events
        .as_array()
        .expect("a list")
        .iter()
        .map(|event| {
            let words = (text(&event["event"]), text(&event["to"]), text(&event["actor"]));
            (event["number"].as_u64().expect("a number"), words.0, words.1, words.2)
        })
        .collect();
    assert_eq!(actual, SALE_EVENTS, "{events}");
}

#[tokio::test(flavor = "multi_thread")]
async fn combined_request_creates_the_same_sale() {
    let (world, ann) = World::with_visitor(1, &[]).await;
    let hold = hold_seats(&ann, &[46, 47]).await;
    let (status, paid) = ann.buy(&hold, Some("tok_paid")).await;
    let actual = (status, text(&paid["state"]), text(&paid["money"]));
    assert_eq!(actual, (StatusCode::CREATED, "CONFIRMED", "PAID"), "{paid}");
    assert_eq!((&paid["seats"], &paid["total"]), (&hold["seats"], &hold["total"]));
    assert_eq!((&paid["pay_url"], &paid["total"]["minor"]), (&Value::Null, &json!(2 * PRICE)));
    assert_eq!(paid["ticket_url"], format!("/bookings/{}/ticket", text(&paid["id"])));
    assert_sale_events(&ann, &paid).await;
    ann.wait_for_seat(46, '2').await;
    world.wait_for_empty_outbox().await;
    wait_until("the mail is sent", || async { world.mails().len() == 1 }).await;
    assert!(world.mails()[0].contains("ann@example.org"));
    // The webhook arrives too, and changes nothing.
    world.wait_for_count("the webhook is stored", "SELECT count(*) FROM webhook_events", 1).await;
    assert_sale_events(&ann, &paid).await;
    for (query, count) in [
        ("SELECT count(*) FROM bookings", 1),
        ("SELECT count(*) FROM payments WHERE state = 'succeeded' AND asks = 1", 1),
        ("SELECT count(*) FROM idempotency_keys", 1),
        ("SELECT count(*) FROM idempotency_keys WHERE state = 'completed'", 1),
        ("SELECT count(*) FROM late_wishes", 0),
        ("SELECT count(*) FROM tickets", 2),
        ("SELECT count(*) FROM seat_claims WHERE state = 'sold'", 2),
    ] {
        assert_eq!(world.count(query).await, count, "{query}");
    }
    let page = ann.booking(&paid).await;
    assert_eq!((&page["state"], &page["ticket_url"]), (&paid["state"], &paid["ticket_url"]), "{page}");
    // A second payment changes nothing and gets the confirmed booking.
    expect_state(ann.pay(&paid, Some("tok_paid")).await, StatusCode::OK, "CONFIRMED");
    world.wait_until_books_balance().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_combined_requests_share_a_transaction() {
    let world = World::start(1, &[SLOW_GATHER]).await;
    let buyers = with_holds(&world, 12).await;
    // One of them is declined and then needs its own transaction.
    let token = |place: usize| if place == 5 { "tok_declined" } else { "tok_paid" };
    let bought = buyers.iter().enumerate().map(|(place, (visitor, hold))| visitor.buy(hold, Some(token(place))));
    let bought = join_all(bought).await;
    for (place, ((visitor, _), (status, booking))) in buyers.iter().zip(&bought).enumerate() {
        let state = if place == 5 { "CANCELLED" } else { "CONFIRMED" };
        assert_eq!((*status, text(&booking["state"])), (StatusCode::CREATED, state), "{booking}");
        if place != 5 {
            assert_sale_events(visitor, booking).await;
        }
    }
    assert!(world.count(SUBMISSIONS).await < 12, "several bookings share a transaction");
    let apart = "SELECT count(*) FROM booking_events made JOIN booking_events paying USING (booking_id)
                 WHERE made.event = 'created' AND paying.event = 'payment_submitted'
                   AND made.xmin::text <> paying.xmin::text";
    assert_eq!(world.count(apart).await, 0, "each was checked out and submitted in one transaction");
    world.wait_for_empty_outbox().await;
    wait_until("each has a mail", || async { world.mails().len() == 11 }).await;
    let states = world.visitor().seat_states().await;
    assert_eq!(states.matches('2').count(), 11, "{states}");
    wait_until("every webhook is noted", || async { world.count("SELECT count(*) FROM webhook_events").await >= 11 })
        .await;
    assert_eq!(world.count("SELECT count(*) FROM booking_events WHERE event = 'seats_sold'").await, 11);
    world.wait_until_books_balance().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn combined_request_without_a_token_is_paid_on_the_gateways_page() {
    let (world, ann) = World::with_visitor(1, &[]).await;
    let hold = hold_seats(&ann, &[8]).await;
    let (status, pending) = ann.buy(&hold, None).await;
    let actual = (status, text(&pending["state"]), text(&pending["money"]));
    assert_eq!(actual, (StatusCode::CREATED, "PAYMENT_PENDING", "PENDING"), "{pending}");
    let now = ann.current_hold().await;
    assert_eq!((&now["paying"], &now["booking"]), (&json!(true), &pending["id"]), "{now}");
    expect_problem(ann.change(&hold, &[9], &[]).await, StatusCode::CONFLICT, "hold_paying");
    let answer = ann.post_form(text(&pending["pay_url"]), "card=paid").await;
    assert_eq!(answer.status(), StatusCode::SEE_OTHER);
    let back = format!("{}/bookings/{}?submitted=1", ann.base, text(&pending["id"]));
    assert_eq!(answer.headers()["location"].to_str().expect("text"), back);
    ann.wait_for_booking(&pending, "CONFIRMED").await;
    ann.wait_for_seat(8, '2').await;
    world.wait_until_books_balance().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn declined_card_keeps_the_hold_and_slow_payment_ends_by_webhook() {
    let world = World::start(1, &[]).await;
    for (token, first, last, map) in [
        ("tok_declined", "CANCELLED", "CANCELLED", '1'),
        ("tok_pending_failed", "PAYMENT_PENDING", "CANCELLED", '1'),
        ("tok_pending_paid", "PAYMENT_PENDING", "CONFIRMED", '2'),
    ] {
        let ann = world.visitor();
        let (status, booking) = ann.buy(&hold_seats(&ann, &[3]).await, Some(token)).await;
        assert_eq!((status, text(&booking["state"])), (StatusCode::CREATED, first), "{token}: {booking}");
        let seen = ann.wait_for_booking(&booking, last).await;
        let money = if last == "CONFIRMED" { "PAID" } else { "FAILED" };
        assert_eq!(seen["money"], money, "{token}: {seen}");
        ann.wait_for_seat(3, map).await;
        if last == "CANCELLED" {
            ann.release_kept_hold(&seen).await;
            ann.wait_for_seat(3, '0').await;
        }
    }
    assert_eq!(world.count("SELECT count(*) FROM seat_claims WHERE state <> 'released'").await, 1);
    world.wait_until_books_balance().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn earlier_checkout_is_revised_and_paid() {
    let (world, ann) = World::with_visitor(1, &[]).await;
    let (hold, booking) = ann.check_out(&[70]).await;
    let hold = expect_answer(ann.change(&hold, &[71, 72], &[70]).await, StatusCode::OK);
    let paid = expect_state(ann.buy(&hold, Some("tok_paid")).await, StatusCode::CREATED, "CONFIRMED");
    assert_eq!((&paid["id"], &paid["reference"]), (&booking["id"], &booking["reference"]));
    assert_eq!((&paid["seats"], &paid["total"]["minor"]), (&hold["seats"], &json!(2 * PRICE)));
    let events = booking_events(&ann, &paid).await;
    let steps = ["created", "hold_taken", "revised", "payment_submitted", "payment_succeeded", "seats_sold"];
    assert_eq!(event_names(&events), steps);
    assert_eq!(world.count("SELECT sum(amount_minor)::bigint FROM payments").await, 2 * PRICE);
    ann.wait_for_seat(71, '2').await;
    ann.wait_for_seat(70, '0').await;
    world.wait_until_books_balance().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn late_payment_choice_is_stored_and_the_last_one_applies() {
    let world = World::start(1, &[]).await;
    let late_payment_choices = async || {
        let late_payment_choices =
            sqlx::query_scalar("SELECT if_late FROM late_wishes ORDER BY booking_id").fetch_all(&world.pg);
        late_payment_choices.await.expect("choices are read")
    };
    let ann = world.visitor();
    let mut order = ann.purchase_body(&hold_seats(&ann, &[9]).await, None);
    order["if_late"] = "refund".into();
    expect_state(ann.call(Method::POST, "/api/v1/bookings", order).await, StatusCode::CREATED, "PAYMENT_PENDING");
    let actual: Vec<String> = late_payment_choices().await;
    assert_eq!(actual, ["refund"]);
    let bob = world.visitor();
    let hold = hold_seats(&bob, &[10]).await;
    let mut request_body = bob.checkout_body(&hold);
    request_body["if_late"] = "same_or_better".into();
    assert_eq!(bob.call(Method::POST, "/api/v1/bookings", request_body).await.0, StatusCode::CREATED);
    expect_state(bob.buy(&hold, Some("tok_paid")).await, StatusCode::CREATED, "CONFIRMED");
    let actual: Vec<String> = late_payment_choices().await;
    assert_eq!(actual, ["refund", "same_seats"], "a missing choice keeps the stored one");
}

#[tokio::test(flavor = "multi_thread")]
async fn places_are_bought_beside_seats() {
    let world = World::start(1, &[]).await;
    world.open_floor(5).await;
    let ann = world.visitor();
    let path = format!("/api/v1/shows/{}/holds", world.show);
    let request_body = json!({ "seats": [7], "area": 0, "quantity": 3 });
    let (status, hold) = ann.call(Method::POST, &path, request_body).await;
    assert_eq!((status, &hold["total"]["minor"]), (StatusCode::CREATED, &json!(4 * PRICE)), "{hold}");
    let paid = expect_state(ann.buy(&hold, Some("tok_paid")).await, StatusCode::CREATED, "CONFIRMED");
    assert_eq!((&paid["places"], &paid["total"]), (&hold["places"], &hold["total"]));
    assert_sale_events(&ann, &paid).await;
    // The other two places are freed when a card is declined and no second attempt follows.
    let bob = world.visitor();
    let (_, hold) = bob.hold_places(2).await;
    let declined = expect_state(bob.buy(&hold, Some("tok_declined")).await, StatusCode::CREATED, "CANCELLED");
    bob.release_kept_hold(&declined).await;
    world.wait_for_empty_outbox().await;
    assert_eq!((ann.places_left().await, &ann.seat_states().await[7..8]), (json!(2), "2"));
    let stock: (i32, i32) =
        sqlx::query_as("SELECT claimed, sold FROM area_stock").fetch_one(&world.pg).await.expect("a row");
    assert_eq!(stock, (0, 3));
    assert_eq!(world.count("SELECT count(*) FROM place_tickets").await, 3);
    assert_eq!(world.count("SELECT count(*) FROM tickets").await, 1);
}
