//! Other systems that fail: tried again, not followed elsewhere, given up at last, and switched off with a notice.

use reqwest::StatusCode;
use serde_json::{Value, json};

use super::receiver::{Manner, Receiver};
use super::told::{HOOKS, NEAR, endpoint};
use crate::accounts::Browser;
use crate::reports::staff;
use crate::world::{World, text, until};

async fn deliveries(max: &mut Browser, id: &str) -> Vec<Value> {
    let (status, list) = max.get(&format!("{HOOKS}/{id}/deliveries")).await;
    assert_eq!(status, StatusCode::OK, "{list}");
    list.as_array().expect("a list").clone()
}

async fn view(max: &mut Browser, id: &str) -> Value {
    let (_, list) = max.get(HOOKS).await;
    list.as_array().expect("a list").iter().find(|one| one["id"] == id).expect("it is there").clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_tried_again_until_it_arrives_and_no_redirect_is_followed() {
    let world = World::start(1, &NEAR).await;
    let mut max = staff(&world, "max@example.org", "manager").await;
    let receiver = Receiver::start().await;
    let (id, secret) = endpoint(&mut max, &receiver.url()).await;
    receiver.answers(&[Manner::Status(500), Manner::Silence, Manner::Redirect, Manner::Status(429)]);
    world.visitor().bought(&[1], "tok_paid").await;
    let told = receiver.hears(5).await;
    let first = told[0].json();
    for (place, one) in told.iter().enumerate() {
        assert_eq!((one.json(), one.path.as_str()), (first.clone(), "/hooks"), "the same message to the same place");
        assert_eq!(one.header("rowlock-try"), (place + 1).to_string());
        assert_eq!(one.signed_with(&secret), 1);
    }
    until("it is delivered", || async {
        world.count("SELECT count(*) FROM webhook_deliveries WHERE state = 'delivered' AND tries = 5").await == 1
    })
    .await;
    let list = deliveries(&mut max, &id).await;
    assert_eq!((list.len(), &list[0]["last_status"], &list[0]["tries"]), (1, &json!(204), &json!(5)));
    assert_eq!(view(&mut max, &id).await["failures"], 0, "failures are counted in a row");

    // Told once more, as a delivery of its own with the same message.
    let path = format!("{HOOKS}/{id}/deliveries/{}/replay", list[0]["id"]);
    let (status, again) = max.post(&path, json!({ "reason": "They lost it." })).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{again}");
    let told = receiver.hears(6).await;
    assert_eq!((told[5].json(), told[5].header("rowlock-try")), (first, "1"));
    let missing = format!("{HOOKS}/{id}/deliveries/{}/replay", i64::MAX);
    assert_eq!(max.post(&missing, json!({ "reason": "Why not." })).await.0, StatusCode::NOT_FOUND);
    let acts = "SELECT count(*) FROM audit_list WHERE act IN ('webhook_made', 'webhook_replayed')";
    assert_eq!(world.count(acts).await, 2);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_is_gone_is_switched_off_and_what_happens_meanwhile_waits_for_it() {
    let world = World::start(1, &NEAR).await;
    let mut max = staff(&world, "max@example.org", "manager").await;
    let receiver = Receiver::start().await;
    let (id, _) = endpoint(&mut max, &receiver.url()).await;
    receiver.answers(&[Manner::Status(410)]);
    world.visitor().bought(&[1], "tok_paid").await;
    until("it is switched off", || async {
        world.count("SELECT count(*) FROM webhook_endpoints WHERE state = 'failed'").await == 1
    })
    .await;
    let seen = view(&mut max, &id).await;
    assert!(text(&seen["notice"]).contains("410"), "{seen}");
    let (_, page) = max.visitor().raw(reqwest::Method::GET, "/staff/aurora/systems", Value::Null, "page").await;
    assert!(page.contains("data-testid=\"webhook-notice\""), "{page}");
    assert_eq!(world.count("SELECT count(*) FROM audit_list WHERE act = 'webhook_switched_off'").await, 1);

    let meanwhile = world.visitor().bought(&[2], "tok_paid").await;
    let waiting = deliveries(&mut max, &id).await;
    assert_eq!((waiting.len(), &waiting[0]["state"]), (2, &json!("waiting")));
    let replay = format!("{HOOKS}/{id}/deliveries/{}/replay", waiting[1]["id"]);
    let (status, problem) = max.post(&replay, json!({ "reason": "Now." })).await;
    assert_eq!((status, text(&problem["code"])), (StatusCode::CONFLICT, "wrong_state"));
    assert_eq!(receiver.told().len(), 1);
    let path = format!("{HOOKS}/{id}/state");
    assert_eq!(max.post(&path, json!({ "state": "on", "reason": "Back." })).await.0, StatusCode::NO_CONTENT);
    let told = receiver.hears(2).await;
    assert_eq!(told[1].json()["booking"]["id"], meanwhile["id"]);
    let (status, problem) = max.post(&path, json!({ "state": "failed", "reason": "For fun." })).await;
    assert_eq!((status, text(&problem["code"])), (StatusCode::BAD_REQUEST, "malformed"));
    assert_eq!(max.post(&path, json!({ "state": "removed", "reason": "Over." })).await.0, StatusCode::NO_CONTENT);
    assert_eq!(max.get(&format!("{HOOKS}/{id}/deliveries")).await.0, StatusCode::NOT_FOUND);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_fails_and_fails_is_given_up_and_says_why() {
    let world = World::start(1, &NEAR).await;
    let mut max = staff(&world, "max@example.org", "manager").await;
    let receiver = Receiver::start().await;
    receiver.always(500);
    let (id, _) = endpoint(&mut max, &receiver.url()).await;
    for seat in 0..8 {
        world.visitor().bought(&[seat], "tok_paid").await;
    }
    until("it is switched off", || async {
        world.count("SELECT count(*) FROM webhook_endpoints WHERE state = 'failed'").await == 1
    })
    .await;
    let seen = view(&mut max, &id).await;
    assert!(text(&seen["notice"]).contains("it answered 500"), "{seen}");
    let tries = receiver.told().len();
    assert!((40..60).contains(&tries), "{tries} tries");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn our_own_network_is_told_nothing() {
    // Without the setting of tests.
    let world = World::start(1, &[]).await;
    let mut max = staff(&world, "max@example.org", "manager").await;
    let receiver = Receiver::start().await;
    let wish = |url: &str| json!({ "url": url, "events": ["booking.confirmed"], "reason": "Let me in." });
    for inside in [
        receiver.url().as_str(),
        &receiver.url().replace("http://", "https://"),
        "https://169.254.169.254/latest/meta-data/",
        "https://localhost/",
        "https://[::1]/",
    ] {
        let (status, problem) = max.post(HOOKS, wish(inside)).await;
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
    // Somebody who got past that, or an address from before.
    let past = "INSERT INTO webhook_endpoints (id, theatre_id, url, events, secret, state, made_at)
                VALUES (gen_random_uuid(), 'aurora', $1, ARRAY['booking.confirmed'], 'secret', 'on', now())";
    sqlx::query(past).bind(receiver.url()).execute(&world.pg).await.expect("it is written");
    world.visitor().bought(&[1], "tok_paid").await;
    until("it was refused", || async {
        let refused = "SELECT count(*) FROM webhook_deliveries WHERE last_trouble LIKE '%public internet%'";
        world.count(refused).await == 1
    })
    .await;
    assert_eq!(receiver.told().len(), 0);
    world.end().await;
}
