//! Limits on the seats that one card pays for. Tokens of one card: `simulator/src/cards.rs`.

use reqwest::StatusCode;
use serde_json::json;

use crate::world::{World, expect_problem, text};

/// A world whose show has a limit. Set before the show is loaded.
async fn world_with_limit(servers: usize, most: i16) -> World {
    let world = World::start(servers, &[]).await;
    let set = sqlx::query("UPDATE shows SET per_instrument = $1").bind(most).execute(&world.pg).await;
    set.expect("the limit is set");
    world
}

#[tokio::test(flavor = "multi_thread")]
async fn one_card_pays_up_to_its_limit_for_any_visitor() {
    let world = world_with_limit(1, 3).await;
    let (ann, bob) = (world.visitor(), world.visitor());
    assert_eq!(ann.buy_seats(&[1, 2], "tok_paid@1111.a").await["state"], "CONFIRMED");
    let (hold, booking) = bob.check_out(&[5, 6]).await;
    expect_problem(bob.pay(&booking, Some("tok_paid@1111.b")).await, StatusCode::TOO_MANY_REQUESTS, "instrument_limit");
    assert_eq!(world.count("SELECT count(*) FROM payments").await, 1, "nothing was charged");
    // His hold is kept, to modify or to pay with another card.
    assert_eq!(bob.change(&hold, &[], &[6]).await.0, StatusCode::OK);
    let (_, fewer) = bob.book(&hold).await;
    assert_eq!(bob.pay(&fewer, Some("tok_paid@1111.b")).await.1["state"], "CONFIRMED", "the limit of three is reached");
    assert_eq!(world.visitor().buy_seats(&[7, 8, 9], "tok_paid@2222").await["state"], "CONFIRMED");
    assert_eq!(world.count("SELECT count(DISTINCT instrument) FROM payment_instruments").await, 2);
    assert_eq!(world.count("SELECT count(*) FROM payment_instruments").await, 3);
    world.wait_until_books_balance().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_and_refunded_payments_do_not_count_towards_the_card_limit() {
    let world = world_with_limit(1, 2).await;
    assert_eq!(world.visitor().buy_seats(&[1, 2], "tok_declined@1111").await["state"], "CANCELLED");
    let ann = world.visitor();
    let sold = ann.buy_seats(&[3, 4], "tok_paid@1111").await;
    assert_eq!(sold["state"], "CONFIRMED");
    let bob = world.visitor();
    let (_, booking) = bob.check_out(&[5]).await;
    assert_eq!(bob.pay(&booking, Some("tok_paid@1111")).await.1["code"], "instrument_limit");
    assert_eq!(ann.cancel(&sold, None).await.0, StatusCode::OK);
    assert_eq!(bob.pay(&booking, Some("tok_paid@1111")).await.1["state"], "CONFIRMED", "her seats are refunded");
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_payments_with_one_card_do_not_exceed_its_limit() {
    let world = world_with_limit(2, 4).await;
    let mut ready = Vec::new();
    for number in 0..8_u32 {
        let visitor = world.visitor_at(number as usize % 2);
        let (_, hold) = visitor.hold(&[number * 2, number * 2 + 1]).await;
        // Half of those at each server check out and pay in one request.
        let booking = if number < 4 { Some(visitor.book(&hold).await.1) } else { None };
        ready.push((visitor, hold, booking, format!("tok_paid@1111.{number}")));
    }
    let pay = ready.iter().map(|(visitor, hold, booking, token)| visitor.pay_for(hold, booking.as_ref(), token));
    let answers = futures::future::join_all(pay).await;
    let sold = answers.iter().filter(|(_, answer)| answer["state"] == "CONFIRMED").count();
    let refused = answers.iter().filter(|(_, answer)| answer["code"] == "instrument_limit").count();
    assert_eq!((sold, refused), (2, 6), "{answers:?}");
    assert_eq!(world.count("SELECT count(*) FROM seat_claims WHERE state = 'sold'").await, 4);
    world.wait_until_books_balance().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn payment_that_times_out_on_the_cards_lock_can_be_retried() {
    let world = world_with_limit(1, 4).await;
    assert_eq!(world.visitor().buy_seats(&[1, 2], "tok_paid@1111").await["state"], "CONFIRMED");
    let bob = world.visitor();
    let (_, booking) = bob.check_out(&[5]).await;
    // The lock of a submission: its key is the show and the stored fingerprint, seeded with "card" in ASCII.
    let mut slow = world.pg.begin().await.expect("a transaction");
    let lock =
        "SELECT pg_advisory_xact_lock(hashtextextended(show_id::text || instrument, $1)) FROM payment_instruments";
    sqlx::query(lock).bind(0x6361_7264_i64).execute(&mut *slow).await.expect("the card is locked");
    let (status, refusal) = bob.pay(&booking, Some("tok_paid@1111")).await;
    let answers = (status, text(&refusal["code"]));
    assert_eq!(answers, (StatusCode::SERVICE_UNAVAILABLE, "database_unavailable"), "{refusal}");
    assert_eq!(world.count("SELECT count(*) FROM payments").await, 1, "nothing was charged");
    slow.rollback().await.expect("the lock is released");
    assert_eq!(bob.pay(&booking, Some("tok_paid@1111")).await.1["state"], "CONFIRMED");
    world.wait_until_books_balance().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn card_without_a_fingerprint_has_no_limit() {
    let world = world_with_limit(1, 1).await;
    assert_eq!(world.visitor().buy_seats(&[1, 2], "tok_paid@").await["state"], "CONFIRMED");
    let ann = world.visitor();
    let (_, booking) = ann.check_out(&[3, 4]).await;
    let (status, pending) = ann.pay(&booking, None).await;
    assert_eq!((status, &pending["state"]), (StatusCode::OK, &json!("PAYMENT_PENDING")), "{pending}");
    assert_eq!(world.count("SELECT count(*) FROM payment_instruments").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn show_without_a_card_limit_queries_no_fingerprint_and_stores_none() {
    let token = "a token of this test; 32 bytes or more";
    let (world, ann) = World::with_visitor(&[("METRICS_TOKEN", token)]).await;
    assert_eq!(ann.buy_seats(&[1, 2], "tok_paid@1111").await["state"], "CONFIRMED");
    assert_eq!(world.visitor().buy_seats(&[3, 4], "tok_paid@1111").await["state"], "CONFIRMED");
    assert_eq!(world.count("SELECT count(*) FROM payment_instruments").await, 0);
    let metrics = ann.client.get(format!("{}/metrics", ann.base)).bearer_auth(token).send().await;
    let metrics = metrics.expect("the server answers").text().await.expect("text");
    let asked = metrics
        .lines()
        .filter(|line| line.starts_with("rowlock_gateway_calls_total") && line.contains("question=\"instrument\""));
    let asked: Vec<&str> = asked.collect();
    assert!(!asked.is_empty() && asked.iter().all(|line| line.ends_with(" 0")), "{asked:?}");
}
