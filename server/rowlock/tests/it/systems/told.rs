//! What other systems are told: once for each thing that happens, signed, and with nobody's name in it.

use reqwest::StatusCode;
use serde_json::{Value, json};

use super::receiver::{Receiver, Told};
use crate::accounts::Browser;
use crate::reports::staff;
use crate::world::{PRICE, World, text, until};

pub const HOOKS: &str = "/api/v1/theatres/aurora/webhooks";
/// Servers that may tell a server beside them, and try again soon.
pub const NEAR: [(&str, &str); 3] =
    [("WEBHOOKS_MAY_BE_PRIVATE", "true"), ("WEBHOOK_FIRST_PAUSE_MS", "1"), ("WEBHOOK_DEADLINE_MS", "400")];
const ALL: [&str; 5] = ["booking.confirmed", "booking.cancelled", "booking.refunded", "show.cancelled", "show.moved"];

/// An endpoint for everything that happens; its id and its secret.
pub async fn endpoint(max: &mut Browser, url: &str) -> (String, String) {
    let wish = json!({ "url": url, "events": ALL, "reason": "The newsletter listens." });
    let (status, made) = max.post(HOOKS, wish).await;
    assert_eq!(status, StatusCode::CREATED, "{made}");
    (text(&made["id"]).to_owned(), text(&made["secret"]).to_owned())
}

