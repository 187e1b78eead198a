//! The way to Postgres is cut, or goes silent, in the middle of a sale: nobody knows then what was written, and
//! everybody has a ticket and paid once a moment later.

mod wire;

use std::sync::Arc;

use futures::future::join_all;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::cancel::books_balance;
use crate::commits::{GATHERING, with_holds};
use crate::world::{Visitor, World, text, until};
use wire::{Fate, Wire};

/// A card that pays, and whose gateway says so a second time a moment later.
const PAID: &str = "tok_late_webhook";
/// People in one batch.
const BUYERS: u32 = 4;
/// In what is written when payments are submitted…
const SUBMISSION: &str = "payment_submitted";
/// …and when they have succeeded.
const SUCCESS: &str = "payment_succeeded";
/// More people than lookups are served at one time.
const AT_A_LOSS: u32 = 4;
/// In the question for a buyer's record: their address.
const RECORD: &str = "ann@example.org";

/// A world whose only server reaches Postgres by a wire.
async fn on_a_wire(settings: &[(&str, &str)]) -> (World, Wire) {
    let mut world = World::start(0, settings).await;
    let wire = Wire::open(world.database_url()).await;
    world.add_server(&[("DATABASE_URL", &wire.url)]).await;
    (world, wire)
}

/// Somebody who pays: for a booking by `/confirm`, or for a hold at once.
struct Order {
    buyer: Visitor,
    path: String,
    body: Value,
}

impl Order {
    fn at_once(buyer: Visitor, hold: &Value) -> Self {
        let body = buyer.order(hold, Some(PAID));
        Self { path: "/api/v1/bookings".to_owned(), body, buyer }
    }

    async fn after_checkout(buyer: Visitor, hold: &Value) -> Self {
        let (status, booking) = buyer.book(hold).await;
        assert_eq!(status, StatusCode::CREATED, "{booking}");
        let path = format!("/api/v1/bookings/{}/confirm", text(&booking["id"]));
        Self { path, body: json!({ "payment_token": PAID }), buyer }
    }

    /// Always the same request, under the same key.
    async fn send(&self) -> (StatusCode, Value) {
        self.buyer.call_with_key(Method::POST, &self.path, self.body.clone(), "k").await
    }

    async fn is_sold(&self) {
        until("the same request is answered", || async { self.send().await.0.is_success() }).await;
        let (_, booking) = self.send().await;
        self.buyer.sees_booking(&booking, "CONFIRMED").await;
    }
}

/// So many people who are about to pay, every other one for a booking.
async fn orders(world: &World, count: u32) -> Vec<Order> {
    let mut orders = Vec::new();
    for (number, (buyer, hold)) in with_holds(world, count).await.into_iter().enumerate() {
        orders.push(match number % 2 {
            0 => Order::at_once(buyer, &hold),
            _ => Order::after_checkout(buyer, &hold).await,
        });
    }
    orders
}

/// Some people pay at the same moment, and the first transaction that says these words meets this fate. They come back
/// with the same key until they are answered.
async fn all_are_sold_once_although(fate: Fate, words: &'static str) {
    let (world, wire) = on_a_wire(&[GATHERING]).await;
    let orders = orders(&world, BUYERS).await;
    wire.strike(1, fate, words);
    let told = join_all(orders.iter().map(Order::send)).await;
    assert_eq!(wire.struck(), 1, "{told:?}");
    // Who was in another batch is told how it stands.
    let is_refused = |(status, _): &&(StatusCode, Value)| !status.is_success();
    let refused: Vec<_> = told.iter().filter(is_refused).collect();
    assert!(!refused.is_empty(), "somebody is not told what nobody knows: {told:?}");
    for (status, refusal) in refused {
        let code = text(&refusal["code"]);
        assert!(matches!((status.as_u16(), code), (503, "database_unavailable") | (409, "still_running")), "{refusal}");
    }
    for order in &orders {
        order.is_sold().await;
    }
    let sold = i64::from(BUYERS);
    assert_eq!(world.count("SELECT count(*) FROM payments").await, sold, "one payment each");
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
    let mut orders: Vec<_> = orders(&world, AT_A_LOSS + 1).await.into_iter().map(Arc::new).collect();
    let late = orders.pop().expect("somebody");
    wire.strike(u32::MAX, Fate::Silence, RECORD);
    let mut sent = Vec::new();
    for order in &orders {
        let (struck, order) = (wire.struck(), Arc::clone(order));
        let waits = tokio::spawn(async move { order.send().await });
        until("their lookup is not answered, or nobody is left to serve them", || async {
            wire.struck() > struck || waits.is_finished()
        })
        .await;
        sent.push(waits);
    }
    wire.mend();
    late.is_sold().await;
    for waits in sent {
        let (status, refusal) = waits.await.expect("it was sent");
        let code = text(&refusal["code"]);
        assert!(matches!((status.as_u16(), code), (503, "database_unavailable" | "overloaded")), "{refusal}");
    }
    for order in orders {
        order.is_sold().await;
    }
    books_balance(&world).await;
    world.end().await;
}
