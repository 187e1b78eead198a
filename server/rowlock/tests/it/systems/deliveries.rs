//! Webhook deliveries: once per event, signed, and without personal data.

use reqwest::StatusCode;
use serde_json::{Value, json};

use super::receiver::{Delivery, Receiver};
use crate::accounts::Browser;
use crate::reports::staff;
use crate::world::{PRICE, World, expect_answer, text};

pub const HOOKS: &str = "/api/v1/theatres/aurora/webhooks";
/// Servers that may deliver to private addresses and retry soon.
pub const PRIVATE_ENDPOINTS: [(&str, &str); 3] =
    [("WEBHOOKS_MAY_BE_PRIVATE", "true"), ("WEBHOOK_FIRST_PAUSE_MS", "1"), ("WEBHOOK_DEADLINE_MS", "400")];
const ALL: [&str; 5] = ["booking.confirmed", "booking.cancelled", "booking.refunded", "show.cancelled", "show.moved"];

/// Creates an endpoint for all events. Returns its id and its secret.
pub async fn create_endpoint(max: &mut Browser, url: &str) -> (String, String) {
    let request_body = json!({ "url": url, "events": ALL, "reason": "The newsletter listens." });
    let made = expect_answer(max.post(HOOKS, request_body).await, StatusCode::CREATED);
    (text(&made["id"]).to_owned(), text(&made["secret"]).to_owned())
}

fn events(deliveries: &[Delivery]) -> Vec<String> {
    let mut names: Vec<String> = deliveries.iter().map(|one| text(&one.json()["event"]).to_owned()).collect();
    names.sort_unstable();
    names
}

