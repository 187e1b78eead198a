//! Failing webhook endpoints: retries, no redirects, and deactivation with a notice.

use reqwest::StatusCode;
use serde_json::{Value, json};

use super::deliveries::{HOOKS, PRIVATE_ENDPOINTS, create_endpoint};
use super::receiver::{Receiver, ReceiverReply};
use crate::accounts::Browser;
use crate::reports::staff;
use crate::world::{World, expect_answer, expect_problem, text, wait_until};

async fn deliveries(max: &mut Browser, id: &str) -> Vec<Value> {
    let list = expect_answer(max.get(&format!("{HOOKS}/{id}/deliveries")).await, StatusCode::OK);
    list.as_array().expect("a list").clone()
}

async fn view(max: &mut Browser, id: &str) -> Value {
    let (_, list) = max.get(HOOKS).await;
    list.as_array().expect("a list").iter().find(|one| one["id"] == id).expect("the endpoint is listed").clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_delivery_is_retried_and_redirects_are_not_followed() {
    let world = World::start(1, &PRIVATE_ENDPOINTS).await;
    let mut max = staff(&world, "max@example.org", "manager").await;
    let receiver = Receiver::start().await;
    let (id, secret) = create_endpoint(&mut max, &receiver.url()).await;
    receiver.reply_with(&[
        ReceiverReply::Status(500),
        ReceiverReply::Silence,
        ReceiverReply::Redirect,
        ReceiverReply::Status(429),
    ]);
    world.visitor().buy_seats(&[1], "tok_paid").await;
    let received = receiver.wait_for_deliveries(5).await;
    let first = received[0].json();
    for (place, one) in received.iter().enumerate() {
        assert_eq!((one.json(), one.path.as_str()), (first.clone(), "/hooks"), "the same message to the same place");
        assert_eq!(one.header("rowlock-try"), (place + 1).to_string());
        assert_eq!(one.signed_with(&secret), 1);
    }
    let query = "SELECT count(*) FROM webhook_deliveries WHERE state = 'delivered' AND tries = 5";
    world.wait_for_count("the message is delivered", query, 1).await;
    let list = deliveries(&mut max, &id).await;
    assert_eq!((list.len(), &list[0]["last_status"], &list[0]["tries"]), (1, &json!(204), &json!(5)));
    assert_eq!(view(&mut max, &id).await["failures"], 0, "a success resets the failures");

    // A replay is a new delivery of the same message.
    let path = format!("{HOOKS}/{id}/deliveries/{}/replay", list[0]["id"]);
    expect_answer(max.post(&path, json!({ "reason": "They lost it." })).await, StatusCode::ACCEPTED);
    let received = receiver.wait_for_deliveries(6).await;
    assert_eq!((received[5].json(), received[5].header("rowlock-try")), (first, "1"));
    let missing = format!("{HOOKS}/{id}/deliveries/{}/replay", i64::MAX);
    assert_eq!(max.post(&missing, json!({ "reason": "Why not." })).await.0, StatusCode::NOT_FOUND);
    let acts = "SELECT count(*) FROM audit_list WHERE act IN ('webhook_made', 'webhook_replayed')";
    assert_eq!(world.count(acts).await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn gone_endpoint_is_deactivated_and_later_messages_are_queued() {
    let world = World::start(1, &PRIVATE_ENDPOINTS).await;
    let mut max = staff(&world, "max@example.org", "manager").await;
    let receiver = Receiver::start().await;
    let (id, _) = create_endpoint(&mut max, &receiver.url()).await;
    receiver.reply_with(&[ReceiverReply::Status(410)]);
    world.visitor().buy_seats(&[1], "tok_paid").await;
    let query = "SELECT count(*) FROM webhook_endpoints WHERE state = 'failed'";
    world.wait_for_count("the endpoint is deactivated", query, 1).await;
    let seen = view(&mut max, &id).await;
    assert!(text(&seen["notice"]).contains("410"), "{seen}");
    let (_, page) = max.visitor().raw(reqwest::Method::GET, "/staff/aurora/systems", Value::Null, "page").await;
    assert!(page.contains("data-testid=\"webhook-notice\""), "{page}");
    assert_eq!(world.count("SELECT count(*) FROM audit_list WHERE act = 'webhook_switched_off'").await, 1);

    let meanwhile = world.visitor().buy_seats(&[2], "tok_paid").await;
    let waiting = deliveries(&mut max, &id).await;
    assert_eq!((waiting.len(), &waiting[0]["state"]), (2, &json!("waiting")));
    let replay = format!("{HOOKS}/{id}/deliveries/{}/replay", waiting[1]["id"]);
    expect_problem(max.post(&replay, json!({ "reason": "Now." })).await, StatusCode::CONFLICT, "wrong_state");
    assert_eq!(receiver.deliveries().len(), 1);
    let path = format!("{HOOKS}/{id}/state");
    assert_eq!(max.post(&path, json!({ "state": "on", "reason": "Back." })).await.0, StatusCode::NO_CONTENT);
    let received = receiver.wait_for_deliveries(2).await;
    assert_eq!(received[1].json()["booking"]["id"], meanwhile["id"]);
    expect_problem(
        max.post(&path, json!({ "state": "failed", "reason": "For fun." })).await,
        StatusCode::BAD_REQUEST,
        "malformed",
    );
    assert_eq!(max.post(&path, json!({ "state": "removed", "reason": "Over." })).await.0, StatusCode::NO_CONTENT);
    assert_eq!(max.get(&format!("{HOOKS}/{id}/deliveries")).await.0, StatusCode::NOT_FOUND);
}

#[tokio::test(flavor = "multi_thread")]
async fn endpoint_that_keeps_failing_is_deactivated_with_a_reason() {
    let world = World::start(1, &PRIVATE_ENDPOINTS).await;
    let mut max = staff(&world, "max@example.org", "manager").await;
    let receiver = Receiver::start().await;
    receiver.always_reply(500);
    let (id, _) = create_endpoint(&mut max, &receiver.url()).await;
    for seat in 0..8 {
        world.visitor().buy_seats(&[seat], "tok_paid").await;
    }
    let query = "SELECT count(*) FROM webhook_endpoints WHERE state = 'failed'";
    world.wait_for_count("the endpoint is deactivated", query, 1).await;
    let seen = view(&mut max, &id).await;
    assert!(text(&seen["notice"]).contains("it answered 500"), "{seen}");
    let tries = receiver.deliveries().len();
    assert!((40..60).contains(&tries), "{tries} tries");
}

#[tokio::test(flavor = "multi_thread")]
async fn private_addresses_are_refused_as_endpoints() {
    // Without the test setting that allows private addresses.
    let world = World::start(1, &[]).await;
    let mut max = staff(&world, "max@example.org", "manager").await;
    let receiver = Receiver::start().await;
    let request_body = |url: &str| json!({ "url": url, "events": ["booking.confirmed"], "reason": "Let me in." });
    for inside in [
        receiver.url().as_str(),
        &receiver.url().replace("http://", "https://"),
        "https://169.254.169.254/latest/meta-data/",
        "https://localhost/",
        "https://[::1]/",
    ] {
        let (status, problem) = max.post(HOOKS, request_body(inside)).await;
        assert_eq!((status, text(&problem["code"])), (StatusCode::BAD_REQUEST, "malformed"), "{inside}");
    }
    for wrong in [
        json!({ "url": "https://example.com", "events": [], "reason": "None." }),
        json!({ "url": "https://example.com", "events": ["everything"], "reason": "Unknown." }),
        json!({ "url": "https://example.com", "events": ["booking.confirmed", "booking.confirmed"], "reason": "Twice." }),
        json!({ "url": "https://example.com", "events": ["booking.confirmed"], "reason": " " }),
    ] {
        assert_eq!(max.post(HOOKS, wrong.clone()).await.0, StatusCode::BAD_REQUEST, "{wrong}");
    }
    assert_eq!(world.count("SELECT count(*) FROM webhook_endpoints").await, 0);
    // An endpoint that bypassed the validation, or that was stored before it.
    let past = "INSERT INTO webhook_endpoints (id, theatre_id, url, events, secret, state, made_at)
                VALUES (gen_random_uuid(), 'aurora', $1, ARRAY['booking.confirmed'], 'secret', 'on', now())";
    sqlx::query(past).bind(receiver.url()).execute(&world.pg).await.expect("the endpoint is written");
    world.visitor().buy_seats(&[1], "tok_paid").await;
    wait_until("the delivery is refused", || async {
        let refused = "SELECT count(*) FROM webhook_deliveries WHERE last_trouble LIKE '%public internet%'";
        world.count(refused).await == 1
    })
    .await;
    assert_eq!(receiver.deliveries().len(), 0);
}
