//! Webhooks that are wrong, old, repeated, reordered or about something else: the documented answer, a line
//! that stays, and no effect twice.

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::by_mail::addresses_open_without_a_cookie;
use crate::world::{PRICE, SECRET, Visitor, World, text, until};

/// The secret that [`SECRET`] takes the place of.
const BEFORE: &str = "the secret before that one; 32 bytes or more";

/// The books' finding about a payment that has succeeded by a webhook of the test only: its gateway has taken nothing.
const SAID_ONLY: &str = "CONFIRMED; 0 were taken and 0 given back";

async fn checked_out(visitor: &Visitor, seats: &[u32]) -> Value {
    let (status, hold) = visitor.hold(seats).await;
    assert_eq!(status, StatusCode::CREATED, "{hold}");
    visitor.book(&hold).await.1
}

fn success(id: &str, booking: &Value, minor: i64) -> String {
    json!({
        "id": id, "type": "payment.succeeded", "created_ms": 0,
        "payment": { "id": "p", "reference": booking["id"], "amount_minor": minor, "currency": "EUR" },
    })
    .to_string()
}

fn now_s() -> i64 {
    platform::clock::now().0 / 1_000
}

/// Delivers bytes under a signature, to that gateway's address.
async fn deliver(visitor: &Visitor, gateway: &str, body: &str, signature: (&str, &str)) -> (u16, Value) {
    let url = format!("{}/api/v1/webhooks/payments/{gateway}", visitor.base);
    let request = visitor.client.post(url).header("content-type", "application/json").body(body.to_owned());
    let answer = request.header(signature.0, signature.1).send().await.expect("the server answers");
    (answer.status().as_u16(), answer.json().await.expect("JSON"))
}

async fn told(visitor: &Visitor, body: &str) -> (u16, Value) {
    deliver(visitor, "simulator", body, ("payment-signature", &World::sign(body, now_s()))).await
}

