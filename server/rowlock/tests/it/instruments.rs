//! Caps on what one card pays for. The simulator's rule of which tokens are of one card: `simulator/src/cards.rs`.

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::cancel::books_balance;
use crate::world::{Visitor, World, text};

/// A world whose show has a cap. Before anyone asked for it.
async fn capped(servers: usize, most: i16) -> World {
    let world = World::start(servers, &[]).await;
    let set = sqlx::query("UPDATE shows SET per_instrument = $1").bind(most).execute(&world.pg).await;
    set.expect("it is set");
    world
}

async fn checked_out(visitor: &Visitor, seats: &[u32]) -> (Value, Value) {
    let (status, hold) = visitor.hold(seats).await;
    assert_eq!(status, StatusCode::CREATED, "{hold}");
    let (status, booking) = visitor.book(&hold).await;
    assert_eq!(status, StatusCode::CREATED, "{booking}");
    (hold, booking)
}

#[tokio::test(flavor = "multi_thread")]
async fn one_card_pays_for_so_many_seats_whoever_holds_it() {
    let world = capped(1, 3).await;
    let (ann, bob) = (world.visitor(), world.visitor());
    assert_eq!(ann.bought(&[1, 2], "tok_paid@1111.a").await["state"], "CONFIRMED");
    let (hold, booking) = checked_out(&bob, &[5, 6]).await;
    let (status, refusal) = bob.pay(&booking, Some("tok_paid@1111.b")).await;
    assert_eq!((status, text(&refusal["code"])), (StatusCode::TOO_MANY_REQUESTS, "instrument_limit"), "{refusal}");
    assert_eq!(world.count("SELECT count(*) FROM payments").await, 1, "nothing was charged");
    // His seats are still his, to change or to pay for with another card.
    assert_eq!(bob.change(&hold, &[], &[6]).await.0, StatusCode::OK);
    let (_, fewer) = bob.book(&hold).await;
    assert_eq!(bob.pay(&fewer, Some("tok_paid@1111.b")).await.1["state"], "CONFIRMED", "three in all");
    assert_eq!(world.visitor().bought(&[7, 8, 9], "tok_paid@2222").await["state"], "CONFIRMED");
    assert_eq!(world.count("SELECT count(DISTINCT instrument) FROM payment_instruments").await, 2);
    assert_eq!(world.count("SELECT count(*) FROM payment_instruments").await, 3);
    books_balance(&world).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_came_to_nothing_does_not_count() {
    let world = capped(1, 2).await;
    assert_eq!(world.visitor().bought(&[1, 2], "tok_declined@1111").await["state"], "CANCELLED");
    let ann = world.visitor();
    let sold = ann.bought(&[3, 4], "tok_paid@1111").await;
    assert_eq!(sold["state"], "CONFIRMED");
    let bob = world.visitor();
    let (_, booking) = checked_out(&bob, &[5]).await;
    assert_eq!(bob.pay(&booking, Some("tok_paid@1111")).await.1["code"], "instrument_limit");
    assert_eq!(ann.cancel(&sold, None).await.0, StatusCode::OK);
    assert_eq!(bob.pay(&booking, Some("tok_paid@1111")).await.1["state"], "CONFIRMED", "she gave hers back");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bookings_at_once_with_one_card_do_not_all_pass() {
    let world = capped(2, 4).await;
    let mut ready = Vec::new();
    for number in 0..8_u32 {
        let visitor = world.visitor_at(number as usize % 2);
        let (_, hold) = visitor.hold(&[number * 2, number * 2 + 1]).await;
        // Half of those at each server check out and pay in one request.
        let booking = if number < 4 { Some(visitor.book(&hold).await.1) } else { None };
        ready.push((visitor, hold, booking, format!("tok_paid@1111.{number}")));
    }
    let pay = ready.iter().map(|(visitor, hold, booking, token)| visitor.pay_for(hold, booking.as_ref(), token));
    let told = futures::future::join_all(pay).await;
    let sold = told.iter().filter(|(_, answer)| answer["state"] == "CONFIRMED").count();
    let refused = told.iter().filter(|(_, answer)| answer["code"] == "instrument_limit").count();
    assert_eq!((sold, refused), (2, 6), "{told:?}");
    assert_eq!(world.count("SELECT count(*) FROM seat_claims WHERE state = 'sold'").await, 4);
    books_balance(&world).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_waits_too_long_for_another_with_the_card_may_come_again() {
    let world = capped(1, 4).await;
    assert_eq!(world.visitor().bought(&[1, 2], "tok_paid@1111").await["state"], "CONFIRMED");
    let bob = world.visitor();
    let (_, booking) = checked_out(&bob, &[5]).await;
    // As a submission takes it: the card's name is the one that was kept, the number is "card" in ASCII.
    let mut slow = world.pg.begin().await.expect("a transaction");
    let lock =
        "SELECT pg_advisory_xact_lock(hashtextextended(show_id::text || instrument, $1)) FROM payment_instruments";
    sqlx::query(lock).bind(0x6361_7264_i64).execute(&mut *slow).await.expect("it is locked");
    let (status, refusal) = bob.pay(&booking, Some("tok_paid@1111")).await;
    let told = (status, text(&refusal["code"]));
    assert_eq!(told, (StatusCode::SERVICE_UNAVAILABLE, "database_unavailable"), "{refusal}");
    assert_eq!(world.count("SELECT count(*) FROM payments").await, 1, "nothing was charged");
    slow.rollback().await.expect("the other is through");
    assert_eq!(bob.pay(&booking, Some("tok_paid@1111")).await.1["state"], "CONFIRMED");
    books_balance(&world).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_can_name_passes() {
    let world = capped(1, 1).await;
    assert_eq!(world.visitor().bought(&[1, 2], "tok_paid@").await["state"], "CONFIRMED");
    let ann = world.visitor();
    let (_, booking) = checked_out(&ann, &[3, 4]).await;
    let (status, pending) = ann.pay(&booking, None).await;
    assert_eq!((status, &pending["state"]), (StatusCode::OK, &json!("PAYMENT_PENDING")), "{pending}");
    assert_eq!(world.count("SELECT count(*) FROM payment_instruments").await, 0);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_show_without_a_cap_asks_no_gateway_and_keeps_nothing() {
    let token = "a token of this test; 32 bytes or more";
    let world = World::start(1, &[("METRICS_TOKEN", token)]).await;
    let ann = world.visitor();
    assert_eq!(ann.bought(&[1, 2], "tok_paid@1111").await["state"], "CONFIRMED");
    assert_eq!(world.visitor().bought(&[3, 4], "tok_paid@1111").await["state"], "CONFIRMED");
    assert_eq!(world.count("SELECT count(*) FROM payment_instruments").await, 0);
    let metrics = ann.client.get(format!("{}/metrics", ann.base)).bearer_auth(token).send().await;
    let metrics = metrics.expect("the server answers").text().await.expect("text");
    let asked = metrics
        .lines()
        .filter(|line| line.starts_with("rowlock_gateway_calls_total") && line.contains("question=\"instrument\""));
    let asked: Vec<&str> = asked.collect();
    assert!(!asked.is_empty() && asked.iter().all(|line| line.ends_with(" 0")), "{asked:?}");
    world.end().await;
}
