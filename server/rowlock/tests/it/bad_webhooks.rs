//! Invalid, stale, repeated, reordered and unrelated webhooks: the documented answer, a stored event, and no duplicate
//! effect.

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::mailed_links::assert_mails_link_without_cookie;
use crate::world::{PRICE, SECRET, Visitor, World, text, wait_until};

/// The previous webhook secret, which [`SECRET`] replaces.
const PREVIOUS_SECRET: &str = "the secret before that one; 32 bytes or more";

/// The books' finding about a payment that only the test's webhook reports: its gateway has charged nothing.
const WEBHOOK_ONLY: &str = "CONFIRMED; 0 were taken and 0 given back";

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

/// Delivers a body with a signature header to this gateway's route.
async fn deliver(visitor: &Visitor, gateway: &str, body: &str, signature: (&str, &str)) -> (u16, Value) {
    let url = format!("{}/api/v1/webhooks/payments/{gateway}", visitor.base);
    let request = visitor.client.post(url).header("content-type", "application/json").body(body.to_owned());
    let answer = request.header(signature.0, signature.1).send().await.expect("the server answers");
    (answer.status().as_u16(), answer.json().await.expect("JSON"))
}

async fn deliver_signed(visitor: &Visitor, body: &str) -> (u16, Value) {
    deliver(visitor, "simulator", body, ("payment-signature", &World::sign(body, now_s()))).await
}

async fn outcomes(world: &World, event_id: &str) -> Vec<String> {
    let rows = sqlx::query_scalar("SELECT outcome FROM webhook_events WHERE event_id = $1").bind(event_id);
    rows.fetch_all(&world.pg).await.expect("events are read")
}

