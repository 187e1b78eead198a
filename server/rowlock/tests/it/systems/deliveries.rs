//! Webhook deliveries: once per event, signed, and without personal data. Failing endpoints: retries, no redirects, and
//! deactivation with a notice. Hanging endpoints do not delay others.

use super::receiver::{Delivery, Receiver, ReceiverReply};
use crate::prelude::*;
use crate::reports::staff;

pub const HOOKS: &str = "/api/v1/theatres/aurora/webhooks";
/// Servers that may deliver to private addresses and retry soon.
pub const PRIVATE_ENDPOINTS: [(&str, &str); 3] =
    [("WEBHOOKS_MAY_BE_PRIVATE", "true"), ("WEBHOOK_FIRST_PAUSE_MS", "1"), ("WEBHOOK_DEADLINE_MS", "400")];
const ALL: [&str; 5] = ["booking.confirmed", "booking.cancelled", "booking.refunded", "show.cancelled", "show.moved"];

async fn world_with_receiver() -> (World, Browser, Receiver) {
    let world = World::start(1, &PRIVATE_ENDPOINTS).await;
    let max = staff(&world, "max@example.org", "manager").await;
    (world, max, Receiver::start().await)
}

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
    let (world, mut max, receiver) = world_with_receiver().await;
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
    assert_eq!(max.post("/api/v1/theatres/rialto/webhooks", request_body(theirs.url())).await.0, StatusCode::CREATED);
    let ann = world.visitor();
    let booking = ann.buy_seats(&[1], "tok_paid").await;
    ours.wait_for_deliveries(1).await;
    assert_eq!(ann.cancel(&booking, None).await.0, StatusCode::OK);
    ann.wait_for_money(&booking, "REFUNDED").await;
    let path = format!("{HOOKS}/{}/state", text(&made["id"]));
    assert_eq!(max.post(&path, json!({ "state": "off", "reason": "It moves house." })).await.0, StatusCode::NO_CONTENT);
    world.visitor().buy_seats(&[2], "tok_paid").await;
    assert_eq!(max.post(&path, json!({ "state": "on", "reason": "It is back." })).await.0, StatusCode::NO_CONTENT);
    let last = world.visitor().buy_seats(&[3], "tok_paid").await;
    let deliveries = ours.wait_for_deliveries(2).await;
    assert_eq!(deliveries[1].json()["booking"]["id"], last["id"]);
    assert_eq!((ours.deliveries().len(), theirs.deliveries().len()), (2, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn both_secrets_sign_during_a_rotation_and_each_is_shown_once() {
    let (world, mut max, receiver) = world_with_receiver().await;
    let (id, first) = create_endpoint(&mut max, &receiver.url()).await;
    let path = format!("{HOOKS}/{id}/secret");
    let visitor = max.visitor();
    let rotate = async || {
        let body = json!({ "reason": "It was in a mail." });
        visitor.raw(Method::POST, &path, body, "one-intent").await
    };
    let deliveries = rotate().await;
    assert_eq!(deliveries.0, StatusCode::OK, "{}", deliveries.1);
    assert_eq!(rotate().await, deliveries, "a retry gets the same answer");
    let made: Value = serde_json::from_str(&deliveries.1).expect("JSON");
    let second = text(&made["secret"]).to_owned();
    assert!(made["old_secret_until"].is_string() && second != first, "{made}");
    world.visitor().buy_seats(&[1], "tok_paid").await;
    let deliveries = receiver.wait_for_deliveries(1).await;
    assert_eq!(deliveries[0].signatures(), 2);
    assert_eq!([&first, &second].map(|secret| deliveries[0].signed_with(secret)), [1, 1]);
    // A day later only the new secret signs.
    let aged = "UPDATE webhook_endpoints SET old_until = now() - interval '1 second'";
    world.execute(aged).await;
    world.visitor().buy_seats(&[2], "tok_paid").await;
    let deliveries = receiver.wait_for_deliveries(2).await;
    assert_eq!((deliveries[1].signatures(), deliveries[1].signed_with(&second)), (1, 1));
    let (_, listed) = max.get(HOOKS).await;
    let sql = "SELECT count(*) FROM idempotency_keys WHERE position($1 in encode(body, 'escape')) > 0";
    let kept: i64 = world.value(sqlx::query_scalar(sql).bind(&second)).await;
    assert!(!listed.to_string().contains(&second) && kept == 0, "{listed}");
}

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
    let (world, mut max, receiver) = world_with_receiver().await;
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
    let (world, mut max, receiver) = world_with_receiver().await;
    let (id, _) = create_endpoint(&mut max, &receiver.url()).await;
    receiver.reply_with(&[ReceiverReply::Status(410)]);
    world.visitor().buy_seats(&[1], "tok_paid").await;
    let query = "SELECT count(*) FROM webhook_endpoints WHERE state = 'failed'";
    world.wait_for_count("the endpoint is deactivated", query, 1).await;
    let seen = view(&mut max, &id).await;
    assert!(text(&seen["notice"]).contains("410"), "{seen}");
    let (_, page) = max.visitor().raw(Method::GET, "/staff/aurora/systems", Value::Null, "page").await;
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
    let answer = max.post(&path, json!({ "state": "failed", "reason": "For fun." })).await;
    expect_problem(answer, StatusCode::BAD_REQUEST, "malformed");
    assert_eq!(max.post(&path, json!({ "state": "removed", "reason": "Over." })).await.0, StatusCode::NO_CONTENT);
    assert_eq!(max.get(&format!("{HOOKS}/{id}/deliveries")).await.0, StatusCode::NOT_FOUND);
}

#[tokio::test(flavor = "multi_thread")]
async fn endpoint_that_keeps_failing_is_deactivated_with_a_reason() {
    let (world, mut max, receiver) = world_with_receiver().await;
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
    world.run(sqlx::query(past).bind(receiver.url())).await;
    world.visitor().buy_seats(&[1], "tok_paid").await;
    wait_until("the delivery is refused", || async {
        let refused = "SELECT count(*) FROM webhook_deliveries WHERE last_trouble LIKE '%public internet%'";
        world.count(refused).await == 1
    })
    .await;
    assert_eq!(receiver.deliveries().len(), 0);
}

/// Servers that may deliver to private addresses, with a timeout longer than any of these tests.
const LONG_TIMEOUT: [(&str, &str); 3] =
    [("WEBHOOKS_MAY_BE_PRIVATE", "true"), ("WEBHOOK_FIRST_PAUSE_MS", "1"), ("WEBHOOK_DEADLINE_MS", "15000")];
/// Of sixteen concurrent deliveries, the shares of one endpoint and of one theatre.
const OF_ENDPOINT: usize = 4;
const OF_THEATRE: usize = 8;

/// Records this many events of a theatre, due after all earlier ones.
async fn record_events(world: &World, theatre: &str, times: usize) {
    let deliveries = "SELECT tell_endpoints($1, 'show.cancelled', 'a show', '{}', now()) FROM generate_series(1, $2)";
    world.run(sqlx::query(deliveries).bind(theatre).bind(times as i64)).await;
}

/// A manager of the Aurora and the Rialto, and the Rialto's endpoint.
async fn two_theatres(world: &World) -> (Browser, Receiver) {
    another_theatre(world).await;
    let mut max = staff(world, "max@example.org", "manager").await;
    grant(world, "max@example.org", "rialto", "manager").await;
    let quick = Receiver::start().await;
    let request_body = json!({ "url": quick.url(), "events": ["show.cancelled"], "reason": "The till next door." });
    let (status, made) = max.post("/api/v1/theatres/rialto/webhooks", request_body).await;
    assert!(status.is_success(), "{made}");
    (max, quick)
}

#[tokio::test(flavor = "multi_thread")]
async fn hanging_endpoints_of_one_theatre_do_not_delay_another_theatre() {
    let world = World::start(1, &LONG_TIMEOUT).await;
    let (mut max, quick) = two_theatres(&world).await;
    let mut slow = Vec::new();
    for _ in 0..5 {
        let receiver = Receiver::start().await;
        receiver.reply_with(&[ReceiverReply::Silence; 20]);
        create_endpoint(&mut max, &receiver.url()).await;
        slow.push(receiver);
    }
    let hanging = || slow.iter().map(|receiver| receiver.deliveries().len()).collect::<Vec<_>>();
    // Enough for twice the capacity, and all due before the other theatre's.
    record_events(&world, "aurora", 10).await;
    wait_until("one theatre has its share", || async { hanging().iter().sum::<usize>() == OF_THEATRE }).await;
    record_events(&world, "rialto", 12).await;
    quick.wait_for_deliveries(12).await;
    let hanging = hanging();
    assert_eq!(hanging.iter().sum::<usize>(), OF_THEATRE, "no more than its share: {hanging:?}");
    assert!(hanging.iter().all(|count| *count <= OF_ENDPOINT), "{hanging:?}");
    wait_until("all of the other theatre's events are delivered", || async {
        let delivered = "SELECT count(*) FROM webhook_deliveries delivery JOIN webhook_messages message
                         ON message.id = delivery.message_id
                         WHERE message.theatre_id = 'rialto' AND delivery.state = 'delivered'";
        world.count(delivered).await == 12
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn failing_endpoint_gets_one_delivery_at_a_time_until_it_recovers() {
    let world = World::start(1, &LONG_TIMEOUT).await;
    let (mut max, quick) = two_theatres(&world).await;
    let failing = Receiver::start().await;
    failing.reply_with(&[ReceiverReply::Status(500), ReceiverReply::Silence]);
    create_endpoint(&mut max, &failing.url()).await;
    record_events(&world, "aurora", 1).await;
    // The first attempt fails, and the second hangs.
    failing.wait_for_deliveries(2).await;
    record_events(&world, "aurora", 6).await;
    // Two rounds deliver to others meanwhile, so the failing endpoint was considered too.
    for times in [3, 6] {
        record_events(&world, "rialto", 3).await;
        quick.wait_for_deliveries(times).await;
    }
    assert_eq!(failing.deliveries().len(), 2, "one at a time");
}