#[tokio::test(flavor = "multi_thread")]
async fn sale_cancellation_and_refund_are_each_delivered_once_and_signed() {
    let world = World::start(2, &PRIVATE_ENDPOINTS).await;
    let mut max = staff(&world, "max@example.org", "manager").await;
    let receiver = Receiver::start().await;
    let (_, secret) = create_endpoint(&mut max, &receiver.url()).await;
    let ann = world.visitor();
    let booking = ann.buy_seats(&[46, 47], "tok_paid").await;
    let deliveries = receiver.wait_for_deliveries(1).await;
    let confirmed = deliveries[0].json();
    assert_eq!((&confirmed["event"], &confirmed["theatre"]), (&json!("booking.confirmed"), &json!("aurora")));
    let about = &confirmed["booking"];
    assert_eq!((&about["id"], &about["reference"]), (&booking["id"], &booking["reference"]));
    assert_eq!((&about["state"], &about["total"]["minor"]), (&json!("CONFIRMED"), &json!(2 * PRICE)));
    assert_eq!(deliveries[0].header("rowlock-message"), text(&confirmed["id"]));
    assert_eq!(deliveries[0].header("rowlock-event"), "booking.confirmed");

    assert_eq!(ann.cancel(&booking, Some(&[46])).await.0, StatusCode::OK);
    assert_eq!(ann.cancel(&booking, None).await.0, StatusCode::OK);
    let deliveries = receiver.wait_for_deliveries(5).await;
    let expected =
        ["booking.cancelled", "booking.cancelled", "booking.confirmed", "booking.refunded", "booking.refunded"];
    assert_eq!(events(&deliveries), expected);
    for one in &deliveries {
        assert_eq!((one.signatures(), one.signed_with(&secret)), (1, 1), "{:?}", one.headers);
        let text = String::from_utf8(one.body.to_vec()).expect("text");
        assert!(!text.contains("Ann") && !text.contains("example.org"), "no personal data: {text}");
    }
    let back: i64 = deliveries.iter().filter_map(|one| one.json()["refund"]["amount"]["minor"].as_i64()).sum();
    assert_eq!(back, 2 * PRICE - 2 * PRICE / 10);
    // Two replicas deliver everything once, and nothing is pending.
    world
        .wait_for_count("all is delivered", "SELECT count(*) FROM webhook_deliveries WHERE state <> 'delivered'", 0)
        .await;
    assert_eq!((receiver.deliveries().len(), world.count("SELECT count(*) FROM webhook_messages").await), (5, 5));
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelled_show_is_delivered_with_every_cancelled_booking() {
    let world = World::start(1, &PRIVATE_ENDPOINTS).await;
    let mut max = staff(&world, "max@example.org", "manager").await;
    let receiver = Receiver::start().await;
    create_endpoint(&mut max, &receiver.url()).await;
    world.visitor().buy_seats(&[1], "tok_paid").await;
    world.visitor().buy_seats(&[2], "tok_paid").await;
    let show = world.show.to_string();
    let (well, said) = world.command(&["cancel-show", &show, "--reason", "The projector is broken."]).await;
    assert!(well, "{said}");
    let deliveries = receiver.wait_for_deliveries(7).await;
    let count = |event: &str| events(&deliveries).iter().filter(|name| *name == event).count();
    assert_eq!(ALL.map(count), [2, 2, 2, 1, 0]);
    let off = deliveries
        .iter()
        .map(Delivery::json)
        .find(|one| one["event"] == "show.cancelled")
        .expect("the event was delivered");
    assert_eq!((&off["show"]["id"], &off["show"]["reason"]), (&json!(show), &json!("The projector is broken.")));
}

#[tokio::test(flavor = "multi_thread")]
async fn endpoint_gets_its_events_of_its_theatre_only_and_none_while_off() {
    let world = World::start(1, &PRIVATE_ENDPOINTS).await;
    let mut max = staff(&world, "max@example.org", "manager").await;
    crate::accounts::another_theatre(&world).await;
    crate::accounts::grant(&world, "max@example.org", "rialto", "manager").await;
    let (ours, theirs) = (Receiver::start().await, Receiver::start().await);
    let request_body =
        |url: String| json!({ "url": url, "events": ["booking.confirmed"], "reason": "The till next door." });
    let (_, made) = max.post(HOOKS, request_body(ours.url())).await;
    let (status, _) = max.post("/api/v1/theatres/rialto/webhooks", request_body(theirs.url())).await;
    assert_eq!(status, StatusCode::CREATED);
    let ann = world.visitor();
    let booking = ann.buy_seats(&[1], "tok_paid").await;
    ours.wait_for_deliveries(1).await;
    assert_eq!(ann.cancel(&booking, None).await.0, StatusCode::OK);
    ann.wait_for_money(&booking, "REFUNDED").await;
    let path = format!("{HOOKS}/{}/state", text(&made["id"]));
    let (status, _) = max.post(&path, json!({ "state": "off", "reason": "It moves house." })).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    world.visitor().buy_seats(&[2], "tok_paid").await;
    assert_eq!(max.post(&path, json!({ "state": "on", "reason": "It is back." })).await.0, StatusCode::NO_CONTENT);
    let last = world.visitor().buy_seats(&[3], "tok_paid").await;
    let deliveries = ours.wait_for_deliveries(2).await;
    assert_eq!(deliveries[1].json()["booking"]["id"], last["id"]);
    assert_eq!((ours.deliveries().len(), theirs.deliveries().len()), (2, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn both_secrets_sign_during_a_rotation_and_each_is_shown_once() {
    let world = World::start(1, &PRIVATE_ENDPOINTS).await;
    let mut max = staff(&world, "max@example.org", "manager").await;
    let receiver = Receiver::start().await;
    let (id, first) = create_endpoint(&mut max, &receiver.url()).await;
    let path = format!("{HOOKS}/{id}/secret");
    let visitor = max.visitor();
    let rotate = async || {
        let body = json!({ "reason": "It was in a mail." });
        visitor.raw(reqwest::Method::POST, &path, body, "one-intent").await
    };
    let deliveries = rotate().await;
    assert_eq!(deliveries.0, StatusCode::OK, "{}", deliveries.1);
    assert_eq!(rotate().await, deliveries, "a retry gets the same answer");
    let made: Value = serde_json::from_str(&deliveries.1).expect("JSON");
    let second = text(&made["secret"]).to_owned();
    assert!(made["old_secret_until"].is_string() && second != first, "{made}");
    world.visitor().buy_seats(&[1], "tok_paid").await;
    let deliveries = receiver.wait_for_deliveries(1).await;
    assert_eq!(
        (deliveries[0].signatures(), deliveries[0].signed_with(&first), deliveries[0].signed_with(&second)),
        (2, 1, 1)
    );
    // A day later only the new secret signs.
    let aged = "UPDATE webhook_endpoints SET old_until = now() - interval '1 second'";
    world.execute(aged).await;
    world.visitor().buy_seats(&[2], "tok_paid").await;
    let deliveries = receiver.wait_for_deliveries(2).await;
    assert_eq!((deliveries[1].signatures(), deliveries[1].signed_with(&second)), (1, 1));
    let (_, listed) = max.get(HOOKS).await;
    let kept: i64 =
        sqlx::query_scalar("SELECT count(*) FROM idempotency_keys WHERE position($1 in encode(body, 'escape')) > 0")
            .bind(&second)
            .fetch_one(&world.pg)
            .await
            .expect("a count");
    assert!(!listed.to_string().contains(&second) && kept == 0, "{listed}");
}