#[tokio::test(flavor = "multi_thread")]
async fn webhooks_without_a_valid_current_signature_are_refused_and_not_stored() {
    let both = format!("{SECRET},{PREVIOUS_SECRET}");
    let (world, ann) = World::with_visitor(&[("SIMULATOR_WEBHOOK_SECRET", both.as_str())]).await;
    let booking = ann.check_out(&[1]).await.1;
    ann.pay(&booking, None).await;
    let body = success("evt_1", &booking, PRICE);
    let good = World::sign(&body, now_s());
    let other_secret = simulator::webhooks::sign("a foreign secret", now_s(), body.as_bytes());
    let old = World::sign(&body, now_s() - 301);
    for (gateway, header, signature, expected) in [
        ("simulator", "payment-signature", &*other_secret, (401, "webhook_signature_mismatch")),
        ("simulator", "payment-signature", &old, (401, "webhook_stale")),
        ("simulator", "payment-signature", "t=1,v1=zz", (401, "webhook_unsigned")),
        ("simulator", "stripe-signature", &good, (401, "webhook_unsigned")),
        ("stripe", "stripe-signature", &good, (404, "not_found")),
        ("no-gateway", "payment-signature", &good, (404, "not_found")),
    ] {
        let (status, problem) = deliver(&ann, gateway, &body, (header, signature)).await;
        assert_eq!((status, text(&problem["code"])), expected, "{gateway} {signature}");
    }
    assert_eq!(world.count("SELECT count(*) FROM webhook_events").await, 0);
    assert_eq!(text(&ann.booking(&booking).await["state"]), "PAYMENT_PENDING");
    // The previous secret is accepted until it is removed.
    let before = simulator::webhooks::sign(PREVIOUS_SECRET, now_s(), body.as_bytes());
    let (status, answer) = deliver(&ann, "simulator", &body, ("payment-signature", &before)).await;
    assert_eq!((status, answer), (200, json!({ "outcome": "applied" })));
    world.end_with_known_findings(&[WEBHOOK_ONLY]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn event_of_an_unknown_payment_is_stored_and_refused_each_time() {
    let (world, ann) = World::with_visitor(&[]).await;
    let unknown = json!({ "id": platform::ids::new_id() });
    // A booking without a payment is treated as unknown.
    let unpaid = ann.check_out(&[1]).await.1;
    for (id, booking) in [("evt_unknown", &unknown), ("evt_unpaid", &unpaid)] {
        for _ in 0..2 {
            let (status, problem) = deliver_signed(&ann, &success(id, booking, PRICE)).await;
            assert_eq!((status, text(&problem["code"])), (404, "unknown_payment"));
        }
        assert_eq!(outcomes(&world, id).await, ["unknown_payment"]);
    }
    assert_eq!(text(&ann.booking(&unpaid).await["state"]), "SEATS_LOCKED");
}

#[tokio::test(flavor = "multi_thread")]
async fn event_delivered_a_hundred_times_concurrently_is_applied_once() {
    let world = World::start(2, &[]).await;
    let ann = world.visitor();
    let at_other = Visitor { base: world.servers[1].url.clone(), ..ann.clone() };
    let booking = ann.check_out(&[1]).await.1;
    ann.pay(&booking, None).await;
    let body = success("evt_100", &booking, PRICE);
    let all = (0..100).map(|number| deliver_signed(if number % 2 == 0 { &ann } else { &at_other }, &body));
    let answers = futures::future::join_all(all).await;
    let count = |outcome: &str| {
        answers.iter().filter(|(status, answer)| *status == 200 && answer["outcome"] == outcome).count()
    };
    assert_eq!((count("applied"), count("duplicate")), (1, 99), "{answers:?}");
    assert_eq!(world.count("SELECT count(*) FROM booking_events WHERE event = 'payment_succeeded'").await, 1);
    assert_eq!(world.count("SELECT count(*) FROM tickets").await, 1);
    assert_eq!(outcomes(&world, "evt_100").await, ["applied"]);
    world.end_with_known_findings(&[WEBHOOK_ONLY]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn payment_of_another_amount_is_refunded_and_the_event_names_both_sums() {
    let world = World::start(1, &[]).await;
    for (token, seat) in [(Some("tok_another_amount"), 1), (None, 2)] {
        let ann = world.visitor();
        let booking = ann.check_out(&[seat]).await.1;
        let (_, answer) = ann.pay(&booking, token).await;
        if token.is_none() {
            let page = ann.client.post(text(&answer["pay_url"])).body("card=another_amount&action=pay");
            let page = page.header("content-type", "application/x-www-form-urlencoded").send().await;
            assert_eq!(page.expect("a page").status(), StatusCode::SEE_OTHER);
        }
        ann.wait_for_booking(&booking, "CANCELLED").await;
        wait_until("the money is refunded", || async { ann.booking(&booking).await["money"] == "REFUNDED" }).await;
        ann.wait_for_seat(seat as usize, '0').await;
        let (_, events) = ann.get(&format!("/api/v1/bookings/{}/events", text(&booking["id"]))).await;
        let reason = "The gateway took €12.49 where €12.50 was agreed; it goes back.";
        let lines = events.as_array().expect("a list");
        assert!(lines.iter().any(|line| line["reason"] == reason), "{events}");
    }
    wait_until("both buyers get a mail", || async {
        world.mails().iter().filter(|mail| mail.contains("Subject: Your payment was not the agreed amount")).count()
            == 2
    })
    .await;
    assert_mails_link_without_cookie(&world);
    assert!(!world.mails().iter().any(|mail| mail.contains("too late")), "{:?}", world.mails());
    assert_eq!(world.count("SELECT count(*) FROM tickets").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn reordered_events_undo_nothing() {
    let (world, ann) = World::with_visitor(&[]).await;
    let booking = ann.check_out(&[1]).await.1;
    let (_, paid) = ann.pay(&booking, Some("tok_reordered_webhooks")).await;
    assert_eq!(paid["state"], "CONFIRMED");
    world.wait_for_count("both events are noted", "SELECT count(*) FROM webhook_events", 2).await;
    // The success may arrive before the charge's answer. A failure after it is ignored either way.
    assert!(world.count("SELECT count(*) FROM webhook_events WHERE outcome = 'ignored'").await >= 1);
    assert_eq!(world.count("SELECT count(*) FROM booking_events WHERE event = 'payment_failed'").await, 0);
    let seen = ann.booking(&booking).await;
    assert_eq!((&seen["state"], &seen["money"]), (&json!("CONFIRMED"), &json!("PAID")));
    // An event of a refund that was never requested is ignored.
    let event = json!({ "id": "evt_refund", "type": "refund.succeeded", "created_ms": 0,
        "payment": { "id": "p", "reference": booking["id"], "amount_minor": PRICE, "currency": "EUR" } });
    assert_eq!(deliver_signed(&ann, &event.to_string()).await, (200, json!({ "outcome": "ignored" })));
    assert_eq!(text(&ann.booking(&booking).await["money"]), "PAID");
    // The other order: failed, then paid. That booking stays cancelled. Its seat is still free, so the money pays for a
    // new booking.
    let bob = world.visitor();
    let booking = bob.check_out(&[2]).await.1;
    bob.pay(&booking, None).await;
    let failed = json!({ "id": "evt_failed", "type": "payment.failed", "created_ms": 0,
        "payment": { "id": "p", "reference": booking["id"], "amount_minor": PRICE, "currency": "EUR" } });
    assert_eq!(deliver_signed(&bob, &failed.to_string()).await, (200, json!({ "outcome": "applied" })));
    assert_eq!(
        deliver_signed(&bob, &success("evt_then", &booking, PRICE)).await,
        (200, json!({ "outcome": "applied" }))
    );
    wait_until("the money is moved", || async { bob.booking(&booking).await["money"] == "MOVED" }).await;
    assert_eq!(bob.booking(&booking).await["state"], "CANCELLED");
    assert_eq!(world.count("SELECT count(*) FROM bookings WHERE state = 'CONFIRMED'").await, 2);
    world.end_with_known_findings(&[WEBHOOK_ONLY]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refund_above_the_charge_is_refused_and_parked() {
    let (world, ann) = World::with_visitor(&[]).await;
    let booking = ann.check_out(&[1]).await.1;
    assert_eq!(ann.pay(&booking, Some("tok_paid")).await.1["state"], "CONFIRMED");
    world.wait_for_empty_outbox().await;
    let wrong = "INSERT INTO outbox (booking_id, effect, amount_minor, run_after, created_at)
                 VALUES ($1::uuid, 'refund', $2, now(), now())";
    let inserted = sqlx::query(wrong).bind(text(&booking["id"])).bind(PRICE + 1).execute(&world.pg).await;
    inserted.expect("an invalid refund");
    let query = "SELECT count(*) FROM outbox WHERE attempts = 1 AND parked_why LIKE '%above_charge%'";
    world.wait_for_count("the refund is parked at the first refusal", query, 1).await;
    assert_eq!(text(&ann.booking(&booking).await["money"]), "PAID");
}