fn events(told: &[Told]) -> Vec<String> {
    let mut names: Vec<String> = told.iter().map(|one| text(&one.json()["event"]).to_owned()).collect();
    names.sort_unstable();
    names
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sale_its_cancelling_and_its_refund_are_each_told_once_and_signed() {
    let world = World::start(2, &NEAR).await;
    let mut max = staff(&world, "max@example.org", "manager").await;
    let receiver = Receiver::start().await;
    let (_, secret) = endpoint(&mut max, &receiver.url()).await;
    let ann = world.visitor();
    let booking = ann.bought(&[46, 47], "tok_paid").await;
    let told = receiver.hears(1).await;
    let confirmed = told[0].json();
    assert_eq!((&confirmed["event"], &confirmed["theatre"]), (&json!("booking.confirmed"), &json!("aurora")));
    let about = &confirmed["booking"];
    assert_eq!((&about["id"], &about["reference"]), (&booking["id"], &booking["reference"]));
    assert_eq!((&about["state"], &about["total"]["minor"]), (&json!("CONFIRMED"), &json!(2 * PRICE)));
    assert_eq!(told[0].header("rowlock-message"), text(&confirmed["id"]));
    assert_eq!(told[0].header("rowlock-event"), "booking.confirmed");

    assert_eq!(ann.cancel(&booking, Some(&[46])).await.0, StatusCode::OK);
    assert_eq!(ann.cancel(&booking, None).await.0, StatusCode::OK);
    let told = receiver.hears(5).await;
    let expected =
        ["booking.cancelled", "booking.cancelled", "booking.confirmed", "booking.refunded", "booking.refunded"];
    assert_eq!(events(&told), expected);
    for one in &told {
        assert_eq!((one.signatures(), one.signed_with(&secret)), (1, 1), "{:?}", one.headers);
        let text = String::from_utf8(one.body.to_vec()).expect("text");
        assert!(!text.contains("Ann") && !text.contains("example.org"), "nobody is named: {text}");
    }
    let back: i64 = told.iter().filter_map(|one| one.json()["refund"]["amount"]["minor"].as_i64()).sum();
    assert_eq!(back, 2 * PRICE - 2 * PRICE / 10);
    // Two replicas, and everything once: nothing is under way any more.
    until("all is delivered", || async {
        world.count("SELECT count(*) FROM webhook_deliveries WHERE state <> 'delivered'").await == 0
    })
    .await;
    assert_eq!((receiver.told().len(), world.count("SELECT count(*) FROM webhook_messages").await), (5, 5));
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_show_that_is_called_off_is_told_with_every_booking_it_undoes() {
    let world = World::start(1, &NEAR).await;
    let mut max = staff(&world, "max@example.org", "manager").await;
    let receiver = Receiver::start().await;
    endpoint(&mut max, &receiver.url()).await;
    world.visitor().bought(&[1], "tok_paid").await;
    world.visitor().bought(&[2], "tok_paid").await;
    let show = world.show.to_string();
    let (well, said) = world.command(&["cancel-show", &show, "--reason", "The projector is broken."]).await;
    assert!(well, "{said}");
    let told = receiver.hears(7).await;
    let count = |event: &str| events(&told).iter().filter(|name| *name == event).count();
    assert_eq!(ALL.map(count), [2, 2, 2, 1, 0]);
    let off = told.iter().map(Told::json).find(|one| one["event"] == "show.cancelled").expect("it was told");
    assert_eq!((&off["show"]["id"], &off["show"]["reason"]), (&json!(show), &json!("The projector is broken.")));
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_hears_what_it_asked_for_of_its_own_theatre_and_nothing_while_it_is_off() {
    let world = World::start(1, &NEAR).await;
    let mut max = staff(&world, "max@example.org", "manager").await;
    crate::accounts::another_theatre(&world).await;
    crate::accounts::grant(&world, "max@example.org", "rialto", "manager").await;
    let (ours, theirs) = (Receiver::start().await, Receiver::start().await);
    let wish = |url: String| json!({ "url": url, "events": ["booking.confirmed"], "reason": "The till next door." });
    let (_, made) = max.post(HOOKS, wish(ours.url())).await;
    let (status, _) = max.post("/api/v1/theatres/rialto/webhooks", wish(theirs.url())).await;
    assert_eq!(status, StatusCode::CREATED);
    let ann = world.visitor();
    let booking = ann.bought(&[1], "tok_paid").await;
    ours.hears(1).await;
    assert_eq!(ann.cancel(&booking, None).await.0, StatusCode::OK);
    ann.sees_money(&booking, "REFUNDED").await;
    let path = format!("{HOOKS}/{}/state", text(&made["id"]));
    let (status, _) = max.post(&path, json!({ "state": "off", "reason": "It moves house." })).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    world.visitor().bought(&[2], "tok_paid").await;
    assert_eq!(max.post(&path, json!({ "state": "on", "reason": "It is back." })).await.0, StatusCode::NO_CONTENT);
    let last = world.visitor().bought(&[3], "tok_paid").await;
    let told = ours.hears(2).await;
    assert_eq!(told[1].json()["booking"]["id"], last["id"]);
    assert_eq!((ours.told().len(), theirs.told().len()), (2, 0));
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn while_a_secret_is_replaced_both_sign_and_each_is_shown_once() {
    let world = World::start(1, &NEAR).await;
    let mut max = staff(&world, "max@example.org", "manager").await;
    let receiver = Receiver::start().await;
    let (id, first) = endpoint(&mut max, &receiver.url()).await;
    let path = format!("{HOOKS}/{id}/secret");
    let visitor = max.visitor();
    let rotate = async || {
        let body = json!({ "reason": "It was in a mail." });
        visitor.raw(reqwest::Method::POST, &path, body, "one-intent").await
    };
    let told = rotate().await;
    assert_eq!(told.0, StatusCode::OK, "{}", told.1);
    assert_eq!(rotate().await, told, "the same key, the same answer");
    let made: Value = serde_json::from_str(&told.1).expect("JSON");
    let second = text(&made["secret"]).to_owned();
    assert!(made["old_secret_until"].is_string() && second != first, "{made}");
    world.visitor().bought(&[1], "tok_paid").await;
    let told = receiver.hears(1).await;
    assert_eq!((told[0].signatures(), told[0].signed_with(&first), told[0].signed_with(&second)), (2, 1, 1));
    // A day later only the new one signs.
    let aged = "UPDATE webhook_endpoints SET old_until = now() - interval '1 second'";
    sqlx::query(aged).execute(&world.pg).await.expect("a day passes");
    world.visitor().bought(&[2], "tok_paid").await;
    let told = receiver.hears(2).await;
    assert_eq!((told[1].signatures(), told[1].signed_with(&second)), (1, 1));
    let (_, listed) = max.get(HOOKS).await;
    let kept: i64 =
        sqlx::query_scalar("SELECT count(*) FROM idempotency_keys WHERE position($1 in encode(body, 'escape')) > 0")
            .bind(&second)
            .fetch_one(&world.pg)
            .await
            .expect("a count");
    assert!(!listed.to_string().contains(&second) && kept == 0, "{listed}");
    world.end().await;
}