async fn outcomes(world: &World, event_id: &str) -> Vec<String> {
    let rows = sqlx::query_scalar("SELECT outcome FROM webhook_events WHERE event_id = $1").bind(event_id);
    rows.fetch_all(&world.pg).await.expect("events are read")
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_signed_by_the_gateway_now_is_refused_and_leaves_no_row() {
    let both = format!("{SECRET},{BEFORE}");
    let world = World::start(1, &[("SIMULATOR_WEBHOOK_SECRET", both.as_str())]).await;
    let ann = world.visitor();
    let booking = checked_out(&ann, &[1]).await;
    ann.pay(&booking, None).await;
    let body = success("evt_1", &booking, PRICE);
    let good = World::sign(&body, now_s());
    let other_secret = simulator::webhooks::sign("somebody else's secret", now_s(), body.as_bytes());
    let old = World::sign(&body, now_s() - 301);
    for (gateway, header, signature, expected) in [
        ("simulator", "payment-signature", &*other_secret, (401, "webhook_signature_mismatch")),
        ("simulator", "payment-signature", &old, (401, "webhook_stale")),
        ("simulator", "payment-signature", "t=1,v1=zz", (401, "webhook_unsigned")),
        ("simulator", "stripe-signature", &good, (401, "webhook_unsigned")),
        ("stripe", "stripe-signature", &good, (404, "not_found")),
        ("nobody", "payment-signature", &good, (404, "not_found")),
    ] {
        let (status, problem) = deliver(&ann, gateway, &body, (header, signature)).await;
        assert_eq!((status, text(&problem["code"])), expected, "{gateway} {signature}");
    }
    assert_eq!(world.count("SELECT count(*) FROM webhook_events").await, 0);
    assert_eq!(text(&ann.booking(&booking).await["state"]), "PAYMENT_PENDING");
    // The secret that is being replaced is good until it is gone.
    let before = simulator::webhooks::sign(BEFORE, now_s(), body.as_bytes());
    let (status, answer) = deliver(&ann, "simulator", &body, ("payment-signature", &before)).await;
    assert_eq!((status, answer), (200, json!({ "outcome": "applied" })));
    world.end_despite(&[SAID_ONLY]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_of_an_unknown_payment_is_noted_and_refused_each_time() {
    let world = World::start(1, &[]).await;
    let ann = world.visitor();
    let nobody = json!({ "id": platform::ids::new_id() });
    // A booking nobody pays for yet is as unknown.
    let unpaid = checked_out(&ann, &[1]).await;
    for (id, booking) in [("evt_nobody", &nobody), ("evt_unpaid", &unpaid)] {
        for _ in 0..2 {
            let (status, problem) = told(&ann, &success(id, booking, PRICE)).await;
            assert_eq!((status, text(&problem["code"])), (404, "unknown_payment"));
        }
        assert_eq!(outcomes(&world, id).await, ["unknown_payment"]);
    }
    assert_eq!(text(&ann.booking(&unpaid).await["state"]), "SEATS_LOCKED");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_event_a_hundred_times_at_once_is_applied_once() {
    let world = World::start(2, &[]).await;
    let ann = world.visitor();
    let at_other = Visitor { base: world.servers[1].url.clone(), ..ann.clone() };
    let booking = checked_out(&ann, &[1]).await;
    ann.pay(&booking, None).await;
    let body = success("evt_100", &booking, PRICE);
    let all = (0..100).map(|number| told(if number % 2 == 0 { &ann } else { &at_other }, &body));
    let answers = futures::future::join_all(all).await;
    let count = |outcome: &str| {
        answers.iter().filter(|(status, answer)| *status == 200 && answer["outcome"] == outcome).count()
    };
    assert_eq!((count("applied"), count("duplicate")), (1, 99), "{answers:?}");
    assert_eq!(world.count("SELECT count(*) FROM booking_events WHERE event = 'payment_succeeded'").await, 1);
    assert_eq!(world.count("SELECT count(*) FROM tickets").await, 1);
    assert_eq!(outcomes(&world, "evt_100").await, ["applied"]);
    world.end_despite(&[SAID_ONLY]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_amount_goes_back_and_the_story_says_both_sums() {
    let world = World::start(1, &[]).await;
    for (token, seat) in [(Some("tok_another_amount"), 1), (None, 2)] {
        let ann = world.visitor();
        let booking = checked_out(&ann, &[seat]).await;
        let (_, answer) = ann.pay(&booking, token).await;
        if token.is_none() {
            let page = ann.client.post(text(&answer["pay_url"])).body("card=another_amount&action=pay");
            let page = page.header("content-type", "application/x-www-form-urlencoded").send().await;
            assert_eq!(page.expect("a page").status(), StatusCode::SEE_OTHER);
        }
        ann.sees_booking(&booking, "CANCELLED").await;
        until("the money is back", || async { ann.booking(&booking).await["money"] == "REFUNDED" }).await;
        ann.sees(seat as usize, '0').await;
        let (_, story) = ann.get(&format!("/api/v1/bookings/{}/events", text(&booking["id"]))).await;
        let told = "The gateway took €12.49 where €12.50 was agreed; it goes back.";
        let lines = story.as_array().expect("a list");
        assert!(lines.iter().any(|line| line["reason"] == told), "{story}");
    }
    until("both buyers have a mail", || async {
        world.mails().iter().filter(|mail| mail.contains("Subject: Your payment was not the agreed amount")).count()
            == 2
    })
    .await;
    addresses_open_without_a_cookie(&world);
    assert!(!world.mails().iter().any(|mail| mail.contains("too late")), "{:?}", world.mails());
    assert_eq!(world.count("SELECT count(*) FROM tickets").await, 0);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_in_the_wrong_order_undo_nothing() {
    let world = World::start(1, &[]).await;
    let ann = world.visitor();
    let booking = checked_out(&ann, &[1]).await;
    let (_, paid) = ann.pay(&booking, Some("tok_reordered_webhooks")).await;
    assert_eq!(paid["state"], "CONFIRMED");
    until("both events are noted", || async { world.count("SELECT count(*) FROM webhook_events").await == 2 }).await;
    // The success may be faster than the answer to the charge; the failure after it means nothing either way.
    assert!(world.count("SELECT count(*) FROM webhook_events WHERE outcome = 'ignored'").await >= 1);
    assert_eq!(world.count("SELECT count(*) FROM booking_events WHERE event = 'payment_failed'").await, 0);
    let seen = ann.booking(&booking).await;
    assert_eq!((&seen["state"], &seen["money"]), (&json!("CONFIRMED"), &json!("PAID")));
    // A refund's news before there was a refund is no refund.
    let event = json!({ "id": "evt_refund", "type": "refund.succeeded", "created_ms": 0,
        "payment": { "id": "p", "reference": booking["id"], "amount_minor": PRICE, "currency": "EUR" } });
    assert_eq!(told(&ann, &event.to_string()).await, (200, json!({ "outcome": "ignored" })));
    assert_eq!(text(&ann.booking(&booking).await["money"]), "PAID");
    // The other way round: failed, and then paid all the same. That booking stays undone; its seat is still
    // free, so the money pays for a new one.
    let bob = world.visitor();
    let booking = checked_out(&bob, &[2]).await;
    bob.pay(&booking, None).await;
    let failed = json!({ "id": "evt_failed", "type": "payment.failed", "created_ms": 0,
        "payment": { "id": "p", "reference": booking["id"], "amount_minor": PRICE, "currency": "EUR" } });
    assert_eq!(told(&bob, &failed.to_string()).await, (200, json!({ "outcome": "applied" })));
    assert_eq!(told(&bob, &success("evt_then", &booking, PRICE)).await, (200, json!({ "outcome": "applied" })));
    until("the money has moved", || async { bob.booking(&booking).await["money"] == "MOVED" }).await;
    assert_eq!(bob.booking(&booking).await["state"], "CANCELLED");
    assert_eq!(world.count("SELECT count(*) FROM bookings WHERE state = 'CONFIRMED'").await, 2);
    world.end_despite(&[SAID_ONLY]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refund_above_the_charge_is_refused_and_waits_for_a_person() {
    let world = World::start(1, &[]).await;
    let ann = world.visitor();
    let booking = checked_out(&ann, &[1]).await;
    assert_eq!(ann.pay(&booking, Some("tok_paid")).await.1["state"], "CONFIRMED");
    until("nothing is left to do", || async { world.count("SELECT count(*) FROM outbox").await == 0 }).await;
    let wrong = "INSERT INTO outbox (booking_id, effect, amount_minor, run_after, created_at)
                 VALUES ($1::uuid, 'refund', $2, now(), now())";
    let inserted = sqlx::query(wrong).bind(text(&booking["id"])).bind(PRICE + 1).execute(&world.pg).await;
    inserted.expect("an order that should never be");
    until("it is parked at the first no", || async {
        world.count("SELECT count(*) FROM outbox WHERE attempts = 1 AND parked_why LIKE '%above_charge%'").await == 1
    })
    .await;
    assert_eq!(text(&ann.booking(&booking).await["money"]), "PAID");
    world.end().await;
}
