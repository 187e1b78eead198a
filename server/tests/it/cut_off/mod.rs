//! The way to Postgres is cut, or goes silent, in the middle of a sale: nobody knows then what was written, and
//! everybody has a ticket and paid once a moment later.

mod wire;

use futures::future::join_all;
use reqwest::{Method, StatusCode};
use serde_json::Value;

use crate::cancel::books_balance;
use crate::commits::{GATHERING, with_holds};
use crate::world::{Visitor, World, text, until};
use wire::{Fate, Wire};

/// People in one batch.
const BUYERS: u32 = 4;
/// In what is written when payments are submitted…
const SUBMISSION: &str = "payment_submitted";
/// …and when they have succeeded.
const SUCCESS: &str = "payment_succeeded";
/// Servers of the line of lookups, each on a connection (`commits`).
const LOOKUPS_AT_ONCE: u32 = 2;
/// In the question for a buyer's record.
const RECORD: &str = "declined_payments";

/// A world whose only server reaches Postgres by a wire.
async fn on_a_wire(settings: &[(&str, &str)]) -> (World, Wire) {
    let mut world = World::start(0, settings).await;
    let wire = Wire::open(world.database_url()).await;
    world.add_server(&[("DATABASE_URL", &wire.url)]).await;
    (world, wire)
}

async fn buys(visitor: &Visitor, hold: &Value, key: &str) -> (StatusCode, Value) {
    visitor.call_with_key(Method::POST, "/api/v1/bookings", visitor.order(hold, Some("tok_paid")), key).await
}

/// Some people pay in one batch, whose transaction meets this fate; they come back with the same key until they
/// are told of their tickets.
async fn all_are_sold_once_although(fate: Fate, words: &'static str) {
    let (world, wire) = on_a_wire(&[GATHERING]).await;
    let buyers = with_holds(&world, BUYERS).await;
    wire.strike(1, fate, words);
    let told = join_all(buyers.iter().map(|(buyer, hold)| buys(buyer, hold, "k"))).await;
    assert_eq!(wire.struck(), 1, "{told:?}");
    let told: Vec<_> = told.iter().map(|(status, refusal)| (status.as_u16(), text(&refusal["code"]))).collect();
    assert_eq!(told, [(503, "database_unavailable"); BUYERS as usize], "nobody is told what nobody knows");
    // Should anybody's charge have been written down, and never asked for: the relay would, a minute later.
    let later = "UPDATE outbox SET run_after = now() WHERE effect = 'charge'";
    sqlx::query(later).execute(&world.pg).await.expect("time passes");
    for (buyer, hold) in &buyers {
        until("the same request is answered with a ticket", || async {
            let (status, answer) = buys(buyer, hold, "k").await;
            status.is_success() && answer["state"] == "CONFIRMED"
        })
        .await;
    }
    let sold = i64::from(BUYERS);
    assert_eq!(world.count("SELECT count(*) FROM payments").await, sold, "each paid once");
    assert_eq!(world.count("SELECT count(*) FROM bookings WHERE state = 'CONFIRMED'").await, sold);
    books_balance(&world).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_submission_that_is_cut_off_before_its_commit_was_none() {
    all_are_sold_once_although(Fate::CutBeforeCommit, SUBMISSION).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_submission_that_was_committed_and_not_heard_of_is_found() {
    all_are_sold_once_although(Fate::CutAfterCommit, SUBMISSION).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_success_that_is_cut_off_before_its_commit_is_noted_later() {
    all_are_sold_once_although(Fate::CutBeforeCommit, SUCCESS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_success_that_was_committed_and_not_heard_of_is_found() {
    all_are_sold_once_although(Fate::CutAfterCommit, SUCCESS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lookups_that_nobody_answers_hold_up_nobody_who_comes_later() {
    let (world, wire) = on_a_wire(&[]).await;
    let buyers = with_holds(&world, LOOKUPS_AT_ONCE + 1).await;
    wire.strike(LOOKUPS_AT_ONCE, Fate::Silence, RECORD);
    let [patient @ .., late] = buyers.as_slice() else { unreachable!("so many hold a seat") };
    for (number, (buyer, hold)) in (1..).zip(patient) {
        let (buyer, hold) = (buyer.clone(), hold.clone());
        tokio::spawn(async move { buys(&buyer, &hold, "k").await });
        until("a lookup is not answered", || async { wire.struck() == number }).await;
    }
    until("whoever comes later has a ticket", || async {
        let (status, answer) = buys(&late.0, &late.1, "k").await;
        status.is_success() && answer["state"] == "CONFIRMED"
    })
    .await;
    // And so have they.
    for (buyer, hold) in patient {
        until("they have theirs", || async { buys(buyer, hold, "k").await.0.is_success() }).await;
    }
    books_balance(&world).await;
    world.end().await;
}
