//! Checked out and paid in one request: a sale like any other, under one key.

mod refused;
mod tabs;

use futures::future::join_all;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::cancel::books_balance;
use crate::commits::{GATHERING, SUBMISSIONS, with_holds};
use crate::sale::names;
use crate::world::{PRICE, Visitor, World, text, until};

/// What whoever is refused must not have written.
const WRITTEN: &str = "
    SELECT (SELECT count(*) FROM bookings) + (SELECT count(*) FROM booking_events) + (SELECT count(*) FROM payments)
         + (SELECT count(*) FROM idempotency_keys) + (SELECT count(*) FROM seat_claims) + (SELECT count(*) FROM outbox)";

async fn held(visitor: &Visitor, seats: &[u32]) -> Value {
    let (status, hold) = visitor.hold(seats).await;
    assert_eq!(status, StatusCode::CREATED, "{hold}");
    hold
}

async fn story(visitor: &Visitor, booking: &Value) -> Value {
    visitor.get(&format!("/api/v1/bookings/{}/events", text(&booking["id"]))).await.1
}

/// Number, event, state after and actor of a sale in one go.
const STORY: [(u64, &str, &str, &str); 5] = [
    (1, "created", "CREATED", "buyer"),
    (2, "hold_taken", "SEATS_LOCKED", "system"),
    (3, "payment_submitted", "PAYMENT_PENDING", "buyer"),
    (4, "payment_succeeded", "PAYMENT_SUCCEEDED", "gateway"),
    (5, "seats_sold", "CONFIRMED", "system"),
];

/// That this is told of a booking.
async fn has_the_story_of_a_sale(visitor: &Visitor, booking: &Value) {
    let story = story(visitor, booking).await;
    let told: Vec<_> = story
        .as_array()
        .expect("a list")
        .iter()
        .map(|event| {
            let words = (text(&event["event"]), text(&event["to"]), text(&event["actor"]));
            (event["number"].as_u64().expect("a number"), words.0, words.1, words.2)
        })
        .collect();
    assert_eq!(told, STORY, "{story}");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_request_is_a_sale_like_any_other() {
    for mode in ["batched", "interactive"] {
        let world = World::start(1, &[("COMMITS", mode)]).await;
        let ann = world.visitor();
        let hold = held(&ann, &[46, 47]).await;
        let (status, paid) = ann.buy(&hold, Some("tok_paid")).await;
        let told = (status, text(&paid["state"]), text(&paid["money"]));
        assert_eq!(told, (StatusCode::CREATED, "CONFIRMED", "PAID"), "{mode}: {paid}");
        assert_eq!((&paid["seats"], &paid["total"]), (&hold["seats"], &hold["total"]));
        assert_eq!((&paid["pay_url"], &paid["total"]["minor"]), (&Value::Null, &json!(2 * PRICE)));
        assert_eq!(paid["ticket_url"], format!("/bookings/{}/ticket", text(&paid["id"])));
        has_the_story_of_a_sale(&ann, &paid).await;
        ann.sees(46, '2').await;
        until("the outbox is empty", || async { world.count("SELECT count(*) FROM outbox").await == 0 }).await;
        until("a mail is there", || async { world.mails().len() == 1 }).await;
        assert!(world.mails()[0].contains("ann@example.org"));
        // The webhook comes as well, and changes nothing.
        until("it is noted", || async { world.count("SELECT count(*) FROM webhook_events").await == 1 }).await;
        has_the_story_of_a_sale(&ann, &paid).await;
        for (query, count) in [
            ("SELECT count(*) FROM bookings", 1),
            ("SELECT count(*) FROM payments WHERE state = 'succeeded' AND asks = 1", 1),
            ("SELECT count(*) FROM idempotency_keys", 1),
            ("SELECT count(*) FROM idempotency_keys WHERE state = 'completed'", 1),
            ("SELECT count(*) FROM late_wishes", 0),
            ("SELECT count(*) FROM tickets", 2),
            ("SELECT count(*) FROM seat_claims WHERE state = 'sold'", 2),
        ] {
            assert_eq!(world.count(query).await, count, "{mode}: {query}");
        }
        let page = ann.booking(&paid).await;
        assert_eq!((&page["state"], &page["ticket_url"]), (&paid["state"], &paid["ticket_url"]), "{page}");
        // Whoever pays for it once more changes nothing, and is told.
        let (status, again) = ann.pay(&paid, Some("tok_paid")).await;
        assert_eq!((status, &again["state"]), (StatusCode::OK, &json!("CONFIRMED")), "{mode}: {again}");
        books_balance(&world).await;
        world.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_comes_together_is_committed_together() {
    let world = World::start(1, &[GATHERING]).await;
    let buyers = with_holds(&world, 12).await;
    // One of them is declined, and goes by itself then.
    let token = |place: usize| if place == 5 { "tok_declined" } else { "tok_paid" };
    let bought = buyers.iter().enumerate().map(|(place, (visitor, hold))| visitor.buy(hold, Some(token(place))));
    let bought = join_all(bought).await;
    for (place, ((visitor, _), (status, booking))) in buyers.iter().zip(&bought).enumerate() {
        let state = if place == 5 { "CANCELLED" } else { "CONFIRMED" };
        assert_eq!((*status, text(&booking["state"])), (StatusCode::CREATED, state), "{booking}");
        if place != 5 {
            has_the_story_of_a_sale(visitor, booking).await;
        }
    }
    assert!(world.count(SUBMISSIONS).await < 12, "several bookings share a transaction");
    let apart = "SELECT count(*) FROM booking_events made JOIN booking_events paying USING (booking_id)
                 WHERE made.event = 'created' AND paying.event = 'payment_submitted'
                   AND made.xmin::text <> paying.xmin::text";
    assert_eq!(world.count(apart).await, 0, "each was checked out and submitted in one transaction");
    until("every effect is done", || async { world.count("SELECT count(*) FROM outbox").await == 0 }).await;
    until("a mail each", || async { world.mails().len() == 11 }).await;
    let states = world.visitor().states().await;
    assert_eq!(states.matches('2').count(), 11, "{states}");
    until("every webhook is noted", || async { world.count("SELECT count(*) FROM webhook_events").await >= 11 }).await;
    assert_eq!(world.count("SELECT count(*) FROM booking_events WHERE event = 'seats_sold'").await, 11);
    books_balance(&world).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_token_the_gateways_page_is_where_it_is_paid() {
    let world = World::start(1, &[]).await;
    let ann = world.visitor();
    let hold = held(&ann, &[8]).await;
    let (status, pending) = ann.buy(&hold, None).await;
    let told = (status, text(&pending["state"]), text(&pending["money"]));
    assert_eq!(told, (StatusCode::CREATED, "PAYMENT_PENDING", "PENDING"), "{pending}");
    let now = ann.held().await;
    assert_eq!((&now["paying"], &now["booking"]), (&json!(true), &pending["id"]), "{now}");
    let (status, refusal) = ann.change(&hold, &[9], &[]).await;
    assert_eq!((status, text(&refusal["code"])), (StatusCode::CONFLICT, "hold_paying"), "{refusal}");
    let page = ann.client.post(text(&pending["pay_url"]));
    let form = page.header("content-type", "application/x-www-form-urlencoded").body("card=paid");
    let answer = form.send().await.expect("the gateway answers");
    assert_eq!(answer.status(), StatusCode::SEE_OTHER);
    let back = format!("{}/bookings/{}?submitted=1", ann.base, text(&pending["id"]));
    assert_eq!(answer.headers()["location"].to_str().expect("text"), back);
    ann.sees_booking(&pending, "CONFIRMED").await;
    ann.sees(8, '2').await;
    books_balance(&world).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_declined_card_keeps_the_hold_and_a_slow_bank_ends_by_webhook() {
    let world = World::start(1, &[]).await;
    for (token, first, last, map) in [
        ("tok_declined", "CANCELLED", "CANCELLED", '1'),
        ("tok_pending_failed", "PAYMENT_PENDING", "CANCELLED", '1'),
        ("tok_pending_paid", "PAYMENT_PENDING", "CONFIRMED", '2'),
    ] {
        let ann = world.visitor();
        let (status, booking) = ann.buy(&held(&ann, &[3]).await, Some(token)).await;
        assert_eq!((status, text(&booking["state"])), (StatusCode::CREATED, first), "{token}: {booking}");
        let seen = ann.sees_booking(&booking, last).await;
        let money = if last == "CONFIRMED" { "PAID" } else { "FAILED" };
        assert_eq!(seen["money"], money, "{token}: {seen}");
        ann.sees(3, map).await;
        if last == "CANCELLED" {
            ann.lets_kept_hold_go(&seen).await;
            ann.sees(3, '0').await;
        }
    }
    assert_eq!(world.count("SELECT count(*) FROM seat_claims WHERE state <> 'released'").await, 1);
    books_balance(&world).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_checked_out_before_is_revised_and_paid() {
    for mode in ["batched", "interactive"] {
        let world = World::start(1, &[("COMMITS", mode)]).await;
        let ann = world.visitor();
        let hold = held(&ann, &[70]).await;
        let (_, booking) = ann.book(&hold).await;
        assert_eq!(booking["state"], "SEATS_LOCKED", "{booking}");
        let (status, hold) = ann.change(&hold, &[71, 72], &[70]).await;
        assert_eq!(status, StatusCode::OK, "{hold}");
        let (status, paid) = ann.buy(&hold, Some("tok_paid")).await;
        assert_eq!((status, &paid["state"]), (StatusCode::CREATED, &json!("CONFIRMED")), "{mode}: {paid}");
        assert_eq!((&paid["id"], &paid["reference"]), (&booking["id"], &booking["reference"]));
        assert_eq!((&paid["seats"], &paid["total"]["minor"]), (&hold["seats"], &json!(2 * PRICE)));
        let story = story(&ann, &paid).await;
        let steps = ["created", "hold_taken", "revised", "payment_submitted", "payment_succeeded", "seats_sold"];
        assert_eq!(names(&story), steps);
        assert_eq!(world.count("SELECT sum(amount_minor)::bigint FROM payments").await, 2 * PRICE);
        ann.sees(71, '2').await;
        ann.sees(70, '0').await;
        books_balance(&world).await;
        world.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_wish_about_late_money_goes_along_and_what_was_said_last_counts() {
    let world = World::start(1, &[]).await;
    let wishes = async || {
        let wishes = sqlx::query_scalar("SELECT if_late FROM late_wishes ORDER BY booking_id").fetch_all(&world.pg);
        wishes.await.expect("wishes are read")
    };
    let ann = world.visitor();
    let mut order = ann.order(&held(&ann, &[9]).await, None);
    order["if_late"] = "refund".into();
    let (status, pending) = ann.call(Method::POST, "/api/v1/bookings", order).await;
    assert_eq!((status, text(&pending["state"])), (StatusCode::CREATED, "PAYMENT_PENDING"), "{pending}");
    let told: Vec<String> = wishes().await;
    assert_eq!(told, ["refund"]);
    let bob = world.visitor();
    let hold = held(&bob, &[10]).await;
    let mut wish = bob.wish(&hold);
    wish["if_late"] = "same_or_better".into();
    assert_eq!(bob.call(Method::POST, "/api/v1/bookings", wish).await.0, StatusCode::CREATED);
    let (status, paid) = bob.buy(&hold, Some("tok_paid")).await;
    assert_eq!((status, text(&paid["state"])), (StatusCode::CREATED, "CONFIRMED"), "{paid}");
    let told: Vec<String> = wishes().await;
    assert_eq!(told, ["refund", "same_seats"], "he said nothing any more");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn places_without_numbers_are_bought_beside_seats() {
    for mode in ["batched", "interactive"] {
        let world = World::start(1, &[("COMMITS", mode)]).await;
        world.open_floor(5).await;
        let ann = world.visitor();
        let path = format!("/api/v1/shows/{}/holds", world.show);
        let wish = json!({ "seats": [7], "area": 0, "quantity": 3 });
        let (status, hold) = ann.call(Method::POST, &path, wish).await;
        assert_eq!((status, &hold["total"]["minor"]), (StatusCode::CREATED, &json!(4 * PRICE)), "{hold}");
        let (status, paid) = ann.buy(&hold, Some("tok_paid")).await;
        assert_eq!((status, text(&paid["state"])), (StatusCode::CREATED, "CONFIRMED"), "{mode}: {paid}");
        assert_eq!((&paid["places"], &paid["total"]), (&hold["places"], &hold["total"]));
        has_the_story_of_a_sale(&ann, &paid).await;
        // The other two are given back when a card is declined and no other one is tried.
        let bob = world.visitor();
        let (_, hold) = bob.stand(2).await;
        let (status, declined) = bob.buy(&hold, Some("tok_declined")).await;
        assert_eq!((status, text(&declined["state"])), (StatusCode::CREATED, "CANCELLED"), "{mode}: {declined}");
        bob.lets_kept_hold_go(&declined).await;
        until("the outbox is empty", || async { world.count("SELECT count(*) FROM outbox").await == 0 }).await;
        assert_eq!((ann.places_left().await, &ann.states().await[7..8]), (json!(2), "2"));
        let stock: (i32, i32) =
            sqlx::query_as("SELECT claimed, sold FROM area_stock").fetch_one(&world.pg).await.expect("a row");
        assert_eq!(stock, (0, 3), "{mode}");
        assert_eq!(world.count("SELECT count(*) FROM place_tickets").await, 3);
        assert_eq!(world.count("SELECT count(*) FROM tickets").await, 1);
        world.end().await;
    }
}
